"""Subjects whose runs say release by release what they let go of.

These are the families ``frank_wolfe`` and ``streams``: an iterator over the releases is
all that is asked of a run, and its weights at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from dperm.audit.subjects import Array, Records, Subject
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import Problem, build
from dperm.core.privacy.mechanisms import Streams
from dperm.solvers import streams as family
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import Rows


@dataclass(frozen=True)
class Trial:
    """A solver of these families on a small setup, and the target of its noise.

    Attributes
    ----------
    name : str
    module : module of the solver
    options : its Options
    setup : Setup
    n : int
    epsilon, delta : float
    calibration : {"paper", "strict"}
    positions : tuple of int
        Records worth replacing.
    cost : int
        By how much fewer runs are made of it.
    reason : str
        Why no attack reaches the bound.
    """

    name: str
    module: ModuleType
    options: Any
    setup: Setup
    n: int
    epsilon: float
    delta: float
    calibration: str
    positions: tuple[int, ...]
    cost: int = 1
    reason: str = ""


class SequenceSubject(Subject):
    """A solver whose run is an iterator of releases."""

    def __init__(self, at: Trial):
        self.at, self.name, self.reason = at, at.name, at.reason
        self.calibration = at.calibration
        self.delta, self.epsilon = at.delta, at.epsilon
        self.positions, self.cost = at.positions, at.cost
        self.kind, self.base = at.module.Run, small_stream(at.n, at.setup.d)

    @cached_property
    def claimed_epsilon(self) -> float:
        """The target: these papers print their noise for it."""
        return self.at.epsilon

    def symbol(self, view: Array) -> tuple[int, ...]:
        """The vertex taken: the one entry of the first d, with its sign."""
        vertex = view[: self.at.setup.d]
        large = np.abs(vertex) > 0.5 * np.abs(vertex).max(initial=0.0)
        return tuple((np.sign(vertex) * large).astype(int).tolist())


class StreamSubject(SequenceSubject):
    """A solver over a stream of records; ``source`` may be a broken one."""

    def __init__(self, at: Trial):
        super().__init__(at)
        self.source: Any = Rows
        self.target = family.Target(at.epsilon, at.delta, at.calibration)
        noise = at.module.noise(at.setup, at.n, self.target, at.options)
        self.ledger = noise.ledger

    def start(self, data: Records, own: Streams) -> AbstractContextManager[Any]:
        """One setup with one target."""
        part = family.Part(self.at.setup, [self.target], own)
        source = self.source(data.X, data.y)
        return nullcontext(self.kind([part], source, self.at.n, self.at.options))

    def releases(self, run: Any) -> Iterator[Array]:
        """Its releases as they are."""
        return run.releases()

    def published(self, run: Any) -> Array:
        """The only target's point, (d,)."""
        return run.weights[0][0]


class FrankWolfeSubject(SequenceSubject):
    """A Frank-Wolfe method on a finite sum, least squares.

    Parameters
    ----------
    at : Trial
    steps : int
    numbers : int
        How many numbers a release may have beside its signed index.
    """

    def __init__(self, at: Trial, steps: int, numbers: int = 0):
        super().__init__(at)
        self.steps, self.numbers = steps, numbers
        goal = (at.options, at.epsilon, at.delta, at.calibration)
        self.noise = at.module.noise(self._problem(self.base), steps, *goal)
        self.ledger = self.noise.ledger

    def start(self, data: Records, own: Streams) -> AbstractContextManager[Any]:
        """The noise is that of the base: its scales are public."""
        return self.kind(self._problem(data), own, self.at.options, self.noise)

    def releases(self, run: Any) -> Iterator[Array]:
        """The vertex that a release's signed index names, and its numbers."""
        for release in run.releases(self.steps):
            yield as_vertex(release, self.at.setup.d, self.numbers)

    def published(self, run: Any) -> Array:
        """The iterate."""
        return run.weights

    def _problem(self, data: Records) -> Problem:
        goal = (self.at.epsilon, self.at.delta)
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
