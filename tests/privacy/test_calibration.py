"""The least noise for a target: coarse searches, and the papers' noise."""

import math

import pytest

from dperm.accountants.perturbed_objective import PerturbedObjective
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


@pytest.mark.parametrize("target", [0.0, -1.0, math.nan])
def test_targets_must_be_positive(target):
    with pytest.raises(ValueError, match="positive"):
        calibrate(dp_cd(1), target, 1e-6, "paper")


def weak_ridge(noise):
    """Its determinant is paid for whatever the noise."""
    return Ledger((PerturbedObjective(1.0, noise, 1, "", "", 2.0),))


@pytest.mark.parametrize(
    ("ledger_of", "target", "calibration"),
    [
        (fixed(Laplace(1.0, 0.5, 1, "", ""), 1), 1.0, "paper"),
        (fixed(Laplace(1.0, 0.5, 1, "", ""), 1), 1.0, "strict"),
        # of a weak ridge, whose determinant is paid for
        (
            lambda z: Ledger((PerturbedObjective(1.0, z, 1, "", "", 2.0),)),
            0.1,
            "strict",
        ),
    ],
)
def test_a_fixed_cost_above_the_target_is_out_of_reach(ledger_of, target, calibration):
    with pytest.raises(UnreachableTargetError, match="whatever the noise"):
        calibrate(ledger_of, target, 1e-6, calibration)
