"""The l_p setup of stochastic convex optimisation: loss, norm, dimension, constants.

A record is (x, y) with ||x||_q <= 1 and |y| <= 1; its loss is a function of <x, w>, y.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dperm.problems.losses import named
from dperm.problems.sets import Ball, dual_exponent

LABEL_BOUND = 1.0


@dataclass(frozen=True)
class Setup:
    """The l_p setup: loss, norm, dimension and radius of the ball."""

    loss: str  #: name of one of ``dperm.problems.losses``, a function of <x, w> and y
    p: float  #: norm of the ball, 1 to infinity
    d: int  #: dimension
    radius: float = 1.0

    def __post_init__(self) -> None:
        named(self.loss)

    @cached_property
    def q(self) -> float:
        """The dual exponent."""
        return dual_exponent(self.p)

    @cached_property
    def ball(self) -> Ball:
        """The feasible set."""
        return Ball(self.p, self.radius)

    @cached_property
    def diameter(self) -> float:
        """M, the diameter in l_p."""
        return self.ball.diameter

    @cached_property
    def euclidean_diameter(self) -> float:
        """The diameter in l_2: d^(1/2 - 1/p) M for p above 2."""
        return float(self.d ** max(0.0, 0.5 - 1 / self.p) * self.diameter)

    @cached_property
    def lipschitz(self) -> float:
        """L0: largest |phi'| on the ball, for records of unit l_q norm."""
        loss = named(self.loss)
        return loss.lipschitz(loss.reach(self.radius, LABEL_BOUND))

    @cached_property
    def euclidean_lipschitz(self) -> float:
        """Largest l_2 norm of a gradient: L0 d^(1/2 - 1/q) for q above 2."""
        return float(self.lipschitz * self.d ** max(0.0, 0.5 - 1 / self.q))

    @cached_property
    def smoothness(self) -> float:
        """L1: largest phi''."""
        return named(self.loss).curvature

    def vertices(self, columns: np.ndarray, signs: np.ndarray) -> np.ndarray:
        """Vertices radius sign_k e_(column_k) of the l_1 ball, (k, d)."""
        corners = np.zeros((len(columns), self.d))
        corners[np.arange(len(columns)), columns] = self.radius * signs
        return corners

    def compiled(self, kernel: Any) -> Any:
        """The kernel, compiled for this loss."""
        return named(self.loss).compiled(kernel)
