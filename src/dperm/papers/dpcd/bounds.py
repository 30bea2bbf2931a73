"""The terms of Table 1 of Mangold et al. 2022 on a problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm.core.erm.optimum import Optimum
from dperm.core.erm.problem import Problem
from dperm.solvers.lanes.constants import largest_derivatives, strong_convexity


def terms(problem: Problem, optimum: Optimum) -> list[dict[str, Any]]:
    """Terms that the utility bounds compare, one row for DP-CD, one for the others.

    DP-CD: ||L||_{M^-1} R_M and ||L||^2_{M^-1} / mu_M. DP-SGD and DP-SVRG: Lambda R_I
    and Lambda^2 / mu_I. Logarithms and constants are left out, as in the paper;
    ``bound`` is the term times sqrt(p log(1/delta)) / (n epsilon), or its square.
    """
    gap = float(problem.objective(np.zeros(problem.p))[0]) - optimum.value
    M, w = problem.smoothness, optimum.w
    components, overall, which = lipschitz(problem, w)
    weighted = float(np.sqrt((components**2 / M).sum()))
    mu_M, mu_I = strong_convexity(problem)
    R_M = max(np.sqrt(gap), float(np.sqrt((M * w * w).sum())))
    R_I = max(np.sqrt(gap), float(np.linalg.norm(w)))
    rate = np.sqrt(problem.p * np.log(1 / problem.delta)) / (
        problem.n * problem.epsilon
    )
    found = {
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
            "strongly_convex_bound": (rate * constant) ** 2 / mu if mu > 0 else np.inf,
            "lipschitz_bound": which,
        }
        for algorithm, (constant, radius, mu) in found.items()
    ]


def lipschitz(problem: Problem, w: np.ndarray) -> tuple[np.ndarray, float, str]:
    """Component Lipschitz constants L (p,), the global one, and how they were bounded.

    See ``largest_derivatives``.
    """
    slopes, which = largest_derivatives(problem, w)
    components = (np.abs(problem.rows) * slopes[:, None]).max(axis=0)
    return components, float((problem.row_norms * slopes).max()), which
