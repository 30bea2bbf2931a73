"""Compiled steps of phased SGD on a loss smoothed in one dimension."""

import numpy as np
from numba import njit

from dperm.core.compiled import KERNEL, clamp, dot, fused

_L2, _BOX = 0, 1


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
        for j in range(d):
            x[j] = fused(-g, z[j], x[j])
        if shape == _BOX:
            for j in range(d):
                x[j] = clamp(x[j], radius)
        elif shape == _L2:
            size = dot(x, x)
            if size > radius * radius:
                shrink = radius / np.sqrt(size)
                for j in range(d):
                    x[j] *= shrink
        else:
            inside = 0.0
            for j in range(d):
                inside += np.abs(x[j] / radius) ** p
            if inside > 1.0:
                return -k
        for j in range(d):
            sums[j] += x[j]
    return rows.shape[0]
