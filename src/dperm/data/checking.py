"""Checks of a data set's configuration, before anything is downloaded."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import field, make_dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
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


DIGEST = re.compile("sha256:[0-9a-f]{64}").fullmatch
WEB = re.compile("https?://[^/]").match
MARK = re.compile('[^\r\n"]').fullmatch
FILES = Annotated[Names, _must(lambda names: all(map(_is_inside, names)),
                               "paths below the folder")]  # fmt: skip
URLS = Annotated[Names, _must(lambda urls: all(map(WEB, urls)), "http:// or https://")]
PACKAGE = Annotated[str, _must(str.isidentifier, "the name of a package")]
BUNDLED = ("breast_cancer", "diabetes", "digits", "iris", "wine")
LOADERS = [f"load_{name}" for name in BUNDLED]  # of scikit-learn
SOURCES = {
    "file": _keys({"files": FILES}, members=Names),
    "mirror": _keys({"files": FILES}, members=Names),
    "package": _keys({"files": FILES, "loader": PACKAGE}),
    "http": _keys({"urls": URLS}, members=Names),
    "openml": _keys({"id": Count}),
    "sklearn": _keys({"loader": Annotated[str, among(*LOADERS)]}),
    "synthetic": _keys(
        {"generator": Annotated[str, among(*GENERATORS)], "options": dict}
    ),
}
OPTIONS = {  # of formats
    "csv": _keys(
        {},
        separator=Annotated[str, _must(MARK, "one character")],
        decimal=Annotated[str, among(".", ",")],
        header=Flag,
    ),
    "libsvm": _keys(
        {}, n_features=Count, zero_based=Flag | Literal["auto"], dense=Flag
    ),
    "nips2003": _keys({}, n_features=Count),
}
OF_TABLES = ("target", "drop", "missing", "categories")  # keys of a reader


def check_dataset(dataset: Dataset) -> None:
    """Check the sources, reader and digest in a data set's YAML.

    Raises
    ------
    ValueError
        The message names data set, key, value, expected values and the nearest name.
    """
    where = f"data set {dataset.name}: "
    reader = dataset.reader
    digest = Annotated[str, _must(DIGEST, "sha256: and 64 hex digits")]
    check(dataset.name, Name, f"{where}name")
    check(dataset.digest, digest | None, f"{where}digest")
    check(
        dataset.sources, Annotated[list, _must(len, "one or more")], f"{where}sources"
    )
    for position, source in enumerate(dataset.sources):
        _check_source(source, f"{where}sources[{position}]")
    check(reader.format, Annotated[str, among(*FORMATS)], f"{where}reader.format")
    check(
        reader.options, OPTIONS.get(reader.format, _keys({})), f"{where}reader.options"
    )
    check(
        reader.missing, Annotated[str, among(*RULES)] | None, f"{where}reader.missing"
    )
    from_openml = any(source.kind == "openml" for source in dataset.sources)
    is_table = reader.format in ("csv", "arff") or from_openml  # which are ARFF
    found = [key for key in OF_TABLES if getattr(reader, key)]
    if found and not is_table:
        raise ValueError(f"{where}reader.{found[0]}: only csv and arff have columns")


def _check_source(source: Source, where: str) -> None:
    check(source.kind, Annotated[str, among(*SOURCES)], f"{where}.kind")
    keys = {key: value for key, value in vars(source).items() if value}
    del keys["kind"]
    check(keys, SOURCES[source.kind], where)
    if source.kind == "synthetic":
        options = source.options
        check(options, _arguments(str(source.generator)), f"{where}.options")
        if options.get("active", 0) > options["p"]:
            raise ValueError(f"{where}.options.active: expected at most p")


def _arguments(generator: str) -> Any:
    """The arguments of a generator, by their types and ranges."""
    arguments: dict[str, Any] = {}
    for name, given in inspect.signature(GENERATORS[generator]).parameters.items():
        low, high = RANGES[name]
        kind = Number if given.annotation == "float" else Whole
        arguments[name] = Annotated[kind, Field(ge=low, le=high)]
    return _keys(arguments)
