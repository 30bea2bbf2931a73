"""Bets win against what is wrong, and against nothing else."""

import doctest

import numpy as np
import pytest
from scipy import stats

from dperm.audit import evalues
from dperm.privacy.accounting import gaussian_delta, gaussian_epsilon


def test_docstrings_are_true():
    assert doctest.testmod(evalues).failed == 0


def events(mu, size, seed):
    rng = np.random.default_rng(seed)
    first, second = mu + rng.standard_normal(size), rng.standard_normal(size)
    return evalues.events(first, second, evalues.thresholds([-1, 0, 0.5, 1, 2]))


def curve(mu):
    return [(e, float(gaussian_delta(e, mu))) for e in (0.3, 1.0)]


def test_capital_grows_where_the_curve_is_too_low():
    logs = evalues.bets(*events(2.0, 1000, 0), curve(1.0))
    assert logs[-1] > np.log(1e6) and np.isfinite(logs).all()


def test_capital_is_won_as_rarely_as_the_level_says():
    """At the truth itself, whenever one stops."""
    times, level = 120, 0.1
    won = sum(
        evalues.best(evalues.bets(*events(1.0, 150, seed), curve(1.0)))
        >= -np.log(level)
        for seed in range(times)
    )
    assert won <= stats.binom.ppf(0.999, times, level)


def test_a_lower_bound_stays_below_and_comes_up():
    truth = gaussian_epsilon(1.5, 0.05)
    few, many = (evalues.refuted(*events(1.5, m, 3), 0.05, 0.01) for m in (200, 2000))
    assert 0 <= few <= many < truth and many > 0.3 * truth
    assert evalues.refuted(*events(0.0, 500, 3), 0.05, 0.01) == 0


def test_lower_bounds_from_losses():
    mu = 1.0
    losses = mu**2 / 2 + mu * np.random.default_rng(3).standard_normal(20_000)
    for delta in (0.02, 0.002):
        truth = gaussian_epsilon(mu, delta)
        assert 0.85 * truth < evalues.losses_bound(losses, delta, 0.01) < truth
    assert evalues.losses_bound(np.zeros(500), 0.01, 0.01) == 0
    certain = evalues.losses_bound(np.full(500, np.inf), 0.01, 0.01)
    assert certain == pytest.approx(1e6)
