"""Certified minima over a feasible set, from which excess risks are measured.

Accelerated projected gradient with restarts (Beck and Teboulle 2009; O'Donoghue and
Candes 2015). The certificate is the Frank-Wolfe gap max_s <x - s, gradient f(x)>.
"""

from __future__ import annotations

import numpy as np

from dperm.core.erm.problem import Problem
from dperm.core.erm.sets import Ball
from dperm.solvers.distributed.columns import Columns

_POWER_STEPS = 30
_SAFETY = 1.05  # factor on the curvature by power steps, which is a little too low


def minimum(
    problem: Problem,
    feasible: Ball,
    precision: float = 1e-4,
    count: int = 500,
    columns: Columns | None = None,
) -> tuple[float, float]:
    """Minimum of f over a set that contains 0.

    Parameters
    ----------
    feasible : Ball
        A step uses its projection, the certificate its oracle.
    precision : float
        Gap over f(0) at which to stop.
    count : int
        Maximum number of iterations.

    Returns
    -------
    value, gap : float
        f(x), and a bound on f(x) - min f.
    """
    columns = columns or Columns(problem.A)
    step = 1.0 / (_SAFETY * problem.loss.curvature * _top(columns) / problem.n)
    start = problem.mean_loss(problem.offset)
    x = ahead = np.zeros(problem.p)
    value, gap, momentum = start, np.inf, 1.0
    for k in range(count):
        slope = _slope(problem, columns, ahead)
        moved = feasible.project(ahead - step * slope)[0]
        if (ahead - moved) @ (moved - x) > 0:  # the momentum points uphill
            momentum = 1.0
        following = 0.5 + np.sqrt(0.25 + momentum**2)
        ahead = moved + (momentum - 1.0) / following * (moved - x)
        x, momentum = moved, following
        if k % 10 == 9:
            value, gap = _certified(problem, columns, x, feasible)
            if gap <= precision * start:
                break
    return value, gap


def _slope(problem: Problem, columns: Columns, x: np.ndarray) -> np.ndarray:
    margins = columns.matrix @ x + problem.offset
    return columns.products(problem.derivatives(margins)) / problem.n


def _certified(
    problem: Problem, columns: Columns, x: np.ndarray, feasible: Ball
) -> tuple[float, float]:
    """f(x) and its Frank-Wolfe gap."""
    slope = _slope(problem, columns, x)
    value = problem.mean_loss(columns.matrix @ x + problem.offset)
    return value, float(slope @ x - slope @ feasible.oracle(slope)[0])


def _top(columns: Columns) -> float:
    """The largest eigenvalue of A^T A, by power steps from a fixed start."""
    x, value = np.ones(columns.p) / np.sqrt(columns.p), 1.0
    for _ in range(_POWER_STEPS):
        x = columns.products(columns.matrix @ x)
        value = float(np.linalg.norm(x))
        x /= max(value, 1e-300)
    return value
