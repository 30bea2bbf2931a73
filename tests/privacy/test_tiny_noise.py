"""Noise so small that each sampled release tells whether it read the record."""

import math

import pytest

from dperm.privacy.accountants import tight
from dperm.privacy.events import Laplace, Ledger, SampledGaussian


def sampled_once(scale, count=1):
    return SampledGaussian(1.0, scale, count, "", "", batch=1, population=1000)


def test_hardly_any_noise_costs_what_gaussians_cost_when_the_record_is_read():
    """One release at sigma 1e-3 has the curve q delta(epsilon) of a Gaussian's."""
    bound = tight.epsilon(Ledger((sampled_once(1e-3),)), 1e-6)
    assert bound == pytest.approx(tight.gaussian_epsilon(1e3, 1e-3), rel=1e-6)
    assert bound == pytest.approx(503_090, rel=1e-5)  # dp-accounting 0.6.0


def test_numbers_of_reads_are_weighed_by_their_chances():
    rate, delta = 1e-3, 1e-4
    mu = 40.0
    bound = tight.read_epsilon(0.0, [sampled_once(1 / mu, 2)], delta)
    once = 2 * rate * (1 - rate) * tight.gaussian_delta(bound, mu)
    twice = rate**2 * tight.gaussian_delta(bound, mu * math.sqrt(2))
    assert once + twice <= delta
    assert once + twice == pytest.approx(delta, rel=2e-2)


def test_the_rest_of_a_ledger_is_added_to_hardly_any_noise():
    laplace = Laplace(1.0, 1.0, 1, "", "")
    alone = tight.epsilon(Ledger((sampled_once(1e-3),)), 5e-7)
    both = tight.epsilon(Ledger((sampled_once(1e-3), laplace)), 1e-6)
    assert alone + 0.9 < both < alone + 1.01
    tiny = Laplace(1.0, 1e-3, 1, "", "")
    whole = tight.epsilon(Ledger((sampled_once(1e-3), tiny)), 1e-6)
    assert alone + 999 < whole < alone + 1001
