"""Constants of a problem that utility bounds contain."""

from __future__ import annotations

import numpy as np

from dperm.problems.problem import Problem


def largest_derivatives(
    problem: Problem, w: np.ndarray
) -> tuple[np.ndarray, str]:
    """The largest |phi'| of each record, shape (n,), and how it is bounded.

    Where the loss has no bound, as least squares, it is the larger of the values at 0
    and at w (p,).
    """
    bound = problem.loss.lipschitz(np.inf)
    if np.isfinite(bound):
        return np.full(problem.n, bound), "global"
    ends = (problem.offset, problem.A @ w + problem.offset)
    largest = np.maximum(*(np.abs(problem.derivatives(end)) for end in ends))
    return largest, "largest residual at 0 and at w*"


def strong_convexity(problem: Problem) -> tuple[float, float]:
    """Constants mu_M and mu_I of F: from the Gram matrix if f is quadratic, else L2."""
    M = problem.smoothness
    l2 = problem.penalty.l2
    if not problem.loss.quadratic:
        return l2 / float(M.max()), l2
    gram = problem.A.T @ problem.A / problem.n
    root = 1.0 / np.sqrt(M)
    scaled = np.linalg.eigvalsh(root[:, None] * gram * root)[0] + l2 / M.max()
    plain = np.linalg.eigvalsh(gram)[0] + l2
    # Eigenvalues of a singular matrix come out as rounding errors
    floor = 1e-10
    return (
        float(scaled) if scaled > floor else 0.0,
        float(plain) if plain > floor * np.trace(gram) else 0.0,
    )
