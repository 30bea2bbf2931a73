"""Errors of gradient estimates: closed gradients, bounds, what a walk sums up to."""

import math

import numpy as np
import pytest

from dperm.papers.dpsco.estimates import (
    gradient,
    tree_bound,
    walk_bound,
)
from dperm.solvers.single_pass import Target
from dperm.solvers.single_pass.setup import Setup
from dperm.solvers.single_pass.sources import Signs, hard

NONE = Target(math.inf, 1e-6, "none")


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_gradients_are_those_of_the_closed_risk(p):
    for loss, source in (("least_squares", Signs(5, 1)),
                         ("linear", hard("all", 5, 1, 0.4))):  # fmt: skip
        setup, w = Setup(loss, p, 5), np.linspace(-0.3, 0.2, 5)[None, :]
        found = gradient(source, w, setup)[0]
        for j, away in enumerate(1e-5 * np.eye(5)):
            up, down = (
                source.excess(w + at, setup)[0] for at in (away, -away)
            )
            assert found[j] == pytest.approx((up - down) / 2e-5, abs=1e-8)


def test_bounds_are_the_lemmas():
    setup = Setup("least_squares", 2.0, 4)  # L0 = 2, L1 M = 2, kappa = 1
    leading = math.sqrt(math.e) + math.sqrt(3 * math.log(8 / 0.05))
    bare = 2 * leading * 4 / math.sqrt(64)
    assert tree_bound(setup, 64, 3, NONE) == pytest.approx(bare)
    noisy = (
        2 * leading * (4 + 16 * 3) * math.sqrt(4 * math.log(1e6)) / (64 * 0.5)
    )
    found = tree_bound(setup, 64, 3, Target(0.5, 1e-6, "published"))
    assert found == pytest.approx(bare + noisy)
    n, eta = 1000, math.log(1000 / math.log(8)) / 1000
    leading = math.e * math.sqrt(2 * math.log(8)) + math.sqrt(
        3 * math.log(20_000)
    )
    away = math.sqrt(2) * (1 - eta) ** 9 * 2 / math.sqrt(n) + eta * 3 * 4
    found = walk_bound(Setup("least_squares", 1.0, 4), n, 9)
    assert found == pytest.approx(2 * leading * away)
