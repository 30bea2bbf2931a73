"""What a run's releases cost on one pair of data sets, from their laws, from below.

A release is a pair of probability vectors over the same cells, on D and on D'. Cells
are a coarser output, which only hides something: every number is a lower bound up to
rounding. Losses log P / Q are rounded down to a grid and convolved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.signal import fftconvolve

Array = np.ndarray

GRID = 2e-4  # of losses
_CELLS = 2000  # of one number
_WIDTH = 9.0  # standard deviations of a normal number that are cut into cells
_TAIL = 40.0  # the same of a Laplace number
_FINE = 1200  # cells a side, of two numbers
_NOTHING = 1e-14  # a chance that is not counted where the other is zero


@dataclass(frozen=True)
class Cells:
    """Chances of the same cells on D and on D', each (K,)."""

    first: Array
    second: Array

    @property
    def reverse(self) -> Cells:
        """D and D' exchanged."""
        return Cells(self.second, self.first)

    def times(self, other: Cells) -> Cells:
        """Both releases, where they are independent."""
        return Cells(
            np.outer(self.first, other.first).ravel(),
            np.outer(self.second, other.second).ravel(),
        )

    def coarse(self, most: int) -> Cells:
        """Neighbouring cells put together, so that there are at most so many."""
        at = np.arange(0, len(self.first), -(-len(self.first) // max(most, 1)))
        return Cells(np.add.reduceat(self.first, at), np.add.reduceat(self.second, at))

    def is_like(self, other: Cells, tolerance: float) -> bool:
        """Whether all chances are the same, relatively."""
        if self.first.shape != other.first.shape:
            return False
        pairs = ((self.first, other.first), (self.second, other.second))
        return all(np.allclose(a, b, rtol=tolerance, atol=1e-9) for a, b in pairs)

    def loses(self) -> bool:
        """Whether D and D' are told apart at all."""
        return bool(np.abs(self.first - self.second).max() > _NOTHING)


def mixed(parts: Iterable[tuple[float, float, Cells]]) -> Cells:
    """A release that follows a selection, whose chances on D and D' come first."""
    every = list(parts)
    return Cells(
        np.concatenate([p * cells.first for p, _, cells in every]),
        np.concatenate([q * cells.second for _, q, cells in every]),
    )


CERTAIN = Cells(np.ones(1), np.ones(1))
APART = Cells(np.array([1.0, 0.0]), np.array([0.0, 1.0]))


def gaussian_cells(shift: float, rate: float = 1.0) -> Cells:
    """N(shift, 1), with a chance of ``rate`` and else N(0, 1), against N(0, 1)."""
    count = _CELLS * math.ceil(min(max(shift, 1.0), 50.0))
    edges = np.linspace(-_WIDTH, _WIDTH + shift, count)
    plain, moved = (_between(stats.norm, edges - s) for s in (0.0, shift))
    return Cells((1 - rate) * plain + rate * moved, plain)


def laplace_cells(shift: float) -> Cells:
    """Lap(shift, 1) against Lap(0, 1); an edge at either kink."""
    inner = np.linspace(0.0, shift, _CELLS // 4)
    outer = np.array([-_TAIL, _TAIL + shift])
    edges = np.concatenate([outer[:1], inner, outer[1:]])
    moved, plain = (_between(stats.laplace, edges - s) for s in (shift, 0.0))
    return Cells(moved, plain)


def _between(law: Any, edges: Array) -> Array:
    """Chances of the cells between edges and beyond, small ones as good as large."""
    low = np.concatenate([[0.0], law.cdf(edges), [1.0]])
    high = np.concatenate([[1.0], law.sf(edges), [0.0]])
    left = np.concatenate([[True], edges < 0])
    return np.where(left, np.diff(low), -np.diff(high))


def norm_cells(shift: Array, order: float) -> Cells:
    r"""Density exp(-\|z - shift\|_r^2 / 2), against that without a shift.

    In two dimensions, or with a shift along one axis, where the rest counts by its norm
    only.

    Raises
    ------
    ValueError
        For other shifts.
    """
    d, moved = shift.size, np.flatnonzero(np.abs(shift) > 1e-9 * np.abs(shift).max())
    if d > 2 and len(moved) > 1:
        raise ValueError(f"shift {shift}: expected one axis, or two dimensions")
    # one number along the axis; of the others the norm, or in two dimensions the other
    along, other = (shift[moved[0]], 0.0) if d > 2 or len(moved) == 1 else shift
    x = np.linspace(-_WIDTH, _WIDTH, _FINE)
    y = x if d == 2 else np.linspace(0.0, _WIDTH, _FINE)
    first, second = (
        np.exp(-0.5 * _powers(x - a, y - b, order)) * np.abs(y) ** max(d - 2, 0)
        for a, b in ((along, other), (0.0, 0.0))
    )
    return Cells(first.ravel() / first.sum(), second.ravel() / second.sum())


def _powers(x: Array, y: Array, order: float) -> Array:
    """Squared l_r norm on a grid."""
    sums = (np.abs(x) ** order)[:, None] + (np.abs(y) ** order)[None, :]
    return sums ** (2 / order)


@dataclass(frozen=True)
class Losses:
    """Distribution on D of the loss log P / Q, rounded down."""

    lowest: int  #: of the masses' losses, in units of ``GRID``
    masses: Array
    finite: float  #: chance that the loss is finite

    def delta(self, epsilon: float) -> float:
        """E (1 - e^(epsilon - loss))_+."""
        losses = (self.lowest + np.arange(len(self.masses))) * GRID
        spent = -np.expm1(np.minimum(epsilon - losses, 0.0))
        return float(self.masses @ spent) + 1 - self.finite

    def epsilon(self, delta: float) -> float:
        """The epsilon that is needed at delta; infinity if none is enough."""
        if self.delta(0.0) <= delta:
            return 0.0
        if 1 - self.finite >= delta:
            return math.inf
        most = (self.lowest + len(self.masses)) * GRID
        root = brentq(lambda e: self.delta(e) - delta, 0.0, most, xtol=1e-12)
        return float(root)


def losses(cells: Cells) -> Losses:
    """Of one release."""
    known = (cells.second > 0) & (cells.first > 0)
    logs = np.log(cells.first[known] / cells.second[known])
    places = np.floor(logs / GRID + 1e-9).astype(int)
    lowest = int(places.min(initial=0))
    lost = float(cells.first[(cells.second == 0) & (cells.first > _NOTHING)].sum())
    return Losses(
        lowest, np.bincount(places - lowest, cells.first[known]), max(1 - lost, 0.0)
    )


def curve_losses(delta: Callable[[Array], Array], top: float) -> Losses:
    """Of a pair whose curve, the same both ways, has chords through values on the grid.

    Parameters
    ----------
    delta : callable
        Maps epsilons from 0 to the deltas of one release.
    top : float
        Beyond it what is left counts as told for sure.

    Notes
    -----
    delta = P(L > epsilon) - x E[e^-L; L > epsilon] is linear in x = e^epsilon between
    losses, so that changes of slope are their masses.
    """
    epsilons = np.arange(0.0, top, GRID)
    values = delta(epsilons)
    slopes = np.append(np.diff(values) / np.diff(np.exp(epsilons)), 0.0)
    positive = np.exp(epsilons[1:]) * np.maximum(np.diff(slopes), 0.0)
    negative = np.exp(-epsilons[1:]) * positive
    zero = 1 - positive.sum() - negative.sum() - values[-1]
    masses = np.concatenate([negative[::-1], [max(zero, 0.0)], positive])
    return Losses(1 - len(epsilons), masses, 1 - float(values[-1]))


def composed(parts: Sequence[Losses]) -> Losses:
    """Of independent releases."""
    lowest, masses, finite = 0, np.ones(1), 1.0
    for part in parts:
        lowest += part.lowest
        masses = np.maximum(fftconvolve(masses, part.masses), 0.0)
        finite *= part.finite
    return Losses(lowest, masses, finite)


def cells_epsilon(releases: Sequence[Cells], delta: float) -> float:
    """Epsilon of independent releases at delta, the worse of both directions."""
    forth = composed([losses(cells) for cells in releases])
    back = composed([losses(cells.reverse) for cells in releases])
    return max(forth.epsilon(delta), back.epsilon(delta))


def gaussian_delta(epsilon: Array | float, mu: float) -> Array:
    """Of telling N(mu, 1) from N(0, 1) (Balle and Wang 2018, Theorem 8)."""
    up, down = (stats.norm.logcdf(s * mu / 2 - epsilon / mu) for s in (1, -1))
    return np.exp(up) - np.exp(epsilon + down)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Exact epsilon of Gaussian releases whose squared shifts add up to mu^2."""
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    most = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    root = brentq(lambda e: gaussian_delta(e, mu) - delta, 0.0, most, xtol=1e-13)
    return float(root)
