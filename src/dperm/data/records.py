"""Records of text, such as CSV and ARFF hold, to arrays X (n, p) and y (n,).

Nothing is guessed: a missing value or a category is refused with its line and column,
unless the reader declares what is to become of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dperm.core.experiment.schema import Reader
from dperm.data.errors import RefusedError, key

Arrays = tuple[Any, np.ndarray]
ABSENT = frozenset(("", "?"))  # no value, of whatever column
MISSING = ABSENT | {"na", "n/a", "nan", "null", "none"}  # no number
RULES = ("mean", "median", "drop")


@dataclass(frozen=True)
class Records:
    """Columns by name, of numbers, text or None; the line of each record."""

    names: Sequence[str]
    columns: Sequence[Sequence[Any]]
    lines: Sequence[int]

    def column(self, j: int) -> Column:
        """One column with its name and its lines."""
        return Column(self.names[j], self.columns[j], self.lines)


@dataclass(frozen=True)
class Column:
    """A name, values, and the line that each stands in."""

    name: str
    values: Sequence[Any]
    lines: Sequence[int]


def arrays(records: Records, reader: Reader) -> Arrays:
    """Make arrays of records, as the reader declares.

    Parameters
    ----------
    records : Records
    reader : Reader
        Its ``target``, ``positive``, ``drop``, ``missing`` and ``categories`` count.

    Returns
    -------
    X : ndarray, shape (n, p)
        A category of k values that are listed becomes k columns of 0 and 1.
    y : ndarray, shape (n,)

    Raises
    ------
    RefusedError
        Naming column and line of what is missing or no number.
    """
    if not records.lines:
        raise RefusedError("the file has no rows")
    target, features = columns(records.names, reader)
    unknown = sorted(set(reader.categories) - {records.names[j] for j in features})
    if unknown:
        raise RefusedError(f"{key('categories')}: {unknown[0]!r} is no feature")
    if reader.missing == "drop":
        records = _complete(records, [target, *features], reader)
    made = [part for j in features for part in _coded(records.column(j), reader)]
    if not made:
        raise RefusedError("the file has no features beside the target")
    return np.column_stack(made), _target(records.column(target), reader)


def columns(names: Sequence[str], reader: Reader) -> tuple[int, list[int]]:
    """Find the target column and the feature columns, by default last and others.

    Raises
    ------
    RefusedError
        If one that the reader names is not there.
    """
    missing = {reader.target or names[-1], *reader.drop} - set(names)
    if missing:
        raise RefusedError(
            f"column {', '.join(sorted(missing))} is missing; the file has "
            f"{', '.join(names[:20])}{', ...' if len(names) > 20 else ''}"
        )
    target = list(names).index(reader.target or names[-1])
    left_out = {target, *(j for j, name in enumerate(names) if name in reader.drop)}
    return target, [j for j in range(len(names)) if j not in left_out]


def numbers(column: Column, missing: str | None = None) -> np.ndarray:
    """The numbers of a column; what is missing is filled in by a rule, if there is one.

    Parameters
    ----------
    column : Column
    missing : {None, "mean", "median"}

    Returns
    -------
    array, shape (n,)

    Raises
    ------
    RefusedError
        Naming column and line.
    """
    found = np.array([_number(value) for value in column.values], dtype=np.float64)
    if not np.isfinite(found).all():
        _refuse_wrong(column, found)
        gaps = np.isnan(found)
        if missing not in ("mean", "median"):
            _refuse_missing(column, gaps)
        if gaps.all():
            raise RefusedError(f"column {column.name!r} has no value at all")
        fill = np.mean if missing == "mean" else np.median
        found[gaps] = fill(found[~gaps])
    return found


def labels(values: Sequence[Any], positive: str) -> np.ndarray:
    """Map the class ``positive`` to +1 and every other class to -1.

    Parameters
    ----------
    values : sequence, length n
        Classes as text or as numbers.
    positive : str
        A number matches by value: "1" is 1.0.

    Returns
    -------
    array, shape (n,)

    Raises
    ------
    RefusedError
        If a value is missing, or the class or all others never occur.
    """
    if any(_is_absent(value) for value in values):
        raise RefusedError("the target has missing values")
    hits = np.array([_same(value, positive) for value in values], dtype=bool)
    if hits.all() or not hits.any():
        found = ", ".join(sorted({str(value) for value in values})[:10])
        raise RefusedError(
            f"target: found the classes {found}, expected {positive!r} and others"
        )
    return np.where(hits, 1.0, -1.0)


# --- one column -----------------------------------------------------------------------


def _target(column: Column, reader: Reader) -> np.ndarray:
    if reader.positive is None:
        return numbers(column)
    gaps = np.array([_is_absent(value) for value in column.values])
    _refuse_missing(column, gaps, f"a class, or {key('missing', 'drop')}")
    return labels(column.values, reader.positive)


def _coded(column: Column, reader: Reader) -> list[np.ndarray]:
    """A column of numbers, or one of 0 and 1 for every value that is listed."""
    listed = reader.categories.get(column.name)
    if listed is None:
        return [numbers(column, reader.missing)]
    known = {
        value: next((k for k, one in enumerate(listed) if _same(value, str(one))), -1)
        for value in dict.fromkeys(column.values)
    }
    found = np.array([known[value] for value in column.values])
    if (found < 0).any():
        at = int(np.argmax(found < 0))
        raise RefusedError(
            f"column {column.name!r}, line {column.lines[at]}: found "
            f"{column.values[at]!r}, expected one of {key('categories')}: "
            f"{', '.join(map(str, listed))}"
        )
    return [(found == k).astype(np.float64) for k in range(len(listed))]


def _complete(records: Records, used: Iterable[int], reader: Reader) -> Records:
    """The records that lack nothing in the columns used."""
    kept = np.ones(len(records.lines), dtype=bool)
    target, *features = used
    for j in features:
        coded = records.names[j] in reader.categories
        kept &= ~_gaps(records.columns[j], text=coded)
    kept &= ~_gaps(records.columns[target], text=reader.positive is not None)
    if not kept.any():
        raise RefusedError(f"{key('missing', 'drop')} leaves no record")
    rows = np.flatnonzero(kept).tolist()
    return replace(
        records,
        columns=[[values[i] for i in rows] for values in records.columns],
        lines=[records.lines[i] for i in rows],
    )


def _gaps(values: Sequence[Any], text: bool) -> np.ndarray:
    is_gap = _is_absent if text else _is_missing
    return np.array([is_gap(value) for value in values])


def _is_absent(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip() in ABSENT
    return value is None or value != value


def _is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    return _is_absent(value)


def _number(value: Any) -> float:
    """A number; NaN for what is missing, infinity for what is no finite number."""
    if _is_missing(value):
        return np.nan
    try:
        # Python reads 1_000 as a thousand; in data it is more likely a slip.
        return np.inf if isinstance(value, str) and "_" in value else float(value)
    except (TypeError, ValueError):
        return np.inf


def _same(value: Any, positive: str) -> bool:
    if str(value).strip() == positive:
        return True
    try:
        return float(value) == float(positive)
    except (TypeError, ValueError):
        return False


def _refuse_wrong(column: Column, found: np.ndarray) -> None:
    wrong = np.flatnonzero(np.isinf(found))
    if wrong.size:
        shown = ", ".join(sorted({str(column.values[int(i)]) for i in wrong})[:5])
        raise RefusedError(
            f"column {column.name!r} is not of numbers: found {shown}, first in line "
            f"{column.lines[int(wrong[0])]}; drop it ({key('drop')}) or list its "
            f"values ({key('categories')})"
        )


def _refuse_missing(
    column: Column,
    gaps: np.ndarray,
    expected: str = "",
) -> None:
    if gaps.any():
        first = int(np.argmax(gaps))
        expected = expected or f"a number, or {key('missing', ', '.join(RULES))}"
        raise RefusedError(
            f"column {column.name!r}, line {column.lines[first]}: a missing value "
            f"({column.values[first] or ''!r}), one of {int(gaps.sum())}; expected "
            f"{expected}"
        )
