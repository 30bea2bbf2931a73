"""The separable penalty psi_j(w) = l1 |w| + (l2 / 2) w^2 on the box [lower, upper].

L1, L2, elastic net and box constraints are all of this form, so that one proximal
operator serves every solver.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dperm.numerics.compiled import INLINE, clamp
from dperm.numerics.kernels import njit

_CHUNK = 1 << 17  # numbers processed at a time, so that they stay in the cache
_SQUARABLE = 1e150  # below it no sum of squares is infinite


@dataclass(frozen=True)
class Penalty:
    """Strengths and box of the penalty, the same for all coordinates."""

    l1: float = 0.0
    l2: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf

    @property
    def is_smooth(self) -> bool:
        """Whether it is a ridge or zero."""
        return not (self.l1 or np.isfinite((self.lower, self.upper)).any())

    def value(self, W: np.ndarray) -> np.ndarray:
        """The penalty psi of each row of W (L, p); infinity outside the box; (L,)."""
        W = np.atleast_2d(W)
        size = max(1, _CHUNK // W.shape[1])
        terms = [self._value(W[k : k + size]) for k in range(0, len(W), size)]
        return np.concatenate(terms) if terms else np.zeros(0)

    def _value(self, W: np.ndarray) -> np.ndarray:
        absolute = np.abs(W).sum(axis=1)
        inside = ~np.isnan(absolute)
        if np.isfinite((self.lower, self.upper)).any():
            inside &= ((self.lower <= W) & (self.upper >= W)).all(axis=1)
        total = self.l1 * absolute
        if self.l2 or not (absolute < _SQUARABLE).all():
            # 0 times infinity is NaN
            total = total + 0.5 * self.l2 * (W * W).sum(axis=1)
        return np.where(inside, total, np.inf)

    def conjugate(self, u: np.ndarray) -> float:
        """Conjugate sum_j max_a (u_j a - psi_j(a)); infinity where it is unbounded."""
        excess = soft_threshold(u, self.l1)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.where(excess == 0, 0.0, excess / self.l2)
        best = np.clip(best, self.lower, self.upper)
        if not np.isfinite(best).all():
            return float("inf")
        return float(u @ best - self.value(best)[0])

    def prox(self, v: np.ndarray, step: Any) -> np.ndarray:
        """Proximal operator of ``step`` times psi: threshold, shrink, project.

        ``step`` is a number, or an array of the shape of ``v``.
        """
        shrunk = soft_threshold(v, step * self.l1) / (1.0 + step * self.l2)
        return np.clip(shrunk, self.lower, self.upper)


def soft_threshold(v: np.ndarray, threshold: Any) -> np.ndarray:
    """Entries nearer to 0 by the threshold, at most to 0; shape of ``v``."""
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)


def prox_constants(
    penalty: Penalty, step: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Threshold and shrinkage of ``prox`` for each step size."""
    return step * penalty.l1, 1.0 / (1.0 + step * penalty.l2)


@njit(**INLINE)
def prox(v, threshold, shrink, lower, upper):
    """Proximal operator of step * psi_j at v, with the constants of ``prox_constants``.

    It applies a soft threshold, shrinks and projects. This is correct in one dimension,
    where the constrained minimiser of a convex function is the projection of the free
    one.
    """
    return min(max((v - clamp(v, threshold)) * shrink, lower), upper)
