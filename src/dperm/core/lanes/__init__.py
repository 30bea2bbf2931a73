"""Solvers of a composite problem: many settings advance together, in lanes.

A module of this family implements :class:`Solver`, and its runs :class:`LaneRun`;
:class:`Block` is a base class for runs. The module declares which problems it supports:
``SPARSE = True`` where A may be a sparse matrix, and ``refuses(options, asked)`` for
other limits (:mod:`dperm.core.solvers.capabilities`).
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
    """Hyper-parameter settings that run together."""

    #: shape (L,); step size as a multiple of 1/M_j (coordinate steps) or 1/beta (record
    #: steps)
    step: np.ndarray
    clip: np.ndarray  #: shape (L,); clipping threshold C; infinity only without noise
    #: noise scale over replace-one sensitivity; 0 for the non-private method
    noise_multiplier: float
    #: accountant that set the noise, such as ``paper`` or ``strict``
    calibration: str = PAPER

    def take(self, index: Any) -> Lanes:
        """The lanes selected by an index array, mask or slice."""
        return Lanes(
            self.step[index], self.clip[index], self.noise_multiplier, self.calibration
        )

    def noise_scale(self, sensitivity: np.ndarray) -> np.ndarray:
        """Noise scale for a sensitivity; without noise 0, even for an infinite one."""
        if self.noise_multiplier == 0:
            return np.zeros_like(sensitivity)
        return self.noise_multiplier * sensitivity


class LaneRun(Protocol):
    """State of a block of lanes during a run."""

    @property
    def weights(self) -> np.ndarray:
        """Weights of the lanes, shape (L, p)."""

    @property
    def released(self) -> np.ndarray:
        """Everything released of each lane in the last step, shape (L, k).

        It holds all values published with noise, and what follows from them: often the
        weights alone. A solver that selects appends the one-hot vector of its choice.
        """

    def advance(self, count: int) -> None:
        """Take ``count`` more steps in every lane; splitting them changes no bit."""

    def keep(self, mask: np.ndarray) -> None:
        """Drop the lanes outside the mask."""


class Solver(Protocol):
    """Interface of a module of this family."""

    Options: type  # a dataclass of the keys under ``options`` in its YAML

    def steps(self, problem: Problem, passes: float, options: Any) -> int:
        """Number of steps in a number of passes, at least 1."""

    def ledger(
        self,
        problem: Problem,
        count: int,
        noise_multiplier: float,
        options: Any,
        calibration: str = PAPER,
    ) -> Ledger:
        """The releases of ``count`` steps, listed before anything runs."""

    def lane_bytes(self, problem: Problem) -> int:
        """Memory of one lane in bytes; it determines the size of blocks."""

    def Run(  # noqa: N802 - a class
        self,
        problem: Problem,
        lanes: Lanes,
        streams: Streams,
        options: Any,
        workers: int = 1,
        total: int = 0,
    ) -> LaneRun:
        """Lanes before their first step; ``total`` is the length of the whole run."""


class Block:
    """Base class of runs."""

    names: tuple[str, ...] = ("weights",)  #: the arrays whose rows are lanes
    weights: np.ndarray  #: shape (L, p)

    @property
    def released(self) -> np.ndarray:
        """The weights, for solvers that release nothing else in a step."""
        return self.weights

    def keep(self, mask: np.ndarray) -> None:
        """Drop the lanes outside the mask."""
        for name in self.names:
            setattr(self, name, getattr(self, name)[mask])
