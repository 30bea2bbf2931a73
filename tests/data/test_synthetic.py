import numpy as np
import pytest

from dperm.data import digest_arrays
from dperm.data.synthetic import (
    dialled_classification,
    dialled_regression,
    logistic_lognormal,
    sparse_classification,
    sparse_regression,
)


def test_sparse_regression_is_as_described():
    X, y = sparse_regression(400, 30, 5, 100.0, 0.5, seed=3)
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose(X.std(axis=0), 1.0, rtol=1e-13)
    w, residual, _, _ = np.linalg.lstsq(X, y, rcond=None)
    assert (np.abs(w) > 1.0).sum() == 5
    assert np.sqrt(residual[0] / (400 - 30)) == pytest.approx(0.5, rel=0.1)


def test_logistic_lognormal_has_signal_to_noise_one():
    X, y = logistic_lognormal(20000, 10, 1.0, seed=5)
    np.testing.assert_allclose(X.std(axis=0), 1.0, rtol=1e-13)
    assert set(np.unique(y)) == {-1.0, 1.0}
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    # The sign of a + b and of a agree with probability 3/4 if a, b are alike.
    assert (np.sign(X @ w) == y).mean() == pytest.approx(0.75, abs=0.01)


def test_sparse_classification_is_as_described():
    X, y = sparse_classification(3000, 40, 0.1, 4, seed=2)
    assert X.format == "csc" and set(X.data) == {1.0}
    assert X.nnz / (3000 * 40) == pytest.approx(0.1, rel=0.05)
    w = np.linalg.lstsq(X.toarray(), y, rcond=None)[0]
    assert (np.sign(w[:4]) == [1, -1, 1, -1]).all()
    assert np.abs(w[4:]).max() < np.abs(w[:4]).min()
    thin, _ = sparse_classification(50, 400, 0.001, 0, seed=2)
    assert (np.diff(thin.indptr) > 0).all()


def test_draws_depend_on_the_seed_only():
    one, again, other = (
        digest_arrays(*sparse_regression(20, 5, 2, 1.0, 1.0, seed))
        for seed in (7, 7, 8)
    )
    assert one == again != other


def test_draws_never_change():
    # A change here makes the digests in conf/ wrong.
    found = digest_arrays(*sparse_regression(20, 5, 2, 1.0, 1.0, 7))
    assert (
        found
        == "sha256:c6baa58beb3246428589d0766e5aeaa00a9b0db5baa0a5afe2954ff3574a2dd5"
    )


@pytest.mark.parametrize("make", [dialled_regression, dialled_classification])
def test_knobs_do_what_they_say(make):
    X, y = make(4000, 6, 400.0, 3, 0.5, seed=0)
    sizes = X.std(axis=0) ** 2
    assert sizes.max() / sizes.min() == pytest.approx(400, rel=1e-6)
    np.testing.assert_allclose(sizes[1:] / sizes[:-1], 400 ** (1 / 5), rtol=1e-6)
    apart = np.corrcoef(X.T)[np.triu_indices(6, 1)]
    assert apart.mean() == pytest.approx(0.5, abs=0.05)
    w = np.linalg.lstsq(X / X.std(axis=0), y, rcond=None)[0]
    assert (np.abs(w) > 0.2 * np.abs(w).max()).tolist() == [1, 0, 1, 0, 0, 1]
