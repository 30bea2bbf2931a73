"""DP-FW: the private Frank-Wolfe method of Talwar, Thakurta and Zhang 2015.

The baseline of Lou and Cheung 2020, with all data in one place. Each step finds the
vertex of the l1 ball of radius r by report noisy max over its 2 p vertices, scores
-r s g_j + Laplace, and moves by gamma_t = 2 / (t + 2). Data are clipped to public
bounds, so that one record moves a score by at most 2 r G / n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dperm.erm.bounds import clip_problem, record_bound
from dperm.erm.columns import Columns
from dperm.erm.problem import Problem
from dperm.privacy.ledger import Ledger
from dperm.privacy.mechanisms import Streams, signed_noisy_max
from dperm.privacy.noisy_max import NoisyMax
from dperm.solvers.frank_wolfe.bcfw import step_size
from dperm.solvers.frank_wolfe.iterate import iterate

_SOURCE = "Talwar, Thakurta and Zhang 2015, Algorithm 2"


@dataclass(frozen=True)
class Options:
    """The set, and the public bounds on the data.

    Attributes
    ----------
    radius : float
        r of the l1 ball.
    entry_bound, label_bound : float
        Entries and labels are clipped to them.
    """

    radius: float = 1.0
    entry_bound: float = 1.0
    label_bound: float = 1.0

    def __post_init__(self) -> None:
        for key in ("radius", "entry_bound", "label_bound"):
            if not getattr(self, key) > 0:
                raise ValueError(f"options.{key}: expected positive")


def steps(problem: Problem, passes: float, options: Options) -> int:
    """Steps in so many passes: each reads all coordinates."""
    return max(1, round(passes))


def valid_lipschitz(problem: Problem, options: Options) -> float:
    """G = B (B r + Y) for least squares: a record's largest partial derivative."""
    bounds = (options.entry_bound, options.label_bound)
    return record_bound(problem.loss, *bounds, options.entry_bound * options.radius)


def published_lipschitz(problem: Problem) -> float:
    """G as Theorem 4 of Lou and Cheung 2020 has it: the gradient's sup norm, at x = 0.

    It is read off the data and bounds the mean of the records, not one of them.
    """
    start = iterate(problem)
    return float(np.abs(start.gradient()).max())


def sensitivity(problem: Problem, options: Options) -> float:
    """Replace-one change 2 r G / n of a score."""
    return 2.0 * options.radius * valid_lipschitz(problem, options) / problem.n


def events(
    problem: Problem, count: int, scale: float, options: Options
) -> tuple[NoisyMax]:
    """One selection a step with Laplace noise of that scale."""
    unit = "a vertex's inner product with the gradient"
    return (NoisyMax(sensitivity(problem, options), scale, count, unit, _SOURCE),)


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = "paper",
) -> Ledger:
    """One selection a step, its noise that multiple of the sensitivity."""
    scale = noise_multiplier * sensitivity(problem, options)
    return Ledger(events(problem, count, scale, options))


def published_scale(
    problem: Problem,
    count: int,
    options: Options,
    epsilon: float,
    delta: float,
    lipschitz: float,
) -> float:
    """L1 r sqrt(8 T log(1/delta)) / (n epsilon), as published.

    Parameters
    ----------
    count : int
        T.
    lipschitz : float
        L1: ``valid_lipschitz``, or what a paper takes for it.
    """
    root = math.sqrt(8 * count * math.log(1 / delta))
    return lipschitz * options.radius * root / (problem.n * epsilon)


def lane_bytes(problem: Problem) -> int:
    """Margins (n), x, gradient, its parts and the noise of all vertices (p)."""
    return 8 * (problem.n + 8 * problem.p)


class Run:
    """A run of DP-FW.

    Parameters
    ----------
    problem : Problem
    streams : Streams
        Only the noise stream is used.
    options : Options
    scale : float
        Of the Laplace noise of a score; 0 gives FW.
    columns : Columns
        Of the clipped design, if they were made before.

    Attributes
    ----------
    chosen : list of ndarray
        Signed index +-(j + 1) of each step; the sign is the noisy gradient's.
    """

    def __init__(
        self,
        problem: Problem,
        streams: Streams,
        options: Options,
        scale: float,
        columns: Columns | None = None,
    ):
        clip = clip_problem(problem, options.entry_bound, options.label_bound)
        self.at = iterate(clip, columns)
        self.streams, self.options, self.scale = streams, options, scale
        self.chosen: list[np.ndarray] = []
        self.largest = 0.0

    @property
    def weights(self) -> np.ndarray:
        """x, shape (1, p)."""
        return self.at.x[None, :]

    def advance(self, count: int) -> None:
        """Take ``count`` more steps."""
        for _ in range(count):
            gamma = step_size(len(self.chosen), 1.0)
            j, sign = self._select(self.options.radius * self.at.gradient())
            self.at.combine(gamma, np.array([j]), np.array([-sign * self.radius]))
            self.chosen.append(np.array([sign * (j + 1)]))
            self.largest = max(self.largest, self.at.l1_norm)

    @property
    def radius(self) -> float:
        """Size of a vertex."""
        return self.options.radius

    def _select(self, scores: np.ndarray) -> tuple[int, int]:
        return signed_noisy_max(scores, self.scale, self.streams.noise)
