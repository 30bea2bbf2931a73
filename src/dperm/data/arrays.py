"""Canonical arrays of a data set: digest, files, checks and standardisation."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

# Squares of larger numbers, summed over the records, would overflow.
LARGEST = 1e150
Arrays = tuple[Any, np.ndarray]  # X (n, p), dense or sparse, and y (n,)


class SourceError(Exception):
    """A source could not be reached or does not hold the data set."""


class RefusedError(SourceError):
    """A source gave other content than the data set, or a damaged file."""


def canonical(X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Convert arrays to the one form in which they are stored and digested.

    Parameters
    ----------
    X : array or sparse matrix, shape (n, p)
    y : array, shape (n,)

    Returns
    -------
    X : ndarray in C order, or scipy CSC array with sorted indices and no stored zero
    y : ndarray, shape (n,)
        Both float64; minus zero becomes zero.
    """
    y = np.ascontiguousarray(y, dtype="<f8") + 0.0
    if not sparse.issparse(X):
        return np.ascontiguousarray(X, dtype="<f8") + 0.0, y
    X = sparse.csc_array(X, dtype="<f8", copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    X.sort_indices()
    return X, y


def digest_arrays(X: Any, y: Any) -> str:
    """Digest the content of a data set, independent of its source and layout.

    Parameters
    ----------
    X : array or sparse matrix, shape (n, p)
    y : array, shape (n,)

    Returns
    -------
    str
        ``sha256:`` and 64 hexadecimal digits, over layout, shapes, types and the
        little-endian bytes of the canonical arrays.
    """
    X, y = canonical(X, y)
    digest = hashlib.sha256()
    for name, part in (*array_parts(X).items(), ("y", y)):
        kind = "<f8" if part.dtype.kind == "f" else "<i8"
        digest.update(f"{name} {part.shape} {kind}\n".encode())
        digest.update(np.ascontiguousarray(part, dtype=kind).data)
    return f"sha256:{digest.hexdigest()}"


def array_parts(X: Any) -> dict[str, np.ndarray]:
    """The plain arrays that X (n, p) consists of, by name: one, or four if sparse."""
    if not sparse.issparse(X):
        return {"X": X}
    return {
        "X_shape": np.asarray(X.shape, dtype=np.int64),
        "X_indptr": X.indptr.astype(np.int64),
        "X_indices": X.indices.astype(np.int64),
        "X_data": X.data,
    }


def save_arrays(folder: Path, X: Any, y: np.ndarray) -> None:
    """Write X (n, p), dense in its own order or as CSC parts, and y (n,) as .npy."""
    for name, part in (*array_parts(X).items(), ("y", y)):
        np.save(folder / f"{name}.npy", part)


def load_arrays(folder: Path) -> tuple[Any, np.ndarray]:
    """Read arrays that ``save_arrays`` wrote.

    Returns
    -------
    X : ndarray or scipy CSC array, shape (n, p)
    y : ndarray, shape (n,)

    Raises
    ------
    OSError, ValueError, EOFError
        If a file is missing or damaged.
    """
    y = _load(folder, "y")
    if not (folder / "X_shape.npy").exists():
        return _load(folder, "X"), y
    parts = [_load(folder, f"X_{name}") for name in ("data", "indices", "indptr")]
    shape = tuple(int(size) for size in _load(folder, "X_shape"))
    return sparse.csc_array(tuple(parts), shape=shape), y


def _load(folder: Path, name: str) -> np.ndarray:
    return np.load(folder / f"{name}.npy", mmap_mode=None, allow_pickle=False)


def nonzeros(X: Any) -> int:
    """Count the non-zero entries of X (n, p)."""
    return int(X.nnz) if sparse.issparse(X) else int(np.count_nonzero(X))


def check_arrays(X: Any, y: np.ndarray) -> None:
    """Refuse arrays that cannot define a problem.

    Parameters
    ----------
    X : array or CSC array, shape (n, p)
    y : array, shape (n,)

    Raises
    ------
    RefusedError
        If they are empty, disagree on n, or hold a value that is not finite or whose
        square is not.
    """
    if X.ndim != 2 or y.ndim != 1 or len(y) != X.shape[0]:
        raise RefusedError(
            f"X has shape {X.shape} and y {y.shape}, expected (n, p), (n,)"
        )
    if 0 in X.shape:
        raise RefusedError(f"X has shape {X.shape}: there is nothing in it")
    values = X.data if sparse.issparse(X) else X
    for name, part in (("X", values), ("y", y)):
        large = f"values beyond {LARGEST:g}, whose squares overflow"
        for what, wrong in (
            ("missing or infinite values", ~np.isfinite(part)),
            (large, np.abs(part) > LARGEST),
        ):
            if not wrong.any():
                continue
            place = ""
            if not sparse.issparse(X):
                record, *column = np.argwhere(wrong)[0] + 1
                place = f", first in record {record}"
                place += f", feature {column[0]}" if column else ""
            raise RefusedError(f"{name} has {int(wrong.sum())} {what}{place}")


def check_standardized(X: Any) -> None:
    """Refuse columns whose deviation is too small to represent.

    Raises ValueError, which names the first one.
    """
    if isinstance(X, np.ndarray) and not np.isfinite(X).all():
        column = int(np.argmin(np.isfinite(X).all(axis=0)))
        raise ValueError(
            f"column {column} (counted from 0) of {X.shape[1]} varies by too little "
            "to be standardised"
        )


def check_constant(X: np.ndarray) -> None:
    """Refuse columns of X (n, p) that have no standard deviation.

    Raises ValueError, which names the first ones.
    """
    constant = np.flatnonzero(X.max(axis=0) == X.min(axis=0))
    if constant.size:
        columns = ", ".join(str(j) for j in constant[:10])
        more = ", ..." if constant.size > 10 else ""
        raise ValueError(
            f"column {columns}{more} (counted from 0) of {X.shape[1]} is constant "
            "and cannot be standardised"
        )


def standardize(X: np.ndarray) -> np.ndarray:
    """Give every column mean 0 and standard deviation 1 (ddof 0).

    Parameters
    ----------
    X : array, shape (n, p)

    Returns
    -------
    array, shape (n, p)

    Raises
    ------
    ValueError
        If a column is constant.

    Examples
    --------
    >>> standardize(np.array([[1.0], [3.0]])).ravel().tolist()
    [-1.0, 1.0]
    """
    check_constant(X)
    # C order sums row after row, which gives the same bits on every processor.
    X = np.ascontiguousarray(X)
    centred = X - X.mean(axis=0)
    return centred / np.sqrt((centred * centred).mean(axis=0))
