"""DP-FW: the private Frank-Wolfe method of Talwar, Thakurta and Zhang 2015.

The baseline of Lou and Cheung 2020, with all data in one place. Each step finds the
vertex of the l1 ball of radius r by report noisy max over its 2 p vertices, with scores
-r s g_j + Laplace noise, and moves by gamma_t = 2 / (t + 2). Data are clipped to public
bounds, so that one record moves a score by at most 2 r G / n.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from dperm.privacy.accountants import PUBLISHED, TIGHT
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.calibration import calibrate
from dperm.privacy.events import GRADIENT, Ledger
from dperm.privacy.mechanisms.noisy_max import NoisyMax
from dperm.privacy.noise import Streams, signed_noisy_max
from dperm.problems.problem import Problem
from dperm.solvers.distributed.bounds import clip_problem, record_bound
from dperm.solvers.distributed.columns import Columns
from dperm.solvers.frank_wolfe import (
    FrankWolfe,
    Noise,
    require_calibration,
    silent,
)
from dperm.solvers.frank_wolfe.bcfw import step_size
from dperm.solvers.frank_wolfe.iterate import Iterate, iterate
from dperm.solvers.options import positive

#: The setting without tuning, and the values that a search tries: steps, and the radius
#: as a multiple of the label's scale.
DEFAULT = {"steps": 10, "radius": 1}
GRID = {"steps": [3, 10], "radius": [0.1, 0.3, 1, 3]}


@dataclass(frozen=True)
class Options:
    """Radius of the ball, and public bounds on the data."""

    radius: float = 1.0  #: r of the l1 ball
    #: entry_bound, label_bound: entries and labels are clipped to them
    entry_bound: float = 1.0
    label_bound: float = 1.0

    def __post_init__(self) -> None:
        positive(self, "radius", "entry_bound", "label_bound")

    @property
    def reach(self) -> float:
        """The largest ||x||_1: r."""
        return self.radius


def steps(problem: Problem, passes: float, options: Options) -> int:
    """Number of steps; each pass is one step, which reads all coordinates."""
    return max(1, round(passes))


def valid_lipschitz(problem: Problem, options: Any) -> float:
    """G = B (B R + Y) for least squares: a record's largest partial derivative.

    R is the largest ||x||_1, the options' ``reach``.
    """
    bounds = (options.entry_bound, options.label_bound)
    return record_bound(
        problem.loss, *bounds, options.entry_bound * options.reach
    )


def published_lipschitz(problem: Problem) -> float:
    """G of Theorem 4 of Lou and Cheung 2020: the gradient's sup norm at x = 0.

    It is read off the data and bounds the records' mean, not a single record.
    """
    return float(np.abs(Iterate(problem).gradient()).max())


def sensitivity(problem: Problem, options: Options) -> float:
    """Replace-one change 2 r G / n of a score."""
    return 2.0 * options.radius * valid_lipschitz(problem, options) / problem.n


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = PUBLISHED,
) -> Ledger:
    """One selection per step, with noise in units of the sensitivity."""
    moved = sensitivity(problem, options)
    event = selections(moved, noise_multiplier * moved, count)
    return Ledger((event,), given=problem.given)


def noise(
    problem: Problem,
    count: int,
    options: Options,
    epsilon: float,
    delta: float,
    calibration: str = PUBLISHED,
) -> Noise:
    """Talwar et al.'s scale L r sqrt(8 T log(1/delta)) / (n epsilon), or the least.

    For L, ``published`` and ``valid`` use a bound on a record's share; ``stated`` and
    ``scaled`` use the value that Lou and Cheung 2020 print.
    """
    require_calibration(calibration)
    if calibration == "none" or math.isinf(epsilon):
        return silent(count)
    moved = sensitivity(problem, options)
    assumptions = problem.given
    if calibration == TIGHT:
        scale = least_multiplier(count, epsilon, delta) * moved
    else:
        L = valid_lipschitz(problem, options)
        if calibration in ("stated", "scaled"):
            L = published_lipschitz(problem)
            assumptions = (*assumptions, GRADIENT)
        root = published_root(count, delta)
        scale = L * options.radius * root / (problem.n * epsilon)
    event = selections(moved, scale, count)
    true = selections_epsilon(count, event.pure, delta)
    return Noise(Ledger((event,), given=assumptions), scale, 0.0, true)


class Run(FrankWolfe):
    """A run of DP-FW, by the noise stream; without noise it is FW.

    Columns, if they were made before, are those of the clipped design.
    """

    def __init__(
        self,
        problem: Problem,
        streams: Streams,
        options: Options,
        noise: Noise,
        columns: Columns | None = None,
    ):
        if columns is None:
            bounds = (options.entry_bound, options.label_bound)
            problem = clip_problem(problem, *bounds)
        else:  # nothing else reads the design
            bound = options.label_bound
            problem = replace(
                problem, offset=problem.offset.clip(-bound, bound)
            )
        self.iterate = iterate(problem, columns)
        super().__init__(self.iterate.x)
        self.streams = streams
        self.vertex = options.radius
        self.scale = noise.index_scale

    def _step(self) -> Iterator[np.ndarray]:
        """Yield the signed index of the vertex chosen by the noisy gradient."""
        gamma = step_size(len(self.chosen), 1.0)
        scores = self.vertex * self.iterate.gradient()
        j, sign = signed_noisy_max(scores, self.scale, self.streams.noise)
        self.iterate.combine(
            gamma, np.array([j]), np.array([-sign * self.vertex])
        )
        self.chosen.append(np.array([sign * (j + 1)]))
        yield self.chosen[-1]


PURE_EPSILON = 2.0  # of a selection; from here adding costs at most 1/3 more
# Epsilon beyond which the exact value is not computed
MAX_EXACT_EPSILON = 100.0
_UNIT = "a vertex's inner product with the gradient"
_SOURCE = "Talwar, Thakurta and Zhang 2015, Algorithm 2"


def selections(moved: float, scale: float, count: int) -> NoisyMax:
    """``count`` selections; replacing a record moves each score by ``moved``."""
    return NoisyMax(moved, scale, count, _UNIT, _SOURCE)


def published_root(count: int, delta: float) -> float:
    """sqrt(8 T log(1/delta)); times L r / (n epsilon) it is Talwar et al.'s scale.

    L bounds a record's largest partial derivative, r the l1 norm of the vertices.
    """
    return math.sqrt(8 * count * math.log(1 / delta))


@cache
def least_multiplier(count: int, epsilon: float, delta: float) -> float:
    """Least noise over sensitivity of ``count`` selections by a sound accountant.

    If one may cost more than ``PURE_EPSILON``, joint composition gains little, and pure
    epsilons are added.
    """
    if epsilon / count > PURE_EPSILON:
        return 2 * count / epsilon

    def of(multiplier: float) -> Ledger:
        return Ledger((selections(1.0, multiplier, count),))

    with np.errstate(over="ignore"):  # tilted masses may become infinite
        return calibrate(of, epsilon, delta, TIGHT).noise_multiplier


@cache
def selections_epsilon(count: int, pure: float, delta: float) -> float:
    """True epsilon of selections; beyond ``MAX_EXACT_EPSILON`` pure ones are added."""
    if count * pure > MAX_EXACT_EPSILON:
        return count * pure
    return true_epsilon(Ledger((selections(pure, 2.0, count),)), delta)
