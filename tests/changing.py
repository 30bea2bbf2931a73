"""Sections are frozen: a copy of one with another value somewhere below it."""

from dataclasses import replace


def changed(section, key, value):
    """A copy of a section with another value at a key such as ``paper.sweeps``."""
    first, _, rest = key.partition(".")
    inner = changed(getattr(section, first), rest, value) if rest else value
    return replace(section, **{first: inner})
