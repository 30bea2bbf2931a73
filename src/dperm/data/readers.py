"""Readers of files in one format, which return arrays X (n, p) and y (n,).

Nothing is guessed: a missing value or a category is refused with its line and column,
unless the reader declares how to replace it.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import pandas as pd
from scipy import sparse

from dperm.core.experiment.schema import Reader
from dperm.data.arrays import (
    LARGEST,
    Arrays,
    RefusedError,
    canonical,
    check_arrays,
)

START = 4096  # bytes in which a web page is recognised
MARK = b"\xef\xbb\xbf"  # byte order mark, which some editors write
WIDEST = 10**8  # most features: a wrong index must not allocate all memory
ABSENT = frozenset(("", "?"))  # no value, in any column
MISSING = ABSENT | {"na", "n/a", "nan", "null", "none"}  # no value, in a numeric column
RULES = ("mean", "median", "drop")


@dataclass(frozen=True)
class Format:
    """A reader and the options it knows."""

    read: Callable[[Sequence[Path], Reader], Arrays]
    options: dict[str, Any] = field(default_factory=dict)  # name: type


def read_files(files: Sequence[Path], reader: Reader) -> Arrays:
    """Read the files of a data set into canonical, checked arrays.

    Parameters
    ----------
    files : sequence of Path
        In the order of the configuration.
    reader : Reader
        Format, target column and options.

    Returns
    -------
    X : ndarray or scipy CSC array, shape (n, p)
    y : ndarray, shape (n,)

    Raises
    ------
    RefusedError
        If a file is a web page, damaged, of another format or not finite.
    """
    for path in files:
        _check_start(path)
    names = ", ".join(path.name for path in files)
    try:
        with warnings.catch_warnings():
            # numpy only warns about files without data.
            warnings.simplefilter("error", UserWarning)
            X, y = canonical(*FORMATS[reader.format].read(files, reader))
    except RefusedError as error:  # a quotation may hold line ends
        text = " ".join(str(error).split())
        if not text.startswith(tuple(path.name for path in files)):
            text = f"{names}: {text}"
        raise RefusedError(text) from error
    # Parsers raise anything on damaged files; the reason is kept.
    except Exception as error:
        if reader.format == "arrays" and not names.endswith((".npy", ".npz")):
            raise RefusedError(
                f"{names} is no .npz: expected reader: {{format: csv, target: ...}} "
                "or another format"
            ) from error
        raise RefusedError(
            f"{names} cannot be read as {reader.format}: {type(error).__name__}: "
            f"{_text(error)}"
        ) from error
    check_arrays(X, y)
    return X, y


def _text(error: Exception) -> str:
    try:
        return " ".join(str(error).split())[:300]
    except Exception:  # arff formats its messages with the content of the file
        return "no message"


def _check_start(path: Path) -> None:
    with open(path, "rb") as handle:
        start = handle.read(START).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not start:
        raise RefusedError(f"{path.name} is empty")
    if start.startswith((b"<!doctype", b"<html", b"<head", b"<?xml")):
        raise RefusedError(f"{path.name} is a web page (HTML or XML), not data")


def _one(files: Sequence[Path], format_: str) -> Path:
    if len(files) != 1:
        raise RefusedError(f"{format_} reads one file, found {len(files)}")
    return files[0]


# --- names of a reader's keys in messages ---------------------------------------------


def _in_yaml(name: str, value: str = "") -> str:
    """``reader.missing: mean``, or ``reader.options: {header: false}``."""
    first, _, option = name.partition(".")
    if value and option:
        return f"reader.{first}: {{{option}: {value}}}"
    return f"reader.{name}: {value}" if value else f"reader.{name}"


_NAMING: ContextVar[Callable[..., str]] = ContextVar("naming", default=_in_yaml)


def key(name: str, value: str = "") -> str:
    """Name of a reader's key for a message, with an optional value."""
    return _NAMING.get()(name, value)


@contextmanager
def naming(names: Callable[..., str]) -> Iterator[None]:
    """Let messages name keys by ``names(name, value="")`` instead of as in YAML."""
    token = _NAMING.set(names)
    try:
        yield
    finally:
        _NAMING.reset(token)


