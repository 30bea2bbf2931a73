"""Private tuning by random stopping, against the theorems' own corner cases."""

import doctest
import functools
import math

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from dperm.accountants import private_choice as tuning
from dperm.accountants.noisy_max import NoisyMax
from dperm.accountants.private_choice import (
    MANY,
    expected_runs,
    stopping,
    tuned_epsilon,
)
from dperm.accountants.sampled_renyi import (
    _log_tail,
    _masses,
    _sampled,
    renyi_curve,
)
from dperm.core.privacy import Gaussian, Ledger, SampledGaussian
from dperm.core.privacy.strict import converted, sampled_gaussian_delta

ONE = Ledger((Gaussian(1.0, 5.0, 1, "unit", "source"),))


def test_docstrings_are_true():
    assert doctest.testmod(tuning).failed == 0


@pytest.mark.parametrize("eta", [0.0, 1.0, 2.5])
def test_expected_runs_against_their_distribution(eta):
    gamma, k = 0.05, np.arange(1, 4000)
    if eta == 0:
        weights = (1 - gamma) ** k / k
    else:
        steps = np.log(k + eta - 1) - np.log(k)
        weights = np.exp(np.cumsum(steps) + k * np.log1p(-gamma))
    mean = (k * weights).sum() / weights.sum()
    assert expected_runs(eta, gamma) == pytest.approx(mean, rel=1e-6)
    assert expected_runs(eta, stopping(eta, 77.0)) == pytest.approx(77.0)


def sampled(n, sigma, count=1):
    return SampledGaussian(1.0, sigma, count, 1, n, "unit", "source")


def log_bregman(x, a):
    """log(X^a - 1 - a (X - 1)) of X = e^x; a series where it cancels."""
    size = np.abs(a * x)
    series = a * (a - 1) * x**2 / 2 * (1 + (a + 1) * x / 3)
    high = np.minimum(a * x, 700.0)  # beyond, X^a is all of it
    plain = np.expm1(high) - a * np.expm1(np.minimum(x, 700.0))
    with np.errstate(divide="ignore"):
        near = np.log(np.where(size < 1e-4, series, np.maximum(plain, 0.0)))
    return np.where(a * x > 600.0, a * x, near)


def pair_renyi(rate, mu, orders):
    """Rényi divergences of the mixture against the normal, on the source's grid."""
    loss, log_mass = _masses(mu)
    x, tail = _sampled(loss, rate), _log_tail(rate, mu, orders)
    found = np.empty_like(orders)
    for place, a in enumerate(orders):
        logs = log_mass + log_bregman(x, a)
        excess = np.logaddexp(logsumexp(logs), tail[place])
        found[place] = np.logaddexp(0.0, excess) / (a - 1)
    return found


@functools.cache
def pair(n, sigma):
    """Of one step at all orders."""
    return pair_renyi(1 / n, 1 / sigma, MANY)


def closed_form(q, mu, order):
    """Mironov, Talwar and Zhang 2019, Section 3.3: the mixture against the normal."""
    k = np.arange(2, order + 1)
    logs = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    logs += (order - k) * math.log1p(-q) + k * math.log(q)
    logs += np.log(np.expm1(np.minimum(grown := k * (k - 1) * mu**2 / 2, 500)))
    logs += np.maximum(grown - 500, 0)
    return np.logaddexp(0, logsumexp(logs)) / (order - 1)


# population, noise multiplier, passes: losses of one step are of the size 1 / n
SETTINGS = [(45312, 5.0, 50), (45312, 2.0, 50), (10**6, 3.0, 5), (45312, 0.63, 50)]


@pytest.mark.parametrize(("n", "sigma", "passes"), SETTINGS)
def test_the_sampled_pair_meets_its_closed_form(n, sigma, passes):
    """The mixture against the normal, from above, also where its losses are 1e-6."""
    orders = np.array([2.0, 3, 5, 10, 30, 60, 100, 150, 200])
    found = pair_renyi(1 / n, 1 / sigma, orders)
    exact = np.array([closed_form(1 / n, 1 / sigma, int(a)) for a in orders])
    assert (found >= exact * (1 - 1e-9)).all()
    np.testing.assert_allclose(found, exact, rtol=1e-3)


@pytest.mark.parametrize(("n", "sigma", "passes"), SETTINGS)
def test_the_curve_of_both_directions_bounds_the_pair(n, sigma, passes):
    """Never below, twice as high at most, and equal where large losses decide."""
    found = renyi_curve(Ledger((sampled(n, sigma, 7),)), MANY)
    seven = 7 * pair(n, sigma)
    assert (found >= seven * (1 - 1e-3)).all()
    assert (found <= 2.001 * seven).all()
    assert found[-1] == pytest.approx(seven[-1], rel=1e-6)


