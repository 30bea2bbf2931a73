"""The price of a private choice, against printed numbers and exact laws."""

import math

import numpy as np
import pytest
from scipy import stats

from dperm.privacy.accounting import gaussian_delta
from dperm.privacy.calibration import calibrate
from dperm.privacy.ledger import Gaussian, Ledger, SampledGaussian
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
    one = calibrate(gaussian, 1.0, DELTA, "strict")
    every = calibrate_choice(gaussian, 1.0, DELTA)
    share = one.noise_multiplier / every.noise_multiplier
    assert share == pytest.approx(0.756, abs=1e-3)
    assert 0.999 < every.true_epsilon <= 1


def test_sampled_releases_are_priced_by_their_renyi_curve():
    def sampled(noise):
        return Ledger((SampledGaussian(1.0, noise, 100, 10, 1000, "", ""),))

    found = calibrate_choice(sampled, 1.0, 1e-6)
    alone = calibrate(sampled, 1.0, 1e-6, "strict")
    assert found.true_epsilon <= 1
    assert found.noise_multiplier > alone.noise_multiplier


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
    bound = choice_epsilon(gaussian(1 / mu), delta)
    for one, two in ((P, Q), (Q, P)):
        left = np.maximum(one - math.exp(bound) * two, 0).sum() * (x[1] - x[0])
        assert left <= delta
    assert gaussian_delta(bound, mu) < delta  # it costs more than one run
