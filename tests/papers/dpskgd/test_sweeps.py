"""The laws of Section 4.3's quadratics against the solvers; grouped smoothness."""

import numpy as np
import pytest
from scipy import stats

from dperm.core.privacy.mechanisms import streams
from dperm.papers.dpskgd import instances as law
from dperm.papers.dpskgd.instances import Method
from dperm.papers.dpskgd.theory import release_noise

N = 2.0**20


def cases():
    return [(regime, name) for regime, pair in law.REGIMES.items() for name in pair]


def test_the_design_has_the_declared_smoothness():
    f = law.quadratic("flat", 6, 50.0, 0.1)
    problem = f.problem(8)
    np.testing.assert_allclose(problem.smoothness, f.M)
    np.testing.assert_allclose(problem.A.T @ problem.A / 8, np.diag(f.M), atol=1e-12)
    assert problem.objective(np.zeros(6))[0] == pytest.approx(f.start)
    assert problem.objective(f.optimum)[0] == pytest.approx(0.0, abs=1e-12)
    first = problem.row_norms * np.abs(problem.offset)
    assert first.max() == pytest.approx(f.lipschitz)


@pytest.mark.parametrize(("regime", "name"), cases())
def test_the_solver_follows_the_law(regime, name):
    """Excess of 400 runs of the solver and 400 draws of the law: the same sample."""
    f = law.quadratic(regime, 4, 20.0, 0.0)
    method, setting = Method.of(name, f, N), (0.5, 12, 3e3)
    drawn = [method.drawn_excess(*setting, streams(seed)) for seed in range(400)]
    ran = [method.run_solver(*setting, 8, streams(1000 + seed)) for seed in range(400)]
    assert stats.ks_2samp(drawn, ran).pvalue > 1e-4
    expected = method.expected_excess(*setting)
    assert np.mean(drawn) == pytest.approx(expected, rel=0.25)


def test_expectations_are_exact():
    f = law.quadratic("steep", 8, 100.0, 0.3)
    method, setting = Method.of("DP-SkGD single IS", f, N), (0.3, 40, 2e4)
    drawn = [method.drawn_excess(*setting, streams(seed)) for seed in range(4000)]
    expected = method.expected_excess(*setting)
    assert abs(np.mean(drawn) - expected) < 5 * np.std(drawn) / np.sqrt(len(drawn))


@pytest.mark.parametrize("n", [2.0**20, 2.0**23])
@pytest.mark.parametrize(("regime", "name"), cases())
def test_the_chosen_step_and_length_lie_inside_the_grid(regime, name, n):
    """And nothing on a finer and wider grid is 5 % better."""
    unit = release_noise(1.0, 1 / n**2, 1, "strict")
    f = law.quadratic(regime, 16, 10240.0, 0.0)
    method = Method.of(name, f, n)
    step, count, expected = method.tuned(unit)
    assert min(law.STEPS) < step < max(law.STEPS)
    assert count < law.LONGEST
    wider = [
        method.expected_excess(s, int(k), unit * np.sqrt(k))
        for s in np.geomspace(1e-4, 1.95, 60) for k in np.geomspace(1, 1e8, 60)
    ]  # fmt: skip
    assert expected < 1.05 * min(wider)


def test_terms_are_those_of_table_1():
    """Against the formulas of the table on the same instance."""
    f = law.quadratic("flat", 5, 10.0, 0.2)
    M, w, L, d = f.M, f.optimum, f.lipschitz, 5
    full = Method.of("DP-SkGD full", f, N).terms()
    weighted = np.sqrt((M * w * w).sum())
    assert full["convex"] == pytest.approx(L * np.sqrt((1 / M).sum()) * weighted)
    assert full["strong"] == pytest.approx(L**2 * (1 / M).sum() * M.max() / M.min())
    sgd = Method.of("DP-SGD", f, N).terms()
    assert sgd["convex"] == pytest.approx(L * np.sqrt(d) * np.linalg.norm(w))
    found = Method.of("DP-SkGD single IS", f, N).terms()
    noise = d * L**2 / M.sum()  # L_j = sqrt(M_j / sum M) L, so L_j^2 / M_j is the same
    assert found["strong"] == pytest.approx(noise * M.sum() / M.min())
    assert found["convex"] == pytest.approx(
        np.sqrt(noise * M.sum()) * np.linalg.norm(w)
    )