# --- tables of text: a column per feature, an index of the lines of records -----------


def _arrays(table: pd.DataFrame, reader: Reader) -> Arrays:
    """Arrays of a table, as the reader declares; k listed categories give k columns."""
    if table.empty:
        raise RefusedError("the file has no rows")
    X, y = _split(table, reader)
    if unknown := sorted({*reader.categories} - {*X}):
        raise RefusedError(f"{key('categories')}: {unknown[0]!r} is no feature")
    if X.shape[1] == 0:
        raise RefusedError("the file has no features beside the target")
    if reader.missing == "drop":
        gaps = y.map(_is_missing if reader.positive is None else _is_absent)
        for name in X:
            gaps |= X[name].map(
                _is_absent if name in reader.categories else _is_missing
            )
        if gaps.all():
            raise RefusedError(f"{key('missing', 'drop')} leaves no record")
        X, y = X[~gaps], y[~gaps]
    columns = [part for name in X for part in _coded(X[name], reader)]
    if reader.positive is None:
        return np.column_stack(columns), _numbers(y)
    _refuse(y, y.map(_is_absent), f"a class, or {key('missing', 'drop')}")
    return np.column_stack(columns), labels(list(y), reader.positive)


def _split(table: pd.DataFrame, reader: Reader) -> tuple[pd.DataFrame, pd.Series]:
    """Features and target, by default the last column, without the dropped columns."""
    names = [*map(str, table.columns)]
    target = reader.target or names[-1]
    if missing := sorted({target, *reader.drop} - {*names}):
        raise RefusedError(
            f"column {', '.join(missing)} is missing; the file has "
            f"{', '.join(names[:20])}{', ...' if len(names) > 20 else ''}"
        )
    return table.drop(columns=[target, *reader.drop]), table[target]


def _numbers(column: pd.Series, missing: str | None = None) -> np.ndarray:
    """The numbers of a column (n,), gaps filled by mean or median if declared."""
    values = np.array([_number(value) for value in column], dtype=np.float64)
    if (np.abs(values) <= LARGEST).all():
        return values
    gaps = np.isnan(values)
    wrong = column[~gaps & ~column.map(_is_number)]
    if len(wrong):
        quoted = ", ".join(sorted(set(map(str, wrong)))[:5])
        raise RefusedError(
            f"column {column.name!r} is not of numbers: found {quoted}, first in line "
            f"{wrong.index[0]}; drop it ({key('drop')}) or list its "
            f"values ({key('categories')})"
        )
    _refuse(
        column,
        np.abs(values) > LARGEST,
        f"numbers of at most {LARGEST:g}, whose squares do not overflow",
        str,
    )
    if missing not in ("mean", "median"):
        _refuse(column, gaps, f"a number, or {key('missing', ', '.join(RULES))}")
    if gaps.all():
        raise RefusedError(f"column {column.name!r} has no value at all")
    fill = np.mean if missing == "mean" else np.median
    values[gaps] = fill(values[~gaps])
    return values


def _coded(column: pd.Series, reader: Reader) -> list[np.ndarray]:
    """The numeric column, or one column of 0 and 1 for every listed value."""
    listed = reader.categories.get(str(column.name))
    if listed is None:
        return [_numbers(column, reader.missing)]
    named = [*map(str, listed)]
    codes = np.array([[_same(value, one) for value in column] for one in named])
    first = codes & (np.cumsum(codes, axis=0) == 1)  # of two names of one number
    what = f"one of {key('categories')}: {', '.join(named)}"
    _refuse(column, ~codes.any(axis=0), what)
    return [*first.astype(np.float64)]


