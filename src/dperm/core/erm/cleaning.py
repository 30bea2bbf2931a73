"""What no record may decide: whether a number is finite, and whether a square is one.

A record that is not finite, label included, counts as a record of zeros. That is a map
of each record to a record, so that neighbouring data sets stay neighbours, and it is
done wherever a problem is made: no solver meets NaN or infinity in its data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

FAR = 1e100  # sizes beyond which, and below whose inverse, squares are not relied on


def cleaned(A: Any, offset: np.ndarray) -> tuple[Any, np.ndarray]:
    """Rows and offsets, zeros in place of records that are not finite.

    Parameters
    ----------
    A : ndarray or sparse array (n, p)
    offset : ndarray, shape (n,)

    Returns
    -------
    A, offset
        Themselves, where all are finite.
    """
    keep = _is_finite(A) & np.isfinite(offset)
    if keep.all():
        return A, offset
    return _without(A, ~keep), np.where(keep, offset, 0.0)


def lengths(rows: Any, squares: np.ndarray) -> np.ndarray:
    """Euclidean norms of finite rows by their squared norms, (n,).

    Where a square overflowed or lost its digits the row is measured in units of its
    largest entry; infinite if the norm itself is.
    """
    found = np.sqrt(squares)
    odd = np.flatnonzero(~((squares > FAR**-2) & (squares < FAR**2)))
    if not odd.size:
        return found
    some = sparse.csr_array(rows)[odd] if sparse.issparse(rows) else rows[odd]
    data = some.data if sparse.issparse(rows) else some.ravel()
    places = (
        _entries(some)
        if sparse.issparse(rows)
        else np.repeat(np.arange(len(odd)), some.shape[1])
    )
    largest = np.zeros(len(odd))
    np.maximum.at(largest, places, np.abs(data))
    with np.errstate(all="ignore"):
        units = data / np.where(largest > 0, largest, 1.0)[places]
        squared = np.bincount(places, units**2, minlength=len(odd))
        found[odd] = largest * np.sqrt(squared)
    return found


def _is_finite(A: Any) -> np.ndarray:
    """Whether all entries of each row are finite; shape (n,)."""
    if not sparse.issparse(A):
        return np.isfinite(A).all(axis=1)
    found = np.ones(A.shape[0], dtype=bool)
    if not np.isfinite(A.data).all():
        found[_entries(A)[~np.isfinite(A.data)]] = False
    return found


def _without(A: Any, left_out: np.ndarray) -> Any:
    """Rows, zeros in place of some; as A is kept."""
    if not sparse.issparse(A):
        return np.where(left_out[:, None], 0.0, A)
    data = np.where(left_out[_entries(A)], 0.0, A.data)
    return type(A)((data, A.indices, A.indptr), shape=A.shape)


def _entries(A: Any) -> np.ndarray:
    """The row of each entry of a CSR or CSC array."""
    if A.format == "csc":
        return A.indices
    return np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
