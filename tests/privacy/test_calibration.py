"""The least noise for a target: coarse searches, and what the papers' noise costs."""

import math
from functools import partial

import pytest

from dperm.privacy.accounting import epsilon, true_epsilon
from dperm.privacy.calibration import (
    TOLERANCE_GRID,
    UnreachableTargetError,
    calibrate,
    smallest,
)
from dperm.privacy.events import Laplace, Ledger
from dperm.privacy.mechanisms.noisy_max import NOISES, ChosenValue, NoisyMax
from dperm.solvers.batched.dp_cd_priv import smoothness_event

from .laws import gaussian, laplace, sampled, tilted

ELECTRICITY, CALIFORNIA = 45_312, 20_640


def dp_sgd(n, passes):
    return partial(sampled, count=passes * n, n=n)


def beside(fixed):
    """Three Gaussian releases of any noise, and others."""
    return lambda sigma: fixed + gaussian(sigma, 3)


@pytest.mark.parametrize(
    ("ledger_of", "target"),
    [
        (dp_sgd(1000, 2), 0.01),
        (dp_sgd(1000, 2), 30.0),
        (dp_sgd(1000, 20), 1.0),
        (partial(laplace, count=10), 1.0),
        (beside(laplace(1.0)), 1.5),
        (beside(laplace(1.0)), 1.0005),
        (beside(gaussian(3.0, 4)), 3.105),
    ],
)
def test_coarse_grids_find_what_the_bounds_find(ledger_of, target):
    def price(multiplier):
        return epsilon(ledger_of(multiplier), 1e-6, "tight")

    found = calibrate(ledger_of, target, 1e-6, "tight")
    assert price(found.noise_multiplier) == found.claimed_epsilon <= target
    least = smallest(price, target, TOLERANCE_GRID)
    assert found.noise_multiplier == pytest.approx(least, rel=TOLERANCE_GRID)


@pytest.mark.parametrize(
    ("n", "target", "delta", "ratio", "true"),
    [
        (ELECTRICITY, 1.0, ELECTRICITY**-2, 0.85, 0.841),
        (CALIFORNIA, 1.0, CALIFORNIA**-2, 0.84, 0.831),
        (1000, 10.0, 1e-6, 0.89, 8.70),
    ],
)
def test_noise_of_dp_cd(n, target, delta, ratio, true):
    published, tight = (
        calibrate(partial(gaussian, count=80), target, delta, name)
        for name in ("published", "tight")
    )
    assert published.true_epsilon == pytest.approx(true, abs=5e-4 * target)
    share = tight.noise_multiplier / published.noise_multiplier
    assert share == pytest.approx(ratio, abs=5e-3)
    log = math.log(1 / delta)
    closed = math.sqrt(40) / (math.sqrt(log + target) - math.sqrt(log))
    assert published.noise_multiplier == pytest.approx(closed, rel=1e-6)
    assert epsilon(gaussian(closed, 80), delta, "published") == pytest.approx(
        target
    )


@pytest.mark.parametrize(
    ("n", "target", "delta", "passes", "printed", "tight", "true"),
    [
        (CALIFORNIA, 1.0, CALIFORNIA**-2, 2, 0.954, 0.623, 0.09),
        (CALIFORNIA, 1.0, CALIFORNIA**-2, 50, 0.967, 0.689, 0.46),
        (ELECTRICITY, 1.0, ELECTRICITY**-2, 2, 0.945, 0.604, 0.06),
        (ELECTRICITY, 1.0, ELECTRICITY**-2, 50, 0.957, 0.651, 0.33),
        (1000, 10.0, 1e-6, 2, 0.446, None, 7.0),
        (1000, 10.0, 1e-6, 50, 0.525, None, 10.46),
    ],
)
def test_noise_of_dp_sgd(n, target, delta, passes, printed, tight, true):
    published = calibrate(dp_sgd(n, passes), target, delta, "published")
    assert published.noise_multiplier == pytest.approx(printed, abs=6e-4)
    near = 0.02 if target == 10 else 6e-3
    assert published.true_epsilon == pytest.approx(true, abs=near)
    if tight:
        least = calibrate(dp_sgd(n, passes), target, delta, "tight")
        assert least.noise_multiplier == pytest.approx(tight, abs=6e-4)
        assert 0.998 < least.true_epsilon == least.claimed_epsilon <= target


def test_what_private_constants_cost():
    published, tight = (
        smoothness_event(8, 0.1, name) for name in ("published", "tight")
    )
    assert (
        isinstance(published, Laplace) and published.count == tight.count == 8
    )
    assert (
        published.scale
        == pytest.approx(2 * tight.scale)
        == pytest.approx(160.0)
    )
    assert epsilon(Ledger((published,)), 1e-9, "published") == pytest.approx(
        0.1
    )
    assert epsilon(Ledger((tight,)), 1e-9, "published") == pytest.approx(0.1)
    assert true_epsilon(Ledger((published,)), 1e-9) == pytest.approx(
        0.05, rel=0.02
    )
    assert true_epsilon(Ledger((tight,)), 1e-9) == pytest.approx(0.1, rel=0.02)


