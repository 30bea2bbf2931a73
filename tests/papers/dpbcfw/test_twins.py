"""Every method agrees with its numpy twin on the same streams, to 1e-10."""

import itertools

import numpy as np
import pytest

from dperm.core.privacy.mechanisms import streams
from dperm.solvers.distributed.columns import Columns, edges
from dperm.solvers.distributed.node import shared_sketch
from dperm.solvers.frank_wolfe import Noise, bcfw, dp_bcfw, silent
from papers.dpbcfw import twins
from papers.dpbcfw.conftest import dense

TIGHT = {"rtol": 1e-10, "atol": 1e-10}
SAMPLINGS = {name: {"sampling": name, "tau": 30, "nodes": 3} for name in bcfw.SAMPLINGS}


def blocks_of(p, nodes):
    starts = edges(p, nodes)
    pairs = itertools.pairwise(starts)
    return [np.arange(low, high) for low, high in pairs]


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("vertices", ["box", *bcfw.VERTICES])
def test_bcfw(problem, sampling, vertices):
    box = vertices == "box"
    kind = {"constraint": "box"} if box else {"vertices": vertices}
    options = bcfw.Options(**SAMPLINGS[sampling], **kind, radius=1.7)
    if sampling in ("uniform_serial", "importance", "tau_nice") and vertices not in (
        "box", "one",
    ):  # fmt: skip
        pytest.skip("a node may have no sampled coordinate")
    draw = bcfw.sampler(options, Columns(problem.A))
    source = streams(5)
    sets = [draw(source) for _ in range(25)]
    chances = bcfw.probabilities(options, Columns(problem.A))
    run = bcfw.Run(problem, streams(5), options, silent(25))
    run.advance(10)
    run.advance(15)
    given = (
        dense(problem),
        problem.offset,
        problem.loss.name,
        1.7,
        sets,
        chances.min(),
    )
    if box:
        expected = twins.bcfw_box(*given)
    else:
        expected = twins.bcfw_ball(*given, blocks_of(problem.p, 3), vertices)
    np.testing.assert_allclose(run.weights[0], expected, **TIGHT)
    A = dense(problem)
    exact = A.T @ problem.derivatives(A @ expected + problem.offset) / problem.n
    np.testing.assert_allclose(run.at.gradient(), exact, **TIGHT)
    assert run.at.objective == pytest.approx(problem.objective(expected)[0], rel=1e-12)


@pytest.mark.parametrize("update", dp_bcfw.UPDATES)
@pytest.mark.parametrize("scores", ["gradient", "radius"])
@pytest.mark.parametrize("sketch", [None, 12])
def test_dp_bcfw(problem, update, scores, sketch):
    options = dp_bcfw.Options(
        nodes=3, radius=1.5, update=update, sketch=sketch,
        entry_bound=1.2, label_bound=0.8,
    )  # fmt: skip
    noise = Noise(None, 0.05, 0.3, 0.0, scores)
    run = dp_bcfw.Run(problem, streams(4), options, noise)
    run.advance(7)
    run.advance(13)
    m = options.sketch_length(problem.n)
    J = np.eye(problem.n)
    if sketch:
        J = shared_sketch(problem.n, m, options.sketch_seed).by_record.T
    seeds = streams(4).noise.integers(0, 2**62, 3).tolist()
    vertex = 1.5 / (3 if update == "feasible" else 1)
    reach = 1.2 * (1.5 if update == "feasible" else 4.5)
    factor = 1.5 if scores == "radius" else 1.0
    x, q = twins.dp_bcfw(
        dense(problem), problem.offset, problem.loss.name, blocks_of(problem.p, 3), J,
        20, vertex, factor, (0.05, 0.3), (1.2, 0.8, reach), [streams(s) for s in seeds],
    )  # fmt: skip
    np.testing.assert_allclose(run.weights[0], x, **TIGHT)
    np.testing.assert_allclose(run.q, q, **TIGHT)
