"""Compiled steps of phased SGD on a loss smoothed in one dimension."""

from numba import njit

from dperm.core.compiled import KERNEL, clamp, dot
from dperm.solvers.streams.phased_sgd import descend


@njit(**KERNEL)
def smoothed_steps(
    rows, labels, factors, hinge, r, shape, p, radius, eta, start, x, sums
):
    """Projected SGD of one lane from record ``start``; see ``phased_sgd``."""
    d = x.shape[0]
    for k in range(start, rows.shape[0]):
        z, c, y = rows[k], factors[k], labels[k]
        v = c * dot(z, x)
        if hinge:
            g = -y * min(max((1 - y * v + r) / (2 * r), 0.0), 1.0)
        else:
            g = clamp((v - y) / r, 1.0)
        g *= eta * c
        if not descend(g, z, shape, p, radius, x):
            return -k
        for j in range(d):
            sums[j] += x[j]
    return rows.shape[0]
