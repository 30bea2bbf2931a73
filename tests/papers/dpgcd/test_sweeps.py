"""Sweeps of DP-GCD, against runs made by hand."""

import numpy as np

from conftest import make_problem
from dperm.core.lanes import Lanes
from dperm.core.privacy.mechanisms import streams
from dperm.papers.dpgcd import sweeps
from dperm.solvers.lanes import dp_gcd
from staging import configured, data_dir  # noqa: F401 (fixtures)

AT = {"p": 40, "n": 400, "tau": 2, "imbalance": 0.0}
GRIDS = {
    "DP-GCD": {"passes": [2, 4], "step": [1.0], "clip": [0.3, 1.0]},
}


def grown(config, algorithm, epsilon):
    point = {"algorithm": algorithm, "draw": 0, **AT}
    return sweeps.growth(config, point, 5, epsilon, GRIDS, 6)


def test_growth_costs_the_epsilon_it_names(configured):  # noqa: F811
    config = configured("paper=dpgcd")
    little, much = (grown(config, "DP-GCD", epsilon) for epsilon in (2.0, 200.0))
    assert 1.98 < little[0]["true_epsilon"] <= 2.0
    assert 198 < much[0]["true_epsilon"] <= 200.0
    assert np.mean([row["share"] for row in much]) < 0.8 * np.mean(
        [row["share"] for row in little]
    )


def test_coordinates_taken_are_those_that_moved():
    class Job:
        problem, module, options = (
            make_problem("least_squares", "none"), dp_gcd, dp_gcd.Options()
        )  # fmt: skip

    lanes = Lanes(np.full(1, 0.5), np.full(1, 1.0), 3.0)
    found = sweeps._taken(Job, lanes, 9, 4)

    run = dp_gcd.Run(Job.problem, lanes, streams(4), Job.options, total=9)
    times, before = np.zeros(Job.problem.p, dtype=int), run.weights.copy()
    for _ in range(9):
        run.advance(1)
        times += (run.weights != before)[0]
        before = run.weights.copy()
    assert times.sum() == 9
    assert found["taken"] == np.count_nonzero(times)
    assert found["chosen_once"] == np.mean(times[times > 0] == 1)
    assert found["support"] == np.count_nonzero(run.weights)
