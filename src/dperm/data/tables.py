"""Tables in text and Parquet files: columns of numbers or text, and arrays of them.

A column is of numbers if every value is one or missing; any other is text. Nothing is
guessed about text or gaps: they are refused by column and line, all in one message,
unless the caller says what they become.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from dperm.data.arrays import MAX_ENTRY, RefusedError
from dperm.names import hint
from dperm.storage.files import unthreaded

SEPARATORS = ",;\t|"
ABSENT = ("", "?")  # no value, in any column
GAP_WORDS = (
    "NA",
    "n/a",
    "#N/A",
    "#NA",
    "<NA>",
    "nan",
    "null",
    "none",
)  # of any case
MISSING = (*ABSENT, *map(str.lower, GAP_WORDS))  # in a column of numbers
RULES = ("mean", "median", "drop")
SAMPLE = 100  # records by which a separator is recognised
# What groups digits in the world's notations: 1,000 1.000 1'000 1 000 (several blanks).
GROUPING = ",.'\u2019 \u00a0\u2009\u202f_"
MOST_FAULTS = 10  # in a message


def parse_table(
    content: bytes,
    separator: str | None = None,
    decimal: str = ".",
    header: bool | None = None,
) -> pd.DataFrame:
    """The table in the content of a file of separated values in UTF-8, or of Parquet.

    The ``separator`` is by default that of comma, semicolon, tab and bar that gives
    each line as many fields, or the commonest of them in the first line; ``decimal`` is
    the decimal mark, ``.`` or ``,``. ``header`` says if the first line has the names of
    the columns, which are called 1, 2 and so on if not. By default it has names, and
    numbers among them are refused.

    Returns columns of numbers (float64) or text, gaps as missing values. The index has
    the line of each record, or its number in a Parquet file.

    Raises RefusedError if it is damaged or its records differ in length.
    """
    if content.startswith(b"PAR1"):
        table = unthreaded(io.BytesIO(content)).rename(columns=str)
        table.index = pd.RangeIndex(1, len(table) + 1, name="record")
        return typed(table, decimal)
    text = content.decode("utf-8-sig")
    return typed(_text_table(text, separator, decimal, header), decimal)


def _text_table(
    text: str, separator: str | None, decimal: str, header: bool | None
) -> pd.DataFrame:
    """Cells of text, by name and line."""
    start = next(
        line for line in io.StringIO(text, newline="") if line.strip()
    )
    is_marked = start.lower().startswith("sep=")  # as Excel writes it
    if separator is None:
        is_ended = is_marked and len(start.rstrip("\r\n")) == 5
        separator = start[4] if is_ended else _separator(text, start, decimal)
    if len(separator) != 1:
        raise RefusedError(
            f"separator: expected one character, found {separator!r}; in quotes "
            "' ' is a blank and '\\t' a tab"
        )
    cells = _cells(text, separator)
    lines = ((cells.line_num, row) for row in cells)
    records = {line: row for line, row in lines if row not in ([], [""])}
    if is_marked:
        del records[min(records)]
    line = min(records)
    p = len(records[line])
    # A separator may end the lines: a column without anything is none.
    while p > 1 and not any(any(row[p - 1 :]) for row in records.values()):
        p -= 1
    names = numbered = [str(j + 1) for j in range(p)]
    if header is not False:
        names = [name.strip() for name in records.pop(line)[:p]]
        _check_names(names, separator, header, f"line {line}")
    for line, row in records.items():
        if not p <= len(row) <= p + 1 or any(row[p:]):
            raise RefusedError(
                f"line {line}: expected {p} fields, found {len(row)}, with "
                f"{separator!r} between them; `separator` is what separates its columns"
            )
    if not records:
        raise RefusedError("the file has no rows")
    rows = [row[:p] for row in records.values()]
    index = pd.Index(records, name="line")
    table = pd.DataFrame(rows, index, dtype=object)
    table.columns = [names[j] or numbered[j] for j in range(p)]
    table.attrs["unnamed"] = [numbered[j] for j in range(p) if not names[j]]
    return table


def _cells(text: str, separator: str) -> Any:
    """A reader of the records of a text."""
    lines = io.StringIO(text, newline="")
    return csv.reader(
        lines, delimiter=separator, skipinitialspace=True, strict=True
    )


def _separator(text: str, start: str, decimal: str) -> str:
    """The separator that gives the first records as many fields, or an empty one more.

    If none does, the commonest in the first line.
    """
    candidates = SEPARATORS.replace(decimal, "")
    bare = re.sub('"[^"]*"', "", start)
    counts = {candidate: bare.count(candidate) for candidate in candidates}
    fitting = [
        mark for mark in candidates if counts[mark] and _fits(text, mark)
    ]
    return max(fitting or candidates, key=counts.__getitem__)


def _fits(text: str, separator: str) -> bool:
    """Whether the first records have as many fields, at least two, or an empty more."""
    try:
        cells = _cells(text, separator)
        rows = [
            row
            for row in itertools.islice(cells, SAMPLE)
            if row not in ([], [""])
        ]
    except csv.Error:
        return False
    shortest = min(map(len, rows))
    return shortest > 1 and all(
        len(row) == shortest or (len(row) == shortest + 1 and not row[-1])
        for row in rows
    )


def _check_names(
    names: list[str], separator: str, header: bool | None, line: str
) -> None:
    """Refuse a first line that does not distinguish columns."""
    if len(names) < 2:
        raise RefusedError(
            f"{line}: expected features and a target, found no {separator!r} in "
            f"{names[0][:80]!r}: `separator` is what separates its columns"
        )
    if header is None and (
        numeric_names := [name for name in names if _is_number(name)]
    ):
        raise RefusedError(
            f"{line}: expected the names of the columns, found {numeric_names[0]}: "
            "`header: false` says that it is a record, `header: true` that it is not"
        )
    if twice := [name for name in names if name and names.count(name) > 1]:
        raise RefusedError(f"{line}: two columns are named {twice[0]!r}")


def _is_number(text: str, decimal: str = ".") -> bool:
    pointed = _pointed(text, decimal)
    try:
        return "_" not in pointed and not np.isnan(float(pointed))
    except ValueError:
        return False


def _pointed(text: str, decimal: str) -> str:
    """A number's text with a point for its decimal mark; of thousands, no number."""
    return (
        text
        if decimal == "."
        else text.replace(".", "_").replace(decimal, ".")
    )


