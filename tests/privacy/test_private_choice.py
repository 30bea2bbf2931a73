"""The price of a private choice, against printed numbers and exact laws."""

import math

import numpy as np
import pytest
from scipy import stats

from dperm.privacy.accounting import gaussian_delta
from dperm.privacy.calibration import calibrate
from dperm.privacy.ledger import Gaussian, Ledger, SampledGaussian
from dperm.privacy.perturbed_objective import PerturbedObjective
from dperm.privacy.private_choice import (
    GAMMA,
    calibrate_choice,
    choice_epsilon,
    drawn_runs,
)
from dperm.privacy.random_stopping import expected_runs

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


def test_the_number_of_runs_has_the_law_that_is_paid_for():
    rng = np.random.default_rng(0)
    drawn = np.array([drawn_runs(rng) for _ in range(20_000)])
    assert drawn.min() == 1
    mean, spread = expected_runs(0.0, GAMMA), drawn.std() / math.sqrt(len(drawn))
    assert abs(drawn.mean() - mean) < 5 * spread


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
