"""Checks of a solver's options; messages state the key and the expected value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, NoReturn

from dperm.names import expected


def one_of(key: str, option: Any, choices: Collection[str]) -> None:
    """Refuse a value that is none of the known ones."""
    if option not in choices:
        raise ValueError(f"options.{key}: {expected(option, choices)}")


def at_least(options: Any, minimum: int, *keys: str) -> None:
    """Refuse numbers below the minimum."""
    for key in keys:
        if not _number(options, key) >= minimum:
            _refuse(options, key, f"{minimum} or more")


def positive(options: Any, *keys: str) -> None:
    """Refuse numbers that are not positive."""
    for key in keys:
        if not _number(options, key) > 0:
            _refuse(options, key, "positive")


def share(options: Any, *keys: str) -> None:
    """Refuse numbers outside (0, 1)."""
    for key in keys:
        if not 0 < _number(options, key) < 1:
            _refuse(options, key, "in (0, 1)")


def typed(options: Any, setting: Mapping[str, Any]) -> None:
    """Refuse values of a setting that are of another type than the usual ones."""
    for key, option in setting.items():
        usual = getattr(options, key)
        is_number = isinstance(usual, int | float) and not isinstance(
            usual, bool
        )
        if is_number:
            _check_number(key, option, isinstance(usual, int))
        elif isinstance(usual, bool | str) and not isinstance(
            option, type(usual)
        ):
            expected = "True or False" if isinstance(usual, bool) else "a name"
            raise ValueError(
                f"options.{key}: expected {expected}, found {option!r}"
            )


def is_whole(number: Any) -> bool:
    """Whether a number counts something, as 10 or 1e3 does."""
    return isinstance(number, Integral) or float(number).is_integer()


def _number(options: Any, key: str) -> float:
    """The number of an option; whole where it counts, as its default does."""
    number = getattr(options, key)
    counts = {
        field.name for field in fields(options) if field.type in (int, "int")
    }
    _check_number(key, number, key in counts)
    return float(number)


def _check_number(key: str, number: Any, is_count: bool) -> None:
    if isinstance(number, bool) or not isinstance(number, Real):
        raise ValueError(f"options.{key}: expected a number, found {number!r}")
    if is_count and not is_whole(number):
        raise ValueError(
            f"options.{key}: expected a whole number, found {number!r}"
        )


def _refuse(options: Any, key: str, expected: str) -> NoReturn:
    option = getattr(options, key)
    raise ValueError(f"options.{key}: expected {expected}, found {option!r}")
