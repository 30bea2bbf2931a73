"""Selections: what the noise of DP-GCD's paper costs."""

import math

import pytest

from dperm.accountants.noisy_max import ChosenValue, NoisyMax
from dperm.core.privacy.accounting import epsilon, true_epsilon
from dperm.core.privacy.calibration import UnreachableTargetError, calibrate
from dperm.core.privacy.ledger import Ledger


def greedy(count, sound=True):
    """Ledger of ``count`` iterations of DP-GCD; epsilon' = 1 / multiplier."""

    def ledger_of(m):
        claim = 1 / m if m else None
        selection = NoisyMax(1.0, m, count, "", "", "laplace", claim, sound)
        return Ledger((selection, ChosenValue(1.0, m, count, "", "")))

    return ledger_of


def test_one_loud_gumbel_selection_is_accounted_as_pure():
    """Bounded range helps with many selections; for one, the pure cost is less."""
    event = NoisyMax(1.0, 1.0, 1, "", "", "gumbel")
    assert true_epsilon(Ledger((event,)), 1e-9) == pytest.approx(2.0, rel=1e-3)


# n: rounds, true epsilon of the published noise, strict over published noise
SLIP = [
    (2600, 1, 0.37, 0.37), (2600, 2, 0.52, 0.52), (2600, 4, 0.73, 0.73),
    (2600, 7, 0.97, 0.97), (2600, 8, 1.03, 1.03), (2600, 10, 1.08, 1.08),
    (2600, 15, 1.16, 1.15), (2600, 20, 1.19, 1.18),
    (800, 10, 1.09, 1.08), (800, 20, 1.17, 1.16),
    (20640, 10, 1.04, 1.04), (20640, 20, 1.21, 1.20),
]  # fmt: skip


@pytest.mark.parametrize(("n", "rounds", "true", "ratio"), SLIP)
def test_what_the_published_noise_costs(n, rounds, true, ratio):
    delta = n**-2.0
    paper, strict = (
        calibrate(greedy(rounds), 1.0, delta, kind) for kind in ("paper", "strict")
    )
    assert paper.claimed_epsilon <= 1.0 and strict.true_epsilon <= 1.0
    assert paper.true_epsilon == pytest.approx(true, abs=0.006)
    share = strict.noise_multiplier / paper.noise_multiplier
    assert share == pytest.approx(ratio, abs=0.006)
    one = 1 / paper.noise_multiplier
    claimed = math.sqrt(4 * rounds * math.log(1 / delta)) * one
    claimed += 2 * rounds * one * (math.exp(one) - 1)
    assert claimed == pytest.approx(1.0, abs=1e-6)


def test_no_sound_bound_keeps_the_claim():
    ledger = greedy(5, sound=False)(30.0)
    assert true_epsilon(ledger, 1e-6) == math.inf
    assert math.isfinite(epsilon(ledger, 1e-6, "paper"))
    assert ledger.events[0].pure == pytest.approx(2 / 30)
    paper = calibrate(greedy(5, sound=False), 1.0, 1e-6, "paper")
    assert paper.true_epsilon == math.inf and paper.claimed_epsilon <= 1.0
    with pytest.raises(UnreachableTargetError):
        calibrate(greedy(5, sound=False), 1.0, 1e-6, "strict")
