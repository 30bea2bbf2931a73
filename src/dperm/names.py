"""Names that a user gives, modules of one's own, and the package's own files."""

from __future__ import annotations

import argparse
import difflib
import functools
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

MANY = 20  # names in a message, at most


class ConfigError(ValueError):
    """An invalid configuration; the text states the place and reason in one line."""


@functools.cache
def home() -> Path:
    """The folder of the package's ``conf/``, ``profiles/`` and Snakefile."""
    package = Path(__file__).resolve().parent
    packaged = package / "share"
    return packaged if packaged.is_dir() else package.parents[1]


def hint(word: str, choices: Iterable[str]) -> str:
    """The nearest known name, as the end of a message; empty if none is near."""
    near = difflib.get_close_matches(word, list(choices), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def parsed(
    parser: argparse.ArgumentParser, words: Iterable[str], *others: str
) -> argparse.Namespace:
    """What a parser reads in words; ``others`` are options that it does not know.

    Raises ConfigError of one line where argparse would print a usage and exit.
    """

    def error(message: str) -> NoReturn:
        raise ConfigError(message)

    parser.error = error  # type: ignore[method-assign]
    options, unknown = parser.parse_known_args([*words])
    for word in unknown:
        if word.startswith("-"):
            raise ConfigError(
                no_option(word, [*option_names(parser), *others])
            )
    return options


def option_names(parser: argparse.ArgumentParser) -> list[str]:
    """Every spelling of every option of a parser."""
    return [
        name for action in parser._actions for name in action.option_strings
    ]


def no_option(word: str, options: Iterable[str]) -> str:
    """What is said of an option that does not exist."""
    name = word.partition("=")[0]
    return f"no option {name}{hint(name, options)}; --help lists what there is"


def expected(word: Any, choices: Iterable[Any]) -> str:
    """What is said of a value that is none of the known names, with the nearest one.

    Of many names none is listed if one is near, else the first ones.
    """
    names = [*map(str, choices)]
    near = hint(str(word), names)
    listed = ", ".join(names[:MANY])
    if len(names) > MANY:
        listed = (
            f"{len(names)} names"
            if near
            else f"{listed} ({len(names)} in all)"
        )
    return f"expected one of {listed}, found {word!r}{near}"


@functools.cache
def entry_points(group: str) -> dict[str, str]:
    """Modules that installed packages offer as ``dperm.<group>``, by name."""
    points = importlib.metadata.entry_points(group=f"dperm.{group}")
    return {point.name: point.module for point in points}


def place(group: str, noun: str, name: str, ours: Mapping[str, str]) -> str:
    """The module of that name: one of ours, by name, or a user's own.

    Raises ValueError if there is none; the message suggests the nearest known name.
    """
    module = ours.get(name) or own_module(group, name)
    if module is None:
        raise ValueError(
            f"{noun} {name!r}: expected one of {', '.join(sorted(ours))}, or a module "
            f"beside conf/ or installed{hint(name, ours)}"
        )
    return module


def own_module(group: str, name: str) -> str | None:
    """The module of a solver, loss or accountant that is not of this package.

    It is an entry point's of ``dperm.solvers``, ``dperm.losses`` or
    ``dperm.privacy.mechanisms``, or a module of that name, beside ``conf/`` or
    installed.

    Returns
    -------
    str or None
        None if there is no such module in Python, or it is of Python's own library.
    """
    if name in entry_points(group):
        return entry_points(group)[name]
    words = name.split(".")
    is_name = (
        all(word.isidentifier() for word in words) and words[-1] != "__main__"
    )
    if not is_name or words[0] in sys.stdlib_module_names:
        return None
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    origin = spec.origin if spec else None
    return name if origin and origin.endswith(".py") else None
