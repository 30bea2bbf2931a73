"""Sweeps of DP-GCD, against runs made by hand."""

import numpy as np
import pytest

from dperm.papers.dpgcd import growing, sweeps
from dperm.privacy.noise import streams
from dperm.solvers.batched import BatchedSettings, dp_gcd
from staging import configured, data_dir  # noqa: F401 (fixtures)

AT = {"p": 40, "n": 400, "tau": 2, "imbalance": 0.0}
GRIDS = {
    "DP-GCD": {"passes": [2, 4], "step": [1.0], "clip": [0.3, 1.0]},
}


def grown(config, algorithm, epsilon):
    point = {"algorithm": algorithm, "draw": 0, **AT}
    return sweeps.growth(point, 5, config.seed, epsilon, GRIDS, 6)


def test_growth_costs_the_epsilon_it_names(configured):  # noqa: F811
    config = configured("paper=dpgcd")
    little, much = (
        grown(config, "DP-GCD", epsilon) for epsilon in (2.0, 200.0)
    )
    assert 1.98 < little[0]["true_epsilon"] <= 2.0
    assert 198 < much[0]["true_epsilon"] <= 200.0
    assert np.mean([row["share"] for row in much]) < 0.8 * np.mean(
        [row["share"] for row in little]
    )


# --- where the selection is what fails ------------------------------------------------

GIVEN = {
    "epsilon": 1.0,
    "delta": 1e-6,
    "tau": 10,
    "counts": [1, 4],
    "fresh": 6,
}


def test_the_instance_is_half_the_squared_distance_whatever_p():
    for p in (20, 50):
        problem = growing.decaying(p, 10, 1.0, 1e-6)
        np.testing.assert_allclose(problem.smoothness, 1.0)
        w = np.random.default_rng(1).standard_normal((1, p))
        true = np.r_[1 / np.arange(1, 11), np.zeros(p - 10)]
        found = float(problem.objective(w)[0])
        assert found == pytest.approx(((w[0] - true) ** 2).sum() / 2)


def test_without_noise_the_largest_coefficients_are_taken_in_order():
    problem = growing.decaying(30, 10, 1.0, 1e-6)
    settings = BatchedSettings(np.ones(1), np.full(1, 30**1.5), 0.0)
    run = dp_gcd.Run(problem, settings, streams(1), dp_gcd.Options(), total=3)
    run.advance(3)
    np.testing.assert_allclose(
        run.weights[0, :4], [1, 1 / 2, 1 / 3, 0], atol=1e-12
    )


def test_noise_on_a_derivative_does_not_depend_on_p():
    def shares(p, records):
        point = {"algorithm": "DP-GCD", "iterations": 4, "p": p}
        rows = sweeps.selection(point, 3, records=records, **GIVEN)
        return np.mean([row["share"] for row in rows])

    quiet, loud = shares(100, 10**7), shares(100, 200)
    assert quiet < 0.12 < loud  # the tail after four coefficients, and noise
    assert shares(1000, 10**7) == pytest.approx(quiet, rel=1e-3)
