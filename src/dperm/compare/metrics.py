"""Labels as signs, the intercept's column, and the clipped loss of a score."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from dperm.core.erm import losses
from dperm.core.erm.cleaning import cleaned
from dperm.core.erm.problem import Problem
from dperm.solvers.scales import label_scale

SIGNED = tuple(name for name in losses.bounded() if losses.named(name).labels == "sign")


def against_rest(
    X: Any, y: np.ndarray, classes: np.ndarray
) -> tuple[Any, list[np.ndarray]]:
    """X (n, p), and labels y (n,) as signs; another label makes a record one of zeros.

    Parameters
    ----------
    classes : ndarray, shape (K,)
        Of two the second becomes +1; of more, each has a vector in which it is +1.
    """
    known = np.isin(y, classes)
    X, kept = cleaned(X, np.where(known, 1.0, np.nan))
    some = classes[1:] if len(classes) == 2 else classes
    return X, [np.where((y == one) | (kept == 0), 1.0, -1.0) for one in some]


def with_constant(X: Any, value: float = 1.0) -> Any:
    """X (n, p) with a last column of that value, whose weight is the intercept."""
    ones = np.full((X.shape[0], 1), value)
    if sparse.issparse(X):
        return sparse.hstack((X, sparse.csc_array(ones)), format="csc")
    return np.asfortranarray(np.hstack((X, ones)))  # the order of problems


def is_signed(problem: Problem) -> bool:
    """Whether labels are signs."""
    return bool(problem.loss.signs(np.full(1, -1.0))[0] != 1.0)


def clipped_loss(problem: Problem, most: float, W: np.ndarray) -> np.ndarray:
    """Mean over records of the loss clipped to [0, most], for weights (L, p).

    Replacing a record changes it by at most most / n.
    """
    found = np.empty(len(W))
    with np.errstate(over="ignore", invalid="ignore"):
        for k, w in enumerate(W):
            margins = np.asarray(problem.A @ w) + problem.offset
            each = problem.loss.values(margins)
            found[k] = np.minimum(np.where(np.isnan(each), most, each), most).mean()
    return found


def loss_bound(problem: Problem) -> float:
    """Three times the loss at w = 0 of a label at its public scale."""
    at = np.full(1, -label_scale(problem) if not is_signed(problem) else 0.0)
    return 3 * problem.mean_loss(at)