def _grouping(text: str, decimal: str = ".") -> str:
    """The mark between thousands in the text of a number; empty if there is none."""
    marks = re.escape(GROUPING.replace(decimal, ""))
    mark = re.escape(decimal)
    grouped_number = (
        rf"[-+]?\d{{1,3}}([{marks}])\d{{2,3}}(\1\d{{2,3}})*({mark}\d*)?"
    )
    grouped = re.fullmatch(grouped_number, text.strip())
    return grouped[1] if grouped else ""


def typed(table: pd.DataFrame, decimal: str = ".") -> pd.DataFrame:
    """The table with columns of numbers as float64, any other as text of the file.

    ``attrs["decimal"]`` keeps the decimal mark of that text.
    """
    typed_table = table.apply(_typed, decimal=decimal).__finalize__(table)
    typed_table.attrs["decimal"] = decimal
    return typed_table


def _typed(column: pd.Series, decimal: str) -> pd.Series:
    if is_numeric_dtype(column):
        return column.astype("Float64").astype(float)
    column = column.astype(object)
    text = column.where(column.notna(), "").astype(str).str.strip()
    plain = text.where(~text.str.lower().isin(MISSING), "nan")
    plain = plain.map(lambda cell: _pointed(cell, decimal))
    # Python's own parser, whose last bit is right; it reads 1_000, an error in data.
    if not plain.str.contains("_", regex=False).any():
        try:
            return plain.astype(float)
        except ValueError:
            pass
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
    """Features X (n, p) and labels y (n,) of a table, and the names of the p columns.

    ``target`` is the column of labels, by default the last. Of its classes ``positive``
    becomes +1 and all others -1; a number matches by value. Columns of ``drop`` are
    left out. ``missing`` says what becomes of gaps, which are refused by default: the
    ``mean`` or ``median`` of their feature, or ``drop`` for records with any gap. A
    feature in ``categories`` becomes a column of 0 and 1 for each of the listed values.

    Raises RefusedError, in one line with everything in the table that is neither a
    number nor declared.
    """
    listed = categories or {}
    column_names = [*table.columns]
    target = target or str(column_names[-1])
    decimal = table.attrs.get("decimal", ".")
    unnamed = table.attrs.get("unnamed", ())
    if "" in drop:  # as a column without a name is called elsewhere
        drop = [*filter(None, drop), *unnamed]
    if absent := [
        name for name in (target, *drop) if name not in column_names
    ]:
        listing = ", ".join(column_names[:20])
        listing += ", ..." if len(column_names) > 20 else ""
        near = hint(absent[0], column_names)
        raise RefusedError(
            f"column {absent[0]} is missing; there are {listing}{near}"
        )
    table = table.drop(columns=[*drop])
    if missing == "drop":
        table = table.dropna()
    if table.empty or table.shape[1] < 2:
        raise RefusedError(
            "there are no features beside the target, or no records"
        )
    bare = [name for name in unnamed if name not in drop]
    faults = [
        f"column {name} has no name: `drop: [{name}]` leaves it out"
        for name in bare
    ]
    strange = [name for name in listed if name == target or name not in table]
    faults += [f"categories: {name!r} is no feature" for name in strange]
    features: dict[str, np.ndarray] = {}
    for name, column in table.items():
        try:
            if name == target:
                y = labels(column, positive, decimal)
            elif name in listed:
                features |= _coded(column, listed[name], decimal)
            else:
                features[name] = numbers(column, missing, decimal=decimal)
        except RefusedError as error:
            faults.append(str(error))
    if faults:
        remainder = len(faults) - MOST_FAULTS
        listing = "; ".join(faults[:MOST_FAULTS])
        raise RefusedError(
            f"{listing}; and {remainder} more" if remainder > 0 else listing
        )
    return np.column_stack([*features.values()]), y, [*features]


