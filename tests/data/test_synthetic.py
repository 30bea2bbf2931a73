import pytest
from scipy import sparse

from dperm.data import digest_arrays
from dperm.data.synthetic import GENERATORS

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
