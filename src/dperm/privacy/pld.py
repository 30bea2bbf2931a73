r"""Composition of privacy profiles on a grid of privacy losses.

Replacing a record is a symmetric relation, so the worst case of a release over both
directions is one curve :math:`\delta(\epsilon)`, :math:`\epsilon \ge 0`, and

.. math:: \delta(-\epsilon) = 1 - e^{-\epsilon} + e^{-\epsilon} \delta(\epsilon)

continues it. Such a curve belongs to a pair of distributions, and composing dominating
pairs dominates the adaptive composition (Zhu, Dong and Wang 2022, arXiv:2106.08567,
Theorem 10). Joining the curve's values on a grid by chords can only raise it (Connect
the Dots: Doroshenko et al. 2022, arXiv:2207.04380), so every result here is an upper
bound, whatever the interval. dp_accounting composes the same curves; at the millions
of steps of DP-SGD its grid would have to be chosen by hand.

The loss of a pair with a symmetric curve has :math:`P(L = -l) = e^{-l} P(L = l)`. Using
that instead of differences of :math:`\delta(-\epsilon)`, and the logarithm of one plus
the transform instead of its power, keeps rounding errors out of the sum of millions of
steps whose losses are a millionth each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

Array = NDArray[np.float64]

TAIL = 1e-4  # share of delta that may be lost at the ends of the grid
FIRST_CELLS = 8  # of the coarsest grid, over the losses of the loudest release
REFINEMENT = 4  # finer grids hold the coarser ones, so bounds can only fall
LARGEST_GRID = 2**23  # points; the answer is still an upper bound
LARGEST_CUMULANT = 40.0  # a tilt multiplies rounding at loss 0 by its exponential


@dataclass(frozen=True)
class Profile:
    """Curve of the worst case over both directions, and the number of releases.

    Attributes
    ----------
    delta : callable
        Maps an array of epsilon >= 0 to delta(epsilon), with good RELATIVE precision.
    count : int
        How often it is composed with itself.
    """

    delta: Callable[[Any], Any]
    count: int = 1


@dataclass(frozen=True)
class _Losses:
    """Masses of one release: `positive` at 1, 2, ... cells, `infinite` beyond."""

    positive: Array
    infinite: float
    interval: float
    count: int

    def losses(self) -> Array:
        """Return the positive losses."""
        return self.interval * np.arange(1, self.positive.size + 1, dtype=np.float64)


def composed_epsilon(
    profiles: Sequence[Profile], delta: float, tolerance: float = 5e-3
) -> float:
    """Return an upper bound of the composed epsilon that has converged.

    The grid is made four times finer until the bound falls by less than `tolerance`.
    Its error falls with the square of the interval, so what is left is a fifteenth.

    Parameters
    ----------
    profiles : sequence of Profile
        What is composed; not empty.
    delta : float
        In (0, 1).
    tolerance : float
        Relative.

    Returns
    -------
    float
        epsilon >= 0, inf if no finite one is found.
    """
    spill = TAIL * delta / (2 * len(profiles))
    tops = [_largest_loss(profile, spill / profile.count) for profile in profiles]
    if not any(tops):
        return 0.0
    interval = max(tops) / FIRST_CELLS
    bound = math.inf
    while True:
        refined, points = epsilon_on_grid(profiles, tops, delta, interval)
        refined = min(refined, bound)
        converged = bound < math.inf and bound - refined <= tolerance * refined
        if converged or points * REFINEMENT > LARGEST_GRID:
            return refined
        bound, interval = refined, interval / REFINEMENT


def epsilon_on_grid(
    profiles: Sequence[Profile], tops: Sequence[float], delta: float, interval: float
) -> tuple[float, int]:
    """Return the bound of one grid and the number of its points.

    Parameters
    ----------
    profiles : sequence of Profile
        What is composed.
    tops : sequence of float
        Losses above which a profile's remaining mass counts as infinite.
    delta : float
        In (0, 1).
    interval : float
        Width of a cell, in units of epsilon.
    """
    releases = [
        _discretise(profile, top, interval)
        for profile, top in zip(profiles, tops, strict=True)
    ]
    tail = TAIL * delta / 2
    cells, tilt = _window(releases, tail)
    points = fft.next_fast_len(2 * cells + 1, real=True)
    lost = tail + sum(release.count * release.infinite for release in releases)
    masses = _compose(releases, points, tilt)
    return _solve(masses, interval, lost, delta), points


def _largest_loss(profile: Profile, mass: float) -> float:
    """Return the smallest loss beyond which at most `mass` remains."""

    def beyond(loss: float) -> float:
        return float(profile.delta(np.array([loss]))[0])

    if beyond(0.0) <= mass:
        return 0.0
    upper = 1.0
    while beyond(upper) > mass:
        upper *= 2
    lower = 0.0
    while upper - lower > 1e-3 * upper:
        middle = (lower + upper) / 2
        lower, upper = (middle, upper) if beyond(middle) > mass else (lower, middle)
    return upper


def _discretise(profile: Profile, top: float, interval: float) -> _Losses:
    """Return the masses whose curve is the profile's chords (Connect the Dots)."""
    cells = max(1, math.ceil(top / interval))
    deltas = profile.delta(interval * np.arange(cells + 1))
    drops = -np.diff(np.minimum.accumulate(deltas))
    positive: Array = drops / -math.expm1(-interval)
    positive[:-1] -= positive[1:] * math.exp(-interval)
    # a chord's slope may rise by rounding where the curve is straight
    np.maximum(positive, 0.0, out=positive)
    return _Losses(positive, float(deltas[-1]), interval, profile.count)


