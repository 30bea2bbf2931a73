"""Certified minima over a feasible set, from which excess risks are measured.

Accelerated projected gradient with restarts (Beck and Teboulle 2009; O'Donoghue and
Candes 2015). The certificate is the Frank-Wolfe gap max_s <x - s, gradient f(x)>.
"""

from __future__ import annotations

import numpy as np

from dperm.problems.problem import Problem
from dperm.problems.sets import Ball
from dperm.solvers.distributed.columns import Columns

_POWER_STEPS = 30
# Factor on the curvature by power steps, which is a little too low
_SAFETY = 1.05


def minimum(
    problem: Problem,
    feasible: Ball,
    columns: Columns,
    precision: float,
    count: int,
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
    top = top_eigenvalue(columns, _POWER_STEPS)
    step = 1.0 / (_SAFETY * problem.loss.curvature * top / problem.n)

    def slope(x: np.ndarray) -> np.ndarray:
        """Gradient of the smooth part at x; (d,)."""
        margins = columns.matrix @ x + problem.offset
        return columns.products(problem.derivatives(margins)) / problem.n

    start = problem.mean_loss(problem.offset)
    x = ahead = np.zeros(problem.p)
    loss = start
    gap = np.inf
    momentum = 1.0
    for k in range(count):
        moved = feasible.project(ahead - step * slope(ahead))[0]
        if (ahead - moved) @ (moved - x) > 0:  # the momentum points uphill
            momentum = 1.0
        following = 0.5 + np.sqrt(0.25 + momentum**2)
        ahead = moved + (momentum - 1.0) / following * (moved - x)
        x = moved
        momentum = following
        if k % 10 == 9:
            loss = problem.mean_loss(columns.matrix @ x + problem.offset)
            down = slope(x)
            gap = float(down @ x - down @ feasible.oracle(down)[0])
            if gap <= precision * start:
                break
    return loss, gap


def top_eigenvalue(columns: Columns, steps: int = 50) -> float:
    """The largest eigenvalue of A^T A by power steps from a fixed start."""
    x = np.ones(columns.p) / np.sqrt(columns.p)
    eigenvalue = 1.0
    for _ in range(steps):
        x = columns.products(columns.matrix @ x)
        eigenvalue = float(np.linalg.norm(x))
        x /= max(eigenvalue, 1e-300)
    return eigenvalue
