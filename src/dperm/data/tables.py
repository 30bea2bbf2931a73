"""Tables in CSV and Parquet files: columns of numbers or text, and arrays of them.

A column is of numbers if every value is one or missing; any other is text. Nothing is
guessed about text or gaps: they are refused by column and line, all in one message,
unless the caller says what they become.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from dperm.core.experiment.files import unthreaded
from dperm.core.names import hint
from dperm.data.arrays import LARGEST, RefusedError

SEPARATORS = ",;\t|"
ABSENT = ("", "?")  # no value, in any column
MISSING = (*ABSENT, "na", "n/a", "nan", "null", "none")  # in a column of numbers
RULES = ("mean", "median", "drop")
WEB = (b"<!doctype", b"<html", b"<head", b"<?xml")
MOST_FAULTS = 10  # in a message


def read_table(
    path: Path | str,
    *,
    separator: str | None = None,
    decimal: str = ".",
    header: bool | None = None,
) -> pd.DataFrame:
    """Read a table of separated values in UTF-8, or a Parquet file.

    Parameters
    ----------
    path : Path
        Its name tells Parquet (``.parquet``) and compression (``.gz``, ``.bz2``,
        ``.xz``, ``.zip``).
    separator : str, optional
        By default, the commonest of comma, semicolon, tab and bar in the first line.
    decimal : str
        The decimal mark, ``.`` or ``,``.
    header : bool, optional
        Whether the first line has the names of columns; without names they are called
        1, 2 and so on. By default it has names, and numbers among them are refused.

    Returns
    -------
    DataFrame
        Columns of numbers (float64) or text, gaps as missing values. The index has the
        line of each record, or its number in a Parquet file.

    Raises
    ------
    RefusedError
        In one line that names the file, if it is damaged or its records differ in
        length.
    """
    path = Path(path)
    with refusing(path.name, "a table"):
        check_start(path)
        if path.suffix.lower() in (".parquet", ".pq"):
            table = unthreaded(path).reset_index(drop=True)
            table.columns = table.columns.map(str)
            table.index = pd.RangeIndex(1, len(table) + 1, name="record")
        else:
            table = _text_table(path, separator, decimal, header)
        return typed(table, decimal)


@contextmanager
def refusing(names: str, kind: str) -> Iterator[None]:
    """Turn what a parser raises into a ``RefusedError`` of one line with names.

    Errors of the system, such as a full disk, pass.
    """
    try:
        yield
    except RefusedError as error:  # a quotation may hold line ends
        text = " ".join(str(error).split())
        is_named = any(text.startswith(name) for name in names.split(", "))
        raise RefusedError(text if is_named else f"{names}: {text}") from error
    except UnicodeError as error:
        raise RefusedError(f"{names} is not text in UTF-8: save it as UTF-8") from error
    except Exception as error:  # parsers raise anything on damaged files
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's: not permitted, a full disk
        try:
            text = " ".join(str(error).split())[:300]
        except Exception:  # arff formats its messages with the content of the file
            text = "no message"
        reason = f"{type(error).__name__}: {text}"
        raise RefusedError(f"{names} cannot be read as {kind}: {reason}") from error


def check_start(path: Path) -> None:
    """Refuse an empty file, and a web page in place of data."""
    with open(path, "rb") as handle:
        start = handle.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not start:
        raise RefusedError(f"{path.name} is empty")
    if start.startswith(WEB):
        raise RefusedError(f"{path.name} is a web page (HTML or XML), not data")


# --- text -----------------------------------------------------------------------------


def _text_table(
    path: Path, separator: str | None, decimal: str, header: bool | None
) -> pd.DataFrame:
    """Cells of text, by name and line; columns without anything at the end are none."""
    read = partial(
        pd.read_csv,
        path,
        header=None,
        dtype=object,
        keep_default_na=False,  # short records alone have missing values
        encoding="utf-8-sig",
        engine="python",
    )
    line = str(read(sep="\x1f", quoting=csv.QUOTE_NONE, nrows=1).iat[0, 0])
    skipped = 0
    if line.lower().startswith("sep="):  # as Excel writes it
        separator, skipped = separator or line[4:5], 1
    if separator is None:
        bare = re.sub('"[^"]*"', "", line)
        separator = max(SEPARATORS.replace(decimal, ""), key=bare.count)
    read = partial(read, sep=separator, skipinitialspace=True, skiprows=skipped)
    p = read(nrows=1).shape[1]
    try:
        table = read(names=range(p + 1), skip_blank_lines=False)
    except pd.errors.ParserError as error:
        ragged = re.search(r"fields in line (\d+), saw (\d+)", str(error))
        if ragged is None:
            raise
        raise _ragged(ragged[1], p, ragged[2]) from error
    table.index = pd.RangeIndex(1 + skipped, 1 + skipped + len(table), name="line")
    table = table[table[0].notna()]  # others are empty lines
    used = ~(table.isna() | (table == "")).all()
    table = table.loc[:, : used[used].index[-1]]
    fields = table.notna().sum(axis=1)
    if (fields != fields.iloc[0]).any():
        line_ = (fields != fields.iloc[0]).idxmax()
        raise _ragged(line_, fields.iloc[0], fields[line_])
    names = [str(j + 1) for j in table]
    given = names if header is False else [str(name).strip() for name in table.iloc[0]]
    if header is not False:
        _check_names(given, separator, header, f"line {table.index[0]}")
        table = table.iloc[1:]
    if table.empty:
        raise RefusedError("the file has no rows")
    unnamed = [number for name, number in zip(given, names, strict=True) if not name]
    table.columns = [name or number for name, number in zip(given, names, strict=True)]
    table.attrs["unnamed"] = unnamed
    return table


def _ragged(line: Any, expected: Any, found: Any) -> RefusedError:
    return RefusedError(f"line {line}: expected {expected} fields, found {found}")


def _check_names(
    names: list[str], separator: str, header: bool | None, line: str
) -> None:
    """Refuse a first line that does not distinguish columns."""
    if len(names) < 2:
        raise RefusedError(
            f"{line}: expected features and a target, found no {separator!r} in "
            f"{names[0][:80]!r}: `separator` is what separates its columns"
        )
    if header is None and (numbers := [name for name in names if _is_number(name)]):
        raise RefusedError(
            f"{line}: expected the names of the columns, found {numbers[0]}: "
            "`header: false` says that it is a record, `header: true` that it is not"
        )
    for j, name in enumerate(names):
        if name and name in names[:j]:
            raise RefusedError(f"{line}: two columns are named {name!r}")


def _is_number(text: str) -> bool:
    try:
        return "_" not in text and float(text) == float(text)
    except ValueError:
        return False


def typed(table: pd.DataFrame, decimal: str = ".") -> pd.DataFrame:
    """The table with columns of numbers as float64, any other as text."""
    made = {name: _typed(column, decimal) for name, column in table.items()}
    return pd.DataFrame(made, index=table.index).__finalize__(table)


def _typed(column: pd.Series, decimal: str) -> pd.Series:
    if is_numeric_dtype(column):
        return column.astype("Float64").astype(float)
    text = column.where(column.notna(), "").astype(str).str.strip()
    plain = text.where(~text.str.lower().isin(MISSING), "nan")
    if decimal != ".":  # a point would be one of thousands
        plain = plain.str.replace(".", "_").str.replace(decimal, ".")
    # Python's own parser, whose last bit is right; it reads 1_000, an error in data.
    if not plain.str.contains("_", regex=False).any():
        try:
            return plain.astype(float)
        except ValueError:
            pass
    if decimal != ".":
        text = text.where(~plain.map(_is_number), plain)
    return text.where(~text.isin(ABSENT), None)


# --- arrays ---------------------------------------------------------------------------


def table_arrays(
    table: pd.DataFrame,
    target: str | None = None,
    *,
    positive: str | None = None,
    drop: Sequence[str] = (),
    missing: str | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Features and labels of a table of ``read_table``.

    Parameters
    ----------
    target : str, optional
        The column of labels, by default the last one.
    positive : str, optional
        The class that becomes +1, all others -1. A number matches by value.
    drop : sequence of str
        Columns that are left out.
    missing : str, optional
        What becomes of gaps: the ``mean`` or ``median`` of their feature, or ``drop``
        for records with any gap. By default they are refused.
    categories : mapping, optional
        For a feature its values, of which each becomes a column of 0 and 1.

    Returns
    -------
    X : array, shape (n, p)
    y : array, shape (n,)
    names : list of str
        Of the p columns.

    Raises
    ------
    RefusedError
        In one line, with everything in the table that is neither a number nor declared.
    """
    categories = categories or {}
    target = target or str(table.columns[-1])
    held = [*table.columns]
    if lost := [name for name in (target, *drop) if name not in held]:
        some = ", ".join(held[:20]) + (", ..." if len(held) > 20 else "")
        near = hint(lost[0], held)
        raise RefusedError(f"column {lost[0]} is missing; there are {some}{near}")
    unnamed = [name for name in table.attrs.get("unnamed", ()) if name not in drop]
    table = table.drop(columns=[*drop])
    if missing == "drop":
        table = table[~table.isna().any(axis=1)]
        if table.empty:
            raise RefusedError("`missing: drop` leaves no record")
    X, y = table.drop(columns=[target]), table[target]
    if X.empty:
        raise RefusedError("there are no features beside the target, or no rows")
    faults = [f"column {j} has no name: `drop: [{j}]` leaves it out" for j in unnamed]
    faults += [
        f"categories: {name!r} is no feature" for name in categories if name not in X
    ]
    columns: dict[str, np.ndarray] = {}
    for name, column in X.items():
        try:
            if name not in categories:
                columns[str(name)] = numbers(column, missing)
            else:
                columns |= _coded(column, categories[str(name)])
        except RefusedError as error:
            faults.append(str(error))
    try:
        y = _target(y) if positive is None else labels(y, positive)
    except RefusedError as error:
        faults.append(str(error))
    if faults:
        more = len(faults) - MOST_FAULTS
        some = "; ".join(faults[:MOST_FAULTS])
        raise RefusedError(f"{some}; and {more} more" if more > 0 else some)
    return np.column_stack([*columns.values()]), y, [*columns]


