"""Sparse A: the dense kernels' numbers, the lanes' bits, and never a dense copy."""

import numpy as np
import pytest
from scipy import sparse

from conftest import PENALTIES
from dperm.core.erm.problem import build
from dperm.core.lanes import Lanes, dp_cd
from dperm.core.privacy.mechanisms import streams
from dperm.solvers.lanes import dp_gcd, dp_sgd
from solvers import checks

RUNS = {
    "dp_cd": (dp_cd, dp_cd.Options(), 150),
    "dp_cd uniform": (dp_cd, dp_cd.Options(sampling="uniform"), 150),
    "dp_sgd": (dp_sgd, dp_sgd.Options(), 90),
    "dp_sgd, batch 3": (dp_sgd, dp_sgd.Options(batch=3), 40),
    "dp_gcd": (dp_gcd, dp_gcd.Options(), 10),
    "dp_gcd GS-s": (dp_gcd, dp_gcd.Options(rule="GS-s"), 10),
    "dp_gcd GS-q": (dp_gcd, dp_gcd.Options(rule="GS-q"), 10),
    "dp_gcd gumbel": (dp_gcd, dp_gcd.Options(noise="gumbel"), 10),
}


def data(loss, n=40, p=60):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.15)
    X[3] = 0.0  # a record without entries
    X[:, 5] = 0.0
    X[0, 5] = 1.0
    y = X @ rng.standard_normal(p) + 0.3 * rng.standard_normal(n)
    return X, np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y


def problems(loss, penalty="l1"):
    X, y = data(loss)
    return [
        build("pair", A, y, loss, PENALTIES[penalty], 1.0, 1e-4)
        for A in (X, sparse.csc_array(X))
    ]


def weights(name, problem, lanes, workers=1, parts=(0.3, 0.7), calibration="paper"):
    module, options, count = RUNS[name]
    run = module.Run(problem, lanes, streams(3), options, workers=workers, total=count)
    first = round(parts[0] * count)
    for part in (first, count - first):
        if part:
            run.advance(part)
    return run.weights


def settings(count=70):
    rng = np.random.default_rng(2)
    step, clip = rng.uniform(0.05, 1.0, count), 10.0 ** rng.uniform(-2, 2, count)
    return Lanes(step, clip, 0.4)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("name", RUNS)
def test_sparse_and_dense_agree(name, loss, penalty):
    lanes = settings(6)
    dense, thin = (weights(name, each, lanes) for each in problems(loss, penalty))
    np.testing.assert_allclose(thin, dense, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", RUNS)
def test_lanes_blocks_chunks_and_workers_do_not_matter(name, loss):
    _, problem = problems(loss)
    lanes = settings()
    found = weights(name, problem, lanes)
    for workers in (2, 3):
        again = weights(name, problem, lanes, workers, parts=(0.0, 1.0))
        np.testing.assert_array_equal(found, again)
    for lane in (0, 7, 8, 63, 64, 69):
        alone = weights(name, problem, lanes.take([lane]))
        np.testing.assert_array_equal(found[lane], alone[0])
    few = weights(name, problem, lanes.take(slice(3)))
    np.testing.assert_array_equal(found[:3], few)


@pytest.mark.parametrize("name", RUNS)
def test_dropping_lanes_leaves_the_others_alone(name, loss):
    _, problem = problems(loss)
    module, options, _ = RUNS[name]

    def start(problem, lanes, seed):
        return module.Run(problem, lanes, streams(seed), options)

    checks.lanes_may_be_dropped(start, problem, settings(), (5, 4))


def test_the_objective_agrees(loss):
    dense, thin = problems(loss, "elastic")
    W = np.random.default_rng(0).standard_normal((37, dense.p))
    W[5], W[7, 3], W[9, :50] = 0.0, np.inf, 0.0
    found = thin.objective(W)
    np.testing.assert_allclose(found, dense.objective(W), rtol=1e-12)
    for row in (0, 5, 7, 9, 36):
        assert thin.objective(W[row])[0] == found[row]
    np.testing.assert_array_equal(found, thin.objective(W, workers=3))


def test_constants_agree(loss):
    dense, thin = problems(loss)
    np.testing.assert_allclose(thin.smoothness, dense.smoothness)
    np.testing.assert_allclose(thin.row_norms, dense.row_norms)
    assert thin.global_smoothness == pytest.approx(dense.global_smoothness)
    w = np.random.default_rng(0).standard_normal(dense.p)
    np.testing.assert_allclose(thin.gradient(w), dense.gradient(w), atol=1e-12)


@pytest.mark.parametrize("name", RUNS)
def test_no_dense_copy_is_made(name, monkeypatch):
    _, problem = problems("logistic")
    problem.global_smoothness  # noqa: B018 (n x n or p x p, whichever is smaller)

    def refuse(*args, **kwargs):
        raise AssertionError("a dense copy")

    for kind in (sparse.csc_array, sparse.csr_array, sparse.coo_array):
        for method in ("toarray", "todense"):
            monkeypatch.setattr(kind, method, refuse)
    W = weights(name, problem, settings(3))
    problem.objective(W)


def test_averages_of_periods_are_refused():
    _, problem = problems("logistic")
    with pytest.raises(ValueError, match="periods: not available where A is sparse"):
        dp_cd.Run(problem, settings(2), streams(0), dp_cd.Options(periods=2), total=10)
