"""Smoothing in one dimension: its slopes, its bias, and the run that uses it."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

from dperm.core.erm.sets import norms
from dperm.core.privacy.mechanisms import streams
from dperm.papers.dpsco import runs
from dperm.papers.dpsco.runs import BENDS, excess, slopes, smoothing
from dperm.solvers.streams import Part, Target, phased_sgd
from dperm.solvers.streams.coins import Coins
from dperm.solvers.streams.projecting import CompiledSetup
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import Batch

LOSSES = {"absolute": lambda s, y: abs(s - y), "hinge": lambda s, y: max(0, 1 - y * s)}
MEANS = np.array([0.4, -0.4, 0.4, -0.4])
TARGETS = [Target(2.0, 1e-4, "strict"), Target(math.inf, 1e-4, "none")]


def smoothed(loss, s, y, r):
    """The mean of the loss over [s - r, s + r], by quadrature split where it bends."""
    ends = sorted({s - r, s + r, min(max(y, s - r), s + r)})
    parts = [integrate.quad(lambda u: LOSSES[loss](u, y), *pair)[0]
             for pair in pairwise(ends)]  # fmt: skip
    return sum(parts) / (2 * r)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_slopes_are_those_of_the_mean_and_the_bias_is_bounded(loss, y):
    r = 0.3
    for s in (-1.6, -1.2, -1.0, -0.85, 0.1, 0.8, 1.1, 1.4):
        found = slopes(loss, np.array([s]), np.array([y]), r)[0]
        up, down = (smoothed(loss, s + h, y, r) for h in (1e-4, -1e-4))
        assert found == pytest.approx((up - down) / 2e-4, abs=1e-3)
        bias = smoothed(loss, s, y, r) - LOSSES[loss](s, y)
        assert -1e-12 <= bias <= BENDS[loss] * r / 4 + 1e-12
    at_bend = smoothed(loss, y, y, r) - LOSSES[loss](y, y)
    assert at_bend == pytest.approx(BENDS[loss] * r / 4)  # so that it is the least


@pytest.mark.parametrize("loss", LOSSES)
def test_steps_are_as_long_as_smooth_losses_allow(loss):
    eta = np.array([0.02, 0.5])
    r = smoothing(loss, eta)
    steepest = np.diff(slopes(loss, np.array([0.99, 1.01]), np.ones(2), 0.1)) / 0.02
    assert steepest[0] == pytest.approx(BENDS[loss] / (2 * 0.1))
    np.testing.assert_allclose(eta, 2 / (BENDS[loss] / (2 * r)))


@pytest.mark.parametrize("loss", LOSSES)
def test_risk_is_the_mean_of_the_loss_over_records(loss):
    source, w = Coins(MEANS, 1, True, labelled=True), np.array([0.5, -1.5, 0.0, 1.2])
    batch = source.take(40_000)
    each = [LOSSES[loss](s, y) for s, y in zip(batch.rows @ w, batch.labels,
                                               strict=True)]  # fmt: skip
    found = runs.risk(loss, MEANS, w[None, :])[0]
    assert abs(np.mean(each) - found) < 4 * np.std(each) / math.sqrt(len(each))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_least_risk_is_at_the_bend(loss):
    best = np.sign(MEANS)
    assert excess(loss, MEANS, best)[0] == 0.0
    near = best + 0.2 * np.random.default_rng(1).standard_normal((50, 4))
    assert (excess(loss, MEANS, near) > 0).all()
    assert excess(loss, MEANS, np.zeros(4))[0] == pytest.approx(0.4)


def run(p, loss, n=400, kind=CompiledSetup, radius=2.0):
    setup = kind("linear", p, 4, radius)
    made = runs.SmoothedSGD([Part(setup, TARGETS, streams(2))],
                            Coins(MEANS, 3, True, labelled=True), n,
                            runs.Options(loss))  # fmt: skip
    return made, made.solve()[0]


class Told:
    """Labels over r, which makes of Huber's loss the absolute one smoothed."""

    def __init__(self, r):
        self.inner, self.r, self.d = Coins(MEANS, 3, True, labelled=True), r, 4

    def take(self, count):
        batch = self.inner.take(count)
        return Batch(batch.rows, batch.labels / self.r)

    def factors(self, batch, q):
        return self.inner.factors(batch, q)


@pytest.mark.parametrize("p", [2.0, 4.0, math.inf])
def test_the_absolute_loss_is_hubers_in_other_units(p):
    """Scores, labels and the ball over r: phased SGD as it stands, steps capped."""
    for target, lane in zip(TARGETS, (0, 1), strict=True):
        made, found = run(p, "absolute")
        r = made.parts[0].width[lane]
        other = phased_sgd.Run(
            [Part(CompiledSetup("huber", p, 4, 2.0 / r), [target], streams(2))],
            Told(r), 400, phased_sgd.Options(),
        )  # fmt: skip
        assert other.parts[0].eta[0] == pytest.approx(2.0)
        np.testing.assert_allclose(r * other.solve()[0][0], found[lane], atol=1e-9)


@pytest.mark.parametrize("p", [2.0, 4.0, math.inf])
def test_the_hinge_run_is_a_plain_loop(p):
    made, found = run(p, "hinge")
    source, ball = Coins(MEANS, 3, True, labelled=True), Setup("linear", p, 4, 2.0).ball
    x, drawn = np.zeros(4), streams(2).noise
    for phase, size in enumerate(phased_sgd.phases(400), start=1):
        batch, eta = source.take(size), made.parts[0].eta[1] / 4**phase
        total = np.zeros(4)
        for z, y in zip(batch.rows, batch.labels, strict=True):
            score = np.array([z @ x])
            slope = slopes("hinge", score, np.array([y]), made.parts[0].width[1])
            x = ball.project(x - eta * slope[0] * z)[0]
            total += x
        x = total / size
        drawn.standard_normal(4)
    np.testing.assert_allclose(ball.project(x)[0], found[1], atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_it_learns_where_there_is_enough_to_learn_from(loss):
    _, found = run(math.inf, loss, 20_000)
    assert (excess(loss, MEANS, found) < 0.1).all()
    assert (norms(found, math.inf) <= 2.0).all()
