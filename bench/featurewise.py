"""Frank-Wolfe that keeps residual and gradient up to date, against recomputing them."""

from __future__ import annotations

import numpy as np

from bench.shared import in_turns
from dperm.papers.dpbcfw.runs import synthetic
from dperm.solvers.distributed.columns import Columns
from dperm.solvers.frank_wolfe.bcfw import step_size
from dperm.solvers.frank_wolfe.iterate import Iterate, iterate

STEPS = 50
SIZES = ((2000, 20000, 0.1), (2000, 20000, 0.01), (200, 20000, 0.01))
GROWTH = ((1000, 5000), (1000, 10000), (1000, 20000), (1000, 40000))


def run(at: Iterate, radius: float) -> np.ndarray:
    """Steps of FW on an iterate of either kind."""
    for t in range(STEPS):
        gradient = at.gradient()
        j = int(np.argmax(np.abs(gradient)))
        vertex = -radius if gradient[j] > 0 else radius
        at.combine(step_size(t, 1.0), np.array([j]), np.array([vertex]))
    return at.x


def recomputed(problem, columns: Columns, radius: float) -> np.ndarray:
    """The same steps from x alone: margins and gradient from the whole design."""
    x, A = np.zeros(problem.p), columns.matrix
    for t in range(STEPS):
        margins = A @ x + problem.offset
        gradient = columns.products(problem.derivatives(margins)) / problem.n
        j, gamma = int(np.argmax(np.abs(gradient))), step_size(t, 1.0)
        x *= 1 - gamma
        x[j] -= gamma * radius * np.sign(gradient[j])
    return x


def against_recomputation() -> list[list]:
    """Microseconds a step at d = 20000; an iterate of each kind, and from scratch."""
    rows = []
    for n, d, density in SIZES:
        at = synthetic(0, n, d, density, 0.01)
        columns, radius = at.columns, 0.25 * at.radius
        columns.rows  # noqa: B018 (made outside the clock)
        kept = run(iterate(at.problem, columns), radius)
        fresh = recomputed(at.problem, columns, radius)
        np.testing.assert_allclose(kept, fresh, rtol=1e-8, atol=1e-10)
        spent = in_turns(
            lambda a=at, c=columns, r=radius: run(iterate(a.problem, c), r),
            lambda a=at, c=columns, r=radius: run(Iterate(a.problem, c), r),
            lambda a=at, c=columns, r=radius: recomputed(a.problem, c, r),
        )
        each = [seconds / STEPS * 1e6 for seconds in spent]
        rows.append([f"{n} x {d}, {density:.0%}", *each, each[2] / each[0]])
    return rows


def growth() -> list[list]:
    """Microseconds a step as d doubles, n and density as they are."""
    rows = []
    for n, d in GROWTH:
        at = synthetic(0, n, d, 0.01, 0.01)
        columns, radius = at.columns, 0.25 * at.radius
        columns.rows  # noqa: B018
        spent = in_turns(
            lambda a=at, c=columns, r=radius: run(iterate(a.problem, c), r),
            lambda a=at, c=columns, r=radius: recomputed(a.problem, c, r),
        )
        each = [seconds / STEPS * 1e6 for seconds in spent]
        rows.append([d, *each, each[1] / each[0]])
    return rows
