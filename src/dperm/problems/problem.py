"""A problem at run time: arrays, loss, penalty, constants and objective.

F(w) = (1/n) sum_i phi(A_i w + offset_i) + psi(w), see ``losses`` and ``penalties``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy import sparse

from dperm.numerics.compiled import KERNEL, fused, total
from dperm.numerics.kernels import njit
from dperm.problems.cleaning import cleaned, lengths
from dperm.problems.losses import Loss, named, value
from dperm.problems.penalties import Penalty

# Weight vectors whose margins are summed together, A sparse
_WEIGHTS_TOGETHER = 16
_TILE = 1024  # rows of margins kept in the first-level cache


@dataclass(frozen=True)
class Problem:
    """One composite empirical risk minimisation problem."""

    name: str
    A: Any  #: X, with rows times the labels for losses that take signs
    #: shape (n,); -y for losses of residuals, else 0. A record that is not finite is
    #: replaced by zeros.
    offset: np.ndarray
    loss: Loss
    penalty: Penalty
    #: epsilon, delta: privacy target for neighbours that differ by replacing one record
    epsilon: float
    delta: float
    #: digest of everything above: problems with equal digests have equal results
    digest: str = ""
    #: The problem whose constants (smoothness, bounds) the solver uses; None: this one.
    #: A neighbour of a data set is run with the constants of the data set.
    public: Problem | None = None
    #: n, and what else of the arrays is computed from all records (such as standardised
    #: columns) or read off them for sensitivities (``dperm.privacy.events``)
    given: tuple[str, ...] = ("n",)

    def __post_init__(self) -> None:
        A, offset = cleaned(self.A, self.offset)
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "offset", offset)

    def kept(self, key: Any, make: Callable[[], Any]) -> Any:
        """The value stored under a key, made now if there is none."""
        cache = vars(self).setdefault("_kept", {})
        if key not in cache:
            cache[key] = make()
        return cache[key]

    @property
    def known(self) -> Problem:
        """The problem whose constants are taken to be public."""
        return self if self.public is None else self.public

    @property
    def n(self) -> int:
        """Number of records."""
        return self.A.shape[0]

    @property
    def p(self) -> int:
        """Number of features."""
        return self.A.shape[1]

    @property
    def is_sparse(self) -> bool:
        """Whether A is sparse; it is then never converted to a dense matrix."""
        return sparse.issparse(self.A)

    @cached_property
    def rows(self) -> Any:
        """A stored by rows, for record-wise solvers.

        A C-ordered ndarray, or a CSR array.
        """
        return (
            self.A.tocsr() if self.is_sparse else np.ascontiguousarray(self.A)
        )

    @cached_property
    def row_norms(self) -> np.ndarray:
        """Euclidean norm of each record, shape (n,)."""
        with np.errstate(over="ignore"):
            if self.is_sparse:
                squares = np.asarray(
                    self.A.multiply(self.A).sum(axis=1)
                ).ravel()
            else:
                squares = np.einsum("ij,ij->i", self.rows, self.rows)
        return lengths(self.A, squares)

    @cached_property
    def smoothness(self) -> np.ndarray:
        """M_j = sup phi'' ||X_j||^2 / n, valid for moves along coordinate j; (p,)."""
        if self.public is not None:
            return self.public.smoothness
        if self.is_sparse:
            squares = self.A.multiply(self.A).sum(axis=0)
        else:
            squares = np.einsum("ij,ij->j", self.A, self.A)
        return self.loss.curvature * np.asarray(squares).ravel() / self.n

    @cached_property
    def global_smoothness(self) -> float:
        """The constant beta: sup phi'' times the largest eigenvalue of X^T X / n."""
        if self.public is not None:
            return self.public.global_smoothness
        gram = self.A.T @ self.A if self.p <= self.n else self.A @ self.A.T
        gram = gram.toarray() if self.is_sparse else np.asarray(gram)
        top = np.linalg.eigvalsh(gram)[-1]
        return float(self.loss.curvature * top / self.n)

    def objective(self, W: np.ndarray, workers: int = 1) -> np.ndarray:
        """F of each row of W (L, p); infinity for a row that is not finite; (L,).

        The values do not depend on the number of threads, ``workers``.
        """
        W = np.ascontiguousarray(np.atleast_2d(W), dtype=np.float64)
        losses = np.empty(len(W))
        from dperm.numerics.parallel import spread  # a fit needs no objective

        spread(self._mean_losses, W, losses, workers=workers)
        with np.errstate(over="ignore", invalid="ignore"):
            total = losses + self.penalty.value(W)
        return np.where(np.isfinite(total), total, np.inf)

    def _mean_losses(self, W: np.ndarray, out: np.ndarray) -> None:
        if not self.is_sparse:
            kernel = self.loss.compiled(_mean_losses)
            kernel(self.A, self.offset, W, out)
            return
        columns = (self.A.data, self.A.indices, self.A.indptr)
        self.loss.compiled(_sparse_mean_losses)(*columns, self.offset, W, out)

    def mean_loss(self, margins: np.ndarray) -> float:
        """Mean loss (1/n) sum_i phi(v_i) of margins v (n,)."""
        return float(self.loss.compiled(_mean_value)(margins))

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """Gradient of the smooth part f at w; shape (p,)."""
        return self.A.T @ self.derivatives(self.A @ w + self.offset) / self.n

    def derivatives(self, margins: np.ndarray) -> np.ndarray:
        """The derivative phi' at each margin; shape (n,)."""
        return self.loss.derivatives(margins)


