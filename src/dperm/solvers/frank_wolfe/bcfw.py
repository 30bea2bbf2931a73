"""BCFW: block-coordinate Frank-Wolfe under arbitrary sampling (Lou and Cheung 2020).

Algorithm 1. Each step samples a random set S of coordinates, finds the vertex of the
constraint set that the gradient on S favours, and moves by the universal step
gamma_t = 2 / (p_min t + 2), p_min the smallest chance of a coordinate to be in S.

The algorithm is stated for a product set M_1 x ... x M_p, but used for the l1 ball,
which is not one. ``constraint: box`` is the product [-r, r]^p, where only sampled
coordinates move. ``constraint: ball`` is the l1 ball of radius r: the vertex is an atom
+-r e_j with j in S, and all of x shrinks (shrinking the sampled part leaves the ball).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dperm.privacy.accountants import PUBLISHED
from dperm.privacy.events import Ledger
from dperm.privacy.noise import Streams
from dperm.problems.problem import Problem
from dperm.solvers.distributed.columns import Columns, box_step, edges
from dperm.solvers.frank_wolfe import (
    FrankWolfe,
    Noise,
    require_calibration,
    silent,
)
from dperm.solvers.frank_wolfe.iterate import GradientIterate, Iterate, iterate
from dperm.solvers.options import at_least, one_of, positive

SAMPLINGS = (
    "elementary",
    "uniform_serial",
    "tau_nice",
    "distributed",
    "importance",
)
CONSTRAINTS = ("box", "ball")
VERTICES = ("one", "published", "feasible")


@dataclass(frozen=True)
class Options:
    """Choices of Algorithm 1."""

    #: {"elementary", "uniform_serial", "tau_nice", "distributed", "importance"}; all
    #: coordinates; one, drawn uniformly; tau of them; tau of each node's block; one,
    #: drawn half of the time by its share of sum_j ||a_j||^2 and half uniformly
    sampling: str = "elementary"
    #: coordinates per draw (per node for ``distributed``); all if there are fewer
    tau: int = 1
    nodes: int = 1  #: K: blocks of equal size, as far as p allows
    #: {"box", "ball"}; [-r, r]^p or the l1 ball of radius r
    constraint: str = "ball"
    radius: float = 1.0  #: r
    #: {"one", "published", "feasible"}; on the ball: the best atom of S; or the best of
    #: each node's part of S, summed as published (||x||_1 up to K r), or averaged
    #: (||x||_1 up to r)
    vertices: str = "one"
    p_min: float | None = None  #: of the step size; None: that of the sampling

    def __post_init__(self) -> None:
        one_of("sampling", self.sampling, SAMPLINGS)
        one_of("constraint", self.constraint, CONSTRAINTS)
        one_of("vertices", self.vertices, VERTICES)
        at_least(self, 1, "tau", "nodes")
        positive(self, "radius")
        if self.p_min is not None and not 0 < self.p_min <= 1:
            raise ValueError(
                f"options.p_min: expected in (0, 1], found {self.p_min}"
            )


def steps(problem: Problem, passes: float, options: Options) -> int:
    """Number of steps; each pass samples p coordinates."""
    sampled = probabilities(options, Columns(problem.A)).sum()
    return max(1, round(passes * problem.p / sampled))


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = PUBLISHED,
) -> Ledger:
    """List the steps as releases without noise."""
    return silent(count).ledger


def noise(
    problem: Problem,
    count: int,
    options: Options,
    epsilon: float,
    delta: float,
    calibration: str = "none",
) -> Noise:
    """No noise, whatever the target."""
    require_calibration(calibration)
    return silent(count)


def step_size(t: int, p_min: float) -> float:
    """2 / (p_min t + 2), the universal step of iteration t = 0, 1, ..."""
    return 2.0 / (p_min * t + 2.0)


def probabilities(options: Options, columns: Columns) -> np.ndarray:
    """Chance of each coordinate to be sampled, shape (p,).

    For the (K, tau)-distributed sampling it is tau over the size of the node's block;
    Table III prints its square, the chance of a pair.
    """
    p = columns.p
    if options.sampling == "elementary":
        return np.ones(p)
    if options.sampling == "uniform_serial":
        return np.full(p, 1.0 / p)
    if options.sampling == "tau_nice":
        return np.full(p, min(options.tau, p) / p)
    if options.sampling == "importance":
        share = columns.square_norms / max(columns.square_norms.sum(), 1e-300)
        return 0.5 * share + 0.5 / p
    sizes = np.diff(edges(p, options.nodes))
    return np.repeat(np.minimum(options.tau, sizes) / sizes, sizes)


def sampler(
    options: Options, columns: Columns
) -> Callable[[Streams], np.ndarray]:
    """A function that draws S from the sampling stream, as increasing indices."""
    p = columns.p
    tau = options.tau
    everything = np.arange(p)
    cumulated = np.cumsum(probabilities(options, columns))

    def some(rng: np.random.Generator, low: int, high: int) -> np.ndarray:
        """``tau`` blocks of a range, in order, each set equally likely."""
        if tau >= high - low:
            return everything[low:high]
        return low + np.sort(
            rng.choice(high - low, tau, replace=False, shuffle=False)
        )

    def drawn(streams: Streams) -> np.ndarray:
        """The blocks of the next step."""
        rng: np.random.Generator = streams.sampling
        if options.sampling == "elementary":
            return everything
        if options.sampling == "uniform_serial":
            return rng.integers(0, p, 1)
        if options.sampling == "tau_nice":
            return some(rng, 0, p)
        if options.sampling == "importance":
            place = np.searchsorted(
                cumulated, rng.random() * cumulated[-1], side="right"
            )
            return np.array([min(place, p - 1)])
        node_edges = itertools.pairwise(edges(p, options.nodes))
        return np.concatenate(
            [some(rng, low, high) for low, high in node_edges]
        )

    return drawn


class Run(FrankWolfe):
    """A run of Algorithm 1; it draws from the sampling stream alone, without noise."""

    def __init__(
        self,
        problem: Problem,
        streams: Streams,
        options: Options,
        noise: Noise,
        columns: Columns | None = None,
    ):
        box = options.constraint == "box"
        self.iterate = (Iterate if box else iterate)(problem, columns)
        super().__init__(self.iterate.x)
        self.problem = problem
        self.streams = streams
        self.options = options
        self.move = self._box if box else self._ball
        chances = probabilities(options, self.iterate.columns)
        self.p_min = options.p_min or float(chances.min())
        self.sample = sampler(options, self.iterate.columns)
        self.starts = edges(problem.p, options.nodes)
        self.done = 0
        self.vertex = options.radius
        if options.vertices == "feasible":
            self.vertex /= options.nodes

    def _step(self) -> Iterator[np.ndarray]:
        """Yield the moved coordinates of the box, or the signed vertex indices."""
        sampled = self.sample(self.streams)
        released = self.move(sampled, step_size(self.done, self.p_min))
        self.done += 1
        yield released

    def _box(self, sampled: np.ndarray, gamma: float) -> np.ndarray:
        """Line 7: each sampled coordinate moves towards its own end of [-r, r]."""
        iterate = self.iterate
        radius = self.options.radius
        u = self.problem.derivatives(iterate.margins)
        box_step(
            *iterate.columns.arrays,
            sampled,
            u,
            radius,
            gamma,
            iterate.x,
            iterate.products,
        )
        return iterate.x[sampled]

    def _ball(self, sampled: np.ndarray, gamma: float) -> np.ndarray:
        """Move towards the best atoms among the sampled coordinates."""
        gradient = self._gradient(sampled)
        groups = [np.arange(len(sampled))]
        if self.options.vertices != "one":
            places = np.searchsorted(sampled, self.starts)
            ends = itertools.pairwise(places)
            groups = [np.arange(low, high) for low, high in ends]
        best = np.array(
            [
                member[np.argmax(np.abs(gradient[member]))]
                for member in groups
                if len(member)
            ]
        )
        signs = np.where(gradient[best] > 0.0, 1, -1)
        self.iterate.combine(gamma, sampled[best], -self.vertex * signs)
        self.chosen.append(signs * (sampled[best] + 1))
        return self.chosen[-1]

    def _gradient(self, sampled: np.ndarray) -> np.ndarray:
        if (
            isinstance(self.iterate, GradientIterate)
            or len(sampled) == self.problem.p
        ):
            return self.iterate.gradient()[sampled]
        columns = Columns(self.iterate.columns.matrix[:, sampled])
        return (
            columns.products(self.problem.derivatives(self.iterate.margins))
            / self.problem.n
        )