def _window(releases: Sequence[_Losses], tail: float) -> tuple[int, float]:
    """Return the cells beyond which mass `tail` lies, and how far to tilt.

    Chernoff: P(L > l) <= exp(cumulant(order) - order l). Half the order that sets the
    window is the largest tilt under which what is wrapped around, a period of two
    windows away, stays below `tail` after the tilt is undone.
    """
    interval = releases[0].interval
    top = max(release.positive.size for release in releases)
    most = sum(release.count * release.positive.size for release in releases)
    orders = np.exp2(np.arange(-14.0, 10.0)) / (top * interval)
    cumulants = sum(
        (release.count * _cumulants(release, orders) for release in releases),
        np.zeros(orders.size),
    )
    with np.errstate(invalid="ignore"):
        farthest = (cumulants - math.log(tail)) / orders / interval
    best = int(np.nanargmin(farthest))
    usable = orders[:best][cumulants[:best] < LARGEST_CUMULANT]
    cells = max(math.ceil(min(most, farthest[best])), top)
    return cells, float(usable[-1]) if usable.size else 0.0


def _cumulants(release: _Losses, orders: Array) -> Array:
    """Return log E exp(order * loss) of the finite part, orders doubling each time."""
    losses = release.losses()
    grown = np.exp(orders[0] * losses)
    mirrored = release.positive * np.exp(-losses)
    moments = np.empty(orders.size)
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(orders.size):
            moments[i] = release.positive @ (grown - 1) + mirrored @ (1 / grown - 1)
            np.multiply(grown, grown, out=grown)
        return np.log1p(moments - release.infinite)


def _compose(releases: Sequence[_Losses], points: int, tilt: float) -> Array:
    """Return the composed masses at the losses 0, 1, 2, ... cells.

    They are composed after weighting by exp(tilt * loss), which puts the bulk where
    epsilon will be: rounding is then relative to delta and not to 1.
    """
    exponent = np.zeros(points // 2 + 1, dtype=complex)
    for release in releases:
        transform = fft.rfft(_change(release, points, tilt))
        exponent += _count_log1p(transform, release.count)
    cumulant = exponent[0].real
    tilted = fft.irfft(np.exp(exponent - cumulant), points)[: (points + 1) // 2]
    losses = releases[0].interval * np.arange(tilted.size)
    return np.maximum(tilted, 0.0) * np.exp(cumulant - tilt * losses)


def _change(release: _Losses, points: int, tilt: float) -> Array:
    """Return the tilted masses of one release minus a unit mass at loss 0.

    Negative losses are wrapped to the end of the array.
    """
    losses, positive = release.losses(), release.positive
    mirrored = positive * np.exp(-losses)
    change = np.zeros(points)
    change[1 : positive.size + 1] = positive * np.exp(tilt * losses)
    change[-positive.size :] = (mirrored * np.exp(-tilt * losses))[::-1]
    change[0] = -(positive.sum() + mirrored.sum() + release.infinite)
    return change


def _count_log1p(z: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """Return count * log(1 + z), accurate for small z and for z near -1."""
    x, y = z.real, z.imag
    square = x * (2 + x) + y * y
    near = np.abs(square) < 0.5
    with np.errstate(divide="ignore"):
        modulus = np.log(np.hypot(1 + x, y))
    modulus[near] = 0.5 * np.log1p(square[near])
    return count * modulus + 1j * (count * np.arctan2(y, 1 + x))


def _solve(masses: Array, interval: float, lost: float, delta: float) -> float:
    """Return the smallest epsilon >= 0 whose hockey-stick divergence is delta."""
    from scipy import signal  # 0.3 s to import

    masses = masses[::-1]
    above = np.cumsum(masses)
    # sum of mass(l) exp(epsilon - l) by recursion: exp(epsilon) alone overflows
    scaled = signal.lfilter([1.0], [1.0, -math.exp(-interval)], masses)
    divergence = (lost + above - scaled)[::-1]
    enough = np.flatnonzero(divergence <= delta)
    if enough.size == 0:
        return math.inf
    first = int(enough[0])
    if first == 0:
        return 0.0
    excess, weight = lost + above[-1 - first] - delta, scaled[-1 - first]
    step = math.log(excess / weight) if excess > 0 else -interval
    return interval * first + min(max(step, -interval), 0.0)
