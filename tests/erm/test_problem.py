"""Objectives, constants, penalties and cleaned records against plain numpy."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from conftest import PENALTIES, make_problem, raw_data
from dperm.core.compiled import exp, softplus
from dperm.core.erm.cleaning import cleaned
from dperm.core.erm.losses import bounded
from dperm.core.erm.penalties import prox, prox_constants

KINDS = {"dense": np.asarray, "csr": sparse.csr_array, "csc": sparse.csc_array}


LOSSES = {
    "least_squares": lambda s, y: 0.5 * (s - y) ** 2,
    "logistic": lambda s, y: np.logaddexp(0, -y * s),
    "smoothed_hinge": lambda s, y: 0.5 * np.maximum(1 - y * s, 0) ** 2,
    "huber": lambda s, y: np.where(abs(s - y) <= 1, (s - y) ** 2 / 2, abs(s - y) - 0.5),
}


def test_compiled_functions():
    for x in np.linspace(-60, 60, 241):
        np.testing.assert_allclose(exp(x), np.exp(x), rtol=2e-14)
        np.testing.assert_allclose(softplus(x), np.logaddexp(0, x), rtol=1e-14)
    assert np.isfinite(exp(1e308)) and exp(-1e308) < 1e-300


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", bounded())
def test_objective(name, workers):
    problem = make_problem(name, n=1500, p=7)
    X, y = raw_data(name, n=1500, p=7)
    W = np.random.default_rng(1).standard_normal((9, 7))
    W[4] = 0.0
    psi = PENALTIES["elastic"]
    penalties = [psi.l1 * np.abs(w).sum() + psi.l2 / 2 * (w @ w) for w in W]
    expected = LOSSES[name](W @ X.T, y).mean(axis=1) + penalties
    found = problem.objective(W, workers)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_array_equal(found[3], problem.objective(W[3]))


def test_a_point_that_diverged_or_left_the_box_has_an_infinite_objective(loss):
    W = np.full((3, 5), [[np.nan], [np.inf], [1e300]])
    assert np.isinf(make_problem(loss).objective(W)).all()
    boxed = make_problem(loss, "box")
    assert np.isinf(boxed.objective(np.full(5, 0.04))[0])
    assert np.isfinite(boxed.objective(np.full(5, 0.03))[0])


def test_constants(loss):
    problem, (X, _) = make_problem(loss), raw_data(loss)
    curvature = 0.25 if loss == "logistic" else 1.0
    np.testing.assert_allclose(problem.smoothness, curvature * (X**2).mean(axis=0))
    beta = curvature * np.linalg.norm(X, 2) ** 2 / len(X)
    np.testing.assert_allclose(problem.global_smoothness, beta)
    np.testing.assert_allclose(problem.row_norms, np.linalg.norm(X, axis=1))


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


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 1, None], ids=["first", "second", "label"])
def test_a_record_that_is_not_finite_becomes_zeros(kind, bad, place):
    """And nobody is told."""
    X, y = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 6.0]]), np.array([1.0, -2.0, 3.0])
    if place is None:
        y[1] = bad
    else:
        X[1, place] = bad
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, offset = cleaned(kind(X), y)
    assert type(found) is type(kind(X)) and found.shape == (3, 2)
    rows = found if isinstance(found, np.ndarray) else found.toarray()
    np.testing.assert_array_equal(rows, [[1.0, 2.0], [0.0, 0.0], [0.0, 6.0]])
    np.testing.assert_array_equal(offset, [1.0, 0.0, 3.0])


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_is_finite_is_left_alone(kind):
    X, y = kind(np.array([[1e308, -5e-324], [0.0, 1.0]])), np.array([-1e308, 0.0])
    found, offset = cleaned(X, y)
    assert found is X and offset is y
