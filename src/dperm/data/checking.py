"""Checks of a data set's configuration that need the readers and generators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import field, make_dataclass
from typing import Any, get_type_hints

from dperm.core.experiment.schema import SOURCES, Dataset, Section, Source
from dperm.core.experiment.validation import check, one_of
from dperm.data.readers import FORMATS
from dperm.data.synthetic import GENERATORS

BUNDLED = ("breast_cancer", "diabetes", "digits", "iris", "wine")  # in scikit-learn
OF_TABLES = ("target", "drop", "missing", "categories")  # keys of a reader


def check_dataset(dataset: Dataset) -> None:
    """Check a data set's YAML before anything is downloaded.

    Raises
    ------
    ValueError
        The message names data set, key, value, expected values and the nearest name.
    """
    where, reader = f"data set {dataset.name}: ", dataset.reader
    check(dataset, Dataset, where)
    for position, source in enumerate(dataset.sources):
        _check_source(source, f"{where}sources[{position}]")
    check(reader.options, _arguments(FORMATS[reader.format]), f"{where}reader.options")
    from_openml = any(source.kind == "openml" for source in dataset.sources)
    is_table = reader.format in ("csv", "arff") or from_openml  # which are ARFF
    found = [key for key in OF_TABLES if getattr(reader, key)]
    if found and not is_table:
        raise ValueError(f"{where}reader.{found[0]}: only csv and arff have columns")


def _check_source(source: Source, where: str) -> None:
    """Refuse keys that its kind has not or lacks, and what they name if unknown."""
    given = {key for key, value in vars(source).items() if value} - {"kind"}
    known = SOURCES[source.kind]
    for key in sorted(given.difference(known)):
        raise ValueError(f"{where}.{key}: expected one of {', '.join(known)}")
    for key in known:
        if key not in given and key != "members":
            raise ValueError(f"{where}.{key}: expected a value, found nothing")
    if source.kind == "sklearn":
        one_of(f"{where}.loader", source.loader, [f"load_{name}" for name in BUNDLED])
    if source.kind == "synthetic":
        one_of(f"{where}.generator", source.generator, GENERATORS)
        made = _arguments(GENERATORS[str(source.generator)])
        check(source.options, made, f"{where}.options")
        if source.options.get("active", 0) > source.options["p"]:
            raise ValueError(f"{where}.options.active: expected at most p")


@functools.cache
def _arguments(function: Callable[..., Any]) -> Any:
    """The keyword arguments of a function as a section."""
    kinds = get_type_hints(function, include_extras=True)
    given = inspect.signature(function).parameters.values()
    named = [one for one in given if one.kind is one.KEYWORD_ONLY]
    listed: list[Any] = [
        (one.name, kinds[one.name])
        if one.default is one.empty
        else (one.name, kinds[one.name], field(default=None))
        for one in named
    ]
    return make_dataclass("Keys", listed, bases=(Section,), kw_only=True)
