"""Trials in memory are what the pipeline does, and what a plain loop does."""

from itertools import product

import numpy as np
import pytest

from conftest import make_problem
from dperm.privacy import calibrate, streams
from dperm.solvers.lanes import Lanes, dp_cd, dp_sgd, dp_skgd, dp_svrg, trials
from dperm.solvers.lanes.engine import run_lanes

OPTIONS = [
    (dp_cd, dp_cd.Options()),
    (dp_sgd, dp_sgd.Options()),
    (dp_skgd, dp_skgd.Options(blocks=2)),
]
GRID = {"passes": [1.0, 3.0], "step": [0.1, 0.5], "clip": [0.3, 2.0]}
POINTS = [
    {"passes": passes, "step": step, "clip": clip}
    for passes, step, clip in product(*GRID.values())
]


def plain(problem, module, options, point, multiplier, seed):
    """One setting alone, all its steps at once."""
    lanes = Lanes(np.full(1, point["step"]), np.full(1, point["clip"]), multiplier)
    count = module.steps(problem, point["passes"], options)
    run = module.Run(problem, lanes, streams(seed), options, total=count)
    run.advance(count)
    return float(problem.objective(run.weights)[0])


@pytest.fixture(params=OPTIONS, ids=lambda given: given[0].__name__.rsplit(".")[-1])
def given(request):
    module, options = request.param
    return make_problem("least_squares", "l2"), module, options


def test_noise_is_the_calibrated_one(given):
    problem, module, options = given
    count = module.steps(problem, 3.0, options)

    def ledger(noise):
        made = module.ledger(problem, count, noise, options, "strict")
        return made.assuming(*problem.given)

    expected = calibrate(ledger, problem.epsilon, problem.delta, "strict")
    assert "n" in expected.ledger.given
    assert trials.noise(*given, 3.0, "strict") == expected


def test_fresh_runs_are_single_runs_to_the_bit(given):
    noise = trials.noise(*given, 3.0, "strict")
    found = trials.fresh(*given, POINTS[-1], noise, [4, 5, 6])
    multiplier = noise.noise_multiplier
    expected = [plain(*given, POINTS[-1], multiplier, seed) for seed in (4, 5, 6)]
    assert found.tolist() == expected


def test_tuning_takes_the_least_mean(given):
    seeds = [1, 2, 3]
    means = {}
    for point in POINTS:
        noise = trials.noise(*given, point["passes"], "strict").noise_multiplier
        ended = [plain(*given, point, noise, seed) for seed in seeds]
        means[tuple(point.values())] = float(np.mean(ended))
    best = trials.tuned(*given, POINTS, seeds, "strict")
    passes, step, clip = min(means, key=means.__getitem__)
    assert best == {"passes": passes, "step": step, "clip": clip}
    assert len(set(means.values())) == len(POINTS)


def test_a_grid_that_diverges_is_named(given):
    problem, *solver = given
    points = [{"passes": 400.0, "step": 1e9, "clip": 1e90}]
    with pytest.raises(ValueError, match="small: every setting of the grid diverged"):
        trials.tuned(problem, *solver, points, [1], "strict")


@pytest.mark.parametrize("module", [dp_sgd, dp_svrg], ids=["dp_sgd", "dp_svrg"])
def test_a_block_whose_lanes_are_all_lost_ends(module):
    """At the first checkpoint, with nothing left to run to the second."""
    problem = make_problem("least_squares", "l2")
    lanes = Lanes(np.full(1, 1e6), np.full(1, 1e3), 1.0)
    found = run_lanes(
        module, module.Options(), problem, lanes, [5, 10], 0, lambda W: {}
    )
    assert [snapshot.diverged.tolist() for snapshot in found] == [[True], [True]]
    assert found[0].objective == found[1].objective > 10
