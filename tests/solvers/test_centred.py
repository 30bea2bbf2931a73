"""Sparse columns standardised implicitly: the numbers of the filled-in problem."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from conftest import PENALTIES
from dperm.core.erm.centred import Centred
from dperm.core.erm.optimum import duality_gap, solve
from dperm.core.erm.problem import build
from dperm.core.lanes import Lanes, dp_cd
from dperm.core.lanes.clipping import share
from dperm.core.privacy.mechanisms import streams
from dperm.data.arrays import standardize
from dperm.solvers.lanes import dp_gcd, dp_sgd

LOSSES = ("logistic", "least_squares", "smoothed_hinge")
RUNS = {
    "dp_cd": (dp_cd, dp_cd.Options(), 150),
    "dp_cd uniform": (dp_cd, dp_cd.Options(sampling="uniform"), 150),
    **{
        f"dp_gcd {rule}": (dp_gcd, dp_gcd.Options(rule=rule), 25)
        for rule in dp_gcd.RULES
    },
    "dp_gcd gumbel": (dp_gcd, dp_gcd.Options(noise="gumbel"), 25),
}


def data(loss, n=40, p=60):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.15)
    X[3] = 0.0  # a record without entries
    X[:, 5], X[0, 5] = 0.0, 1.0
    X[:, 6] = 1.0 + rng.random(n)  # a column without zeros
    X[:4, 7] = [1.0, -1.0, 0.5, -0.5]  # a column of mean zero,
    X[4:, 7] = 0.0  # whose zeros stay zeros
    y = X @ rng.standard_normal(p) + 0.3 * rng.standard_normal(n)
    return X, y if loss == "least_squares" else np.where(y > 0, 1.0, -1.0)


def problems(loss, penalty="l1", label=None):
    """The same problem filled in and not; ``label`` replaces that of a record."""
    X, y = data(loss)
    if label is not None:
        y[4] = label
    rest = (y, loss, PENALTIES[penalty], 1.0, 1e-4)
    implicit = build("pair", sparse.csc_array(X), *rest, standardised=True)
    return build("pair", standardize(X), *rest), implicit


def trajectory(name, problem, lanes, workers=1, parts=5, calibration="paper"):
    module, options, count = RUNS[name]
    run = module.Run(problem, lanes, streams(3), options, workers=workers, total=count)
    seen = []
    for _ in range(parts):
        run.advance(count // parts)
        seen.append(run.weights.copy())
    return np.array(seen)


def settings(count=6, calibration="paper", clips=(-2, 2)):
    rng = np.random.default_rng(2)
    step, clip = rng.uniform(0.05, 1.0, count), 10.0 ** rng.uniform(*clips, count)
    return Lanes(step, clip, 0.4, calibration)


@pytest.mark.parametrize("loss", LOSSES)
def test_constants_objective_and_gradient_agree(loss):
    full, thin = problems(loss, "elastic")
    assert isinstance(thin.A, Centred) and thin.is_sparse and not full.is_sparse
    near = {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(thin.smoothness, full.smoothness, **near)
    assert thin.global_smoothness == pytest.approx(full.global_smoothness, rel=1e-10)
    wide = replaced(thin)
    assert wide.global_smoothness == pytest.approx(
        np.linalg.norm(wide.A.T.S.toarray() + np.outer(wide.A.b, wide.A.a), 2) ** 2
        * wide.loss.curvature / wide.n
    )  # fmt: skip
    W = np.random.default_rng(0).standard_normal((20, full.p))
    W[5], W[7, 3] = 0.0, np.inf
    np.testing.assert_allclose(thin.objective(W), full.objective(W), **near)
    np.testing.assert_array_equal(thin.objective(W), thin.objective(W, workers=3))
    np.testing.assert_allclose(thin.gradient(W[0]), full.gradient(W[0]), **near)


def replaced(problem):
    """A tall problem: fewer columns than records."""
    from dataclasses import replace

    A = problem.A
    return replace(problem, A=Centred(A.S[:, :9], A.a, A.b[:9]))


@pytest.mark.parametrize("clip", [1e-3, 0.1, 1.0, 30.0, 1e6, np.inf])
@pytest.mark.parametrize("loss", LOSSES)
def test_clipped_sums_agree(loss, clip):
    full, thin = problems(loss)
    w = np.random.default_rng(1).standard_normal(full.p)
    d = full.derivatives(full.A @ w + full.offset)
    shares = share(full.smoothness)
    bounds = clip * shares
    expected = np.clip(full.A * d[:, None], -bounds, bounds).sum(axis=0)
    found = [clipped_sum(thin.A, d, j, bounds[j]) for j in range(full.p)]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def clipped_sum(A, d, j, bound):
    """What ``_centred_step`` does for one column."""
    signed = A.a * d
    ordered = np.sort(signed)
    sums = np.zeros(len(d) + 1)
    dp_gcd._sum_outwards(ordered, sums)
    total = dp_gcd._sum_over_all(ordered, sums, A.b[j], bound)
    for e in range(A.S.indptr[j], A.S.indptr[j + 1]):
        i = A.S.indices[e]
        full = (A.S.data[e] + A.a[i] * A.b[j]) * d[i]
        total += np.clip(full, -bound, bound)
        total -= np.clip(A.b[j] * signed[i], -bound, bound)
    return total


@pytest.mark.parametrize("label", [1e14, 1e16, 1e18, -1e18, 1e300])
@pytest.mark.parametrize("rule", dp_gcd.RULES)
def test_a_huge_label_does_not_wash_out_the_others(rule, label):
    full, thin = problems("least_squares", "none", label)
    object.__setattr__(thin, "smoothness", full.smoothness)
    lanes, name = settings(), f"dp_gcd {rule}"
    found, expected = (trajectory(name, one, lanes) for one in (thin, full))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("label", [1e14, 1e16, 1e18, -1e18, 1e300])
def test_a_replaced_label_moves_a_clipped_sum_by_twice_the_clip_at_most(label):
    one, other = (problems("least_squares", "none", y)[1] for y in (0.0, label))
    bounds = share(one.smoothness)
    moved = [
        clipped_sum(other.A, other.offset, j, bounds[j])
        - clipped_sum(one.A, one.offset, j, bounds[j])
        for j in range(one.p)
    ]
    assert np.abs(moved / bounds).max() <= 2 * (1 + 1e-12)
    assert np.abs(moved / bounds).max() > 0.5


@pytest.mark.parametrize("calibration", ["paper", "strict"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("loss", LOSSES)
def test_trajectories_agree(name, loss, penalty, calibration):
    lanes = settings(calibration=calibration)
    pair = problems(loss, penalty)
    # All M_j are equal but for rounding. In a box whole rows of scores are equal too,
    # and the last bits of M would say which one is taken.
    object.__setattr__(pair[1], "smoothness", pair[0].smoothness)
    full, thin = (trajectory(name, each, lanes) for each in pair)
    assert np.abs(full).max() > 0
    np.testing.assert_allclose(thin, full, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", RUNS)
def test_lanes_and_workers_do_not_matter(name):
    _, problem = problems("logistic")
    lanes = settings(70)
    found = trajectory(name, problem, lanes)
    again = trajectory(name, problem, lanes, workers=2)
    np.testing.assert_array_equal(found, again)
    for lane in (0, 7, 8, 63, 69):
        alone = trajectory(name, problem, lanes.take([lane]))
        np.testing.assert_array_equal(found[:, lane], alone[:, 0])


@pytest.mark.parametrize("loss", ["logistic", "least_squares"])
def test_the_optimum_is_certified(loss):
    full, thin = problems(loss)
    one, other = solve(full), solve(thin)
    assert other.value == pytest.approx(one.value, rel=1e-9)
    assert duality_gap(full, other.w) < 1e-9 * other.value
    np.testing.assert_array_equal(one.support, other.support)


def test_records_are_not_filled_in():
    _, thin = problems("logistic")
    with pytest.raises(ValueError, match=r"pair: preparation.standardize on sparse"):
        dp_sgd.Run(thin, settings(), streams(0), dp_sgd.Options()).advance(1)


def test_a_constant_column_is_refused():
    X, y = data("logistic")
    X[:, 9] = 0.0
    with pytest.raises(ValueError, match=r"column 9 .* is constant"):
        build("p", sparse.csc_array(X), y, "logistic", PENALTIES["l1"],
              standardised=True)  # fmt: skip


def used(name, data):
    """Whatever reads the matrix of a problem, once."""
    X, y = data
    module, options, count = RUNS[name]
    problem = build("wide", X, y, "logistic", PENALTIES["l1"], standardised=True)
    run = module.Run(problem, settings(2), streams(3), options, total=count)
    run.advance(3)
    problem.objective(run.weights)
    problem.gradient(run.weights[0])
    assert problem.global_smoothness > 0


def wide(n, p):
    """Three entries a column."""
    rng = np.random.default_rng(1)
    entries = rng.standard_normal(3 * p), rng.integers(0, n, 3 * p)
    X = sparse.csc_array((*entries, np.arange(0, 3 * p + 1, 3)), shape=(n, p))
    return X, np.where(np.arange(n) % 3, 1.0, -1.0)


@pytest.mark.parametrize("name", ["dp_cd", "dp_gcd GS-r"])
def test_nothing_of_n_times_p_is_made(name):
    n, p = 500, 20000
    used(name, wide(20, 40))  # compiling takes memory too
    tracemalloc.start()
    used(name, wide(n, p))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * p / 4
