"""Problems, settings and clock that the comparisons share."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from dperm.privacy.noise import streams
from dperm.problems.penalties import Penalty
from dperm.problems.problem import Problem, build
from dperm.solvers.batched import BatchedSettings

TURNS = 7
SIZES = {  # the papers' problems: n, p, loss
    "electricity": (45312, 8, "logistic"),
    "california": (20640, 8, "least_squares"),
    "sparse LASSO": (1000, 1000, "least_squares"),
}


def problem(n: int, p: int, loss: str) -> Problem:
    """A random problem of that size."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    y = np.sign(X[:, 0] + rng.standard_normal(n))
    made = build("bench", X, y, loss, Penalty(l1=0.01, l2=0.001))
    made.rows, made.row_norms, made.global_smoothness  # noqa: B018 (cached outside the clock)
    return made


def settings(count: int) -> BatchedSettings:
    """Settings of the useful part of the grids: nothing diverges."""
    return BatchedSettings(
        np.geomspace(1e-5, 1e-3, count), np.geomspace(0.1, 10, count), 1.0
    )


def in_turns(*calls: Callable[[], object]) -> list[float]:
    """Median seconds of each call, taken in turns after a warm-up."""
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(TURNS + 1):
        for call, spent in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            if turn:
                spent.append(time.perf_counter() - start)
    return [statistics.median(spent) for spent in times]


def solve(module, made: Problem, chosen: BatchedSettings, count: int, workers: int = 1):
    """Run a block of settings; the final weights."""
    options = module.Options()
    run = module.Run(made, chosen, streams(1), options, workers=workers, total=count)
    run.advance(count)
    return run.weights
