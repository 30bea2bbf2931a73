"""The best of a random number of runs, against theorems and exact laws."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid
from scipy.special import logsumexp

from dperm.privacy.accountants.sampled_renyi import renyi_curve
from dperm.privacy.accountants.tight import (
    converted,
    gaussian_delta,
    gaussian_epsilon,
    sampled_gaussian_delta,
)
from dperm.privacy.calibration import calibrate
from dperm.privacy.events import Ledger, NonPrivate
from dperm.privacy.mechanisms.noisy_max import NoisyMax
from dperm.privacy.private_selection import (
    GAMMA,
    MANY,
    calibrate_choice,
    choice_epsilon,
    drawn_runs,
    expected_runs,
    stopping,
    tuned_epsilon,
)

from .laws import expected, gaussian, sampled, tilted

DELTA = 1 / 45312**2


def test_the_share_that_is_left_for_a_run():
    """3.9 runs leave each 0.756 of the budget at epsilon 1 (worked out by hand)."""
    one = calibrate(gaussian, 1.0, DELTA, "tight").noise_multiplier
    (every,) = calibrate_choice([gaussian], 1.0, DELTA)
    assert one / every == pytest.approx(0.756, abs=1e-3)
    assert 0.999 < choice_epsilon([gaussian(every)], DELTA) <= 1


def kept(ways, epsilon, delta):
    """The ledgers of those that can keep the target."""
    noise = calibrate_choice(ways, epsilon, delta)
    return [
        way(z) for way, z in zip(ways, noise, strict=True) if z is not None
    ]


@pytest.mark.parametrize("epsilon", [0.0013, 0.3, 3.0])
def test_every_mixture_keeps_the_target(epsilon):
    """Whichever comes first, and where its own inner epsilon is nothing."""
    ways = [gaussian, lambda z: gaussian(2 * z)]
    ways += [lambda z: tilted(z, 0.1), lambda z: tilted(z, 1.0)]
    for mixed in (ways, ways[::-1]):
        able = kept(mixed, epsilon, DELTA)
        assert choice_epsilon(able, DELTA) <= epsilon * (1 + 1e-9)
        assert able and (epsilon < 1 or len(able) == 4)


SOME, MORE = (partial(sampled, count=k, n=1000, batch=10) for k in (20, 100))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(MORE, id="sampled", marks=pytest.mark.long),
        pytest.param(lambda z: tilted(z, 0.2), id="tilted"),
    ],
)
def test_mixtures_with_sampled_releases_spend_the_target(other):
    """No Rényi curve bounds a tilted objective, no closed form a sampled release."""
    able = kept([other, SOME], 1.0, 1e-6)
    assert 0.95 < choice_epsilon(able, 1e-6) <= 1.001


K = np.arange(1, 2000)
LAW = (1 - GAMMA) ** K / K / math.log(1 / GAMMA)  # of the number of runs


def test_the_number_of_runs_has_the_law_that_is_paid_for():
    rng = np.random.default_rng(0)
    drawn = np.array([drawn_runs(rng) for _ in range(20_000)])
    assert drawn.min() == 1 and LAW.sum() == pytest.approx(1)
    seen = np.bincount(np.minimum(drawn, 30))[1:]
    expected = np.append(LAW[:29], LAW[29:].sum()) * len(drawn)
    assert stats.chisquare(seen, expected).pvalue > 1e-4
    assert expected_runs() == pytest.approx(K @ LAW)
    assert expected_runs(stopping(77.0)) == pytest.approx(77.0)
    with pytest.raises(ValueError, match="more than 1"):
        stopping(1.0)


@pytest.mark.parametrize("gamma", [0.02, 0.1])
@pytest.mark.parametrize("mu", [0.1, 0.5])
@pytest.mark.parametrize("delta", [1e-9, 1e-4])
def test_by_profiles_it_is_the_theorem_and_hardly_more(mu, gamma, delta):
    """Never below its least value over all inner epsilons, E[K] by its sum."""
    inner = np.linspace(0.0, mu**2 / 2 + 6 * mu, 5000)
    log = np.logaddexp(
        inner,
        math.log((1 - gamma) / gamma) + np.log(gaussian_delta(inner, mu)),
    )
    least = gaussian_epsilon(mu, delta / expected(gamma)) + log.min()
    found = choice_epsilon([gaussian(1 / mu)], delta, gamma)
    assert least * (1 - 1e-9) <= found <= 1.05 * least + 2e-3


def by_theorem(curve, gamma, delta):
    """Papernot and Steinke 2022, Theorem 2, over many orders, E[K] by its sum."""
    runs, a = expected(gamma), 1 + np.geomspace(0.01, 3000, 4000)
    inner = (1 - 1 / a) * curve(a) + math.log(1 / gamma) / a
    total = curve(a) + inner.min() + math.log(runs) / (a - 1)
    return (total + np.log1p(-1 / a) - np.log(delta * a) / (a - 1)).min(), runs


@pytest.mark.parametrize("gamma", [0.02, 0.1, 0.6])
@pytest.mark.parametrize(
    ("mu", "delta"), [(0.1, 1e-9), (1.0, 1e-4), (2.0, 0.2)]
)
def test_by_orders_it_is_the_theorem_and_hardly_more(mu, delta, gamma):
    """Of a batch of all records, whose curve is the Gaussian's."""
    least, runs = by_theorem(lambda a: a * mu**2 / 2, gamma, delta)
    whole = sampled(1 / mu, 1, 50, 50)
    found = choice_epsilon([whole], delta, gamma)
    assert least * (1 - 1e-6) <= found <= 1.1 * least
    tuned = tuned_epsilon(whole, delta, runs)
    assert least * (1 - 1e-6) <= tuned <= 1.01 * least
    nine = tuned_epsilon(gaussian(3 / mu, 9), delta, runs)
    assert nine == pytest.approx(tuned_epsilon(gaussian(1 / mu), delta, runs))
    assert nine == pytest.approx(tuned, rel=1e-6)


