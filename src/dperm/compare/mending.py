"""All that keeps a CSV from being read, at once, and the command that mends it."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dperm.compare.request import Request
from dperm.core.experiment.locate import ConfigError
from dperm.data.readers import ABSENT, _is_missing, _number

MOST = 20  # values that a column is listed as categories with


def refuse_all(request: Request, path: Path, separator: str) -> None:
    """Refuse a CSV in which two columns or more need a decision.

    One alone is left to the reader, which names its line.

    Raises
    ------
    ConfigError
        With a line for each of them, and a command.
    """
    with open(path, encoding="utf-8-sig", newline="", errors="replace") as handle:
        names, *rows = [row for row in csv.reader(handle, delimiter=separator) if row]
    if any(len(row) != len(names) for row in rows) or len({*names}) < len(names):
        return  # the reader says what is wrong
    target = request.target or names[-1]
    drop, said, adds = list(request.drop), [], []
    needs_fill = False
    for name, column in zip(names, zip(*rows, strict=True), strict=True):
        if name in drop or (name in request.categories and name != target):
            continue
        gaps = sum(map(_is_missing, column))
        words = any(np.isinf(_number(value)) for value in column)
        is_usable = abs(_number(column[0])) < 1e150  # or the reader names its line
        if name == target:
            if gaps:
                said.append(f"{name}, the target: {gaps} missing values")
                adds.append("missing=drop")
            if words and request.positive is None:
                values = sorted({*column} - ABSENT)
                said.append(
                    f"{name}, the target: words such as {', '.join(values[:5])}"
                )
                adds.append(f"positive={values[-1]}")
        elif len({*column}) == 1 < len(column) and request.standardize and is_usable:
            said.append(f"{name}: one value alone, {column[0]}")
            drop.append(name)
        elif words:
            values = list(dict.fromkeys(column))
            if len(values) > MOST:
                said.append(f"{name}: {len(values)} different words or dates")
                drop.append(name)
            else:
                said.append(f"{name}: words such as {', '.join(values[:5])}")
                listed = ", ".join(repr(value) for value in sorted(values))
                adds.append(f"categories.{name}=[{listed}]")
        elif gaps and request.missing is None:
            said.append(f"{name}: {gaps} missing values")
            needs_fill = True
    if needs_fill and "missing=drop" not in adds:
        adds.append("missing=median")
    if drop != request.drop:
        adds.append(f"drop=[{','.join(drop)}]")
    if len(said) > 1:
        lines = "\n".join(f"  {line}" for line in said)
        raise ConfigError(
            f"{path.name}: {len(said)} columns need a decision:\n{lines}\n"
            f"one that works, of which categories and classes are then public:\n"
            f"  {_command(request.words, adds)}"
        )


def _command(words: Sequence[Any], adds: Sequence[str]) -> str:
    new = {word.partition("=")[0] for word in adds}
    kept = [word for word in words if word.partition("=")[0] not in new]
    return shlex.join(["dperm", "try", *kept, *adds])
