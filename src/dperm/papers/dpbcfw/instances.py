"""Instances: a least-squares problem with what its experiments need to know of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse

from dperm.core.erm.bounds import clip_problem
from dperm.core.erm.columns import Columns
from dperm.core.erm.constrained import minimum
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import Problem, build
from dperm.core.erm.sets import Ball
from dperm.core.privacy.given import DATA_BOUNDS, RADIUS, united
from dperm.solvers.frank_wolfe.dp_fw import published_lipschitz

NOISE_VARIANCE = 0.001  # Section V: N(0, 0.001), read as a variance


@dataclass
class Instance:
    """One draw of the data.

    Attributes
    ----------
    problem : Problem
    radius : float
        eta at share 1: ||x_true||_1, or ||w*||_1 of a lasso.
    truth : float
        f(x_true), or f(w*).
    largest : float
        max |x_true|, the box of Algorithm 1.
    entry_bound, label_bound : float
        Public bounds on entries and labels.
    """

    problem: Problem
    radius: float
    truth: float
    largest: float
    entry_bound: float
    label_bound: float
    _minima: dict[float, tuple[float, float]] = field(default_factory=dict)

    @cached_property
    def columns(self) -> Columns:
        """Of the design as it is."""
        return Columns(self.problem.A)

    @cached_property
    def clipped_columns(self) -> Columns:
        """Of the design as the private methods see it."""
        return Columns(clip_problem(self.problem, self.entry_bound, 1.0).A)

    @cached_property
    def start(self) -> float:
        """f(0)."""
        return self.problem.mean_loss(self.problem.offset)

    @cached_property
    def published_lipschitz(self) -> float:
        """G as the paper has it: max_j |grad_j f(0)|."""
        return published_lipschitz(self.problem)

    def minimum(self, share: float) -> tuple[float, float]:
        """Minimum of f over the ball of radius share * eta, and the certified gap."""
        if share not in self._minima:
            ball = Ball(1.0, share * self.radius)
            self._minima[share] = minimum(self.problem, ball, columns=self.columns)
        return self._minima[share]


def sparse_design(rng: np.random.Generator, n: int, p: int, density: float):
    """A (n, p) with independent non-zeros, N(0, 1), each there with that chance."""
    cells, found, last = n * p, [], -1
    while last < cells:
        expected = int((cells - last) * density)
        gaps = rng.geometric(density, expected + 10 * int(expected**0.5) + 100)
        places = last + np.cumsum(gaps)
        found.append(places)
        last = int(places[-1])
    flat = np.concatenate(found)
    flat = flat[flat < cells]
    indptr = np.searchsorted(flat, n * np.arange(p + 1, dtype=np.int64))
    values = rng.standard_normal(flat.size)
    return sparse.csc_array((values, flat % n, indptr), shape=(n, p))


def synthetic(
    seed: int,
    n: int,
    d: int,
    density: float,
    active: float,
    entry_bound: float = 4.0,
    label_sds: float = 4.0,
    rows: int | None = None,
) -> Instance:
    """The synthetic data of Section V.

    Parameters
    ----------
    seed : int
    n, d : int
        Records and features.
    density, active : float
        Shares of non-zeros in A and in x_true.
    entry_bound : float
        Public bound on |a_ij|; the non-zeros are N(0, 1).
    label_sds : float
        Public bound on |y_i| in standard deviations of y, which the shares tell.
    rows : int
        Records drawn, of which the first n are used; None: n.
    """
    rng = np.random.default_rng(seed)
    A = sparse_design(rng, rows or n, d, density)
    if rows is not None and rows > n:
        A = sparse.csc_array(A.tocsr()[:n])
    count = max(1, round(active * d))
    x = np.zeros(d)
    x[rng.choice(d, count, replace=False)] = rng.standard_normal(count)
    y = A @ x + np.sqrt(NOISE_VARIANCE) * rng.standard_normal(n)
    problem = build("synthetic", A, y, "least_squares", Penalty())
    spread = np.sqrt(count * density + NOISE_VARIANCE)
    truth = problem.mean_loss(A @ x - y)
    return Instance(
        problem, float(np.abs(x).sum()), truth, float(np.abs(x).max()),
        entry_bound, float(label_sds * spread),
    )  # fmt: skip


def prepared(problem: Problem, w: np.ndarray) -> Instance:
    """A prepared data set with the solution w (p,) of its lasso.

    The largest entry and label are taken for public bounds.
    """
    A = sparse.csc_array(problem.A)
    given = united(problem.given, (DATA_BOUNDS, RADIUS))
    plain = build(
        problem.name, A, -problem.offset, "least_squares", Penalty(), given=given
    )
    return Instance(
        plain, float(np.abs(w).sum()), plain.mean_loss(A @ w + plain.offset),
        float(np.abs(w).max()), float(np.abs(A.data).max()),
        float(np.abs(problem.offset).max()),
    )  # fmt: skip
