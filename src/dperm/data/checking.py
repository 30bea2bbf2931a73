"""Checks of a data set's configuration, before anything is downloaded."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import field, make_dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, get_type_hints

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from dperm.core.experiment.schema import Count, Dataset, Name, Names, Section, among
from dperm.core.experiment.validation import check
from dperm.data.readers import FORMATS
from dperm.data.synthetic import GENERATORS
from dperm.data.tables import RULES


def _must(holds: Callable[[Any], Any], expected: str) -> AfterValidator:
    """A constraint on a value, with the words for what is expected."""

    def validated(value: Any) -> Any:
        if not holds(value):
            raise PydanticCustomError(
                "expected", "Input should be {words}", {"words": expected}
            )
        return value

    return AfterValidator(validated)


def _keys(required: dict[str, Any], **others: Any) -> Any:
    """A section of required keys and others, by their types."""
    optional = [(key, kind, field(default=None)) for key, kind in others.items()]
    listed: list[Any] = [*required.items(), *optional]
    return make_dataclass("Keys", listed, bases=(Section,))


@functools.cache
def _arguments(function: Callable[..., Any]) -> Any:
    """The keyword arguments of a function as such a section."""
    kinds = get_type_hints(function, include_extras=True)
    given = inspect.signature(function).parameters.values()
    named = {one.name: one.default for one in given if one.kind is one.KEYWORD_ONLY}
    required = [
        name for name, default in named.items() if default is inspect.Parameter.empty
    ]
    others = {name: kinds[name] for name in named if name not in required}
    return _keys({name: kinds[name] for name in required}, **others)


def _are_web(urls: list[str]) -> bool:
    return all(re.match("https?://[^/]", url) for url in urls)


def _are_inside(paths: list[str]) -> bool:
    parts = [PurePosixPath(path).parts for path in paths]
    return all(one and one[0] != "/" and ".." not in one for one in parts)


FILES = Annotated[Names, _must(_are_inside, "paths below the folder")]
URLS = Annotated[Names, _must(_are_web, "http:// or https://")]
PACKAGE = Annotated[str, _must(str.isidentifier, "the name of a package")]
BUNDLED = ("breast_cancer", "diabetes", "digits", "iris", "wine")  # in scikit-learn
LOADER = Annotated[str, among(*(f"load_{name}" for name in BUNDLED))]
GENERATOR = Annotated[str, among(*GENERATORS)]
SOURCES = {
    "file": _keys({"files": FILES}, members=Names),
    "mirror": _keys({"files": FILES}, members=Names),
    "package": _keys({"files": FILES, "loader": PACKAGE}),
    "http": _keys({"urls": URLS}, members=Names),
    "openml": _keys({"id": Count}),
    "sklearn": _keys({"loader": LOADER}),
    "synthetic": _keys({"generator": GENERATOR, "options": dict}),
}
KIND = Annotated[str, among(*SOURCES)]
FORMAT = Annotated[str, among(*FORMATS)]
RULE = Annotated[str, among(*RULES)]
SOME = Annotated[list, Field(min_length=1)]
DIGEST = Annotated[
    str, _must(re.compile("sha256:[0-9a-f]{64}").fullmatch, "sha256: and 64 hex digits")
]
OF_TABLES = ("target", "drop", "missing", "categories")  # keys of a reader


def check_dataset(dataset: Dataset) -> None:
    """Check the sources, reader and digest in a data set's YAML.

    Raises
    ------
    ValueError
        The message names data set, key, value, expected values and the nearest name.
    """
    where, reader = f"data set {dataset.name}: ", dataset.reader
    check(dataset.name, Name, f"{where}name")
    check(dataset.digest, DIGEST | None, f"{where}digest")
    check(dataset.sources, SOME, f"{where}sources")
    for position, source in enumerate(dataset.sources):
        place = f"{where}sources[{position}]"
        check(source.kind, KIND, f"{place}.kind")
        keys = {key: value for key, value in vars(source).items() if value}
        del keys["kind"]
        check(keys, SOURCES[source.kind], place)
        if source.kind == "synthetic":
            made = _arguments(GENERATORS[str(source.generator)])
            check(source.options, made, f"{place}.options")
            if source.options.get("active", 0) > source.options["p"]:
                raise ValueError(f"{place}.options.active: expected at most p")
    where += "reader."
    check(reader.format, FORMAT, f"{where}format")
    check(reader.options, _arguments(FORMATS[reader.format]), f"{where}options")
    check(reader.missing, RULE | None, f"{where}missing")
    from_openml = any(source.kind == "openml" for source in dataset.sources)
    is_table = reader.format in ("csv", "arff") or from_openml  # which are ARFF
    found = [key for key in OF_TABLES if getattr(reader, key)]
    if found and not is_table:
        raise ValueError(f"{where}{found[0]}: only csv and arff have columns")
