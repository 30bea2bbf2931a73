"""Private tuning by random stopping, against the theorems' own corner cases."""

import doctest
import math

import numpy as np
import pytest

from dperm.privacy import (
    Gaussian,
    Laplace,
    Ledger,
    NoisyMax,
    SampledGaussian,
)
from dperm.privacy import (
    random_stopping as tuning,
)
from dperm.privacy.random_stopping import (
    converted,
    expected_runs,
    renyi_curve,
    stopping,
    tuned_epsilon,
)

ONE = Ledger((Gaussian(1.0, 5.0, 1, "unit", "source"),))


def test_docstrings_are_true():
    assert doctest.testmod(tuning).failed == 0


@pytest.mark.parametrize("eta", [0.0, 1.0, 2.5])
def test_expected_runs_against_their_distribution(eta):
    gamma, k = 0.05, np.arange(1, 4000)
    if eta == 0:
        weights = (1 - gamma) ** k / k
    else:
        steps = np.log(k + eta - 1) - np.log(k)
        weights = np.exp(np.cumsum(steps) + k * np.log1p(-gamma))
    mean = (k * weights).sum() / weights.sum()
    assert expected_runs(eta, gamma) == pytest.approx(mean, rel=1e-6)
    assert expected_runs(eta, stopping(eta, 77.0)) == pytest.approx(77.0)


def test_curves_of_profiles_meet_closed_forms():
    orders = np.array([1.2, 2.0, 7.0, 40.0])
    event = Laplace(1.0, 3.0, 2, "unit", "source")
    closed = renyi_curve(Ledger((event,)), orders)
    # the profile takes the worse of both directions, which for Laplace are equal
    np.testing.assert_allclose(tuning._from_profile(event, orders), closed, rtol=1e-6)
    everything = SampledGaussian(1.0, 5.0, 1, 50, 50, "unit", "source")
    np.testing.assert_allclose(
        renyi_curve(Ledger((everything,)), orders), renyi_curve(ONE, orders), rtol=1e-6
    )


@pytest.mark.parametrize("kind", ["logarithmic", "geometric", "poisson"])
def test_more_settings_cost_more_and_always_more_than_one_run(kind):
    alone = converted(renyi_curve(ONE), 1e-6)
    costs = [tuned_epsilon(ONE, 1e-6, runs, kind) for runs in (1.5, 10, 1000)]
    assert alone < costs[0] < costs[1] < costs[2]


def test_a_logarithmic_number_of_settings_at_least_doubles_the_budget():
    """Their headline: for pure DP random stopping costs between 2 and 3 epsilon."""
    pure = Ledger((NoisyMax(1.0, 20.0, 1, "unit", "source"),))  # 0.1
    orders = np.array([1e6])
    curve = renyi_curve(pure, orders)[0]
    limit = 2 * curve  # (1 + 1 + eta) epsilon, eta = 0, gamma fixed, orders large
    found = tuned_epsilon(pure, 1e-9, 100, "logarithmic")
    assert limit < found < 8 * limit


def test_numbers_that_make_no_sense_are_refused():
    with pytest.raises(tuning.GridError, match="more than 1"):
        tuned_epsilon(ONE, 1e-6, 1.0, "geometric")
    assert math.isfinite(tuned_epsilon(ONE, 1e-6, 1.01, "geometric"))


def test_never_below_the_exact_cost_of_random_stopping():
    """A mechanism whose best of K is known: one bit, randomised response.

    Of K answers the largest is released; K geometric. Its delta is an excess of the
    chances of its two outcomes.
    """
    pure, gamma, k = 0.5, 0.1, np.arange(1, 5000)
    law = gamma * (1 - gamma) ** (k - 1)
    one = Ledger((NoisyMax(1.0, 2 / pure, 1, "unit", "source"),))
    high = 1 / (1 + math.exp(-pure))
    none = [float((law * (1 - p) ** k).sum()) for p in (high, 1 - high)]
    tried = 0
    for epsilon in (0.2, 0.4, 0.6):
        delta = max(none[1] - math.exp(epsilon) * none[0],
                    (1 - none[0]) - math.exp(epsilon) * (1 - none[1]))  # fmt: skip
        if delta > 0:
            tried += 1
            assert tuned_epsilon(one, delta, 1 / gamma, "geometric") >= epsilon
    assert tried
