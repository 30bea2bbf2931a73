"""Why a source of data could not be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class SourceError(Exception):
    """A source could not be reached or does not hold the data set."""


class RefusedError(SourceError):
    """What a source gave is not the data set: damaged, unreadable, other content."""


def explain(error: Exception) -> str:
    """Say in one line what went wrong; of a failed request, its innermost cause."""
    inner = error.args[0] if error.args else None
    cause = getattr(inner, "reason", None) or error
    return " ".join(f"{type(cause).__name__}: {cause}".split())


# --- keys of a reader, as whoever wrote them knows them -------------------------------


def _in_yaml(name: str, value: str = "") -> str:
    """``reader.missing: mean``, or ``reader.options: {header: false}``."""
    first, _, option = name.partition(".")
    if value and option:
        return f"reader.{first}: {{{option}: {value}}}"
    return f"reader.{name}: {value}" if value else f"reader.{name}"


_NAMING: ContextVar[Callable[..., str]] = ContextVar("naming", default=_in_yaml)


def key(name: str, value: str = "") -> str:
    """A key of the reader, with a value that it may have, for a message."""
    return _NAMING.get()(name, value)


@contextmanager
def naming(names: Callable[..., str]) -> Iterator[None]:
    """Messages name keys so, and not as a YAML does: ``names(name, value="")``."""
    token = _NAMING.set(names)
    try:
        yield
    finally:
        _NAMING.reset(token)
