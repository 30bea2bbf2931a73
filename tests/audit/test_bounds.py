"""Bets win against what is wrong and nothing else; counts hold at their level."""

import doctest

import numpy as np
import pytest
from scipy import stats

from dperm.audit import bounds
from dperm.core.privacy.strict import gaussian_delta, gaussian_epsilon


def test_docstrings_are_true():
    assert doctest.testmod(bounds).failed == 0


def events(mu, size, seed):
    rng = np.random.default_rng(seed)
    first, second = mu + rng.standard_normal(size), rng.standard_normal(size)
    return bounds.events(first, second, bounds.thresholds([-1, 0, 0.5, 1, 2]))


def curve(mu):
    return [(e, float(gaussian_delta(e, mu))) for e in (0.3, 1.0)]


def test_capital_grows_where_the_curve_is_too_low():
    logs = bounds.bets(*events(2.0, 1000, 0), curve(1.0))
    assert logs[-1] > np.log(1e6) and np.isfinite(logs).all()


def test_capital_is_won_as_rarely_as_the_level_says():
    """At the truth itself, whenever one stops."""
    times, level = 120, 0.1
    won = sum(
        bounds.best(bounds.bets(*events(1.0, 150, seed), curve(1.0))) >= -np.log(level)
        for seed in range(times)
    )
    assert won <= stats.binom.ppf(0.999, times, level)


def test_a_lower_bound_stays_below_and_comes_up():
    truth = gaussian_epsilon(1.5, 0.05)
    few, many = (bounds.refuted(*events(1.5, m, 3), 0.05, 0.01) for m in (200, 2000))
    assert 0 <= few <= many < truth and many > 0.3 * truth
    assert bounds.refuted(*events(0.0, 500, 3), 0.05, 0.01) == 0


@pytest.mark.parametrize(
    ("size", "coins", "share"), [(20_000, None, 0.85), (100_000, 0, 0.95)]
)
def test_lower_bounds_from_losses_of_a_gaussian(size, coins, share):
    """By betting, and by coins."""
    mu = 1.0
    losses = mu**2 / 2 + mu * np.random.default_rng(3).standard_normal(size)
    for delta in (0.02, 0.002) if coins is None else (0.02,):
        truth = gaussian_epsilon(mu, delta)
        assert share * truth < bounds.losses_bound(losses, delta, 0.01, coins) < truth
    assert bounds.losses_bound(np.zeros(500), 0.01, 0.01, coins) == 0
    certain = bounds.losses_bound(np.full(500, np.inf), 0.01, 0.01, coins)
    assert certain == pytest.approx(1e6)


@pytest.mark.parametrize("hits", [0, 1, 3, 17, 19, 20])
def test_clopper_pearson_against_scipy(hits):
    exact = stats.binomtest(hits, 20).proportion_ci(0.9, "exact")
    found = bounds.clopper_pearson(np.array(hits), 20, 0.05)
    assert found == pytest.approx((exact.low, exact.high), abs=1e-12)


def test_a_ratio_is_overstated_at_most_as_often_as_its_level_says():
    rng, level, times = np.random.default_rng(0), 0.1, 400
    one, two = rng.binomial(500, 0.4, times), rng.binomial(500, 0.4 / np.e, times)
    wrong = (bounds.ratio_bound(one, two, 500, level, 0.0) > 1).sum()
    assert 0 < wrong <= stats.binom.ppf(0.999, times, level)
