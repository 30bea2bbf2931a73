"""Table 1 and Theorem 4.2 in numbers, against the formulas written out."""

import numpy as np
import pytest

from conftest import make_problem, raw_data
from dperm.papers.dpskgd import theory as bounds
from dperm.problems.optimum import solve
from dperm.solvers.batched.dp_skgd import Options, SketchLaw


@pytest.fixture
def case():
    problem = make_problem("logistic", "l2")
    X, _ = raw_data("logistic")
    return (
        problem,
        solve(problem),
        np.abs(X).max(axis=0),
        np.linalg.norm(X, axis=1),
    )


def test_rows_of_table_1(case):
    problem, optimum, L, norms = case
    X, _ = raw_data("logistic")
    M, w, mu, top = problem.smoothness, optimum.w, 0.1, norms.max()
    weighted, size = np.sqrt((L**2 / M).sum()), np.linalg.norm(w)

    def radius(M):
        return np.sqrt((M * w * w).sum())

    whole = SketchLaw(problem, Options(blocks=1)).smoothness
    sketch = SketchLaw(problem, Options(blocks=2))
    halves, blocks = sketch.smoothness, sketch.sets
    assert sorted(map(len, blocks)) == [2, 3]
    noise = sum(
        np.linalg.norm(X[:, A], axis=1).max() ** 2
        * (1 / halves[list(A)]).sum()
        for A in blocks
    )
    tops = sum(halves[list(A)].max() for A in blocks)
    full = top * np.sqrt((1 / whole).sum())
    by_chance = {"probabilities": "importance"}
    rows = {  # of the options: the convex term, the strongly convex one
        (): (weighted * radius(M) * np.sqrt(5), weighted**2 * M.max() * 5 / mu),
        (*by_chance.items(),): (
            weighted * size * np.sqrt(M.sum()), weighted**2 * M.sum() / mu
        ),
        (("blocks", 1),): (full * radius(whole), full**2 * whole.max() / mu),
        (("blocks", 2),): (
            np.sqrt(noise) * radius(halves) * np.sqrt(2), noise * halves.max() * 2 / mu
        ),
    }  # fmt: skip
    for options, terms in rows.items():
        found = bounds.sketched(problem, optimum, Options(**dict(options)))
        assert (found.convex, found.strong) == pytest.approx(terms), options
    # the row of importance-sampled blocks bounds M P^-1 by a multiple of the identity
    chosen = bounds.sketched(problem, optimum, Options(blocks=2, **by_chance))
    assert chosen.strong == pytest.approx(noise * tops / mu)
    assert chosen.convex <= np.sqrt(noise * tops) * size * (1 + 1e-12)
    descent = bounds.coordinate_descent(problem, optimum)
    assert descent.convex == pytest.approx(rows[()][0])
    assert descent.strong == pytest.approx(weighted**2 * 5 / (mu / M.max()))
    sgd = bounds.stochastic_gradient(problem, optimum)
    assert sgd.convex == pytest.approx(top * np.sqrt(5) * size)
    assert sgd.strong == pytest.approx(top**2 * 5 / mu)


def test_least_squares_takes_the_larger_residual():
    problem = make_problem("least_squares", "l2")
    optimum = solve(problem)
    X, y = raw_data("least_squares")
    residual = np.maximum(np.abs(y), np.abs(X @ optimum.w - y))
    expected = (np.linalg.norm(X[:, [1, 3]], axis=1) * residual).max()
    found = bounds.lipschitz(problem, optimum, np.array([1, 3]))
    assert found == pytest.approx(expected)
