"""Theorem 4.2 of Maranjyan et al. 2024 at its own K, T, step, average and noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from dperm.core.lanes import Lanes, dp_skgd
from dperm.core.privacy.mechanisms import Streams
from dperm.core.privacy.strict import gaussian_epsilon
from dperm.papers.dpskgd.moments import expected_excess
from dperm.papers.dpskgd.pairs import Pairs

CASES = ("convex", "strongly convex")
BASE, AGAIN = "single", "single again"  # a control: the same law on other seeds
SAMPLINGS: dict[str, dict[str, Any]] = {
    BASE: {},
    AGAIN: {},
    "single IS": {"probabilities": "importance"},
    "4 blocks": {"blocks": 4},
    "4 blocks IS": {"blocks": 4, "probabilities": "importance"},
    **{f"4 random blocks, {number}": {"blocks": 4, "partition": "random",
                                      "seed": number} for number in (1, 2, 3)},
    "full": {"blocks": 1},
}  # fmt: skip
LENGTHS = 2.0 ** np.arange(-8, 2)  # of K over the theorem's, among which the best is


@dataclass(frozen=True)
class Terms:
    """What the theorem sets, and what it promises.

    Attributes
    ----------
    row, tight : float
        Of Table 1, without the factors common to all rows; ``tight`` is DP-CD's row
        where single coordinates are drawn uniformly, which is DP-CD.
    inner, periods : float
        K and T; both have to be at least 1.
    bound : float
        Of the expected excess, as printed in Appendix E.
    proved : float
        What the recursion there gives with this K and T. In the strongly convex case
        the print has half of its second term, 2 E||C sigma||^2 = 48 (1 + ...) T ...
    """

    row: float
    tight: float
    inner: float
    periods: float
    bound: float
    proved: float

    @property
    def epochs(self) -> float:
        """The smaller of K and T: below 1 there is nothing to run."""
        return min(self.inner, self.periods)

    @property
    def counts(self) -> tuple[int, int]:
        """Whole K and T."""
        return max(1, round(self.inner)), max(1, round(self.periods))


def sketch_of(f: Pairs, sampling: str) -> dp_skgd.Sketch:
    """A sampling of ``SAMPLINGS`` on an instance."""
    return dp_skgd.Sketch(f.problem, dp_skgd.Options(**SAMPLINGS[sampling]))


def noise_size(f: Pairs, sketch: dp_skgd.Sketch) -> float:
    """Sigma_S^2 = E[L_S^2 sum_{j in S} 1 / (p_j M_j)], with L_S the clip of S."""
    M, chances = f.dominating, sketch.probability
    bounds = f.clip * dp_skgd.shares(f.smoothness, sketch.sets)
    return sum(
        float(q * L**2 * (1.0 / (chances[S] * M[S])).sum())
        for q, L, S in zip(sketch.q, bounds, sketch.sets, strict=True)
    )


def terms(
    f: Pairs, sketch: dp_skgd.Sketch, case: str, n: float, epsilon: float
) -> Terms:
    """K, T and the bounds, delta = 1 / n^2; ``case`` is one of ``CASES``.

    K of the convex case and T of the other are the printed ones: the first leaves a 12
    out, the second a 24 that the printed bound has.
    """
    size, M = noise_size(f, sketch), f.dominating
    rate = 2 * math.log(n) / (n * epsilon) ** 2
    if case == "convex":
        radius = math.sqrt(float((M / sketch.probability * f.w**2).sum()))
        inner = radius / math.sqrt(size * rate)
        row = math.sqrt(size) * radius
        bound = 13 * row * math.sqrt(rate)
        return Terms(row, row, inner, 1.0, bound, bound)
    condition = float((M / sketch.probability).max()) / f.convexity
    level = (1 + condition) * size * rate
    periods = math.log2(f.start / level)
    bound = 24 * level * (1 + max(0.0, math.log2(f.start / (24 * level))))
    proved = level * (1 + 48 * max(0.0, periods))
    tight = size * f.p / float((f.flatness * f.smoothness[::2] / M[::2]).min())
    row = condition * size
    kept = tight if sketch.single and np.ptp(sketch.q) == 0 else row
    return Terms(row, kept, 2 * (1 + condition), periods, bound, proved)


def n_needed(f: Pairs, sketch: dp_skgd.Sketch, case: str, epsilon: float) -> float:
    """Records with which the bound is as low as the excess of w = 0."""

    def above(log_n: float) -> float:
        return math.log(
            terms(f, sketch, case, math.exp(log_n), epsilon).bound / f.start
        )

    return math.exp(scipy.optimize.brentq(above, math.log(4.0), math.log(2.0**60)))


def multiplier(count: int, epsilon: float, n: float) -> float:
    """Noise of Theorem 4.1 over the sensitivity 2 L_S / n, delta = 1 / n^2."""
    return math.sqrt(6 * count * math.log(n)) / epsilon


def true_epsilon(epsilon: float, n: float) -> float:
    """What Theorem 4.1's noise costs, however many releases there are."""
    return gaussian_epsilon(1 / multiplier(1, epsilon, n), n**-2.0)


def best_inner(
    f: Pairs, sketch: dp_skgd.Sketch, inner: int, n: float, epsilon: float
) -> int:
    """The K of one period with the least expected excess, of multiples of a given one.

    The least K within 2 % of it: longer runs may approach a limit.
    """
    counts = sorted({max(1, round(inner * length)) for length in LENGTHS})
    found = {
        count: expected_excess(f, sketch, (count, 1), multiplier(count, epsilon, n), n)
        for count in counts
    }
    least = min(found.values())
    return min(count for count, excess in found.items() if excess <= 1.02 * least)


class AsPrinted(dp_skgd.Run):
    """Algorithm 1 with Gamma = P M^-1, M that of Assumption 3.6."""

    dominating: np.ndarray

    def __init__(self, *given: Any, **named: Any):
        super().__init__(*given, **named)
        self.step[:] = 1.0 / self.dominating


def run(
    f: Pairs,
    sketch: dp_skgd.Sketch,
    counts: tuple[int, int],
    noise: float,
    n: float,
    drawn: Streams,
) -> float:
    """Excess of one run of the solver, with K and T given and so much noise.

    Parameters are those of ``moments.expected_excess``; a record of the design stands
    for n / p of them.
    """
    inner, periods = counts
    options = replace(sketch.options, periods=periods)
    lanes = Lanes(np.ones(1), np.full(1, f.clip), noise * f.p / n)
    kind = type("Run", (AsPrinted,), {"dominating": f.dominating})
    made = kind(f.problem, lanes, drawn, options, total=inner * periods)
    made.advance(inner * periods)
    return float(f.problem.objective(made.weights)[0])