def _refuse(
    column: pd.Series, wrong: Any, expected: str, show: Callable[[Any], str] = repr
) -> None:
    """Refuse a column, if it has wrong values; the text shows the first of them."""
    wrong = np.asarray(wrong, dtype=bool)
    if wrong.any():
        first = int(np.argmax(wrong))
        value, line = column.iloc[first], column.index[first]
        found = f"found {show(value)},"
        if _is_missing(value):
            found = f"a missing value ({value or ''!r}), one of {int(wrong.sum())};"
        raise RefusedError(
            f"column {column.name!r}, line {line}: {found} expected {expected}"
        )


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
        If a value is missing, or if either the class or all others never occur.
    """
    if any(map(_is_absent, values)):
        raise RefusedError("the target has missing values")
    hits = np.array([_same(value, positive) for value in values], dtype=bool)
    if hits.all() or not hits.any():
        classes = ", ".join(sorted({str(value) for value in values})[:10])
        raise RefusedError(
            f"target: found the classes {classes}, expected {positive!r} and others"
        )
    return np.where(hits, 1.0, -1.0)


def _is_absent(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip() in ABSENT
    return value is None or value != value


def _is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    return _is_absent(value)


def _number(value: Any) -> float:
    """A number; NaN if missing, infinity if not a finite number."""
    if _is_missing(value):
        return np.nan
    return float(value) if _is_number(value) else np.inf


def _is_number(value: Any) -> bool:
    """Whether a value is a number; ``1_000``, which Python reads, is rather a slip."""
    try:
        return "_" not in str(value) and float(value) is not None
    except (TypeError, ValueError):
        return False


def _same(value: Any, name: str) -> bool:
    """Whether a value has this name, or is the same number."""
    if str(value).strip() == name:
        return True
    try:
        return float(value) == float(name)
    except (TypeError, ValueError):
        return False


# --- formats --------------------------------------------------------------------------


def read_arff(files: Sequence[Path], reader: Reader) -> Arrays:
    """Read an ARFF file, dense or sparse; nominal columns are numeric or listed."""
    import arff

    with open(_one(files, "arff"), encoding="utf-8-sig") as handle:
        lines, is_sparse = _arff_lines(handle)
        handle.seek(0)
        content = arff.load(handle, return_type=arff.LOD if is_sparse else arff.DENSE)
    if is_sparse:
        return _sparse_arff(content["attributes"], content["data"], lines, reader)
    names = [name for name, _ in content["attributes"]]
    return _arrays(_table(names, content["data"], lines), reader)


def _table(names: Sequence[str], rows: Sequence[Any], lines: Sequence[int]) -> Any:
    """A table of text, by the lines of its records."""
    index = lines if len(rows) else []
    return pd.DataFrame(rows, index=index, columns=list(names), dtype=object)


def _arff_lines(handle: IO[str]) -> tuple[list[int], bool]:
    """The line of every record, and whether records are sparse."""
    lines: list[int] = []
    in_data = is_sparse = False
    for number, line in enumerate(handle, 1):
        text = line.strip()
        if in_data and text and not text.startswith("%"):
            is_sparse = is_sparse or (not lines and text.startswith("{"))
            lines.append(number)
        in_data = in_data or text.lower().startswith("@data")
    return lines, is_sparse


def _sparse_arff(
    attributes: Sequence[tuple[str, Any]],
    rows: Sequence[dict[int, Any]],
    lines: Sequence[int],
    reader: Reader,
) -> Arrays:
    names = [name for name, _ in attributes]
    # A sparse row omits zeros, and the first category of a nominal column.
    absent = [0.0 if isinstance(kind, str) else kind[0] for _, kind in attributes]
    X, y = _split(pd.DataFrame([absent], columns=names, dtype=object), reader)
    target = names.index(str(y.name))
    position = {names.index(name): k for k, name in enumerate(X)}
    filled = {j: absent[j] for j in position if absent[j] != 0.0}
    entries = pd.DataFrame(
        [
            (line, i, j, value)
            for i, (line, row) in enumerate(zip(lines, rows, strict=True))
            for j, value in (filled | row).items()
            if j != target and j in position
        ],
        columns=["line", "i", "j", "value"],
    ).astype({"value": object})
    values = np.array([_number(value) for value in entries["value"]], dtype=np.float64)
    for line, _, j, value in entries[~np.isfinite(values)].to_numpy()[:1]:
        _numbers(pd.Series([value], [line], name=names[j]))  # raises
    where = (entries["i"], entries["j"].map(position))
    X = sparse.csc_array((values, where), shape=(len(rows), len(position)))
    found = pd.Series([row.get(target, absent[target]) for row in rows], lines)
    found.name = names[target]
    if reader.positive is not None:
        return X, labels(list(found), reader.positive)
    return X, _numbers(found)


def read_csv(files: Sequence[Path], reader: Reader) -> Arrays:
    """Read a comma separated file with a header; the target is by default last.

    ``separator`` sets another separator. With ``header: false`` there is no header, and
    columns are named 1, 2 and so on. A separator at the end of every line is no field.
    """
    separator = reader.options.get("separator", ",")
    with open(_one(files, "csv"), encoding="utf-8-sig", newline="") as handle:
        parser = csv.reader(handle, delimiter=separator, strict=True)
        rows = [(parser.line_num, row) for row in parser if row]
    if not rows:
        raise RefusedError("the file has no rows")
    names = [str(j) for j, _ in enumerate(rows[0][1], 1)]
    if reader.options.get("header", True):
        (line, row), *rows = rows
        names = [name.strip() for name in row]
        if all(map(_is_number, names)):
            raise RefusedError(
                f"line {line}: expected the names of the columns, found numbers; "
                f"{key('options.header', 'false')} says that there are no names"
            )
    p = len(names)
    if names[-1] == "":
        names, p = names[:-1], p - 1
        rows = [(line, _without_end(row, p)) for line, row in rows]
    elif all(len(row) == p + 1 and row[-1] == "" for _, row in rows):
        rows = [(line, row[:-1]) for line, row in rows]
    _check_names(names, separator, reader)
    for line, row in rows:
        if len(row) != p:
            raise RefusedError(f"line {line}: expected {p} fields, found {len(row)}")
    lines = [line for line, _ in rows]
    return _arrays(_table(names, [row for _, row in rows], lines), reader)


def _without_end(row: list[str], p: int) -> list[str]:
    """A row without its last field, if that is empty and exceeds p fields."""
    return row[:-1] if len(row) > p and not row[-1] else row


def _check_names(names: list[str], separator: str, reader: Reader) -> None:
    """Refuse names that do not distinguish columns."""
    if len(names) < 2:
        raise RefusedError(
            f"line 1: expected features and a target, separated by {separator!r} "
            f"({key('options.separator')}), found {', '.join(names)[:80]!r}"
        )
    for j, name in enumerate(names, 1):
        if not name and "" not in reader.drop:
            left_out = key("drop", "['']")
            raise RefusedError(
                f"line 1: column {j} has no name; {left_out} leaves it out"
            )
        if name and names.index(name) != j - 1:
            raise RefusedError(f"line 1: two columns are named {name!r}")


def read_libsvm(files: Sequence[Path], reader: Reader) -> Arrays:
    """Read LIBSVM text, several parts stacked; ``dense: true`` makes it dense."""
    from sklearn.datasets import load_svmlight_files

    options = dict(reader.options)
    dense = options.pop("dense", False)
    with ExitStack() as stack:
        handles = [stack.enter_context(_without_mark(path)) for path in files]
        try:
            loaded = load_svmlight_files(handles, **options)
        except ValueError as error:
            raise RefusedError(_libsvm_fault(files) or _text(error)) from error
    if loaded[0].shape[1] > WIDEST:
        raise RefusedError(
            f"found the feature {loaded[0].shape[1]}, expected at most {WIDEST}"
        )
    X = sparse.vstack(loaded[0::2], format="csc")
    y = np.concatenate(loaded[1::2])
    if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        raise RefusedError(_libsvm_fault(files) or "values that are not finite")
    if reader.positive is not None:
        y = labels(y.tolist(), reader.positive)
    return (X.toarray() if dense else X), y


@contextmanager
def _without_mark(path: Path) -> Iterator[IO[bytes]]:
    """The file, opened after its byte order mark."""
    with open(path, "rb") as handle:
        handle.seek(len(MARK) if handle.read(len(MARK)) == MARK else 0)
        yield handle


def _libsvm_fault(files: Sequence[Path]) -> str:
    """File and line of the first error in LIBSVM text; empty if there is none."""
    for path in files:
        with _without_mark(path) as handle:
            for number, line in enumerate(handle, 1):
                what = _wrong_in(line.partition(b"#")[0].decode(errors="replace"))
                if what:
                    return f"{path.name}, line {number}: {what}"
    return ""


def _wrong_in(line: str) -> str:
    label, *entries = line.split() or ["0"]
    if not _is_finite(label):
        return f"expected a number as label, found {label[:40]!r}"
    last = -1
    for entry in entries:
        index, colon, value = entry.partition(":")
        if index == "qid":
            continue
        if not (colon and index.isdecimal() and _is_finite(value)):
            return f"expected index:value, found {entry[:40]!r}"
        if int(index) <= last:
            return f"expected indices that rise, found {index} after {last}"
        last = int(index)
    return ""


def _is_finite(text: str) -> bool:
    return _is_number(text) and bool(np.isfinite(float(text)))


def read_cal_housing(files: Sequence[Path], reader: Reader) -> Arrays:
    """Read StatLib's cal_housing.data into scikit-learn's eight features and target.

    The features are MedInc, HouseAge, AveRooms, AveBedrms, Population, AveOccup,
    Latitude and Longitude, the target is the median value in 100 000 dollars.
    """
    table = np.loadtxt(_one(files, "cal_housing"), delimiter=",", ndmin=2)
    if table.shape[1] != 9:
        raise RefusedError(f"cal_housing has 9 columns, found {table.shape[1]}")
    longitude, latitude, age, rooms, bedrooms, population = table.T[:6]
    households, income, value = table.T[6:]
    if not (households > 0).all():
        raise RefusedError("cal_housing: a block without households")
    features = [income, age, rooms / households, bedrooms / households]
    features += [population, population / households, latitude, longitude]
    return np.column_stack(features), value / 100000.0


def read_nips2003(files: Sequence[Path], reader: Reader) -> Arrays:
    """Read pairs of .data and .labels files of the NIPS 2003 challenge, stacked.

    With the option ``n_features``, a line lists the 1-based indices of the features
    that are 1; without it, a line holds all values.
    """
    if not files or len(files) % 2:
        raise RefusedError(
            f"nips2003 reads pairs of data and labels, found {len(files)}"
        )
    parts = []
    for path in files[1::2]:
        parts.append(np.loadtxt(path, ndmin=1))
        if not np.isin(parts[-1], (-1.0, 1.0)).all():
            raise RefusedError(f"{path.name} has labels other than -1 and 1")
    y, n_features = np.concatenate(parts), reader.options.get("n_features")
    if n_features is None:
        return np.vstack([np.loadtxt(path, ndmin=2) for path in files[0::2]]), y
    lists = [_index_lists(path, int(n_features)) for path in files[0::2]]
    return sparse.vstack(lists, format="csc"), y


def _index_lists(path: Path, n_features: int) -> Any:
    lines = path.read_text(encoding="ascii").splitlines()
    rows = [np.array(line.split(), dtype=np.int64) for line in lines]
    indices = np.concatenate(rows) - 1
    if indices.size and not 0 <= indices.min() <= indices.max() < n_features:
        raise RefusedError(f"{path.name} has an index outside 1 to {n_features}")
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    X = sparse.csr_array(
        (np.ones(indices.size), indices, indptr), shape=(len(rows), n_features)
    )
    X.sum_duplicates()
    if X.nnz != indices.size:
        raise RefusedError(f"{path.name} names a feature twice in one line")
    return X


def read_arrays(files: Sequence[Path], reader: Reader) -> Arrays:
    """Read one .npz file with X and y, or X.npy and y.npy."""
    if len(files) == 1:
        with np.load(files[0], allow_pickle=False) as content:
            if {"X", "y"} - set(content.files):
                names = ", ".join(content.files)
                raise RefusedError(f"expected the arrays X and y, found {names}")
            return content["X"], content["y"]
    if len(files) != 2:
        raise RefusedError(
            f"arrays reads one .npz or two .npy files, found {len(files)}"
        )
    X, y = (np.load(path, allow_pickle=False) for path in files)
    return X, y


FORMATS = {
    "arff": Format(read_arff),
    "csv": Format(read_csv, {"separator": str, "header": bool}),
    "libsvm": Format(
        read_libsvm,
        {"n_features": int, "zero_based": bool | Literal["auto"], "dense": bool},
    ),
    "cal_housing": Format(read_cal_housing),
    "nips2003": Format(read_nips2003, {"n_features": int}),
    "arrays": Format(read_arrays),
}
