"""Theorems 1, 2 and 4, Proposition 1 and the sketch, against loops and closed forms."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment.schema import Product
from dperm.papers.dpbcfw import sweeps, tables, theory
from dperm.papers.dpbcfw.runs import Setting, sparse_design, synthetic
from dperm.solvers.distributed.columns import edges
from dperm.solvers.distributed.sketch import Sketch
from dperm.solvers.frank_wolfe import dp_bcfw, dp_bcfw_noise
from papers.dpbcfw.conftest import SIZES, dense


@pytest.fixture
def table(monkeypatch):
    """A table of rows as of a sweep."""

    def made(name, rows):
        monkeypatch.setattr(tables.results, "load_sweep", lambda *_: pd.DataFrame(rows))
        return getattr(tables, name)(None, Product(sweeps=["rows"]), [])

    return made


# --- Theorem 1 ------------------------------------------------------------------------


def test_gaps_are_over_the_minimum(instance):
    point = SIZES | {"share": 0.5, "iterations": 100}
    rows = pd.DataFrame(sweeps.rates(None, point, 7, 1 / 3, 2))
    assert set(rows["panel"]) == {"ball", "box"}
    assert (rows["gap"] > -1e-9 * rows["start"]).all()
    serial = rows[rows["sampling"] == "uniform serial"]
    assert serial["iteration"].max() == sweeps.PASSES * instance.problem.p
    runs = rows[(rows["panel"] == "ball") & (rows["sampling"] == "elementary")]
    assert runs["iteration"].iloc[[0, -1]].tolist() == [10, 100]
    assert runs["gap"].iloc[-1] < 0.2 * runs["gap"].iloc[0]


def test_the_least_over_the_box_is_0_where_an_interpolation_fits(instance):
    assert sweeps.box_least(instance) == 0.0


@pytest.mark.parametrize("exponent", [-1.0, -0.4])
def test_exponents_are_those_of_the_gap_and_of_the_bound(table, exponent):
    marks = np.unique(np.geomspace(100, 1000, 12).round().astype(int))
    rows = [
        {"panel": "box", "sampling": "elementary", "p_min": 1.0, "iteration": t,
         "gap": 3.0 * t**exponent, "start": 3.0, "replicate": r}
        for r in range(2) for t in marks.tolist()
    ]  # fmt: skip
    (row,) = table("rates", rows).to_dict("records")
    assert row["exponent"] == pytest.approx(exponent)
    assert row["bound_exponent"] == pytest.approx(-1.0, abs=0.01)  # of 1 / (t + 2)
    assert row["left"] == pytest.approx(1000**exponent)


def test_the_printed_column_loses_the_factor_d():
    d, tau, t, C = 1000, 400, 100, 1e6
    theorem = theory.bound(t, tau / d, 0.5, C)
    printed = theory.printed_column(tau / d, t, d, 0.5, C)
    expected = 2 * d * (tau * 0.5 + C) / (tau**2 * t + 2 * d * tau)
    assert printed == pytest.approx(expected)
    assert theorem / printed == pytest.approx(d, rel=1e-3)
    mended = theory.printed_column(tau / d, t, d, 0.5, d * C)
    assert mended == pytest.approx(theorem)
    assert theory.printed_column(1.0, t, d, 0.5, C) == theory.bound(t, 1.0, 0.5, C)


# --- Propositions 1, 3 and 4 ----------------------------------------------------------


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
    G = theory.correlated(0, 9, d, 0.5)
    sets = drawn_sets(sampling, d, tau, nodes)
    P = np.zeros((d, d))
    for chosen in sets:
        P[np.ix_(chosen, chosen)] += 1 / len(sets)
    found = theory.pair_chances(sampling, d, tau, nodes)
    np.testing.assert_allclose(found, P)
    worst = max(
        np.mean([G[np.ix_(T, T)] @ v[list(T)] @ v[list(T)] for T in sets])
        for v in map(np.array, itertools.product((-width, width), repeat=d))
    )
    assert theory.box_curvature(P * G, width) == pytest.approx(worst)
    assert worst <= theory.eigenvalue_bound(P, G, width) * (1 + 1e-12)


def test_the_bound_is_attained_by_equal_features():
    rows = sweeps.eigenvalue_bounds(None, {"n": 20, "d": 8, "common": 1.0}, 3, 2, 2)
    for row in rows:
        assert row["curvature"] == pytest.approx(row["bound"])


def test_too_many_corners_are_refused():
    with pytest.raises(ValueError, match="19 features"):
        theory.box_curvature(np.eye(19), 1.0)


def test_curvature_bounds_hold(instance):
    """Propositions 3 and 4 against samples of the curvature they bound."""
    A, n = dense(instance.problem), instance.problem.n
    columns, width, tau, nodes = instance.columns, 2.0, 10, 3
    found = sweeps.curvatures(columns, width, tau, nodes)
    rng = np.random.default_rng(0)
    assert found["uniform serial"][1] <= found["uniform serial"][0]
    starts = edges(columns.p, nodes)
    for _ in range(50):
        d = width * rng.choice([-1.0, 1.0], columns.p)
        nice, spread = np.zeros(columns.p), np.zeros(columns.p)
        S = rng.choice(columns.p, tau, replace=False)
        nice[S] = d[S]
        assert np.sum((A @ nice) ** 2) / n <= found["tau-nice"][1]
        for low, high in itertools.pairwise(starts):
            S = rng.choice(np.arange(low, high), tau, replace=False)
            spread[S] = d[S]
        bound = found["(K, tau)-distributed"][1]
        assert np.sum((A @ spread) ** 2) / n <= bound
        assert np.sum((A @ d) ** 2) / n <= 1.01 * found["elementary"][1]


# --- the sketch -----------------------------------------------------------------------

SKETCHED = {"n": 30, "d": 50, "nonzeros": 6, "epsilon": 1.0, "iterations": 9}
GIVEN = {"theta": 0.5, "nodes": 2, "active": 5}


def test_the_scale_is_equation_17(instance):
    n = instance.problem.n
    options = dp_bcfw.Options(nodes=2, sketch=10)
    printed = dp_bcfw_noise.printed(instance.problem, 9, options, 1.0, 1 / n, 1.0)
    top = Sketch(n, 10, 0).leading_singular_value
    scale = theory.printed_scale(n, top, 1.0, 1 / n, 2 * 9)
    assert scale == pytest.approx(printed.sketch_scale)
    assert theory.table_length(800, 100, 0.5) == math.ceil(4 * math.log(160_000))


def test_errors_are_those_of_the_dense_formula(monkeypatch):
    monkeypatch.setattr(theory, "printed_scale", lambda *_: 0.0)
    found, _ = sweeps.sketched_products(None, SKETCHED, 7, [8], **GIVEN)
    rng = np.random.default_rng(7)
    A, x = sparse_design(rng, 30, 50, 6 / 30), np.zeros(50)
    chosen = rng.choice(50, 5, replace=False)
    x[chosen] = rng.choice([-1.0, 1.0], 5) / 5
    J = Sketch(30, 8, 7).by_record.T
    expected = A.T @ (J.T @ J - np.eye(30)) @ A @ x / 30
    assert found["distortion"] == pytest.approx(np.abs(expected).max())
    assert found["sketched"] == found["distortion"] and found["plain_noise"] == 0.0


def test_noise_has_the_size_of_its_scale():
    point = SKETCHED | {"n": 200, "nonzeros": 20}
    found = [
        sweeps.sketched_products(None, point, seed, [40], **GIVEN)[0]
        for seed in range(20)
    ]
    tops = [Sketch(200, m, 0).leading_singular_value for m in (40, 200)]
    sizes = [np.mean([each[key] for each in found])
             for key in ("sketched_noise", "plain_noise")]  # fmt: skip
    assert sizes[0] / sizes[1] == pytest.approx(tops[0] / tops[1], rel=0.35)


def test_exponents_in_m_and_in_n(table):
    rows = [
        {"n": n, "m": m, "table": of_table, "replicate": r, "distortion": m**-0.5,
         "sketched": n**-1.0, "sketched_noise": 8 * n**-1.5, "plain_noise": n**-1.5}
        for r in range(2)
        for n in (100, 200, 400)
        for m, of_table in ((10, False), (20, False), (40, False), (30, True))
    ]  # fmt: skip
    found = table("sketch", rows).set_index("quantity")
    expected = {"distortion": -0.5, "sketched": -1.0, "sketched_noise": -1.5}
    for quantity, exponent in expected.items():
        assert found.loc[quantity, "exponent"] == pytest.approx(exponent)
    assert found.loc["sketched_noise", "ratio"] == pytest.approx(8.0)


# --- Assumption 2 ---------------------------------------------------------------------


def errors_of(instance, **keys):
    """Rows of one run, and the errors of both releases."""
    setting = Setting(**{"nodes": 3, "iterations": 6, "share": 0.3, **keys})
    rows = sweeps.approximation_errors(instance, setting, 3)
    errors = (
        np.array([row["error"] for row in rows if row["release"] == name])
        for name in theory.RELEASES
    )
    return rows, *errors


def test_a_sketch_spoils_the_gradient_and_noise_the_oracle(instance):
    _, gradient, oracle = errors_of(instance)
    assert gradient.max() < 1e-10 and oracle.max() < 1e-10
    _, gradient, oracle = errors_of(instance, sketch=8)
    assert gradient[0] < 1e-10 < gradient[1]  # q is still 0 at first
    assert oracle.max() < 1e-10
    rows, _, oracle = errors_of(instance, noise="stated", epsilon=0.01)
    assert oracle.max() > 1e-3
    C = sweeps.ball_curvature(instance, 3 * 0.3 * instance.radius)
    allowed = [row["allowed"] for row in rows if row["release"] == "oracle"]
    np.testing.assert_allclose(allowed, [C / (t + 2) for t in range(6)])


def test_the_curvature_is_attained_between_vertices(instance):
    A, n = instance.problem.A.toarray(), instance.problem.n
    worst = max(
        np.sum((A @ (u - v)) ** 2) / n
        for u, v in itertools.product(np.vstack([np.eye(90), -np.eye(90)]), repeat=2)
    )
    assert sweeps.ball_curvature(instance, 1.0) == pytest.approx(worst)


def test_the_oracle_by_a_loop():
    estimate, signed = np.array([0.1, -0.9, 0.3, 0.2]), np.array([1, -4])
    best = [0.9 - 0.1, 0.3 + 0.2]  # -e_4 was taken where +e_3 was best
    found = sweeps.oracle_error(estimate, signed, edges(4, 2))
    assert found == pytest.approx(max(best))


@pytest.mark.parametrize("exponent", [-1.0, 0.0])
def test_errors_are_held_against_the_step(table, exponent):
    rows = [
        {"objective": "mean", "per": "total", "epsilon": 1.0, "length": 80,
         "release": release, "iteration": t, "error": size * t**exponent,
         "allowed": 2.0 / (t + 1), "replicate": r, "gap": 1.0, "start": 2.0,
         "curvature": 2.0, "width": 4.0, "nodes": 3}
        for r in range(2)
        for t in range(1, 101)
        for release, size in (("gradient", 0.1), ("oracle", 0.2))
    ]  # fmt: skip
    found = table("approximation", rows).set_index("release")
    assert found["exponent"].to_numpy() == pytest.approx([exponent] * 2, abs=1e-9)
    assert found.loc["oracle", "step_exponent"] == pytest.approx(-1.0, abs=0.03)
    if exponent == 0.0:
        rho_g, rho_l = 0.1 * 101 / 2, 0.2 * 101 / 2
        assert found["rho"].tolist() == pytest.approx([rho_g, rho_l])
        rho = (4.0 + 3) * rho_g + 3 * rho_l
        expected = 2 * (2.0 + (1 + rho) * 2.0) / 102
        assert found["bound"].tolist() == pytest.approx([expected] * 2)


# --- Theorem 4 ------------------------------------------------------------------------


def test_theorem_4_s_own_t_falls_with_the_records_and_bounds_the_excess():
    ends = {}
    for n in (200, 800):
        size = {"n": n, "d": 400, "density": 0.05, "active": 0.05}
        point = size | {"nonzeros": 0, "nodes": 2, "epsilon": 100.0}
        point |= {"share": 0.5, "sketch": 20}
        (row,) = sweeps.own_length(None, point, 3, "scaled", 0.5, 500)
        at = synthetic(3, **size)
        curvature = sweeps.ball_curvature(at, 0.5 * at.radius)
        logs = math.log(at.published_lipschitz * at.radius * 400 * n)
        assert row["bound"] * row["own_iterations"] == pytest.approx(curvature * logs)
        assert row["taken"] == max(1, round(row["own_iterations"]))
        assert 0 < row["excess"] < row["bound"]
        ends[n] = row
    assert ends[800]["own_iterations"] < ends[200]["own_iterations"]
