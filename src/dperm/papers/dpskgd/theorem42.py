"""Theorem 4.2 of Maranjyan et al. 2024 at its own K, T, step, average and noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from dperm.papers.dpskgd import theory
from dperm.papers.dpskgd.instances import Pairs
from dperm.privacy.accountants.tight import gaussian_epsilon
from dperm.privacy.noise import Streams
from dperm.solvers.batched import BatchedSettings, dp_skgd

CASES = ("convex", "strongly convex")
BASE = "single"
AGAIN = "single again"  # a control: other seeds alone
_RANDOM = {"blocks": 4, "partition": "random"}
SAMPLINGS: dict[str, dict[str, Any]] = {
    BASE: {},
    AGAIN: {},
    "single IS": {"probabilities": "importance"},
    "4 blocks": {"blocks": 4},
    "4 blocks IS": {"blocks": 4, "probabilities": "importance"},
    **{
        f"4 random blocks, {seed}": {**_RANDOM, "seed": seed}
        for seed in (1, 2, 3)
    },
    "full": {"blocks": 1},
}
# K over the theorem's, from which the best is taken
LENGTHS = 2.0 ** np.arange(-8, 2)
_STATE = 4  # two errors and two running sums of a pair


@dataclass(frozen=True)
class Theorem42:
    """Parameters of the theorem, and its bounds."""

    row: float  #: of Table 1, without the factors common to all
    #: inner, periods: K and T; both have to be at least 1
    inner: float
    periods: float
    bound: float  #: of the expected excess, as printed in Appendix E
    #: bound by the recursion there with this K and T; in the strongly convex case the
    #: printed bound has half of its second term, 2 E||C sigma||^2 = 48 (1 + ...) T ...
    proved: float

    @property
    def epochs(self) -> float:
        """The smaller of K and T: below 1 there is nothing to run."""
        return min(self.inner, self.periods)

    @property
    def counts(self) -> tuple[int, int]:
        """K and T as whole numbers, at least 1."""
        return max(1, round(self.inner)), max(1, round(self.periods))


def multiplier(count: int, epsilon: float, n: float) -> float:
    """Noise of Theorem 4.1 over the sensitivity 2 L_S / n, delta = 1 / n^2."""
    return math.sqrt(6 * count * math.log(n)) / epsilon


def true_epsilon(epsilon: float, n: float) -> float:
    """True epsilon of Theorem 4.1's noise, the same for any number of releases."""
    return gaussian_epsilon(1 / multiplier(1, epsilon, n), n**-2.0)


