"""Grids as data: what a YAML says about the values to try.

An axis is a list, ``{logspace: [start, stop, num]}`` (the end points themselves, not
their exponents) or ``{linspace: [start, stop, num]}``. A grid is a mapping of axes,
whose product is taken; ``{product: {...}}`` says so explicitly, ``{zip: {...}}`` pairs
the values of axes of equal length, and a list of grids is their union.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

AXES = ("passes", "step", "clip")
LONGEST = 10**6  # values of one axis
_RANGES: dict[str, Any] = {"logspace": np.geomspace, "linspace": np.linspace}


def points(
    grid: Any, where: str = "grid", axes: tuple[str, ...] | None = AXES
) -> list[dict[str, Any]]:
    """All points of a grid, in the order the YAML lists them, each once.

    Parameters
    ----------
    grid : mapping or list
        As the module's docstring describes.
    where : str
        File and key, for error messages.
    axes : tuple of str, or None
        The axes it must have, of numbers; None for any names, and strings as well.

    Returns
    -------
    list of dict
        One dict of the axes per point.

    Raises
    ------
    ValueError
        For an empty grid, an unknown or missing axis, or a value that is no number.
    """
    if isinstance(grid, list):
        found = [point for part in grid for point in points(part, where, axes)]
    else:
        found = _one_grid(grid, where, axes)
    unique = {tuple(sorted(point.items())): point for point in found}
    if not unique:
        raise ValueError(f"{where}: the grid is empty; expected at least one point")
    return list(unique.values())


def _one_grid(
    grid: Any, where: str, axes: tuple[str, ...] | None
) -> list[dict[str, Any]]:
    if not isinstance(grid, Mapping):
        raise ValueError(f"{where}: expected a mapping of axes, found {grid!r}")
    named = axes is None
    parts: list[list[dict[str, Any]]] = []
    plain = {key: value for key, value in grid.items() if key not in ("zip", "product")}
    if plain:
        parts.append(_product(plain, where, named))
    if "product" in grid:
        parts.append(_product(grid["product"], f"{where}.product", named))
    if "zip" in grid:
        parts.append(_zip(grid["zip"], f"{where}.zip", named))
    merged = [
        {key: value for part in combination for key, value in part.items()}
        for combination in itertools.product(*parts)
    ]
    if axes is not None and merged:
        _check_axes(merged[0], axes, where)
    return merged


def _check_axes(point: Mapping[str, Any], axes: tuple[str, ...], where: str) -> None:
    unknown = sorted(set(point) - set(axes))
    missing = sorted(set(axes) - set(point))
    if unknown:
        raise ValueError(
            f"{where}: unknown axis {unknown[0]!r}; expected {', '.join(axes)}"
        )
    if missing:
        raise ValueError(f"{where}: axis {missing[0]!r} is missing")


def _product(axes: Mapping[str, Any], where: str, named: bool) -> list[dict[str, Any]]:
    lists = [axis(value, f"{where}.{key}", named) for key, value in axes.items()]
    return [
        dict(zip(axes, values, strict=True)) for values in itertools.product(*lists)
    ]


def _zip(axes: Mapping[str, Any], where: str, named: bool) -> list[dict[str, Any]]:
    lists = [axis(value, f"{where}.{key}", named) for key, value in axes.items()]
    if len({len(values) for values in lists}) > 1:
        lengths = ", ".join(
            f"{key} {len(values)}" for key, values in zip(axes, lists, strict=True)
        )
        raise ValueError(f"{where}: axes must be equally long, found {lengths}")
    return [dict(zip(axes, values, strict=True)) for values in zip(*lists, strict=True)]


def axis(values: Any, where: str, named: bool = False) -> list[Any]:
    """The values of one axis; strings and truth values too where ``named``.

    Raises
    ------
    ValueError
        If it is empty, not a list or range, or holds something that is no number.
    """
    if isinstance(values, Mapping):
        values = _range(values, where)
    if not isinstance(values, list | tuple):
        values = [values]
    if not values:
        raise ValueError(f"{where}: empty; expected at least one value")
    if named and all(isinstance(value, str | bool | int | float) for value in values):
        return list(values)
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{where}: expected numbers, found {value!r}")
    return [float(value) for value in values]


def _range(spec: Mapping[str, Any], where: str) -> list[float]:
    if len(spec) != 1 or next(iter(spec)) not in _RANGES:
        raise ValueError(
            f"{where}: expected a list, logspace or linspace, found {dict(spec)!r}"
        )
    ((kind, bounds),) = spec.items()
    if not isinstance(bounds, list | tuple) or len(bounds) != 3:
        raise ValueError(
            f"{where}.{kind}: expected [start, stop, num], found {bounds!r}"
        )
    start, stop, num = bounds
    if not isinstance(num, int) or not 1 <= num <= LONGEST:
        raise ValueError(
            f"{where}.{kind}: num must be a whole number, 1 to {LONGEST}, found {num!r}"
        )
    for end in (start, stop):
        if isinstance(end, bool) or not isinstance(end, int | float):
            raise ValueError(f"{where}.{kind}: expected numbers, found {end!r}")
    if kind == "logspace" and not (start > 0 and stop > 0):
        raise ValueError(f"{where}.logspace: end points must be positive")
    return [float(value) for value in _RANGES[kind](start, stop, num)]


def thin(
    found: list[dict[str, float]], keep: Mapping[str, int]
) -> list[dict[str, float]]:
    """The points whose values survive keeping only ``keep[axis]`` values of an axis.

    The kept values are spread evenly over the axis, its ends included.
    """
    for name, count in keep.items():
        values = sorted({point[name] for point in found})
        chosen = np.linspace(0, len(values) - 1, min(count, len(values)))
        kept = {values[round(index)] for index in chosen}
        found = [point for point in found if point[name] in kept]
    return found
