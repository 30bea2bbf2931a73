"""Readers of files in one format, which return arrays X (n, p) and y (n,).

Nothing is guessed: a missing value or a category is refused with its line and column,
unless the reader declares how to replace it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from dperm.core.experiment.schema import Reader
from dperm.data.arrays import Arrays, RefusedError, canonical, check_arrays
from dperm.data.packed import check_start, refusing
from dperm.data.tables import labels, read_table, table_arrays, typed

MARK = b"\xef\xbb\xbf"  # byte order mark, which some editors write
WIDEST = 10**8  # most features: a wrong index must not allocate all memory


def read_files(files: Sequence[Path], reader: Reader) -> Arrays:
    """Read the files of a data set, in the order of the configuration.

    Returns canonical, checked X (n, p), an ndarray or a scipy CSC array, and y (n,).

    Raises RefusedError, in one line that names the file, if one is a web page, damaged,
    of another format or not finite.
    """
    names = ", ".join(path.name for path in files)
    with refusing(names, reader.format), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # numpy's about files without data
        for path in files:
            check_start(path)
        made = FORMATS[reader.format](files, reader, **reader.options)
        X, y = canonical(*made)
        check_arrays(X, y)
        return X, y


def _one(files: Sequence[Path], format_: str) -> Path:
    if len(files) != 1:
        raise RefusedError(f"{format_} reads one file, found {len(files)}")
    return files[0]


def read_csv(files: Sequence[Path], reader: Reader, **options: Any) -> Arrays:
    """Read one table by ``read_table``, which takes the options."""
    return _declared(read_table(_one(files, "csv"), **options), reader)


def _declared(table: pd.DataFrame, reader: Reader) -> Arrays:
    """Arrays of a table, as the reader declares."""
    X, y, _ = table_arrays(
        table,
        reader.target,
        positive=reader.positive,
        drop=reader.drop,
        missing=reader.missing,
        categories=reader.categories,
    )
    return X, y


def read_arff(files: Sequence[Path], reader: Reader) -> Arrays:
    """Read an ARFF file by liac-arff; nominal columns are numeric or listed.

    Of a sparse one, what a row omits is filled in: 0, or a column's first category.
    """
    import arff

    text = _one(files, "arff").read_text("utf-8-sig")
    lines = [line.strip() for line in text.split("\n")]
    start = [line.lower()[:5] for line in lines].index("@data") + 1
    rows = enumerate(lines[start:], start + 1)
    used = pd.Index([j for j, row in rows if row[:1] not in ("", "%")], name="line")
    content = arff.load(StringIO(text))
    if not content["data"]:
        raise RefusedError("the file has no rows")
    names = [name for name, _ in content["attributes"]]
    table = pd.DataFrame(content["data"], used, names, dtype=object)
    return _declared(typed(table), reader)


def read_libsvm(
    files: Sequence[Path],
    reader: Reader,
    *,
    dense: bool = False,
    **options: Any,
) -> Arrays:
    """Read LIBSVM text by scikit-learn with its options, several parts stacked."""
    from sklearn.datasets import load_svmlight_files

    texts = [path.read_bytes().removeprefix(MARK) for path in files]
    try:
        loaded = load_svmlight_files([*map(BytesIO, texts)], **options)
    except ValueError as error:
        fault = _libsvm_fault(files, texts, options) or str(error)
        raise RefusedError(fault) from error
    if loaded[0].shape[1] > WIDEST:
        raise RefusedError(
            f"found the feature {loaded[0].shape[1]}, expected at most {WIDEST}"
        )
    X = sparse.vstack(loaded[0::2], format="csc")
    y = np.concatenate(loaded[1::2])
    if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        raise RefusedError(_libsvm_fault(files, texts, options))
    y = y if reader.positive is None else labels(pd.Series(y), reader.positive)
    return (X.toarray() if dense else X), y


def _libsvm_fault(
    files: Sequence[Path], texts: Sequence[bytes], options: dict[str, Any]
) -> str:
    """File and line of the first error in LIBSVM text; empty if no line has one."""
    from sklearn.datasets import load_svmlight_file

    for path, text in zip(files, texts, strict=True):
        for number, line in enumerate(text.splitlines(), 1):
            if not line.partition(b"#")[0].strip():
                continue
            where = f"{path.name}, line {number}: "
            try:
                X, y = load_svmlight_file(BytesIO(line), **options)
            except ValueError as error:
                return f"{where}expected label, index:value: {str(error)[:80]}"
            if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
                return f"{where}expected finite numbers"
    return ""


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


def read_nips2003(
    files: Sequence[Path], reader: Reader, *, n_features: int | None = None
) -> Arrays:
    """Read pairs of .data and .labels files of the NIPS 2003 challenge, stacked.

    With ``n_features``, a line lists the 1-based indices of the features that are 1;
    without it, a line holds all values.
    """
    if not files or len(files) % 2:
        raise RefusedError(
            f"nips2003 reads pairs of data and labels, found {len(files)}"
        )
    y = np.concatenate([np.loadtxt(path, ndmin=1) for path in files[1::2]])
    if not np.isin(y, (-1.0, 1.0)).all():
        raise RefusedError("labels other than -1 and 1")
    if n_features is None:
        return np.vstack([np.loadtxt(path, ndmin=2) for path in files[0::2]]), y
    lists = [
        np.array(line.split(), dtype=np.int64)
        for path in files[0::2]
        for line in path.read_text(encoding="ascii").splitlines()
    ]
    indices = np.concatenate(lists) - 1
    if indices.size and not 0 <= indices.min() <= indices.max() < n_features:
        raise RefusedError(f"an index outside 1 to {n_features}")
    rows = np.repeat(np.arange(len(lists)), [*map(len, lists)])
    ones = np.ones(len(indices))
    X = sparse.csc_array((ones, (rows, indices)), shape=(len(lists), n_features))
    if X.nnz != len(indices):
        raise RefusedError("a feature is named twice in one line")
    return X, y


def read_arrays(files: Sequence[Path], reader: Reader) -> Arrays:
    """Read one .npz file with X and y, or X.npy and y.npy."""
    if not all(path.suffix in (".npz", ".npy") for path in files) or len(files) > 2:
        raise RefusedError(
            "expected one .npz or two .npy files, or a reader: {format: csv, target: "
            "...} or of another format"
        )
    if len(files) == 2:
        X, y = (np.load(path, allow_pickle=False) for path in files)
        return X, y
    with np.load(files[0], allow_pickle=False) as content:
        if {"X", "y"} - {*content}:
            found = ", ".join(content)
            raise RefusedError(f"expected the arrays X and y, found {found}")
        return content["X"], content["y"]


FORMATS: dict[str, Callable[..., Arrays]] = {
    "arff": read_arff,
    "csv": read_csv,
    "libsvm": read_libsvm,
    "cal_housing": read_cal_housing,
    "nips2003": read_nips2003,
    "arrays": read_arrays,
}
