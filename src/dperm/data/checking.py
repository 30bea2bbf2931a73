"""Checks of a data set's configuration, before anything is downloaded."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Any

from dperm.data.readers import FORMATS
from dperm.data.synthetic import GENERATORS
from dperm.schema import Dataset, Source

REQUIRED = {
    "file": "files",
    "mirror": "files",
    "http": "urls",
    "openml": "id",
    "sklearn": "loader",
    "synthetic": "generator",
}
LOADERS = (
    "load_breast_cancer",
    "load_diabetes",
    "load_digits",
    "load_iris",
    "load_wine",
)


def check_dataset(dataset: Dataset) -> None:
    """Check what a data set's YAML says about sources, reader and digest.

    Parameters
    ----------
    dataset : Dataset

    Raises
    ------
    ValueError
        Naming data set, key, what was found, what was expected and the nearest name.
    """
    name = str(dataset.name)
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        _fail(name, "name", name, "letters, digits, _ and -")
    if not dataset.sources:
        _fail(name, "sources", "none", "one or more")
    _check_known(name, "reader.format", dataset.reader.format, FORMATS)
    for option in dataset.reader.options:
        known = FORMATS[dataset.reader.format].options
        _check_known(name, "reader.options", option, known)
    if dataset.digest is not None and not re.fullmatch(
        r"sha256:[0-9a-f]{64}", str(dataset.digest)
    ):
        _fail(name, "digest", dataset.digest, "sha256: and 64 hexadecimal digits")
    for position, source in enumerate(dataset.sources):
        _check_source(name, f"sources[{position}]", source)


def _check_source(name: str, key: str, source: Source) -> None:
    _check_known(name, f"{key}.kind", source.kind, REQUIRED)
    required = REQUIRED[source.kind]
    if not getattr(source, required):
        _fail(name, f"{key}.{required}", "nothing", f"a value for {source.kind}")
    for path in source.files:
        parts = PurePosixPath(path)
        if parts.is_absolute() or ".." in parts.parts:
            _fail(name, f"{key}.files", path, "a path below the folder")
    if source.kind == "sklearn":
        _check_known(name, f"{key}.loader", source.loader, LOADERS)
    if source.kind == "synthetic":
        _check_known(name, f"{key}.generator", source.generator, GENERATORS)
        _check_arguments(name, f"{key}.options", source)


def _check_arguments(name: str, key: str, source: Source) -> None:
    expected = inspect.signature(GENERATORS[str(source.generator)]).parameters
    for option in source.options:
        _check_known(name, key, option, expected)
    missing = set(expected) - set(source.options)
    if missing:
        found = ", ".join(source.options) or "nothing"
        _fail(name, key, found, f"also {', '.join(sorted(missing))}")


def _check_known(name: str, key: str, found: Any, expected: Iterable[str]) -> None:
    known = list(expected)
    if found in known:
        return
    near = get_close_matches(str(found), known, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    listed = f"one of {', '.join(known)}" if known else "nothing here"
    _fail(name, key, found, f"{listed}{hint}")


def _fail(name: str, key: str, found: Any, expected: str) -> None:
    raise ValueError(f"data set {name}: {key}: found {found!r}, expected {expected}")
