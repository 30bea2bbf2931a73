"""Grids: the values to try, as written in a YAML.

An axis is a value, a list, or ``{logspace: [start, stop, num]}`` (the end points, not
their exponents). A grid is a mapping of axes and stands for their product. ``{zip:
{...}}`` pairs the values of axes of equal length. A list of grids is their union.
"""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dperm.config.locate import ConfigError
from dperm.config.validation import one_of

AXES = ("passes", "step", "clip")  # of the grid of a run
MAX_POINTS = 10**6  # points of a grid, and values of an axis
MOST_PASSES = 10**6  # over the data; longer runs would not end
INFINITE = (
    ".inf is accepted only for clip, without noise (privacy.epsilon: .inf)"
)
Point = dict[str, Any]


def points(
    grid: Any, where: str = "grid", axes: Sequence[str] | None = AXES
) -> list[Point]:
    """All points of a grid, in the order of the YAML, each once.

    Parameters
    ----------
    grid : mapping or list
        As the module's docstring describes.
    where : str
        File and key, for error messages.
    axes : sequence of str, or None
        The required axes, of numbers; None allows any names, and strings as values.

    Raises
    ------
    ConfigError
        For an empty grid, an unknown, missing or repeated axis, a value that is not a
        number, or more than a million points.
    """
    grids = grid if isinstance(grid, list) else [grid]
    all_points: list[Point] = []
    for single in grids:
        all_points += _product(single, where, axes)
    if not all_points:
        raise ConfigError(
            f"{where}: the grid is empty; expected at least one point"
        )
    if len(grids) == 1:
        return all_points
    return list(
        {tuple(sorted(point.items())): point for point in all_points}.values()
    )


def _product(
    grid: Any, where: str, axes: Sequence[str] | None
) -> Iterator[Point]:
    plain = dict(_mapping(grid, where))
    paired = _lists(plain.pop("zip", {}), f"{where}.zip", axes is None)
    lists = _lists(plain, where, axes is None)
    lengths = {name: len(numbers) for name, numbers in paired.items()}
    if len({*lengths.values()}) > 1:
        raise ConfigError(
            f"{where}.zip: expected equal lengths, found {lengths}"
        )
    names = [*lists, *paired]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f"{where}: axis {name!r} is given twice; expected once"
            )
        if axes is not None:
            one_of(where, name, axes)
    for name in axes or ():
        if name not in names:
            raise ConfigError(f"{where}.{name}: expected values, found none")
    factors = [
        [(number,) for number in dict.fromkeys(axis_values)]
        for axis_values in lists.values()
    ]
    if paired:
        factors.append([*dict.fromkeys(zip(*paired.values(), strict=True))])
    size = math.prod(map(len, factors))
    if size > MAX_POINTS:
        raise ConfigError(
            f"{where}: expected at most {MAX_POINTS} points, found {size}"
        )
    for row in itertools.product(*factors) if factors else ():
        yield dict(zip(names, itertools.chain(*row), strict=True))


def _mapping(grid: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(grid, Mapping) or not all(
        isinstance(axis, str) for axis in grid
    ):
        raise ConfigError(
            f"{where}: expected a mapping of axes, found {grid!r}"
        )
    return grid


def _lists(axes: Any, where: str, is_named: bool) -> dict[str, list[Any]]:
    """The values of each axis of a mapping; strings only where they name."""
    lists = {}
    for name, axis_values in _mapping(axes, where).items():
        key = f"{where}.{name}"
        if isinstance(axis_values, Mapping):
            axis_values = _logspace(axis_values, key)
        axis_values = (
            list(axis_values)
            if isinstance(axis_values, list | tuple)
            else [axis_values]
        )
        if not axis_values:
            raise ConfigError(
                f"{key}: expected at least one value, found none"
            )
        for number in axis_values:
            is_plain = _is_number(number) or (
                is_named and isinstance(number, str | bool)
            )
            if not is_plain or number != number:
                raise ConfigError(f"{key}: expected numbers, found {number!r}")
        lists[name] = axis_values if is_named else [*map(float, axis_values)]
    return lists


def _is_number(value: Any) -> bool:
    """Whether it is a number that a float can hold."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, float) or (is_whole and value.bit_length() < 1024)


def _logspace(axis: Mapping[str, Any], where: str) -> list[float]:
    ends = axis.get("logspace") if len(axis) == 1 else None
    if (
        isinstance(ends, list | tuple)
        and len(ends) == 3
        and all(map(_is_number, ends))
    ):
        start, stop, num = ends
        is_above = min(start, stop) > 0 and max(start, stop) < math.inf
        if is_above and isinstance(num, int) and 1 <= num <= MAX_POINTS:
            return spaced(start, stop, num)
    raise ConfigError(
        f"{where}: expected a list or logspace: [start, stop, num], two positive "
        f"numbers and how many, at most {MAX_POINTS}, found {dict(axis)!r}"
    )


def spaced(start: float, stop: float, num: int) -> list[float]:
    """Numbers with equal ratios, ``num`` of them from ``start`` to ``stop``.

    They are rounded from 34 digits, since powers of numpy and of C differ between
    processors in the last bit: a job would have another key, and other rows.

    >>> spaced(0.001, 10, 5)
    [0.001, 0.01, 0.1, 1.0, 10.0]
    """
    if num == 1:
        return [float(start)]
    spacing = [float(start)]
    with decimal.localcontext(decimal.Context(prec=34)):
        exact = decimal.Decimal(str(start))
        ratio = ((decimal.Decimal(str(stop)) / exact).ln() / (num - 1)).exp()
        for _ in range(num - 2):
            exact *= ratio
            spacing.append(float(exact))
    return [*spacing, float(stop)]


def values(grid: Sequence[Point], axis: str) -> list[Any]:
    """The values of an axis, each once, in the order of the points."""
    return list(dict.fromkeys(point[axis] for point in grid if axis in point))


def thin(grid: Sequence[Point], keep: Mapping[str, int]) -> list[Point]:
    """The points with only ``keep[axis]`` values of each axis named in ``keep``.

    The kept values are spread evenly over the axis and include its ends.
    """
    thinned = [*grid]
    for axis, count in keep.items():
        axis_values = sorted(values(thinned, axis))
        chosen = np.linspace(
            0, len(axis_values) - 1, min(count, len(axis_values))
        )
        remaining = {axis_values[round(index)] for index in chosen}
        thinned = [point for point in thinned if point[axis] in remaining]
    return thinned


def check_clips(grid: Sequence[Point], where: str, epsilon: float) -> None:
    """Refuse an infinite clip where there is noise, which it would scale."""
    if epsilon != math.inf and math.inf in values(grid, "clip"):
        raise ConfigError(f"{where}.clip: {INFINITE}")


def number(value: float | str, n: int) -> float:
    """A number, or the value of ``1/n`` or ``1/n^2`` for n records."""
    fractions: dict[Any, float] = {"1/n": 1.0 / n, "1/n^2": 1.0 / n**2}
    return float(fractions.get(value, value))