def numbers(column: pd.Series, missing: str | None = None) -> np.ndarray:
    """The numbers of a column (n,), gaps filled by mean or median if declared."""
    if not is_numeric_dtype(column):
        wrong = _words(column)
        cure = "`drop` it, or list its values under `categories`"
        if column[wrong].str.fullmatch(r"[-+]?\d*,\d+").all():
            cure = "`decimal: ','` reads a comma as decimal mark"
        elif wrong.mean() < 0.5:
            cure = "correct the file, or `drop` the column"
        _refuse(column, wrong, "a number", cure)
    values = column.to_numpy(float, copy=True)
    largest = f"at most {LARGEST:g}"
    _refuse(column, np.abs(values) > LARGEST, largest, "its square overflows")
    gaps = np.isnan(values)
    if missing not in ("mean", "median"):
        _refuse(column, gaps, "one", f"`missing` may be {', '.join(RULES)}")
        return values
    if gaps.all():
        raise RefusedError(f"column {column.name!r} has no value at all")
    values[gaps] = getattr(np, missing)(values[~gaps])
    return values


def _target(column: pd.Series) -> np.ndarray:
    """Labels that are numbers, shape (n,)."""
    if not is_numeric_dtype(column):
        wrong = _words(column)
        words = ", ".join(sorted(column[wrong].unique())[:5])
        cure = f"`positive` names the class, such as {words}, that becomes +1"
        _refuse(column, wrong, "a number", cure)
    _refuse_gaps(column)
    return numbers(column)


