"""Feasible sets: linear oracle, Euclidean projection, diameter.

Every function takes rows, (L, d), and treats each row separately. An oracle returns a
point of the set with the least inner product with a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dperm.numerics.compiled import INLINE, KERNEL, fused
from dperm.numerics.kernels import njit

Array = NDArray[np.float64]
_STEPS = 100  # at most, of Newton's method; few are needed
_NEAR = 1e-7
_TOLERANCE = 1e-13  # relative: on the last move, on the norm's power


def dual_exponent(p: float) -> float:
    """The q with 1/p + 1/q = 1.

    Raises ValueError if p is below 1: there is no such norm.
    """
    if not p >= 1:
        raise ValueError(f"p: expected 1 or more, found {p}")
    if p == 1:
        return math.inf
    return 1.0 if math.isinf(p) else p / (p - 1)


def norms(rows: Array, p: float) -> Array:
    """The l_p norm of each row, without overflow; shape (L,)."""
    size = np.abs(np.atleast_2d(rows))
    top = size.max(axis=1)
    if math.isinf(p):
        return top
    safe = np.where(top > 0, top, 1.0)
    with np.errstate(over="ignore"):  # of the norm itself
        return top * ((size / safe[:, None]) ** p).sum(axis=1) ** (1 / p)


@dataclass(frozen=True)
class Ball:
    """The l_p ball about zero, 1 <= p <= infinity.

    For p = 1 it is the cross-polytope with vertices +-radius e_j, for p = infinity a
    box. Raises ValueError if p is below 1 or the radius is not positive.
    """

    p: float
    radius: float = 1.0

    def __post_init__(self) -> None:
        dual_exponent(self.p)
        if not self.radius > 0:
            raise ValueError(
                f"radius: expected a positive one, found {self.radius}"
            )

    @property
    def diameter(self) -> float:
        """Diameter in the l_p norm, twice the radius."""
        return 2 * self.radius

    def oracle(self, g: Array) -> Array:
        """Return -radius sign(g) |g|^(q-1) / ||g||_q^(q-1); zero where g is zero."""
        g = np.atleast_2d(g)
        if self.p == 1:
            rows = np.arange(len(g))
            coordinate = np.abs(g).argmax(axis=1)
            corners = np.zeros_like(g)
            corners[rows, coordinate] = -self.radius * np.sign(
                g[rows, coordinate]
            )
            return corners
        if math.isinf(self.p):
            return -self.radius * np.sign(g)
        if self.p == 2:
            size = np.sqrt(np.einsum("ij,ij->i", g, g))
            return g * (-self.radius / np.where(size > 0, size, 1.0))[:, None]
        return self._smooth(g)

    def _smooth(self, g: Array) -> Array:
        size = np.abs(g)
        top = size.max(axis=1, keepdims=True)
        size /= np.where(top > 0, top, 1.0)
        powers = _power(size, 1 / (self.p - 1))
        lengths = (powers * size).sum(axis=1) ** (1 / self.p)
        return (
            -np.sign(g)
            * powers
            * (self.radius / np.maximum(lengths, 1e-300))[:, None]
        )

    def project(self, x: Array) -> Array:
        """Return the nearest points in Euclidean distance.

        Raises ValueError for p between 1 and 2, which no method projects to.
        """
        if 1 < self.p < 2:
            raise ValueError(f"p: expected 1, or 2 or more, found {self.p}")
        projected = np.array(np.atleast_2d(x), dtype=float)
        if math.isinf(self.p):
            return np.clip(projected, -self.radius, self.radius)
        if self.p > 2:
            _project(projected, self.p, self.radius)
            return projected
        outside = norms(projected, self.p) > self.radius
        far = projected[outside]
        if self.p == 2:
            projected[outside] = far * (self.radius / norms(far, 2))[:, None]
        else:
            projected[outside] = np.sign(far) * _project_simplex(
                np.abs(far), self.radius
            )
        return projected


def _power(size: Array, exponent: float) -> Array:
    """Elementwise power; integer exponents by multiplication, which is faster."""
    if exponent == round(exponent) and exponent <= 64:
        return size ** round(exponent)
    return size**exponent


def _project_simplex(x: Array, total: float) -> Array:
    """The nearest points of {y >= 0, sum y = total} to rows (L, d).

    Held, Wolfe and Crowder 1974; Duchi et al. 2008, Figure 1.
    """
    ordered = -np.sort(-x, axis=1)
    excess = np.cumsum(ordered, axis=1) - total
    counts = np.arange(1, x.shape[1] + 1)
    support_size = (ordered * counts > excess).sum(axis=1)
    shift = excess[np.arange(len(x)), support_size - 1] / support_size
    return np.maximum(x - shift[:, None], 0.0)


@njit(**INLINE)
def _raised(y, exponent, whole_exponent):
    """y^exponent, by multiplication where the exponent is a whole number."""
    if whole_exponent < 0:
        return y**exponent
    power = 1.0
    for _ in range(whole_exponent):
        power *= y
    return power


@njit(**INLINE)
def _root(y, size, t, p, whole_exponent):
    """The root of y + t y^(p-1) = size, from a y above it."""
    for _ in range(_STEPS):
        power = t * _raised(y, p - 2, whole_exponent)
        move = fused(y, 1 + power, -size) / fused(p - 1, power, 1.0)
        y -= move
        if move <= _NEAR * y:  # the next move would be its square
            break
    return y


@njit(**KERNEL)
def _project(rows, p, radius):
    """Project rows (L, d) in place, p > 2, where bisection would take too long.

    y + t y^(p-1) = |x| for the t with ||y||_p = 1. The sum of y^p is convex and falls
    with t, and so does every y: Newton's method in t from below and in y from above
    never passes the root. As y <= 1, t is at least the largest |x| minus 1, where far
    points start.
    """
    whole_exponent = int(p) - 2 if p == np.floor(p) and p <= 16 else -1
    for row in rows:
        y = np.abs(row) / radius
        steps = 0
        t = max(0.0, y.max() - 1)
        if t > 0:
            steps = 1
            for j in range(y.shape[0]):
                y[j] = min(y[j], (y[j] / t) ** (1 / (p - 1)))
                y[j] = _root(
                    y[j], np.abs(row[j]) / radius, t, p, whole_exponent
                )
        while steps < _STEPS:
            total = 0.0
            slope = 0.0
            for j in range(y.shape[0]):
                power = _raised(y[j], p - 2, whole_exponent)
                lowered = power * y[j]
                total = fused(lowered, y[j], total)
                slope += lowered * lowered / fused(t * (p - 1), power, 1.0)
            if total <= 1 + _TOLERANCE:
                break
            steps += 1
            t += (total - 1) / (p * slope)
            for j in range(y.shape[0]):
                y[j] = _root(
                    y[j], np.abs(row[j]) / radius, t, p, whole_exponent
                )
        if steps:
            for j in range(y.shape[0]):
                row[j] = radius * y[j] * np.sign(row[j])
