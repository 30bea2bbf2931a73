"""Grids: the values to try, as written in a YAML.

An axis is a value, a list, ``{logspace: [start, stop, num]}`` (the end points, not
their exponents) or ``{linspace: [start, stop, num]}``. A grid is a mapping of axes and
stands for their product, which ``{product: {...}}`` makes explicit. ``{zip: {...}}``
pairs the values of axes of equal length. A list of grids is their union.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dperm.core.experiment.locate import ConfigError

AXES = ("passes", "step", "clip")  # of the grid of a run
MOST = 10**6  # points of a grid, and values of an axis
MOST_PASSES = 10**6  # over the data; longer runs would not end
INFINITE = ".inf is accepted only for clip, without noise (privacy.epsilon: .inf)"
Point = dict[str, Any]
_RANGES: dict[str, Any] = {"logspace": np.geomspace, "linspace": np.linspace}


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
    parts = grid if isinstance(grid, list) else [grid]
    every = [point for part in parts for point in _product(part, where, axes)]
    if not every:
        raise ConfigError(f"{where}: the grid is empty; expected at least one point")
    if len(parts) == 1:
        return every
    return list({tuple(sorted(point.items())): point for point in every}.values())


def _product(grid: Any, where: str, axes: Sequence[str] | None) -> Iterator[Point]:
    plain = dict(_mapping(grid, where))
    crossed, paired = plain.pop("product", {}), plain.pop("zip", {})
    is_named = axes is None
    lists = _lists(plain, where, is_named)
    lists += _lists(crossed, f"{where}.product", is_named)
    together = _lists(paired, f"{where}.zip", is_named)
    if len({len(values) for _, values in together}) > 1:
        lengths = ", ".join(f"{name} {len(values)}" for name, values in together)
        raise ConfigError(f"{where}.zip: axes must be equally long, found {lengths}")
    names = [name for name, _ in lists + together]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{where}: axis {name!r} is given twice; expected once")
    required = names if axes is None else axes
    for name in sorted({*names} - {*required}):
        known = ", ".join(required)
        raise ConfigError(f"{where}: unknown axis {name!r}; expected {known}")
    for name in sorted({*required} - {*names}):
        raise ConfigError(f"{where}: axis {name!r} is missing")
    factors = [[(value,) for value in dict.fromkeys(values)] for _, values in lists]
    if together:
        factors.append([*dict.fromkeys(zip(*(v for _, v in together), strict=True))])
    size = math.prod(map(len, factors))
    if size > MOST:
        raise ConfigError(f"{where}: expected at most {MOST} points, found {size}")
    for row in itertools.product(*factors) if factors else ():
        yield dict(zip(names, itertools.chain(*row), strict=True))


def _mapping(grid: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(grid, Mapping) or not all(isinstance(one, str) for one in grid):
        raise ConfigError(f"{where}: expected a mapping of axes, found {grid!r}")
    return grid


def _lists(axes: Any, where: str, is_named: bool) -> list[tuple[str, list[Any]]]:
    """The axes of a mapping, each with its values; strings only where they name."""
    found = []
    for name, values in _mapping(axes, where).items():
        key = f"{where}.{name}"
        if isinstance(values, Mapping):
            values = _range(values, key)
        values = list(values) if isinstance(values, list | tuple) else [values]
        if not values:
            raise ConfigError(f"{key}: empty; expected at least one value")
        for value in values:
            is_plain = _is_number(value) or (is_named and isinstance(value, str | bool))
            if not is_plain or value != value:
                raise ConfigError(f"{key}: expected numbers, found {value!r}")
        found.append((name, values if is_named else [*map(float, values)]))
    return found


def _is_number(value: Any) -> bool:
    """Whether it is a number that a float can hold."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, float) or (is_whole and value.bit_length() < 1024)


def _range(spec: Mapping[str, Any], where: str) -> list[float]:
    kind, bounds = next(iter(spec.items()), ("", None))
    if len(spec) != 1 or kind not in _RANGES:
        raise ConfigError(
            f"{where}: expected a list, logspace or linspace, found {dict(spec)!r}"
        )
    where = f"{where}.{kind}"
    if not isinstance(bounds, list | tuple) or len(bounds) != 3:
        raise ConfigError(f"{where}: expected [start, stop, num], found {bounds!r}")
    *ends, num = bounds
    if isinstance(num, bool) or not isinstance(num, int) or not 1 <= num <= MOST:
        raise ConfigError(
            f"{where}: num must be a whole number, 1 to {MOST}, found {num!r}"
        )
    for end in ends:
        if not _is_number(end) or not math.isfinite(end):
            raise ConfigError(f"{where}: expected finite numbers, found {end!r}")
    if kind == "logspace" and min(ends) <= 0:
        raise ConfigError(f"{where}: end points must be positive")
    return [float(value) for value in _RANGES[kind](*ends, num)]


def values(grid: Sequence[Point], axis: str) -> list[Any]:
    """The values of an axis, each once, in the order of the points."""
    return list(dict.fromkeys(point[axis] for point in grid if axis in point))


def thin(grid: Sequence[Point], keep: Mapping[str, int]) -> list[Point]:
    """The points with only ``keep[axis]`` values of each axis named in ``keep``.

    The kept values are spread evenly over the axis and include its ends.
    """
    kept = [*grid]
    for axis, count in keep.items():
        every = sorted(values(kept, axis))
        chosen = np.linspace(0, len(every) - 1, min(count, len(every)))
        left = {every[round(index)] for index in chosen}
        kept = [point for point in kept if point[axis] in left]
    return kept


def check_run(grid: Any) -> None:
    """Refuse the grid of a run if no solver could take its values."""
    every = points(grid, "")
    for axis in AXES:
        for value in values(every, axis):
            if not value > 0:
                raise ConfigError(f".{axis}: expected positive, found {value}")
            if value == math.inf and axis != "clip":
                raise ConfigError(f".{axis}: {INFINITE}")
            if axis == "passes" and value > MOST_PASSES:
                raise ConfigError(
                    f".passes: expected at most {MOST_PASSES} passes, found {value:g}"
                )


def check_clips(grid: Sequence[Point], where: str, epsilon: float) -> None:
    """Refuse an infinite clip where there is noise, which it would scale."""
    if epsilon != math.inf and math.inf in values(grid, "clip"):
        raise ConfigError(f"{where}.clip: {INFINITE}")


def number(value: Any, n: int, where: str) -> float:
    """A number, or the value of ``1/n`` or ``1/n^2`` for n records."""
    named = {"1/n": 1.0 / n, "1/n^2": 1.0 / n**2}
    if isinstance(value, str) and value.replace(" ", "") in named:
        return named[value.replace(" ", "")]
    if not _is_number(value):
        raise ConfigError(f"{where}: expected a number, 1/n or 1/n^2, found {value!r}")
    return float(value)
