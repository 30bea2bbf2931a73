"""Smoothness constants of DP-CD, by every way of coming by them."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from conftest import make_problem, raw_data
from dperm.papers.dpcd import levels
from dperm.privacy.accountants.tight import gaussian_epsilon
from dperm.privacy.noise import gaussian, streams
from dperm.problems.penalties import Penalty
from dperm.problems.problem import build
from dperm.solvers.batched import BatchedSettings, dp_cd, dp_cd_priv, trials

ONE = (np.full(1, 0.5), np.full(1, 1.0))


@pytest.fixture(name="problem")
def small():
    return make_problem("least_squares")


def constants_of(problem, options):
    settings = BatchedSettings(*ONE, 0.7)
    return dp_cd_priv.Run(problem, settings, streams(3), options, total=5).M


@pytest.mark.parametrize(("bound", "composed"), [(1.0, True), (2.0, False)])
def test_readings_scale_the_noise(problem, bound, composed):
    X, _ = raw_data("least_squares")
    options = dp_cd_priv.Options(bound=bound, composed=composed)
    b = (bound * np.abs(X).max(axis=0)) ** 2
    scale = 2 * b * (5 if composed else 1) / (len(X) * 0.1 * problem.epsilon)
    noisy = (X**2).mean(axis=0) + streams(3).smoothness.laplace(0.0, scale)
    found = constants_of(problem, options)
    np.testing.assert_allclose(found, np.maximum(noisy, scale), rtol=1e-12)
    other = replace(options, negative="reflected")
    found = constants_of(problem, other)
    np.testing.assert_allclose(found, np.abs(noisy), rtol=1e-12)
    ledger = dp_cd_priv.ledger(problem, 9, 2.0, options)
    assert ledger.events[0].scale == pytest.approx(scale[0] / b[0] * len(X))


def test_bounds_below_the_features_are_refused():
    for wrong in ({"bound": 0.5}, {"negative": "dropped"}):
        with pytest.raises(
            ValueError, match=f"options.{next(iter(wrong))}: expected"
        ):
            dp_cd_priv.Options(**wrong)


# --- private bounds -------------------------------------------------------------------


def many(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) * [1e-3, 1.0, 40.0]
    y = rng.standard_normal(n)
    return build("many", X, y, "least_squares", Penalty(), 10.0, 1 / n**2)


def test_counts_are_of_values_by_powers_of_two():
    A = np.array([[0.5, 3.0], [-0.6, 1e20], [1.0, 0.0]])
    found = levels.counted(A)
    zero = int(np.log2(levels.LEVELS).tolist().index(0.0))
    assert found[0, zero - 1] == 1 and found[0, zero] == 2
    assert found[1, zero + 2] == found[1, -1] == found[1, 0] == 1
    assert found.sum() == A.size


def test_no_record_moves_a_release_by_more_than_is_said():
    problem, rng = many(60), np.random.default_rng(1)
    bounds = np.array([1e-3, 2.0, 16.0])
    counts, means = levels.events(problem, levels.Options())
    made = []
    for size in (0.0, 1e-7, 1.0, 1e3, 1e12):
        A = problem.A.copy()
        A[7] = size * rng.choice([-1.0, 1.0], 3)
        made.append((levels.counted(A), levels.clipped_means(A, bounds)))
    moved = [
        [np.linalg.norm(one - other) for one, other in zip(*pair, strict=True)]
        for pair in itertools.combinations(made, 2)
    ]
    most = np.array(moved).max(axis=0)
    assert most == pytest.approx([counts.sensitivity, means.sensitivity])


def test_both_releases_cost_the_share_of_epsilon():
    problem = many(60)
    mu = math.sqrt(sum(1 / event.noise_multiplier**2 for event in
                       levels.events(problem, levels.Options(share=0.25))))  # fmt: skip
    found = gaussian_epsilon(mu, problem.delta)
    assert found == pytest.approx(0.25 * problem.epsilon, rel=1e-4)
    on = trials.Trials(problem, levels, levels.Options(share=0.25), "tight")
    noise = on.noise(3)
    assert 0.999 * problem.epsilon < noise.true_epsilon <= problem.epsilon
    assert [event.count for event in noise.ledger.events] == [1, 1, 9]
    assert noise.ledger.given == ("n",)
    alone = trials.Trials(problem, dp_cd, dp_cd.Options(), "tight").noise(3)
    assert noise.noise_multiplier > 1.01 * alone.noise_multiplier


def test_noise_is_what_the_ledger_says():
    """It decides on which level a bound lies: with half of it some would be others."""
    problem, options = many(300), levels.Options()
    counts, means = levels.events(problem, options)

    def tops(noise):
        sure = levels.counted(problem.A) + noise > 4 * counts.scale
        return [
            int(np.flatnonzero(row)[-1]) if row.any() else 0 for row in sure
        ]

    moved = 0
    for seed in range(40):
        found = levels.estimated(problem, streams(seed), options)
        rng = streams(seed).smoothness
        first = counts.scale * gaussian(rng, (3, len(levels.LEVELS)))
        bounds = levels.LEVELS[tops(first)]
        mean = np.minimum(problem.A**2, bounds**2).mean(axis=0) / bounds**2
        noisy = mean + means.scale * gaussian(rng, 3)
        expected = bounds**2 * np.maximum(noisy, means.scale)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        moved += tops(first / 2) != tops(first)
    assert moved
    run = levels.Run(
        problem, BatchedSettings(*ONE, 0.7), streams(seed), options, total=2
    )
    np.testing.assert_array_equal(run.divisor, found)
    np.testing.assert_allclose(run.share, np.sqrt(found / found.sum()))


def test_the_constants_are_near_the_true_ones():
    problem = many()
    found = levels.estimated(problem, streams(5), levels.Options())
    np.testing.assert_allclose(found, problem.smoothness, rtol=0.5)
