"""Theorems 4.4 and 4.7 of Mangold et al. 2023 with the constants of their proofs.

The bounds are equation 28 for convex f, 54 (of the proof of 50) for strongly convex f,
and 66 for quasi-sparse solutions. Equation 50 as printed contracts faster than its
proof and has an eighth of the proof's noise, without the square of the logarithm.
Equation 66 leaves out the factor M_max of Lemma B.5, which is restored here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dperm.privacy.noise import laplace, streams
from dperm.problems.optimum import Optimum
from dperm.problems.problem import Problem

WRONG = 0.05  # zeta, the chance that a bound is exceeded
MAX_ITERATIONS = 10_000  # iterations that are considered, and run


@dataclass(frozen=True)
class BoundConstants:
    """Constants of the bounds; f includes the ridge, as in the theorems."""

    #: L, M: shape (p,); component Lipschitz constants of a record's loss, and
    #: smoothness of f
    L: np.ndarray
    M: np.ndarray
    mu: float  #: mu_{M,2}, of the ridge alone; mu_{M,1} is at least mu / p
    #: start, radius: f(0) - f*, and ||w*||_{M,1}, the least that R_M can be
    start: float
    radius: float
    sizes: np.ndarray  #: shape (p,); |w*_j| in falling order
    epsilon: float
    delta: float

    @property
    def p(self) -> int:
        """Number of features."""
        return len(self.L)

    def scale(self, n: int, T: int) -> float:
        """The largest lambda_j of Theorem 4.2."""
        root = math.sqrt(T * math.log(1 / self.delta))
        return 8 * float(self.L.max()) * root / (n * self.epsilon)

    def noise(self, n: int, T: int) -> float:
        """The beta of the proofs: a step's noise, except with chance ``WRONG``."""
        often = math.log(8 * T * self.p / WRONG)
        return 2 * (self.scale(n, T) * often) ** 2 / float(self.M.min())


def known(problem: Problem, optimum: Optimum) -> BoundConstants:
    """The constants of a problem with a Lipschitz loss and a ridge.

    Raises
    ------
    ValueError
        Where the loss has no Lipschitz constant, or the penalty is more than a ridge.
    """
    slope = problem.loss.lipschitz(np.inf)
    penalty = problem.penalty
    if not math.isfinite(slope) or penalty.l1 or math.isfinite(penalty.upper):
        raise ValueError(
            f"problem {problem.name}: expected a Lipschitz loss and a ridge alone"
        )
    L = slope * np.abs(problem.A).max(axis=0)
    M = problem.smoothness + penalty.l2
    w = optimum.w
    start = (
        float(problem.objective(np.zeros((1, problem.p)))[0]) - optimum.value
    )
    return BoundConstants(
        L,
        M,
        penalty.l2 / float(M.max()),
        start,
        float((np.sqrt(M) * abs(w)).sum()),
        np.sort(abs(w))[::-1],
        problem.epsilon,
        problem.delta,
    )


def convex(facts: BoundConstants, n: int) -> tuple[int, float]:
    """T of Theorem 4.4, and equation 28."""
    size = (n * facts.epsilon / float(facts.L.max())) ** 2
    R = facts.radius
    T = size * R**2 * float(facts.M.min()) / (2**7 * math.log(1 / facts.delta))
    T = max(1, round(T ** (1 / 3)))
    return T, 8 * R**2 / T + math.sqrt(32 * R**2 * facts.noise(n, T))


def strongly_convex(facts: BoundConstants, n: int) -> tuple[int, float]:
    """The T with the least bound, and equation 54."""
    mu = facts.mu / facts.p

    def bound(T: int) -> float:
        """The theorem's bound after T iterations."""
        return (1 - mu / 4) ** T * facts.start + 4 * facts.noise(n, T) / mu

    return _least(bound)


