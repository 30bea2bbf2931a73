"""The loops over all records of full-batch solvers beside C.

They are products with all records by BLAS, and two kernels of ours between them: the
slopes of the loss, and their clipping.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from bench.reference import call
from bench.shared import SIZES, Begin, Call, Case, dense_problem, is_logistic
from dperm.privacy.noise import streams
from dperm.problems.losses import Loss
from dperm.problems.penalties import Penalty
from dperm.problems.problem import Problem
from dperm.solvers import records, registry
from dperm.solvers.full_batch import dp_gd, dp_minibatch
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.records import STEEP, Records

#: Solvers without a loop of their own beside C, with what they spend their time in.
WITHOUT = {
    "ada_ssp": "Gram matrix by BLAS",
    "dp_adaptive": "Gram matrix and gradients by BLAS, histograms by numpy",
    "dp_gram": "Gram matrix and gradients by BLAS",
    "dp_newton": "gradients and Hessians by BLAS",
    "dp_selection": "ranks by SciPy",
    "hessian_mixing": "Gram matrix and gradients by BLAS",
    "moments": "Gram matrix by BLAS",
}
SQUARES = ("ada_ssp", "moments")  # for least squares alone


def cases() -> Iterator[Case]:
    """Descents, and the gradient of an objective on clipped records."""
    for name, (n, p, loss) in SIZES.items():
        problem = dense_problem(n, p, loss)
        pair = descents(problem, dp_gd.Options())
        kernel = "BLAS, slopes, clips"
        yield Case("dp_gd", kernel, name, dp_gd.Options().steps, *pair)
        batches = dp_minibatch.Options()
        pair = descents(problem, batches)
        yield Case(
            "dp_minibatch", f"{kernel}, of a batch", name, batches.steps, *pair
        )
        if loss == "logistic":
            pair = pulls(problem, 10)
            solver = "objective_perturbation"
            yield Case(solver, "BLAS, slopes of its gradient", name, 10, *pair)


def descents(problem: Problem, options: dp_gd.Options) -> tuple[Begin, Begin]:
    """A run of DP-GD, or of its form with batches."""
    is_batched = isinstance(options, dp_minibatch.Options)
    module = dp_minibatch if is_batched else dp_gd
    scaled = Scaled(problem)
    scaled.hold_records()
    held = Records(problem, scaled.S, scaled.label)
    ledger = module.ledger(scaled, 1.0, options)
    clip = module.threshold(scaled, options.clip)
    size = dp_minibatch.batch(scaled, options) if is_batched else problem.n
    eta = options.step / (scaled.loss.curvature * problem.p)
    penalty = (scaled.l1.ravel(), scaled.l2.ravel())
    constants = (eta, options.momentum, clip, ledger.events[0].scale)

    def ours() -> Call:
        return module.Run(scaled, ledger, [streams(1)], options).solve

    def theirs() -> Call:
        u, gradient, velocity = (np.zeros(problem.p) for _ in range(3))
        drawn = streams(1)

        def steps() -> np.ndarray:
            batches = None
            if is_batched:
                choose = drawn.sampling.choice
                chosen = [
                    choose(problem.n, size, replace=False, shuffle=False)
                    for _ in range(options.steps)
                ]
                batches = np.stack(chosen).astype(np.intp)
            arrays = (held.rows, held.offset, held.norms, u)
            scratch = (gradient, velocity, batches)
            sizes = (size, problem.p, options.steps, is_logistic(problem))
            call(
                "dp_gd",
                drawn.noise,
                *arrays,
                *scratch,
                *sizes,
                *constants,
                *penalty,
            )
            return u / scaled.S

        return steps

    return ours, theirs


def pulls(problem: Problem, count: int) -> tuple[Begin, Begin]:
    """Gradients at a point of records clipped to the radius."""
    scaled = Scaled(problem)
    held = Records(problem, scaled.S)
    clipped = held.clipped(scaled.radius)
    u = np.random.default_rng(0).standard_normal((problem.p, 1)) / problem.p

    def ours() -> Call:
        def steps() -> np.ndarray:
            for _ in range(count):
                gradient = held.pull(u, scaled.radius)
            return gradient

        return steps

    def theirs() -> Call:
        gradient = np.empty(problem.p)

        def steps() -> np.ndarray:
            arrays = (clipped, held.offset, held.norms, u, gradient, None)
            for _ in range(count):
                sizes = (problem.n, problem.p, is_logistic(problem))
                call("clipped_gradient", *arrays, *sizes, STEEP)
            return gradient

        return steps

    return ours, theirs


def reasons() -> list[list[Any]]:
    """A row for each solver without a loop beside C, which says why."""
    n, p, _ = SIZES["electricity"]
    rows = []
    for solver, reason in WITHOUT.items():
        loss = "least_squares" if solver in SQUARES else "logistic"
        problem = replace(dense_problem(n, p, loss), penalty=Penalty(l2=0.001))
        share = kernel_share(registry.load(solver), problem)
        text = f"none: {reason}; slopes and clips are {share:.0%} of a fit"
        rows.append([solver, text, "electricity", None, None, None])
    return rows


def kernel_share(module: Any, problem: Problem) -> float:
    """The share of a fit's time that kernels of ours take, once they are compiled."""
    _fit(module, problem).solve()
    run = _fit(module, problem)
    spent: list[float] = []
    with (
        patch.object(records, "_clip", _clocked(records._clip, spent)),
        patch.object(Loss, "derivatives", _clocked(Loss.derivatives, spent)),
    ):
        start = time.thread_time()
        run.solve()
        return sum(spent) / (time.thread_time() - start)


def _fit(module: Any, problem: Problem) -> Any:
    """A run on records that are scaled, with nothing else known of them."""
    scaled = Scaled(problem)
    scaled.hold_records()
    options = module.Options()
    ledger = module.ledger(scaled, 1.0, options)
    return module.Run(scaled, ledger, [streams(1)], options)


def _clocked(function: Any, spent: list[float]) -> Any:
    """The function, which notes its seconds."""

    def clocked(*arguments: Any) -> Any:
        start = time.thread_time()
        returned = function(*arguments)
        spent.append(time.thread_time() - start)
        return returned

    return clocked
