"""Least-squares problems with known constants, or with a known law of the iterates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from scipy.linalg import hadamard

from dperm.privacy.noise import Streams, gaussian
from dperm.problems.penalties import Penalty
from dperm.problems.problem import Problem, build
from dperm.solvers.batched import BatchedSettings, dp_sgd, dp_skgd

# --- Theorem 4.2: pairs of coordinates ------------------------------------------------


@dataclass(frozen=True)
class Pairs:
    """f(w) = sum_k M_k ((2 - phi_k) s_k^2 + phi_k (t_k - t*_k)^2) / 2.

    Coordinates are correlated within pairs and not across, so that w*, M_j, the
    curvature along every direction and the minimum are known. A design of one record
    per coordinate stands for any number of records. s_k and t_k are a pair's sum and
    difference over sqrt(2). Every coordinate of pair k has the smoothness M_k, while
    the curvature along the difference is phi_k M_k. The smaller phi_k, the longer
    single coordinates take. At phi_k = 1 the pair is separable.
    """

    #: M, flatness, optimum: shape (P,); M_k, phi_k and v_k; w* is (v_k, -v_k) on pair k
    M: np.ndarray
    flatness: np.ndarray
    optimum: np.ndarray

    @property
    def p(self) -> int:
        """Coordinates."""
        return 2 * len(self.M)

    @property
    def smoothness(self) -> np.ndarray:
        """M_j of single coordinates, shape (p,)."""
        return np.repeat(self.M, 2)

    @property
    def dominating(self) -> np.ndarray:
        """M of Assumption 3.6, which bounds the Hessian as a matrix; (p,)."""
        return float((2.0 - self.flatness).max()) * self.smoothness

    @property
    def convexity(self) -> float:
        """Strong convexity of f in the Euclidean norm."""
        return float((self.flatness * self.M).min())

    @property
    def w(self) -> np.ndarray:
        """w*, shape (p,)."""
        return np.stack((self.optimum, -self.optimum), axis=1).ravel()

    @property
    def start(self) -> float:
        """f(0), the excess of w = 0; the minimum is 0."""
        return float((self.M * self.flatness * self.optimum**2).sum())

    @property
    def clip(self) -> float:
        """The least C that clips no record at w = 0, where C_S = sqrt(M_S / sum M) C.

        A record touches one pair, on whose coordinates it is equally large. So clipping
        single coordinates turns its squared residual into Huber's loss, which is
        convex and C_j-Lipschitz everywhere: the theorem's assumptions hold.
        """
        gradients = np.abs(self.p * self.M * self.flatness * self.optimum)
        return float(
            (gradients * np.sqrt(self.smoothness.sum() / self.M)).max()
        )

    def hessian(self, pair: int) -> np.ndarray:
        """The Hessian on a pair, shape (2, 2)."""
        across = 1.0 - self.flatness[pair]
        return self.M[pair] * np.array([[1.0, across], [across, 1.0]])

    @cached_property
    def problem(self) -> Problem:
        """The problem on p distinct records; each stands for n / p records."""
        X = np.zeros((self.p, self.p))
        for k, (M, phi) in enumerate(zip(self.M, self.flatness, strict=True)):
            along, across = (
                math.sqrt(self.p * M * flatness / 2)
                for flatness in (2 - phi, phi)
            )
            X[2 * k, 2 * k : 2 * k + 2] = along
            X[2 * k + 1, 2 * k : 2 * k + 2] = across, -across
        return build("pairs", X, X @ self.w, "least_squares", Penalty())


def pairs(
    groups: int, levels: int, ratio: float, spacing: float, placement: float
) -> Pairs:
    """An instance with a placement of its optimum among the M_j.

    Parameters
    ----------
    groups : int
        Pairs of every flatness; one of them is steep.
    levels : int
        Values of the flatness, 1, 1 / spacing, 1 / spacing^2, ...
    ratio : float
        M of the steep pairs; that of the others is 1.
    placement : float
        |w*_j| = M_j^placement. At -1/2 all coordinates have equal shares of the norm of
        M, at 0 equal sizes. Above 0 the steep ones are the farthest from w = 0, which
        Section 4.3.2 assumes.
    """
    M = np.tile(np.where(np.arange(groups) == 0, ratio, 1.0), levels)
    flatness = np.repeat(float(spacing) ** -np.arange(levels), groups)
    return Pairs(M, flatness, M**placement)


# --- Section 4.3: quadratics ----------------------------------------------------------

# regime: its worse and its better method
REGIMES = {
    "flat": (
        "DP-SGD",
        "DP-SkGD full",
    ),  # 4.3.1: one small M_j, the rest solved
    "steep": (
        "DP-CD",
        "DP-SkGD single IS",
    ),  # 4.3.2: one large M_j, which matters
}
IMPORTANCE = (
    "DP-SkGD single IS",
)  # draws a coordinate with a chance like its M_j
# Lengths of step over 1 / M: beyond 1 a step overshoots, at 2 it diverges.
STEPS = (*np.geomspace(1e-3, 1.0, 19), 1.2, 1.5, 1.8)
MAX_STEPS = 1e7  # steps


@dataclass(frozen=True)
class Quadratic:
    """f(w) = sum_j M_j (w_j - w*_j)^2 / 2, as a mean over +-1 designs.

    Row i of the design is sqrt(M_j) H_ij with a Hadamard matrix H, so that X^T X / n is
    diag(M) exactly and diag(M) dominates the Hessian as Assumption 3.6 demands. All
    records have equally large gradients.
    """

    M: np.ndarray
    optimum: np.ndarray

    @property
    def lipschitz(self) -> float:
        """The largest norm of a record's gradient at 0, to which it is clipped."""
        residual = float((np.sqrt(self.M) * np.abs(self.optimum)).sum())
        return math.sqrt(self.M.sum()) * residual

    @property
    def start(self) -> float:
        """f(0), the excess before the first step."""
        return 0.5 * float((self.M * self.optimum**2).sum())

    def problem(self, rows: int) -> Problem:
        """The least squares problem on ``rows`` records, a power of two > p."""
        X = hadamard(rows)[:, 1 : len(self.M) + 1] * np.sqrt(self.M)
        return build(
            "quadratic", X, X @ self.optimum, "least_squares", Penalty()
        )


