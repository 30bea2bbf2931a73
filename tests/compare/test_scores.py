"""Scores of a private choice: no record moves them by more than their noise is for."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from conftest import make_problem
from dperm.compare import metrics, scores
from dperm.compare.methods import contestant
from dperm.compare.scores import Drawn, Job, score_event, scored
from dperm.core.erm.losses import bounded
from dperm.core.privacy.mechanisms import heard, streams
from dperm.core.privacy.strict import gaussian_epsilon


@pytest.fixture(scope="module")
def problem():
    return make_problem("logistic", "l2", n=300)


EXTREMES = (0.0, 5e-324, 1e-200, 1.0, 1e200, 1e308, np.inf)
SIZES = [sign * size for size in EXTREMES for sign in (1, -1)] + [np.nan]


@pytest.mark.parametrize("loss", bounded())
@pytest.mark.filterwarnings("ignore")
def test_no_record_moves_a_score_by_more(loss):
    """Features, label and weights at the ends of what doubles hold."""
    base = make_problem(loss, "l2", n=20)
    most = metrics.loss_bound(base)
    assert loss != "logistic" or most == pytest.approx(3 * math.log(2))
    W = np.array([np.full(base.p, size) for size in SIZES])
    W = np.concatenate([W, W * [1, 0, -1, 0, 1], np.eye(base.p)])
    found = []
    for x, label in itertools.product(SIZES, SIZES if base.offset.any() else [0.0]):
        A, offset = base.A.copy(order="F"), base.offset.copy()
        A[0], offset[0] = x, label
        one = replace(base, A=A, offset=offset, public=base)
        assert metrics.loss_bound(one) == most
        found.append(metrics.clipped_loss(one, most, W))
    moved = np.ptp(found, axis=0).max()  # nan if any of them is
    assert 0.9 * most / base.n < moved <= most / base.n * (1 + 1e-12)


def test_a_score_spends_a_fifth_of_the_root():
    event = score_event(1.0, 1e-6)
    whole = gaussian_epsilon(1 / (scores.SCORE * event.noise_multiplier), 1e-6)
    assert whole == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("name", ["dp_gd", "objective_perturbation", "dp_cd"])
def test_a_score_is_the_clipped_loss_with_the_noise_that_is_priced(name, problem):
    """A run draws as many numbers as its ledger has, and one more, none twice."""
    on = contestant(name, {}, problem)
    setting = {"passes": 2, "step": 1.0, "clip": 1.0} if name == "dp_cd" else {}
    numbers = []

    def listen(kind, unit, order):
        assert kind == "gaussian"
        numbers.extend(np.ravel(unit))
        return unit

    with heard(listen):
        loss, w = scored(on, Drawn(0, Job(setting, 2.0, 5), 6), 0.2)
    most = metrics.loss_bound(problem)
    plain = metrics.clipped_loss(problem, most, w[None])[0]
    scale = score_event(0.2, problem.delta).scale * most / problem.n
    noise = streams(6).noise.standard_normal()
    assert loss == pytest.approx(plain + scale * noise) and noise == numbers[-1]
    width = 1 if name == "dp_cd" else problem.p
    count = sum(event.count for event in on.ledger(setting, 2.0).events)
    assert len(numbers) == len({*numbers}) == width * count + 1
