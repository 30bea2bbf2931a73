"""Tables: CSV with ten digits, and Markdown for readers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import files as store
from dperm.core.experiment.files import write_csv
from dperm.present.intervals import student

Rows = list[dict[str, Any]]


def save(data: pd.DataFrame, stem: Path, caption: str) -> list[Path]:
    """Write CSV and Markdown, each file whole or not at all."""
    written = [stem.with_suffix(".csv"), stem.with_suffix(".md")]
    write_csv(written[0], data)
    store.write_text(written[1], f"{in_markdown(data, caption)}\n")
    return written


def in_markdown(data: pd.DataFrame, caption: str) -> str:
    """A table for readers, with three digits, below its caption."""
    head = f"{caption.strip()}\n\n" if caption else ""
    return f"{head}{markdown(readable(data))}"


def markdown(text: pd.DataFrame) -> str:
    """A table in Markdown, one line per row."""
    from tabulate import tabulate

    cells = text.fillna("").map(plain)
    style: Any = {"headers": "keys", "tablefmt": "pipe", "showindex": False}
    return tabulate(cells, disable_numparse=True, **style)


def plain(cell: Any) -> str:
    """A cell in one line, because line breaks would break the row, and without tags."""
    return re.sub(r"<(?=[\w/!?])", "&lt;", " ".join(str(cell).split()))


def readable(data: pd.DataFrame) -> pd.DataFrame:
    """The data with all columns of real numbers as text, by ``short``."""
    text = data.copy()
    for column in data.columns:
        if data[column].dtype.kind == "f":
            text[column] = [short(value) for value in data[column]]
    return text


def where(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The rows whose columns have these values."""
    kept = np.ones(len(table), dtype=bool)
    for key, value in values.items():
        kept &= (table[key] == value).to_numpy()
    return table[kept]


def groups(
    table: pd.DataFrame, keys: list[str], sort: bool = False
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Iterate over the values of the keys, by name, with their rows."""
    for values, group in table.groupby(keys, sort=sort):
        yield dict(zip(keys, values, strict=True)), group


def with_interval(
    values: Any, *names: str, interval: Callable[..., tuple[float, float]] = student
) -> dict[str, float]:
    """The mean of an array or column and its interval, as three columns of a row.

    Default names are mean, ci_low and ci_high.
    """
    low, high = interval(np.asarray(values))
    found = (values.mean(), low, high)
    return dict(zip(names or ("mean", "ci_low", "ci_high"), found, strict=True))


def named(name: str, found: Sequence[float]) -> dict[str, float]:
    """A number and the ends of its interval as columns: x, x_low and x_high."""
    return dict(zip((name, f"{name}_low", f"{name}_high"), found, strict=True))


def interval(name: str, values: Any) -> dict[str, float]:
    """Mean of runs as column ``name`` with its 95 % interval; missing without a run."""
    known = np.asarray(values, float)
    known = known[~np.isnan(known)]
    ends = student(known) if len(known) else (math.nan, math.nan)
    return named(name, (known.mean() if len(known) else math.nan, *ends))


def number(value: float | None, digits: int = 3) -> str:
    """A number for readers with ``digits`` significant digits; empty if missing."""
    if value is None or pd.isna(value):
        return ""
    if value != 0 and not 1e-4 <= abs(value) < 1e5:
        return f"{value:.{digits - 1}e}"
    return f"{value:#.{digits}g}".rstrip(".")


def short(value: Any) -> str:
    """A value for readers: whole numbers unchanged, others as ``number``."""
    if isinstance(value, bool | str):
        return str(value)
    if value is None or pd.isna(value):
        return ""
    if math.isinf(value) or (value == int(value) and abs(value) < 1e6):
        return f"{value:g}"
    return number(value)
