"""A record that is not finite counts as one of zeros, and nobody is told."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from dperm.core.erm.cleaning import cleaned

KINDS = (np.asarray, sparse.csr_array, sparse.csc_array)
BAD = (np.nan, np.inf, -np.inf)


@pytest.mark.parametrize("kind", KINDS, ids=["dense", "csr", "csc"])
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("place", [0, 1, None], ids=["first", "second", "label"])
def test_a_record_that_is_not_finite_becomes_zeros(kind, bad, place):
    X, y = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 6.0]]), np.array([1.0, -2.0, 3.0])
    if place is None:
        y[1] = bad
    else:
        X[1, place] = bad
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, offset = cleaned(kind(X), y)
    assert type(found) is type(kind(X)) and found.shape == (3, 2)
    rows = found if isinstance(found, np.ndarray) else found.toarray()
    np.testing.assert_array_equal(rows, [[1.0, 2.0], [0.0, 0.0], [0.0, 6.0]])
    np.testing.assert_array_equal(offset, [1.0, 0.0, 3.0])


@pytest.mark.parametrize("kind", KINDS, ids=["dense", "csr", "csc"])
def test_what_is_finite_is_left_alone(kind):
    X, y = kind(np.array([[1e308, -5e-324], [0.0, 1.0]])), np.array([-1e308, 0.0])
    found, offset = cleaned(X, y)
    assert found is X and offset is y
