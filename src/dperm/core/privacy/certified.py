r"""Composition of loss distributions with a bound on every error of its arithmetic.

A composed loss distribution is stored tilted: its masses times exp(tilt * cell),
divided by their sum. At the order of the best Chernoff bound, most of the tilted mass
lies near epsilon, so that rounding errors there are small relative to it.

The errors bounded are, with *u* the unit of rounding:

- *The transform.* A coefficient is computed in log2(N) levels of additions and products
  with numbers of modulus one. For a vector of sum one its error is at most e =
  ``_LEVEL`` u log2(N) (Higham 2002, Theorem 24.2, has 7 u per level). The power m of a
  coefficient X has the error m |X|^(m-1) e. By Parseval this is m \|y\|^((m-1)/m) e in
  l2 over the cells of the result y, because the norm of a convolution power is
  log-convex in m. A power by logarithms adds 4 pi m u.
- *Reading it.* delta(epsilon) is an inner product with weights w. By Cauchy and Schwarz
  its error is at most \|w\| times the error above.
- *The ends.* The tilted mass that the cyclic transform wraps around is at most
  ``TILTED_TAIL``, and its weight at most exp(log_scale - tilt * cell) at epsilon.
- *Masses and their scale.* Each mass has a relative error of a few u, a composed one
  the count times that; see :class:`Scaled`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # it imports its parts when they are first used
from numpy.typing import NDArray

from dperm.core.privacy.pld import (
    EXPONENT,
    TILTED_TAIL,
    Profile,
    Release,
    chernoff,
    composed_epsilon,
    discretise,
    power_of,
)

Array = NDArray[np.float64]

U = 2.0**-53
CURVE_ERROR = 2e-11  # relative, of the values of a profile; see the tests
_LEVEL = 12.0
_CLOSE = 1e-10  # relative precision of roots


@dataclass(frozen=True)
class Composed:
    """A composed loss distribution, tilted."""

    interval: float  #: width of a cell
    first: int  #: cell of the first mass
    masses: Array  #: tilted, of sum one except for the mass lost
    #: tilt, log_scale: the true masses are masses * exp(log_scale - tilt * cell)
    tilt: float
    log_scale: float
    error: float  #: l2 norm of the error of ``masses``
    #: total relative error of the masses that were composed
    relative: float
    wrapped: float  #: tilted mass in wrong cells

    @cached_property
    def losses(self) -> Array:
        """Losses of the cells."""
        return self.interval * (self.first + np.arange(float(self.masses.size)))

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return delta(epsilon) >= 0 as computed, and a bound on its error."""
        at = self.log_scale - self.tilt * epsilon / self.interval
        start = int(np.searchsorted(self.losses, epsilon, side="right"))
        count = max(1, math.ceil((at + EXPONENT) / self.tilt))
        losses = self.losses[start : start + count]  # beyond, weights are below e^-700
        logs = self.log_scale - self.tilt * losses / self.interval
        weights = np.exp(np.minimum(logs, EXPONENT)) * -np.expm1(epsilon - losses)
        share = max(float(weights @ self.masses[start : start + count]), 0.0)
        off = float(scipy.linalg.norm(weights)) * self.error  # without overflow
        off += self.wrapped * math.exp(min(at, EXPONENT)) + 2 * math.exp(-EXPONENT)
        return share, off + share * self.relative

    def least(self, delta: float, lost: float) -> float:
        """Return nearly the least epsilon whose delta plus errors is at most this."""

        def is_above(epsilon: float) -> bool:
            share, error = self.delta(epsilon)
            return share + error + lost > delta

        if not is_above(0.0):
            return 0.0
        last = float(self.losses[-1])
        if last <= 0 or is_above(last):
            return math.inf
        near = self._near(delta - lost)
        off = sum(self.delta(near)) - (delta - lost)
        epsilon, step = self._near(delta - lost - max(off, 0.0)), _CLOSE
        while is_above(epsilon):
            epsilon, step = epsilon * (1 + step), 8 * step
        return epsilon

    @cached_property
    def _sums(self) -> tuple[Array, Array, Array]:
        """Losses l, a and b: delta(epsilon) = a - e^epsilon b in the cell below l."""
        start = int(np.searchsorted(self.losses, 0.0))
        losses = self.losses[start:]
        logs = self.log_scale - self.tilt * losses / self.interval
        masses = self.masses[start:] * np.exp(np.clip(logs, -EXPONENT, EXPONENT))
        a = np.cumsum(masses[::-1])[::-1]
        b = np.cumsum((masses * np.exp(-losses))[::-1])[::-1]
        return losses, a, b

    def _near(self, delta: float) -> float:
        """Return about the epsilon at which delta(epsilon) has this value."""
        losses, a, b = self._sums
        grown = np.exp(np.minimum(losses, EXPONENT))
        above = np.flatnonzero((a - grown * b)[:-1] > delta)
        cell = int(above[-1]) + 1 if above.size else 0
        epsilon = float(losses[cell])
        if b[cell] > 0:  # it may have underflowed
            inside = max((a[cell] - delta) / b[cell], 1.0)
            epsilon = min(math.log(inside), epsilon)
        return max(epsilon, _CLOSE)


def upper_epsilon(
    profiles: Sequence[Profile], delta: float, tolerance: float = 5e-3
) -> float:
    """Return an upper bound on the composed epsilon that includes all rounding errors.

    ``pld.composed_epsilon`` is faster and agrees to about 1e-4, but does not bound the
    errors of the arithmetic.

    Parameters
    ----------
    profiles : sequence of Profile
    delta : float
    tolerance : float
        Relative change of the bound from one grid to a four times finer one, at which
        refinement stops.
    """
    return composed_epsilon(profiles, delta, tolerance, _on_grid)


