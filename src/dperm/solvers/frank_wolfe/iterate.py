"""A Frank-Wolfe iterate with everything that a step changes kept up to date.

A step x <- (1 - gamma) x + gamma s, with s of few non-zeros, changes the margins along
the chosen columns, and for a quadratic loss the gradient along columns of the Gram
matrix. Recomputing either would read the whole design.
"""

from __future__ import annotations

import numpy as np

from dperm.problems.problem import Problem
from dperm.solvers.distributed.columns import Columns

GRAM_BYTES = 1 << 27  # of Gram columns that are cached


class Iterate:
    """x (p,), its margins, and quantities computed from them.

    The columns are those of ``problem.A``, if they were made before.
    """

    def __init__(self, problem: Problem, columns: Columns | None = None):
        self.problem = problem
        self.columns = columns or Columns(problem.A)
        self.x = np.zeros(problem.p)
        self.products = np.zeros(problem.n)  # A x

    @property
    def margins(self) -> np.ndarray:
        """A x + offset, shape (n,)."""
        return self.products + self.problem.offset

    @property
    def objective(self) -> float:
        """f(x), without any penalty."""
        return self.problem.mean_loss(self.margins)

    @property
    def l1_norm(self) -> float:
        """||x||_1."""
        return float(np.abs(self.x).sum())

    def gradient(self) -> np.ndarray:
        """The gradient of f at x, recomputed; shape (p,)."""
        return self.columns.products(
            self.problem.derivatives(self.margins)
        ) / (self.problem.n)

    def combine(
        self, gamma: float, columns: np.ndarray, vertex: np.ndarray
    ) -> None:
        """Set x to (1 - gamma) x + gamma s, where s has ``vertex`` at ``columns``.

        A column that is named twice counts twice.
        """
        self.x *= 1.0 - gamma
        np.add.at(self.x, columns, gamma * vertex)
        self.products *= 1.0 - gamma
        self.columns.add(columns, gamma * vertex, self.products)


class GradientIterate(Iterate):
    """An iterate that keeps the gradient as well; quadratic losses only.

    A step costs the p entries of the gradient and the non-zeros of the rows that its
    columns meet; a cached column costs only p.
    """

    def __init__(self, problem: Problem, columns: Columns | None = None):
        super().__init__(problem, columns)
        if not problem.loss.quadratic:
            raise ValueError(
                f"loss {problem.loss.name}: its gradient is not linear"
            )
        self._constant = super().gradient()  # A^T offset / n
        self._linear = np.zeros(problem.p)  # A^T A x / n
        self._known: dict[int, np.ndarray] = {}
        self._room = max(1, GRAM_BYTES // (8 * problem.p))

    def gradient(self) -> np.ndarray:
        """The gradient of f at x, shape (p,)."""
        return self._linear + self._constant

    def combine(
        self, gamma: float, columns: np.ndarray, vertex: np.ndarray
    ) -> None:
        """As for an iterate; also updates the gradient."""
        super().combine(gamma, columns, vertex)
        self._linear *= 1.0 - gamma
        for j, coefficient in zip(
            columns.tolist(), vertex.tolist(), strict=True
        ):
            # A^T a_j, from the cache if possible
            if j not in self._known:
                if len(self._known) >= self._room:
                    del self._known[next(iter(self._known))]
                self._known[j] = self.columns.gram(j)
            self._linear += (
                gamma * coefficient / self.problem.n
            ) * self._known[j]


def iterate(problem: Problem, columns: Columns | None = None) -> Iterate:
    """The cheapest iterate for the problem's loss."""
    is_quadratic = problem.loss.quadratic
    return (GradientIterate if is_quadratic else Iterate)(problem, columns)
