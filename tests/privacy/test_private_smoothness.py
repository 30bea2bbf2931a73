"""Private smoothness constants of DP-CD: their bounds, noise and price."""

import math

import numpy as np
import pytest
from scipy import sparse, stats

from dperm.core.calibrations import UnknownCalibrationError
from dperm.core.privacy.accounting import epsilon, true_epsilon
from dperm.core.privacy.ledger import Laplace, Ledger, LedgerError
from dperm.core.privacy.mechanisms import streams
from dperm.solvers.lanes.dp_cd_priv import (
    BoundsError,
    feature_bounds,
    private_smoothness,
    smoothness_event,
)

N = 500


@pytest.fixture(name="X")
def features():
    return streams(0).sampling.standard_normal((N, 8)) * 10.0 ** np.arange(-4, 4)


def smoothness(X, factor):
    return factor * (X**2).mean(axis=0)


@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_bounds_of_dense_and_sparse_features(X, factor):
    X[np.abs(X) < 1e-4] = 0.0
    bounds = feature_bounds(X, factor)
    assert bounds.shape == (8,)
    assert bounds == pytest.approx(factor * (2 * np.abs(X).max(axis=0)) ** 2)
    assert feature_bounds(sparse.csc_matrix(X), factor) == pytest.approx(bounds)
    assert feature_bounds(sparse.csc_array(X), factor) == pytest.approx(bounds)


def test_records_stay_within_their_bounds(X):
    assert (np.square(X) <= feature_bounds(X, 1.0)).all()


@pytest.mark.parametrize(("calibration", "factor"), [("paper", 2.0), ("strict", 1.0)])
def test_noise_has_the_stated_scale(calibration, factor):
    p = 4000
    M, bounds = np.full(p, 3.0), np.full(p, 7.0)
    noisy, _ = private_smoothness(M, bounds, 1e4, N, streams(1).smoothness, calibration)
    scale = factor * 7.0 * p / (N * 1e4)
    assert stats.kstest((noisy - M) / scale, stats.laplace.cdf).pvalue > 0.01


@pytest.mark.parametrize("calibration", ["paper", "strict"])
def test_constants_never_fall_below_the_noise(X, calibration):
    M, bounds = smoothness(X, 1.0), feature_bounds(X, 1.0)
    draws = [
        private_smoothness(M, bounds, 0.1, N, streams(seed).smoothness, calibration)
        for seed in range(20)
    ]
    scales = draws[0][1][0].scale * bounds / N
    noisy = np.array([draw for draw, _ in draws])
    assert (noisy >= scales).all()
    assert (noisy == scales).any() and (noisy > scales).any()


def test_what_the_release_costs():
    paper, strict = (smoothness_event(8, 0.1, name) for name in ("paper", "strict"))
    assert isinstance(paper, Laplace) and paper.count == strict.count == 8
    assert paper.scale == pytest.approx(2 * strict.scale) == pytest.approx(160.0)
    assert epsilon(Ledger((paper,)), 1e-9, "paper") == pytest.approx(0.1)
    assert epsilon(Ledger((strict,)), 1e-9, "paper") == pytest.approx(0.1)
    assert true_epsilon(Ledger((paper,)), 1e-9) == pytest.approx(0.05, rel=0.02)
    assert true_epsilon(Ledger((strict,)), 1e-9) == pytest.approx(0.1, rel=0.02)


def test_without_privacy_the_constants_are_exact(X):
    M, bounds = smoothness(X, 1.0), feature_bounds(X, 1.0)
    noisy, events = private_smoothness(
        M, bounds, math.inf, N, streams(2).smoothness, "paper"
    )
    assert (noisy == M).all()
    assert true_epsilon(Ledger(events), 1e-6) == math.inf


def test_errors_are_named():
    rng, M, bounds = streams(3).smoothness, np.ones(2), np.full(2, 4.0)
    with pytest.raises(UnknownCalibrationError):
        private_smoothness(M, bounds, 0.1, N, rng, "loose")
    for epsilon_prime in (0.0, -1.0):
        with pytest.raises(LedgerError):
            private_smoothness(M, bounds, epsilon_prime, N, rng, "paper")
    for bad in (5 * M, -M, np.full(2, math.nan), np.ones(3)):
        with pytest.raises(BoundsError):
            private_smoothness(bad, bounds, 0.1, N, rng, "paper")
