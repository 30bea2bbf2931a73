"""Table 1 and Theorem 4.2 in numbers, against the formulas written out."""

import numpy as np
import pytest

from conftest import make_problem, raw_data
from dperm.core.erm.optimum import solve
from dperm.papers.dpskgd import theory as bounds
from dperm.solvers.lanes.dp_skgd import Options, Sketch


@pytest.fixture
def case():
    problem = make_problem("logistic", "l2")
    X, _ = raw_data("logistic")
    return problem, solve(problem), np.abs(X).max(axis=0), np.linalg.norm(X, axis=1)


def test_rows_of_single_coordinates(case):
    problem, optimum, L, _ = case
    M, w, mu = problem.smoothness, optimum.w, 0.1
    weighted = np.sqrt((L**2 / M).sum())
    uniform = bounds.sketched(problem, optimum, Options())
    assert uniform.convex == pytest.approx(
        weighted * np.sqrt((M * w * w).sum()) * np.sqrt(5)
    )
    assert uniform.strong == pytest.approx(weighted**2 * M.max() * 5 / mu)
    importance = bounds.sketched(problem, optimum, Options(probabilities="importance"))
    assert importance.convex == pytest.approx(
        weighted * np.linalg.norm(w) * np.sqrt(M.sum())
    )
    assert importance.strong == pytest.approx(weighted**2 * M.sum() / mu)
    descent = bounds.coordinate_descent(problem, optimum)
    assert descent.convex == uniform.convex
    assert descent.strong == pytest.approx(weighted**2 * 5 / (mu / M.max()))


def test_rows_of_all_coordinates(case):
    problem, optimum, _, norms = case
    w, mu = optimum.w, 0.1
    M = Sketch(problem, Options(blocks=1)).smoothness
    full = bounds.sketched(problem, optimum, Options(blocks=1))
    assert full.convex == pytest.approx(
        norms.max() * np.sqrt((1 / M).sum()) * np.sqrt((M * w * w).sum())
    )
    assert full.strong == pytest.approx(norms.max() ** 2 * (1 / M).sum() * M.max() / mu)
    sgd = bounds.stochastic_gradient(problem, optimum)
    assert sgd.convex == pytest.approx(norms.max() * np.sqrt(5) * np.linalg.norm(w))
    assert sgd.strong == pytest.approx(norms.max() ** 2 * 5 / mu)


def test_rows_of_blocks(case):
    problem, optimum, *_ = case
    X, _ = raw_data("logistic")
    sketch, w = Sketch(problem, Options(blocks=2)), optimum.w
    M, groups = sketch.smoothness, sketch.sets
    assert sorted(map(len, groups)) == [2, 3]
    noise = sum(
        np.linalg.norm(X[:, A], axis=1).max() ** 2 * (1 / M[list(A)]).sum()
        for A in groups
    )
    tops = sum(M[list(A)].max() for A in groups)
    uniform = bounds.sketched(problem, optimum, Options(blocks=2))
    assert uniform.convex == pytest.approx(
        np.sqrt(noise) * np.sqrt((M * w * w).sum()) * np.sqrt(2)
    )
    options = Options(blocks=2, probabilities="importance")
    chosen = bounds.sketched(problem, optimum, options)
    assert chosen.strong == pytest.approx(noise * tops / 0.1)
    # the table's importance row bounds M P^-1 by a multiple of the identity
    assert chosen.convex <= np.sqrt(noise * tops) * np.linalg.norm(w) * (1 + 1e-12)


def test_least_squares_takes_the_larger_residual():
    problem = make_problem("least_squares", "l2")
    optimum = solve(problem)
    X, y = raw_data("least_squares")
    residual = np.maximum(np.abs(y), np.abs(X @ optimum.w - y))
    expected = (np.linalg.norm(X[:, [1, 3]], axis=1) * residual).max()
    found = bounds.lipschitz(problem, optimum, np.array([1, 3]))
    assert found == pytest.approx(expected)
