"""Sums of clipped gradients over batches, and methods that keep all their batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit

from dperm.core.compiled import KERNEL, clamp, dot, fused
from dperm.core.erm.losses import slope
from dperm.core.privacy.mechanisms import Streams
from dperm.solvers.streams import Stream, Target
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import Batch, Source, chunks


@njit(**KERNEL)
def gradient_sums(rows, labels, factors, bound, W, out):
    """Add the records' gradients at each row of W, clipped to the bound, to out (L, d).

    ``factors`` give the rows unit dual norm, so that clipping phi' clips the gradient.
    """
    for lane in range(W.shape[0]):
        w, total = W[lane], out[lane]
        for i in range(rows.shape[0]):
            z, c = rows[i], factors[i]
            g = c * clamp(slope(c * dot(z, w), labels[i]), bound)
            for j in range(w.shape[0]):
                total[j] = fused(g, z[j], total[j])


@njit(**KERNEL)
def difference_sums(rows, labels, factors, bound, W, V, out):
    """Add the clipped gradients at W less those at V, both (L, d), to out (L, d)."""
    for lane in range(W.shape[0]):
        w, u, total = W[lane], V[lane], out[lane]
        for i in range(rows.shape[0]):
            z, c, y = rows[i], factors[i], labels[i]
            g = clamp(slope(c * dot(z, w), y), bound)
            g = c * (g - clamp(slope(c * dot(z, u), y), bound))
            for j in range(w.shape[0]):
                total[j] = fused(g, z[j], total[j])


Batches = list[tuple[Batch, np.ndarray]]


class Kept(Stream):
    """A run on the next n records of a source, which it keeps.

    Attributes
    ----------
    scale : ndarray, shape (L, 1)
        Noise of each target.
    batches : list of (Batch, factors)
    """

    def __init__(
        self,
        setup: Setup,
        targets: Sequence[Target],
        streams: Streams,
        source: Source,
        n: int,
        options: Any,
    ):
        super().__init__(setup, targets, streams, source, n, options)
        self.scale = self.scales[:, :1]
        self.batches: Batches = []
        for size in chunks(n, source.d):
            batch = source.take(size)
            self.batches.append((batch, source.factors(batch, setup.q)))

    def gradient(self, W: np.ndarray, batches: Batches | None = None) -> np.ndarray:
        """Mean clipped gradients at W (L, d) over all records, or those of batches."""
        total, count = np.zeros_like(W), 0
        sums, bound = self.setup.compiled(gradient_sums), self.setup.lipschitz
        for batch, factors in batches or self.batches:
            sums(*batch, factors, bound, W, total)
            count += len(factors)
        return total / count

    def groups(self, size: int) -> Batches:
        """Disjoint batches of ``size`` records; what is left over is not read."""
        rows = np.concatenate([batch.rows for batch, _ in self.batches])
        labels = np.concatenate([batch.labels for batch, _ in self.batches])
        factors = np.concatenate([factors for _, factors in self.batches])
        return [
            (
                Batch(rows[low : low + size], labels[low : low + size]),
                factors[low : low + size],
            )
            for low in range(0, self.n - size + 1, size)
        ]
