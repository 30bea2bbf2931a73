"""Compiled projection onto l_p balls, 2 < p < infinity, for methods that project often.

``erm.sets`` bisects for the multiplier and is exact to the last digits, but takes some
milliseconds per point: too long for a run that leaves the ball at every other record.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dperm.core.compiled import INLINE, KERNEL, fused
from dperm.core.erm.sets import Array, Ball

_STEPS = 100  # at most, of either Newton method; few are needed
_NEAR, _CLOSE = 1e-7, 1e-13  # relative: on the last move, on the norm's power


class CompiledBall(Ball):
    """A ball that projects by Newton's method where 2 < p < infinity."""

    def project(self, x: Array) -> Array:
        """Project each row to the nearest point in Euclidean distance."""
        if not 2 < self.p < np.inf:
            return super().project(x)
        found = np.array(np.atleast_2d(x), dtype=float)
        _project(found, self.p, self.radius)
        return found


@njit(**INLINE)
def _raised(y, exponent, whole):
    """y^exponent, by multiplication where the exponent is a whole number."""
    if whole < 0:
        return y**exponent
    found = 1.0
    for _ in range(whole):
        found *= y
    return found


@njit(**INLINE)
def _shrunk(y, size, t, p, whole):
    """The root of y + t y^(p-1) = size, from a y above it."""
    for _ in range(_STEPS):
        power = t * _raised(y, p - 2, whole)
        move = fused(y, 1 + power, -size) / fused(p - 1, power, 1.0)
        y -= move
        if move <= _NEAR * y:  # the next move would be its square
            break
    return y


@njit(**KERNEL)
def _project(rows, p, radius):
    """Project rows (L, d) in place: y + t y^(p-1) = |x| for the t with ||y||_p = 1.

    The sum of y^p is convex and falls with t, and so does every y: Newton's method in t
    from below and in y from above never passes the root. As y <= 1, t is at least the
    largest |x| minus 1, where far points start.
    """
    whole = int(p) - 2 if p == np.floor(p) and p <= 16 else -1
    for row in rows:
        y, steps = np.abs(row) / radius, 0
        t = max(0.0, y.max() - 1)
        if t > 0:
            steps = 1
            for j in range(y.shape[0]):
                y[j] = min(y[j], (y[j] / t) ** (1 / (p - 1)))
                y[j] = _shrunk(y[j], np.abs(row[j]) / radius, t, p, whole)
        while steps < _STEPS:
            total, slope = 0.0, 0.0
            for j in range(y.shape[0]):
                power = _raised(y[j], p - 2, whole)
                lowered = power * y[j]
                total = fused(lowered, y[j], total)
                slope += lowered * lowered / fused(t * (p - 1), power, 1.0)
            if total <= 1 + _CLOSE:
                break
            steps += 1
            t += (total - 1) / (p * slope)
            for j in range(y.shape[0]):
                y[j] = _shrunk(y[j], np.abs(row[j]) / radius, t, p, whole)
        if steps:
            for j in range(y.shape[0]):
                row[j] = radius * y[j] * np.sign(row[j])