def numbers(
    column: pd.Series,
    missing: str | None = None,
    cure: str = "`drop` it, or list its values under `categories`",
    decimal: str = ".",
) -> np.ndarray:
    """The numbers of a column (n,), gaps filled by mean or median if declared.

    Raises RefusedError for a word, with its ``cure``, for a value whose square
    overflows, and for a gap. The text of words is that of the file, with its
    ``decimal`` mark.
    """
    if not is_numeric_dtype(column):
        wrong = _words(column, decimal)
        cure = _cure(
            column[wrong], decimal, cure, is_rare=bool(wrong.mean() < 0.5)
        )
        _refuse(column, wrong, "a number", cure)
        texts = column.fillna("").astype(str)
        texts = texts.where(~texts.str.lower().isin(MISSING), "nan")
        column = texts.map(lambda text: float(_pointed(text, decimal)))
    floats = column.astype(float)
    largest = f"at most {MAX_ENTRY:g}"
    _refuse(column, floats.abs() > MAX_ENTRY, largest, "its square overflows")
    if missing not in ("mean", "median"):
        _refuse(
            column,
            floats.isna(),
            "one",
            f"`missing` may be {', '.join(RULES)}",
        )
    elif floats.isna().all():
        raise RefusedError(f"column {column.name!r} has no value at all")
    else:
        floats = floats.fillna(
            getattr(np, missing)(floats.dropna().to_numpy())
        )
    return floats.to_numpy()


