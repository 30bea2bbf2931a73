"""The price of a private choice, against printed numbers and exact laws."""

import math

import numpy as np
import pytest
from scipy import stats

from dperm.accountants.perturbed_objective import PerturbedObjective
from dperm.accountants.private_choice import (
    GAMMA,
    calibrate_choice,
    choice_epsilon,
    drawn_runs,
    expected_runs,
)
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import Gaussian, Ledger, SampledGaussian
from dperm.core.privacy.strict import gaussian_delta, gaussian_epsilon

DELTA = 1 / 45312**2


def gaussian(noise):
    return Ledger((Gaussian(1.0, noise, 1, "", ""),))


def test_the_share_that_is_left_for_a_run():
    """3.9 runs leave each 0.756 of the budget at epsilon 1 (worked out by hand)."""
    one = calibrate(gaussian, 1.0, DELTA, "strict").noise_multiplier
    (every,) = calibrate_choice([gaussian], 1.0, DELTA)
    assert one / every == pytest.approx(0.756, abs=1e-3)
    assert 0.999 < choice_epsilon([gaussian(every)], DELTA) <= 1


def tilted(K):
    return lambda z: Ledger((PerturbedObjective(1.0, z, 1, "", "", K),))


def chosen(ways, delta):
    noise = calibrate_choice(ways, 1.0, delta)
    return [way(z) for way, z in zip(ways, noise, strict=True)]


def test_settings_of_different_ledgers_are_held_to_one_budget():
    """A mixture's profile is the largest of its parts' at each epsilon."""
    every = chosen([tilted(0.2), gaussian, tilted(0.1), tilted(0.5)], DELTA)
    alone = [choice_epsilon([one], DELTA) for one in every]
    assert max(alone) <= choice_epsilon(every, DELTA) <= 1 + 1e-9
    assert max(alone) > 0.99


def test_a_setting_that_no_noise_hides_is_left_out():
    assert calibrate_choice([tilted(50.0), gaussian], 1.0, DELTA)[0] is None


def sampled(count):
    return lambda z: Ledger((SampledGaussian(1.0, z, count, 10, 1000, "", ""),))


def test_sampled_releases_are_priced_by_their_renyi_curve():
    every = chosen([sampled(20), sampled(100)], 1e-6)
    assert 0.95 < choice_epsilon(every, 1e-6) <= 1
    alone = calibrate(sampled(100), 1.0, 1e-6, "strict").noise_multiplier
    assert every[1].events[0].noise_multiplier > alone


def test_mixed_settings_keep_the_target_whichever_comes_first():
    """No Rényi curve bounds a tilted objective, no closed form a sampled release."""
    every = chosen([tilted(0.2), sampled(20)], 1e-6)
    assert max(choice_epsilon([one], 1e-6) for one in every[:1]) <= 1
    assert choice_epsilon(every, 1e-6) <= 1.001


K = np.arange(1, 2000)
LAW = (1 - GAMMA) ** K / K / math.log(1 / GAMMA)  # of the number of runs


def test_the_number_of_runs_has_the_law_that_is_paid_for():
    rng = np.random.default_rng(0)
    drawn = np.array([drawn_runs(rng) for _ in range(20_000)])
    assert drawn.min() == 1 and LAW.sum() == pytest.approx(1)
    seen = np.bincount(np.minimum(drawn, 30))[1:]
    expected = np.append(LAW[:29], LAW[29:].sum()) * len(drawn)
    assert stats.chisquare(seen, expected).pvalue > 1e-4
    assert expected_runs(0.0, GAMMA) == pytest.approx(K @ LAW)


@pytest.mark.parametrize("gamma", [0.02, 0.1])
@pytest.mark.parametrize("mu", [0.1, 0.5])
@pytest.mark.parametrize("delta", [1e-9, 1e-4])
def test_by_profiles_it_is_the_theorem_and_hardly_more(mu, gamma, delta):
    """Never below its least value over all inner epsilons, E[K] by its sum."""
    k = np.arange(1, 5000)
    runs = ((1 - gamma) ** k).sum() / ((1 - gamma) ** k / k).sum()
    inner = np.linspace(0.0, mu**2 / 2 + 6 * mu, 5000)
    log = np.logaddexp(
        inner, math.log((1 - gamma) / gamma) + np.log(gaussian_delta(inner, mu))
    )
    least = gaussian_epsilon(mu, delta / runs) + log.min()
    found = choice_epsilon([gaussian(1 / mu)], delta, gamma)
    assert least * (1 - 1e-9) <= found <= 1.05 * least + 2e-3


@pytest.mark.parametrize("gamma", [0.02, 0.1, 0.6])
@pytest.mark.parametrize(("mu", "delta"), [(0.1, 1e-9), (1.0, 1e-4), (2.0, 0.2)])
def test_by_orders_it_is_the_theorem_and_hardly_more(mu, delta, gamma):
    """Papernot and Steinke 2022, Theorem 2, its curve in closed form, all orders."""
    k, a = np.arange(1, 5000), 1 + np.geomspace(0.05, 3000, 4000)
    runs = ((1 - gamma) ** k).sum() / ((1 - gamma) ** k / k).sum()
    curve = a * mu**2 / 2
    inner = (1 - 1 / a) * curve + math.log(1 / gamma) / a
    total = curve + inner.min() + math.log(runs) / (a - 1)
    spent = np.log1p(-1 / a) - np.log(delta * a) / (a - 1)
    least = (total + spent).min()
    whole = SampledGaussian(1.0, 1 / mu, 1, 50, 50, "", "")  # a batch of all records
    found = choice_epsilon([Ledger((whole,))], delta, gamma)
    assert least * (1 - 1e-6) <= found <= 1.1 * least


@pytest.mark.parametrize("turned", [False, True])
def test_of_several_ledgers_the_dearest_decides(turned):
    """At every delta, or order, in whatever order they are named."""
    profiles = [gaussian(z) for z in (3.0, 5.0, 4.0)]
    orders = [sampled(n)(2.0) for n in (10, 50, 20)]
    for several, worst in ((profiles, profiles[0]), (orders, orders[1])):
        named = several[::-1] if turned else several
        alone = choice_epsilon([worst], 1e-6)
        assert choice_epsilon(named, 1e-6) == pytest.approx(alone)


@pytest.mark.parametrize("epsilon", [0.0013, 0.3, 3.0])
def test_held_to_the_first_every_mixture_keeps_the_target(epsilon):
    """Whichever comes first, and where its own inner epsilon is nothing."""
    ways = [gaussian, lambda z: gaussian(2 * z), tilted(0.1), tilted(1.0)]
    for first in range(4):
        mixed = ways[first:] + ways[:first]
        noise = calibrate_choice(mixed, epsilon, DELTA)
        able = [way(z) for way, z in zip(mixed, noise, strict=True) if z is not None]
        assert choice_epsilon(able, DELTA) <= epsilon * (1 + 1e-9)
        assert able and (epsilon < 1 or len(able) == 4)


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
