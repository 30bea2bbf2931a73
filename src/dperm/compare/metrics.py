"""Labels as signs, the intercept's column, and held-out metrics on a fixed split."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import rankdata

from dperm.core.erm import losses
from dperm.core.erm.cleaning import cleaned
from dperm.core.erm.problem import Problem
from dperm.solvers.scales import label_scale

SIGNED = tuple(name for name in losses.bounded() if losses.named(name).labels == "sign")
CLASSES = "which classes there are"  # a guarantee's assumption, where not declared
TWO = "whether labels are of two classes"  # an assumption, where it decides the loss


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


TEST = 0.2  # share of the records that are held out
SEED = 20240219  # of the split of every problem


@dataclass(frozen=True)
class Split:
    """A problem on four fifths of its records, and the remaining fifth, drawn once."""

    train: Problem
    A: Any  #: held-out rows, times the labels where those are signs
    #: offset, y: margins at w = 0, and labels
    offset: np.ndarray
    y: np.ndarray

    @property
    def metric(self) -> str:
        """``auc`` where labels are signs, else ``rmse``."""
        return "auc" if is_signed(self.train) else "rmse"

    def measure(self, W: np.ndarray) -> np.ndarray:
        """The metric of weights (L, p); after divergence inf, or an AUC of 1/2."""
        with np.errstate(over="ignore", invalid="ignore"):
            margins = np.asarray(self.A @ W.T) + self.offset[:, None]
            if self.metric == "rmse":
                found = np.sqrt(np.mean(margins**2, axis=0))
                return np.where(np.isnan(found), np.inf, found)
        scores = (margins * self.y[:, None]).T
        return np.array([area(one, self.y) for one in scores])


def is_signed(problem: Problem) -> bool:
    """Whether labels are signs."""
    return bool(problem.loss.signs(np.full(1, -1.0))[0] != 1.0)


def split(problem: Problem, y: np.ndarray) -> Split:
    """The split of a problem with labels y (n,); the same for every method."""
    order = np.random.default_rng(SEED).permutation(problem.n)
    held = round(TEST * problem.n)
    test, train = np.sort(order[:held]), np.sort(order[held:])
    rows = problem.A.tocsr() if problem.is_sparse else problem.A
    A = rows[train].tocsc() if problem.is_sparse else np.asfortranarray(rows[train])
    kept = replace(problem, A=A, offset=problem.offset[train], public=None)
    return Split(kept, rows[test], problem.offset[test], y[test])


def area(scores: np.ndarray, y: np.ndarray) -> float:
    """Area under the ROC curve; ties count half.

    It is 1/2 if a score is not finite, and nan if all labels are the same.
    """
    positive = y > 0
    count = int(positive.sum())
    if not 0 < count < len(y):
        return float("nan")
    if not np.isfinite(scores).all():
        scores = np.zeros(len(y))
    ranks = rankdata(scores)
    excess = ranks[positive].sum() - count * (count + 1) / 2
    return float(excess / (count * (len(y) - count)))


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
