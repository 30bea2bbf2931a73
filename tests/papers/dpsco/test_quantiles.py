"""Quantiles with intervals by order statistics, on data of known law."""

import math

import numpy as np
import pytest
from scipy import stats

from dperm.papers.dpsco.rates import quantile, tail


@pytest.mark.parametrize("beta", [0.1, 0.01])
def test_quantiles_have_honest_intervals(beta):
    """Order statistics cover the exponential law's quantile 95 times of a hundred."""
    rng, covered = np.random.default_rng(0), []
    for _ in range(300):
        _, low, high = quantile(rng.exponential(size=1000), beta)
        covered.append(low <= math.log(1 / beta) <= high)
    assert np.mean(covered) > 0.92


@pytest.mark.parametrize("size", [20, 999, 10000])
@pytest.mark.parametrize("beta", [0.5, 0.1, 0.01])
def test_ends_are_the_order_statistics_of_the_binomial_law(size, beta):
    low, high = stats.binom.ppf([0.025, 0.975], size, 1 - beta).astype(int)
    values = np.arange(1.0, size + 1)[::-1]  # the k-th smallest is k
    found = quantile(values, beta)[1:]
    assert found == (max(low, 1), min(high + 1, size))


def test_a_quantile_with_too_few_runs_beyond_is_left_out():
    assert [beta for beta, *_ in tail(np.arange(100.0), (0.5, 0.02, 0.01))] == [
        0.5,
        0.02,
    ]
