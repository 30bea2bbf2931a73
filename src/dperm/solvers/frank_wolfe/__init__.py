"""Frank-Wolfe methods on a finite sum, on all data or on distributed features.

A solver module of this family has

- ``Options``, a dataclass of the keys allowed under ``options`` in its YAML,
- ``steps(problem, passes, options)``, the number of steps of some passes,
- ``ledger(problem, count, noise_multiplier, options, calibration)``, that of ``count``
  steps with noise in units of the sensitivity,
- ``noise(problem, count, options, epsilon, delta, calibration)``, the :class:`Noise` of
  ``count`` steps for a target,
- ``Run(problem, streams, options, noise, columns=None)``, a :class:`FrankWolfe`; the
  columns are those of the design as the solver reads it, if already made.

Nothing here depends on files, grids or seeds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from dperm.privacy.accountants import PUBLISHED, TIGHT
from dperm.privacy.events import Ledger, NonPrivate

# ``none``: no noise. ``tight``: the least that a sound accountant allows.
# ``published``: the scale of the solver's paper. The others are readings of that scale
# by Lou and Cheung 2020, where the paper leaves it open. ``stated`` uses the G they
# print, with noise on the gradient as in their line 7. ``scaled`` adds it to the radius
# times the gradient, for which it is derived. ``valid`` uses a G that bounds a record's
# share.
CALIBRATIONS = ("none", PUBLISHED, "stated", "scaled", "valid", TIGHT)


@dataclass(frozen=True)
class Noise:
    """The noise of a run, and its privacy cost."""

    ledger: Ledger
    index_scale: float = 0.0  #: of the Laplace noise of a score
    #: of the Gaussian noise of a sketched feature's entries
    sketch_scale: float = 0.0
    #: by a sound accountant, or an upper bound of that; infinity without noise
    true_epsilon: float = math.inf
    #: {"radius", "gradient"}; a score is the radius times a partial derivative, or the
    #: derivative alone
    scores: str = "radius"


def silent(count: int, scores: str = "radius") -> Noise:
    """No noise: ``count`` steps without privacy."""
    return Noise(
        Ledger((NonPrivate(count, "a step", "without noise"),)), scores=scores
    )


def require_calibration(calibration: str) -> None:
    """Refuse a calibration that this family does not have."""
    if calibration not in CALIBRATIONS:
        raise ValueError(
            f"calibration: expected one of {', '.join(CALIBRATIONS)}, "
            f"found {calibration!r}"
        )


class FrankWolfe(ABC):
    """A run in progress; it closes at the end of a ``with`` block.

    Attributes
    ----------
    x : ndarray, shape (p,)
        The iterate.
    chosen : list of ndarray
        Signed indices +-(j + 1) of the vertices of each step. The sign is that of the
        gradient; the vertex has the opposite one.
    released : list of ndarray
        Releases of the last step, in order.
    largest : float
        Largest ||x||_1 so far.
    """

    vertex: float  #: size of a vertex's only non-zero entry

    def __init__(self, x: np.ndarray) -> None:
        self.x = x
        self.chosen: list[np.ndarray] = []
        self.released: list[np.ndarray] = []
        self.largest = 0.0

    @property
    def weights(self) -> np.ndarray:
        """x, shape (1, p)."""
        return self.x[None, :]

    @abstractmethod
    def _step(self) -> Iterator[np.ndarray]:
        """Take a step, yielding each release as it is made, flat."""

    def releases(self, count: int) -> Iterator[np.ndarray]:
        """Take ``count`` more steps; yield each release as it is made."""
        for _ in range(count):
            self.released = []
            for release in self._step():
                self.released.append(release)
                yield release
            self.largest = max(self.largest, float(np.abs(self.x).sum()))

    def advance(self, count: int) -> None:
        """Take ``count`` more steps."""
        for _ in self.releases(count):
            pass

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Free the resources that the run holds outside itself."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
