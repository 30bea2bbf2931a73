"""Certified minima of problems without a penalty, with boxes, large ones; refusals."""

import logging

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, LogisticRegression

from dperm.core.erm import optimum
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import build

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
        y = np.sign(y - np.median(y) + np.random.default_rng(1).standard_normal(400))
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def test_least_squares_without_penalty_agrees_with_scikit_learn():
    X, y = housing()
    best = optimum.solve(build("housing", X, y, "least_squares", Penalty()))
    fit = LinearRegression(fit_intercept=False).fit(X, y)
    least = 0.5 * ((fit.predict(X) - y) ** 2).mean()
    assert best.value == pytest.approx(least, rel=1e-12)
    assert best.gap <= 1e-10 * best.value


def test_logistic_regression_without_penalty_agrees_with_scikit_learn():
    X, y = standardised("logistic")
    problem = build("labels", X, y, "logistic", Penalty())
    best = optimum.solve(problem)
    fit = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, max_iter=10000)
    least = problem.objective(fit.fit(X, y).coef_)[0]
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
    twice = optimum.solve(build("twice", np.hstack((X, X[:, :3])), y, loss, Penalty()))
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
    with pytest.raises(optimum.NotCertifiedError, match="apart: no finite minimiser"):
        optimum.solve(problem)


def test_a_box_or_a_penalty_makes_separable_labels_a_problem():
    for penalty in (Penalty(l2=1e-3), Penalty(l1=1e-3), Penalty(lower=-5, upper=5)):
        problem = build("apart", *separable("strictly"), "logistic", penalty)
        assert optimum.solve(problem).gap <= 1e-10


@pytest.mark.parametrize("case", ["no label", "more features than records", "apart"])
def test_a_minimum_of_zero_is_refused(case):
    rng = np.random.default_rng(3)
    X, y, loss = rng.standard_normal((30, 50)), rng.standard_normal(30), "huber"
    if case == "no label":
        X, y, loss = X[:, :5], np.zeros(30), "least_squares"
    if case == "apart":
        (X, y), loss = separable("strictly"), "smoothed_hinge"
    with pytest.raises(optimum.NotCertifiedError, match="the minimum is 0"):
        optimum.solve(build("zero", X, y, loss, Penalty()))


@pytest.mark.parametrize("loss", ["least_squares", "logistic"])
def test_large_hessians_are_not_filled_in(loss, monkeypatch):
    rng = np.random.default_rng(4)
    X = sparse.random_array((300, 500), density=0.05, rng=rng, format="csc")
    y = X @ rng.standard_normal(500) + rng.standard_normal(300)
    y = y if loss == "least_squares" else np.sign(y)
    problem = build("large", X, y, loss, Penalty(l2=0.01))
    expected = optimum.solve(problem)
    monkeypatch.setattr(optimum, "_DENSE", 100)
    monkeypatch.setattr(optimum.scipy.linalg, "lstsq", None)  # not to be called
    found = optimum.solve(problem)
    assert found.value == pytest.approx(expected.value, rel=1e-13)
    assert found.gap <= 1e-10 * found.value


@pytest.mark.parametrize("penalty", [Penalty(l2=0.01), Penalty(l1=0.1)])
def test_a_large_problem_is_polished_until_it_is_certified(penalty, monkeypatch):
    problem, steps = build("many", *housing(), "least_squares", penalty), []
    expected, step = optimum.solve(problem), optimum._newton_step
    monkeypatch.setattr(optimum, "_MANY", 0)
    monkeypatch.setattr(
        optimum, "_newton_step", lambda *given: steps.append(1) or step(*given)
    )
    found = optimum.solve(problem)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    assert found.gap <= 1e-10 * found.value and len(steps) < 10


def test_a_long_search_says_how_far_it_is(monkeypatch, caplog):
    monkeypatch.setattr(optimum, "_SILENCE", 0.0)
    with caplog.at_level(logging.INFO, logger=optimum.__name__):
        optimum.solve(build("slow", *housing(), "least_squares", Penalty(l1=0.1)))
    assert "slow: iteration 2, F = " in caplog.text
