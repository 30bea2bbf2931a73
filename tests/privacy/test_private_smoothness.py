import math

import numpy as np
import pytest
from scipy import sparse, stats

from dperm.core.calibrations import UnknownCalibrationError
from dperm.core.privacy.accounting import epsilon, true_epsilon
from dperm.core.privacy.ledger import Laplace, Ledger, ScaleError
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
        with pytest.raises(ScaleError):
            private_smoothness(M, bounds, epsilon_prime, N, rng, "paper")
    for bad in (5 * M, -M, np.full(2, math.nan), np.ones(3)):
        with pytest.raises(BoundsError):
            private_smoothness(bad, bounds, 0.1, N, rng, "paper")


# --- sensitivities the ledgers state --------------------------------------------------


def neighbours(rng, draw, n, adversarial):
    """Yield data sets that differ in one record, random ones and given extremes."""
    for _ in range(200):
        data = draw(rng, n)
        other = data.copy()
        other[rng.integers(n)] = draw(rng, 1)[0]
        yield data, other
    for first, second in adversarial:
        data = draw(rng, n)
        other = data.copy()
        data[0], other[0] = first, second
        yield data, other


def largest_change(statistic, pairs):
    return max(np.linalg.norm(statistic(a) - statistic(b)) for a, b in pairs)


def test_mean_of_clipped_coordinate_gradients_moves_by_two_c_over_n():
    n, clip, rng = 12, 0.7, streams(4).sampling

    def statistic(gradients):
        return np.clip(gradients, -clip, clip).mean(keepdims=True)

    pairs = neighbours(rng, lambda r, k: r.standard_normal(k), n, [(9.0, -9.0)])
    assert largest_change(statistic, pairs) == pytest.approx(2 * clip / n, rel=1e-12)


def test_sum_of_norm_clipped_gradients_moves_by_two_c():
    n, clip, rng = 12, 0.7, streams(5).sampling

    def statistic(gradients):
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        return (gradients * np.minimum(1, clip / norms)).sum(axis=0)

    opposite = (np.array([8.0, 6.0, 0.0]), np.array([-8.0, -6.0, 0.0]))
    pairs = neighbours(rng, lambda r, k: r.standard_normal((k, 3)), n, [opposite])
    assert largest_change(statistic, pairs) == pytest.approx(2 * clip, rel=1e-12)


def test_mean_of_bounded_constants_moves_by_b_over_n_not_twice_that():
    n, bound, rng = 12, 4.0, streams(6).sampling

    def statistic(x):
        return np.clip(x**2, 0, bound).mean(keepdims=True)

    pairs = neighbours(rng, lambda r, k: r.standard_normal(k), n, [(0.0, 5.0)])
    assert largest_change(statistic, pairs) == pytest.approx(bound / n, rel=1e-12)
