"""Methods for stochastic convex optimisation, which read records from a stream.

A solver module of this family has

- ``Options``, a dataclass of the keys allowed under ``options`` in its YAML,
- ``noise(setup, n, target, options)``, the :class:`TargetNoise` for a target,
- ``Run``, a :class:`Stream`.

Nothing here depends on files, grids or seeds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dperm.privacy.events import Ledger, NonPrivate
from dperm.privacy.noise import Streams
from dperm.solvers.single_pass.setup import Setup
from dperm.solvers.single_pass.sources import RecordSource, chunks

Records = tuple[np.ndarray, ...]  # rows, labels, factors


@dataclass(frozen=True)
class Target:
    """A privacy target and how its noise is found."""

    epsilon: float  #: infinity runs without noise
    delta: float
    #: {"published", "tight", "none"}; the noise as published, the least that a sound
    #: accountant allows, or none
    calibration: str


@dataclass(frozen=True)
class TargetNoise:
    """A target's noise and what it costs."""

    ledger: Ledger  #: of the releases that the costliest record takes part in
    scales: tuple[float, ...]  #: as the solver defines them; 0 without noise


@dataclass(frozen=True)
class Options:
    """No options, for a method that leaves nothing open."""


def silent(scales: int = 1) -> TargetNoise:
    """No noise: the given number of scales, all 0."""
    bare = NonPrivate(1, "a release that reads the record", "without noise")
    return TargetNoise(Ledger((bare,)), (0.0,) * scales)


@dataclass(eq=False)
class Stream(ABC):
    """A run on a stream of records: L targets side by side, which share their noise.

    Attributes
    ----------
    scales : ndarray, shape (L, k)
        The noise of each target, as the solver defines it.
    x : ndarray, shape (L, d)
        The point of each target, 0 at first.
    """

    setup: Setup
    targets: Sequence[Target]
    streams: Streams
    source: RecordSource  #: at its first record
    n: int  #: size of the data set
    options: Any  #: the solver's

    noise_of: ClassVar[Callable[..., TargetNoise]]  #: the module's ``noise``

    def __post_init__(self) -> None:
        arguments = (self.setup, self.n)
        noises = [
            self.noise_of(*arguments, to, self.options) for to in self.targets
        ]
        self.scales = np.array([noise.scales for noise in noises])
        self.x = np.zeros((len(self.targets), self.setup.d))

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

    def records(self, count: int) -> Iterator[Records]:
        """The next records, in batches, with factors that give them unit l_q norm."""
        for size in chunks(count, self.source.d):
            batch = self.source.take(size)
            yield (*batch, self.source.factors(batch, self.setup.q))

    def sums(
        self, kernel: Any, records: Iterable[Records], *points: np.ndarray
    ) -> np.ndarray:
        """Sums over records of what a kernel of ``gradients`` computes at points."""
        totals = np.zeros_like(self.x)
        compiled = self.setup.compiled(kernel)
        for batch in records:
            compiled(*batch, self.setup.lipschitz, *points, totals)
        return totals
