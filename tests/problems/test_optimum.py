"""Certified minima of problems without a penalty, with boxes, large ones; refusals."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, LogisticRegression

from dperm.problems import optimum
from dperm.problems.penalties import Penalty
from dperm.problems.problem import build

LOSSES = ("least_squares", "logistic", "smoothed_hinge", "huber")


def housing(n=400, p=13):
    """Columns whose sizes and means differ by orders of magnitude."""
    rng = np.random.default_rng(0)
    X = 10.0 ** rng.uniform(-2, 3, p) * rng.standard_normal((n, p))
    X += 10.0 ** rng.uniform(-1, 3, p)
    y = 0.01 * X @ rng.standard_normal(p) + 5 * rng.standard_normal(n) + 22
    return X, y


def standardised(loss):
    X, y = housing()
    if loss in ("logistic", "smoothed_hinge"):
        y = np.sign(
            y - np.median(y) + np.random.default_rng(1).standard_normal(400)
        )
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.parametrize("loss", ["least_squares", "logistic"])
def test_without_penalty_it_is_scikit_learns(loss):
    """Least squares on columns as they are."""
    X, y = housing() if loss == "least_squares" else standardised(loss)
    model = LogisticRegression(
        C=np.inf, fit_intercept=False, tol=1e-12, max_iter=10000
    )
    if loss == "least_squares":
        model = LinearRegression(fit_intercept=False)
    problem = build("plain", X, y, loss, Penalty())
    best = optimum.solve(problem)
    least = problem.objective(model.fit(X, y).coef_)[0]
    assert best.value == pytest.approx(least, rel=1e-12)
    assert best.gap <= 1e-10 * best.value


@pytest.mark.parametrize(
    "penalty",
    [
        Penalty(),
        Penalty(lower=0.0),
        Penalty(upper=0.1),
        Penalty(lower=-0.5),
        Penalty(l1=0.01, lower=0.0),
        Penalty(l1=0.01, upper=0.02),
        Penalty(l1=0.01, lower=0.0, upper=0.05),
        Penalty(l1=0.01, l2=0.01, lower=0.0),
    ],
)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_penalty_and_box_is_certified(loss, penalty):
    problem = build("box", *standardised(loss), loss, penalty)
    best = optimum.solve(problem)
    assert abs(best.gap) <= 1e-10 * best.value
    rng = np.random.default_rng(0)
    others = best.w + 1e-2 * rng.standard_normal((200, problem.p))
    others = np.clip(others, penalty.lower, penalty.upper)
    assert (problem.objective(others) >= best.value * (1 - 1e-12)).all()
    for w in others[:20]:  # an upper bound elsewhere too
        excess = problem.objective(w)[0] - best.value
        assert optimum.duality_gap(problem, w) >= excess - 1e-12


@pytest.mark.parametrize("loss", LOSSES)
def test_columns_that_say_the_same_are_certified(loss):
    X, y = standardised(loss)
    once = optimum.solve(build("once", X, y, loss, Penalty()))
    twice = optimum.solve(
        build("twice", np.hstack((X, X[:, :3])), y, loss, Penalty())
    )
    assert twice.value == pytest.approx(once.value, rel=1e-12)


def separable(how):
    X, _ = standardised("logistic")
    y = np.sign(X[:, 0])
    if how == "but for some on the hyperplane":
        X[:50, 0] = 0.0
        y[:50] = np.sign(np.random.default_rng(2).standard_normal(50))
    return X, y


@pytest.mark.parametrize("how", ["strictly", "but for some on the hyperplane"])
def test_separable_labels_have_no_finite_minimiser(how):
    problem = build("apart", *separable(how), "logistic", Penalty())
    with pytest.raises(
        optimum.NotCertifiedError, match="apart: no finite minimiser"
    ):
        optimum.solve(problem)


@pytest.mark.parametrize(
    "case", ["no label", "more features than records", "apart"]
)
def test_a_minimum_of_zero_is_refused(case):
    rng = np.random.default_rng(3)
    X, y, loss = (
        rng.standard_normal((30, 50)),
        rng.standard_normal(30),
        "huber",
    )
    if case == "no label":
        X, y, loss = X[:, :5], np.zeros(30), "least_squares"
    if case == "apart":
        (X, y), loss = separable("strictly"), "smoothed_hinge"
    with pytest.raises(optimum.NotCertifiedError, match="the minimum is 0"):
        optimum.solve(build("zero", X, y, loss, Penalty()))


def test_a_ridge_on_many_sparse_features_is_certified():
    """Its Hessian would have 4500 x 4500 entries; by hand it is solved in the dual."""
    rng, n, l2 = np.random.default_rng(4), 60, 0.05
    X = sparse.random(n, 4500, density=0.01, random_state=rng, format="csc")
    y = rng.standard_normal(n)
    found = optimum.solve(build("many", X, y, "least_squares", Penalty(l2=l2)))
    gram = (X @ X.T).toarray()
    expected = X.T @ np.linalg.solve(gram + n * l2 * np.eye(n), y)
    np.testing.assert_allclose(found.w, expected, atol=1e-9)
    assert found.gap <= 1e-10 * found.value
