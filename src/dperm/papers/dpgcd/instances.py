"""Problems with sparse solutions, whose support is known: Section 4's regime."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import Problem, build

NOISE = 0.1  # standard deviation of the labels' noise, ||w_true|| being 1
THRESHOLD = 0.3  # of the L1 norm, relative to a coefficient


@dataclass(frozen=True)
class Instance:
    """What a problem is drawn from.

    Attributes
    ----------
    p, n : int
        Features and records.
    tau : int
        Coefficients that are not zero, all of the same size 1 / sqrt(tau).
    imbalance : float
        sqrt(M_j) are lognormal with this standard deviation; the coefficients are
        divided by them, so that it changes the scales of the features alone.
    """

    p: int
    n: int
    tau: int
    imbalance: float = 0.0


def draw(at: Instance, seed: int, epsilon: float) -> Problem:
    """A LASSO with independent normal features.

    The penalty's weight is 0.3 of a coefficient, so that the solution has, where n is
    large against tau log p, the support that was drawn.
    """
    rng = np.random.default_rng(seed)
    X = np.empty((at.n, at.p), order="F")
    for column in X.T:
        rng.standard_normal(at.n, out=column)
        column -= column.mean()
        column /= column.std()
    true = np.zeros(at.p)
    places = rng.choice(at.p, at.tau, replace=False)
    true[places] = rng.choice([-1.0, 1.0], at.tau) / math.sqrt(at.tau)
    y = X[:, places] @ true[places] + NOISE * rng.standard_normal(at.n)
    if at.imbalance:
        X *= rng.lognormal(0.0, at.imbalance, at.p)
    weight = Penalty(l1=THRESHOLD / math.sqrt(at.tau))
    return build("sparse", X, y, "least_squares", weight, epsilon, 1.0 / at.n**2)
