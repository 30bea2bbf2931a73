"""Convert data frames to arrays of numbers, by declarations and private releases.

The columns depend on the declarations, on the types of the frame's columns and on what
:mod:`dperm.solvers.private_levels` releases. A row of the array depends on its record
alone, so that neighbours stay neighbours.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from numbers import Integral, Number
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import (
    is_complex_dtype,
    is_numeric_dtype,
    is_object_dtype,
    is_string_dtype,
)

from dperm.compare import PRIVATE
from dperm.compare.units import units
from dperm.core.privacy.ledger import Ledger
from dperm.solvers import private_levels
from dperm.solvers.exact_noise import Exact
from dperm.solvers.fits.secret import Normal

TRUTHS = {"true": 1.0, "false": 0.0}
OTHER = "other"  # the level of every value that is not declared
TYPES = "types of columns"  # assumed by a guarantee where they are not declared


@dataclass(frozen=True)
class Layout:
    """How the columns of a data frame become those of an array.

    ``names`` are the array's columns: ``city=A``, ``city=other``, ``age=missing``.
    ``fills`` holds the number that replaces a missing one, ``bounds`` the array's
    ranges. A release finds the levels of the columns in ``text``, and whether numbers
    are missing in those of ``gaps``; ``counts`` holds its noisy counts by name. Columns
    in ``flags`` have an indicator of gaps.
    """

    columns: tuple[str, ...]
    levels: Mapping[str, tuple[Any, ...]]
    fills: Mapping[str, float]
    names: tuple[str, ...]
    bounds: tuple[np.ndarray, np.ndarray] | None
    text: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    counts: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether a release has to find anything."""
        return bool(self.text or self.gaps)

    @property
    def numeric(self) -> list[int]:
        """Indices in the array of the numeric columns."""
        numbers = {*self.columns} - {*self.levels}
        return [k for k, name in enumerate(self.names) if name in numbers]

    @property
    def gap_places(self) -> list[tuple[int, int]]:
        """Indices of the columns whose gaps were found, and of their indicators."""
        places = {name: k for k, name in enumerate(self.names)}
        some = [one for one in self.gaps if one in self.flags]
        return [(places[one], places[f"{one}=missing"]) for one in some]

    def fill_ledger(self, epsilon: float, delta: float) -> Ledger:
        """Releases that fill gaps, where neither bounds nor the user declare fills."""
        if not self.gaps or self.bounds is not None:
            return Ledger()
        return private_levels.fill_ledger(max(len(self.gap_places), 1), epsilon, delta)

    def filled(
        self,
        X: np.ndarray,
        units: np.ndarray,
        over: np.ndarray,
        stated: Ledger,
        normal: Normal | Exact,
    ) -> tuple[np.ndarray, Layout]:
        """X with released means in its gaps, and the layout with these fills.

        Parameters
        ----------
        X : ndarray (n, p)
            Gaps are 0, and their indicators are not.
        units, over : ndarray, shape (p,)
            Scales of X's columns, and the divisors of the frame's numbers.
        stated, normal
            As for ``private_levels.means``.
        """
        if not self.gap_places:
            return X, self
        places, flags = map(list, zip(*self.gap_places, strict=True))
        present = [len(X) - self.counts[self.names[k]] for k in flags]
        scaled = X[:, places] / units[places]
        means = private_levels.means(scaled, np.array(present), stated, normal)
        X = X.copy()
        X[:, places] += (X[:, flags] != 0) * means * units[places]
        names = [self.names[k] for k in places]
        fills = dict(zip(names, means * (units * over)[places], strict=True))
        return X, replace(self, fills={**self.fills, **fills})

    def scales(self, known: np.ndarray, n: int) -> np.ndarray:
        """Root mean squares (p,) of n records' columns; counts replace known ones."""
        shares = [self.counts.get(name, 0.0) / n for name in self.names]
        found = np.sqrt(np.clip(shares, 1 / n, 1.0))
        return np.where([name in self.counts for name in self.names], found, known)

    def ledger(self, n: int, epsilon: float, delta: float) -> Ledger:
        """Releases that find the levels and gaps of n records."""
        if not self.is_open:
            return Ledger()
        many = (len(self.text), len(self.gaps))
        return private_levels.ledger(*many, n, epsilon, delta)


