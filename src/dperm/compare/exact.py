"""The minimiser without privacy, its intercept not penalised: ``epsilon=inf``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import linalg

from dperm.core.erm.optimum import NotCertifiedError, solve
from dperm.core.erm.problem import Problem

STEPS = 50
ENOUGH = 1e-14  # relative to the weights, the least Newton step that matters


def minimiser(problem: Problem, fit_intercept: bool) -> np.ndarray:
    """Weights (p,) of a problem whose last column is the intercept's, if there is one.

    The start is the certified optimum, whose intercept has a small penalty. Newton
    steps on the weights that are not 0 then remove that penalty.

    Raises ValueError if there is no minimiser: separable classes without a penalty.
    """
    try:
        w = solve(replace(problem, public=None)).w
    except NotCertifiedError as error:
        raise ValueError(f"l1, l2: {error}") from error
    l1 = np.full(problem.p, problem.penalty.l1)
    l2 = np.full(problem.p, problem.penalty.l2)
    free = (w != 0) | (l1 == 0)
    if fit_intercept:
        l1[-1] = l2[-1] = 0.0
        free[-1] = True
    A: Any = problem.A[:, np.flatnonzero(free)]
    A = A.toarray() if problem.is_sparse else A
    unit = np.sqrt(np.maximum((A * A).mean(axis=0), 1e-300))
    A, l1, l2, w_free = A / unit, l1[free] / unit, l2[free] / unit**2, w[free] * unit
    for _ in range(STEPS):
        margins = A @ w_free + problem.offset
        slope = A.T @ problem.derivatives(margins) / problem.n
        slope += l2 * w_free + l1 * np.sign(w_free)
        bent = A.T @ (problem.loss.second(margins)[:, None] * A) / problem.n
        move = linalg.lstsq(bent + np.diag(l2), slope)[0]
        w_free = w_free - move
        if np.abs(move).max() <= ENOUGH * np.abs(w_free).max():
            break
    found = np.zeros(problem.p)
    found[free] = w_free / unit
    return found
