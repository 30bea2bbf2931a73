"""Replacement of records that are not finite, and norms without overflow.

A record that is not finite, label included, counts as a record of zeros. This maps each
record to a record, so that neighbouring data sets stay neighbours. It is applied
wherever a problem is made, so that no solver meets NaN or infinity in its data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

BLOCK = 8192  # records
# Norms above this, or below its inverse, are not found by squares
MAX_NORM = 1e100


def cleaned(A: Any, offset: np.ndarray) -> tuple[Any, np.ndarray]:
    """Rows A (n, p) and offsets (n,), with zeros for records that are not finite.

    The arguments themselves if all are finite.
    """
    keep = _is_finite(A) & np.isfinite(offset)
    if keep.all():
        return A, offset
    return _without(A, ~keep), np.where(keep, offset, 0.0)


def lengths(rows: Any, squares: np.ndarray) -> np.ndarray:
    """Euclidean norms of finite rows from their squared norms, (n,).

    Where a square overflowed or lost digits, the norm is computed in units of the row's
    largest entry. It is infinite only if the norm itself overflows.
    """
    norms = np.sqrt(squares)
    odd = np.flatnonzero(~((squares > MAX_NORM**-2) & (squares < MAX_NORM**2)))
    if not odd.size:
        return norms
    odd_rows = (
        sparse.csr_array(rows)[odd] if sparse.issparse(rows) else rows[odd]
    )
    stored = odd_rows.data if sparse.issparse(rows) else odd_rows.ravel()
    places = (
        _entries(odd_rows)
        if sparse.issparse(rows)
        else np.repeat(np.arange(len(odd)), odd_rows.shape[1])
    )
    largest = np.zeros(len(odd))
    np.maximum.at(largest, places, np.abs(stored))
    with np.errstate(all="ignore"):
        units = stored / np.where(largest > 0, largest, 1.0)[places]
        squared = np.bincount(places, units**2, minlength=len(odd))
        norms[odd] = largest * np.sqrt(squared)
    return norms


def _is_finite(A: Any) -> np.ndarray:
    """Whether all entries of each row are finite; shape (n,)."""
    is_finite = np.ones(A.shape[0], dtype=bool)
    if not sparse.issparse(A):  # some at a time, without flags for all entries
        for start in range(0, len(A), BLOCK):
            block = np.isfinite(A[start : start + BLOCK])
            is_finite[start : start + BLOCK] = block.all(axis=1)
        return is_finite
    if not np.isfinite(A.data).all():
        is_finite[_entries(A)[~np.isfinite(A.data)]] = False
    return is_finite


def _without(A: Any, left_out: np.ndarray) -> Any:
    """A, dense or sparse as before, with zeros in place of some rows."""
    if not sparse.issparse(A):
        kept = A.copy(order="K")
        kept[left_out] = 0.0
        return kept
    stored = np.where(left_out[_entries(A)], 0.0, A.data)
    return type(A)((stored, A.indices, A.indptr), shape=A.shape)


def _entries(A: Any) -> np.ndarray:
    """The row of each entry of a CSR or CSC array."""
    if A.format == "csc":
        return A.indices
    return np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
