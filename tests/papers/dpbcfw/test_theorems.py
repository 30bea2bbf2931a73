"""Theorems 1, 2 and 4, Proposition 1 and the sketch, against loops and closed forms."""

import itertools
import math

import numpy as np
import pytest

from dperm.papers.dpbcfw import sweeps, theory
from dperm.papers.dpbcfw.runs import Setting, sparse_design, synthetic
from dperm.solvers.distributed.columns import edges
from dperm.solvers.distributed.sketch import Sketch
from dperm.solvers.frank_wolfe import dp_bcfw, dp_bcfw_noise
from papers.dpbcfw.conftest import dense

# --- Theorem 1 ------------------------------------------------------------------------


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