def quasi_sparse(facts: BoundConstants, n: int) -> tuple[int, float]:
    """The T with the least bound over tau, and equation 66; iterates are T-sparse."""

    def of(tau: int) -> tuple[int, float]:
        largest_missed = facts.sizes[tau] if tau < facts.p else 0.0
        missed = float(facts.M.max()) * (facts.p - tau) * largest_missed**2

        def bound(T: int) -> float:
            """The theorem's bound after T iterations."""
            wide = min(T, facts.p) + tau
            remaining = (1 - facts.mu / (4 * wide)) ** T * facts.start
            return (
                remaining
                + 4 * wide * facts.noise(n, T) / facts.mu
                + wide / 8 * missed
            )

        return _least(bound)

    return min(
        (of(tau) for tau in range(facts.p + 1)),
        key=lambda length_and_bound: length_and_bound[1],
    )


CASES: dict[str, Callable[[BoundConstants, int], tuple[int, float]]] = {
    "convex": convex,
    "strongly convex": strongly_convex,
    "quasi-sparse": quasi_sparse,
}


def _least(bound: Callable[[int], float]) -> tuple[int, float]:
    """The best T on a grid with ratio about 1.1, and its bound."""
    tried = np.unique(
        np.geomspace(1, MAX_ITERATIONS, 100).round().astype(int)
    ).tolist()
    best = min(tried, key=bound)
    return best, float(bound(best))


def needed(facts: BoundConstants, case: str) -> float:
    """Records at which a bound is as low as the excess of w = 0; inf above 1e30."""
    low = 0.0
    high = 30.0  # powers of ten
    if CASES[case](facts, 10**30)[1] > facts.start:
        return math.inf
    while high - low > 0.01:
        middle = (low + high) / 2
        if CASES[case](facts, round(10**middle))[1] > facts.start:
            low = middle
        else:
            high = middle
    return float(10**high)


def run(problem: Problem, facts: BoundConstants, T: int, seed: int) -> float:
    """F after T iterations of Algorithm 1, steps 1 / M_j, noise of Theorem 4.2."""
    rng = streams(seed)
    scales = facts.scale(problem.n, T) * facts.L / float(facts.L.max())
    w = np.zeros(problem.p)
    margins = problem.offset.copy()
    for _ in range(T):
        slope = problem.A.T @ problem.derivatives(margins) / problem.n
        slope = slope + problem.penalty.l2 * w
        j = int(
            (
                abs(slope + laplace(rng.sampling, scales)) / np.sqrt(facts.M)
            ).argmax()
        )
        move = (slope[j] + float(laplace(rng.noise, scales[j]))) / facts.M[j]
        w[j] -= move
        margins -= move * problem.A[:, j]
    return float(problem.objective(w[None])[0])


def decaying(p: int, epsilon: float, delta: float) -> BoundConstants:
    """Constants of f(w) = ||w - w*||^2 / 2 where the records' mean is w*_j = 1 / j.

    Records and w have entries of -1 to 1, so that derivatives are 2 at most.
    """
    sizes = 1 / np.arange(1, p + 1)
    start = float(sizes @ sizes) / 2
    radius = float(sizes.sum())
    constants = (2 * np.ones(p), np.ones(p), 1.0, start, radius)
    return BoundConstants(*constants, sizes, epsilon, delta)


def run_decaying(
    facts: BoundConstants, n: int, T: int, seed: int, runs: int
) -> np.ndarray:
    """Excesses of the runs on ``decaying``, (runs,): a step leaves only its noise."""
    rng = streams(seed)
    scale = facts.scale(n, T)
    run_numbers = np.arange(runs)
    away = np.tile(-facts.sizes, (runs, 1))
    scales = np.full((runs, facts.p), scale)
    for _ in range(T):
        chosen = abs(away + laplace(rng.sampling, scales)).argmax(axis=1)
        away[run_numbers, chosen] = laplace(rng.noise, scales[:, 0])
    return (away**2).sum(axis=1) / 2