def build(
    name: str,
    X: np.ndarray,
    y: np.ndarray,
    loss: str,
    penalty: Penalty,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    digest: str = "",
    given: tuple[str, ...] = ("n",),
    own: bool = False,
    by_rows: bool = False,
) -> Problem:
    """Make a Problem from prepared arrays.

    X is an ndarray (n, p) or a sparse array, y (n,) the labels, in {-1, +1} where the
    loss takes signs. ``loss`` is the name of one of ``losses``; the others are as for
    ``Problem``. ``own`` says that a dense X is nobody else's, and may be changed;
    ``by_rows`` that only rows are read, so that one in C order stays so.

    Raises ValueError if the loss is unknown, or a label that must be -1 or +1 is
    neither.
    """
    loss_function = named(loss)
    loss_function.check_labels(name, y)
    signs = loss_function.signs(y)
    A = cast(Any, X)
    if (signs != 1.0).any():
        if sparse.issparse(X):
            A = sparse.diags_array(signs) @ X
        else:
            A = np.multiply(X, signs[:, None], out=X if own else None)
    if sparse.issparse(A):
        A = sparse.csc_array(A, dtype=np.float64)
        A.sort_indices()
    elif not (by_rows and A.flags.c_contiguous):
        A = np.asfortranarray(A, dtype=np.float64)
    offset = loss_function.offset(y)
    return Problem(
        name,
        A,
        offset,
        loss_function,
        penalty,
        epsilon,
        delta,
        digest,
        given=given,
    )


@njit(**KERNEL)
def _mean_value(margins):
    """Mean of phi over the margins."""
    loss_sum = 0.0
    losses = np.empty(_TILE)
    for start in range(0, margins.shape[0], _TILE):
        tile = margins[start : start + _TILE]
        for i in range(tile.shape[0]):
            losses[i] = value(tile[i])
        loss_sum += total(losses[: tile.shape[0]])
    return loss_sum / margins.shape[0]


@njit(**KERNEL)
def _mean_losses(A, offset, W, means):
    """Write the mean loss of each row of W to out."""
    n, p = A.shape
    margins = np.empty(_TILE)
    for setting in range(W.shape[0]):
        loss_sum = 0.0
        for start in range(0, n, _TILE):
            m = min(_TILE, n - start)
            for i in range(m):
                margins[i] = offset[start + i]
            for j in range(p):
                w = W[setting, j]
                if w != 0.0:
                    column = A[start : start + m, j]
                    for i in range(m):
                        margins[i] = fused(w, column[i], margins[i])
            for i in range(m):
                margins[i] = value(margins[i])
            loss_sum += total(margins[:m])
        means[setting] = loss_sum / n


@njit(**KERNEL)
def _sparse_mean_losses(entries, rows, starts, offset, W, means):
    """Write the mean loss of each row of W to out, A in CSC columns.

    A few rows of W are processed together, so that each entry of A is read once for all
    of them. Columns in which all their weights are zero are skipped.
    """
    n = offset.shape[0]
    p = W.shape[1]
    margins = np.empty((n, _WEIGHTS_TOGETHER))
    w = np.zeros(_WEIGHTS_TOGETHER)
    for first_setting in range(0, W.shape[0], _WEIGHTS_TOGETHER):
        size = min(_WEIGHTS_TOGETHER, W.shape[0] - first_setting)
        w[:] = 0.0
        for i in range(n):
            margins[i, :] = offset[i]
        for j in range(p):
            used = False
            for k in range(size):
                w[k] = W[first_setting + k, j]
                used |= w[k] != 0.0
            if used:
                for e in range(starts[j], starts[j + 1]):
                    x = entries[e]
                    m = margins[rows[e]]
                    for k in range(_WEIGHTS_TOGETHER):
                        m[k] += x * w[k]
        for k in range(size):
            loss_sum = 0.0
            for i in range(n):
                loss_sum += value(margins[i, k])
            means[first_setting + k] = loss_sum / n
