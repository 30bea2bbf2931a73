"""The least noise for a target: coarse searches, and the papers' noise."""

import math

import pytest

from dperm.core.privacy.accounting import epsilon, true_epsilon
from dperm.core.privacy.calibration import (
    TOLERANCE_GRID,
    UnreachableTargetError,
    calibrate,
    smallest,
)
from dperm.core.privacy.ledger import Gaussian, Laplace, Ledger, SampledGaussian
from dperm.solvers.lanes.dp_cd_priv import smoothness_event

ELECTRICITY, CALIFORNIA = 45_312, 20_640


def dp_cd(count):
    return lambda sigma: Ledger((Gaussian(1.0, sigma, count, "", ""),))


def dp_sgd(n, passes):
    return lambda sigma: Ledger(
        (SampledGaussian(1.0, sigma, passes * n, "", "", 1, n),)
    )


def private_constants(p, count, calibration):
    event = smoothness_event(p, 0.1, calibration)
    return lambda sigma: Ledger((event,)) + dp_cd(count)(sigma)


def fixed(event, count):
    return lambda sigma: Ledger((event,)) + dp_cd(count)(sigma)


@pytest.mark.parametrize(
    ("ledger_of", "target"),
    [
        (dp_sgd(1000, 2), 0.01),
        (dp_sgd(1000, 2), 30.0),
        (dp_sgd(1000, 20), 1.0),
        (lambda scale: Ledger((Laplace(1.0, scale, 10, "", ""),)), 1.0),
        (fixed(Laplace(1.0, 1.0, 1, "", ""), 3), 1.5),
        (fixed(Laplace(1.0, 1.0, 1, "", ""), 3), 1.0005),
        (fixed(Gaussian(1.0, 3.0, 4, "", ""), 3), 3.105),
    ],
)
def test_coarse_grids_find_what_the_bounds_find(ledger_of, target):
    def price(multiplier):
        return epsilon(ledger_of(multiplier), 1e-6, "strict")

    found = calibrate(ledger_of, target, 1e-6, "strict")
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
    paper, strict = (
        calibrate(dp_cd(80), target, delta, name) for name in ("paper", "strict")
    )
    assert paper.true_epsilon == pytest.approx(true, abs=5e-4 * target)
    share = strict.noise_multiplier / paper.noise_multiplier
    assert share == pytest.approx(ratio, abs=5e-3)
    log = math.log(1 / delta)
    closed = math.sqrt(40) / (math.sqrt(log + target) - math.sqrt(log))
    assert paper.noise_multiplier == pytest.approx(closed, rel=1e-6)
    assert epsilon(dp_cd(80)(closed), delta, "paper") == pytest.approx(target)


@pytest.mark.parametrize(
    ("n", "target", "delta", "passes", "paper", "strict", "true"),
    [
        (CALIFORNIA, 1.0, CALIFORNIA**-2, 2, 0.954, 0.623, 0.09),
        (CALIFORNIA, 1.0, CALIFORNIA**-2, 50, 0.967, 0.689, 0.46),
        (ELECTRICITY, 1.0, ELECTRICITY**-2, 2, 0.945, 0.604, 0.06),
        (ELECTRICITY, 1.0, ELECTRICITY**-2, 50, 0.957, 0.651, 0.33),
        (1000, 10.0, 1e-6, 2, 0.446, None, 7.0),
        (1000, 10.0, 1e-6, 50, 0.525, None, 10.46),
    ],
)
def test_noise_of_dp_sgd(n, target, delta, passes, paper, strict, true):
    published = calibrate(dp_sgd(n, passes), target, delta, "paper")
    assert published.noise_multiplier == pytest.approx(paper, abs=6e-4)
    near = 0.02 if target == 10 else 6e-3
    assert published.true_epsilon == pytest.approx(true, abs=near)
    if strict:
        least = calibrate(dp_sgd(n, passes), target, delta, "strict")
        assert least.noise_multiplier == pytest.approx(strict, abs=6e-4)
        assert 0.998 < least.true_epsilon == least.claimed_epsilon <= target


def test_what_private_constants_cost():
    paper, strict = (smoothness_event(8, 0.1, name) for name in ("paper", "strict"))
    assert isinstance(paper, Laplace) and paper.count == strict.count == 8
    assert paper.scale == pytest.approx(2 * strict.scale) == pytest.approx(160.0)
    assert epsilon(Ledger((paper,)), 1e-9, "paper") == pytest.approx(0.1)
    assert epsilon(Ledger((strict,)), 1e-9, "paper") == pytest.approx(0.1)
    assert true_epsilon(Ledger((paper,)), 1e-9) == pytest.approx(0.05, rel=0.02)
    assert true_epsilon(Ledger((strict,)), 1e-9) == pytest.approx(0.1, rel=0.02)


def test_published_dp_cd_with_private_constants_splits_its_budget():
    delta = CALIFORNIA**-2
    whole = calibrate(private_constants(8, 160, "paper"), 1.0, delta, "paper")
    rest = calibrate(dp_cd(160), 0.9, delta, "paper")
    assert whole.noise_multiplier == pytest.approx(rest.noise_multiplier, rel=1e-6)
    assert rest.true_epsilon < whole.true_epsilon < 0.9
    strict = calibrate(private_constants(8, 160, "strict"), 1.0, delta, "strict")
    assert strict.noise_multiplier < 0.8 * whole.noise_multiplier


@pytest.mark.parametrize("target", [0.0, -1.0, math.nan])
def test_targets_must_be_positive(target):
    with pytest.raises(ValueError, match="positive"):
        calibrate(dp_cd(1), target, 1e-6, "paper")


def test_a_fixed_cost_above_the_target_is_out_of_reach():
    fixed = Ledger((Laplace(1.0, 0.5, 1, "", ""),))
    for calibration in ("paper", "strict"):
        with pytest.raises(UnreachableTargetError, match="whatever the noise"):
            calibrate(lambda s: fixed + dp_cd(1)(s), 1.0, 1e-6, calibration)
