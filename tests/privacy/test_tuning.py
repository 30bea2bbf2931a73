from __future__ import annotations

import math

import numpy as np
import pytest

from dperm.privacy.accounting import gaussian_epsilon
from dperm.privacy.tuning import (
    TrialsError,
    gaussian_concentration,
    mean_trials,
    stopping,
    tuned_epsilon,
    tuned_renyi,
)


def truncated_negative_binomial(eta, gamma, largest=200_000):
    """Probabilities of 1, 2, ... by their recursion, which covers eta = 0 as well."""
    k = np.arange(1, largest)
    weights = np.concatenate([[1.0], np.cumprod((k + eta) / (k + 1) * (1 - gamma))])
    return weights / weights.sum()


@pytest.mark.parametrize("eta", [-0.5, 0.0, 0.5, 1.0, 2.0])
def test_the_mean_is_that_of_the_law(eta):
    law = truncated_negative_binomial(eta, 0.01)
    mean = (np.arange(1, len(law) + 1) * law).sum()
    assert mean_trials(eta, 0.01) == pytest.approx(mean, rel=1e-6)


@pytest.mark.parametrize("eta", [0.0, 1.0])
@pytest.mark.parametrize("trials", [1.5, 10.0, 5000.0])
def test_stopping_gives_the_wanted_mean(eta, trials):
    assert mean_trials(eta, stopping(eta, trials)) == pytest.approx(trials, rel=1e-9)


def test_a_geometric_law_stops_with_chance_gamma():
    assert stopping(1.0, 1000.0) == pytest.approx(1e-3)


def test_the_inner_minimum_is_the_best_order():
    rho, gamma, eta = 0.02, 1e-3, 1.0
    beta = np.linspace(1, 400, 400_000)
    inner = ((1 - 1 / beta) * rho * beta + math.log(1 / gamma) / beta).min()
    orders = np.array([2.0, 10.0])
    expected = rho * orders + 2 * inner + math.log(1 / gamma) / (orders - 1)
    assert tuned_renyi(orders, rho, eta, gamma) == pytest.approx(expected, rel=1e-7)


def test_orders_below_one_are_not_used():
    found = tuned_renyi(np.array([2.0]), 100.0, 1.0, 0.9)
    assert found[0] == pytest.approx(200 + 2 * math.log(1 / 0.9) + math.log(1 / 0.9))


def test_choosing_costs_something_and_more_for_more_trials():
    rho, delta = gaussian_concentration(1.0, 1e-8), 1e-8
    costs = [tuned_epsilon(rho, delta, trials) for trials in (1, 2, 10, 1000)]
    assert costs == sorted(costs)
    assert costs[0] == pytest.approx(1.0, rel=0.08)  # Rényi bound of one Gaussian
    assert 2 < costs[-1] < 3  # a fixed number of 1000 would cost above 30
    assert tuned_epsilon(rho, delta, 1000, eta=0.0) < costs[-1]


def test_never_below_the_exact_cost_of_random_stopping():
    """A mechanism whose best of K is known: one bit, randomised response.

    Of K answers the largest is released; K geometric. Its epsilon at delta 0 is the
    log-ratio of the chances of a 0.
    """
    pure, gamma = 0.5, 0.1
    rho = pure**2 / 2  # pure DP is (pure^2 / 2)-zCDP
    law = truncated_negative_binomial(1.0, gamma, 5000)
    k = np.arange(1, len(law) + 1)
    high = 1 / (1 + math.exp(-pure))
    none = [float((law * (1 - p) ** k).sum()) for p in (high, 1 - high)]
    for epsilon in (0.2, 0.5, 1.0):
        delta = max(none[1] - math.exp(epsilon) * none[0],
                    (1 - none[0]) - math.exp(epsilon) * (1 - none[1]))  # fmt: skip
        if delta > 0:
            assert tuned_epsilon(rho, delta, 10.0) >= epsilon


def test_the_gaussian_of_a_target_costs_the_target():
    rho = gaussian_concentration(2.0, 1e-6)
    assert gaussian_epsilon(math.sqrt(2 * rho), 1e-6) == pytest.approx(2.0, rel=1e-9)


def test_fewer_than_one_trial_is_refused():
    with pytest.raises(TrialsError, match="above 1"):
        stopping(1.0, 0.5)
