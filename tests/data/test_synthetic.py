import numpy as np
import pytest
from scipy import sparse

from dperm.data import digest_arrays
from dperm.data.synthetic import (
    GENERATORS,
    logistic_lognormal,
    sparse_classification,
    sparse_regression,
)


def test_sparse_regression_is_as_described():
    X, y = sparse_regression(
        n=400, p=30, active=5, coefficient_scale=100.0, noise=0.5, seed=3
    )
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose(X.std(axis=0), 1.0, rtol=1e-13)
    w, residual, _, _ = np.linalg.lstsq(X, y, rcond=None)
    assert (np.abs(w) > 1.0).sum() == 5
    assert np.sqrt(residual[0] / (400 - 30)) == pytest.approx(0.5, rel=0.1)


def test_logistic_lognormal_has_signal_to_noise_one():
    X, y = logistic_lognormal(n=20000, p=10, sigma=1.0, seed=5)
    np.testing.assert_allclose(X.std(axis=0), 1.0, rtol=1e-13)
    assert set(np.unique(y)) == {-1.0, 1.0}
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    # The sign of a + b and of a agree with probability 3/4 if a, b are alike.
    assert (np.sign(X @ w) == y).mean() == pytest.approx(0.75, abs=0.01)


def test_sparse_classification_is_as_described():
    X, y = sparse_classification(n=3000, p=40, density=0.1, active=4, seed=2)
    assert X.format == "csc" and set(X.data) == {1.0}
    assert X.nnz / (3000 * 40) == pytest.approx(0.1, rel=0.05)
    w = np.linalg.lstsq(X.toarray(), y, rcond=None)[0]
    assert (np.sign(w[:4]) == [1, -1, 1, -1]).all()
    assert np.abs(w[4:]).max() < np.abs(w[:4]).min()
    thin, _ = sparse_classification(
        n=50, p=400, density=0.001, active=0, seed=2
    )
    assert (np.diff(thin.indptr) > 0).all()


# Options, of which none has a value that changes nothing, and the digest of a draw.
DRAWN = {
    "sparse_regression": (
        {"n": 20, "active": 2, "coefficient_scale": 100.0, "noise": 0.5},
        "sha256:4411e5d809dab9b915a5d13a739e782a41cb11cdf15a353f89d343230c2c68ad",
    ),
    "logistic_lognormal": (
        {"n": 500, "sigma": 0.1},
        "sha256:135c2df6b59ee319bc8d32bbd64997dfc8a0df2e5d51e44c583770f3dbeeb7b0",
    ),
    "sparse_classification": (
        {"n": 20, "density": 0.3, "active": 2},
        "sha256:bc04209a9913039add8af20e3177b2695e5dab8c10800b4d7a31bb2e7897b9de",
    ),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_draws_depend_on_the_seed_only_and_never_change(name):
    """A change here makes the digests in conf/ wrong."""
    options, known = DRAWN[name]
    draws = [GENERATORS[name](p=5, seed=seed, **options) for seed in (7, 7, 8)]
    one, again, other = (digest_arrays(*draw) for draw in draws)
    assert one == again == known != other
    X, _ = draws[0]
    assert not sparse.issparse(X) or X.format == "csc"
