"""Methods for stochastic convex optimisation, which read records from a stream.

A solver module of this family is a :class:`Solver`; its ``Run`` derives from
:class:`Stream`. Nothing here depends on files, grids or seeds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dperm.core.privacy.ledger import Ledger, NonPrivate
from dperm.core.privacy.mechanisms import Streams, streams
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import Source


@dataclass(frozen=True)
class Target:
    """A privacy target and how its noise is found."""

    epsilon: float  #: infinity runs without noise
    delta: float
    #: {"paper", "strict", "none"}; the noise as published, the least that a sound
    #: accountant allows, or none
    calibration: str


@dataclass(frozen=True)
class Noise:
    """A target's noise and what it costs."""

    ledger: Ledger  #: of the releases that one record takes part in
    scales: tuple[float, ...]  #: as the solver defines them; 0 without noise


def silent(scales: int = 1) -> Noise:
    """No noise: the given number of scales, all 0."""
    bare = NonPrivate(1, "a release that reads the record", "without noise")
    return Noise(Ledger((bare,)), (0.0,) * scales)


class Part(NamedTuple):
    """Targets that run side by side on one setup and share its noise."""

    setup: Setup
    targets: Sequence[Target]
    streams: Streams

    def apart(self) -> Iterator[Part]:
        """Yield a part for every target, each with its own noise."""
        for target in self.targets:
            own = streams(int(self.streams.smoothness.integers(2**62)))
            yield Part(self.setup, (target,), own)


@runtime_checkable
class Solver(Protocol):
    """Interface of a solver module of this family.

    ``Options`` is a dataclass of the keys allowed under ``options`` in its YAML.
    ``Run`` is made as ``Run(parts, source, n, options)``, with all parts of one
    dimension and n the size of the data set. ``ALONE = True``, if present, states that
    ``Run`` takes one part with one target.
    """

    Options: type
    Run: type[Stream]

    def ledger(
        self, setup: Setup, n: int, scales: tuple[float, ...], options: Any
    ) -> Ledger:
        """Ledger of the costliest record under noise of those scales."""

    def noise(self, setup: Setup, n: int, target: Target, options: Any) -> Noise:
        """The noise for a target."""


class Stream(ABC):
    """A run on a stream of records."""

    @property
    @abstractmethod
    def weights(self) -> list[np.ndarray]:
        """Points of the targets of each part, (L, d)."""

    @abstractmethod
    def releases(self) -> Iterator[np.ndarray]:
        """Run the algorithm; yield the first part's releases as they are made, flat."""

    def solve(self) -> list[np.ndarray]:
        """Run the algorithm and return the points released at the end."""
        for _ in self.releases():
            pass
        return self.weights


def solve(
    solver: Any,
    parts: Sequence[Part],
    fresh: Callable[[], Source],
    n: int,
    options: Any,
) -> list[np.ndarray]:
    """Points that a solver releases for every target, (L, d) per part.

    Parameters
    ----------
    solver : module
        A :class:`Solver`.
    fresh : callable
        Returns the source at its first record; called once, or once per target if the
        solver takes one at a time.
    n : int
        Size of the data set.
    options : Options
        Of the solver.
    """
    if not getattr(solver, "ALONE", False):
        found: list[np.ndarray] = solver.Run(parts, fresh(), n, options).solve()
        return found
    return [
        np.concatenate(
            [solver.Run([one], fresh(), n, options).solve()[0] for one in part.apart()]
        )
        for part in parts
    ]
