"""Oracles and projections of the feasible sets."""

import math

import numpy as np
import pytest

from dperm.problems.sets import Ball, dual_exponent, norms

PS = [1.0, 1.005, 1.1, 1.25, 1.5, 1.75, 2.0, 2.1, 3.0, 8.0, math.inf]
RNG = np.random.default_rng(0)
POINTS = (
    RNG.standard_normal((6, 9)) * np.array([0.01, 0.1, 1, 3, 10, 100])[:, None]
)


def inside(body, x):
    """A point is in a convex set if no direction's support is exceeded."""
    directions = np.vstack(
        [RNG.standard_normal((200, 9)), np.eye(9), -np.eye(9)]
    )
    least = np.einsum("ij,ij->i", directions, body.oracle(directions))
    slack = 1e-8 * (1 + np.abs(least))
    return (directions @ x.T >= (least - slack)[:, None]).all()


@pytest.mark.parametrize("p", [p for p in PS if p == 1 or p >= 2])
def test_projections_are_nearest(p):
    """<x - Px, v - Px> <= 0 for every v of the set: for the one that maximises it."""
    body = Ball(p, 1.7)
    found = body.project(POINTS)
    assert inside(body, found)
    gradient = found - POINTS
    best = body.oracle(gradient)
    slack = np.einsum("ij,ij->i", gradient, best - found)
    scale = 1 + np.abs(gradient).sum(axis=1)
    assert (slack >= -2e-6 * scale).all()
    again = body.project(found)
    np.testing.assert_allclose(again, found, atol=1e-6)


@pytest.mark.parametrize("p", PS)
def test_oracle_of_a_ball_attains_the_dual_norm(p):
    ball = Ball(p, 1.7)
    found = ball.oracle(POINTS)
    assert (norms(found, p) <= 1.7 * (1 + 1e-9)).all()
    least = np.einsum("ij,ij->i", POINTS, found)
    np.testing.assert_allclose(
        least, -1.7 * norms(POINTS, dual_exponent(p)), rtol=1e-8
    )
    assert (ball.oracle(np.zeros((1, 9))) == 0).all()
    assert ball.diameter == pytest.approx(3.4)


@pytest.mark.parametrize("p", [1.0, 3.0, 8.0])
def test_points_hardly_outside_are_projected_and_those_inside_stay(p):
    ball, x = Ball(p, 0.5), POINTS * (0.5 / norms(POINTS, p)[:, None])
    found = ball.project(x * (1 + 1e-6))
    assert (norms(found, p) <= 0.5 * (1 + 1e-12)).all()
    np.testing.assert_allclose(found, x, atol=1e-6)
    np.testing.assert_array_equal(ball.project(0.9 * x), 0.9 * x)


def test_impossible_sets_are_refused():
    with pytest.raises(ValueError, match="p: expected 1 or more"):
        Ball(0.5)
    with pytest.raises(ValueError, match="radius"):
        Ball(2.0, 0.0)
    with pytest.raises(ValueError, match="p: expected 1, or 2 or more"):
        Ball(1.5).project(POINTS)
