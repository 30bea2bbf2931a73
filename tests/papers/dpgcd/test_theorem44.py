"""Theorems 4.4 and 4.7: their constants, and runs with their own noise."""

import math
from dataclasses import replace

import numpy as np
import pytest

from conftest import make_problem
from dperm.papers.dpgcd import theorem44
from dperm.problems.optimum import solve

DELTA = 1e-6


@pytest.fixture(scope="module")
def case():
    problem = replace(make_problem("logistic", "l2"), epsilon=1.0, delta=DELTA)
    return problem, solve(problem)


@pytest.fixture(name="at")
def constants(case):
    return theorem44.known(*case)


def test_constants_are_those_of_a_ridged_logistic_loss(case, at):
    problem, optimum = case
    hessian = 0.25 * (problem.A**2).mean(axis=0) + problem.penalty.l2
    np.testing.assert_allclose(at.M, hessian)
    np.testing.assert_allclose(at.L, np.abs(problem.A).max(axis=0))
    assert at.mu == pytest.approx(problem.penalty.l2 / hessian.max())
    assert at.radius == pytest.approx(np.sqrt(hessian) @ np.abs(optimum.w))
    assert at.start == pytest.approx(math.log(2) - optimum.value)


def test_noise_is_that_of_theorem_4_2(at):
    scale = 8 * at.L.max() / (500 * 1.0) * math.sqrt(7 * math.log(1 / DELTA))
    assert at.scale(500, 7) == pytest.approx(scale)
    beta = 2 * scale**2 / at.M.min() * math.log(8 * 7 * at.p / 0.05) ** 2
    assert at.noise(500, 7) == pytest.approx(beta)


def test_beta_covers_what_an_iteration_s_noise_costs(at):
    """Equation 3 for the three draws of an iteration, over T iterations and p."""
    rng, T = np.random.default_rng(0), 5
    scale = at.scale(500, T)
    drawn = rng.laplace(0.0, scale, (20000, T, 3)) ** 2 @ [0.5, 0.5, 0.25]
    exceeded = (drawn.max(axis=1) / at.M.min() > at.noise(500, T)).mean()
    assert exceeded <= theorem44.WRONG


def test_equation_28_at_its_t(at):
    n = 10**9
    T, bound = theorem44.convex(at, n)
    size = (n / at.L.max() * at.radius) ** 2 * at.M.min()
    expected = (size / (128 * math.log(1 / DELTA))) ** (1 / 3)
    assert pytest.approx(expected, abs=0.5) == T > 100
    R = at.radius**2
    assert bound == pytest.approx(
        8 * R / T + math.sqrt(32 * R * at.noise(n, T))
    )


def equation_54(at, n, T):
    """mu_{M,1} is at least mu_{M,2} / p."""
    kept = (1 - at.mu / (4 * at.p)) ** T * at.start
    return kept + 4 * at.p * at.noise(n, T) / at.mu


def equation_66(at, n, T):
    """The least over tau, with a rest that is left out and still counts."""
    found = []
    for tau in range(at.p + 1):
        rest = at.sizes[tau] if tau < at.p else 0.0
        wide, left = min(T, at.p) + tau, (at.p - tau) * at.M.max() * rest**2
        kept = (1 - at.mu / (4 * wide)) ** T * at.start
        found.append(
            kept + 4 * wide * at.noise(n, T) / at.mu + wide / 8 * left
        )
    return min(found)


@pytest.mark.parametrize(
    ("name", "equation"),
    [("strongly convex", equation_54), ("quasi-sparse", equation_66)],
)
@pytest.mark.parametrize("n", [10**7, 10**8])
def test_a_bound_is_its_equation_at_the_best_t(at, name, equation, n):
    small = replace(at, sizes=np.where(np.arange(at.p) < 1, 1.0, 1e-3))
    T, bound = theorem44.CASES[name](small, n)
    assert bound == pytest.approx(equation(small, n, T), rel=1e-12)
    assert bound <= min(equation(small, n, other) for other in (1, 2 * T))


@pytest.mark.parametrize("name", list(theorem44.CASES))
def test_so_many_records_are_needed(at, name):
    found, bound = theorem44.needed(at, name), theorem44.CASES[name]
    assert 1 < found < math.inf
    assert (
        bound(at, round(found))[1]
        <= at.start
        < bound(at, round(0.9 * found))[1]
    )


def test_a_quiet_run_is_greedy_descent(case, at):
    problem, optimum = case
    quiet = replace(at, epsilon=1e12)
    w = np.zeros(problem.p)
    for _ in range(15):
        inner = problem.derivatives(problem.A @ w + problem.offset)
        slope = problem.A.T @ inner / problem.n + problem.penalty.l2 * w
        j = np.argmax(np.abs(slope) / np.sqrt(at.M))
        w[j] -= slope[j] / at.M[j]
    expected = float(problem.objective(w[None])[0])
    found = theorem44.run(problem, quiet, 15, 3)
    assert found == pytest.approx(expected, rel=1e-9)
    assert optimum.value < found < optimum.value + at.start


def test_a_run_draws_the_noise_of_the_theorem(monkeypatch, case, at):
    problem, _ = case
    drawn = []

    def recorded(rng, scale):
        drawn.append(np.asarray(scale, dtype=float))
        return rng.laplace(0.0, scale)

    monkeypatch.setattr(theorem44, "laplace", recorded)
    theorem44.run(problem, at, 4, 3)
    factor = 8 / problem.n * math.sqrt(4 * math.log(1 / DELTA))
    selections = [one for one in drawn if one.shape == (problem.p,)]
    values = [one for one in drawn if one.shape == ()]
    assert len(selections) == len(values) == 4
    np.testing.assert_allclose(selections, np.tile(factor * at.L, (4, 1)))
    assert all(np.isclose(float(one), factor * at.L).any() for one in values)


def test_other_problems_are_refused():
    for names in (("least_squares", "l2"), ("logistic", "l1")):
        problem = make_problem(*names)
        with pytest.raises(
            ValueError, match="expected a Lipschitz loss and a ridge"
        ):
            theorem44.known(problem, solve(problem))


def test_a_run_on_squares_leaves_the_noise_of_the_steps_that_were_right():
    at = theorem44.decaying(4, 1.0, 1e-6)
    sizes = 1 / np.arange(1, 5)
    assert at.start == pytest.approx(sizes @ sizes / 2)
    assert at.radius == pytest.approx(sizes.sum())
    n, T = 10**8, 400
    ends = theorem44.run_decaying(at, n, T, 1, 300)
    assert 0 < ends.mean() < 4 * at.scale(n, T) ** 2
    more = theorem44.run_decaying(at, 2 * n, T, 1, 300)
    np.testing.assert_allclose(ends, 4 * more, rtol=1e-9)
    assert theorem44.run_decaying(at, n, 1, 1, 300).mean() == pytest.approx(
        at.start - 0.5, rel=1e-3
    )
    # half a squared Laplace number is left
    alone = theorem44.decaying(1, 1.0, 1e-6)
    ends = theorem44.run_decaying(alone, n, 1, 1, 20_000)
    assert ends.mean() / alone.scale(n, 1) ** 2 == pytest.approx(1, rel=0.1)
