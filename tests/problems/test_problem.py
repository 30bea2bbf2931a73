"""Objectives, constants, penalties and cleaned records against plain numpy."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from conftest import PENALTIES, raw_data
from dperm.numerics.compiled import exp, softplus
from dperm.problems.cleaning import cleaned
from dperm.problems.losses import bounded
from dperm.problems.penalties import prox, prox_constants
from dperm.problems.problem import build

FORMS = {"dense": np.asarray, "csr": sparse.csr_array, "csc": sparse.csc_array}
forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)

LOSSES = {
    "least_squares": lambda s, y: 0.5 * (s - y) ** 2,
    "logistic": lambda s, y: np.logaddexp(0, -y * s),
    "smoothed_hinge": lambda s, y: 0.5 * np.maximum(1 - y * s, 0) ** 2,
    "huber": lambda s, y: np.where(
        abs(s - y) <= 1, (s - y) ** 2 / 2, abs(s - y) - 0.5
    ),
}


def test_compiled_functions():
    for x in np.linspace(-60, 60, 241):
        np.testing.assert_allclose(exp(x), np.exp(x), rtol=2e-14)
        np.testing.assert_allclose(softplus(x), np.logaddexp(0, x), rtol=1e-14)
    assert np.isfinite(exp(1e308)) and exp(-1e308) < 1e-300


def made(loss, form, penalty="elastic", **sizes):
    """A problem, X and y; a record and a column have one entry at most."""
    X, y = raw_data(loss, **sizes)
    X[3], X[:, 2], X[0, 2] = 0.0, 0.0, 1.0
    return build("small", form(X), y, loss, PENALTIES[penalty]), X, y


@forms
@pytest.mark.parametrize("name", bounded())
def test_objective(name, form):
    """Of many points, of each alone, and by several threads."""
    problem, X, y = made(name, form, n=1500, p=7)
    W = np.random.default_rng(1).standard_normal((37, 7))
    W[4], W[5, :4] = 0.0, 0.0
    psi = PENALTIES["elastic"]
    penalties = [psi.l1 * np.abs(w).sum() + psi.l2 / 2 * (w @ w) for w in W]
    expected = LOSSES[name](W @ X.T, y).mean(axis=1) + penalties
    W[7, 3] = expected[7] = np.inf
    found = problem.objective(W)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_array_equal(found, problem.objective(W, workers=3))
    assert [problem.objective(w)[0] for w in W] == found.tolist()


@forms
def test_a_point_that_diverged_or_left_the_box_has_an_infinite_objective(
    loss, form
):
    W = np.full((3, 5), [[np.nan], [np.inf], [1e300]])
    assert np.isinf(made(loss, form)[0].objective(W)).all()
    boxed, _, _ = made(loss, form, "box")
    assert np.isinf(boxed.objective(np.full(5, 0.04))[0])
    assert np.isfinite(boxed.objective(np.full(5, 0.03))[0])


@forms
def test_constants_and_gradients(loss, form):
    problem, X, y = made(loss, form)
    assert problem.is_sparse == (form is not np.asarray)
    full, w = build("x", X, y, loss, problem.penalty), np.linspace(-1, 2, 5)
    np.testing.assert_allclose(
        problem.gradient(w), full.gradient(w), rtol=1e-10
    )
    curvature = 0.25 if loss == "logistic" else 1.0
    np.testing.assert_allclose(
        problem.smoothness, curvature * (X**2).mean(axis=0)
    )
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
        found = prox(
            v, *prox_constants(penalty, 0.7), penalty.lower, penalty.upper
        )
        assert abs(found - grid[np.argmin(cost)]) < 1e-4
        of_array = penalty.prox(np.full(3, v), np.full(3, 0.7))
        np.testing.assert_allclose(of_array, found, rtol=1e-12, atol=1e-15)


@forms
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "place", [0, 1, None], ids=["first", "second", "label"]
)
def test_a_record_that_is_not_finite_becomes_zeros(form, bad, place):
    """And nobody is told."""
    X, y = (
        np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 6.0]]),
        np.array([1.0, -2.0, 3.0]),
    )
    if place is None:
        y[1] = bad
    else:
        X[1, place] = bad
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, offset = cleaned(form(X), y)
    assert type(found) is type(form(X)) and found.shape == (3, 2)
    rows = found if isinstance(found, np.ndarray) else found.toarray()
    np.testing.assert_array_equal(rows, [[1.0, 2.0], [0.0, 0.0], [0.0, 6.0]])
    np.testing.assert_array_equal(offset, [1.0, 0.0, 3.0])


@forms
def test_what_is_finite_is_left_alone(form):
    X, y = (
        form(np.array([[1e308, -5e-324], [0.0, 1.0]])),
        np.array([-1e308, 0.0]),
    )
    found, offset = cleaned(X, y)
    assert found is X and offset is y
