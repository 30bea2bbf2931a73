"""Solvers of a composite problem: many settings advance together, in lanes.

A module of this family keeps what :class:`Solver` says, its runs what :class:`LaneRun`
says; :class:`Block` is a start for a run of one's own. What it can work with it
declares: ``SPARSE = True`` where A may be a sparse matrix, ``CENTRED = True`` where it
may be a :class:`~dperm.core.erm.centred.Centred`, and ``refuses(options, asked)`` for
what is left (:mod:`dperm.core.solvers.capabilities`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from dperm.core.erm.problem import Problem
    from dperm.core.privacy.ledger import Ledger
    from dperm.core.privacy.mechanisms import Streams


from dperm.core.calibrations import PAPER


@dataclass(frozen=True)
class Lanes:
    """Hyper-parameter settings that run side by side."""

    #: shape (L,); step size as a multiple of 1/M_j (coordinate steps) or 1/beta (record
    #: steps)
    step: np.ndarray
    clip: np.ndarray  #: shape (L,); clipping threshold C; infinity only without noise
    #: noise scale over replace-one sensitivity; 0 for the non-private method
    noise_multiplier: float
    #: which formulas the noise comes from, ``paper`` or ``strict``
    calibration: str = PAPER

    def take(self, index: Any) -> Lanes:
        """The lanes of an index array, mask or slice."""
        return Lanes(
            self.step[index], self.clip[index], self.noise_multiplier, self.calibration
        )

    def noise_scale(self, sensitivity: np.ndarray) -> np.ndarray:
        """Noise scale for a sensitivity; 0 where neither noise nor clip is."""
        if self.noise_multiplier == 0:
            return np.zeros_like(sensitivity)
        return self.noise_multiplier * sensitivity


class LaneRun(Protocol):
    """A block of lanes under way."""

    @property
    def weights(self) -> np.ndarray:
        """Weights of the lanes, shape (L, p)."""

    @property
    def released(self) -> np.ndarray:
        """What became known of each lane in the last step, shape (L, k).

        Everything that left with noise, and what follows from it: the weights, if that
        is all; a solver that selects ends with the one-hot vector of its choice.
        """

    def advance(self, count: int) -> None:
        """Take ``count`` more steps in every lane; in pieces or at once, to the bit."""

    def keep(self, mask: np.ndarray) -> None:
        """Drop the lanes outside the mask."""


class Solver(Protocol):
    """What a module of this family offers."""

    Options: type  # a dataclass of what its YAML may hold under ``options``

    def steps(self, problem: Problem, passes: float, options: Any) -> int:
        """How many steps that many passes are, at least 1."""

    def ledger(
        self,
        problem: Problem,
        count: int,
        noise_multiplier: float,
        options: Any,
        calibration: str = PAPER,
    ) -> Ledger:
        """What ``count`` steps release, as data, before anything runs."""

    def lane_bytes(self, problem: Problem) -> int:
        """Memory of one lane; blocks are sized by it."""

    def Run(  # noqa: N802 - a class
        self,
        problem: Problem,
        lanes: Lanes,
        streams: Streams,
        options: Any,
        workers: int = 1,
        total: int = 0,
    ) -> LaneRun:
        """Lanes at their start; ``total`` is the number of steps of the whole run."""


class Block:
    """What runs need not write again."""

    names: tuple[str, ...] = ("weights",)  #: the arrays whose rows are lanes
    weights: np.ndarray  #: shape (L, p)

    @property
    def released(self) -> np.ndarray:
        """The weights, where nothing else becomes known in a step."""
        return self.weights

    def keep(self, mask: np.ndarray) -> None:
        """Drop the lanes outside the mask."""
        for name in self.names:
            setattr(self, name, getattr(self, name)[mask])