@dataclass(frozen=True)
class Algorithm:
    """Algorithm 1 with Gamma = P M^-1, M that of Assumption 3.6, on an instance."""

    f: Pairs
    sketch: dp_skgd.SketchLaw  #: of its problem; a partition

    @classmethod
    def of(cls, f: Pairs, sampling: str) -> Algorithm:
        """The algorithm with a sampling of ``SAMPLINGS``."""
        options = dp_skgd.Options(**SAMPLINGS[sampling])
        return cls(f, dp_skgd.SketchLaw(f.problem, options))

    @property
    def noise_size(self) -> float:
        """Sigma_S^2, with L_S the clip of S."""
        clips = self.f.clip * dp_skgd.shares(
            self.f.smoothness, self.sketch.sets
        )
        return theory.noise_size(self.sketch, self.f.dominating, clips)

    def terms(self, case: str, n: float, epsilon: float) -> Theorem42:
        """K, T and the bounds, delta = 1 / n^2; ``case`` is one of ``CASES``.

        K of the convex case and T of the other are the printed ones. The first omits a
        factor 12, the second a factor 24 that the printed bound has.
        """
        f = self.f
        sketch = self.sketch
        size = self.noise_size
        M = f.dominating
        rate = 2 * math.log(n) / (n * epsilon) ** 2
        if case == "convex":
            radius = theory.weighted(f.w, M / sketch.probability)
            inner = radius / math.sqrt(size * rate)
            row = math.sqrt(size) * radius
            bound = 13 * row * math.sqrt(rate)
            return Theorem42(row, inner, 1.0, bound, bound)
        condition = float((M / sketch.probability).max()) / f.convexity
        level = (1 + condition) * size * rate
        periods = math.log2(f.start / level)
        bound = 24 * level * (1 + max(0.0, math.log2(f.start / (24 * level))))
        proved = level * (1 + 48 * max(0.0, periods))
        return Theorem42(
            condition * size, 2 * (1 + condition), periods, bound, proved
        )

    def n_needed(self, case: str, epsilon: float) -> float:
        """Number of records at which the bound equals the excess of w = 0."""

        def above(log_n: float) -> float:
            """Logarithm of the bound over the excess at w = 0."""
            bound = self.terms(case, math.exp(log_n), epsilon).bound
            return math.log(bound / self.f.start)

        ends = math.log(4.0), math.log(2.0**60)
        return math.exp(scipy.optimize.brentq(above, *ends))

    def best_inner(self, inner: int, n: float, epsilon: float) -> int:
        """The best K of one period, among ``LENGTHS`` times ``inner``.

        It is the least K within 2 % of the least expected excess, since longer runs may
        approach a limit.
        """
        counts = sorted({max(1, round(inner * length)) for length in LENGTHS})
        excesses = {
            count: self.expected_excess(
                (count, 1), multiplier(count, epsilon, n), n
            )
            for count in counts
        }
        close = 1.02 * min(excesses.values())
        return min(
            count for count, excess in excesses.items() if excess <= close
        )

    def run(
        self, counts: tuple[int, int], noise: float, n: float, drawn: Streams
    ) -> float:
        """Excess of one run of the solver with this K, T and noise.

        Parameters are those of ``expected_excess``; a record of the design stands for
        n / p of them.
        """
        f = self.f
        (inner, periods) = counts
        options = replace(self.sketch.options, periods=periods)
        settings = BatchedSettings(
            np.ones(1), np.full(1, f.clip), noise * f.p / n
        )
        steps = inner * periods
        engine = dp_skgd.Run(f.problem, settings, drawn, options, total=steps)
        engine.divisor = f.dominating
        engine.advance(steps)
        return float(f.problem.objective(engine.weights)[0])

    def expected_excess(
        self, counts: tuple[int, int], noise: float, n: float
    ) -> float:
        """E[f(w^T) - f*], exactly, by second moments.

        Where nothing is clipped a pair's errors follow a random linear map in each
        step. So the second moments of the iterate and of its running sum follow a fixed
        linear map; its K-th power takes 2 log2(K) products of small matrices.

        Parameters
        ----------
        counts : tuple of int
            K and T.
        noise : float
            Multiplier of the sensitivity 2 C_S / n.
        n : float
            Records.
        """
        inner, periods = counts
        total = 0.0
        for pair in range(len(self.f.M)):
            # one step on the moments (row by row) and a constant 1, shape (17, 17)
            step_matrix = np.zeros((_STATE**2 + 1, _STATE**2 + 1))
            step_matrix[-1, -1] = 1.0
            idle_chance = 1.0
            for chance, touched, deviation in self._touches(pair, noise, n):
                idle_chance -= chance
                onto = touched / self.f.dominating[2 * pair : 2 * pair + 2]
                keeps = np.eye(2) - onto[:, None] * self.f.hessian(pair)
                moves = np.block(
                    [[keeps, np.zeros((2, 2))], [keeps, np.eye(2)]]
                )
                added = np.tile(np.diag((onto * deviation) ** 2), (2, 2))
                step_matrix[:-1, :-1] += chance * np.kron(moves, moves)
                step_matrix[:-1, -1] += chance * added.ravel()
            idle = np.block(
                [[np.eye(2), np.zeros((2, 2))], [np.eye(2), np.eye(2)]]
            )
            step_matrix[:-1, :-1] += idle_chance * np.kron(idle, idle)
            power = np.linalg.matrix_power(step_matrix, inner)
            error = self.f.optimum[pair] * np.array([-1.0, 1.0])
            squares = np.outer(error, error)
            for _ in range(periods):
                state = np.zeros((_STATE, _STATE))
                state[:2, :2] = squares
                moved = power @ np.append(state.ravel(), 1.0)
                squares = moved[:-1].reshape(_STATE, _STATE)[2:, 2:] / inner**2
            total += 0.5 * float((self.f.hessian(pair) * squares).sum())
        return total

    def _touches(
        self, pair: int, noise: float, n: float
    ) -> Iterator[tuple[float, np.ndarray, float]]:
        """For each set that touches a pair: chance, which of the two, noise."""
        shares = dp_skgd.shares(self.f.smoothness, self.sketch.sets)
        deviations = noise * 2 * self.f.clip / n * shares
        coordinates = np.array([2 * pair, 2 * pair + 1])
        sets = zip(self.sketch.q, self.sketch.sets, deviations, strict=True)
        for q, members, deviation in sets:
            touched = np.isin(coordinates, members).astype(float)
            if touched.any():
                yield float(q), touched, float(deviation)
