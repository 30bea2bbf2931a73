"""Least squares with known constants on few distinct records, each of them many times.

Coordinates come in pairs that are correlated within and not across, so that w*, M_j,
the curvature along every direction and the minimum are known; a design of one record a
coordinate stands for any number of records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import Problem, build


@dataclass(frozen=True)
class Pairs:
    """f(w) = sum_k M_k ((2 - phi_k) s_k^2 + phi_k (t_k - t*_k)^2) / 2.

    s_k and t_k are a pair's sum and difference over sqrt(2). Every coordinate of pair k
    has the smoothness M_k, and moves along the difference see phi_k of it: the smaller
    phi_k, the longer single coordinates take. At phi_k = 1 the pair is separable.

    Attributes
    ----------
    M, flatness, optimum : ndarray, shape (P,)
        M_k and phi_k; w* is (v_k, -v_k) on pair k.
    """

    M: np.ndarray
    flatness: np.ndarray
    optimum: np.ndarray

    @property
    def p(self) -> int:
        """Coordinates."""
        return 2 * len(self.M)

    @property
    def smoothness(self) -> np.ndarray:
        """M_j of single coordinates, shape (p,)."""
        return np.repeat(self.M, 2)

    @property
    def dominating(self) -> np.ndarray:
        """M of Assumption 3.6, which bounds the Hessian as a matrix; (p,)."""
        return float((2.0 - self.flatness).max()) * self.smoothness

    @property
    def convexity(self) -> float:
        """Strong convexity of f in the Euclidean norm."""
        return float((self.flatness * self.M).min())

    @property
    def w(self) -> np.ndarray:
        """w*, shape (p,)."""
        return np.stack((self.optimum, -self.optimum), axis=1).ravel()

    @property
    def start(self) -> float:
        """f(0), the excess of w = 0; the minimum is 0."""
        return float((self.M * self.flatness * self.optimum**2).sum())

    @property
    def clip(self) -> float:
        """The least C that clips no record at w = 0, where C_S = sqrt(M_S / sum M) C.

        A record touches one pair, on whose coordinates it is equally large. So clipping
        single coordinates turns its squared residual into Huber's loss, which is
        convex and C_j-Lipschitz everywhere: the theorem's assumptions hold.
        """
        gradients = self.p * self.M * self.flatness * self.optimum
        return float(
            (np.abs(gradients) * np.sqrt(self.smoothness.sum() / self.M)).max()
        )

    def hessian(self, pair: int) -> np.ndarray:
        """The Hessian on a pair, shape (2, 2)."""
        across = 1.0 - self.flatness[pair]
        return self.M[pair] * np.array([[1.0, across], [across, 1.0]])

    @cached_property
    def problem(self) -> Problem:
        """It on p distinct records; each stands for n / p of them."""
        X = np.zeros((self.p, self.p))
        for k, (M, phi) in enumerate(zip(self.M, self.flatness, strict=True)):
            along, across = (
                math.sqrt(self.p * M * part / 2) for part in (2 - phi, phi)
            )
            X[2 * k, 2 * k : 2 * k + 2] = along
            X[2 * k + 1, 2 * k : 2 * k + 2] = across, -across
        return build("pairs", X, X @ self.w, "least_squares", Penalty())


def instance(
    groups: int, levels: int, ratio: float, spacing: float, placement: float
) -> Pairs:
    """An instance by where its optimum sits among the M_j.

    Parameters
    ----------
    groups : int
        Pairs of every flatness; one of them is steep.
    levels : int
        Values of the flatness, 1, 1 / spacing, 1 / spacing^2, ...
    ratio : float
        M of the steep pairs; that of the others is 1.
    placement : float
        |w*_j| = M_j^placement: at -1/2 all coordinates have equal shares of the norm of
        M, at 0 equal sizes, above it the steep ones are the farthest from w = 0, which
        Section 4.3.2 assumes.
    """
    M = np.tile(np.where(np.arange(groups) == 0, ratio, 1.0), levels)
    flatness = np.repeat(float(spacing) ** -np.arange(levels), groups)
    return Pairs(M, flatness, M**placement)
