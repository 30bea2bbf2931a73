"""Trials in memory are what the pipeline does, and what a plain loop does."""

from itertools import product

import numpy as np
import pytest

from conftest import make_problem
from dperm.privacy import calibrate, streams
from dperm.solvers.batched import (
    BatchedSettings,
    dp_cd,
    dp_sgd,
    dp_skgd,
    dp_svrg,
    trials,
)
from dperm.solvers.batched.engine import run_batched

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
    settings = BatchedSettings(
        np.full(1, point["step"]), np.full(1, point["clip"]), multiplier
    )
    count = module.steps(problem, point["passes"], options)
    run = module.Run(problem, settings, streams(seed), options, total=count)
    run.advance(count)
    return float(problem.objective(run.weights)[0])


@pytest.fixture(
    params=OPTIONS, ids=lambda given: given[0].__name__.rsplit(".")[-1]
)
def on(request):
    return trials.Trials(
        make_problem("least_squares", "l2"), *request.param, "tight"
    )


def alone(on, point, seeds):
    multiplier = on.noise(point["passes"]).noise_multiplier
    return [plain(on.problem, on.module, on.options, point, multiplier, seed)
            for seed in seeds]  # fmt: skip


def test_noise_is_the_calibrated_one(on):
    count = on.module.steps(on.problem, 3.0, on.options)

    def ledger(noise):
        made = on.module.ledger(on.problem, count, noise, on.options, "tight")
        return made.assuming(*on.problem.given)

    expected = calibrate(ledger, on.problem.epsilon, on.problem.delta, "tight")
    assert "n" in expected.ledger.given
    assert on.noise(3.0) == expected


def test_the_choice_of_least_mean_is_run_on_seeds_that_did_not_make_it(on):
    found = on.tried(POINTS, 9, (2, 3))
    seeds = np.random.SeedSequence(9).generate_state(5, np.uint64).tolist()
    means = [np.mean(alone(on, point, seeds[:2])) for point in POINTS]
    assert found.point == POINTS[int(np.argmin(means))]
    assert len(set(means)) == len(POINTS)
    assert found.objective.tolist() == alone(on, found.point, seeds[2:])
    assert found.noise == on.noise(found.point["passes"])
    several = on.best(POINTS, seeds[:2], count=3)
    assert several == [POINTS[k] for k in np.argsort(means)[:3]]


def test_a_coarse_choice_is_refined_by_multiples(on):
    finer = [
        {"step": step, "clip": clip}
        for step in (0.5, 1.0)
        for clip in (1.0, 2.0)
    ]
    chosen = trials.seeds_of(5, 2)
    # its best, tried once more
    coarse = on.best(on.best(POINTS, [5]), chosen)[0]
    around = [
        {"passes": coarse["passes"], "step": coarse["step"] * at["step"],
         "clip": coarse["clip"] * at["clip"]}
        for at in finer
    ]  # fmt: skip
    found, expected = (
        on.refined(POINTS, finer, 5, (2, 3)),
        on.tried(around, 5, (2, 3)),
    )
    assert found.point == expected.point
    assert found.objective.tolist() == expected.objective.tolist()


def test_a_grid_that_diverges_is_named(on):
    points = [{"passes": 400.0, "step": 1e9, "clip": 1e90}]
    with pytest.raises(
        ValueError, match="small: every setting of the grid diverged"
    ):
        on.best(points, [1])


@pytest.mark.parametrize(
    "module", [dp_sgd, dp_svrg], ids=["dp_sgd", "dp_svrg"]
)
def test_a_block_whose_settings_are_all_lost_ends(module):
    """At the first checkpoint, with nothing left to run to the second."""
    problem = make_problem("least_squares", "l2")
    settings = BatchedSettings(np.full(1, 1e6), np.full(1, 1e3), 1.0)
    found = run_batched(
        module, module.Options(), problem, settings, [5, 10], 0
    )
    assert [snapshot.diverged.tolist() for snapshot in found] == [
        [True],
        [True],
    ]
    assert found[0].objective == found[1].objective > 10


def test_a_setting_above_the_limit_ends_at_the_first_of_several_checkpoints_by_itself():
    problem = make_problem("least_squares", "l2")
    steps, clips = np.array([1e-3, 0.1, 2.0, 0.5]), np.full(4, 1.0)

    def run(some, checkpoints, stop_above):
        settings = BatchedSettings(steps[some], clips[some], 3.0)
        given = (dp_sgd, dp_sgd.Options(), problem, settings, checkpoints, 0)
        return run_batched(*given, stop_above=stop_above)

    first, last = run([0, 1, 2, 3], [5, 60], 1.01)
    free = run([0, 1, 2, 3], [5, 60], 10.0)
    ended = free[0].objective > 1.01 * problem.objective(np.zeros(5))
    assert ended.any() and not ended.all() and not free[0].diverged.any()
    for snapshot in (first, last):
        assert snapshot.diverged[ended].all()
        np.testing.assert_array_equal(
            snapshot.objective[ended], free[0].objective[ended]
        )
    np.testing.assert_array_equal(
        last.objective[~ended], free[1].objective[~ended]
    )
    for setting in range(4):
        alone = run([setting], [5, 60], 1.01)[-1]
        assert alone.diverged[0] == last.diverged[setting]
        assert alone.objective[0] == last.objective[setting]
    assert not run([2], [60], 1e-3)[0].diverged  # the only one
