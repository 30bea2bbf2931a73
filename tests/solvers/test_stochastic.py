"""Streams of records, their population risk, and gradients of batches."""

import math

import numpy as np
import pytest
from scipy.special import expit

from dperm.core.erm.losses import named, names
from dperm.core.erm.sets import norms
from dperm.solvers.streams.gradients import difference_sums, gradient_sums
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import (
    Batch,
    Fingerprints,
    Rows,
    Signs,
)

PS = [1.0, 1.5, 2.0, math.inf]


def setup(p, d, loss="least_squares", radius=1.0):
    return Setup(loss, p, d, radius)


@pytest.mark.parametrize("source", [Signs(21, 3), Fingerprints(21, 3, 0.2)])
def test_batches_may_be_cut_anywhere(source):
    whole = type(source)(21, 3, *([0.2] if isinstance(source, Fingerprints) else []))
    one = whole.take(50)
    parts = [source.take(k) for k in (1, 9, 40)]
    np.testing.assert_array_equal(one.rows, np.concatenate([b.rows for b in parts]))
    np.testing.assert_array_equal(one.labels, np.concatenate([b.labels for b in parts]))


@pytest.mark.parametrize("p", PS)
def test_records_are_bounded(p):
    source, one = Signs(12, 1), setup(p, 12)
    batch = source.take(40)
    rows = batch.rows * source.factors(batch, one.q)[:, None]
    np.testing.assert_allclose(norms(rows, one.q), 1.0)
    assert set(np.unique(batch.labels)) == {-1.0, 1.0}
    assert norms(source.optimum(one), p)[0] == pytest.approx(1.0)


def test_signs_have_the_known_covariance():
    source = Signs(6, 2)
    batch = source.take(60_000)
    found = batch.rows.T.astype(float) @ batch.rows / 60_000
    expected = np.full((6, 6), source.mean**2)
    np.fill_diagonal(expected, 1.0)
    np.testing.assert_allclose(found, expected, atol=5 / math.sqrt(60_000))
    scores = batch.rows.mean(axis=1)
    for value in np.unique(scores):
        labels = batch.labels[scores == value]
        assert abs(labels.mean() - value) < 5 / math.sqrt(len(labels))


@pytest.mark.parametrize("p", PS)
def test_excess_risk_is_the_mean_loss_less_its_minimum(p):
    source, one = Signs(8, 4), setup(p, 8)
    batch = source.take(200_000)
    x = batch.rows * source.factors(batch, one.q)[:, None]
    W = np.random.default_rng(0).standard_normal((3, 8)) * one.d ** (-1 / 2)
    losses = (
        0.5 * (x @ np.vstack([W, source.optimum(one)]).T - batch.labels[:, None]) ** 2
    )
    found = losses[:, :3] - losses[:, 3:]
    error = found.std(axis=0) / math.sqrt(len(found))
    np.testing.assert_array_less(
        np.abs(found.mean(axis=0) - source.excess(W, one)), 5 * error
    )
    assert source.excess(source.optimum(one), one)[0] == 0.0


def test_the_initial_risk_is_that_of_every_norm():
    source = Signs(30, 4)
    values = [source.excess(np.zeros(30), setup(p, 30))[0] for p in PS]
    np.testing.assert_allclose(values, values[0])


@pytest.mark.parametrize("p", [1.25, 2.0])
def test_excess_on_fingerprints(p):
    source, one = Fingerprints(10, 5, 0.3), setup(p, 10, "linear")
    mean = 0.3 * source.direction * 10 ** (-1 / one.q)
    best = one.ball.oracle(-mean)[0]
    assert source.excess(best, one)[0] == pytest.approx(0.0, abs=1e-12)
    w = np.random.default_rng(0).standard_normal(10)
    assert source.excess(w, one)[0] == pytest.approx((best - w) @ mean)
    batch = source.take(40_000)
    error = 5 / math.sqrt(40_000)
    np.testing.assert_allclose(
        batch.rows.mean(axis=0), 0.3 * source.direction, atol=error
    )


def slopes(loss, v, y):
    return {"least_squares": v - y, "logistic": -y * expit(-y * v),
            "smoothed_hinge": -y * np.maximum(1 - y * v, 0.0),
            "linear": -np.ones_like(v),
            "huber": np.clip(v - y, -1, 1)}[loss]  # fmt: skip


@pytest.mark.parametrize("loss", names())
@pytest.mark.parametrize("dtype", [np.int8, np.float64])
def test_sums_agree_with_numpy(loss, dtype):
    rng = np.random.default_rng(0)
    rows = rng.integers(-3, 4, (11, 7)).astype(dtype)
    y, c = rng.choice([-1.0, 1.0], 11), rng.uniform(0.1, 1, 11)
    W, V = rng.standard_normal((2, 3, 7))
    bound = 0.6
    given, compiled = (rows, y, c, bound), named(loss).compiled
    found, changes = np.zeros((3, 7)), np.zeros((3, 7))
    compiled(gradient_sums)(*given, W, found)
    compiled(difference_sums)(*given, W, V, changes)
    x = rows * c[:, None]

    def gradient(w):
        return np.clip(slopes(loss, x @ w, y), -bound, bound) @ x

    expected = np.array([gradient(w) for w in W])
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    expected -= np.array([gradient(v) for v in V])
    np.testing.assert_allclose(changes, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("loss", names())
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, math.inf])
def test_constants_bound_gradients_and_their_change(loss, p):
    """No gradient beyond L0, no change beyond L1 times the distance, in the dual."""
    one, rng = setup(p, 6, loss, 1.4), np.random.default_rng(1)
    W, V = (one.ball.project(5 * rng.standard_normal((200, 6))) for _ in range(2))
    worst = 0.0
    for w, v in zip(W, V, strict=True):
        x, y = rng.standard_normal(6), rng.choice([-1.0, 1.0])
        x = -y * one.ball.oracle(-w)[0] if rng.random() < 0.5 else x
        x /= norms(x, one.q)[0]
        here, there = (slopes(loss, np.array([x @ at]), y)[0] for at in (w, v))
        worst = max(worst, abs(here) / one.lipschitz)
        distance = norms(w - v, p)[0]
        assert abs(here - there) <= one.smoothness * distance * (1 + 1e-9)
    assert worst <= 1 + 1e-9


def test_arrays_are_read_once_and_scaled():
    X = np.arange(12.0).reshape(4, 3)
    source = Rows(X, np.array([-3.0, 1.0, 0.5, 2.0]))
    first, second = source.take(3), source.take(1)
    np.testing.assert_array_equal(np.vstack([first.rows, second.rows]), X)
    assert second.labels[0] == 1.0 and first.labels[0] == -1.0
    scaled = first.rows * source.factors(first, 2.0)[:, None]
    np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), 1.0)
    with pytest.raises(ValueError, match="4 records, 5 asked for"):
        source.take(1)


def test_unknown_losses_are_refused():
    with pytest.raises(ValueError, match="expected one of huber, least_squares"):
        Setup("hinge", 2.0, 3)
    with pytest.raises(ValueError, match="radius"):
        Signs(3, 1, 1.5)


def test_rows_of_zeros_stay():
    source = Rows(np.zeros((2, 3)), np.ones(2))
    np.testing.assert_array_equal(
        source.factors(Batch(source.X, source.y), 2.0), [1, 1]
    )