def layout(frame: pd.DataFrame, categories: Any, gaps: Any, bounds: Any) -> Layout:
    """The layout by declarations and by the frame's names and types alone.

    Parameters are as for ``DPClassifier``; bounds are those of numeric columns. Raises
    ``ValueError`` if they do not fit the frame, and for columns that are neither
    numbers nor text.
    """
    columns = tuple(frame.columns)
    if len({*columns}) < len(columns) or not all(isinstance(c, str) for c in columns):
        raise ValueError("X: expected columns whose names are strings and differ")
    levels = _levels(categories)
    is_private = isinstance(gaps, str) and gaps == PRIVATE
    declared = {} if gaps is None or is_private else _fills(gaps)
    text = tuple(one for one in texts(frame) if one not in {*levels, *declared})
    levels |= dict.fromkeys(text, ())
    numeric = tuple(one for one in columns if one not in levels)
    is_found = is_private or (gaps is None and bool(text))
    for where, given, able in (
        ("categories", levels, columns), ("missing_columns", declared, numeric)
    ):  # fmt: skip
        strange = ", ".join(str(one) for one in given if one not in able)
        if strange:
            raise ValueError(f"{where}: expected some of {able}; found {strange}")
    refuse_others(frame, {*levels, *declared})
    known = units("bounds", bounds, numeric, True)
    ends = dict(zip(numeric, zip(known.low, known.high, strict=True), strict=True))
    middles = {one: 0.0 if bounds is None else sum(ends[one]) / 2 for one in numeric}
    counted = tuple(one for one in numeric if is_found and one not in declared)
    stated = {one: fill for one, fill in declared.items() if fill is not None}
    fills = {one: stated.get(one, middles[one]) for one in (*declared, *counted)}
    flags = tuple(declared)
    bare = Layout(columns, levels, fills, (), None, text, counted, flags)
    return _named(bare, None if bounds is None else ends)


def _named(by: Layout, ends: Mapping[str, tuple[float, float]] | None) -> Layout:
    """The layout with the names of its columns and the ranges of the numeric ones."""
    made: list[tuple[str, tuple[float, float]]] = []
    for one in by.columns:
        if one in by.levels:
            tags = [*by.levels[one], OTHER]
        else:
            made.append((one, ends[one] if ends else (0.0, 1.0)))
            tags = ["missing"] * (one in by.flags)
        made += [(f"{one}={tag}", (0.0, 1.0)) for tag in tags]
    names, pairs = zip(*made, strict=True)
    if len({*names}) < len(names):
        raise ValueError(f"X: columns would share a name: {', '.join(names)}")
    low, high = np.array(pairs).T
    return replace(by, names=names, bounds=(low, high) if ends else None)


def with_released(
    frame: pd.DataFrame, by: Layout, stated: Ledger, normal: Normal | Exact
) -> Layout:
    """The layout with the levels and gaps that a release finds in a frame.

    Levels are sorted by name, because the order of the records would reveal them.

    Parameters
    ----------
    stated : Ledger
        Of the layout.
    normal : callable
        As for ``private_levels.released``.
    """
    values = [_counted(frame[one]) for one in by.text]
    missing = [int(np.isnan(numbers(frame[one])).sum()) for one in by.gaps]
    levels, noisy = private_levels.released(values, missing, stated, normal)
    seen = private_levels.SEEN * stated.events[0].scale
    ends = {}
    if by.bounds is not None:
        places = by.numeric
        ends = {by.names[k]: (by.bounds[0][k], by.bounds[1][k]) for k in places}
    gaps = {one: z for one, z in zip(by.gaps, noisy, strict=True) if z > seen}
    counts = {f"{one}=missing": float(count) for one, count in gaps.items()}
    named = dict(zip(by.text, levels, strict=True))
    for one, some in named.items():
        counts |= {f"{one}={value}": count for value, count in some.items()}
        counts[f"{one}={OTHER}"] = len(frame) - sum(some.values())
    settled = replace(
        by,
        levels={**by.levels, **{one: tuple(some) for one, some in named.items()}},
        flags=(*by.flags, *gaps),
        counts=counts,
    )
    return _named(settled, ends or None)


