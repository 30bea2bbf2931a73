"""The public view of a problem, and the only access to its records.

A problem is expressed in units of its public scales: x / S, u = S w. If S are the
columns' own scales, the mean of ||x / S||^2 is p, so that the bound R = sqrt(p) on a
record needs no look at the data. "Clipped to R" means projected onto the ball of radius
R; the reported objective is always that of the unclipped records.

A value read off the records is a :class:`Secret`, which a method cannot look into: it
yields the secret and receives its release (:class:`~dperm.solvers.fits.Fit`). So all
that a method computes follows from public numbers and from releases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dperm.core.erm.problem import Problem
from dperm.core.privacy.ledger import LABEL_SCALE, SMOOTHNESS
from dperm.core.privacy.mechanisms import Streams
from dperm.solvers.exact_noise import sum_error
from dperm.solvers.fits import minimise, secret
from dperm.solvers.fits.secret import Secret
from dperm.solvers.records import Records, relevance
from dperm.solvers.scales import column_scales, is_declared, label_scale


class Scaled:
    """A problem in units of its public scales.

    Parameters
    ----------
    problem : Problem
    apart : bool
        Whether every release may get noise for release; see ``Records``.

    Attributes
    ----------
    n, p : int
    loss, penalty, epsilon, delta
        As the problem's.
    S : ndarray, shape (p,)
    label : float
        Scale of the labels; 1 where they are signs.
    given : tuple of str
        Public information.
    """

    def __init__(self, problem: Problem, apart: bool = False):
        self.name = problem.name
        self.loss = problem.loss
        self.penalty = problem.penalty
        self.n = problem.n
        self.p = problem.p
        self.epsilon = problem.epsilon
        self.delta = problem.delta
        self.S = column_scales(problem)
        self.label = label_scale(problem)
        self.given = problem.given
        if not is_declared(problem):
            read = (SMOOTHNESS, LABEL_SCALE) if self.real else (SMOOTHNESS,)
            self.given = (*problem.given, *read)
        self.apart = apart
        self._records: Records | Problem = problem

    def hold_records(self, own: bool = False) -> None:
        """Hold the scaled records alone, and no longer the problem.

        ``own`` says that they may be scaled in place of the problem's.
        """
        self._behind(own)

    def hold_clipped(self, R: float) -> None:
        """Hold records clipped to R alone, for a method that reads no others."""
        self._behind().hold_clipped(R)

    def _behind(self, own: bool = False) -> Records:
        """Return the records, scaling them when they are first needed."""
        if isinstance(self._records, Problem):
            scales = (self.S, self.label, self.apart)
            self._records = Records(self._records, *scales, own)
        return self._records

    def _gram(self, R: float) -> np.ndarray:
        """Sum of x x^T over records clipped to R; (p, p)."""
        records = self._behind()
        gram: np.ndarray = records.kept(("gram", R), lambda: records.gram(R))
        return gram

    @property
    def real(self) -> bool:
        """Whether labels are real numbers, not signs."""
        return self.loss.labels != "sign"

    @property
    def radius(self) -> float:
        """R = sqrt(p)."""
        return float(np.sqrt(self.p))

    # --- what may be released ---------------------------------------------------------

    def gradient_sum(self, u: np.ndarray, C: float) -> Secret:
        """Sum of the records' gradients at u (p, L), each clipped to C; (p, L).

        Replacing a record moves it by 2 C.
        """
        error = sum_error(self.n, self.p, C) if self.apart else None
        gradient = self._behind().gradient(u, C)
        return secret.noisy(gradient, 2 * C, error=error)

    def batch_gradient_sum(
        self, u: np.ndarray, C: float, size: int, streams: Sequence[Streams]
    ) -> Secret:
        """As ``gradient_sum``, over batches of ``size`` records without replacement.

        Each run draws its own batch from its stream ``sampling``.
        """
        records = self._behind()
        gradients = np.empty_like(u)
        for run, run_streams in enumerate(streams):
            sampling: Any = run_streams.sampling
            batch = sampling.choice(self.n, size, replace=False, shuffle=False)
            gradients[:, run] = records.gradient(u[:, run], C, batch)
        return secret.noisy(gradients, 2 * C, rate=size / self.n)

    def second_moments(self, R: float) -> Secret:
        """Sum of x x^T over records clipped to R; symmetric, (p, p).

        ||x x^T - z z^T||_F^2 = ||x||^4 + ||z||^4 - 2 (x.z)^2 <= 2 R^4.
        """
        error = sum_error(self.n, self.p, R**2)
        moved = float(np.sqrt(2)) * R**2
        return secret.noisy(self._gram(R), moved, symmetric=True, error=error)

    def sketch(self, R: float, rows: int, known: np.ndarray) -> Secret:
        """The same sum behind normal rows; ``known`` is as in ``secret.sketched``."""
        return secret.sketched(self._gram(R), R, rows, known)

    def moments(self, C: float, weight: float) -> Secret:
        """Sum of t t^T, t = (x, weight y / S_y) clipped to C; symmetric, as wide as t.

        As for ``second_moments``, it moves by at most sqrt(2) C^2.
        """
        records = self._behind()
        key = ("moments", C, weight)
        matrix = records.kept(key, lambda: records.moments(C, weight))
        error = sum_error(self.n, self.p, C**2)
        moved = float(np.sqrt(2)) * C**2
        return secret.noisy(matrix, moved, symmetric=True, error=error)

    def smallest_eigenvalue(self, R: float) -> Secret:
        """Of the sum of x x^T over records clipped to R; a number.

        Replacing a record takes away and adds a matrix between 0 and R^2 I.
        """
        records = self._behind()
        gram = self._gram(R)

        def least() -> float:
            return float(np.linalg.eigvalsh(gram)[0])

        return secret.noisy(records.kept(("least", R), least), R**2)

    def label_products(self, R: float, Y: float) -> Secret:
        """Sum of x y, x clipped to R and labels over their scale to [-Y, Y]; (p,).

        Replacing a record moves it by at most 2 R Y.
        """
        records = self._behind()

        def products() -> np.ndarray:
            label_sums: np.ndarray = records.clipped(R).T @ np.clip(
                records.labels, -Y, Y
            )
            return label_sums

        return secret.noisy(records.kept(("x y", R, Y), products), 2 * R * Y)

    def tilted_minimum(
        self, R: float, ridge: float, tolerance: float, curvature: float, off: float
    ) -> Secret:
        """Minimiser on records clipped to R, with a ridge and a random linear term.

        The search ends at a subgradient of the sum over records within ``tolerance``;
        see ``secret.tilted``.
        """

        def minimiser(b: np.ndarray) -> np.ndarray:
            return minimise.minimise(self, self._behind(), R, ridge, b, tolerance)

        return secret.tilted(minimiser, self.p, R, curvature, off)

    def relevance(self, k: int) -> Secret:
        """Rank scores of the features; the places of the k largest are released; (p,).

        For real labels Kendall's |sum_{i < k} sign(x_i - x_k) sign(y_i - y_k)| / (n -
        1); for signs, where records v are multiplied by their labels, Wilcoxon's
        |sum_{i <= k} sign(v_i + v_k)| / n. A record is in n - 1, or n, pairs and moves
        each by at most 2, so that replacing one moves a score by at most 2.
        """
        records = self._behind()
        relevances = records.kept("relevance", lambda: relevance(records, self.real))
        return secret.largest(relevances, 2.0, k)

    def chosen_gradient_sum(self, u: np.ndarray, C: float, chosen: Any) -> Secret:
        """Sum of gradients in each run's chosen features, clipped to C; (k, L)."""
        gradients = np.empty(chosen.shape)
        for run, columns in enumerate(chosen.T):
            narrowed = self._behind().of_columns(columns)
            gradients[:, run] = narrowed.gradient(u[columns, run], C)
        return secret.noisy(gradients, 2 * C)

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
        """Whether the penalty is a ridge or zero."""
        return self.penalty.is_smooth

    def prox(self, u: np.ndarray, step: Any) -> np.ndarray:
        """Proximal operator of step times the penalty, at u (p, L)."""
        shrunk = np.sign(u) * np.maximum(np.abs(u) - step * self.l1, 0.0)
        return self.boxed(shrunk / (1.0 + step * self.l2))

    def boxed(self, u: np.ndarray) -> np.ndarray:
        """Nearest point to u (p, L) in the box, which bounds the weights u / S."""
        ends = (self.penalty.lower, self.penalty.upper)
        if not np.isfinite(ends).any():
            return u
        low, high = (end * self.S[:, None] for end in ends)
        return np.clip(u, low, high)
