"""The utility bounds of Mangold et al. 2022: terms of Table 1, and Theorem 3.3.

Theorem 3.3 is taken with its constants: equations 67 to 71.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dperm.privacy.noise import streams
from dperm.problems.optimum import Optimum
from dperm.problems.problem import Problem
from dperm.solvers.batched import BatchedSettings, dp_cd
from dperm.solvers.batched.constants import (
    largest_derivatives,
    strong_convexity,
)

CASES = ("convex", "strongly convex")  # of Theorem 3.3


def compared(problem: Problem, optimum: Optimum) -> list[dict[str, Any]]:
    """Terms that the utility bounds compare, one row for DP-CD, one for the others.

    DP-CD: ||L||_{M^-1} R_M and ||L||^2_{M^-1} / mu_M. DP-SGD and DP-SVRG: Lambda R_I
    and Lambda^2 / mu_I. Logarithms and constants are left out, as in the paper;
    ``bound`` is the term times sqrt(p log(1/delta)) / (n epsilon), or its square.
    """
    gap = float(problem.objective(np.zeros(problem.p))[0]) - optimum.value
    M = problem.smoothness
    w = optimum.w
    components, overall, which = lipschitz(problem, w)
    weighted = float(np.sqrt((components**2 / M).sum()))
    mu_M, mu_I = strong_convexity(problem)
    R_M = max(np.sqrt(gap), float(np.sqrt((M * w * w).sum())))
    R_I = max(np.sqrt(gap), float(np.linalg.norm(w)))
    rate = np.sqrt(problem.p * np.log(1 / problem.delta)) / (
        problem.n * problem.epsilon
    )
    constants_of = {
        "DP-CD": (weighted, R_M, mu_M),
        "DP-SGD, DP-SVRG": (overall, R_I, mu_I),
    }
    return [
        {
            "problem": problem.name,
            "algorithm": algorithm,
            "lipschitz": constant,
            "radius": radius,
            "strong_convexity": mu,
            "convex_term": constant * radius,
            "strongly_convex_term": constant**2 / mu if mu > 0 else np.inf,
            "convex_bound": rate * constant * radius,
            "strongly_convex_bound": (rate * constant) ** 2 / mu
            if mu > 0
            else np.inf,
            "lipschitz_bound": which,
        }
        for algorithm, (constant, radius, mu) in constants_of.items()
    ]


def lipschitz(
    problem: Problem, w: np.ndarray
) -> tuple[np.ndarray, float, str]:
    """Component Lipschitz constants L (p,), the global one, and how they were bounded.

    See ``largest_derivatives``.
    """
    slopes, which = largest_derivatives(problem, w)
    components = (np.abs(problem.rows) * slopes[:, None]).max(axis=0)
    return components, float((problem.row_norms * slopes).max()), which


# --- Theorem 3.3 ----------------------------------------------------------------------


@dataclass(frozen=True)
class Terms:
    """Parameters that the theorem sets, and its bound."""

    lipschitz: np.ndarray  #: shape (p,); L_j
    start: float  #: F(0) - F*
    #: inner, periods: K and T; the theorem needs both to be at least 1
    inner: float
    periods: float
    #: on the expected excess, by equation 68 or 71; where T would be negative, the
    #: target error, which then exceeds ``start``
    bound: float

    @property
    def epochs(self) -> float:
        """The smaller of K and T: below 1 there is nothing to run."""
        return min(self.inner, self.periods)


def terms(problem: Problem, optimum: Optimum, case: str) -> Terms:
    """K, T and the bound of a problem; ``case`` is one of ``CASES``."""
    w = optimum.w
    M = problem.smoothness
    p = problem.p
    L, _, _ = lipschitz(problem, w)
    size = float((L**2 / M).sum())  # ||L||^2 in the norm of M^-1
    start = float(problem.objective(np.zeros((1, p)))[0]) - optimum.value
    rate = math.log(1 / problem.delta) / (problem.n * problem.epsilon) ** 2
    if case == "convex":
        radius = math.sqrt(max(float((M * w * w).sum()), start))
        inner = radius * math.sqrt(p / (8 * size * rate))
        bound = 9 * radius * math.sqrt(p * size * rate)
        return Terms(L, start, inner, 1.0, bound)
    mu = strong_convexity(problem)[0]
    if mu <= 0:
        return Terms(L, start, math.inf, 0.0, math.inf)
    inner = 2 * p * (1 + 1 / mu)
    level = 12 * inner * size * rate
    periods = math.log2(start / level)
    return Terms(L, start, inner, periods, (1 + max(0.0, periods)) * level)


class AsPrinted(dp_cd.Run):
    """Algorithm 1 with steps 1 / M_j and the noise of Theorem 3.1; clips at L_j.

    Where the loss has no Lipschitz constant, the clip makes L_j one.
    """

    def __init__(
        self, problem: Problem, terms: Terms, seed: int, periods: int
    ):
        count = periods * max(1, round(terms.inner))
        rate = math.log(1 / problem.delta) / (problem.n * problem.epsilon) ** 2
        self.lipschitz = terms.lipschitz
        options = dp_cd.Options("uniform", periods=periods)
        # a deviation of sqrt(12 T K log(1 / delta)) L_j / (n epsilon), Theorem 3.1
        noise = problem.n / 2 * math.sqrt(12 * count * rate)
        settings = BatchedSettings(np.ones(1), np.ones(1), noise)
        super().__init__(
            problem, settings, streams(seed), options, total=count
        )
        self.advance(count)

    def shares(self, M: np.ndarray) -> np.ndarray:
        """L_j, as the setting's clip is 1."""
        return self.lipschitz


def run(problem: Problem, terms: Terms, seed: int) -> float:
    """F at the end of one run with the theorem's own K, T and noise."""
    done = AsPrinted(problem, terms, seed, max(1, round(terms.periods)))
    return float(problem.objective(done.weights)[0])