def private_constants(calibration):
    fixed = Ledger((smoothness_event(8, 0.1, calibration),))
    return lambda sigma: fixed + gaussian(sigma, 160)


def test_published_dp_cd_with_private_constants_splits_its_budget():
    delta = CALIFORNIA**-2
    whole = calibrate(private_constants("published"), 1.0, delta, "published")
    rest = calibrate(partial(gaussian, count=160), 0.9, delta, "published")
    assert whole.noise_multiplier == pytest.approx(
        rest.noise_multiplier, rel=1e-6
    )
    assert rest.true_epsilon < whole.true_epsilon < 0.9
    tight = calibrate(private_constants("tight"), 1.0, delta, "tight")
    assert tight.noise_multiplier < 0.8 * whole.noise_multiplier


@pytest.mark.parametrize("target", [0.0, -1.0, math.nan])
def test_targets_must_be_positive(target):
    with pytest.raises(ValueError, match="positive"):
        calibrate(gaussian, target, 1e-6, "published")


@pytest.mark.parametrize(
    ("ledger_of", "target", "calibration"),
    [
        (beside(laplace(0.5)), 1.0, "published"),
        (beside(laplace(0.5)), 1.0, "tight"),
        (partial(tilted, curvature=2.0), 0.1, "tight"),  # the determinant's
    ],
)
def test_a_fixed_cost_above_the_target_is_out_of_reach(
    ledger_of, target, calibration
):
    with pytest.raises(UnreachableTargetError, match="whatever the noise"):
        calibrate(ledger_of, target, 1e-6, calibration)


# --- selections, whose published noise is that of DP-GCD ------------------------------


def greedy(count, sound=True):
    """Ledger of ``count`` iterations of DP-GCD; epsilon' = 1 / multiplier."""

    def ledger_of(m):
        claim = 1 / m if m else None
        selection = NoisyMax(1.0, m, count, "", "", "laplace", claim, sound)
        return Ledger((selection, ChosenValue(1.0, m, count, "", "")))

    return ledger_of


def test_a_hundred_selections():
    """The figures of docs/accounting.md: 6.31, 4.77 and 2.42."""
    ledgers = {noise: Ledger((NoisyMax(1.0, 20.0, 100, "", "", noise),))
               for noise in NOISES}  # fmt: skip
    for ledger in ledgers.values():
        assert epsilon(ledger, 1e-6, "published") == pytest.approx(
            6.308, abs=1e-3
        )
    found = {
        noise: true_epsilon(ledger, 1e-6) for noise, ledger in ledgers.items()
    }
    assert found["laplace"] == pytest.approx(4.775, abs=0.01)
    assert found["gumbel"] == pytest.approx(2.42, abs=0.005)


def test_one_loud_gumbel_selection_is_accounted_as_pure():
    """Bounded range helps with many selections; for one, the pure cost is less."""
    event = NoisyMax(1.0, 1.0, 1, "", "", "gumbel")
    assert true_epsilon(Ledger((event,)), 1e-9) == pytest.approx(2.0, rel=1e-3)


# n: rounds, true epsilon of the published noise, tight over published noise
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
    published, tight = (
        calibrate(greedy(rounds), 1.0, delta, calibration)
        for calibration in ("published", "tight")
    )
    assert published.claimed_epsilon <= 1.0 and tight.true_epsilon <= 1.0
    assert published.true_epsilon == pytest.approx(true, abs=0.006)
    share = tight.noise_multiplier / published.noise_multiplier
    assert share == pytest.approx(ratio, abs=0.006)
    one = 1 / published.noise_multiplier
    claimed = math.sqrt(4 * rounds * math.log(1 / delta)) * one
    claimed += 2 * rounds * one * (math.exp(one) - 1)
    assert claimed == pytest.approx(1.0, abs=1e-6)


def test_no_sound_bound_keeps_the_claim():
    ledger = greedy(5, sound=False)(30.0)
    assert true_epsilon(ledger, 1e-6) == math.inf
    assert math.isfinite(epsilon(ledger, 1e-6, "published"))
    assert ledger.events[0].pure == pytest.approx(2 / 30)
    published = calibrate(greedy(5, sound=False), 1.0, 1e-6, "published")
    assert (
        published.true_epsilon == math.inf and published.claimed_epsilon <= 1.0
    )
    with pytest.raises(UnreachableTargetError):
        calibrate(greedy(5, sound=False), 1.0, 1e-6, "tight")