@pytest.mark.parametrize("turned", [False, True])
def test_of_several_ledgers_the_dearest_decides(turned):
    """At every delta, or order, in whatever order they are named."""
    profiles = [gaussian(z) for z in (3.0, 5.0, 4.0)]
    orders = [sampled(2.0, k, 1000, 10) for k in (10, 50, 20)]
    for several, worst in ((profiles, profiles[0]), (orders, orders[1])):
        named = several[::-1] if turned else several
        alone = choice_epsilon([worst], 1e-6)
        assert choice_epsilon(named, 1e-6) == pytest.approx(alone)


@pytest.mark.parametrize("mu", [0.2, 0.5, 1.5])
def test_the_choice_of_a_gaussian_costs_no_more(mu):
    """Exactly: the largest of K draws of N(0, 1) against those of N(mu, 1)."""
    x = np.linspace(-12, 14, 400_001)

    def law(shift):
        # K logarithmic: f(q) = log(1 - (1 - gamma) q) / log(gamma)
        q = stats.norm.cdf(x - shift)
        slope = -(1 - GAMMA) / math.log(GAMMA) / (1 - (1 - GAMMA) * q)
        return stats.norm.pdf(x - shift) * slope

    P, Q = law(0.0), law(mu)
    assert P.sum() * (x[1] - x[0]) == pytest.approx(1, abs=1e-6)
    delta = 1e-5
    bound = choice_epsilon([gaussian(1 / mu)], delta)
    for one, two in ((P, Q), (Q, P)):
        left = np.maximum(one - math.exp(bound) * two, 0).sum() * (x[1] - x[0])
        assert left <= delta
    assert gaussian_delta(bound, mu) < delta  # it costs more than one run


def test_more_settings_cost_more_and_always_more_than_one_run():
    one = gaussian(5.0)
    alone = converted(renyi_curve(one, MANY), MANY, 1e-6)
    costs = [tuned_epsilon(one, 1e-6, runs) for runs in (1.01, 10, 1000)]
    assert alone < costs[0] < costs[1] < costs[2]
    open_ = Ledger((*one.events, NonPrivate(1, "", "")))
    assert tuned_epsilon(open_, 1e-6, 10) == math.inf


def test_never_below_the_exact_cost_of_the_best_of_random_answers():
    """Of K answers by randomised response the largest is released."""
    pure, gamma = 0.5, 0.1
    one = Ledger((NoisyMax(1.0, 2 / pure, 1, "", ""),))
    high = 1 / (1 + math.exp(-pure))
    none = [math.log(1 - (1 - gamma) * (1 - p)) / math.log(gamma)
            for p in (high, 1 - high)]  # fmt: skip
    tried = 0
    for epsilon in (0.1, 0.3, 0.5):
        delta = max(none[1] - math.exp(epsilon) * none[0],
                    (1 - none[0]) - math.exp(epsilon) * (1 - none[1]))  # fmt: skip
        if delta > 0:
            tried += 1
            assert tuned_epsilon(one, delta, expected_runs(gamma)) >= epsilon
    assert tried > 1


# --- Rényi curves of sampled releases -------------------------------------------------


def closed_form(q, mu, order):
    """Mironov, Talwar and Zhang 2019, Section 3.3: the mixture against the normal."""
    k = np.arange(2, order + 1)
    grown = k * (k - 1) * mu**2 / 2
    logs = stats.binom.logpmf(k, order, q) + grown + np.log(-np.expm1(-grown))
    return np.logaddexp(0, logsumexp(logs)) / (order - 1)


@pytest.mark.parametrize(
    ("n", "sigma"), [(45312, 5.0), (45312, 2.0), (10**6, 3.0), (45312, 0.63)]
)
def test_the_curve_of_both_directions_bounds_the_pair(n, sigma):
    """Never below, twice as high at most, and equal where large losses decide."""
    orders = np.array([2.0, 3, 5, 10, 30, 60, 100, 150, 200, 10_000])
    found = renyi_curve(sampled(sigma, 7, n), orders)
    pair = 7 * np.array(
        [closed_form(1 / n, 1 / sigma, int(a)) for a in orders]
    )
    assert (found >= pair * (1 - 1e-9)).all()
    assert (found <= 2.001 * pair).all()
    assert found[-1] == pytest.approx(pair[-1], rel=1e-6)


@pytest.mark.parametrize(
    ("n", "sigma", "order"),
    [(50, 1.0, 3.0), (50, 1.0, 1.3), (2000, 0.7, 8.0), (5, 4.0, 1.1)],
)
def test_the_curve_is_that_of_the_deltas_in_both_directions(n, sigma, order):
    """E_Q (P / Q)^a = 1 + a (a - 1) int e^((a-1)e) delta + e^(-ae) delta', by parts."""
    end = 40 / sigma + 800 / sigma**2 / 40
    e = np.concatenate(
        [np.linspace(0, 1e-2, 20_001), np.linspace(1e-2, end, 400_001)]
    )
    deltas = sampled_gaussian_delta(e, 1 / n, 1 / sigma)
    both = (np.exp((order - 1) * e) + np.exp(-order * e)) * deltas
    moment = order * (order - 1) * trapezoid(both, e)
    (found,) = renyi_curve(sampled(sigma, 7, n), np.array([order]))
    assert found == pytest.approx(7 * np.log1p(moment) / (order - 1), rel=2e-3)
