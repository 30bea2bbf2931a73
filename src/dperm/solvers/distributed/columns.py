"""Sparse columns of a design, for methods that move few coordinates.

The cost of an operation is the number of entries it touches. A product with some
columns touches their non-zeros. A column of the Gram matrix touches the non-zeros of
the rows it meets.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from dperm.numerics.compiled import INLINE, KERNEL, fused
from dperm.numerics.kernels import njit


class Columns:
    """The columns of a design A (n, p), dense or sparse."""

    def __init__(self, A: Any):
        self.matrix = sparse.csc_array(A)
        self.matrix.sort_indices()
        self.arrays = _arrays(self.matrix)

    @property
    def n(self) -> int:
        """Number of records."""
        return self.matrix.shape[0]

    @property
    def p(self) -> int:
        """Number of columns."""
        return self.matrix.shape[1]

    @cached_property
    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same entries stored by rows, for columns of the Gram matrix."""
        return _arrays(self.matrix.tocsr())

    @cached_property
    def square_norms(self) -> np.ndarray:
        """||a_j||^2 of each column, shape (p,)."""
        return np.asarray(
            self.matrix.multiply(self.matrix).sum(axis=0)
        ).ravel()

    def entries(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows and values of the non-zeros of column j."""
        stored, indices, indptr = self.arrays
        span = slice(indptr[j], indptr[j + 1])
        return indices[span], stored[span]

    def products(self, u: np.ndarray) -> np.ndarray:
        """A^T u for u (n,); shape (p,)."""
        products = np.empty(self.p)
        _products(*self.arrays, u, products)
        return products

    def add(
        self, columns: np.ndarray, coefficients: np.ndarray, v: np.ndarray
    ) -> None:
        """Add sum_k coefficients[k] a_{columns[k]} to v, in place."""
        _add(*self.arrays, columns, coefficients, v)

    def gram(self, j: int) -> np.ndarray:
        """A^T a_j; shape (p,)."""
        products = np.zeros(self.p)
        _gram(*self.rows, *self.entries(j), products)
        return products


def edges(p: int, nodes: int) -> np.ndarray:
    """First column of each node's block, then p; shape (nodes + 1,)."""
    return np.linspace(0, p, nodes + 1).astype(np.int64)


def _arrays(matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, indices, pointers; unsigned, as signed ones are tested for negatives."""
    return (
        np.ascontiguousarray(matrix.data, dtype=np.float64),
        matrix.indices.astype(np.int32, copy=False).view(np.uint32),
        matrix.indptr.astype(np.uint64),
    )


@njit(**KERNEL)
def _products(data, indices, indptr, u, out):
    for j in range(out.shape[0]):
        out[j] = _product(data, indices, u, indptr[j], indptr[j + 1])


@njit(**INLINE)
def _product(entries, indices, u, low, high):
    """Sum of data[k] u[indices[k]] over low <= k < high, in four running sums."""
    stored = entries[low:high]
    places = indices[low:high]
    a = b = c = d = 0.0
    n = stored.shape[0]
    for k in range(0, n & -4, 4):
        a = fused(stored[k], u[places[k]], a)
        b = fused(stored[k + 1], u[places[k + 1]], b)
        c = fused(stored[k + 2], u[places[k + 2]], c)
        d = fused(stored[k + 3], u[places[k + 3]], d)
    for k in range(n & -4, n):
        a = fused(stored[k], u[places[k]], a)
    return (a + b) + (c + d)


@njit(**KERNEL)
def _add(data, indices, indptr, columns, coefficients, v):
    for c in range(columns.shape[0]):
        j = columns[c]
        for k in range(indptr[j], indptr[j + 1]):
            v[indices[k]] += coefficients[c] * data[k]


@njit(**KERNEL)
def _gram(data, indices, indptr, met, values, out):
    """Add A^T a to out, for a column a with ``values`` in rows ``met``; A by rows."""
    for c in range(met.shape[0]):
        i = met[c]
        for k in range(indptr[i], indptr[i + 1]):
            out[indices[k]] += values[c] * data[k]


@njit(**KERNEL)
def box_step(data, indices, indptr, columns, u, radius, gamma, x, v):
    """One Frank-Wolfe step of the columns in [-radius, radius]; changes x and v.

    All gradients are taken at u (n,), as it was before the step.
    """
    moves = np.empty(columns.shape[0])
    for c in range(columns.shape[0]):
        j = columns[c]
        gradient = _product(data, indices, u, indptr[j], indptr[j + 1])
        vertex = -radius if gradient > 0.0 else radius
        moves[c] = gamma * (vertex - x[j])
    for c in range(columns.shape[0]):
        j = columns[c]
        x[j] += moves[c]
        for k in range(indptr[j], indptr[j + 1]):
            v[indices[k]] += moves[c] * data[k]
