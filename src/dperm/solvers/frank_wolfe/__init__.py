"""Frank-Wolfe methods on a finite sum, on all data or on distributed features.

A solver module of this family is a :class:`Solver`; its ``Run`` derives from
:class:`FrankWolfe`. Nothing here knows of files, grids or seeds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from dperm.core.calibrations import PAPER, STRICT
from dperm.core.erm.problem import Problem
from dperm.core.privacy.ledger import Ledger, NonPrivate

CALIBRATIONS = ("none", PAPER, "stated", "scaled", "valid", STRICT)


@dataclass(frozen=True)
class Noise:
    """What a run is noised with, and what that costs."""

    ledger: Ledger
    index_scale: float = 0.0  #: of the Laplace noise of a score
    sketch_scale: float = 0.0  #: of the Gaussian noise of a sketched feature's entries
    #: under a sound accountant, or an upper bound of it; infinity without noise
    true_epsilon: float = math.inf
    #: {"radius", "gradient"}; what a score is: the radius times a partial derivative,
    #: or that alone
    scores: str = "radius"


def silent(count: int, scores: str = "radius") -> Noise:
    """No noise: ``count`` steps that nothing hides."""
    return Noise(Ledger((NonPrivate(count, "a step", "without noise"),)), scores=scores)


def require_calibration(calibration: str) -> None:
    """Refuse a calibration that is none of this family's."""
    if calibration not in CALIBRATIONS:
        raise ValueError(
            f"calibration: expected one of {', '.join(CALIBRATIONS)}, "
            f"found {calibration!r}"
        )


@runtime_checkable
class Solver(Protocol):
    """What a module of this family offers.

    ``Options`` is a dataclass of the keys its YAML may hold under ``options``, ``Run``
    is made as ``Run(problem, streams, options, noise, columns=None)``; ``columns`` are
    those of the design as the solver reads it, if they were made before.
    """

    Options: type
    Run: type[FrankWolfe]

    def steps(self, problem: Problem, passes: float, options: Any) -> int:
        """How many steps that many passes are."""

    def ledger(
        self,
        problem: Problem,
        count: int,
        noise_multiplier: float,
        options: Any,
        calibration: str,
    ) -> Ledger:
        """The privacy of ``count`` steps, noise in units of the sensitivity."""

    def noise(
        self,
        problem: Problem,
        count: int,
        options: Any,
        epsilon: float,
        delta: float,
        calibration: str,
    ) -> Noise:
        """The noise of ``count`` steps for a target.

        ``none``: none. ``strict``: the least that a sound accountant allows. ``paper``:
        as the solver's paper has it. Others: the same scale as read by Lou and Cheung
        2020, where the paper leaves it open: with the G they print, added to the
        gradient as in their line 7 (``stated``) or to the radius times the gradient,
        for which it is made (``scaled``), or with a G that bounds a record's share
        (``valid``).
        """


class FrankWolfe(ABC):
    """A run under way; it lets go of what it holds at the end of a ``with``.

    Attributes
    ----------
    chosen : list of ndarray
        Signed indices +-(j + 1) of the vertices of each step, the sign that of the
        gradient: a vertex lies on the other side.
    released : list of ndarray
        What left in the last step, in order.
    largest : float
        Of ||x||_1 so far.
    """

    vertex: float  #: size of a vertex's one entry in the move

    def __init__(self) -> None:
        self.chosen: list[np.ndarray] = []
        self.released: list[np.ndarray] = []
        self.largest = 0.0

    @property
    @abstractmethod
    def weights(self) -> np.ndarray:
        """x, shape (1, p)."""

    @abstractmethod
    def _step(self) -> Iterator[np.ndarray]:
        """Take a step, yielding each release as it is made, flat."""

    def releases(self, count: int) -> Iterator[np.ndarray]:
        """Take ``count`` more steps; each release as it is made."""
        for _ in range(count):
            self.released = []
            for release in self._step():
                self.released.append(release)
                yield release

    def advance(self, count: int) -> None:
        """Take ``count`` more steps."""
        for _ in self.releases(count):
            pass

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Let go of what the run holds outside itself."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
