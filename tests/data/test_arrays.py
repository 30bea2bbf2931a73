import numpy as np
import pytest
from scipy import sparse

from dperm.data import digest_arrays
from dperm.data.arrays import (
    RefusedError,
    canonical,
    check_arrays,
    standardize,
)

X = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]])
Y = np.array([1.0, -1.0])


# Digests stand in conf/: a change here makes every one of them wrong.
DENSE = (
    "sha256:e8a6cd5f007915e013760fd8fe0c6ace8ee933f161a3fd60c5478ceeacb4510d"
)
SPARSE = (
    "sha256:0b7000e9ab258706dfee92f9f05606ebb0f0cbd3ad073333cb1f8be6aa16b313"
)
ZEROS = np.where(X == 0, -0.0, 0.0)
UNTIDY = sparse.coo_array(
    ([3.0, 2.0, 0.5, 0.5, 0.0], ([1, 0, 0, 0, 1], [2, 2, 0, 0, 1])), (2, 3)
)


@pytest.mark.parametrize(
    "same",
    [
        X,
        np.asfortranarray(X),
        X.astype(">f8"),
        X.astype(int),
        X * -1.0 * -1.0 + ZEROS,
    ],
)
def test_digest_never_changes_with_layout_and_type(same):
    assert (
        digest_arrays(same, Y) == digest_arrays(same, Y.astype(int)) == DENSE
    )


@pytest.mark.parametrize(
    "same", [sparse.csc_array(X), sparse.csr_array(X), UNTIDY]
)
def test_digest_of_sparse_ignores_order_duplicates_and_stored_zeros(same):
    assert digest_arrays(same, Y) == SPARSE


@pytest.mark.parametrize(
    ("other_x", "other_y"),
    [(X[:, ::-1], Y), (X.reshape(3, 2), Y), (X, -Y), (X + 1e-15, Y)],
)
def test_digest_sees_any_change(other_x, other_y):
    assert digest_arrays(other_x, other_y) != DENSE


def test_canonical_leaves_its_input_alone():
    given = sparse.csc_array(X)
    given.data[0] = 0.0
    canonical(given, Y)
    assert given.nnz == 3


@pytest.mark.parametrize(
    ("bad_x", "bad_y", "words"),
    [
        (X, np.ones(3), "expected"),
        (np.ones((0, 3)), np.ones(0), "nothing in it"),
        (np.where(X == 3, np.nan, X), Y, "X has 1 values that are missing"),
        (X, np.array([1.0, np.inf]), "y has 1 values that are missing"),
        (np.where(X == 3, 1e300, X), Y, r"X has 1 .* beyond 1e\+150.*feature"),
        (
            sparse.csc_array(np.where(X == 3, -1e300, X)),
            Y,
            "X has 1 .* beyond",
        ),
        (X, np.array([1.0, 1e300]), "y has 1 .* beyond .*, first in record 2"),
        (sparse.csc_array(np.where(X == 3, np.inf, X)), Y, "X has 1"),
    ],
)
def test_unusable_arrays_are_refused(bad_x, bad_y, words):
    with pytest.raises(RefusedError, match=words):
        check_arrays(bad_x, bad_y)


def test_standardize():
    values = np.random.default_rng(0).normal(3.0, 2.0, (50, 4))
    made = standardize(values)
    np.testing.assert_allclose(made.mean(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose(made.std(axis=0), 1.0, rtol=1e-14)
    assert (standardize(np.asfortranarray(values)) == made).all()
