"""Arrays of the reader's own: labels as signs, a column of ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from dperm.core.erm.cleaning import cleaned
from dperm.core.erm.losses import BOUNDED, Signed, named

SIGNED = tuple(name for name in BOUNDED if isinstance(named(name), Signed))
CLASSES = "which two classes there are"  # a guarantee's assumption, where not declared
TWO = "whether labels are of two classes"  # where the loss follows from it


def signed(X: Any, y: np.ndarray, classes: np.ndarray) -> tuple[Any, np.ndarray]:
    """X (n, p) and labels y (n,) as signs; another label makes a record one of zeros.

    Parameters
    ----------
    classes : ndarray, shape (2,)
        The second becomes +1.
    """
    signs = np.where(y == classes[1], 1.0, np.where(y == classes[0], -1.0, np.nan))
    X, signs = cleaned(X, signs)
    return X, np.where(signs == 0, 1.0, signs)


def with_ones(X: Any) -> Any:
    """X (n, p) and a last column of ones, whose weight is the intercept."""
    ones = np.ones((X.shape[0], 1))
    if sparse.issparse(X):
        return sparse.hstack((X, sparse.csc_array(ones)), format="csc")
    return np.hstack((X, ones))
