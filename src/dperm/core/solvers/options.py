"""Checks of a solver's options; messages state the key and the expected value."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from dperm.core.names import hint


def one_of(key: str, found: Any, known: Collection[str]) -> None:
    """Refuse a value that is none of the known ones."""
    if found not in known:
        raise ValueError(
            f"options.{key}: expected one of {', '.join(known)}, found {found!r}"
            f"{hint(str(found), known)}"
        )


def at_least(key: str, found: float, least: int) -> None:
    """Refuse a number below the least."""
    if not found >= least:
        raise ValueError(f"options.{key}: expected {least} or more, found {found}")


def positive(key: str, found: float) -> None:
    """Refuse a number that is not positive."""
    if not found > 0:
        raise ValueError(f"options.{key}: expected positive, found {found}")


def share(key: str, found: float) -> None:
    """Refuse a number outside (0, 1)."""
    if not 0 < found < 1:
        raise ValueError(f"options.{key}: expected in (0, 1), found {found}")
