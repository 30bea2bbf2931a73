"""Theorem 3.3: its constants, and runs with its own noise."""

import math
from dataclasses import replace

import numpy as np
import pytest

from conftest import make_problem
from dperm.papers.dpcd import theory
from dperm.problems.optimum import solve
from dperm.solvers.batched.constants import strong_convexity


@pytest.fixture(params=["logistic", "least_squares"])
def case(request):
    problem = replace(
        make_problem(request.param, "l2"), epsilon=1.0, delta=1e-6
    )
    return problem, solve(problem)


def test_equation_67_at_its_k_is_below_equation_68(case):
    problem, optimum = case
    found = theory.terms(problem, optimum, "convex")
    terms = theory.compared(problem, optimum)[0]
    size, radius = terms["lipschitz"], terms["radius"]
    rate = math.log(1e6) / problem.n**2

    def bound(K):
        return 1.5 * problem.p * radius**2 / K + 12 * size**2 * K * rate

    assert bound(found.inner) <= found.bound * (1 + 1e-12)
    least = min(bound(K) for K in np.geomspace(1e-6, 1e9, 4001))
    assert bound(found.inner) <= least  # its K is the best there is


def test_equation_70_at_its_t_is_equation_71(case):
    problem, optimum = case
    large = replace(problem, epsilon=1e4)  # so that T is positive
    found = theory.terms(large, optimum, "strongly convex")
    mu = strong_convexity(problem)[0]
    assert found.inner == pytest.approx(2 * problem.p * (1 + 1 / mu))
    size = theory.compared(problem, optimum)[0]["lipschitz"] ** 2
    level = (
        24
        * problem.p
        * (1 + 1 / mu)
        * size
        * math.log(1e6)
        / (problem.n * 1e4) ** 2
    )
    sum_of_70 = found.start / 2**found.periods + level * found.periods
    assert found.periods > 1 and sum_of_70 == pytest.approx(found.bound)
    assert theory.terms(problem, optimum, "strongly convex").epochs < 1


def test_a_run_has_the_noise_of_theorem_3_1(case):
    problem, optimum = case
    large = replace(problem, epsilon=50.0)
    found = theory.terms(large, optimum, "convex")
    count = max(1, round(found.inner))
    sigma = (
        found.lipschitz
        * math.sqrt(12 * count * math.log(1e6))
        / (problem.n * 50)
    )
    run = theory.AsPrinted(large, found, seed=3, periods=1)
    step, clip, scale = run.constants[0, :, 0]
    np.testing.assert_allclose(scale * run.share, sigma)
    np.testing.assert_allclose(clip * run.share, found.lipschitz)
    np.testing.assert_allclose(step / run.divisor * large.smoothness, 1.0)
    assert theory.run(large, found, 3) == large.objective(run.weights)[0]


def test_without_noise_to_speak_of_the_bound_holds(case):
    problem, optimum = case
    for name in theory.CASES:
        large = replace(problem, epsilon=1e4)
        found = theory.terms(large, optimum, name)
        ended = [
            theory.run(large, found, seed) - optimum.value for seed in range(3)
        ]
        assert 0 <= np.mean(ended) < found.bound
