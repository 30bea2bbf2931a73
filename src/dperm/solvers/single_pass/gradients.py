"""Sums of clipped gradients over batches, and methods that keep their records."""

from __future__ import annotations

import itertools

import numpy as np

from dperm.numerics.compiled import KERNEL, clamp, dot, fused
from dperm.numerics.kernels import njit
from dperm.problems.losses import slope
from dperm.solvers.single_pass import Stream
from dperm.solvers.single_pass.sources import chunks


@njit(**KERNEL)
def gradient_sums(rows, labels, factors, bound, W, out):
    """Add the records' gradients at each row of W, clipped to the bound, to out (L, d).

    ``factors`` give the rows unit dual norm, so that clipping phi' clips the gradient.
    """
    for setting in range(W.shape[0]):
        w = W[setting]
        total = out[setting]
        for i in range(rows.shape[0]):
            z = rows[i]
            c = factors[i]
            g = c * clamp(slope(c * dot(z, w), labels[i]), bound)
            for j in range(w.shape[0]):
                total[j] = fused(g, z[j], total[j])


@njit(**KERNEL)
def difference_sums(rows, labels, factors, bound, W, V, out):
    """Add the clipped gradients at W less those at V, both (L, d), to out (L, d)."""
    for setting in range(W.shape[0]):
        w = W[setting]
        u = V[setting]
        total = out[setting]
        for i in range(rows.shape[0]):
            z = rows[i]
            c = factors[i]
            y = labels[i]
            g = clamp(slope(c * dot(z, w), y), bound)
            g = c * (g - clamp(slope(c * dot(z, u), y), bound))
            for j in range(w.shape[0]):
                total[j] = fused(g, z[j], total[j])


class StoredRecords(Stream):
    """A run on the next n records of a source, which it keeps.

    Attributes
    ----------
    scale : ndarray, shape (L, 1)
        Noise of each target.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.scale = self.scales[:, :1]
        columns = zip(*self.records(self.n), strict=True)
        self._kept = [np.concatenate(arrays) for arrays in columns]

    def gradient(
        self, W: np.ndarray, low: int = 0, count: int = 0
    ) -> np.ndarray:
        """Mean clipped gradients at W (L, d) over ``count`` records from ``low`` on.

        Over all records without a count.
        """
        count = count or self.n
        ends = low + np.cumsum([0, *chunks(count, self.source.d)])
        batches = (
            tuple(array[start:end] for array in self._kept)
            for start, end in itertools.pairwise(ends)
        )
        return self.sums(gradient_sums, batches, W) / count
