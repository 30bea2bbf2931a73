"""Intervals of means of skewed runs, whose coverage is measured."""

import math

import numpy as np
import pytest

from dperm.numerics import intervals


@pytest.mark.parametrize("spread", [0.3, 1.0])
def test_skewed_intervals_cover_a_mean_as_they_say(spread):
    """Of log-normal runs, whose mean is known; Student's lie too low."""
    rng = np.random.default_rng(5)
    mean, low_misses, wrong = math.exp(spread**2 / 2), 0, 0
    for runs in rng.lognormal(0.0, spread, (2000, 60)):
        low, high = intervals.skewed(runs)
        wrong += not low <= mean <= high
        low_misses += intervals.student(runs)[1] < mean
    assert 0.03 < wrong / 2000 < 0.085
    assert wrong <= low_misses + 0.03 * 2000


def test_without_skewness_or_spread_the_interval_is_students():
    level = np.array([1.0, 2.0, 3.0, 4.0])
    assert intervals.skewed(level) == pytest.approx(intervals.student(level))
    assert intervals.skewed(np.ones(5)) == (1.0, 1.0)
    assert intervals.skewed(np.array([2.0])) == (2.0, 2.0)
