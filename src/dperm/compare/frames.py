"""Data frames as arrays of numbers, by what a user declares and nothing else.

Which columns come out depends on the declarations and on the types of the frame's
columns. A row of the array depends on that record alone, so that neighbours stay
neighbours and epsilon pays for nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from dperm.compare.units import units

OTHER = "other"  # the level of every value that is not declared


@dataclass(frozen=True)
class Layout:
    """What becomes of the columns of a data frame.

    ``names`` are those of the array: ``city=A``, ``city=other``, ``age=missing``.
    ``fills`` has what a missing number becomes, ``bounds`` the array's ranges.
    """

    columns: tuple[str, ...]
    levels: Mapping[str, tuple[Any, ...]]
    fills: Mapping[str, float]
    names: tuple[str, ...]
    bounds: tuple[np.ndarray, np.ndarray] | None


def layout(frame: pd.DataFrame, categories: Any, gaps: Any, bounds: Any) -> Layout:
    """What declarations make of a frame, of which only names and types are read.

    They are as of ``DPClassifier``, bounds those of numeric columns. A ``ValueError``
    is raised where they do not fit the frame, and for undeclared text.
    """
    columns = tuple(frame.columns)
    if len({*columns}) < len(columns) or not all(isinstance(c, str) for c in columns):
        raise ValueError("X: expected columns whose names are strings and differ")
    levels = _levels(categories)
    numeric = tuple(one for one in columns if one not in levels)
    if isinstance(gaps, str):
        raise ValueError(f"missing_columns: expected a list, found {gaps!r}")
    gaps = tuple(() if gaps is None else gaps)
    for where, given, able in (
        ("categories", levels, columns), ("missing_columns", gaps, numeric)
    ):  # fmt: skip
        strange = ", ".join(str(one) for one in given if one not in able)
        if strange:
            raise ValueError(f"{where}: expected some of {able}; found {strange}")
    refuse_text(frame, {*levels, *gaps})
    known = units("bounds", bounds, None, numeric, True)
    ends = dict(zip(numeric, zip(known.low, known.high, strict=True), strict=True))
    made: list[tuple[str, tuple[float, float]]] = []
    for one in columns:
        tags = [*levels[one], OTHER] if one in levels else ["missing"] * (one in gaps)
        made += [(one, ends[one])] if one in ends else []
        made += [(f"{one}={tag}", (0.0, 1.0)) for tag in tags]
    names, pairs = zip(*made, strict=True)
    if len({*names}) < len(names):
        raise ValueError(f"X: columns would share a name: {', '.join(names)}")
    fills = {one: 0.0 if bounds is None else sum(ends[one]) / 2 for one in gaps}
    low, high = np.array(pairs).T
    ranges = None if bounds is None else (low, high)
    return Layout(columns, levels, fills, names, ranges)


def expanded(frame: Any, by: Layout) -> np.ndarray:
    """The frame's n records as numbers, shape (n, q); no value of a record raises.

    A number that is missing where no gap was declared stays NaN. A ``ValueError`` is
    raised for columns that are missing, or of text where numbers were fitted.
    """
    is_frame = isinstance(frame, pd.DataFrame)
    absent = [one for one in by.columns if not is_frame or one not in frame]
    if absent:
        raise ValueError(f"X: expected a data frame; missing: {', '.join(absent)}")
    refuse_text(frame[[*by.columns]], {*by.levels, *by.fills})
    parts: list[np.ndarray] = []
    for one in by.columns:
        if one in by.levels:
            parts.append(_one_hot(frame[one], by.levels[one]))
            continue
        numbers = _numbers(frame[one])
        is_gap = np.isnan(numbers)
        parts.append(np.where(is_gap, by.fills.get(one, np.nan), numbers))
        parts += [is_gap] * (one in by.fills)
    return np.column_stack(parts).astype(float)


def refuse_text(frame: pd.DataFrame, declared: set[str]) -> None:
    """Refuse, all at once, columns that are no numbers and were not declared."""
    types = frame.dtypes.items()
    text = [str(c) for c, t in types if c not in declared and not is_numeric_dtype(t)]
    if text:
        wanted = ", ".join(f'"{one}": [...]' for one in text)
        raise ValueError(
            f"X: no numbers in columns {', '.join(text)}; leave them out, or declare "
            f"values that do not come from the data: categories={{{wanted}}}"
        )


def _levels(categories: Any) -> dict[str, tuple[Any, ...]]:
    """Declared values by column, of which "other" is none."""
    wanted = (
        'categories: expected values by column, as {"city": ["A", "B"]}, that differ '
        f"and are neither missing nor {OTHER!r}; found"
    )
    if not isinstance(categories, Mapping | None):
        raise ValueError(f"{wanted} {categories!r}")
    found = {}
    for name, given in (categories or {}).items():
        values: Any = getattr(given, "categories", given)  # of a CategoricalDtype
        is_list = np.iterable(values) and not isinstance(values, str)
        tags = [*map(str, values), OTHER] if is_list else [OTHER, OTHER]
        if len({*tags}) < len(tags) or any(map(pd.isna, values)):
            raise ValueError(f"{wanted} {values!r} for {name}")
        found[name] = tuple(values)
    return found


def _one_hot(column: pd.Series, levels: tuple[Any, ...]) -> np.ndarray:
    """Indicators of the levels and of all else, shape (n, K + 1)."""
    places, last = {value: k for k, value in enumerate(levels)}, len(levels)
    codes = [_read(places.__getitem__, value, last) for value in column]
    return np.eye(last + 1)[np.array(codes, dtype=int)]


def _numbers(column: pd.Series) -> np.ndarray:
    """As doubles; NaN for what is none."""
    if not is_numeric_dtype(column.dtype):
        return np.array([_read(float, value, np.nan) for value in column])
    return column.to_numpy(dtype=float, na_value=np.nan)


def _read(read: Callable[[Any], Any], value: Any, otherwise: Any) -> Any:
    """What a value reads as, whatever it is."""
    try:
        return read(value)
    except (TypeError, ValueError, OverflowError, KeyError):
        return otherwise
