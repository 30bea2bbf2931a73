"""Theorem 4.2 at its own parameters: instances, constants, expectations and runs."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dperm.papers.dpskgd import instances, sweeps, theorem42, theory
from dperm.papers.dpskgd.theorem42 import Algorithm
from dperm.privacy.noise import streams
from dperm.solvers.batched.constants import strong_convexity

N = 2.0**18


@pytest.fixture
def f():
    return instances.pairs(
        groups=2, levels=2, ratio=9.0, spacing=5.0, placement=-0.25
    )


def test_the_design_has_the_declared_constants(f):
    problem, H = f.problem, f.problem.A.T @ f.problem.A / f.p
    np.testing.assert_allclose(problem.smoothness, f.smoothness)
    for pair in range(len(f.M)):
        both = slice(2 * pair, 2 * pair + 2)
        np.testing.assert_allclose(H[both, both], f.hessian(pair))
    off = H - np.kron(np.eye(len(f.M)), np.ones((2, 2))) * H
    np.testing.assert_allclose(off, 0.0, atol=1e-12)
    assert strong_convexity(problem)[1] == pytest.approx(f.convexity)
    np.testing.assert_allclose(problem.gradient(f.w), 0.0, atol=1e-12)
    assert problem.objective(np.zeros(f.p))[0] == pytest.approx(f.start)
    slack = np.linalg.eigvalsh(np.diag(f.dominating) - H)[0]
    assert slack == pytest.approx(0.0, abs=1e-9)  # it bounds the Hessian, just


@pytest.mark.parametrize("sampling", list(theorem42.SAMPLINGS))
@pytest.mark.parametrize("counts", [(40, 1), (20, 3)])
def test_the_solver_has_the_expectation(f, sampling, counts):
    algorithm, setting = Algorithm.of(f, sampling), (counts, 1e3, N)
    found = np.array(
        [algorithm.run(*setting, streams(seed)) for seed in range(300)]
    )
    expected = algorithm.expected_excess(*setting)
    assert abs(found.mean() - expected) < 4.5 * found.std() / math.sqrt(
        len(found)
    )


@pytest.mark.parametrize("sampling", list(theorem42.SAMPLINGS))
def test_the_row_is_that_of_table_1_with_a_dominating_m(f, sampling):
    """But for L_S, which is the clip here."""
    algorithm = Algorithm.of(f, sampling)
    given = (f.problem, SimpleNamespace(w=f.w), algorithm.sketch.options)
    radius = theory.sketched(*given, dominating=True).radius
    row = algorithm.terms("convex", N, 0.5).row
    assert row == pytest.approx(math.sqrt(algorithm.noise_size) * radius)
    size = sum(
        q * f.clip**2 * f.smoothness[S].sum() / f.smoothness.sum()
        * sum(1 / (algorithm.sketch.probability[j] * f.dominating[j]) for j in S)
        for q, S in zip(algorithm.sketch.q, algorithm.sketch.sets, strict=True)
    )  # fmt: skip
    assert algorithm.noise_size == pytest.approx(size)


def test_the_best_length_beats_the_longest_and_the_theorems(f):
    algorithm = Algorithm.of(f, "single")
    inner = algorithm.terms("convex", N, 1.0).counts[0]
    best = algorithm.best_inner(inner, N, 1.0)

    def at(count):
        noise = theorem42.multiplier(count, 1.0, N)
        return algorithm.expected_excess((count, 1), noise, N)

    tried = [round(inner * length) for length in theorem42.LENGTHS]
    assert best in tried
    assert at(best) <= 1.02 * min(at(count) for count in tried)
    assert all(
        at(count) > 1.02 * min(map(at, tried))
        for count in tried
        if count < best
    )


def test_where_t_is_negative_nothing_is_run():
    shape = {"groups": 2, "levels": 2, "spacing": 5.0}
    point = {
        "instance": "one",
        "case": "strongly convex",
        "sampling": "single",
    }
    point |= {"n": 64, "epsilon": 1.0}
    short = sweeps.theorem(point, 3, {"one": shape}, ratio=9.0, transcripts=3)
    assert (
        len(short) == 1
        and short[0]["periods"] < 0
        and "excess" not in short[0]
    )
    assert short[0]["start_over_bound"] < 1
