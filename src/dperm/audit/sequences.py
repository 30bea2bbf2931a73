"""Subjects whose runs say release by release what they let go of.

These are the families ``frank_wolfe`` and ``streams``: an iterator over the releases is
all that is asked of a run, and its weights at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dperm.audit.subjects import DELTA, Array, Order, Records, Subject
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import Problem, build
from dperm.core.privacy.mechanisms import Streams
from dperm.solvers import streams as family
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import Rows


@dataclass(frozen=True)
class SequenceNeeds:
    """What an audit of a solver of these families needs."""

    n: int = 16
    #: exponents of the balls and dimensions, each a subject of its own
    balls: tuple[tuple[float, int], ...] = ((2.0, 3),)
    radius: float = 0.25
    loss: str = "linear"
    positions: tuple[int, ...] = (0, 15)  #: records worth replacing
    cost: int = 1  #: by how much fewer runs are made of it
    #: options that fit the small data
    options: Mapping[str, Any] = field(default_factory=dict)
    #: steps, numbers: see ``FrankWolfeSubject``
    steps: int = 4
    numbers: int = 0
    epsilon: float = 0.0  #: target at least, where a small one leaves candidates no gap
    #: other needs that are tried, by name
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reason: str = ""  #: why no attack reaches the bound


class SequenceSubject(Subject):
    """A solver whose run is an iterator of releases, on one ball.

    Parameters
    ----------
    p : float
        Exponent of the ball.
    d : int
        Its dimension.
    """

    def __init__(self, at: Order, needs: SequenceNeeds, p: float, d: int):
        self.name = f"{at.name}, p = {p:g}" if len(needs.balls) > 1 else at.name
        self.module, self.options = at.module, replace(at.options, **needs.options)
        self.setup, self.n = Setup(needs.loss, p, d, needs.radius), needs.n
        self.delta, self.epsilon = DELTA, max(at.epsilon, needs.epsilon)
        self.calibration, self.reason = at.kind, needs.reason
        self.positions, self.cost = needs.positions, needs.cost
        self.kind, self.base = at.module.Run, small_stream(needs.n, d)

    @cached_property
    def claimed_epsilon(self) -> float:
        """The target: these papers print their noise for it."""
        return self.epsilon

    def symbol(self, view: Array) -> tuple[int, ...]:
        """The vertex taken: the one entry of the first d, with its sign."""
        vertex = view[: self.setup.d]
        large = np.abs(vertex) > 0.5 * np.abs(vertex).max(initial=0.0)
        return tuple((np.sign(vertex) * large).astype(int).tolist())


class StreamSubject(SequenceSubject):
    """A solver over a stream of records; ``source`` may be a broken one."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.source: Any = Rows
        self.target = family.Target(self.epsilon, self.delta, self.calibration)
        noise = self.module.noise(self.setup, self.n, self.target, self.options)
        self.ledger = noise.ledger

    def start(self, data: Records, generators: Streams) -> AbstractContextManager[Any]:
        """One setup with one target."""
        part = family.Part(self.setup, [self.target], generators)
        source = self.source(data.X, data.y)
        return nullcontext(self.kind([part], source, self.n, self.options))

    def releases(self, run: Any) -> Iterator[Array]:
        """Its releases as they are."""
        return run.releases()

    def published(self, run: Any) -> Array:
        """The only target's point, (d,)."""
        return run.weights[0][0]


class FrankWolfeSubject(SequenceSubject):
    """A Frank-Wolfe method on a finite sum, least squares.

    It makes ``needs.steps`` steps, or as many as are ordered if that is less. A release
    may have ``needs.numbers`` numbers beside its signed index.
    """

    def __init__(self, at: Order, needs: SequenceNeeds, p: float, d: int):
        super().__init__(at, needs, p, d)
        self.steps = min(at.steps or needs.steps, needs.steps)
        self.numbers = needs.numbers
        goal = (self.options, self.epsilon, self.delta, self.calibration)
        self.noise = self.module.noise(self._problem(self.base), self.steps, *goal)
        self.ledger = self.noise.ledger

    def start(self, data: Records, generators: Streams) -> AbstractContextManager[Any]:
        """The noise is that of the base: its scales are public."""
        return self.kind(self._problem(data), generators, self.options, self.noise)

    def releases(self, run: Any) -> Iterator[Array]:
        """The vertex that a release's signed index names, and its numbers."""
        for release in run.releases(self.steps):
            yield as_vertex(release, self.setup.d, self.numbers)

    def published(self, run: Any) -> Array:
        """The iterate."""
        return run.weights

    def _problem(self, data: Records) -> Problem:
        goal = (self.epsilon, self.delta)
        source = Rows(data.X, data.y)
        return build("audit", source.X, source.y, "least_squares", Penalty(), *goal)


def as_vertex(release: Array, d: int, numbers: int) -> Array:
    """A release +-(j + 1), x, y, ... as +-e_j in d dimensions and so many numbers."""
    signed, rest = float(release[0]), np.zeros(numbers)
    rest[: release.size - 1] = release[1:]
    return np.concatenate([np.sign(signed) * np.eye(d)[abs(int(signed)) - 1], rest])


def small_stream(n: int, d: int) -> Records:
    """Records with labels of both signs."""
    X = np.random.default_rng(3).uniform(0.5, 1.5, (n, d))
    return Records(X, np.where(np.arange(n) % 3 == 0, -1.0, 1.0))
