"""Objectives, constants and optima against plain numpy and other solvers."""

import numpy as np
import pytest

from conftest import PENALTIES, make_problem, raw_data
from dperm.core.compiled import exp, softplus
from dperm.core.erm.penalties import Penalty, prox, prox_constants
from dperm.core.erm.problem import build


def plain_objective(loss, X, y, w, penalty):
    z = X @ w
    data = np.logaddexp(0, -y * z) if loss == "logistic" else 0.5 * (z - y) ** 2
    return data.mean() + penalty.l1 * np.abs(w).sum() + penalty.l2 / 2 * (w @ w)


def test_compiled_functions():
    for x in np.linspace(-60, 60, 241):
        np.testing.assert_allclose(exp(x), np.exp(x), rtol=2e-14)
        np.testing.assert_allclose(softplus(x), np.logaddexp(0, x), rtol=1e-14)
    assert np.isfinite(exp(1e308)) and exp(-1e308) < 1e-300


@pytest.mark.parametrize("workers", [1, 2])
def test_objective(loss, workers):
    problem = make_problem(loss, n=1500, p=7)
    X, y = raw_data(loss, n=1500, p=7)
    W = np.random.default_rng(1).standard_normal((9, 7))
    W[4] = 0.0
    expected = [plain_objective(loss, X, y, w, PENALTIES["elastic"]) for w in W]
    np.testing.assert_allclose(problem.objective(W, workers), expected, rtol=1e-13)
    np.testing.assert_array_equal(
        problem.objective(W, workers)[3], problem.objective(W[3])
    )


def test_a_diverged_point_has_an_infinite_objective(loss):
    problem = make_problem(loss)
    W = np.full((3, 5), [[np.nan], [np.inf], [1e300]])
    assert np.isinf(problem.objective(W)).all()


def test_the_box_is_a_constraint():
    problem = make_problem("logistic", "box")
    assert np.isinf(problem.objective(np.full(5, 0.04))[0])
    assert np.isfinite(problem.objective(np.full(5, 0.03))[0])


def test_constants(loss):
    problem = make_problem(loss)
    X, _ = raw_data(loss)
    curvature = 0.25 if loss == "logistic" else 1.0
    np.testing.assert_allclose(problem.smoothness, curvature * (X**2).mean(axis=0))
    beta = curvature * np.linalg.norm(X, 2) ** 2 / len(X)
    np.testing.assert_allclose(problem.global_smoothness, beta)
    np.testing.assert_allclose(problem.row_norms, np.linalg.norm(X, axis=1))


def test_smoothness_bounds_the_curvature_along_each_coordinate(loss):
    problem, step = make_problem(loss, "none"), 1e-4
    rng = np.random.default_rng(0)
    for _ in range(20):
        w = rng.standard_normal(5)
        for j, e in enumerate(np.eye(5)):
            slope = problem.gradient(w + step * e) - problem.gradient(w)
            assert slope[j] / step <= problem.smoothness[j] * (1 + 1e-6)


def test_gradient(loss):
    problem = make_problem(loss, "none")
    w = np.random.default_rng(0).standard_normal(5)
    for j, e in enumerate(np.eye(5)):
        high, low = problem.objective(np.stack((w + 1e-6 * e, w - 1e-6 * e)))
        np.testing.assert_allclose(
            problem.gradient(w)[j], (high - low) / 2e-6, rtol=1e-6
        )


@pytest.mark.parametrize("name", PENALTIES)
def test_prox_is_the_minimiser(name):
    penalty = PENALTIES[name]
    grid = np.linspace(max(penalty.lower, -3), min(penalty.upper, 3), 200001)
    for v in (-1.3, -0.04, 0.0, 0.07, 2.0):
        cost = 0.5 * (grid - v) ** 2 + 0.7 * (
            penalty.l1 * abs(grid) + penalty.l2 / 2 * grid**2
        )
        found = prox(v, *prox_constants(penalty, 0.7), penalty.lower, penalty.upper)
        assert abs(found - grid[np.argmin(cost)]) < 1e-4


def test_labels_other_than_plus_minus_one_are_refused():
    X, y = raw_data("logistic")
    with pytest.raises(ValueError, match=r"must be -1 or \+1"):
        build("bad", X, (y + 1) / 2, "logistic", Penalty())
    with pytest.raises(ValueError, match="expected one of huber, least_squares"):
        build("bad", X, y, "hinge", Penalty())
