r"""Composition of privacy profiles as privacy loss distributions.

Replacing a record is a symmetric relation, so the worst case of a release over both
directions is one curve :math:`\delta(\epsilon)`, :math:`\epsilon \ge 0`, and

.. math:: \delta(-\epsilon) = 1 - e^{-\epsilon} + e^{-\epsilon} \delta(\epsilon)

continues it. Such a curve belongs to a pair of distributions, and composing dominating
pairs dominates the adaptive composition (Zhu, Dong and Wang 2022, arXiv:2106.08567,
Theorem 10). Joining the curve's values on a grid by chords can only raise it (Connect
the Dots: Doroshenko et al. 2022, arXiv:2207.04380), so every grid gives an upper bound
up to rounding.

Masses are weighted by exp(tilt * loss) before convolution, so that most of the weight
lies near epsilon. Rounding, which a million steps raise to 1e-10 of the total, is then
relative to delta and not to 1. The bound was at most 6e-11 below one that counts every
rounding error (commit 72cde638, fifteen ledgers of up to 2.3 million releases), which
``MARGIN`` covers amply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # it imports its parts when they are first used
from numpy.typing import NDArray

Array = NDArray[np.float64]

TAIL = 1e-4  # share of delta that may be lost at the ends of the grid
# Of the coarsest grid, up to the largest loss of all releases
FIRST_CELLS = 32
# Finer grids contain the coarser ones, so exact bounds only fall
REFINEMENT = 4
TILTED_TAIL = 1e-18  # of tilted mass that may wrap around
LARGEST_GRID = 2**22  # points; the answer is still an upper bound
MOMENT_CELLS = 4096  # of a grid on which moments are bounded
# exp of more overflows; used only where the result does not matter
EXPONENT = 700.0
MARGIN = 1e-4  # relative, added to the bounds of grids for rounding
ATOMS_MARGIN = 1e-9  # the same where all losses are atoms on every grid
# losses between which chords replace a curve that takes long to compute
NODES = np.append(0.0, np.geomspace(1e-6, EXPONENT, 8000))


@dataclass(frozen=True)
class Profile:
    """Curve of the worst case over both directions, and the number of releases."""

    #: maps an array of epsilon >= 0 to delta(epsilon), with good RELATIVE precision
    delta: Callable[[Any], Any]
    count: int = 1  #: how often it is composed with itself
    #: the loss a of a release whose losses are a and -a alone: atoms, which all grids
    #: contain exactly
    top: float | None = None


def chorded(bounds: Any, count: int) -> Profile:
    """Return the profile of releases whose curve keeps to its bounds at ``NODES``.

    A curve is convex in e^epsilon, and so below the chords of the largest convex
    function that keeps to the bounds.
    """
    x = np.exp(NODES)
    y = np.asarray(bounds, dtype=float)
    hull: list[int] = []
    for k in range(len(x)):
        while len(hull) > 1:
            i, j = hull[-2:]
            if (y[j] - y[i]) * (x[k] - x[i]) < (y[k] - y[i]) * (x[j] - x[i]):
                break
            hull.pop()
        hull.append(k)
    corners = x[hull], y[hull]
    return Profile(
        lambda losses: np.interp(
            np.exp(np.minimum(losses, EXPONENT)), *corners
        ),
        count,
    )


@dataclass(frozen=True)
class Release:
    """Masses of one release at losses of -n, ..., n cells; `infinite` at infinity."""

    masses: Array
    infinite: float
    count: int

    def tilted(self, tilt: float) -> tuple[Array, float]:
        """Return masses * exp(tilt * cell), normalised, and the log of their sum."""
        # so that the sum cannot vanish
        top = int(np.flatnonzero(self.masses)[-1])
        cells = np.arange(float(self.masses.size))
        weighted = self.masses * np.exp(np.minimum(tilt * (cells - top), 0.0))
        total = float(weighted.sum())
        return weighted / total, math.log(total) + tilt * (
            top - self.masses.size // 2
        )

    def on_nodes(self, width: int) -> Release:
        """The release on cells ``width`` times as wide, by ``chords``."""
        cells = self.masses.size // 2
        padded = np.pad(self.masses, -cells % width)
        return Release(chords(padded, width)[:-1], self.infinite, self.count)


def composed_epsilon(
    profiles: Sequence[Profile],
    delta: float,
    tolerance: float = 5e-3,
    better: Callable[..., float] = min,
) -> float:
    """Return an upper bound of the composed epsilon, with ``MARGIN``, that converged.

    It is at least 0, and inf if no finite one is found. Grids become four times finer
    until the bound changes by at most the ``tolerance``, relatively. Its error falls
    with the square of the interval, so that a fifteenth of the last change is left.
    ``better`` combines the bound of a grid with that of the grids before. ``limit``
    gives no bound, but a good estimate on coarse grids.
    """
    tops = largest_losses(profiles, delta)
    if (
        sum(profile.count * float(profile.delta(0.0)) for profile in profiles)
        <= delta
    ):
        return 0.0  # total variation distances add
    beyond = sum(
        curve.count * float(curve.delta(EXPONENT)) for curve in profiles
    )
    if beyond >= (1 - TAIL) * delta:
        return math.inf  # of losses above ``EXPONENT`` alone
    atoms = len({profile.top for profile in profiles}) == 1 and profiles[0].top
    margin = 1 + (ATOMS_MARGIN if atoms else MARGIN)
    interval = max(tops) / FIRST_CELLS
    points = 0
    bound = math.inf
    while points * REFINEMENT <= LARGEST_GRID:
        epsilon, points = epsilon_on_grid(profiles, tops, delta, interval)
        close = abs(bound - epsilon) <= tolerance * epsilon
        bound = better(epsilon, bound)
        interval = interval / REFINEMENT
        if 0 < epsilon < math.inf and close:
            break
    return bound * margin


def limit(epsilon: float, coarser: float) -> float:
    """Extrapolated limit of bounds, from the last one and the estimate before it."""
    is_finite = 0 < coarser < math.inf
    return (
        max(epsilon - (coarser - epsilon) / 15, epsilon / 2)
        if is_finite
        else epsilon
    )


def epsilon_on_grid(
    profiles: Sequence[Profile],
    tops: Sequence[float],
    delta: float,
    interval: float,
) -> tuple[float, int]:
    """Return the bound of one grid, without margin, and the number of its points.

    *tops* are the losses above which a profile's remaining mass counts as infinite,
    *interval* is the width of a cell in units of epsilon.
    """
    pairs = zip(profiles, tops, strict=True)
    releases = [discretise(profile, top, interval) for profile, top in pairs]
    tilt = chernoff(releases, delta, interval) / 2
    lowest_cell, tilted, log_scale = _compose(releases, tilt)
    cells = lowest_cell + np.arange(tilted.size)
    log_weights = np.minimum(log_scale - tilt * cells, EXPONENT)
    masses = np.where(
        cells > 0, np.maximum(tilted, 0.0) * np.exp(log_weights), 0.0
    )
    lost_mass = TAIL * delta + sum(
        release.count * release.infinite for release in releases
    )
    epsilon = _crossing(
        np.asarray(interval * cells, float), masses, delta - lost_mass
    )
    wrapped = math.log(len(releases) * TILTED_TAIL) + log_scale
    sound = wrapped - tilt * epsilon / interval <= math.log(TAIL * delta)
    return epsilon if sound else math.inf, tilted.size


def _crossing(losses: Array, masses: Array, delta: float) -> float:
    """The epsilon at which sum (1 - e^(epsilon - loss))+ masses falls to delta.

    Over the losses above epsilon this sum is a - e^epsilon b, with a the sum of their
    masses and b that of e^-loss masses.
    """
    a = np.cumsum(masses[::-1])[::-1]
    discounted = masses * np.exp(-np.maximum(losses, 0.0))
    b = np.cumsum(discounted[::-1])[::-1]
    deltas = a - np.exp(np.clip(losses, 0.0, EXPONENT)) * b
    above = np.flatnonzero(deltas > delta)
    cell = int(above[-1]) + 1 if above.size else int(np.argmax(masses > 0))
    if cell == losses.size or delta <= 0:
        return math.inf
    inside = math.inf
    if b[cell] > 0:  # of Python's numbers, which do not warn of infinity
        inside = float(a[cell] - delta) / float(b[cell])
    epsilon = math.log(max(inside, 1.0))
    return max(min(epsilon, float(losses[cell])), 0.0)


def discretise(profile: Profile, top: float, interval: float) -> Release:
    """Return the masses whose curve consists of the profile's chords.

    Symmetric curves have P(L = -l) = exp(-l) P(L = l). Masses at negative losses are
    computed by this: differences of delta(-epsilon) would leave only rounding errors,
    which composition multiplies by millions.
    """
    cells = max(1, math.ceil(top / interval))
    losses = interval * np.arange(cells + 1)
    deltas = np.minimum.accumulate(profile.delta(losses))
    positive = np.diff(deltas) / math.expm1(-interval)
    positive[:-1] -= positive[1:] * math.exp(-interval)
    positive = np.maximum(positive, 0.0)
    negative = positive * np.exp(-losses[1:])
    zero = max(1 - (positive.sum() + negative.sum() + deltas[-1]), 0.0)
    masses = np.concatenate([negative[::-1], [zero], positive])
    return Release(masses, float(deltas[-1]), profile.count)


def chernoff(
    releases: Sequence[Release], delta: float, interval: float
) -> float:
    """The order, per cell, of the best Chernoff bound on epsilon, a power of 2.

    (1 - e^-x) e^-ax is at most (1/(a+1)) (a/(a+1))^a, which keeps the order finite
    where the largest loss of all has a probability above delta.
    """
    widest = max(release.masses.size for release in releases)
    width = -(-widest // MOMENT_CELLS)
    coarse = [release.on_nodes(width) for release in releases]

    def bound(order: float) -> float:
        """Chernoff's bound on epsilon at an order."""
        terms = [
            merged.count * merged.tilted(order * width)[1] for merged in coarse
        ]
        cumulant = sum(terms)
        power = order / interval
        factor = -math.log1p(power) - power * math.log1p(1 / power)
        return (cumulant + factor - math.log(delta)) / order

    return float(min(np.exp2(np.arange(-13.0, 9.0)) / widest, key=bound))


