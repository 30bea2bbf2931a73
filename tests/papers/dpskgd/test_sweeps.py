"""The laws of Section 4.3's quadratics against the solvers; grouped smoothness."""

import numpy as np
import pytest
from scipy import stats

from dperm.core.privacy.mechanisms import streams
from dperm.papers.dpskgd import instances as law
from dperm.papers.dpskgd import sweeps
from dperm.papers.dpskgd.instances import Method
from dperm.papers.dpskgd.theory import release_noise
from dperm.solvers.lanes import dp_skgd

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


def test_noise_of_k_releases():
    one = release_noise(1.0, 1e-6, 1, "strict")
    from dperm.core.privacy.strict import gaussian_epsilon

    assert gaussian_epsilon(1 / one, 1e-6) == pytest.approx(1.0, rel=1e-6)


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


def test_rows_of_a_point():
    point = {"regime": "steep", "d": 4, "n": 1048576}
    given = {"ratio": 100.0, "others": 0.0, "epsilon": 1.0, "draws": 2}
    given |= {"solver_steps": 2000, "solver_dimension": 8}
    rows = sweeps.regimes(None, point, 3, **given)
    assert {(row["algorithm"], row["source"]) for row in rows} >= {
        ("DP-CD", "law"), ("DP-SkGD single IS", "law"), ("DP-SkGD single IS", "solver"),
    }  # fmt: skip
    assert rows == sweeps.regimes(None, point, 3, **given)


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


def test_aligned_blocks_are_the_groups():
    aligned = law.partition("aligned", 8, 2)
    crossed = law.partition("misaligned IS", 8, 2)
    assert aligned.groups == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert crossed.groups == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert crossed.probabilities == "importance"
    problem = law.grouped(4000, 8, 2, 100.0, 0.5, 1.0)
    ratio = problem.smoothness[4:].mean() / problem.smoothness[:4].mean()
    assert ratio == pytest.approx(100.0, rel=0.2)
    factors = [dp_skgd.Sketch(problem, each).factors.max()
               for each in (aligned, crossed)]  # fmt: skip
    assert factors[0] == pytest.approx(2.5, rel=0.1)  # 1 + 3 * 0.5
    assert factors[1] == pytest.approx(1.5, rel=0.1)  # pairs of one group


def test_random_blocks_are_equally_large_and_the_seeds():
    chosen = [law.partition("random", 8, 2, seed).groups for seed in range(6)]
    assert all(sorted(np.concatenate(each)) == list(range(8)) for each in chosen)
    assert all(len(block) == 4 for each in chosen for block in each)
    assert len({tuple(map(tuple, each)) for each in chosen}) > 1
    assert law.partition("random", 8, 2, 3).groups == chosen[3]
    point = {"method": "random IS", "ratio": 100.0, "correlation": 0.0}
    grid = {"passes": [2.0], "step": [1.0], "clip": [0.5]}
    given = {"n": 512, "p": 8, "groups": 2, "epsilon": 4.0, "fresh": 1, "grid": grid}
    errors = [sweeps.blocks(None, point, seed, **given)[0] for seed in (5, 5, 6)]
    assert errors[0] == errors[1] != errors[2]


def test_blocks_are_tuned_and_fresh():
    point = {"method": "aligned", "ratio": 10.0, "correlation": 0.0}
    grid = {"passes": [2.0], "step": [0.5, 1.0], "clip": [0.5, 1.0]}
    given = {"n": 512, "p": 8, "groups": 2, "epsilon": 4.0, "fresh": 3, "grid": grid}
    rows = sweeps.blocks(None, point, 5, **given)
    assert [row["fresh"] for row in rows] == [0, 1, 2]
    assert len({row["relative_error"] for row in rows}) == 3
    assert rows == sweeps.blocks(None, point, 5, **given)
