"""Checks of a data set's configuration, before anything is downloaded."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import asdict, field, make_dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from dperm.core.experiment.schema import (
    Count,
    Dataset,
    Flag,
    Name,
    Names,
    Number,
    Section,
    Source,
    Whole,
    among,
)
from dperm.core.experiment.validation import check
from dperm.data.readers import FORMATS
from dperm.data.synthetic import GENERATORS, RANGES
from dperm.data.tables import RULES


def _must(holds: Callable[[Any], Any], expected: str) -> AfterValidator:
    """A constraint on a value, with the words for what is expected."""

    def validated(value: Any) -> Any:
        if not holds(value):
            raise PydanticCustomError("expected", "{words}", {"words": expected})
        return value

    return AfterValidator(validated)


def _keys(required: dict[str, Any], **others: Any) -> Any:
    """A section of required keys and others, by their types."""
    optional = [(key, kind, field(default=None)) for key, kind in others.items()]
    listed: list[Any] = [*required.items(), *optional]
    return make_dataclass("Keys", listed, bases=(Section,))


def _is_inside(path: str) -> bool:
    parts = PurePosixPath(path)
    return bool(path) and not parts.is_absolute() and ".." not in parts.parts


def _is_mark(text: str) -> bool:
    return len(text) == 1 and text not in '\r\n"'


def _differ(values: list[Any]) -> bool:
    return 0 < len(values) == len(set(map(str, values)))


INSIDE = Annotated[str, _must(_is_inside, "a path below the folder")]
URL = Annotated[str, _must(re.compile("https?://[^/]").match, "http:// or https://")]
FILES = Annotated[list[INSIDE], _must(_differ, "paths that differ")]
URLS = Annotated[list[URL], _must(_differ, "addresses that differ")]
DIGEST = Annotated[
    str,
    _must(re.compile("sha256:[0-9a-f]{64}").fullmatch, "sha256: and 64 hex digits"),
]
LOADERS = {  # of scikit-learn that make arrays
    "load_breast_cancer": _keys({}),
    "load_diabetes": _keys({}, scaled=Flag),
    "load_digits": _keys({}, n_class=Count),
    "load_iris": _keys({}),
    "load_wine": _keys({}),
}
PACKAGE = Annotated[str, _must(str.isidentifier, "the name of a package")]
SOURCES = {  # the first key names a source
    "file": _keys({"files": FILES}, members=Names),
    "mirror": _keys({"files": FILES}, members=Names),
    "package": _keys({"files": FILES, "loader": PACKAGE}),
    "http": _keys({"urls": URLS}, files=list[INSIDE]),
    "openml": _keys({"id": Count}),
    "sklearn": _keys({"loader": Annotated[str, among(*LOADERS)]}, options=dict),
    "synthetic": _keys({"generator": Annotated[str, among(*GENERATORS)]}, options=dict),
}
OPTIONS = {  # of formats
    "csv": _keys(
        {},
        separator=Annotated[str, _must(_is_mark, "one character")],
        decimal=Annotated[str, among(".", ",")],
        header=Flag,
    ),
    "libsvm": _keys(
        {}, n_features=Count, zero_based=Flag | Literal["auto"], dense=Flag
    ),
    "nips2003": _keys({}, n_features=Count),
}
COLUMNS = {  # keys of a reader that only tables have
    "target": str | None,
    "drop": Names,
    "missing": Annotated[str, among(*RULES)] | None,
    "categories": dict[str, Annotated[list, _must(_differ, "values that differ")]],
}


def check_dataset(dataset: Dataset) -> None:
    """Check the sources, reader and digest in a data set's YAML.

    Raises
    ------
    ValueError
        The message names data set, key, value, expected values and the nearest name.
    """
    where = f"data set {dataset.name}: "
    check(dataset.name, Name, f"{where}name")
    check(dataset.digest, DIGEST | None, f"{where}digest")
    kinds = Annotated[list, _must(len, "one or more")]
    check([source.kind for source in dataset.sources], kinds, f"{where}sources")
    for position, source in enumerate(dataset.sources):
        _check_source(source, f"{where}sources[{position}]")
        if source in dataset.sources[:position]:
            raise ValueError(f"{where}sources[{position}]: found what was named before")
    reader = dataset.reader
    check(reader.format, Annotated[str, among(*FORMATS)], f"{where}reader.format")
    if reader.options and reader.format not in OPTIONS:
        raise ValueError(f"{where}reader.options: {reader.format} has none")
    check(reader.options, OPTIONS.get(reader.format, dict), f"{where}reader.options")
    for key, kind in COLUMNS.items():
        check(getattr(reader, key), kind, f"{where}reader.{key}")
    from_openml = any(source.kind == "openml" for source in dataset.sources)
    if reader.format in ("csv", "arff") or from_openml:  # which are ARFF
        return
    if found := [key for key in COLUMNS if getattr(reader, key)]:
        raise ValueError(f"{where}reader.{found[0]}: only csv and arff have columns")


def _check_source(source: Source, where: str) -> None:
    check(source.kind, Annotated[str, among(*SOURCES)], f"{where}.kind")
    used = {key: value for key, value in asdict(source).items() if value}
    del used["kind"]
    check(used, SOURCES[source.kind], where)
    if source.kind == "sklearn":
        check(source.options, LOADERS[str(source.loader)], f"{where}.options")
    elif source.kind == "synthetic":
        check(source.options, _arguments(str(source.generator)), f"{where}.options")
        if source.options.get("active", 0) > source.options["p"]:
            raise ValueError(f"{where}.options.active: expected at most p")


def _arguments(generator: str) -> Any:
    """The arguments of a generator, by their types and ranges."""
    arguments: dict[str, Any] = {}
    for name, given in inspect.signature(GENERATORS[generator]).parameters.items():
        low, high = RANGES[name]
        within = _must(partial(_is_within, low, high), f"{low:g} to {high:g}")
        kind = Number if given.annotation == "float" else Whole
        arguments[name] = Annotated[kind, within]
    return _keys(arguments)


def _is_within(low: float, high: float, value: float) -> bool:
    return low <= value <= high
