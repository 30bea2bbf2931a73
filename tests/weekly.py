"""Of one check over many variants a spread runs by day, and all in ``make long``."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import pytest


def variants(names: Iterable[str], by_day: Collection[str]) -> list[Any]:
    """Names as parameters, of which those that are not ``by_day`` are long."""
    every = [*names]
    assert {*by_day} <= {*every}, {*by_day} - {*every}
    return [
        pytest.param(name, marks=() if name in by_day else pytest.mark.long)
        for name in every
    ]


def spread(cases: Iterable[Sequence[Any]]) -> Iterator[Any]:
    """Cases as parameters, of which every second is long."""
    for place, case in enumerate(cases):
        yield pytest.param(*case, marks=pytest.mark.long if place % 2 else ())