def _words(column: pd.Series) -> pd.Series:
    """Where a column of text has neither a number nor a gap."""
    text = column.fillna("").astype(str)
    return ~(text.str.lower().isin(MISSING) | text.map(_is_number))


def labels(column: pd.Series, positive: str) -> np.ndarray:
    """The class ``positive`` as +1 and every other as -1, shape (n,).

    Raises RefusedError for gaps, and if that class or all others never occur.
    """
    _refuse_gaps(column)
    hits = _is(column, positive)
    if hits.all() or not hits.any():
        shown = [f"{value:g}" if isinstance(value, float) else str(value)
                 for value in column.unique()]  # fmt: skip
        classes = ", ".join(sorted(shown)[:10])
        raise RefusedError(
            f"target: found the classes {classes}, expected {positive!r} and others"
        )
    return np.where(hits, 1.0, -1.0)


def _coded(column: pd.Series, listed: Sequence[Any]) -> dict[str, np.ndarray]:
    """A column of 0 and 1 for every listed value, by ``column=value``."""
    codes = np.array([_is(column, str(value)) for value in listed])
    expected = f"one of {', '.join(map(str, listed))}"
    _refuse(column, ~codes.any(axis=0), expected, "`categories` lists them")
    first = codes & (np.cumsum(codes, axis=0) == 1)  # of two names of one number
    return {
        f"{column.name}={value}": code.astype(float)
        for value, code in zip(listed, first, strict=True)
    }


def _is(column: pd.Series, word: str) -> np.ndarray:
    """Where a column has a word, or the same number."""
    number = float(word) if _is_number(word) else np.nan
    values = pd.to_numeric(column, errors="coerce")
    return ((column.astype(str) == word) | (values == number)).to_numpy(bool)


def _refuse_gaps(column: pd.Series) -> None:
    cure = "`missing: drop` leaves out such records"
    _refuse(column, column.isna(), "one", cure)


def _refuse(column: pd.Series, wrong: Any, expected: str, cure: str) -> None:
    """Refuse a column that has wrong values; the text shows the first of them."""
    wrong = np.asarray(wrong, dtype=bool)
    if not wrong.any():
        return
    first, count = int(np.argmax(wrong)), int(wrong.sum())
    value, where = column.iloc[first], column.index[first]
    if pd.isna(value):
        found = "no value"
    else:
        found = f"{value:g}" if isinstance(value, float) else repr(value)
    raise RefusedError(
        f"column {column.name!r}, {column.index.name or 'record'} {where}: found "
        f"{found}, expected {expected} ({count} of {len(column)} values): {cure}"
    )
