"""Why a source of data could not be used."""

from __future__ import annotations


class SourceError(Exception):
    """A source could not be reached or does not hold the data set."""


class RefusedError(SourceError):
    """What a source gave is not the data set: damaged, unreadable, other content."""


def explain(error: Exception) -> str:
    """Say in one line what went wrong; of a failed request, its innermost cause."""
    inner = error.args[0] if error.args else None
    cause = getattr(inner, "reason", None) or error
    return " ".join(f"{type(cause).__name__}: {cause}".split())
