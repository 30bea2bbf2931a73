"""Readers: files of one format to arrays X (n, p) and y (n,)."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from scipy import sparse

from dperm.core.experiment.schema import Reader
from dperm.data import records
from dperm.data.arrays import canonical, check_arrays
from dperm.data.errors import RefusedError, key
from dperm.data.records import Arrays, Column, Records, labels

START = 4096  # bytes in which a web page shows itself
MARK = b"\xef\xbb\xbf"  # a byte order mark, which some editors write
WIDEST = 10**8  # features: a slip in one index must not ask for all memory


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
    try:
        with warnings.catch_warnings():
            # numpy only warns of files without data.
            warnings.simplefilter("error", UserWarning)
            X, y = canonical(*FORMATS[reader.format].read(files, reader))
    except RefusedError as error:  # what it quotes may hold line ends
        names = ", ".join(path.name for path in files)
        text = " ".join(str(error).split())
        place = "" if text.startswith(tuple(path.name for path in files)) else names
        raise RefusedError(f"{place}: {text}" if place else text) from error
    # Parsers raise anything at all on damaged files; the reason is kept.
    except Exception as error:
        names = ", ".join(path.name for path in files)
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
    except Exception:  # arff formats its messages with what stands in the file
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


def read_arff(files: Sequence[Path], reader: Reader) -> Arrays:
    """Read an ARFF file, dense or sparse; nominal columns are of numbers or listed."""
    path = _one(files, "arff")
    with open(path, encoding="utf-8-sig") as handle:
        lines, is_sparse = _arff_lines(handle)
        handle.seek(0)
        return (_sparse_arff if is_sparse else _dense_arff)(handle, lines, reader)


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


def _dense_arff(handle: IO[str], lines: list[int], reader: Reader) -> Arrays:
    import arff

    content = arff.load(handle, return_type=arff.DENSE)
    names = [name for name, _ in content["attributes"]]
    columns = list(zip(*content["data"], strict=True))
    return records.arrays(Records(names, columns, lines if columns else []), reader)


def _sparse_arff(handle: IO[str], lines: list[int], reader: Reader) -> Arrays:
    import arff

    content = arff.load(handle, return_type=arff.LOD)
    attributes, rows = content["attributes"], content["data"]
    names = [name for name, _ in attributes]
    target, features = records.columns(names, reader)
    # What a sparse row leaves out is 0, for a nominal column its first category.
    kinds = [kind for _, kind in attributes]
    absent = [0.0 if isinstance(kind, str) else kind[0] for kind in kinds]
    position = {j: k for k, j in enumerate(features)}
    entries = [
        (i, j, value)
        for i, row in enumerate(rows)
        for j, value in (row | _first_categories(row, absent, position)).items()
        if j in position
    ]
    values = np.empty(len(entries))
    for k, (i, j, value) in enumerate(entries):
        (values[k],) = records.numbers(Column(names[j], [value], [lines[i]]))
    where = ([i for i, _, _ in entries], [position[j] for _, j, _ in entries])
    X = sparse.csc_array((values, where), shape=(len(rows), len(features)))
    y = [row.get(target, absent[target]) for row in rows]
    if reader.positive is not None:
        return X, labels(y, reader.positive)
    return X, records.numbers(Column(names[target], y, lines))


def _first_categories(
    row: dict[int, Any], absent: list[Any], wanted: dict[int, int]
) -> dict[int, Any]:
    """Give the left-out nominal features of a sparse row their first category."""
    return {j: absent[j] for j in wanted if absent[j] != 0.0 and j not in row}


def read_csv(files: Sequence[Path], reader: Reader) -> Arrays:
    """Read a comma separated file with a header; the target is by default last.

    ``separator`` is another one, ``header: false`` says that there is none: columns are
    then named 1, 2 and so on. A separator that ends every line is no field.
    """
    path = _one(files, "csv")
    separator = reader.options.get("separator", ",")
    with open(path, encoding="utf-8-sig", newline="") as handle:
        parser = csv.reader(handle, delimiter=separator, strict=True)
        rows = [(parser.line_num, row) for row in parser if row]
    lines, names, body = _named(rows, reader)
    ends = names[-1] == ""
    if ends or all(len(row) == len(names) + 1 and row[-1] == "" for row in body):
        names = names[:-1] if ends else names
        body = [
            row[:-1] if len(row) > len(names) and not row[-1] else row for row in body
        ]
    _check_names(names, separator, reader)
    for line, row in zip(lines, body, strict=True):
        if len(row) != len(names):
            raise RefusedError(
                f"line {line}: expected {len(names)} fields, found {len(row)}"
            )
    return records.arrays(Records(names, list(zip(*body, strict=True)), lines), reader)


Rows = list[tuple[int, list[str]]]


def _named(rows: Rows, reader: Reader) -> tuple[list[int], list[str], list[list[str]]]:
    """Lines of the records, names of the columns, and the records."""
    if not rows:
        raise RefusedError("the file has no rows")
    if reader.options.get("header", True):
        (line, names), *rows = rows
        names = [name.strip() for name in names]
        if all(map(_is_number, names)):
            raise RefusedError(
                f"line {line}: expected the names of the columns, found numbers; "
                f"{key('options.header', 'false')} says that there are no names"
            )
    else:
        names = [str(j) for j, _ in enumerate(rows[0][1], 1)]
    return [line for line, _ in rows], names, [row for _, row in rows]


def _is_number(text: str) -> bool:
    try:
        return float(text) is not None
    except ValueError:
        return False


def _check_names(names: list[str], separator: str, reader: Reader) -> None:
    """Refuse names that cannot tell columns apart."""
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
    """Read LIBSVM text, several parts stacked; ``dense: true`` unpacks the zeros."""
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
    """The file, opened behind its byte order mark."""
    with open(path, "rb") as handle:
        handle.seek(len(MARK) if handle.read(len(MARK)) == MARK else 0)
        yield handle


def _libsvm_fault(files: Sequence[Path]) -> str:
    """File and line of the first thing that is no LIBSVM text; empty if all is."""
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
    features = (
        income,
        age,
        rooms / households,
        bedrooms / households,
        population,
        population / households,
        latitude,
        longitude,
    )
    return np.column_stack(features), value / 100000.0


def read_nips2003(files: Sequence[Path], reader: Reader) -> Arrays:
    """Read pairs of .data and .labels files of the NIPS 2003 challenge, stacked.

    With the option ``n_features`` a line lists the 1-based indices of the features
    that are one; without it, a line holds all values.
    """
    if not files or len(files) % 2:
        raise RefusedError(
            f"nips2003 reads pairs of data and labels, found {len(files)}"
        )
    pairs = list(zip(files[0::2], files[1::2], strict=True))
    n_features = reader.options.get("n_features")
    y = np.concatenate([_nips2003_labels(path) for _, path in pairs])
    if n_features is None:
        return np.vstack([np.loadtxt(path, ndmin=2) for path, _ in pairs]), y
    parts = [_index_lists(path, int(n_features)) for path, _ in pairs]
    return sparse.vstack(parts, format="csc"), y


def _nips2003_labels(path: Path) -> np.ndarray:
    y = np.loadtxt(path, ndmin=1)
    if not np.isin(y, (-1.0, 1.0)).all():
        raise RefusedError(f"{path.name} has labels other than -1 and 1")
    return y


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
                found = ", ".join(content.files)
                raise RefusedError(f"expected the arrays X and y, found {found}")
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
