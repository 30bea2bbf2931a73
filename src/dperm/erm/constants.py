"""Constants of a problem of which utility bounds are made."""

from __future__ import annotations

import numpy as np

from dperm.erm.losses import LEAST_SQUARES
from dperm.erm.problem import Problem


def largest_derivatives(problem: Problem, w: np.ndarray) -> tuple[np.ndarray, str]:
    """The largest derivative of each record's loss, shape (n,), and how it is bounded.

    That of the logistic loss is at most 1. That of least squares has no bound; the
    larger of a record's residuals at 0 and at w (p,) takes its place.
    """
    if problem.loss.code != LEAST_SQUARES:
        return np.ones(problem.n), "global"
    ends = (problem.offset, problem.A @ w + problem.offset)
    largest = np.maximum(*(np.abs(end) for end in ends))
    return largest, "largest residual at 0 and at w*"


def strong_convexity(problem: Problem) -> tuple[float, float]:
    """mu_M and mu_I of F: by the Gram matrix for least squares, else the L2 term."""
    M, l2 = problem.smoothness, problem.penalty.l2
    if problem.loss.code != LEAST_SQUARES:
        return l2 / float(M.max()), l2
    gram = problem.A.T @ problem.A / problem.n
    root = 1.0 / np.sqrt(M)
    scaled = np.linalg.eigvalsh(root[:, None] * gram * root)[0] + l2 / M.max()
    plain = np.linalg.eigvalsh(gram)[0] + l2
    floor = 1e-10  # eigenvalues of a singular matrix come out as rounding errors
    return (float(scaled) if scaled > floor else 0.0,
            float(plain) if plain > floor * np.trace(gram) else 0.0)  # fmt: skip
