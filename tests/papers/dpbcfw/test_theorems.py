"""Theorems 1 and 2, Proposition 1 and the sketch, against loops and closed forms."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from dperm.papers.dpbcfw import outcomes, sweeps, theory
from dperm.papers.dpbcfw.runs import Reading, Setting
from dperm.solvers.distributed.columns import edges
from dperm.solvers.distributed.sketch import Sketch
from dperm.solvers.frank_wolfe import dp_bcfw, dp_bcfw_noise

# --- Theorem 1 ------------------------------------------------------------------------


def test_gaps_are_over_the_minimum(instance):
    rows = pd.DataFrame(theory.gaps(instance, 0.5, 30, 2, 100, 3))
    assert set(rows["panel"]) == {"ball", "box"}
    assert (rows["gap"] > -1e-9 * rows["start"]).all()
    serial = rows[rows["sampling"] == "uniform serial"]
    assert serial["iteration"].max() == theory.PASSES * instance.problem.p
    runs = rows[(rows["panel"] == "ball") & (rows["sampling"] == "elementary")]
    assert runs["iteration"].iloc[[0, -1]].tolist() == [10, 100]
    assert runs["gap"].iloc[-1] < 0.2 * runs["gap"].iloc[0]


def test_the_least_over_the_box_is_0_where_an_interpolation_fits(instance):
    assert theory.box_least(instance) == 0.0


@pytest.mark.parametrize("exponent", [-1.0, -0.4])
def test_exponents_are_those_of_the_gap_and_of_the_bound(exponent):
    t = np.unique(np.geomspace(100, 1000, 12).round().astype(int))
    parts = [
        pd.DataFrame({"panel": "box", "sampling": "elementary", "p_min": 1.0,
                      "iteration": t, "gap": 3.0 * t**exponent, "start": 3.0,
                      "replicate": r}) for r in range(2)
    ]  # fmt: skip
    (row,) = outcomes.gap_exponents(pd.concat(parts)).to_dict("records")
    assert row["exponent"] == pytest.approx(exponent)
    assert row["bound_exponent"] == pytest.approx(-1.0, abs=0.01)  # of 1 / (t + 2)
    assert row["left"] == pytest.approx(1000**exponent)


def test_the_printed_column_loses_the_factor_d():
    d, tau, t, C = 1000, 400, 100, 1e6
    theorem = outcomes.bound(t, tau / d, 0.5, C)
    printed = outcomes.printed_column(tau / d, t, d, 0.5, C)
    expected = 2 * d * (tau * 0.5 + C) / (tau**2 * t + 2 * d * tau)
    assert printed == pytest.approx(expected)
    assert theorem / printed == pytest.approx(d, rel=1e-3)
    mended = outcomes.printed_column(tau / d, t, d, 0.5, d * C)
    assert mended == pytest.approx(theorem)
    assert outcomes.printed_column(1.0, t, d, 0.5, C) == outcomes.bound(t, 1.0, 0.5, C)


# --- Proposition 1 --------------------------------------------------------------------


def drawn_sets(sampling, d, tau, nodes):
    """All sets that a sampling may draw, equally likely."""
    if sampling == "elementary":
        return [tuple(range(d))]
    if sampling == "uniform serial":
        return [(j,) for j in range(d)]
    if sampling == "tau-nice":
        return list(itertools.combinations(range(d), tau))
    size = d // nodes
    blocks = [itertools.combinations(range(k * size, (k + 1) * size), tau)
              for k in range(nodes)]  # fmt: skip
    return [sum(parts, ()) for parts in itertools.product(*blocks)]


@pytest.mark.parametrize("sampling", theory.SAMPLINGS)
def test_curvature_is_the_worst_average_over_sets(sampling):
    d, tau, nodes, width = 6, 2, 2, 1.5
    A = theory.correlated(np.random.default_rng(0), 9, d, 0.5)
    sets = drawn_sets(sampling, d, tau, nodes)
    P = np.zeros((d, d))
    for chosen in sets:
        P[np.ix_(chosen, chosen)] += 1 / len(sets)
    found = theory.pair_chances(sampling, d, tau, nodes)
    np.testing.assert_allclose(found, P)
    worst = max(
        np.mean([np.sum((A[:, list(T)] @ np.array(v)[list(T)]) ** 2) for T in sets])
        for v in itertools.product((-width, width), repeat=d)
    )
    G = A.T @ A
    assert theory.box_curvature(P * G, width) == pytest.approx(worst)
    assert worst <= theory.eigenvalue_bound(P, G, width) * (1 + 1e-12)


@pytest.mark.parametrize("sampling", theory.SAMPLINGS)
def test_the_bound_is_attained_by_equal_features(sampling):
    rows = theory.proposition1(3, 20, 8, 1.0, 2, 2, 1.0)
    (row,) = [row for row in rows if row["sampling"] == sampling]
    assert row["curvature"] == pytest.approx(row["bound"])


def test_too_many_corners_are_refused():
    with pytest.raises(ValueError, match="19 features"):
        theory.box_curvature(np.eye(19), 1.0)


# --- the sketch -----------------------------------------------------------------------


def test_the_scale_is_equation_17(instance):
    n = instance.problem.n
    options = dp_bcfw.Options(nodes=2, sketch=10)
    printed = dp_bcfw_noise.printed(instance.problem, 9, options, 1.0, 1 / n, 1.0)
    scale = theory.printed_scale(Sketch(n, 10, 0), 1.0, 2, 9)
    assert scale == pytest.approx(printed.sketch_scale)
    assert theory.table_length(800, 100, 0.5) == math.ceil(4 * math.log(160_000))


def test_errors_are_those_of_the_dense_formula(monkeypatch):
    size = (7, 30, 8, 50, 6, 5, 1.0, 2, 9)
    A = theory.sparse_design(np.random.default_rng(7), 30, 50, 6 / 30)
    monkeypatch.setattr(theory, "sparse_design", lambda *_: A)
    monkeypatch.setattr(theory, "printed_scale", lambda *_: 0.0)
    found = theory.sketch_errors(*size)
    rng = np.random.default_rng(7)
    x = np.zeros(50)
    chosen = rng.choice(50, 5, replace=False)
    x[chosen] = rng.choice([-1.0, 1.0], 5) / 5
    J = Sketch(30, 8, 7).by_record.T
    expected = A.T @ (J.T @ J - np.eye(30)) @ A @ x / 30
    assert found["distortion"] == pytest.approx(np.abs(expected).max())
    assert found["sketched"] == found["distortion"] and found["plain_noise"] == 0.0


def test_noise_has_the_size_of_its_scale():
    found = [
        theory.sketch_errors(seed, 200, 40, 50, 20, 5, 1.0, 2, 9) for seed in range(20)
    ]
    scales = [theory.printed_scale(Sketch(200, m, 0), 1.0, 2, 9) for m in (40, 200)]
    sizes = [np.mean([each[key] for each in found])
             for key in ("sketched_noise", "plain_noise")]  # fmt: skip
    assert sizes[0] / sizes[1] == pytest.approx(scales[0] / scales[1], rel=0.35)


def test_exponents_in_m_and_in_n():
    rows = [
        {"n": n, "m": m, "table": table, "replicate": r, "distortion": m**-0.5,
         "sketched": n**-1.0, "sketched_noise": 8 * n**-1.5, "plain_noise": n**-1.5}
        for r in range(2)
        for n in (100, 200, 400)
        for m, table in ((10, False), (20, False), (40, False), (30, True))
    ]  # fmt: skip
    found = outcomes.sketch_exponents(pd.DataFrame(rows)).set_index("quantity")
    expected = {"distortion": -0.5, "sketched": -1.0, "sketched_noise": -1.5}
    for quantity, exponent in expected.items():
        assert found.loc[quantity, "exponent"] == pytest.approx(exponent)
    assert found.loc["sketched_noise", "ratio"] == pytest.approx(8.0)


# --- Assumption 2 ---------------------------------------------------------------------


def setting_of(**keys):
    return Setting(**{"nodes": 3, "iterations": 6, "share": 0.3, **keys})


def of(rows, release):
    return np.array([row["error"] for row in rows if row["release"] == release])


def test_nothing_is_off_without_noise_and_sketch(instance):
    rows = theory.approximation_errors(instance, setting_of(), Reading(), 3)
    assert of(rows, "gradient").max() < 1e-10
    assert of(rows, "oracle").max() < 1e-10


def test_a_sketch_spoils_the_gradient_and_noise_the_oracle(instance):
    sketched = theory.approximation_errors(instance, setting_of(sketch=8), Reading(), 3)
    gradient = of(sketched, "gradient")
    assert gradient[0] < 1e-10 < gradient[1]  # q is still 0 at first
    assert of(sketched, "oracle").max() < 1e-10
    noisy = setting_of(noise="stated", epsilon=0.01)
    rows = theory.approximation_errors(instance, noisy, Reading(), 3)
    assert of(rows, "oracle").max() > 1e-3
    C = theory.ball_curvature(instance, 3 * 0.3 * instance.radius)
    allowed = [row["allowed"] for row in rows if row["release"] == "oracle"]
    np.testing.assert_allclose(allowed, [C / (t + 2) for t in range(6)])


def test_the_curvature_is_attained_between_vertices(instance):
    A, n = instance.problem.A.toarray(), instance.problem.n
    worst = max(
        np.sum((A @ (u - v)) ** 2) / n
        for u, v in itertools.product(np.vstack([np.eye(90), -np.eye(90)]), repeat=2)
    )
    assert theory.ball_curvature(instance, 1.0) == pytest.approx(worst)


def test_the_oracle_by_a_loop():
    estimate, signed = np.array([0.1, -0.9, 0.3, 0.2]), np.array([1, -4])
    starts = edges(4, 2)
    best = [0.9 - 0.1, 0.3 + 0.2]  # -e_4 was taken where +e_3 was best
    assert theory.oracle_error(estimate, signed, starts) == pytest.approx(max(best))


@pytest.mark.parametrize("exponent", [-1.0, 0.0])
def test_errors_are_held_against_the_step(exponent):
    rows = [
        {"objective": "mean", "per": "total", "epsilon": 1.0, "length": 80,
         "release": release, "iteration": t, "error": size * t**exponent,
         "allowed": 2.0 / (t + 1), "replicate": r, "gap": 1.0, "start": 2.0,
         "curvature": 2.0, "width": 4.0, "nodes": 3}
        for r in range(2)
        for t in range(1, 101)
        for release, size in (("gradient", 0.1), ("oracle", 0.2))
    ]  # fmt: skip
    found = outcomes.approximation_summary(pd.DataFrame(rows)).set_index("release")
    assert found["exponent"].to_numpy() == pytest.approx([exponent] * 2, abs=1e-9)
    assert found.loc["oracle", "step_exponent"] == pytest.approx(-1.0, abs=0.03)
    if exponent == 0.0:
        rho_g, rho_l = 0.1 * 101 / 2, 0.2 * 101 / 2
        assert found["rho"].tolist() == pytest.approx([rho_g, rho_l])
        rho = (4.0 + 3) * rho_g + 3 * rho_l
        expected = 2 * (2.0 + (1 + rho) * 2.0) / 102
        assert found["bound"].tolist() == pytest.approx([expected] * 2)


def test_theorem_4_s_own_t_falls_with_the_records_and_bounds_the_excess():
    ends = {}
    for n in (200, 800):
        point = {"n": n, "d": 400, "density": 0.05, "nonzeros": 0, "active": 0.05,
                 "nodes": 2, "epsilon": 100.0, "share": 0.5, "sketch": 20}  # fmt: skip
        (ends[n],) = sweeps.own_length(None, point, 3, "scaled", 0.5, 500)
        at = sweeps._instance(None, point, 3)
        curvature = theory.ball_curvature(at, 0.5 * at.radius)
        logs = math.log(at.published_lipschitz * at.radius * 400 * n)
        row = ends[n]
        assert row["bound"] * row["own_iterations"] == pytest.approx(curvature * logs)
        assert row["taken"] == max(1, round(row["own_iterations"]))
        assert 0 < row["excess"] < row["bound"]
    assert ends[800]["own_iterations"] < ends[200]["own_iterations"]