def _counted(column: pd.Series) -> dict[str, int]:
    """How often each level's name occurs, sorted by name."""
    names = [name for name in map(_name, column) if name]
    values, counts = np.unique(np.array(names, dtype=object), return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _name(value: Any) -> str:
    """Name of a value's level; empty if it is missing, or neither text nor a number.

    Equal numbers have one name, 1 for 1, 1.0 and True. Otherwise one record could
    change the names: pandas stores all numbers of a category as one type.
    """
    if isinstance(value, str):
        name = str.__str__(value)
        return "" if name == OTHER else name
    is_number = isinstance(value, Number) and read(_is_equal, value, False)
    found = read(float, value, np.nan) if is_number else np.nan
    if np.isnan(found):
        return ""
    return str(int(found)) if found.is_integer() else repr(found)


def _is_equal(value: Any) -> bool:
    return bool(value == value)


def shared(value: Any) -> Any:
    """What a declared value and a record's have in common if they are the same.

    Text that reads as a number, or as True or False, equals that number: one word makes
    a reader of files take all other numbers of a column for text. None for what is not
    finite.
    """
    if isinstance(value, str):
        number = read(int, value, read(_double, value, None))
        if number is None:
            return str.__str__(value)
    elif isinstance(value, Number | np.bool_):
        number = value if isinstance(value, Integral) else read(float, value, np.nan)
    else:
        return value
    if isinstance(number, Integral) or number.is_integer():
        return str(int(number))  # exact, as a file may have whole numbers beyond 2^53
    return f"{number:.15g}" if np.isfinite(number) else None


def matched(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels (n,) as objects: the class that is the same, None for no class."""
    known = {shared(one): one for one in classes.tolist()}
    same = [read(lambda one: known.get(shared(one)), one, None) for one in labels]
    return np.array(same, dtype=object)


def expanded(frame: Any, by: Layout) -> np.ndarray:
    """The frame's n records as numbers, shape (n, q); no value of a record raises.

    A missing number stays NaN where no gap was declared. Raises ``ValueError`` for
    columns that are missing, or of text where numbers were fitted.
    """
    is_frame = isinstance(frame, pd.DataFrame)
    absent = [one for one in by.columns if not is_frame or one not in frame]
    if absent:
        raise ValueError(f"X: expected a data frame; missing: {', '.join(absent)}")
    refuse_others(frame[[*by.columns]], {*by.levels, *by.fills})
    parts: list[np.ndarray] = []
    for one in by.columns:
        if one in by.levels:
            levels, key = by.levels[one], _name if one in by.text else shared
            # indicators of the levels and of "other", shape (n, K + 1)
            places, last = (
                {key(value): k for k, value in enumerate(levels)},
                len(levels),
            )
            codes = [read(_place_of(places, key), value, last) for value in frame[one]]
            parts.append(np.eye(last + 1)[np.array(codes, dtype=int)])
            continue
        values = numbers(frame[one])
        is_gap = np.isnan(values)
        parts.append(np.where(is_gap, by.fills.get(one, np.nan), values))
        parts += [is_gap] * (one in by.flags)
    return np.column_stack(parts).astype(float)


def _place_of(places: Mapping[Any, int], key: Callable[[Any], Any]) -> Any:
    return lambda value: places[key(value)]


def texts(frame: pd.DataFrame) -> list[str]:
    """Names of the columns whose type is text, object or category."""
    is_text = (is_object_dtype, is_string_dtype)
    return [
        str(name)
        for name, kind in frame.dtypes.items()
        if isinstance(kind, pd.CategoricalDtype)
        or (not is_numeric_dtype(kind) and any(one(kind) for one in is_text))
    ]


def as_numbers(frame: Any, bounds: Any) -> Any:
    """The frame with doubles in the columns that bounds name, whatever they hold.

    Columns of pandas' extension number types, whose gaps may have no cast, become
    doubles too.
    """
    if not isinstance(frame, pd.DataFrame):
        return frame
    named = bounds if isinstance(bounds, Mapping) else {}
    columns = {}
    for k, (name, kind) in enumerate(frame.dtypes.items()):
        is_own = isinstance(kind, pd.api.extensions.ExtensionDtype)
        is_dense = is_own and not isinstance(kind, pd.SparseDtype)
        if is_dense if is_numeric_dtype(kind) else name in named:
            columns[k] = numbers(frame.iloc[:, k])
    frame = frame.copy(deep=False)
    for k, column in columns.items():
        frame.isetitem(k, column)
    return frame


def assumed(frame: Any, *declared: Any) -> tuple[str, ...]:
    """The assumption on column types, unless declarations name all columns."""
    if not isinstance(frame, pd.DataFrame):
        return ()
    lists = [one for one in declared if isinstance(one, Mapping | list)]
    named = set[str]().union(*lists)
    return () if named >= {*frame.columns} else (TYPES,)


def refuse_others(frame: pd.DataFrame, declared: set[str]) -> None:
    """Refuse all undeclared columns that are not numbers, such as dates, at once."""
    types = [(c, t) for c, t in frame.dtypes.items() if c not in declared]
    other = [str(c) for c, t in types if not is_numeric_dtype(t) or is_complex_dtype(t)]
    if other:
        raise ValueError(
            f"X: neither numbers nor text in columns {', '.join(other)}; leave them "
            "out, or make them numbers"
        )


def _fills(gaps: Any) -> dict[str, float | None]:
    """Fills of gaps by column; None stands for the middle of its bounds, or 0."""
    if isinstance(gaps, str) or not np.iterable(gaps):
        raise ValueError(
            "missing_columns: expected a list, a mapping from columns to fills, or "
            f"'private'; found {gaps!r}"
        )
    made = dict(gaps) if isinstance(gaps, Mapping) else dict.fromkeys(gaps)
    for name, fill in made.items():
        if fill is not None and not np.isfinite(read(float, fill, np.nan)):
            raise ValueError(
                f"missing_columns: {name}: expected a number, found {fill!r}"
            )
    return made


def _levels(categories: Any) -> dict[str, tuple[Any, ...]]:
    """Declared values by column, without "other"."""
    wanted = (
        'categories: expected values by column, as {"city": ["A", "B"]}, that differ '
        f"and are neither missing nor {OTHER!r}, also if read as numbers, whole "
        "numbers from 2^53 on as text; found"
    )
    if not isinstance(categories, Mapping | None):
        raise ValueError(f"{wanted} {categories!r}")
    found = {}
    for name, given in (categories or {}).items():
        values: Any = getattr(given, "categories", given)  # or a CategoricalDtype's
        is_list = np.iterable(values) and not isinstance(values, str)
        tags = [*map(str, values), OTHER] if is_list else [OTHER, OTHER]
        keys = {*map(shared, values)} if is_list else set()
        wrong = len({*tags}) < len(tags) or len(keys) + 1 < len(tags)
        if wrong or any(pd.isna(one) or _merges(one) for one in values):
            raise ValueError(f"{wanted} {values!r} for {name}")
        found[name] = tuple(values)
    return found


def _merges(value: Any) -> bool:
    """Whether the value as a double may equal others; one gap makes numbers doubles."""
    return isinstance(value, Number) and abs(read(float, value, 0.0)) >= 2.0**53


@contextmanager
def silent() -> Iterator[None]:
    """Suppress warnings of other libraries, which would depend on the records."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@silent()
def numbers(column: pd.Series) -> np.ndarray:
    """The column as doubles; NaN for values that are not numbers."""
    if not is_numeric_dtype(column.dtype):
        return np.array([read(_double, value, np.nan) for value in column])
    return column.to_numpy(dtype=float, na_value=np.nan)


def _double(value: Any) -> float:
    truth = TRUTHS.get(value.casefold()) if isinstance(value, str) else None
    return float(value) if truth is None else truth


def read(function: Callable[[Any], Any], value: Any, otherwise: Any) -> Any:
    """The function's result for a value, or ``otherwise`` if it raises anything."""
    try:
        return function(value)
    except Exception:  # a record may hold anything, and may raise anything
        return otherwise
