"""Readers: files of one format to arrays X (n, p) and y (n,)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from dperm.data.arrays import canonical, check_arrays
from dperm.data.errors import RefusedError
from dperm.schema import Reader

Arrays = tuple[Any, np.ndarray]
START = 4096  # bytes in which a web page shows itself


@dataclass(frozen=True)
class Format:
    """A reader and the options it knows."""

    read: Callable[[Sequence[Path], Reader], Arrays]
    options: tuple[str, ...] = ()


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
        raise RefusedError(" ".join(str(error).split())) from error
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
    if any(value is None or value != value for value in values):
        raise RefusedError("the target has missing values")
    hits = np.array([_same(value, positive) for value in values], dtype=bool)
    if hits.all() or not hits.any():
        found = ", ".join(sorted({str(value) for value in values})[:10])
        raise RefusedError(
            f"target: found the classes {found}, expected {positive!r} and others"
        )
    return np.where(hits, 1.0, -1.0)


def _same(value: Any, positive: str) -> bool:
    if str(value) == positive:
        return True
    try:
        return float(value) == float(positive)
    except (TypeError, ValueError):
        return False


def _target(values: Sequence[Any], reader: Reader) -> np.ndarray:
    if reader.positive is not None:
        return labels(values, reader.positive)
    return _numbers(values, reader.target or "the target")


def _numbers(values: Sequence[Any], name: str) -> np.ndarray:
    """Convert one column; a missing value becomes NaN, which is refused later."""
    try:
        return np.array([np.nan if v is None else float(v) for v in values])
    except (TypeError, ValueError):
        wrong = [(i, str(v)) for i, v in enumerate(values, 1) if not _is_number(v)]
        found = ", ".join(sorted({v for _, v in wrong})[:5])
        raise RefusedError(
            f"column {name!r} is not of numbers: found {found}, first in record "
            f"{wrong[0][0]}"
        ) from None


def _is_number(value: Any) -> bool:
    try:
        return value is None or float(value) is not None
    except (TypeError, ValueError):
        return False


def _one(files: Sequence[Path], format_: str) -> Path:
    if len(files) != 1:
        raise RefusedError(f"{format_} reads one file, found {len(files)}")
    return files[0]


def _columns(names: Sequence[str], reader: Reader) -> tuple[int, list[int]]:
    """Find the target column and the feature columns, by default last and others."""
    missing = {reader.target or names[-1], *reader.drop} - set(names)
    if missing:
        raise RefusedError(
            f"column {', '.join(sorted(missing))} is missing; the file has "
            f"{', '.join(names[:20])}{', ...' if len(names) > 20 else ''}"
        )
    target = names.index(reader.target or names[-1])
    left_out = {target, *(names.index(name) for name in reader.drop)}
    return target, [j for j in range(len(names)) if j not in left_out]


def read_arff(files: Sequence[Path], reader: Reader) -> Arrays:
    """Read an ARFF file, dense or sparse; other nominal columns must be of numbers."""
    path = _one(files, "arff")
    with open(path, encoding="utf-8") as handle:
        is_sparse = _is_sparse_arff(handle)
        handle.seek(0)
        return (_sparse_arff if is_sparse else _dense_arff)(handle, reader)


def _is_sparse_arff(handle: IO[str]) -> bool:
    in_data = False
    for line in handle:
        text = line.strip()
        if in_data and text and not text.startswith("%"):
            return text.startswith("{")
        in_data = in_data or text.lower().startswith("@data")
    return False


def _dense_arff(handle: IO[str], reader: Reader) -> Arrays:
    import arff

    content = arff.load(handle, return_type=arff.DENSE)
    names = [name for name, _ in content["attributes"]]
    target, features = _columns(names, reader)
    columns = list(zip(*content["data"], strict=True))
    if not columns:
        raise RefusedError("the file has no rows")
    X = np.empty((len(columns[0]), len(features)))
    for position, j in enumerate(features):
        X[:, position] = _numbers(columns[j], names[j])
    return X, _target(columns[target], reader)


def _sparse_arff(handle: IO[str], reader: Reader) -> Arrays:
    import arff

    content = arff.load(handle, return_type=arff.LOD)
    attributes, rows = content["attributes"], content["data"]
    target, features = _columns([name for name, _ in attributes], reader)
    # What a sparse row leaves out is 0, for a nominal column its first category.
    kinds = [kind for _, kind in attributes]
    absent = [0.0 if isinstance(kind, str) else kind[0] for kind in kinds]
    position = {j: k for k, j in enumerate(features)}
    entries = [
        (i, position[j], value)
        for i, row in enumerate(rows)
        for j, value in (row | _first_categories(row, absent, position)).items()
        if j in position
    ]
    values = _numbers([value for _, _, value in entries], "of the features")
    where = ([i for i, _, _ in entries], [k for _, k, _ in entries])
    X = sparse.csc_array((values, where), shape=(len(rows), len(features)))
    return X, _target([row.get(target, absent[target]) for row in rows], reader)


def _first_categories(
    row: dict[int, Any], absent: list[Any], wanted: dict[int, int]
) -> dict[int, Any]:
    """Give the left-out nominal features of a sparse row their first category."""
    return {j: absent[j] for j in wanted if absent[j] != 0.0 and j not in row}


def read_csv(files: Sequence[Path], reader: Reader) -> Arrays:
    """Read a comma separated file with a header; the target is by default last."""
    import pandas as pd

    path = _one(files, "csv")
    frame = pd.read_csv(
        path, dtype=str, keep_default_na=False, sep=reader.options.get("separator", ",")
    )
    target, features = _columns([str(name) for name in frame.columns], reader)
    X = np.empty((len(frame), len(features)))
    for position, j in enumerate(features):
        X[:, position] = _text_column(frame.iloc[:, j], frame.columns[j])
    column = list(frame.iloc[:, target])
    return X, _target([value if value else None for value in column], reader)


def _text_column(column: Any, name: str) -> np.ndarray:
    return _numbers([value if value else None for value in column], name)


def read_libsvm(files: Sequence[Path], reader: Reader) -> Arrays:
    """Read LIBSVM text, several parts stacked; ``dense: true`` unpacks the zeros."""
    from sklearn.datasets import load_svmlight_files

    options = dict(reader.options)
    dense = options.pop("dense", False)
    loaded = load_svmlight_files([str(path) for path in files], **options)
    X = sparse.vstack(loaded[0::2], format="csc")
    y = np.concatenate(loaded[1::2])
    if reader.positive is not None:
        y = labels(y.tolist(), reader.positive)
    return (X.toarray() if dense else X), y


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
            return content["X"], content["y"]
    if len(files) != 2:
        raise RefusedError(
            f"arrays reads one .npz or two .npy files, found {len(files)}"
        )
    X, y = (np.load(path, allow_pickle=False) for path in files)
    return X, y


FORMATS = {
    "arff": Format(read_arff),
    "csv": Format(read_csv, ("separator",)),
    "libsvm": Format(read_libsvm, ("n_features", "zero_based", "dense")),
    "cal_housing": Format(read_cal_housing),
    "nips2003": Format(read_nips2003, ("n_features",)),
    "arrays": Format(read_arrays),
}
