"""Bounds hold at their level, and come close with many samples."""

import doctest

import numpy as np
import pytest
from scipy import stats

from dperm.audit import estimators
from dperm.audit.estimators import (
    clopper_pearson,
    delta_bound,
    epsilon_bound,
    separation,
)
from dperm.privacy.accounting import gaussian_delta, gaussian_epsilon


def test_docstrings_are_true():
    assert doctest.testmod(estimators).failed == 0


@pytest.mark.parametrize("upper", [False, True])
def test_clopper_pearson_against_scipy(upper):
    for hits in (0, 3, 17, 20):
        exact = stats.binomtest(hits, 20).proportion_ci(0.9, "exact")
        found = clopper_pearson(np.array(hits), 20, 0.05, upper)
        assert found == pytest.approx(exact.high if upper else exact.low, abs=1e-12)


def gaussians(mu, size, seed):
    rng = np.random.default_rng(seed)
    return mu + rng.standard_normal(size), rng.standard_normal(size)


def test_the_gaussian_bound_comes_close_and_the_general_one_stays_below():
    mu, delta = 1.5, 1e-3
    samples = gaussians(mu, 40_000, 0)
    truth = gaussian_epsilon(mu, delta)
    by_mu = separation(*samples, 0.05, delta, gaussian=True)
    general = separation(*samples, 0.05, delta, gaussian=False)
    assert 0.9 * truth < by_mu < truth
    assert 0.5 * truth < general < by_mu


@pytest.mark.parametrize("gaussian", [True, False])
def test_bounds_are_wrong_at_most_as_often_as_they_say(gaussian):
    delta, level, times = 1e-2, 0.1, 100
    truth = gaussian_epsilon(1.0, delta)
    wrong = sum(
        separation(*gaussians(1.0, 400, seed), level, delta, gaussian) > truth
        for seed in range(times)
    )
    assert wrong <= stats.binom.ppf(0.999, times, level)


def test_delta_and_epsilon_of_gaussian_losses():
    mu, delta = 1.0, 0.02
    losses = mu**2 / 2 + mu * np.random.default_rng(3).standard_normal(100_000)
    truth = gaussian_epsilon(mu, delta)
    assert 0.95 * truth < epsilon_bound(losses, delta, 0.01, 0) < truth
    exact = float(gaussian_delta(0.7, mu))
    assert 0.97 * exact < delta_bound(losses, 0.7, 0.01, 0) < exact


def test_a_certain_loss_has_no_bound():
    assert epsilon_bound(np.full(500, np.inf), 0.01, 0.01, 0) == pytest.approx(1e6)
    assert epsilon_bound(np.zeros(500), 0.01, 0.01, 0) == 0