@pytest.mark.parametrize(
    ("n", "sigma", "order"),
    [(50, 1.0, 3.0), (50, 1.0, 1.3), (2000, 0.7, 8.0), (5, 4.0, 1.1)],
)
def test_the_curve_is_that_of_the_deltas_in_both_directions(n, sigma, order):
    """E_Q (P / Q)^a = 1 + a (a - 1) int e^((a-1)e) delta + e^(-ae) delta', by parts."""
    end = 40 / sigma + 800 / sigma**2 / 40
    e = np.concatenate([np.linspace(0, 1e-2, 20_001), np.linspace(1e-2, end, 400_001)])
    deltas = sampled_gaussian_delta(e, 1 / n, 1 / sigma)
    both = (np.exp((order - 1) * e) + np.exp(-order * e)) * deltas
    moment = order * (order - 1) * np.trapezoid(both, e)
    (found,) = renyi_curve(Ledger((sampled(n, sigma, 7),)), np.array([order]))
    assert found == pytest.approx(7 * np.log1p(moment) / (order - 1), rel=2e-3)


@pytest.mark.parametrize("kind", ["logarithmic", "geometric", "poisson"])
def test_nine_releases_cost_what_one_does_with_a_third_of_the_noise(kind):
    nine, one = (
        Ledger((Gaussian(2.0, 2 * sigma, count, "", ""),))
        for sigma, count in ((5.0, 9), (5 / 3, 1))
    )
    found = tuned_epsilon(nine, 1e-6, 30, kind)
    assert found == pytest.approx(tuned_epsilon(one, 1e-6, 30, kind))
    assert found > tuned_epsilon(ONE, 1e-6, 30, kind)


@pytest.mark.parametrize("kind", ["logarithmic", "geometric", "poisson"])
@pytest.mark.parametrize(("n", "sigma", "passes"), SETTINGS)
def test_tuning_a_sampled_ledger_costs_more_than_the_pair(n, sigma, passes, kind):
    ledger = Ledger((sampled(n, sigma, passes * n),))
    found = tuned_epsilon(ledger, n**-2.0, 1000, kind)
    whole = passes * n * pair(n, sigma)
    orders, log = MANY, math.log(1000)
    if kind == "poisson":
        small = np.log1p(1 / (orders - 1))
        best = np.array([converted_delta(whole, orders, s) for s in small])
        total = whole + 1000 * best
    else:
        eta = tuning.STOPPINGS[kind]
        gamma = stopping(eta, 1000)
        extra = (1 - 1 / orders) * whole + math.log(1 / gamma) / orders
        total = whole + (1 + eta) * extra.min()
    least = converted(total + log / (orders - 1), orders, n**-2.0)
    assert (1 - 1e-3) * least <= found <= 1.4 * least


def converted_delta(curve, orders, epsilon):
    logs = (orders - 1) * (curve - epsilon) + orders * np.log1p(-1 / orders)
    return math.exp(min((logs - np.log(orders - 1)).min(), 0.0))


def test_without_sampling_the_curve_is_the_gaussians():
    orders = np.array([1.2, 2.0, 7.0, 40.0])
    everything = SampledGaussian(1.0, 5.0, 1, 50, 50, "unit", "source")
    np.testing.assert_allclose(
        renyi_curve(Ledger((everything,)), orders), renyi_curve(ONE, orders), rtol=1e-6
    )


@pytest.mark.parametrize("kind", ["logarithmic", "geometric", "poisson"])
def test_more_settings_cost_more_and_always_more_than_one_run(kind):
    alone = converted(renyi_curve(ONE, MANY), MANY, 1e-6)
    costs = [tuned_epsilon(ONE, 1e-6, runs, kind) for runs in (1.5, 10, 1000)]
    assert alone < costs[0] < costs[1] < costs[2]


def test_a_logarithmic_number_of_settings_at_least_doubles_the_budget():
    """Their headline: for pure DP random stopping costs between 2 and 3 epsilon."""
    pure = Ledger((NoisyMax(1.0, 20.0, 1, "unit", "source"),))  # 0.1
    orders = np.array([1e6])
    curve = renyi_curve(pure, orders)[0]
    limit = 2 * curve  # (1 + 1 + eta) epsilon, eta = 0, gamma fixed, orders large
    found = tuned_epsilon(pure, 1e-9, 100, "logarithmic")
    assert limit < found < 8 * limit


def test_numbers_that_make_no_sense_are_refused():
    with pytest.raises(tuning.GridError, match="more than 1"):
        tuned_epsilon(ONE, 1e-6, 1.0, "geometric")
    assert math.isfinite(tuned_epsilon(ONE, 1e-6, 1.01, "geometric"))


def test_never_below_the_exact_cost_of_random_stopping():
    """A mechanism whose best of K is known: one bit, randomised response.

    Of K answers the largest is released; K geometric. Its delta is an excess of the
    chances of its two outcomes.
    """
    pure, gamma, k = 0.5, 0.1, np.arange(1, 5000)
    law = gamma * (1 - gamma) ** (k - 1)
    one = Ledger((NoisyMax(1.0, 2 / pure, 1, "unit", "source"),))
    high = 1 / (1 + math.exp(-pure))
    none = [float((law * (1 - p) ** k).sum()) for p in (high, 1 - high)]
    tried = 0
    for epsilon in (0.2, 0.4, 0.6):
        delta = max(none[1] - math.exp(epsilon) * none[0],
                    (1 - none[0]) - math.exp(epsilon) * (1 - none[1]))  # fmt: skip
        if delta > 0:
            tried += 1
            assert tuned_epsilon(one, delta, 1 / gamma, "geometric") >= epsilon
    assert tried
