"""Sparse columns standardised without being filled in.

A column with mean mu_j and standard deviation s_j becomes (x_ij - mu_j) / s_j, in which
all zeros of the column have one value. The result is a sparse matrix plus one of rank
one:

    A = S + a b^T,   S = diag(a) X diag(1/s),   b_j = -mu_j / s_j,

with a the labels for the logistic loss and ones otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Centred:
    """The matrix S + a b^T, which is never filled in."""

    S: Any  #: shape (n, p)
    a: np.ndarray  #: shape (n,); each -1 or +1
    b: np.ndarray  #: shape (p,)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, p)."""
        return self.S.shape

    @property
    def nnz(self) -> int:
        """Number of entries of S."""
        return self.S.nnz

    @property
    def T(self) -> Centred:  # noqa: N802 (as numpy calls it)
        """The transpose, S^T + b a^T."""
        return Centred(self.S.T, self.b, self.a)

    def __matmul__(self, w: np.ndarray) -> np.ndarray:
        """The product with a vector."""
        return self.S @ w + self.a * (self.b @ w)

    def __getitem__(self, index: tuple[Any, np.ndarray]) -> np.ndarray:
        """Some columns, ``A[:, index]``, filled in; shape (n, len(index))."""
        rows, columns = index
        return (self.S[:, columns].toarray() + np.outer(self.a, self.b[columns]))[rows]

    def column_squares(self) -> np.ndarray:
        """Squared norm of each column, shape (p,)."""
        S, n = self.S, self.shape[0]
        sizes = np.diff(S.indptr)
        entries = S.data + self.a[S.indices] * np.repeat(self.b, sizes)
        columns = np.repeat(np.arange(len(sizes)), sizes)
        stored = np.bincount(columns, entries**2, minlength=len(sizes))
        return stored + (n - sizes) * self.b**2

    def gram(self) -> np.ndarray:
        """A A^T or A^T A, whichever is smaller."""
        S, a, b = self.S, self.a, self.b
        if self.shape[0] >= self.shape[1]:
            S, a, b = S.T, b, a
        cross = np.outer(S @ b, a)
        return (S @ S.T).toarray() + cross + cross.T + (b @ b) * np.outer(a, a)


def centred(X: Any, a: np.ndarray) -> Centred:
    """Standardise columns of X (n, p), CSC, and multiply rows by a (n,).

    Columns get mean 0 and standard deviation 1 (ddof 0).

    Raises ValueError if a column is constant.
    """
    S = sparse.csc_array(X, dtype=np.float64, copy=True)
    S.sum_duplicates()
    check_constant(S)
    n, sizes = S.shape[0], np.diff(S.indptr)
    columns = np.repeat(np.arange(len(sizes)), sizes)
    mean = np.bincount(columns, S.data, minlength=len(sizes)) / n
    around = (S.data - mean[columns]) ** 2
    squares = np.bincount(columns, around, minlength=len(sizes))
    deviation = np.sqrt((squares + (n - sizes) * mean**2) / n)
    S.data *= a[S.indices] / deviation[columns]
    return Centred(S, a, -mean / deviation)


def check_constant(X: Any) -> None:
    """Refuse columns that have no standard deviation.

    Parameters
    ----------
    X : array or CSC array, shape (n, p)

    Raises
    ------
    ValueError
        If there are any; the message names the first ones.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    constant = np.flatnonzero(high == low)
    if constant.size:
        columns = ", ".join(str(j) for j in constant[:10])
        more = ", ..." if constant.size > 10 else ""
        raise ValueError(
            f"column {columns}{more} (counted from 0) of {X.shape[1]} is constant "
            "and cannot be standardised"
        )


def is_sparse(A: Any) -> bool:
    """Whether A is a sparse matrix or a :class:`Centred` one."""
    return sparse.issparse(A) or isinstance(A, Centred)
