"""Streams of records: sources and their population risk, coins, constants."""

import math

import numpy as np
import pytest

from dperm.core.erm.losses import PLACES, named
from dperm.core.erm.sets import Ball, dual_exponent, norms
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import KINDS, Coins, Rows, Signs, hard

PS = [1.0, 1.5, 2.0, math.inf]
MEANS = np.array([0.5, -0.9, 0.0, 1.0, -1.0])
SOURCES = {
    "signs": lambda: Signs(21, 3),
    "coins": lambda: Coins(MEANS, 4, single=False),
    "coins, one a record": lambda: Coins(MEANS, 4, single=True),
}


@pytest.mark.parametrize("name", SOURCES)
def test_batches_may_be_cut_anywhere(name):
    one, source = SOURCES[name]().take(50), SOURCES[name]()
    parts = [source.take(k) for k in (1, 9, 40)]
    np.testing.assert_array_equal(one.rows, np.concatenate([b.rows for b in parts]))
    np.testing.assert_array_equal(one.labels, np.concatenate([b.labels for b in parts]))
    assert source.taken == 50


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("p", PS)
def test_records_have_unit_norm(name, p):
    source, q = SOURCES[name](), dual_exponent(p)
    batch = source.take(400)
    rows = batch.rows * source.factors(batch, q)[:, None]
    np.testing.assert_allclose(norms(rows, q), 1.0)
    assert set(np.unique(batch.labels)) <= {-1.0, 1.0}


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
    source, one = Signs(8, 4), Setup("least_squares", p, 8)
    best = source.optimum(one)
    assert norms(best, p)[0] == pytest.approx(1.0)
    batch = source.take(200_000)
    x = batch.rows * source.factors(batch, one.q)[:, None]
    W = np.random.default_rng(0).standard_normal((3, 8)) / math.sqrt(8)
    losses = 0.5 * (x @ np.vstack([W, best]).T - batch.labels[:, None]) ** 2
    found = losses[:, :3] - losses[:, 3:]
    error = found.std(axis=0) / math.sqrt(len(found))
    off = np.abs(found.mean(axis=0) - source.excess(W, one))
    np.testing.assert_array_less(off, 5 * error)
    assert source.excess(best, one)[0] == 0.0
    start = source.excess(np.zeros(8), one)[0]  # is that of every norm
    assert start == pytest.approx(source.excess(np.zeros(8), Setup("linear", 2, 8))[0])


# --- coins ----------------------------------------------------------------------------


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("q", [1.0, 1.5, math.inf])
def test_coins_have_the_mean_they_say(single, q):
    source = Coins(MEANS, 1, single)
    batch = source.take(40_000)
    z = batch.rows * source.factors(batch, q)[:, None] * batch.labels[:, None]
    error = z.std(axis=0) / math.sqrt(len(z))
    assert (np.abs(z.mean(axis=0) - source.mean(q)) <= 4.5 * error + 1e-12).all()
    if not single:
        assert (batch.rows[:, 3] == 1).all() and (batch.rows[:, 4] == -1).all()
        assert abs(np.corrcoef(*batch.rows[:, :2].T)[0, 1]) < 4 / 200


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [1.0, 1.5, 4.0, math.inf])
def test_excess_is_that_of_the_linear_loss(kind, p):
    """Least at the ball's best point, where it is 0; and <E z, away> elsewhere."""
    source, setup = hard(kind, 6, 5, 0.3), Setup("linear", p, 6, 2.0)
    mean = source.mean(dual_exponent(p))
    best = Ball(p, 2.0).oracle(-mean)
    assert source.excess(best, setup) == pytest.approx(0.0, abs=1e-12)
    w = np.linspace(-0.2, 0.3, 6)
    assert source.excess(w, setup)[0] == pytest.approx(float((best[0] - w) @ mean))


# --- arrays ---------------------------------------------------------------------------


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
    zeros = Rows(np.zeros((2, 3)), np.ones(2))
    np.testing.assert_array_equal(zeros.factors(zeros.take(2), 2.0), [1, 1])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: hard("none", 8, 6, 0.25), "kind: "),
        (lambda: Setup("hinge", 2.0, 3), "expected one of huber"),
        (lambda: Signs(3, 1, 1.5), "radius"),
    ],
)
def test_what_does_not_exist_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def slope(loss, v, y):
    """The derivative in the score v, from that in the margin."""
    kind, y = named(loss), np.array([y])
    signs = kind.signs(y)
    return (signs * kind.derivatives(signs * v + kind.offset(y)))[0]


@pytest.mark.parametrize("loss", PLACES)
@pytest.mark.parametrize("p", PS)
def test_constants_bound_gradients_and_their_change(loss, p):
    """No gradient beyond L0, no change beyond L1 times the distance, in the dual."""
    one, rng = Setup(loss, p, 6, 1.4), np.random.default_rng(1)
    W, V = (one.ball.oracle(rng.standard_normal((200, 6))) for _ in range(2))
    for w, v in zip(W, V, strict=True):
        x, y = rng.standard_normal(6), rng.choice([-1.0, 1.0])
        x = -y * one.ball.oracle(-w)[0] if rng.random() < 0.5 else x
        x /= norms(x, one.q)[0]
        here, there = (slope(loss, x @ at, y) for at in (w, v))
        assert abs(here) <= one.lipschitz * (1 + 1e-9)
        distance = norms(w - v, p)[0]
        assert abs(here - there) <= one.smoothness * distance * (1 + 1e-9)
