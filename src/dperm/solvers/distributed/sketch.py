"""The public Johnson-Lindenstrauss sketch J (m, n), the same on every node.

Entries are N(0, 1/m) from a public seed (Lou and Cheung 2020, line 1 and equation 16).
With m = n the sketch is the identity, because mixing would gain nothing.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from dperm.numerics.compiled import KERNEL, dot
from dperm.numerics.kernels import njit
from dperm.privacy.noise import gaussian, streams


class Sketch:
    """The sketch J, applied to sparse columns, and its transpose.

    n is the number of records, m the length of a sketched feature, at most n. The seed
    is public. Raises ValueError if m is not between 1 and n.
    """

    def __init__(self, n: int, m: int, seed: int):
        if not 1 <= m <= n:
            raise ValueError(
                f"sketch length: expected 1 to n = {n}, found {m}"
            )
        self.n = n
        self.m = m
        self.seed = seed

    @property
    def identity(self) -> bool:
        """Whether J is the identity."""
        return self.m == self.n

    @cached_property
    def by_record(self) -> np.ndarray:
        """J transposed, (n, m), so that the entries of one record are contiguous."""
        drawn = gaussian(streams(self.seed).sampling, (self.n, self.m))
        drawn /= np.sqrt(self.m)
        return drawn

    @cached_property
    def column_norms(self) -> np.ndarray:
        """||J_:i|| for every record i, shape (n,)."""
        if self.identity:
            return np.ones(self.n)
        return np.sqrt(np.einsum("ij,ij->i", self.by_record, self.by_record))

    @cached_property
    def leading_singular_value(self) -> float:
        """sigma(J) of equation 17."""
        if self.identity:
            return 1.0
        gram = self.by_record.T @ self.by_record
        return float(np.sqrt(np.linalg.eigvalsh(gram)[-1]))

    def feature(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        """J a for a column with these non-zeros; shape (m,)."""
        column = np.zeros(self.m)
        if self.identity:
            column[rows] = values
        else:
            _combine(self.by_record, rows, values, column)
        return column

    def predictions(self, q: np.ndarray) -> np.ndarray:
        """J^T q for q (m,), which estimates A x / n; shape (n,)."""
        if self.identity:
            return q
        predictions = np.empty(self.n)
        _project(self.by_record, q, predictions)
        return predictions


@njit(**KERNEL)
def _combine(by_record, rows, values, out):
    """Add the records' rows of J^T, weighted, to out."""
    for c in range(rows.shape[0]):
        row = by_record[rows[c]]
        for k in range(out.shape[0]):
            out[k] += values[c] * row[k]


@njit(**KERNEL)
def _project(by_record, q, out):
    """Write J^T q to out."""
    for i in range(out.shape[0]):
        out[i] = dot(by_record[i], q)
