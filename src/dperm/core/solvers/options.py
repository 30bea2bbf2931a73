"""Checks of a solver's options; messages state the key and the expected value."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from dperm.core.names import expected


def one_of(key: str, found: Any, known: Collection[str]) -> None:
    """Refuse a value that is none of the known ones."""
    if found not in known:
        raise ValueError(f"options.{key}: {expected(found, known)}")


def at_least(options: Any, least: int, *keys: str) -> None:
    """Refuse numbers below the least."""
    for key in keys:
        if not (found := getattr(options, key)) >= least:
            raise ValueError(f"options.{key}: expected {least} or more, found {found}")


def positive(options: Any, *keys: str) -> None:
    """Refuse numbers that are not positive."""
    for key in keys:
        if not (found := getattr(options, key)) > 0:
            raise ValueError(f"options.{key}: expected positive, found {found}")


def share(options: Any, *keys: str) -> None:
    """Refuse numbers outside (0, 1)."""
    for key in keys:
        if not 0 < (found := getattr(options, key)) < 1:
            raise ValueError(f"options.{key}: expected in (0, 1), found {found}")
