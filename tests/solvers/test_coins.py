"""Biased coins, and the compiled projection of the runs that use them."""

import math

import numpy as np
import pytest

from dperm.core.erm.sets import Ball, dual_exponent, norms
from dperm.core.privacy.mechanisms import streams
from dperm.solvers.streams import Target, phased_sgd
from dperm.solvers.streams.coins import KINDS, Coins, hard
from dperm.solvers.streams.projecting import CompiledBall, CompiledSetup
from dperm.solvers.streams.setup import Setup

MEANS = np.array([0.5, -0.9, 0.0, 1.0, -1.0])


def scaled(source, count, q):
    batch = source.take(count)
    return batch.rows * source.factors(batch, q)[:, None] * batch.labels[:, None]


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("q", [1.0, 1.5, 2.0, math.inf])
def test_records_have_unit_norm_and_the_mean_they_say(single, q):
    source = Coins(MEANS, 1, single)
    z = scaled(source, 40_000, q)
    size = (
        np.abs(z).max(axis=1) if math.isinf(q) else (np.abs(z) ** q).sum(1) ** (1 / q)
    )
    np.testing.assert_allclose(size, 1.0)
    error = z.std(axis=0) / math.sqrt(len(z))
    assert (np.abs(z.mean(axis=0) - source.mean(q)) <= 4.5 * error + 1e-12).all()


def test_certain_coins_are_certain_and_fair_ones_are_fair():
    rows = Coins(MEANS, 2, single=False).take(20_000).rows
    assert (rows[:, 3] == 1).all() and (rows[:, 4] == -1).all()
    assert abs(rows[:, 2].mean()) < 4 / math.sqrt(len(rows))
    assert abs(np.corrcoef(rows[:, 0], rows[:, 1])[0, 1]) < 4 / math.sqrt(len(rows))


@pytest.mark.parametrize("single", [False, True])
def test_blocks_do_not_matter(single):
    whole = Coins(MEANS, 4, single).take(90).rows
    source = Coins(MEANS, 4, single)
    parts = [source.take(count).rows for count in (1, 30, 59)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    assert source.taken == 90


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 4.0, math.inf])
def test_excess_is_that_of_the_linear_loss(kind, p):
    """Least at the ball's best point, where it is 0; and <E z, away> elsewhere."""
    source, setup = hard(kind, 6, 5, 0.3), Setup("linear", p, 6, 2.0)
    mean = source.mean(dual_exponent(p))
    best = Ball(p, 2.0).oracle(-mean)
    assert source.excess(best, setup) == pytest.approx(0.0, abs=1e-12)
    w = np.linspace(-0.2, 0.3, 6)
    assert source.excess(w, setup)[0] == pytest.approx(float((best[0] - w) @ mean))


def test_hard_instances_hide_what_their_norm_makes_hard():
    every, one, shown = (hard(kind, 8, 6, 0.25) for kind in KINDS)
    assert (np.abs(every.means) == 0.25).all() and (every.means != 0.25).any()
    assert np.count_nonzero(one.means) == 1 and np.abs(one.means).max() == 0.25
    assert shown.single and not every.single
    assert {int(np.flatnonzero(hard("one of them", 8, k, 1.0).means)[0])
            for k in range(60)} == set(range(8))  # fmt: skip
    with pytest.raises(ValueError, match="expected one of"):
        hard("none", 8, 6, 0.25)


# --- the compiled projection ----------------------------------------------------------


@pytest.mark.parametrize("p", [2.1, 3.0, 4.0, 8.0])
@pytest.mark.parametrize("radius", [0.5, 3.0])
def test_projection_is_that_of_the_ball(p, radius):
    x = np.random.default_rng(1).standard_normal((40, 6))
    x[0, 2:], x[1] = 0.0, 0.0
    x[2:12] *= radius * (1 + 1e-6) / norms(x[2:12], p)[:, None]  # hardly outside
    x[12:20] *= 0.9 * radius / norms(x[12:20], p)[:, None]
    x[20:25] *= 1e3
    found = CompiledBall(p, radius).project(x)
    np.testing.assert_allclose(found, Ball(p, radius).project(x), atol=1e-9 * radius)
    np.testing.assert_array_equal(found[12:20], x[12:20])
    assert (norms(found, p) <= radius * (1 + 1e-12)).all()


@pytest.mark.parametrize("p", [2.0, np.inf])
def test_other_norms_are_left_to_the_ball(p):
    x = np.random.default_rng(2).standard_normal((3, 5))
    assert (CompiledBall(p).project(x) == Ball(p).project(x)).all()


def test_phased_sgd_is_the_same_with_either():
    given = [Target(1.0, 1e-4, "strict"), Target(np.inf, 1e-4, "none")]
    runs = [
        phased_sgd.Run(
            kind("linear", 4.0, 5), given, streams(3),
            hard("one a record", 5, 4, 1.0), 200, phased_sgd.Options(),
        )
        for kind in (Setup, CompiledSetup)
    ]  # fmt: skip
    asked = []
    ball = runs[1].setup.ball
    runs[1].setup.__dict__["ball"] = Counted(ball, asked)
    found = [run.solve() for run in runs]
    np.testing.assert_allclose(found[1], found[0], atol=1e-9)
    assert len(asked) > 20  # the ball was left


class Counted:
    def __init__(self, ball, asked):
        self.ball, self.asked = ball, asked

    def project(self, x):
        self.asked.append(x)
        return self.ball.project(x)
