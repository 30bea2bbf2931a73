"""Bounds from counts and from losses hold at their level, and come close."""

import doctest

import numpy as np
import pytest
from scipy import stats

from dperm.audit.blackbox import bounds
from dperm.audit.blackbox.bounds import clopper_pearson, losses_bound, ratio_bound
from dperm.privacy.accounting import gaussian_epsilon


def test_docstrings_are_true():
    assert doctest.testmod(bounds).failed == 0


@pytest.mark.parametrize("hits", [0, 1, 3, 17, 19, 20])
def test_clopper_pearson_against_scipy(hits):
    exact = stats.binomtest(hits, 20).proportion_ci(0.9, "exact")
    found = clopper_pearson(np.array(hits), 20, 0.05)
    assert found == pytest.approx((exact.low, exact.high), abs=1e-12)


def test_a_ratio_is_overstated_at_most_as_often_as_its_level_says():
    rng, level, times = np.random.default_rng(0), 0.1, 400
    one, two = rng.binomial(500, 0.4, times), rng.binomial(500, 0.4 / np.e, times)
    wrong = (ratio_bound(one, two, 500, level, 0.0) > 1).sum()
    assert 0 < wrong <= stats.binom.ppf(0.999, times, level)


def test_losses_of_a_gaussian():
    mu, delta = 1.0, 0.02
    losses = mu**2 / 2 + mu * np.random.default_rng(3).standard_normal(100_000)
    truth = gaussian_epsilon(mu, delta)
    assert 0.95 * truth < losses_bound(losses, delta, 0.01, 0) < truth
    assert losses_bound(np.zeros(500), 0.01, 0.01, 0) == 0
    assert losses_bound(np.full(500, np.inf), 0.01, 0.01, 0) == pytest.approx(1e6)
