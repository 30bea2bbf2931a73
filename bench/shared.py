"""Problems, settings and clock that the comparisons share."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from dperm.privacy.noise import streams
from dperm.problems.losses import named
from dperm.problems.penalties import Penalty
from dperm.problems.problem import Problem, build
from dperm.solvers.batched import BatchedSettings

TURNS = 7
# Largest difference of weights, relative to the largest weight
ROUNDING = 1e-12
SIZES = {  # the papers' problems: n, p, loss
    "electricity": (45312, 8, "logistic"),
    "california": (20640, 8, "least_squares"),
    "sparse LASSO": (1000, 1000, "least_squares"),
}

Call = Callable[[], Any]
#: Makes a run ready, outside the clock; the call takes its steps and returns weights.
Begin = Callable[[], Call]


class Case(NamedTuple):
    """A kernel of ours and a C reference that computes the same weights."""

    solvers: str  #: that spend their time in it
    kernel: str
    problem: str
    steps: int
    ours: Begin
    theirs: Begin

    def difference(self) -> float:
        """The largest difference of their weights, relative to the largest weight.

        Raises AssertionError above ``ROUNDING``: they do different work.
        """
        ours = np.ravel(self.ours()())
        theirs = np.ravel(self.theirs()())
        assert ours.shape == theirs.shape, f"{self.kernel}: {ours.shape}"
        largest = float(np.abs(theirs).max())
        assert largest > 0, (
            f"{self.kernel} on {self.problem}: no weight has moved"
        )
        difference = float(np.abs(ours - theirs).max()) / largest
        assert difference <= ROUNDING, (
            f"{self.kernel} on {self.problem}: {difference:.1e} from C"
        )
        return difference

    def row(self) -> list[Any]:
        """Names, nanoseconds a step of ours and of C, and their ratio."""
        spent = begun_in_turns(self.ours, self.theirs)
        per_step = [seconds / self.steps * 1e9 for seconds in spent]
        names = [self.solvers, self.kernel, self.problem]
        return [*names, *per_step, per_step[0] / per_step[1]]


def dense_problem(n: int, p: int, loss: str) -> Problem:
    """A random problem of that size."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    y = np.sign(X[:, 0] + rng.standard_normal(n))
    problem = build("bench", X, y, loss, Penalty(l1=0.01, l2=0.001))
    problem.rows, problem.row_norms, problem.global_smoothness  # noqa: B018 (cached outside the clock)
    return problem


def sparse_problem(p: int, loss: str = "logistic", n: int = 1000) -> Problem:
    """A problem with ten non-zeros in every column.

    The penalty is so small that clipped derivatives, of 1e-5 at p = 10^6, move weights.
    """
    filled = 10
    rng = np.random.default_rng(0)
    indices = np.argsort(rng.random((p, 40)), axis=1)[:, :filled] * (n // 40)
    indices = np.sort(indices + rng.integers(0, n // 40, (p, filled)), axis=1)
    data = rng.standard_normal(p * filled)
    starts = np.arange(p + 1) * filled
    X = sparse.csc_array((data, indices.ravel(), starts), shape=(n, p))
    y = rng.choice([-1.0, 1.0], n)
    problem = build("sparse", X, y, loss, Penalty(l1=1e-7))
    problem.smoothness  # noqa: B018 (cached outside the clock)
    return problem


def settings(count: int) -> BatchedSettings:
    """Settings of the useful part of the grids: nothing diverges."""
    steps = np.geomspace(1e-5, 1e-3, count)
    return BatchedSettings(steps, np.geomspace(0.1, 10, count), 1.0, "tight")


def is_logistic(problem: Problem) -> bool:
    """The references know this loss and least squares."""
    return problem.loss is named("logistic")


def compressed(matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, indices and starts of a CSC or CSR array, as the references take them."""
    return (
        matrix.data,
        matrix.indices.astype(np.int32),
        matrix.indptr.astype(np.int32),
    )


def block_begin(
    module: Any,
    problem: Problem,
    chosen: BatchedSettings,
    count: int,
    options: Any,
) -> Begin:
    """``count`` steps of a block of settings; the final weights."""

    def begin() -> Call:
        run = module.Run(problem, chosen, streams(1), options, total=count)

        def steps() -> np.ndarray:
            run.advance(count)
            return run.weights

        return steps

    return begin


def in_turns(*calls: Call) -> list[float]:
    """Median seconds of each call, taken in turns after a warm-up."""
    return begun_in_turns(*[_begun(call) for call in calls])


def begun_in_turns(*begins: Begin) -> list[float]:
    """As ``in_turns``, for calls that are problem ready outside the clock.

    The seconds are those in which the processor worked for this thread, so that other
    programs on the machine count little.
    """
    times: list[list[float]] = [[] for _ in begins]
    for turn in range(TURNS + 1):
        for begin, spent in zip(begins, times, strict=True):
            call = begin()
            start = time.thread_time()
            call()
            if turn:
                spent.append(time.thread_time() - start)
    return [statistics.median(spent) for spent in times]


def _begun(call: Call) -> Begin:
    return lambda: call