def _on_grid(
    profiles: Sequence[Profile], tops: Sequence[float], delta: float, interval: float
) -> tuple[float, int]:
    """The bound of one grid, and the number of its points."""
    releases = [
        _raised(profile, top, interval)
        for profile, top in zip(profiles, tops, strict=True)
    ]
    tilt = order([one.release for one in releases], delta, interval)
    composed = compose(releases, interval, tilt)
    lost = sum(one.release.count * one.release.infinite for one in releases)
    return composed.least(delta, lost), composed.masses.size


@dataclass(frozen=True)
class Scaled:
    """Masses of a release; the exact ones are at most ``1 + relative`` times them."""

    release: Release
    relative: float


def _raised(profile: Profile, top: float, interval: float) -> Scaled:
    """Discretise a profile, and bound how far its masses fall short of the curve.

    The curve of the masses, as rounded to floating point, is computed by sums of
    positive numbers and compared with the profile at every node.
    """
    release = discretise(profile, top, interval)
    cells = release.masses.size // 2
    positive = release.masses[cells + 1 :]
    losses = interval * np.arange(cells + 1)
    terms = math.sqrt(cells + 1)
    if losses[-1] < EXPONENT:
        inside = _summed_back(positive * np.exp(-losses[1:])) * np.exp(losses[1:])
    else:
        terms *= terms
        keep = math.exp(-interval)
        inside = scipy.signal.lfilter([1.0], [1.0, -keep], positive[::-1])[::-1]
    curve = -math.expm1(-interval) * _summed_back(inside)
    curve = np.append(curve, 0.0) + release.infinite
    exact = np.asarray(profile.delta(losses), dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        short = np.where(exact > 0, exact / curve - 1, 0.0).max()
    rounding = CURVE_ERROR + 8 * U * terms
    return Scaled(release, max(float(short), 0.0) + rounding)


def _summed_back(values: Array) -> Array:
    """Sums of each value and all after it, in blocks.

    Their error grows with the root of the number of values; that of a plain running sum
    grows with the number itself.
    """
    size = math.isqrt(values.size) + 1
    padded = np.zeros(size * -(-values.size // size))
    padded[: values.size] = values
    blocks = padded.reshape(-1, size)
    within = np.cumsum(blocks[:, ::-1], axis=1)[:, ::-1]
    after = np.append(np.cumsum(within[::-1, 0])[::-1][1:], 0.0)
    sums: Array = (within + after[:, None]).ravel()[: values.size]
    return sums


# --- composing ------------------------------------------------------------------------


def compose(releases: Sequence[Scaled], interval: float, tilt: float) -> Composed:
    """Compose releases, each ``count`` times with itself.

    Parameters
    ----------
    releases : sequence of Scaled
    interval : float
    tilt : float
        See ``order``.
    """
    first, masses, log_scale, error, relative = 0, np.ones(1), 0.0, 0.0, 0.0
    for one in releases:
        count, cells = one.release.count, one.release.masses.size // 2
        tilted, cumulant = _tilted(one.release, tilt)
        start, power, off = _power(tilted, count)
        masses, off = _product(masses, power, off)
        error += off
        first += start - count * cells
        log_scale += count * cumulant
        rounding = U * (16 + 4 * tilt * cells + 2 * abs(cumulant))
        relative += count * (one.relative + rounding) + 4 * U * masses.size
    wrapped = TILTED_TAIL * sum(one.release.count > 1 for one in releases)
    errors = (1.01 * error, math.expm1(relative), wrapped)
    return Composed(interval, first, masses, tilt, log_scale, *errors)


def _power(tilted: Array, count: int) -> tuple[int, Array, float]:
    """First cell, masses and l2 error of a distribution's convolution power."""
    if count == 1:
        return 0, tilted, 0.0
    start, power = power_of(tilted, count)
    size = scipy.fft.next_fast_len(max(power.size, tilted.size), real=True)
    level = _transform_error(size)
    norm = min(float(np.linalg.norm(power)), 1.0) ** ((count - 1) / count)
    return start, power, (count * (level + 4 * math.pi * U) + 2 * level) * norm + 4 * U


def _product(one: Array, other: Array, off: float) -> tuple[Array, float]:
    """Convolution of two distributions, and its l2 error (``off`` included)."""
    if one.size == 1:
        return one[0] * other, off
    norm = max(float(np.linalg.norm(one)), float(np.linalg.norm(other)))
    product = scipy.signal.fftconvolve(one, other)
    return product, off + 3 * _transform_error(product.size) * norm


def _transform_error(size: int) -> float:
    return _LEVEL * U * math.log2(max(2 * size, 2))


def _tilted(release: Release, tilt: float) -> tuple[Array, float]:
    """Masses * exp(tilt * cell), normalised, and the logarithm of their sum.

    Weights are relative to the last cell with mass, so that the sum cannot vanish.
    """
    last = int(np.flatnonzero(release.masses)[-1])
    cells = np.arange(float(release.masses.size))
    weights = np.exp(np.minimum(tilt * (cells - last), 0.0))
    weighted = release.masses * weights
    total = float(weighted.sum())
    middle = release.masses.size // 2
    return weighted / total, math.log(total) + tilt * (last - middle)


def order(releases: Sequence[Release], delta: float, interval: float) -> float:
    """The order, per cell, of the best Chernoff bound on epsilon, within 2^(1/4)."""
    best, bound = chernoff(releases, _tilted, delta, interval)
    return float(min(best * np.exp2(np.arange(-3, 4) / 4), key=bound))
