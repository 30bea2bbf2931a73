"""Grids: the values to try, as written in a YAML.

An axis is a list, ``{logspace: [start, stop, num]}`` (the end points themselves, not
their exponents) or ``{linspace: [start, stop, num]}``. A grid is a mapping of axes and
stands for their product, which ``{product: {...}}`` makes explicit. ``{zip: {...}}``
pairs the values of axes of equal length. A list of grids is their union.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.schema import AXES

LONGEST = 10**6  # values of one axis
MOST = 10**7  # points of a grid
Point = dict[str, Any]
Group = tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]  # axes, rows of values
_RANGES: dict[str, Any] = {"logspace": np.geomspace, "linspace": np.linspace}


@dataclass(frozen=True)
class Product:
    """All combinations of groups of axes; axes of one group vary together."""

    groups: tuple[Group, ...]

    def __len__(self) -> int:
        return math.prod(len(rows) for _, rows in self.groups)

    def __iter__(self) -> Iterator[Point]:
        names = [name for axes, _ in self.groups for name in axes]
        for combination in itertools.product(*(rows for _, rows in self.groups)):
            values = itertools.chain.from_iterable(combination)
            yield dict(zip(names, values, strict=True))

    def __contains__(self, point: object) -> bool:
        return isinstance(point, dict) and all(
            tuple(point.get(name) for name in axes) in rows for axes, rows in self._sets
        )

    @functools.cached_property
    def _sets(self) -> list[tuple[tuple[str, ...], frozenset[tuple[Any, ...]]]]:
        return [(axes, frozenset(rows)) for axes, rows in self.groups]

    @property
    def axes(self) -> list[str]:
        """Names of the axes."""
        return [name for axes, _ in self.groups for name in axes]

    def values(self, axis: str) -> list[Any]:
        """The values of an axis in its group, with repetitions; empty without it."""
        return [
            row[axes.index(axis)]
            for axes, rows in self.groups
            if axis in axes
            for row in rows
        ]

    def keeping(self, axis: str, kept: set[Any]) -> Product:
        """The points whose value on an axis is in ``kept``, as a product."""
        groups = (
            (axes, tuple(row for row in rows if row[axes.index(axis)] in kept))
            if axis in axes
            else (axes, rows)
            for axes, rows in self.groups
        )
        return Product(tuple(groups))


@dataclass(frozen=True)
class Grid(Sequence[Point]):
    """The points of a grid in the order the YAML lists them, each once.

    Points are generated when iterated over, so that a grid needs only the memory of its
    axes.
    """

    parts: tuple[Product, ...]

    def __iter__(self) -> Iterator[Point]:
        for number, part in enumerate(self.parts):
            before = [one for one in self.parts[:number] if _may_share(one, part)]
            for point in part:
                if not any(point in other for other in before):
                    yield point

    def __len__(self) -> int:
        if self._is_disjoint():
            return sum(map(len, self.parts))
        return sum(1 for _ in self)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice) or index < 0:
            return list(self)[index]
        for point in itertools.islice(self, index, None):
            return point
        raise IndexError(index)

    def values(self, axis: str) -> list[Any]:
        """The values of an axis, each once, in the order of the points."""
        return list(dict.fromkeys(v for part in self.parts for v in part.values(axis)))

    def keeping(self, axis: str, kept: set[Any]) -> Grid:
        """The points whose value on an axis is in ``kept``, or without that axis."""
        return Grid(tuple(part.keeping(axis, kept) for part in self.parts))

    def total(self, axis: str) -> float:
        """The sum of an axis over all points."""
        if not self._is_disjoint():
            return math.fsum(point[axis] for point in self)
        every = ((part, part.values(axis)) for part in self.parts)
        return math.fsum(sum(each) * (len(part) / len(each)) for part, each in every)

    def _is_disjoint(self) -> bool:
        return not any(
            _may_share(*two) for two in itertools.combinations(self.parts, 2)
        )


def _may_share(one: Product, other: Product) -> bool:
    """Whether two products may share a point, judged by each axis separately."""
    return set(one.axes) == set(other.axes) and all(
        set(one.values(axis)) & set(other.values(axis)) for axis in one.axes
    )


def points(grid: Any, where: str = "grid", axes: tuple[str, ...] | None = AXES) -> Grid:
    """All points of a grid.

    Parameters
    ----------
    grid : mapping or list
        As the module's docstring describes.
    where : str
        File and key, for error messages.
    axes : tuple of str, or None
        The required axes, of numbers; None allows any names, and strings as values.

    Returns
    -------
    Grid
        One dict of the axes per point.

    Raises
    ------
    ConfigError
        For an empty grid, an unknown, missing or repeated axis, a value that is not a
        number, or more than ten million points.
    """
    parts = tuple(part for part in _parts(grid, where, axes) if len(part))
    if not parts:
        raise ConfigError(f"{where}: the grid is empty; expected at least one point")
    size = sum(map(len, parts))
    if size > MOST:
        raise ConfigError(f"{where}: expected at most {MOST} points, found {size}")
    return Grid(parts)


def _parts(grid: Any, where: str, axes: tuple[str, ...] | None) -> Iterator[Product]:
    if isinstance(grid, list):
        for part in grid:
            yield from _parts(part, where, axes)
    else:
        plain = dict(_mapping(grid, where))
        crossed, paired = plain.pop("product", {}), plain.pop("zip", {})
        named = axes is None
        alone = _lists(plain, where, named) + _lists(crossed, f"{where}.product", named)
        groups = [_group([one]) for one in alone]
        together = _lists(paired, f"{where}.zip", named)
        if len({len(values) for _, values in together}) > 1:
            lengths = ", ".join(f"{name} {len(values)}" for name, values in together)
            raise ConfigError(
                f"{where}.zip: axes must be equally long, found {lengths}"
            )
        if together:
            groups.append(_group(together))
        names = [name for name, _ in alone + together]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(
                    f"{where}: axis {name!r} is given twice; expected once"
                )
        if axes is not None and groups:
            _check_axes(names, axes, where)
        yield Product(tuple(groups) or (((), ()),))


def _mapping(grid: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(grid, Mapping):
        raise ConfigError(f"{where}: expected a mapping of axes, found {grid!r}")
    for name in grid:
        if not isinstance(name, str):
            raise ConfigError(f"{where}: expected names of axes, found {name!r}")
    return grid


def _check_axes(names: Sequence[str], axes: tuple[str, ...], where: str) -> None:
    for name in sorted(set(names) - set(axes)):
        raise ConfigError(f"{where}: unknown axis {name!r}; expected {', '.join(axes)}")
    for name in sorted(set(axes) - set(names)):
        raise ConfigError(f"{where}: axis {name!r} is missing")


def _lists(axes: Any, where: str, named: bool) -> list[tuple[str, list[Any]]]:
    """The axes of a mapping, each with its values."""
    return [
        (name, axis(values, f"{where}.{name}", named))
        for name, values in _mapping(axes, where).items()
    ]


def _group(lists: list[tuple[str, list[Any]]]) -> Group:
    """Axes that vary together, with each row of their values once."""
    names, values = zip(*lists, strict=True)
    return names, tuple(dict.fromkeys(zip(*values, strict=True)))


def axis(values: Any, where: str, named: bool = False) -> list[Any]:
    """The values of one axis; strings and booleans are allowed where ``named``.

    Raises ConfigError if it is empty, not a list or range, or holds a value that is not
    a number.
    """
    if isinstance(values, Mapping):
        values = _range(values, where)
    if not isinstance(values, list | tuple):
        values = [values]
    if not values:
        raise ConfigError(f"{where}: empty; expected at least one value")
    plain = str | bool | int | float
    for value in values:
        allowed = isinstance(value, plain) if named else _is_number(value)
        if not allowed or value != value:
            raise ConfigError(f"{where}: expected numbers, found {value!r}")
    return list(values) if named else [float(value) for value in values]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _range(spec: Mapping[str, Any], where: str) -> list[float]:
    if len(spec) != 1 or next(iter(spec)) not in _RANGES:
        raise ConfigError(
            f"{where}: expected a list, logspace or linspace, found {dict(spec)!r}"
        )
    ((kind, bounds),) = spec.items()
    if not isinstance(bounds, list | tuple) or len(bounds) != 3:
        raise ConfigError(
            f"{where}.{kind}: expected [start, stop, num], found {bounds!r}"
        )
    start, stop, num = bounds
    if isinstance(num, bool) or not isinstance(num, int) or not 1 <= num <= LONGEST:
        raise ConfigError(
            f"{where}.{kind}: num must be a whole number, 1 to {LONGEST}, found {num!r}"
        )
    for end in (start, stop):
        if not _is_number(end) or not math.isfinite(end):
            raise ConfigError(f"{where}.{kind}: expected finite numbers, found {end!r}")
    if kind == "logspace" and not (start > 0 and stop > 0):
        raise ConfigError(f"{where}.logspace: end points must be positive")
    return [float(value) for value in _RANGES[kind](start, stop, num)]


def thin(grid: Grid, keep: Mapping[str, int]) -> Grid:
    """The grid with only ``keep[axis]`` values of each axis named in ``keep``.

    The kept values are spread evenly over the axis and include its ends.
    """
    for name, count in keep.items():
        values = sorted(grid.values(name))
        chosen = np.linspace(0, len(values) - 1, min(count, len(values)))
        kept = {values[round(index)] for index in chosen}
        parts = (part.keeping(name, kept) for part in grid.parts)
        grid = Grid(tuple(part for part in parts if len(part)))
    return grid


def number(value: Any, n: int, where: str) -> float:
    """A number, or the value of ``1/n`` or ``1/n^2`` for n records."""
    named = {"1/n": 1.0 / n, "1/n^2": 1.0 / n**2}
    if isinstance(value, str) and value.replace(" ", "") in named:
        return named[value.replace(" ", "")]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{where}: expected a number, 1/n or 1/n^2, found {value!r}")
    return float(value)
