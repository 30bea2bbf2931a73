"""Theorem 4.2 at its own parameters: instances, constants, expectations and runs."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dperm.core.privacy.mechanisms import streams
from dperm.papers.dpskgd import instances, sweeps, theorem42, theory
from dperm.papers.dpskgd.theorem42 import Algorithm
from dperm.solvers.lanes.constants import strong_convexity

N = 2.0**18


@pytest.fixture
def f():
    return instances.pairs(groups=2, levels=2, ratio=9.0, spacing=5.0, placement=-0.25)


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
    found = np.array([algorithm.run(*setting, streams(seed)) for seed in range(300)])
    expected = algorithm.expected_excess(*setting)
    assert abs(found.mean() - expected) < 4.5 * found.std() / math.sqrt(len(found))


@pytest.mark.parametrize("sampling", list(theorem42.SAMPLINGS))
def test_terms_are_those_of_the_theorem(f, sampling):
    algorithm, M = Algorithm.of(f, sampling), f.dominating
    sketch = algorithm.sketch
    size = sum(
        q * f.clip**2 * f.smoothness[S].sum() / f.smoothness.sum()
        * sum(1 / (sketch.probability[j] * M[j]) for j in S)
        for q, S in zip(sketch.q, sketch.sets, strict=True)
    )  # fmt: skip
    log, n, epsilon = 2 * math.log(N), N, 0.5
    convex = algorithm.terms("convex", n, epsilon)
    radius = theory.sketched(
        f.problem, SimpleNamespace(w=f.w), sketch.options, dominating=True
    ).radius
    inner = n * epsilon * radius / math.sqrt(size * log)
    assert convex.inner == pytest.approx(inner, rel=1e-6)
    after = radius**2 / inner + 12 * inner * log * size / (n * epsilon) ** 2
    assert convex.bound == pytest.approx(after, rel=1e-6)

    strong = algorithm.terms("strongly convex", n, epsilon)
    top = 1 + (M / sketch.probability).max() / f.convexity
    assert strong.inner == pytest.approx(2 * top)
    level = top * size * log / (n * epsilon) ** 2
    assert strong.periods == pytest.approx(math.log2(f.start / level))
    printed = (1 + math.log2(f.start / (24 * level))) * 24 * level
    assert strong.bound == pytest.approx(printed)
    sigmas = 12 * strong.inner * strong.periods * log * size / (n * epsilon) ** 2
    assert strong.proved == pytest.approx(f.start / 2**strong.periods + 2 * sigmas)


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
        at(count) > 1.02 * min(map(at, tried)) for count in tried if count < best
    )


GIVEN = {
    "shapes": {"one": {"groups": 2, "levels": 2, "spacing": 5.0}},
    "ratio": 9.0,
    "transcripts": 3,
}


def point(**changed):
    return {"instance": "one", "case": "convex", "sampling": "single", "n": 2**14,
            "epsilon": 1.0} | changed  # fmt: skip


def test_where_t_is_negative_nothing_is_run():
    short = sweeps.theorem(None, point(case="strongly convex", n=64), 3, **GIVEN)
    assert len(short) == 1 and short[0]["periods"] < 0 and "excess" not in short[0]
    assert short[0]["start_over_bound"] < 1
    whole = sweeps.theorem(None, point(case="strongly convex", n=2**20), 3, **GIVEN)
    assert whole[0]["epochs"] > 1 and len(whole) == 3
    inner, periods = round(whole[0]["inner"]), round(whole[0]["periods"])
    assert whole[0]["steps"] == inner * periods