def quadratic(regime: str, d: int, ratio: float, others: float) -> Quadratic:
    """The instance of a regime.

    ``flat``: M_1 = 1 and M_j = ratio; ``steep``: M_1 = ratio and M_j = 1. w*_1 = 1, and
    the other coordinates start at a distance ``others`` from the optimum.
    """
    M = np.full(d, ratio if regime == "flat" else 1.0)
    w = np.full(d, others)
    M[0] = 1.0 if regime == "flat" else ratio
    w[0] = 1.0
    return Quadratic(M, w)


@dataclass(frozen=True)
class SampledMethod:
    """A sampling on a quadratic, whose iterates have a known law."""

    f: Quadratic
    name: str  #: of ``REGIMES``
    n: float  #: records; the noise of a step is a multiple of the sensitivity 2 C_S / n
    #: q, inverse_step, share: shape (p,); chances q_j, the steps 1 / m_j, and the
    #: shares C_S / C
    q: np.ndarray
    inverse_step: np.ndarray
    share: np.ndarray

    @classmethod
    def of(cls, name: str, f: Quadratic, n: float) -> SampledMethod:
        """The method of that name; DP-SGD takes the whole batch in each step."""
        M = f.M
        ones = np.ones(len(f.M))
        if name == "DP-SGD":
            return cls(f, name, n, ones, M.max() * ones, ones)
        if name == "DP-SkGD full":
            return cls(f, name, n, ones, M, ones)
        q = M / M.sum() if name in IMPORTANCE else ones / len(M)
        return cls(f, name, n, q, M, np.sqrt(M / M.sum()))

    def _noise_move(self, step: float, noise: float) -> np.ndarray:
        """Standard deviation of the noise in one move of each coordinate, (p,)."""
        scale = noise * 2 * self.f.lipschitz * self.share / self.n
        return step / self.inverse_step * scale

    def expected_excess(self, step: float, count: int, noise: float) -> float:
        """E[f(w_K)], by E[a^N] = (1 - q + q a)^K for N of K draws."""
        contraction = (1 - step * self.f.M / self.inverse_step) ** 2
        bias = (1 - self.q + self.q * contraction) ** count
        variance = self._noise_move(step, noise) ** 2
        limit = (1 - bias) / (1 - np.minimum(contraction, 1 - 1e-16))
        spread = variance * np.where(contraction < 1, limit, count)
        return 0.5 * float(
            (self.f.M * (bias * self.f.optimum**2 + spread)).sum()
        )

    def drawn_excess(
        self, step: float, count: int, noise: float, drawn: Streams
    ) -> float:
        """f(w_K) for w_K drawn from its law."""
        visits = np.full(len(self.q), count)
        if self.q.min() < 1:
            visits = drawn.sampling.multinomial(count, self.q)
        contraction = 1 - step * self.f.M / self.inverse_step
        bias = contraction**visits
        growth = (1 - bias**2) / (1 - contraction**2)
        spread = self._noise_move(step, noise) * np.sqrt(growth)
        error = -bias * self.f.optimum + spread * gaussian(
            drawn.noise, len(self.q)
        )
        return 0.5 * float((self.f.M * error**2).sum())

    def run_solver(
        self, step: float, count: int, noise: float, rows: int, drawn: Streams
    ) -> float:
        """Excess of a run of the solver; each of its records stands for n / rows."""
        solver: Any = dp_skgd
        options: Any = dp_skgd.Options(blocks=1)
        if self.name == "DP-SGD":
            solver = dp_sgd
            options = dp_sgd.Options(batch=rows)
        elif self.name != "DP-SkGD full":
            probabilities = (
                "importance" if self.name in IMPORTANCE else "uniform"
            )
            options = dp_skgd.Options(probabilities=probabilities)
        problem = self.f.problem(rows)
        multiplier = noise * rows / self.n
        settings = BatchedSettings(
            np.full(1, step), np.full(1, self.f.lipschitz), multiplier
        )
        run = solver.Run(problem, settings, drawn, options, total=count)
        run.advance(count)
        return float(problem.objective(run.weights)[0])

    def tuned(self, unit: float) -> tuple[float, int, float]:
        """The step, number of steps and expected excess of the best run.

        Short steps and long runs approach a limit, since the noise of K releases is
        sqrt(K) times that of one, ``unit``. So the shortest run within 2 % of the least
        excess is taken; it lies inside the grid.
        """
        counts = np.unique(
            np.geomspace(1, MAX_STEPS, 120).astype(np.int64)
        ).tolist()
        tried = {
            (count, step): self.expected_excess(
                step, count, unit * math.sqrt(count)
            )
            for step, count in product(map(float, STEPS), counts)
        }
        least_excess = min(tried.values())
        close = (
            (setting, excess)
            for setting, excess in tried.items()
            if excess <= 1.02 * least_excess
        )
        (count, step), excess = min(
            close, key=lambda candidate: (candidate[0][0], candidate[1])
        )
        return step, count, excess

    def terms(self) -> dict[str, float]:
        """The terms of Table 1, mu = min M."""
        M = self.f.M
        w = self.f.optimum
        L = self.f.lipschitz
        d = len(self.f.M)
        size = float((self.share**2 / M).sum())
        condition = float((M / self.q).max())
        noise = L**2 * size
        radius = M / self.q * w**2
        strong = noise * condition / float(M.min())
        if self.name == "DP-SGD":
            noise = L**2 * d
            radius = w**2
            strong = L**2 * d / float(M.min())
        if (
            self.name == "DP-CD"
        ):  # strong convexity in the norm of M, which is 1 here
            strong = noise * d
        return {
            "convex": math.sqrt(noise * float(radius.sum())),
            "strong": strong,
        }
