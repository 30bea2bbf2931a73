"""What is public of a problem, in units of its public scales: x / S, u = S w."""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm.privacy.events import LABEL_SCALE, SMOOTHNESS
from dperm.problems.penalties import soft_threshold
from dperm.problems.problem import Problem
from dperm.solvers.scales import column_scales, is_declared, label_scale


class PublicView:
    """The sizes, loss, scales and penalty of a problem, without its records.

    Attributes
    ----------
    n, p : int
    loss, penalty, epsilon, delta
        As the problem's.
    S : ndarray, shape (p,)
    label : float
        Scale of the labels; 1 where they are signs.
    given : tuple of str
        Public information.
    """

    def __init__(self, problem: Problem):
        self.name = problem.name
        self.loss = problem.loss
        self.penalty = problem.penalty
        self.n = problem.n
        self.p = problem.p
        self.epsilon = problem.epsilon
        self.delta = problem.delta
        self.S = column_scales(problem)
        self.label = label_scale(problem)
        self.given = problem.given
        if not is_declared(problem):
            read = (SMOOTHNESS, LABEL_SCALE) if self.real else (SMOOTHNESS,)
            self.given = (*problem.given, *read)

    @property
    def real(self) -> bool:
        """Whether labels are real numbers, not signs."""
        return self.loss.labels != "sign"

    @property
    def radius(self) -> float:
        """R = sqrt(p)."""
        return float(np.sqrt(self.p))

    # --- the penalty, per record, in units of the scales ------------------------------

    @property
    def l1(self) -> np.ndarray:
        """Weights of |u_j|, shape (p, 1)."""
        return (self.penalty.l1 / self.S)[:, None]

    @property
    def l2(self) -> np.ndarray:
        """Weights of u_j^2 / 2, shape (p, 1)."""
        return (self.penalty.l2 / self.S**2)[:, None]

    @property
    def is_smooth(self) -> bool:
        """Whether the penalty is a ridge or zero."""
        return self.penalty.is_smooth

    def prox(self, u: np.ndarray, step: Any) -> np.ndarray:
        """Proximal operator of step times the penalty, at u (p, L)."""
        thresholded = soft_threshold(u, step * self.l1)
        return self.boxed(thresholded / (1.0 + step * self.l2))

    def boxed(self, u: np.ndarray) -> np.ndarray:
        """Nearest point to u (p, L) in the box, which bounds the weights u / S."""
        ends = (self.penalty.lower, self.penalty.upper)
        if not np.isfinite(ends).any():
            return u
        low, high = (end * self.S[:, None] for end in ends)
        return np.clip(u, low, high)
