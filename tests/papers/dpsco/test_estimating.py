"""Errors of gradient estimates: closed gradients, bounds, what a walk sums up to."""

import math

import numpy as np
import pytest

from dperm.core.privacy.mechanisms import streams
from dperm.papers.dpsco import sweeps
from dperm.papers.dpsco.estimates import (
    Seen,
    gradient,
    on_walk,
    summed,
    tree_bound,
    walk_bound,
)
from dperm.solvers.streams import Target, noisy_sfw, poly_sfw
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import Signs, hard

NONE = Target(math.inf, 1e-6, "none")


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_gradients_are_those_of_the_closed_risk(p):
    for loss, source in (("least_squares", Signs(5, 1)),
                         ("linear", hard("all", 5, 1, 0.4))):  # fmt: skip
        setup, w = Setup(loss, p, 5), np.linspace(-0.3, 0.2, 5)[None, :]
        found = gradient(source, w, setup)[0]
        for j, away in enumerate(1e-5 * np.eye(5)):
            up, down = (source.excess(w + at, setup)[0] for at in (away, -away))
            assert found[j] == pytest.approx((up - down) / 2e-5, abs=1e-8)


def test_bounds_are_the_lemmas():
    setup = Setup("least_squares", 2.0, 4)  # L0 = 2, L1 M = 2, kappa = 1
    leading = math.sqrt(math.e) + math.sqrt(3 * math.log(8 / 0.05))
    bare = 2 * leading * 4 / math.sqrt(64)
    assert tree_bound(setup, 64, 3, NONE) == pytest.approx(bare)
    noisy = 2 * leading * (4 + 16 * 3) * math.sqrt(4 * math.log(1e6)) / (64 * 0.5)
    found = tree_bound(setup, 64, 3, Target(0.5, 1e-6, "paper"))
    assert found == pytest.approx(bare + noisy)
    n, eta = 1000, math.log(1000 / math.log(8)) / 1000
    leading = math.e * math.sqrt(2 * math.log(8)) + math.sqrt(3 * math.log(20_000))
    away = math.sqrt(2) * (1 - eta) ** 9 * 2 / math.sqrt(n) + eta * 3 * 4
    found = walk_bound(Setup("least_squares", 1.0, 4), n, 9)
    assert found == pytest.approx(2 * leading * away)


def test_a_run_is_its_largest_ratio_and_zero_is_measured_alike():
    def seen(estimate, bound):
        true = np.array([[3.0, 4.0]])
        return Seen(true + estimate, true, np.array([bound]))

    walk = iter([seen(0.5, 10.0), seen(2.0, 5.0), seen(1.0, 20.0)])
    (found,) = summed(walk, 2.0)
    assert found["bound"] == 5.0 and found["error"] == pytest.approx(math.hypot(2, 2))
    assert found["start"] == pytest.approx(5.0)  # the largest 5 / bound, times 5


def test_the_walk_finds_the_point_that_an_estimate_belongs_to():
    """At one step a look: an estimate belongs to the point before the step."""
    setup, targets = Setup("least_squares", 1.0, 3), [NONE]
    run = poly_sfw.Run(setup, targets, streams(2), Signs(3, 2), 600,
                       poly_sfw.Options())  # fmt: skip
    points = []
    for seen in on_walk(run, run.source):
        points.append(run.x.copy())
        if len(points) > 1:
            expected = gradient(run.source, points[-2], setup)
            np.testing.assert_allclose(seen.gradient, expected, atol=1e-12)
    assert len(points) == 301


def test_estimates_that_do_not_follow_the_walk_are_seen(monkeypatch):
    point, given = {"solver": "noisy_sfw", "n": 10**4}, ([math.inf], 8, 0.9)
    sound, linear = sweeps.estimator(None, point, 1, {"noisy_sfw": [2.0]}, *given)
    assert sound["error"] < sound["bound"]
    compiled, left_out = Setup.compiled, noisy_sfw.difference_sums
    monkeypatch.setattr(
        Setup,
        "compiled",
        lambda setup, kernel: (
            (lambda *_: None) if kernel is left_out else compiled(setup, kernel)
        ),
    )
    broken, same = sweeps.estimator(None, point, 1, {"noisy_sfw": [2.0]}, *given)
    assert broken["error"] > 4 * sound["error"]
    assert same == linear  # whose gradient is one everywhere
