"""Noise scales that are computed from the data, against simulation."""

import math

import numpy as np
import pytest

from dperm.privacy.scales import delta, epsilons


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_delta_against_samples(epsilon):
    ratios, counts = np.array([1.3, 0.9, 1.05]), np.full(3, 5.0)
    rng = np.random.default_rng(0)
    squares = rng.chisquare(5, (400_000, 3))
    losses = (squares * (ratios**2 - 1) / 2 - counts * np.log(ratios)).sum(axis=1)
    told = np.maximum(-np.expm1(epsilon - losses), 0)
    found = delta(ratios, counts, epsilon)
    spread = told.std() / math.sqrt(told.size)
    assert abs(found.value - told.mean()) < 4 * spread
    assert 0 <= found.error < 1e-5 * found.value + 1e-7


def test_ends_are_near_and_in_order_and_grow_with_the_releases():
    ratios = np.array([1.02, 0.97, 1.0])
    costs = [epsilons(ratios, np.full(3, float(k)), 1e-6) for k in (5, 50, 500)]
    for low, high in costs:
        assert low <= high <= low * (1 + 1e-4) + 1e-9
    assert costs[0][1] < costs[1][0] < costs[2][0]
    assert epsilons(np.ones(3), np.full(3, 9.0), 1e-6) == (0.0, 0.0)
    assert epsilons(np.array([1.0, 0.0]), np.ones(2), 1e-6) == (math.inf, math.inf)


@pytest.mark.parametrize("target", [1e-8, 1e-2])
def test_the_high_end_keeps_the_target_and_the_low_end_does_not(target):
    """With all errors of the integrals, over both directions."""
    ratios, counts = np.array([1.3, 0.9, 1.05]), np.array([3.0, 40.0, 10.0])
    low, high = epsilons(ratios, counts, target)
    at_high = [delta(way, counts, high) for way in (ratios, 1 / ratios)]
    assert max(found.value + found.error for found in at_high) <= target
    at_low = [delta(way, counts, low) for way in (ratios, 1 / ratios)]
    assert max(found.value - found.error for found in at_low) >= target


def test_either_direction_is_looked_at():
    counts = np.full(1, 40.0)
    ends = epsilons(np.array([1.4]), counts, 1e-4)
    assert ends == pytest.approx(epsilons(np.array([1 / 1.4]), counts, 1e-4))
