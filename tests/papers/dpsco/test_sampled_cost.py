"""Divergences by sampling, against closed forms."""

import math

import numpy as np
import pytest

from dperm.accountants.generalised_gaussian import renyi_epsilon
from dperm.core.privacy.strict import gaussian_delta, gaussian_epsilon
from dperm.papers.dpsco import proofs
from dperm.papers.dpsco.proofs import Draws, directions, least_epsilon

DELTA = 1e-6


@pytest.mark.parametrize("multiplier", [0.8, 4.0])
def test_of_the_gaussian_it_is_the_exact_cost_from_below(multiplier):
    draws = Draws.of(2.0, 8, 1)
    exact = gaussian_epsilon(1 / multiplier, DELTA)
    found = least_epsilon(draws, 2.0, multiplier, DELTA)
    assert 0.97 * exact < found < exact


def test_in_one_dimension_every_order_is_a_gaussian_of_its_own_scale():
    draws = Draws.of(5.0, 1, 2)
    exact = gaussian_epsilon(1 / 2.0, DELTA)
    assert 0.95 * exact < least_epsilon(draws, 5.0, 2.0, DELTA) < exact


def test_draws_far_off_are_weighted_back():
    """The same divergence from about the centre and from far away."""
    draws, shift = Draws.of(2.0, 3, 3, 40_000), np.array([0.7, 0.0, 0.0])
    exact = float(gaussian_delta(np.array([1.0]), 0.7)[0])
    for away in (0.0, 1.0, 2.0):
        found = proofs.divergence(draws, shift, 1.0, away)
        assert 0.9 * exact < found < exact


@pytest.mark.parametrize("q", [3.0, math.inf])
def test_directions_have_unit_norm(q):
    found = directions(6, q)
    assert [np.count_nonzero(each) for each in found] == [1, 3, 6]
    for each in found:
        size = np.abs(each).max() if math.isinf(q) else (each**q).sum() ** (1 / q)
        assert size == pytest.approx(1.0)


def test_it_lies_below_the_proved_bound_and_above_nothing():
    draws = Draws.of(5.0, 16, 4)
    found = least_epsilon(draws, 5.0, 1.5, DELTA)
    assert 0 < found < renyi_epsilon(4.0, 1.5, DELTA)
    assert least_epsilon(draws, 5.0, 1e7, DELTA) == 0.0  # noise that hides everything


@pytest.mark.parametrize("p", [1.5, 2.0])
def test_costs_have_an_interval(p):
    row = proofs._row("noisy_sfw", p, {}, *proofs.tree_costs(p, 1000, 8.0, 1, d=8))
    low, high = row["true_epsilon_low"], row["true_epsilon_high"]
    assert 0 < low <= row["true_epsilon"] == high
    assert (low == high) == (p == 2.0)
