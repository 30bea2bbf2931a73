import pytest
from scipy import sparse

from dperm.data import digest_arrays
from dperm.data.synthetic import (
    logistic_lognormal,
    sparse_classification,
    sparse_regression,
)

SIZES = {  # no value that leaving out its use would not change
    sparse_regression: {"n": 20, "active": 2, "coefficient_scale": 100.0, "noise": 0.5},
    logistic_lognormal: {"n": 500, "sigma": 0.1},
    sparse_classification: {"n": 20, "density": 0.3, "active": 2},
}
DRAWN = (
    "sha256:4411e5d809dab9b915a5d13a739e782a41cb11cdf15a353f89d343230c2c68ad",
    "sha256:135c2df6b59ee319bc8d32bbd64997dfc8a0df2e5d51e44c583770f3dbeeb7b0",
    "sha256:bc04209a9913039add8af20e3177b2695e5dab8c10800b4d7a31bb2e7897b9de",
)


@pytest.mark.parametrize(("draw", "drawn"), zip(SIZES, DRAWN, strict=True))
def test_draws_depend_on_the_seed_only_and_never_change(draw, drawn):
    """A change here makes the digests in conf/ wrong."""
    one, again, other = (
        digest_arrays(*draw(p=5, seed=seed, **SIZES[draw])) for seed in (7, 7, 8)
    )
    assert one == again == drawn != other
    X, _ = draw(p=5, seed=7, **SIZES[draw])
    assert not sparse.issparse(X) or X.format == "csc"
