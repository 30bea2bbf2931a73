"""Many canaries in few runs: the bound is sound, and tells what noise hides."""

import numpy as np
import pytest
from scipy import stats

from dperm.audit.blackbox import PrivacyClaim
from dperm.audit.canaries import audit_once, called_epsilon, chance
from dperm.audit.functions import CannotAuditError, Domain

LEVEL = 0.05


def summed(scale):
    """Sums of clipped features, with Laplace noise of that scale on each."""

    def fit(X, y, seed):
        noise = np.random.default_rng(seed).laplace(0, scale, X.shape[1])
        return np.clip(X, -1, 1).sum(axis=0) + noise

    return fit


def test_right_calls_refute_too_much_at_most_as_often_as_the_level_says():
    """Randomised response, whose calls are right with chance e / (1 + e)."""
    rng, times, calls = np.random.default_rng(0), 400, 200
    right = rng.binomial(calls, np.e / (1 + np.e), times)
    bounds = [called_epsilon(int(v), calls, calls, LEVEL, 0.0) for v in right]
    wrong = int((np.array(bounds) > 1).sum())
    assert 0 < wrong <= stats.binom.ppf(0.999, times, LEVEL)


def test_delta_can_only_help_the_function():
    """Chance delta of telling all coins of a run adds to the chance of many rights."""
    plain, helped = (chance(90, 100, 100, 1.0, delta) for delta in (0.0, 1e-3))
    assert plain < helped
    weights = stats.binom(100, np.e / (1 + np.e))
    by_hand = max(
        sum(weights.pmf(90 - k) for k in range(1, i + 1)) / i
        for i in range(1, 91)
    )
    assert helped - plain == pytest.approx(2 * 100 * 1e-3 * by_hand, rel=1e-6)


@pytest.mark.parametrize(
    ("scale", "is_refuted"),
    [pytest.param(2.0, False, marks=pytest.mark.long), (0.7, True)],
)
def test_noise_for_less_than_the_claim_is_refuted_in_a_few_runs(
    scale, is_refuted
):
    domain = Domain(n=2000, p=2000, x=(-1.0, 1.0))
    found = audit_once(
        summed(scale), PrivacyClaim(1.0, seconds=1e9, runs=40), domain
    )
    assert found.refuted == is_refuted
    assert found.epsilon > 0.7 and found.runs == 40


def test_what_is_proved_so_far_is_told_after_each_run():
    """So that it is not lost if a run does not end."""
    told = []
    domain = Domain(n=200, p=200, x=(-1.0, 1.0))
    claim = PrivacyClaim(1.0, seconds=1e9, runs=4)
    last = audit_once(summed(0.7), claim, domain, progress=told.append)
    assert [verdict.runs for verdict in told] == [
        2,
        3,
        4,
    ]  # the first is a pilot
    assert told[-1].proof == last.proof and told[-1].epsilon == last.epsilon
    assert "in 1 runs" in told[0].proof and "in 3 runs" in last.proof


def test_an_output_without_features_is_refused():
    def fit(X, y, seed):
        return 1.0

    with pytest.raises(
        CannotAuditError, match="expected a number for each of 5 features"
    ):
        audit_once(fit, PrivacyClaim(1.0), Domain(n=5, p=5))
