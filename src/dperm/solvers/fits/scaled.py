"""A problem in units of its public scales: x / S, u = S w.

Where S are the columns' own scales the mean of ||x / S||^2 is p, so that a bound R =
sqrt(p) on a record needs no look at the data. "Clipped to R" takes a record to the ball
of radius R; the objective that is reported is always that of the unclipped records.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from dperm.erm.losses import derivatives
from dperm.erm.problem import Problem
from dperm.erm.scales import column_scales, is_declared, label_scale
from dperm.privacy.given import LABEL_SCALE, SMOOTHNESS

SPARSE = 0.2  # share of entries that are not zero, below which they are kept alone


class Scaled:
    """A problem's records in units of its scales.

    Parameters
    ----------
    problem : Problem
        Not one that is standardised implicitly.

    Attributes
    ----------
    S : ndarray, shape (p,)
    label : float
        Scale of the labels; 1 where they are signs.
    """

    def __init__(self, problem: Problem):
        self.problem, self.loss, self.penalty = problem, problem.loss, problem.penalty
        self.n, self.p = problem.n, problem.p
        self.S, self.label = column_scales(problem), label_scale(problem)
        self._kept: dict[Any, Any] = {}

    def of(self, problem: Problem) -> Scaled:
        """The same records with another target; what was made of them is shared."""
        assert self.norms.size  # made now, once for all
        made = copy.copy(self)
        made.problem = problem
        return made

    @property
    def real(self) -> bool:
        """Whether labels are numbers."""
        return bool(self.problem.loss.signs(np.full(1, -1.0))[0] == 1.0)

    @property
    def given(self) -> tuple[str, ...]:
        """What is taken to be public, beside what the problem says."""
        if is_declared(self.problem):
            return self.problem.given
        scales = (SMOOTHNESS, LABEL_SCALE) if self.real else (SMOOTHNESS,)
        return (*self.problem.given, *scales)

    @property
    def radius(self) -> float:
        """R = sqrt(p)."""
        return float(np.sqrt(self.p))

    @cached_property
    def rows(self) -> Any:
        """Records over S: (n, p), C order, or CSR where most entries are zero."""
        rows = self.problem.rows
        filled = isinstance(rows, np.ndarray)
        if filled and np.count_nonzero(rows) < SPARSE * rows.size:
            rows = sparse.csr_array(rows)
        if sparse.issparse(rows):
            return (rows @ sparse.diags_array(1 / self.S)).tocsr()
        return rows / self.S

    @cached_property
    def norms(self) -> np.ndarray:
        """Euclidean norms of the records over S, shape (n,)."""
        if sparse.issparse(self.rows):
            squares = self.rows.multiply(self.rows).sum(axis=1)
            return np.sqrt(np.asarray(squares).ravel())
        return np.sqrt(np.einsum("ij,ij->i", self.rows, self.rows))

    @property
    def offset(self) -> np.ndarray:
        """Margins at 0, shape (n, 1)."""
        return self.problem.offset[:, None]

    def clipped(self, radius: float) -> Any:
        """Records over S, clipped to a radius."""

        def make() -> Any:
            inside = np.minimum(1.0, radius / np.maximum(self.norms, 1e-300))
            if sparse.issparse(self.rows):
                return (sparse.diags_array(inside) @ self.rows).tocsr()
            return self.rows * inside[:, None]

        return self.kept(("clipped", radius), make)

    def kept(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made before under a key, or is made now."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def slopes(self, margins: np.ndarray) -> np.ndarray:
        """Phi' of margins of any shape."""
        flat = derivatives(self.loss, np.ascontiguousarray(margins).ravel())
        return flat.reshape(margins.shape)

    def second(self, margins: np.ndarray) -> np.ndarray:
        """Phi'' of margins of any shape."""
        flat = self.loss.second(np.ascontiguousarray(margins).ravel())
        return flat.reshape(margins.shape)

    # --- the penalty, per record, in units of the scales ------------------------------

    @property
    def l1(self) -> np.ndarray:
        """Weights of |u_j|, shape (p, 1)."""
        return (self.penalty.l1 / self.S)[:, None]

    @property
    def l2(self) -> np.ndarray:
        """Weights of u_j^2 / 2, shape (p, 1)."""
        return (self.penalty.l2 / self.S**2)[:, None]

    @property
    def is_smooth(self) -> bool:
        """Whether the penalty is a ridge or nothing."""
        ends = np.isfinite((self.penalty.lower, self.penalty.upper))
        return not (self.penalty.l1 or ends.any())

    def prox(self, u: np.ndarray, step: Any) -> np.ndarray:
        """Proximal operator of step times the penalty, at u (p, L)."""
        out = np.sign(u) * np.maximum(np.abs(u) - step * self.l1, 0.0)
        return self.boxed(out / (1.0 + step * self.l2))

    def boxed(self, u: np.ndarray) -> np.ndarray:
        """U (p, L) with its weights in the box."""
        ends = (self.penalty.lower, self.penalty.upper)
        if not np.isfinite(ends).any():
            return u
        low, high = (end * self.S[:, None] for end in ends)
        return np.clip(u, low, high)


def gram(V: Any, weights: np.ndarray | None = None) -> np.ndarray:
    """V^T diag(weights) V, filled in; shape (p, p)."""
    if sparse.issparse(V):
        left = V if weights is None else sparse.diags_array(weights) @ V
        return np.asarray((V.T @ left).todense())
    return V.T @ (V if weights is None else weights[:, None] * V)
