"""Phased SGD on a loss without smoothness, smoothed in one dimension.

Proposition 7.3 has the rate and the time of an algorithm that it cites and does not
print (Kulkarni, Lee and Liu 2021), which smooths a loss in all d dimensions. This is
another one. A loss phi(<x, w>) is smoothed where it bends: phi_r(v), the mean of phi
over [v - r, v + r], has a closed form, stays 1-Lipschitz and convex, bends by at most
phi_r'' = bend / (2 r), and phi <= phi_r <= phi + bend r / 4. With r as large as phased
SGD's step needs, its guarantee for smooth losses holds as it stands, the error of
smoothing is of its own order, and the time stays linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dperm.solvers.streams import Part, phased_sgd
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.smoothed import smoothed_steps
from dperm.solvers.streams.sources import Source

BENDS = {"absolute": 2.0, "hinge": 1.0}  # how far phi' jumps


@dataclass(frozen=True)
class Options:
    """Which loss: |<x, w> - y| or max(0, 1 - y <x, w>), the label being -1 or 1.

    Attributes
    ----------
    loss : {"absolute", "hinge"}
    """

    loss: str


def setup_of(setup: type[Setup], p: float, d: int, radius: float) -> Setup:
    """A setup whose loss has what both have: slopes up to 1, and no cap on the step."""
    return setup("linear", p, d, radius)


def smoothing(loss: str, eta: np.ndarray) -> np.ndarray:
    """The least r at which a step is no longer than 2 / smoothness = 4 r / bend."""
    return eta * BENDS[loss] / 4


def slopes(loss: str, scores: np.ndarray, labels: np.ndarray, r: float) -> np.ndarray:
    """phi_r' in the score; shapes (n,)."""
    if loss == "absolute":
        return np.clip((scores - labels) / r, -1.0, 1.0)
    return -labels * np.clip((1 - labels * scores + r) / (2 * r), 0.0, 1.0)


def risk(loss: str, means: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Population risk of each row of W (L, d), a record being a coordinate's coin.

    The row is e_j, j uniform; the label is 1 with chance (1 + means_j) / 2, else -1.
    """
    up, down = (1 + means) / 2, (1 - means) / 2
    if loss == "absolute":
        return (up * np.abs(W - 1) + down * np.abs(W + 1)).mean(axis=1)
    return (up * np.maximum(0, 1 - W) + down * np.maximum(0, 1 + W)).mean(axis=1)


def excess(loss: str, means: np.ndarray, W: np.ndarray) -> np.ndarray:
    """The same less its least value, at the signs of the means, inside the ball."""
    best = np.where(means < 0, -1.0, 1.0)[None, :]
    return risk(loss, means, np.atleast_2d(W)) - risk(loss, means, best)[0]


class Run(phased_sgd.Run):
    """All targets of all parts on one stream; setups of ``setup_of``."""

    def __init__(self, parts: Sequence[Part], source: Source, n: int, options: Options):
        super().__init__((), source, n, phased_sgd.Options())
        self.parts = [_Part(part, n, options) for part in parts]


class _Part(phased_sgd._Part):
    """The targets of one setup, each with a smoothing of its own."""

    def __init__(self, part: Part, n: int, options: Options):
        super().__init__(part, n, phased_sgd.Options())
        self.hinge = options.loss == "hinge"
        self.width = smoothing(options.loss, self.eta)

    def steps(self, lane: int, rows: Any, labels: Any, factors: Any, *at: Any) -> int:
        """Steps of a lane on its own smoothing."""
        rules = (self.shape, self.setup.p, self.setup.radius)
        how = (self.hinge, self.width[lane], *rules)
        found: int = smoothed_steps(rows, labels, factors, *how, *at)
        return found
