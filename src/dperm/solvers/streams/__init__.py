"""Methods for stochastic convex optimisation, which read records from a stream.

A solver module of this family is a :class:`Solver`; its ``Run`` derives from
:class:`Stream`. Nothing here depends on files, grids or seeds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dperm.core.privacy.ledger import Ledger, NonPrivate
from dperm.core.privacy.mechanisms import Streams
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


@runtime_checkable
class Solver(Protocol):
    """Interface of a solver module of this family.

    ``Options`` is a dataclass of the keys allowed under ``options`` in its YAML.
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
    """A run on a stream of records: L targets side by side, which share their noise.

    Parameters
    ----------
    setup : Setup
    targets : sequence of Target
    streams : Streams
    source : Source
        At its first record.
    n : int
        Size of the data set.
    options : the solver's

    Attributes
    ----------
    scales : ndarray, shape (L, k)
        The noise of each target, as the solver defines it.
    x : ndarray, shape (L, d)
        The point of each target, 0 at first.
    """

    noise_of: Callable[[Setup, int, Target, Any], Noise]  #: the module's ``noise``

    def __init__(
        self,
        setup: Setup,
        targets: Sequence[Target],
        streams: Streams,
        source: Source,
        n: int,
        options: Any,
    ):
        self.setup, self.targets, self.streams = setup, targets, streams
        self.source, self.n, self.options = source, n, options
        found = [self.noise_of(setup, n, target, options) for target in targets]
        self.scales = np.array([noise.scales for noise in found])
        self.x = np.zeros((len(targets), setup.d))

    @property
    def weights(self) -> np.ndarray:
        """The points of the targets, (L, d)."""
        return self.x

    @abstractmethod
    def releases(self) -> Iterator[np.ndarray]:
        """Run the algorithm; yield the targets' releases as they are made, flat."""

    def solve(self) -> np.ndarray:
        """Run the algorithm and return the points released at the end, (L, d)."""
        for _ in self.releases():
            pass
        return self.weights
