"""Arrays of the reader's own, made a problem: labels, an intercept, public scales."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from dperm.erm.cleaning import cleaned
from dperm.erm.loss import Signed
from dperm.erm.losses import BOUNDED, named
from dperm.erm.penalties import Penalty
from dperm.erm.problem import Problem, build
from dperm.locate import ConfigError, hint

SIGNED = tuple(name for name in BOUNDED if isinstance(named(name), Signed))
CLASSES = "which two classes there are"  # a guarantee's assumption, where not declared
TWO = "whether labels are of two classes"  # where the loss follows from it
MANY = 5  # values that are quoted


def loss_for(y: np.ndarray, loss: str | None) -> str:
    """The loss that was asked for; else logistic for two values, squares for more.

    Raises
    ------
    ConfigError
        If there is no such loss.
    """
    if loss is None:
        return "logistic" if len(np.unique(y)) == 2 else "least_squares"
    if loss not in BOUNDED:
        raise ConfigError(
            f"loss={loss}: expected one of {', '.join(BOUNDED)}{hint(loss, BOUNDED)}"
        )
    return loss


def labels_for(y: np.ndarray, loss: str, where: str) -> np.ndarray:
    """Labels y (n,) as the loss takes them: of two values the larger becomes +1.

    Raises
    ------
    ConfigError
        If they are all the same, or more than two where the loss takes signs.
    """
    values = np.unique(y)
    if len(values) == 1:
        raise ConfigError(f"{where}: expected labels that differ, found {values[0]:g}")
    if loss not in SIGNED:
        return y
    if len(values) > 2:
        found = ", ".join(f"{value:g}" for value in values[:MANY])
        raise ConfigError(
            f"{where}: {loss} loss takes two classes, found {len(values)} values "
            f"({found}{', ...' if len(values) > MANY else ''}): expected positive="
            "VALUE, which makes one of them +1, or loss=least_squares"
        )
    return np.where(y == values[1], 1.0, -1.0)


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


def problem_of(
    name: str,
    X: Any,
    y: np.ndarray,
    loss: str,
    penalty: Penalty,
    epsilon: float,
    delta: float,
    given: tuple[str, ...] = ("n",),
) -> Problem:
    """A problem whose identity is its name; arguments as for ``erm.problem.build``."""
    return build(name, X, y, loss, penalty, epsilon, delta, digest=name, given=given)


def declared(problem: Problem, scales: np.ndarray, label: float) -> Problem:
    """The problem with public scales that are given, and not read off its records.

    Parameters
    ----------
    scales : ndarray, shape (p,)
        S_j, what the root mean square of column j is taken for: M_j = sup phi'' S_j^2,
        and the largest beta that goes with these, sup phi'' sum_j S_j^2.
    label : float
        What the root mean square of the labels is taken for; residual losses alone.
    """
    record = np.asfortranarray(scales[None, :], dtype=np.float64)
    offset = problem.loss.offset(np.array([label]))
    public = replace(problem, A=record, offset=offset, public=None)
    return replace(problem, public=public)
