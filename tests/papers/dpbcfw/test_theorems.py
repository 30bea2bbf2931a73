"""Propositions 1 to 4 and Theorem 2, against loops."""

import itertools

import numpy as np
import pytest

from dperm.papers.dpbcfw import sweeps, theory
from dperm.solvers.distributed.columns import edges
from papers.dpbcfw.conftest import SIZES

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


# --- Assumption 2 ---------------------------------------------------------------------


def test_without_noise_and_sketch_no_release_errs():
    point = SIZES | {"nodes": 3, "iterations": 6, "share": 0.3}
    rows = sweeps.approximation(point, 7, [0])
    assert len(rows) == 12 and max(row["error"] for row in rows) < 1e-10


def test_the_curvature_is_attained_between_vertices(instance):
    A, n = instance.problem.A.toarray(), instance.problem.n
    worst = max(
        np.sum((A @ (u - v)) ** 2) / n
        for u, v in itertools.product(
            np.vstack([np.eye(90), -np.eye(90)]), repeat=2
        )
    )
    assert sweeps.ball_curvature(instance, 1.0) == pytest.approx(worst)


def test_the_oracle_by_a_loop():
    estimate, signed = np.array([0.1, -0.9, 0.3, 0.2]), np.array([1, -4])
    best = [0.9 - 0.1, 0.3 + 0.2]  # -e_4 was taken where +e_3 was best
    found = sweeps.oracle_error(estimate, signed, edges(4, 2))
    assert found == pytest.approx(max(best))
