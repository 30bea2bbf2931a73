"""Canonical arrays of a data set: digest, file, checks and standardisation."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dperm.storage import files as store

# Squares of larger numbers, summed over the records, would overflow.
MAX_ENTRY = 1e150
FILE = "arrays.npz"
Arrays = tuple[Any, np.ndarray]  # X (n, p), dense or sparse, and y (n,)


class SourceError(Exception):
    """A source could not be reached or does not hold the data set."""


class RefusedError(SourceError):
    """A source gave other content than the data set, or a damaged file."""


def canonical(X: Any, y: Any) -> Arrays:
    """X (n, p) and y (n,) in the one form in which they are stored and digested.

    X becomes an ndarray in C order, or a scipy CSC array with sorted indices and no
    stored zero. Both become float64; minus zero becomes zero.
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
    """``sha256:`` and 64 hexadecimal digits of X (n, p) and y (n,).

    It is taken over shapes, types and the little-endian bytes of the canonical arrays,
    and so does not depend on source and layout.
    """
    X, y = canonical(X, y)
    digest = hashlib.sha256()
    for name, array in (*_parts(X).items(), ("y", y)):
        stored_type = "<f8" if array.dtype.kind == "f" else "<i8"
        digest.update(f"{name} {array.shape} {stored_type}\n".encode())
        digest.update(np.ascontiguousarray(array, dtype=stored_type).data)
    return f"sha256:{digest.hexdigest()}"


def _parts(X: Any) -> dict[str, np.ndarray]:
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
    """Write X (n, p), dense in its own order or as CSC parts, and y (n,).

    The file, ``arrays.npz``, appears whole or not at all.
    """
    arrays: dict[str, Any] = {**_parts(X), "y": y}
    with store.whole(folder / FILE) as beside:
        np.savez(beside, **arrays)


def load_arrays(folder: Path, digest: str | None) -> Arrays:
    """Read X (n, p) and y (n,) that ``save_arrays`` wrote.

    Raises ValueError if they are missing, damaged or have another digest.
    """
    try:
        with open(folder / FILE, "rb") as file:
            arrays = dict(np.load(file, allow_pickle=False))
        if "X" in arrays:
            X = arrays["X"]
        else:
            compressed = (
                arrays["X_data"],
                arrays["X_indices"],
                arrays["X_indptr"],
            )
            X = sparse.csc_array(
                compressed, shape=tuple(arrays["X_shape"].tolist())
            )
        if digest_arrays(X, arrays["y"]) == digest:
            return X, arrays["y"]
        damage = "other digest"
    except Exception as error:
        # numpy and zipfile raise anything on damaged files
        damage = " ".join(str(error).split())
    raise ValueError(
        f"{folder.name}: missing or damaged arrays ({damage}): delete {folder} and run "
        "again"
    )


def nonzeros(X: Any) -> int:
    """Count the non-zero entries of X (n, p)."""
    return int(X.nnz) if sparse.issparse(X) else int(np.count_nonzero(X))


def check_arrays(X: Any, y: np.ndarray) -> None:
    """Refuse arrays X (n, p) and y (n,) that cannot define a problem.

    Raises RefusedError if they are empty, disagree on n, or hold a value that is not
    finite or whose square is not.
    """
    if X.ndim != 2 or y.ndim != 1 or len(y) != X.shape[0]:
        raise RefusedError(
            f"X has shape {X.shape} and y {y.shape}, expected (n, p), (n,)"
        )
    if 0 in X.shape:
        raise RefusedError(f"X has shape {X.shape}: there is nothing in it")
    for name, array in (("X", X), ("y", y)):
        numbers = array.data if sparse.issparse(array) else array
        wrong = np.argwhere(~(np.abs(numbers) <= MAX_ENTRY))
        if len(wrong):
            coordinates = zip(
                ("record", "feature"), wrong[0] + 1, strict=False
            )
            first_place = ", ".join(
                f"{axis} {number}" for axis, number in coordinates
            )
            place = (
                "" if sparse.issparse(array) else f", first in {first_place}"
            )
            raise RefusedError(
                f"{name} has {len(wrong)} values that are missing or beyond "
                f"{MAX_ENTRY:g}, whose squares overflow{place}"
            )


def standardize(X: np.ndarray) -> np.ndarray:
    """Give every column of X (n, p) mean 0 and standard deviation 1 (ddof 0).

    Raises ValueError for columns that are constant or vary by too little, by place.

    Examples
    --------
    >>> standardize(np.array([[1.0], [3.0]])).ravel().tolist()
    [-1.0, 1.0]
    """
    # C order sums row after row, which gives the same bits on every processor.
    X = np.ascontiguousarray(X)
    centred = X - X.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        standardized = centred / np.sqrt((centred * centred).mean(axis=0))
    is_wrong = (X.max(axis=0) == X.min(axis=0)) | ~np.isfinite(
        standardized
    ).all(axis=0)
    if is_wrong.any():
        names = ", ".join(map(str, np.flatnonzero(is_wrong)[:10]))
        names += ", ..." if is_wrong.sum() > 10 else ""
        raise ValueError(
            f"column {names} (counted from 0) of {is_wrong.size} varies by too little "
            "to be standardised"
        )
    return standardized