def _cure(
    words: pd.Series, decimal: str, otherwise: str, is_rare: bool
) -> str:
    """What to do about the words in a column of numbers."""
    texts = words.astype(str)
    mark = "," if decimal == "." else "."
    if texts.str.fullmatch(rf"[-+]?\d*{re.escape(mark)}\d+").all():
        mark_name = {",": "commas", ".": "points"}[mark]
        condition = f"if its {mark_name} are decimal marks"
        return f"`decimal: '{mark}'` {condition}, else take them out"
    marks = {_grouping(text, decimal) for text in texts}
    if "" not in marks:
        mark_names = " and ".join(map(repr, sorted(marks)))
        return f"take out the marks of thousands, {mark_names}"
    if is_rare or texts.nunique() == 1:
        absent = ", ".join(("?", *GAP_WORDS))
        return (
            f"correct the file (no value is empty or {absent}), or {otherwise}"
        )
    return otherwise


def labels(
    column: pd.Series, positive: str | None = None, decimal: str = "."
) -> np.ndarray:
    """Labels (n,) that are numbers; or the class ``positive`` as +1, all others as -1.

    Raises RefusedError for gaps, for a word without ``positive``, and if that class or
    all others never occur.
    """
    cure = "`missing: drop` leaves out such records"
    _refuse(column, column.isna(), "one", cure)
    if positive is None:
        is_text = not is_numeric_dtype(column)
        words = sorted({*column[_words(column, decimal)]}) if is_text else []
        examples = ", ".join(map(str, words[:5]))
        cure = (
            f"`positive` names the class, such as {examples}, that becomes +1"
        )
        return numbers(column, cure=cure, decimal=decimal)
    texts = column.map(lambda label: _as_text(label, decimal))
    hits = texts.isin({_as_text(positive), _as_text(positive, decimal)})
    if hits.all() or not hits.any():
        classes = ", ".join(sorted({*texts})[:10])
        raise RefusedError(
            f"target: found the classes {classes}, expected {positive!r} and others"
        )
    return np.where(hits, 1.0, -1.0)


def _coded(
    column: pd.Series, listed: Sequence[Any], decimal: str = "."
) -> dict[str, np.ndarray]:
    """A column of 0 and 1 for every listed value, by ``column=value``.

    A value that is listed twice, as 1 and 1.0 are, has one column.
    """
    texts = column.map(
        lambda category: _as_text(category, decimal), na_action="ignore"
    )
    different = {_as_text(category): category for category in reversed(listed)}
    indicators = {
        f"{column.name}={category}": texts.isin(
            {spelling, _as_text(category, decimal)}
        )
        for spelling, category in reversed(different.items())
    }
    wrong = ~np.logical_or.reduce([*indicators.values()])
    expected = f"one of {', '.join(map(str, listed))}"
    _refuse(column, wrong, expected, "`categories` lists them")
    return {
        name: is_value.to_numpy(float) for name, is_value in indicators.items()
    }


def _words(column: pd.Series, decimal: str = ".") -> pd.Series:
    """Where a column of text has neither a number nor a gap."""
    text = column.fillna("").astype(str)
    is_number = text.map(lambda cell: _is_number(cell, decimal))
    return ~(text.str.lower().isin(MISSING) | is_number)


def _as_text(value: Any, decimal: str = ".") -> str:
    """A value as text; equal numbers have one text."""
    text = value if isinstance(value, str) else str(value)
    if not _is_number(text, decimal if isinstance(value, str) else "."):
        return text
    pointed = _pointed(text, decimal) if isinstance(value, str) else text
    return repr(float(pointed)).removesuffix(".0")


def _refuse(column: pd.Series, wrong: Any, expected: str, cure: str) -> None:
    """Refuse a column that has wrong values; the text shows the first of them."""
    wrong = np.asarray(wrong, dtype=bool)
    if not wrong.any():
        return
    place = int(np.argmax(wrong))
    count = int(wrong.sum())
    wrong_cell = column.iloc[place]
    where = column.index[place]
    wrong_text = "no value" if pd.isna(wrong_cell) else repr(wrong_cell)
    if isinstance(wrong_cell, float) and wrong_text != "no value":
        wrong_text = f"{wrong_cell:g}"
    raise RefusedError(
        f"column {column.name!r}, {column.index.name or 'record'} {where}: found "
        f"{wrong_text}, expected {expected} ({count} of {len(column)} values): {cure}"
    )
