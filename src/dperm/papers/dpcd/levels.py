r"""DP-CD with smoothness constants that are estimated from private releases alone.

Two Gaussian releases come before Algorithm 1, each of all features at once:

- the number of values of each feature on each level, :math:`|x_{ij}| \in (2^{k-1},
  2^k]`; the highest level whose count exceeds what noise alone may show gives the bound
  B_j of the feature;
- the means of :math:`\min(x_{ij}^2, B_j^2) / B_j^2`; the M_j are these times B_j^2 and
  the loss's curvature.

Replacing a record takes one value of each feature from a level and adds one to another,
so the counts move by :math:`\sqrt{2 p}` at most, and the means by :math:`\sqrt p / n`.
Both are Gaussian, as Algorithm 1's are, and all compose exactly. The module has the
interface of ``dperm.solvers.batched.dp_cd_priv`` and needs dense features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from dperm.privacy.accountants import TIGHT
from dperm.privacy.accountants.tight import gaussian_epsilon
from dperm.privacy.calibration import smallest
from dperm.privacy.events import Gaussian, Ledger
from dperm.privacy.noise import Streams, gaussian
from dperm.problems.problem import Problem
from dperm.solvers import options as checks
from dperm.solvers.batched import BatchedSettings, dp_cd
from dperm.solvers.batched.dp_cd import bytes_per_setting, steps

__all__ = ["Options", "Run", "bytes_per_setting", "ledger", "steps"]

# 1e-6 to 1e9; values outside count at the ends
LEVELS = np.exp2(np.arange(-20, 31))
# Standard deviations of noise that a count must exceed
CERTAIN_DEVIATIONS = 4.0


@dataclass(frozen=True)
class Options(dp_cd.Options):
    """DP-CD's options and the cost of the constants."""

    #: of epsilon, that both releases together would cost alone, with all of delta
    share: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.share(self, "share")


def events(problem: Problem, options: Options) -> tuple[Gaussian, Gaussian]:
    """The release of the counts and that of the means, at equal cost."""
    alone = _multiplier(options.share * problem.epsilon, problem.delta)
    multiplier = math.sqrt(2) * alone
    p = problem.p
    source = "not in the paper"
    counts = math.sqrt(2 * p)
    means = math.sqrt(p) / problem.n
    return (
        Gaussian(counts, multiplier * counts, 1, "records on a level", source),
        Gaussian(
            means, multiplier * means, 1, "mean of squares over B_j^2", source
        ),
    )


@cache
def _multiplier(epsilon: float, delta: float) -> float:
    """Noise multiplier of one Gaussian release, to a relative error of 1e-6."""
    return smallest(lambda z: gaussian_epsilon(1 / z, delta), epsilon, 1e-6)


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = TIGHT,
) -> Ledger:
    """Counts and means, then DP-CD's releases; no quantity of the data is given."""
    after = dp_cd.ledger(problem, count, noise_multiplier, options)
    return Ledger((*events(problem, options), *after.events))


def counted(A: np.ndarray) -> np.ndarray:
    """Number of values of each feature on each level, (p, levels)."""
    places = np.searchsorted(LEVELS[:-1], np.abs(A))
    size = len(LEVELS)
    return np.array(
        [
            np.bincount(column_levels, minlength=size)
            for column_levels in places.T
        ],
        dtype=float,
    )


def clipped_means(A: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Means of the squares in units of the squared bounds, at most 1; (p,)."""
    means: np.ndarray = np.minimum((A / bounds) ** 2, 1.0).mean(axis=0)
    return means


def estimated(
    problem: Problem, streams: Streams, options: Options
) -> np.ndarray:
    """The private M_j, (p,)."""
    counting, averaging = events(problem, options)
    counts = counted(problem.A)
    counts = counts + counting.scale * gaussian(
        streams.smoothness, counts.shape
    )
    holds = counts > CERTAIN_DEVIATIONS * counting.scale
    top = np.where(
        holds.any(axis=1), len(LEVELS) - 1 - holds[:, ::-1].argmax(1), 0
    )
    bounds = LEVELS[top]
    means = clipped_means(problem.A, bounds)
    means = means + averaging.scale * gaussian(streams.smoothness, problem.p)
    return (
        problem.loss.curvature * bounds**2 * np.maximum(means, averaging.scale)
    )


class Run(dp_cd.Run):
    """DP-CD that steps and clips by the estimated constants."""

    def smoothness(self, settings: BatchedSettings) -> np.ndarray:
        """Noisy M_j, one release for all settings of the run; shape (p,).

        Raises
        ------
        ValueError
            For a sparse matrix.
        """
        if self.problem.is_sparse:
            raise ValueError(
                f"problem {self.problem.name}: expected dense features"
            )
        return estimated(self.problem, self.streams, self.options)