def _compose(
    releases: Sequence[Release], tilt: float
) -> tuple[int, Array, float]:
    """Return the first cell, the tilted masses and the logarithm of their scale."""
    lowest_cell = 0
    masses = np.ones(1)
    log_scale = 0.0
    for release in releases:
        tilted, cumulant = release.tilted(tilt)
        start, power = power_of(tilted, release.count)
        masses = scipy.signal.fftconvolve(masses, power)
        lowest_cell += start - release.count * (tilted.size // 2)
        log_scale += release.count * cumulant
    return lowest_cell, masses, log_scale


def power_of(tilted: Array, count: int) -> tuple[int, Array]:
    """First cell and masses of a distribution's convolution power."""
    if count == 1:
        return 0, tilted
    # the power has at most ``TILTED_TAIL`` outside of [low, high] (Chernoff)
    width = -(-tilted.size // MOMENT_CELLS)
    masses = chords(tilted, width)
    losses = width * np.arange(float(masses.size))
    low = 0
    high = (tilted.size - 1) * count
    log = math.log(2 / TILTED_TAIL)
    mean = float(masses @ losses)
    for order in np.exp2(np.arange(-4.0, 12.0, 1.5)) / tilted.size:
        down = count * _log_moment(masses, mean - losses, order) + log
        up = count * _log_moment(masses, losses - mean, order) + log
        low = max(low, math.floor(count * mean - down / order))
        high = min(high, math.ceil(count * mean + up / order))
    size = scipy.fft.next_fast_len(max(high + 1 - low, tilted.size), real=True)
    circle = scipy.fft.irfft(scipy.fft.rfft(tilted, size) ** count, size)
    return low, np.roll(circle, -low)[: high + 1 - low]


def chords(masses: Array, width: int) -> Array:
    """Masses moved to every ``width``-th cell; means of convex functions only rise.

    Each mass is split between its two neighbouring nodes so that its mean stays. This
    replaces a convex function by its chords.
    """
    blocks = np.zeros((-(-masses.size // width), width))
    blocks.ravel()[: masses.size] = masses
    upper = blocks @ (np.arange(width) / width)
    nodes = np.append(blocks.sum(axis=1) - upper, 0.0)
    nodes[1:] += upper
    return nodes


def _log_moment(masses: Array, losses: Array, order: float) -> float:
    """Upper bound on log E e^(order at), with rounding; at least 0."""
    top = max(float(losses[0]), float(losses[-1])) * order
    moment = float(
        masses @ np.exp(np.maximum(order * losses - top, -EXPONENT))
    )
    return max(math.log(moment) + top, 0.0) * (1 + 1e-9) + 1e-15


def largest_losses(profiles: Sequence[Profile], delta: float) -> list[float]:
    """The largest loss of each profile; at most ``TAIL * delta`` lies beyond them.

    What lies beyond ``EXPONENT``, where losses count as infinite, does not count.
    """
    mass = TAIL * delta / len(profiles)
    return [
        _largest_loss(profile, mass / profile.count)
        if profile.top is None
        else profile.top
        for profile in profiles
    ]


def _largest_loss(profile: Profile, mass: float) -> float:
    def beyond(loss: float) -> float:
        """The profile's delta at a loss."""
        return float(profile.delta(np.array([loss]))[0])

    mass += beyond(EXPONENT)
    if beyond(0.0) <= mass:
        return 0.0
    lower = 0.0
    upper = 1.0
    while beyond(upper) > mass:
        upper *= 2
    while upper - lower > 1e-3 * upper:
        middle = (lower + upper) / 2
        lower, upper = (
            (middle, upper) if beyond(middle) > mass else (lower, middle)
        )
    return upper
