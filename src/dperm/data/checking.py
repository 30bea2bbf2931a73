"""Checks of a data set's configuration, before anything is downloaded."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import fields
from pathlib import PurePosixPath
from typing import Any

from dperm.core.experiment.schema import Dataset, Reader, Source
from dperm.core.experiment.validation import check
from dperm.core.names import hint
from dperm.data.readers import FORMATS, RULES
from dperm.data.synthetic import GENERATORS, RANGES

REQUIRED = {
    "file": "files",
    "mirror": "files",
    "package": "files",
    "http": "urls",
    "openml": "id",
    "sklearn": "loader",
    "synthetic": "generator",
}
BESIDE = {  # keys that a kind of source may have besides the required one
    "file": ("members",),
    "mirror": ("members",),
    "package": ("loader",),
    "http": ("files",),
    "sklearn": ("options",),
    "synthetic": ("options",),
}
LOADERS: dict[str, dict[str, type]] = {  # with their options that make arrays
    "load_breast_cancer": {},
    "load_diabetes": {"scaled": bool},
    "load_digits": {"n_class": int},
    "load_iris": {},
    "load_wine": {},
}


def check_dataset(dataset: Dataset) -> None:
    """Check the sources, reader and digest in a data set's YAML.

    Raises
    ------
    ValueError
        The message names data set, key, value, expected values and the nearest name.
    """
    name = str(dataset.name)
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        _fail(name, "name", name, "letters, digits, _ and -")
    if not dataset.sources:
        _fail(name, "sources", "none", "one or more")
    if dataset.digest is not None and not re.fullmatch(
        r"sha256:[0-9a-f]{64}", str(dataset.digest)
    ):
        _fail(name, "digest", dataset.digest, "sha256: and 64 hexadecimal digits")
    for position, source in enumerate(dataset.sources):
        _check_source(name, f"sources[{position}]", source)
        if source in dataset.sources[:position]:
            _fail(
                name, f"sources[{position}]", "what was named before", "another source"
            )
    asked = {source.kind for source in dataset.sources}
    _check_reader(name, dataset.reader, "openml" in asked)


def _check_reader(name: str, reader: Reader, is_arff: bool) -> None:
    """Check a reader; OpenML data are ARFF whatever the reader's format."""
    _check_known(name, "reader.format", reader.format, FORMATS)
    for key, value in reader.options.items():
        known = FORMATS[reader.format].options
        _check_known(name, "reader.options", key, known)
        check(value, known[key], f"data set {name}: reader.options.{key}")
    separator = reader.options.get("separator", ",")
    if len(str(separator)) != 1 or str(separator) in '\r\n"':
        _fail(name, "reader.options.separator", separator, "one character")
    if reader.options.get("n_features", 1) < 1:
        _fail(name, "reader.options.n_features", reader.options["n_features"], "1 up")
    if reader.missing is not None:
        _check_known(name, "reader.missing", reader.missing, RULES)
    named = is_arff or reader.format in ("csv", "arff")
    for key in ("target", "drop", "missing", "categories"):
        if getattr(reader, key) and not named:
            found = getattr(reader, key)
            _fail(
                name, f"reader.{key}", found, "nothing: only csv and arff have columns"
            )
    if len(set(reader.drop)) < len(reader.drop):
        _fail(name, "reader.drop", ", ".join(reader.drop), "each once")
    for column, listed in reader.categories.items():
        if not listed or len(set(map(str, listed))) < len(listed):
            _fail(name, f"reader.categories.{column}", listed, "values that differ")


def _check_source(name: str, key: str, source: Source) -> None:
    _check_known(name, f"{key}.kind", source.kind, REQUIRED)
    required = REQUIRED[source.kind]
    if not getattr(source, required):
        _fail(name, f"{key}.{required}", "nothing", f"a value for {source.kind}")
    for other in fields(Source):
        keys = ("kind", required, *BESIDE.get(source.kind, ()))
        if getattr(source, other.name) and other.name not in keys:
            found = getattr(source, other.name)
            _fail(name, f"{key}.{other.name}", found, f"nothing for {source.kind}")
    for listed in ("files", "members", "urls"):
        named = getattr(source, listed)
        if len(set(named)) < len(named):
            _fail(name, f"{key}.{listed}", ", ".join(named), "each once")
    for path in source.files:
        parts = PurePosixPath(path)
        if not path or parts.is_absolute() or ".." in parts.parts:
            _fail(name, f"{key}.files", path, "a path below the folder")
    for url in source.urls:
        if not re.match(r"https?://[^/]", url):
            _fail(name, f"{key}.urls", url, "http:// or https://")
    if (source.id or 1) < 1:
        _fail(name, f"{key}.id", source.id, "1 or more")
    if source.kind == "package" and not str(source.loader).isidentifier():
        _fail(name, f"{key}.loader", source.loader, "the name of a package")
    if source.kind == "sklearn":
        _check_known(name, f"{key}.loader", source.loader, LOADERS)
        taken = LOADERS[str(source.loader)]
        for option, value in source.options.items():
            _check_known(name, f"{key}.options", option, taken)
            check(value, taken[option], f"data set {name}: {key}.options.{option}")
    if source.kind == "synthetic":
        _check_known(name, f"{key}.generator", source.generator, GENERATORS)
        _check_arguments(name, f"{key}.options", source)


def _check_arguments(name: str, key: str, source: Source) -> None:
    generator = GENERATORS[str(source.generator)]
    expected = inspect.signature(generator, eval_str=True).parameters
    for option in source.options:
        _check_known(name, key, option, expected)
    missing = set(expected) - set(source.options)
    if missing:
        found = ", ".join(source.options) or "nothing"
        _fail(name, key, found, f"also {', '.join(sorted(missing))}")
    for option, value in source.options.items():
        check(value, expected[option].annotation, f"data set {name}: {key}.{option}")
        low, high = RANGES[option]
        if not low <= value <= high:
            _fail(name, f"{key}.{option}", value, f"{low:g} to {high:g}")
    if source.options.get("active", 0) > source.options["p"]:
        _fail(name, f"{key}.active", source.options["active"], "at most p")


def _check_known(name: str, key: str, found: Any, expected: Iterable[str]) -> None:
    known = list(expected)
    if found in known:
        return
    listed = f"one of {', '.join(known)}" if known else "nothing here"
    _fail(name, key, found, f"{listed}{hint(str(found), known)}")


def _fail(name: str, key: str, found: Any, expected: str) -> None:
    raise ValueError(f"data set {name}: {key}: found {found!r}, expected {expected}")
