"""The public view of a problem, and the only access to its records.

A problem is expressed in units of its public scales: x / S, u = S w. If S are the
columns' own scales, the mean of ||x / S||^2 is p, so that the bound R = sqrt(p) on a
record needs no look at the data. "Clipped to R" means projected onto the ball of radius
R; the reported objective is always that of the unclipped records.

A value read off the records is a :class:`Secret`, which a method cannot look into: it
yields the secret and receives its release (:class:`~dperm.solvers.full_batch.Fit`). So
all that a method computes follows from public numbers and from releases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dperm.privacy.noise import Streams
from dperm.problems.problem import Problem
from dperm.solvers.exact_noise import sum_error
from dperm.solvers.full_batch import minimise, secret
from dperm.solvers.full_batch.public_view import PublicView
from dperm.solvers.full_batch.secret import Secret
from dperm.solvers.records import Records, relevance


class Scaled(PublicView):
    """A problem in units of its public scales, with its records behind it.

    Parameters
    ----------
    problem : Problem
    apart : bool
        Whether every release may get noise for release; see ``Records``.
    """

    def __init__(self, problem: Problem, apart: bool = False):
        super().__init__(problem)
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

    def unit_gradient_sum(self, u: np.ndarray, C: np.ndarray) -> Secret:
        """As ``gradient_sum``, clipped to each run's C (L,), over C; (p, L).

        Replacing a record moves it by 2, whatever C is.
        """
        gradient = self._behind().gradient(u, C)
        return secret.noisy(gradient / C, 2.0)

    def gradient_sizes(self, u: np.ndarray, edges: np.ndarray) -> Secret:
        """Histogram of the norms of the records' gradients at u (p, L); (k + 1, L).

        A record counts in the place of the first of k edges that its norm does not
        exceed, in the last if there is none. Replacing it moves 1 from a place to
        another: by sqrt(2).
        """
        norms = self._behind().gradient_norms(u)
        places = np.searchsorted(edges, norms)
        histogram = np.stack([
            np.bincount(column, minlength=len(edges) + 1) for column in places.T
        ], axis=1)  # fmt: skip
        return secret.noisy(histogram, float(np.sqrt(2)))

    def clipped_gradient_sum(self, u: np.ndarray, R: float) -> Secret:
        """Sum of gradients at u (p, L) of records clipped to R; (p, L).

        Replacing a record moves it by 2 R times the largest slope.
        """
        gradient = self._behind().pull(u, R)
        return secret.noisy(gradient, 2 * R * self.loss.lipschitz(np.inf))

    def curvature_sum(self, u: np.ndarray, R: float) -> Secret:
        """Trace of the sum of Hessians at u (p, L) of records clipped to R; (1, L).

        A record's is between 0 and sup phi'' R^2.
        """
        trace = self._behind().curvature(u, R)
        return secret.noisy(trace, self.loss.curvature * R**2)

    def newton_change(
        self, slope: np.ndarray, damping: np.ndarray, R: float
    ) -> np.ndarray:
        """How far replacing a record moves a Newton direction of a public slope, (L,).

        With h = sup phi'' R^2 and lambda the damping and the least ridge, by Delta =
        ||slope|| h / (n lambda^2 + lambda h). For let A be lambda I and the mean
        Hessian of the records that both data sets share. Each of the two matrices is A
        or more by t t^T, and perhaps some ridge, with ||t||^2 <= h / n. By Sherman and
        Morrison its inverse is A^-1 less a matrix between 0 and D I,

            D = ||A^-1 t||^2 / (1 + t.A^-1 t) <= (h / n) / (lambda (lambda + h / n)),

        as ||A^-1 t||^2 <= t.A^-1 t / lambda <= h / (n lambda^2). Both inverses are A^-1
        less such a matrix, so that they differ by D at most in norm.
        """
        h = self.loss.curvature * R**2
        strong = damping + float(self.l2.min())
        sizes = np.linalg.norm(slope, axis=0)
        Delta: np.ndarray = sizes * h / (self.n * strong**2 + strong * h)
        return np.maximum(Delta, np.finfo(float).tiny)

    def newton_direction(
        self, u: np.ndarray, slope: np.ndarray, damping: np.ndarray, R: float
    ) -> Secret:
        """(H + damping I)^-1 slope at u (p, L), over ``newton_change``; (p, L).

        H is the mean Hessian of the records clipped to R, and the ridge's.
        """
        records = self._behind()
        direction = np.empty_like(slope)
        for run in range(slope.shape[1]):
            hessian = records.hessian(u[:, run], R) / self.n
            hessian += np.diag(self.l2[:, 0] + damping[run])
            direction[:, run] = np.linalg.solve(hessian, slope[:, run])
        return secret.noisy(
            direction / self.newton_change(slope, damping, R), 1.0
        )

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
        self,
        R: float,
        ridge: float,
        tolerance: float,
        curvature: float,
        off: float,
    ) -> Secret:
        """Minimiser on records clipped to R, with a ridge and a random linear term.

        The search ends at a subgradient of the sum over records within ``tolerance``;
        see ``secret.tilted``.
        """

        def minimiser(b: np.ndarray) -> np.ndarray:
            return minimise.minimise(
                self, self._behind(), R, ridge, b, tolerance
            )

        return secret.tilted(minimiser, self.p, R, curvature, off)

    def relevance(self, k: int) -> Secret:
        """Rank scores of the features; the places of the k largest are released; (p,).

        For real labels Kendall's |sum_{i < k} sign(x_i - x_k) sign(y_i - y_k)| / (n -
        1); for signs, where records v are multiplied by their labels, Wilcoxon's
        |sum_{i <= k} sign(v_i + v_k)| / n. A record is in n - 1, or n, pairs and moves
        each by at most 2, so that replacing one moves a score by at most 2.
        """
        records = self._behind()
        relevances = records.kept(
            "relevance", lambda: relevance(records, self.real)
        )
        return secret.largest(relevances, 2.0, k)

    def chosen_gradient_sum(
        self, u: np.ndarray, C: float, chosen: Any
    ) -> Secret:
        """Sum of gradients in each run's chosen features, clipped to C; (k, L)."""
        gradients = np.empty(chosen.shape)
        for run, columns in enumerate(chosen.T):
            narrowed = self._behind().of_columns(columns)
            gradients[:, run] = narrowed.gradient(u[columns, run], C)
        return secret.noisy(gradients, 2 * C)
