"""Objectives, constants and optima against plain numpy and other solvers."""

import numpy as np
import pytest
from scipy import sparse

from conftest import PENALTIES, make_problem, raw_data
from dperm.core.compiled import exp, softplus
from dperm.core.erm import optimum
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


@pytest.mark.parametrize("penalty", ["l1", "l2", "elastic", "box"])
def test_optimum_is_certified(loss, penalty):
    problem = make_problem(loss, penalty)
    best = optimum.solve(problem)
    assert abs(best.gap) <= 1e-10 * best.value
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = best.w + 1e-3 * rng.standard_normal(5)
        other = np.clip(other, problem.penalty.lower, problem.penalty.upper)
        assert problem.objective(other)[0] >= best.value * (1 - 1e-12)


def test_optimum_agrees_with_scikit_learn():
    from sklearn.linear_model import ElasticNet, LogisticRegression

    X, y = raw_data("least_squares", n=80, p=30)
    problem = build("net", X, y, "least_squares", Penalty(l1=0.4, l2=0.1))
    net = ElasticNet(alpha=0.5, l1_ratio=0.8, fit_intercept=False, tol=1e-14,
                     max_iter=100000).fit(X, y)  # fmt: skip
    np.testing.assert_allclose(optimum.solve(problem).w, net.coef_, atol=1e-8)

    X, y = raw_data("logistic", n=80, p=5)
    problem = build("ridge", X, y, "logistic", Penalty(l2=0.1))
    ridge = LogisticRegression(C=1 / (80 * 0.1), fit_intercept=False, tol=1e-12,
                               max_iter=10000).fit(X, y)  # fmt: skip
    np.testing.assert_allclose(optimum.solve(problem).w, ridge.coef_[0], atol=1e-7)


def test_duality_gap_bounds_the_excess(loss):
    for penalty in ("l1", "l2", "elastic", "box"):
        problem = make_problem(loss, penalty)
        best = optimum.solve(problem)
        rng = np.random.default_rng(2)
        for _ in range(20):
            w = np.clip(
                rng.standard_normal(5), problem.penalty.lower, problem.penalty.upper
            )
            excess = problem.objective(w)[0] - best.value
            assert optimum.duality_gap(problem, w) >= excess - 1e-12


def test_sparse_columns_give_the_same_problem(loss):
    X, y = raw_data(loss)
    X[np.abs(X) < 0.5] = 0.0
    dense = build("dense", X, y, loss, Penalty(l1=0.05))
    thin = build("sparse", sparse.csc_array(X), y, loss, Penalty(l1=0.05))
    np.testing.assert_allclose(thin.smoothness, dense.smoothness)
    np.testing.assert_allclose(thin.gradient(np.ones(5)), dense.gradient(np.ones(5)))
