"""Sums of clipped gradients over a batch of records, compiled."""

from __future__ import annotations

from numba import njit

from dperm.core.compiled import KERNEL, apart, clamp
from dperm.core.erm.losses import slope


@njit(**KERNEL)
def gradient_sums(rows, labels, factors, bound, W, out):
    """Add the records' gradients at each row of W, clipped to the bound, to out (L, d).

    ``factors`` give the rows unit dual norm, so that clipping phi' clips the gradient.
    """
    for lane in range(W.shape[0]):
        w, total = W[lane], out[lane]
        for i in range(rows.shape[0]):
            v = 0.0
            for j in range(w.shape[0]):
                v += rows[i, j] * w[j]
            c = factors[i]
            g = c * clamp(slope(apart(c * v), labels[i]), bound)
            for j in range(w.shape[0]):
                total[j] += g * rows[i, j]


@njit(**KERNEL)
def difference_sums(rows, labels, factors, bound, W, V, out):
    """Add the clipped gradients at W less those at V, both (L, d), to out (L, d)."""
    for lane in range(W.shape[0]):
        w, u, total = W[lane], V[lane], out[lane]
        for i in range(rows.shape[0]):
            v, before = 0.0, 0.0
            for j in range(w.shape[0]):
                x = rows[i, j]
                v += x * w[j]
                before += x * u[j]
            c, y = factors[i], labels[i]
            g = clamp(slope(apart(c * v), y), bound)
            g = c * (g - clamp(slope(c * before, y), bound))
            for j in range(w.shape[0]):
                total[j] += g * rows[i, j]
