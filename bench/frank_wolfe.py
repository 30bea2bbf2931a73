"""Frank-Wolfe solvers beside C: runs on sparse columns, their noise included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from bench.reference import address, call
from bench.shared import (
    Begin,
    Call,
    Case,
    compressed,
    is_logistic,
    sparse_problem,
)
from dperm.privacy.noise import streams
from dperm.problems.problem import Problem
from dperm.solvers.distributed.bounds import clip_problem
from dperm.solvers.distributed.columns import Columns, edges
from dperm.solvers.distributed.node import shared_sketch
from dperm.solvers.frank_wolfe import Noise, bcfw, dp_bcfw, dp_fw, silent

COUNT = 100  # steps, as in the paper
BOUND = 4.0  # on entries and labels
# As large as the gradient's entries, so that both decide which vertex is taken.
NOISE = replace(silent(COUNT), index_scale=0.0005, sketch_scale=0.1)


def cases() -> Iterator[Case]:
    """Every kernel at the size of the paper's data: 1000 records, 10,000 features."""
    for loss in ("least_squares", "logistic"):
        problem = sparse_problem(10_000, loss)
        problem = clip_problem(problem, BOUND, BOUND)
        name = f"sparse, p 10,000, {loss.replace('_', ' ')}"
        columns = Columns(problem.A)
        columns.rows  # noqa: B018 (cached outside the clock)
        options = dp_fw.Options(entry_bound=BOUND, label_bound=BOUND)
        ours = _ours(dp_fw, problem, options, NOISE, columns=columns)
        if loss == "least_squares":
            arguments = (COUNT, ours, quadratic_begin(problem, options))
            yield Case("dp_fw", "Gram columns", name, *arguments)
        else:
            arguments = (COUNT, ours, fw_begin(problem, options))
            yield Case("dp_fw", "A^T u", name, *arguments)
        box = bcfw.Options(constraint="box")
        ours = _ours(bcfw, problem, box, silent(COUNT), columns=columns)
        yield Case(
            "bcfw", "box steps", name, COUNT, ours, box_begin(problem, box)
        )
        nodes = dp_bcfw.Options(
            sketch=80, entry_bound=BOUND, label_bound=BOUND
        )
        shared_sketch(problem.n, 80, nodes.sketch_seed).by_record  # noqa: B018 (likewise)
        ours = _ours(dp_bcfw, problem, nodes, NOISE)
        arguments = (COUNT, ours, nodes_begin(problem, nodes))
        yield Case("dp_bcfw", "A^T u, sketch", name, *arguments)


def _ours(
    module: Any, problem: Problem, options: Any, noise: Noise, **inputs: Any
) -> Begin:
    def begin() -> Call:
        run = module.Run(problem, streams(1), options, noise, **inputs)

        def steps() -> np.ndarray:
            run.advance(COUNT)
            return run.weights

        return steps

    return begin


def quadratic_begin(problem: Problem, options: dp_fw.Options) -> Begin:
    """DP-FW for least squares in C, which keeps the gradient."""
    p = problem.p
    matrix = (
        *compressed(problem.A),
        *compressed(problem.A.tocsr()),
        problem.offset,
    )

    def begin() -> Call:
        x = np.zeros(p)
        scratch = (np.zeros(p), np.empty(p), np.empty(p), np.empty(2 * p))
        gram = np.empty((COUNT, p))
        met = np.full(p, -1, dtype=np.intp)
        rng = streams(1).noise

        def steps() -> np.ndarray:
            arrays = (*matrix, x, *scratch, gram, met)
            constants = (options.radius, NOISE.index_scale)
            call(
                "dp_fw_quadratic",
                rng,
                *arrays,
                problem.n,
                p,
                COUNT,
                *constants,
            )
            return x

        return steps

    return begin


def fw_begin(problem: Problem, options: dp_fw.Options) -> Begin:
    """DP-FW in C, for any loss."""
    n = problem.n
    p = problem.p
    matrix = (*compressed(problem.A), problem.offset)

    def begin() -> Call:
        x = np.zeros(p)
        scratch = (np.zeros(n), np.empty(n), np.empty(p), np.empty(2 * p))
        rng = streams(1).noise

        def steps() -> np.ndarray:
            constants = (
                is_logistic(problem),
                options.radius,
                NOISE.index_scale,
            )
            call("dp_fw", rng, *matrix, x, *scratch, n, p, COUNT, *constants)
            return x

        return steps

    return begin


def box_begin(problem: Problem, options: bcfw.Options) -> Begin:
    """Block-coordinate Frank-Wolfe in C: all coordinates of a box in every step."""
    n = problem.n
    p = problem.p
    matrix = (*compressed(problem.A), problem.offset)

    def begin() -> Call:
        x = np.zeros(p)
        scratch = (np.zeros(n), np.empty(n), np.empty(p))

        def steps() -> np.ndarray:
            constants = (is_logistic(problem), options.radius)
            call("bcfw_box", *matrix, x, *scratch, n, p, COUNT, *constants)
            return x

        return steps

    return begin


def nodes_begin(problem: Problem, options: dp_bcfw.Options) -> Begin:
    """DP-BCFW in C, all nodes one after another and no messages between them."""
    n = problem.n
    p = problem.p
    nodes = options.nodes
    m = options.sketch_length(n)
    sketch = shared_sketch(n, m, options.sketch_seed).by_record
    starts = edges(p, nodes).astype(np.intp)
    matrix = (*compressed(problem.A), starts, nodes, problem.offset, sketch)
    constants = (
        is_logistic(problem),
        options.entry_bound * options.reach,
        options.score_factor(NOISE.scores),
        NOISE.index_scale,
        NOISE.sketch_scale,
        options.vertex,
    )

    def begin() -> Call:
        x = np.zeros(p)
        scratch = (np.zeros(m), np.empty(n), np.empty(p), np.empty(2 * p))
        sent = np.empty((nodes * COUNT, m))
        place = np.full(p, -1, dtype=np.intp)
        chosen = np.empty(nodes, dtype=np.intp)
        seeds = streams(1).noise.integers(0, 2**62, nodes).tolist()
        drawn = [streams(seed) for seed in seeds]

        def steps() -> np.ndarray:
            index_rngs = np.array([address(node.noise) for node in drawn])
            sketch_rngs = np.array([address(node.sampling) for node in drawn])
            arrays = (*matrix, x, *scratch, sent, place, chosen)
            sizes = (n, m, p, COUNT)
            call(
                "dp_bcfw", index_rngs, sketch_rngs, *arrays, *sizes, *constants
            )
            return x

        return steps

    return begin
