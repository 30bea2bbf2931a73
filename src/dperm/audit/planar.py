r"""The law of objective perturbation in two features, and the pair that costs most.

The minimiser u of sum_i log(1 + e^(-v_i . u)) + (Lambda / 2) ||u||^2 + b . u is
released, b ~ N(0, sigma^2 I). Its density is the normal one at b(u), minus the
gradient, times the determinant of the Hessian. So the loss between two data sets is

.. math:: L(u) = \frac{\|b'\|^2 - \|b\|^2}{2\sigma^2} + \log\frac{\det H}{\det H'},
          \qquad b' = b - (a v - a' v'),

with the slopes a and a' of the record v and of v' that replaces it. Under the first
data set b is normal: delta(epsilon) = E (1 - e^(epsilon - L))_+ is an integral over the
plane of b, here a sum over a grid, with the minimiser at every point by Newton's
method. A grid twice as wide has about four times the error, which corrects the sum; the
difference between both grids is stated as the error.

*Which pair.* If both slopes are near 1 and the records point almost opposite ways the
shift is almost 2 R. So u has to lie far out, at a right angle to their difference, and
to stay there while b varies. Other records (-rho, k) and (-rho, -k) in equal numbers,
the *company*, achieve both. With rho of the order of 1 / sqrt(n) they drive u out by
the order of sqrt(n); longer records, soon classified, would by that of log(n). There
the curvature along the second feature is about n k^2 / 6, against which b does little.
:mod:`dperm.accountants.perturbed_objective` proves that the shift tends to 2 R as n
grows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import expit

from dperm.audit.subjects import Array
from dperm.core.privacy.strict import gaussian_epsilon

REACH = 10.0  # standard deviations of b that are summed over; misses 1e-22
FINE = 0.05  # the same, spacing of the grid along the difference of the records
ACROSS = 10  # times wider spacing across, where nothing has a corner
_STEPS = 300  # of Newton's method
_ROUNDING = 1e-13  # of the gradient's largest terms
_PLACES = (-1.0, 0.0, 1.0)  # standard deviations across, where a pair is judged
_ANGLES = ((0.1, 0.1), (0.4, 0.4), (0.9, 0.0), (0.9, 0.9))  # starts of the search
_SHORT = 1.9  # rho in units of sqrt(Lambda / n), at the start
_MOST = 0.9  # largest share of the first column's squares of the records that pull
_SEARCH = {"xatol": 1e-3, "fatol": 1e-5, "maxiter": 300}


class Cost(NamedTuple):
    """An epsilon, and an estimate of the error of its sum."""

    epsilon: float
    error: float


@dataclass(frozen=True)
class Planar:
    """Two data sets in two features that differ in a record v = y x."""

    company: Array  #: shape (k, 2); the kinds of records that both data sets have
    counts: Array  #: shape (k,); how many there are of each
    #: base, replacement: shape (2,); the record that is replaced, and the one in its
    #: place
    base: Array
    replacement: Array
    #: ridge, scale: Lambda, and sigma of the linear term
    ridge: float
    scale: float

    @property
    def turned(self) -> Planar:
        """The same pair, seen from the other data set."""
        return replace(self, base=self.replacement, replacement=self.base)

    def tilts(self, u: Array) -> Array:
        """Linear terms for which u (m, 2) are the minimisers on the first data set."""
        pulled = (self.counts * expit(-u @ self.company.T)) @ self.company
        pulled += expit(-u @ self.base)[:, None] * self.base
        return pulled - self.ridge * u

    def minimisers(self, b: Array) -> Array:
        """Minimisers on the first data set for b (m, 2): Newton with halved steps."""
        sizes = np.linalg.norm(self.company, axis=1)
        least = _ROUNDING * (self.counts @ sizes + np.linalg.norm(b, axis=1) + 1)
        u, length = np.zeros_like(b), np.ones(len(b))
        for _ in range(_STEPS):
            slope = b - self.tilts(u)
            size = np.linalg.norm(slope, axis=1)
            left = np.flatnonzero(size > least)
            if not left.size:
                return u
            # newton steps on the first data set
            V = np.vstack([self.company, self.base])
            counts = np.append(self.counts, 1.0)
            there = u[left] - length[left, None] * _solved(
                _hessians(u[left], V, counts, self.ridge), slope[left]
            )
            after = np.linalg.norm(b[left] - self.tilts(there), axis=1)
            good = after <= (1 - length[left] / 4) * size[left]
            u[left[good]] = there[good]
            length[left] = np.where(
                good, np.minimum(2 * length[left], 1), length[left] / 2
            )
        raise ArithmeticError(f"{left.size} minimisers were not found")

    def losses(self, u: Array, b: Array | None = None) -> Array:
        """L at u (m, 2); b are its linear terms on the first data set, if known."""
        b = self.tilts(u) if b is None else b
        common = _hessians(u, self.company, self.counts, self.ridge)
        shift, logs = np.zeros_like(u), np.zeros(len(u))
        for sign, v in ((1.0, self.base), (-1.0, self.replacement)):
            a = expit(-u @ v)
            inverse = (v * _solved(common, np.broadcast_to(v, u.shape))).sum(axis=1)
            shift += sign * a[:, None] * v
            logs += sign * np.log1p(a * (1 - a) * inverse)
        squares = (shift * (shift - 2 * b)).sum(axis=1)
        return squares / (2 * self.scale**2) + logs

    def axes(self) -> Array:
        """Along the difference of the two records, and across; rows, (2, 2)."""
        along = self.base - self.replacement
        along = along / np.linalg.norm(along)
        return np.stack([along, [-along[1], along[0]]])


def _hessians(u: Array, V: Array, counts: Array, ridge: float) -> Array:
    """Entries 11, 12, 22 of the Hessians at u (m, 2); shape (3, m)."""
    a = expit(-u @ V.T)
    products = V[:, [0, 0, 1]] * V[:, [0, 1, 1]]
    return ((counts * a * (1 - a)) @ products + [ridge, 0.0, ridge]).T


def _solved(H: Array, x: Array) -> Array:
    one, two = x.T
    turned = np.stack([H[2] * one - H[1] * two, H[0] * two - H[1] * one], axis=1)
    return turned / (H[0] * H[2] - H[1] ** 2)[:, None]


# --- what a pair costs ----------------------------------------------------------------


def cost(pair: Planar, delta: float, fine: float = FINE) -> Cost:
    """Epsilon of a pair at delta, the larger of both directions.

    Parameters
    ----------
    delta : float
        At least 1e-15.
    fine : float
        The grid along the difference of the records, in standard deviations.
    """
    return max(_one_way(one, delta, fine) for one in (pair, pair.turned))


def _one_way(pair: Planar, delta: float, fine: float) -> Cost:
    """Epsilon of the first data set against the second."""
    x, y = (_places(width) for width in (fine, ACROSS * fine))
    grid = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1)
    b = pair.scale * (grid.reshape(-1, 2) @ pair.axes())
    losses = pair.losses(pair.minimisers(b), b).reshape(grid.shape[:2])
    chances = np.exp(-(grid**2).sum(axis=-1) / 2) / (2 * math.pi)
    chances *= ACROSS * fine**2
    found, wide = (
        _epsilon(losses[::k, ::k], k * k * chances[::k, ::k], delta) for k in (1, 2)
    )
    return Cost(max(found + (found - wide) / 3, 0.0), abs(found - wide))


def _places(width: float) -> Array:
    """Grid points over the reach, with an even number of steps on each side."""
    half = 2 * math.ceil(REACH / width / 2)
    return width * np.arange(-half, half + 1.0)


def _epsilon(losses: Array, chances: Array, delta: float) -> float:
    """Epsilon where the mean of (1 - e^(epsilon - loss))_+ is delta; arrays are (m, k).

    About each point the loss is taken to be linear along the first axis and the chance
    to be constant, so that the error is of the order of the squared width.
    """
    widths = np.maximum(np.abs(np.gradient(losses, axis=0)), 1e-6)
    upper, lower = losses + widths / 2, losses - widths / 2
    weights = chances / widths

    def integral(over: Array) -> Array:
        over = np.maximum(over, 0.0)
        return over + np.expm1(-over)

    def excess(epsilon: float) -> float:
        means = integral(upper - epsilon) - integral(lower - epsilon)
        return float((weights * means).sum()) - delta

    if excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, 0.0, float(upper.max()), xtol=1e-9))


def planar(
    X: Array, replacement: Array, R: float, Lambda: float, sigma: float
) -> Planar:
    """The pair of records X (n, 2), labels 1, and the same with the first replaced.

    Parameters
    ----------
    X : ndarray, shape (n, 2)
        In units of the scales; clipped to R here.
    replacement : ndarray, shape (2,)
    """
    kinds, counts = np.unique(X[1:], axis=0, return_counts=True)
    one, two = (_clipped(v[None], R)[0] for v in (X[0], replacement))
    return Planar(_clipped(kinds, R), counts.astype(float), one, two, Lambda, sigma)


def _clipped(X: Array, R: float) -> Array:
    sizes = np.maximum(np.linalg.norm(X, axis=1), 1e-300)
    return X * np.minimum(1.0, R / sizes)[:, None]


# --- the pair that costs most ---------------------------------------------------------


@dataclass(frozen=True)
class Worst:
    """The most expensive pair found."""

    #: shape (n, 2); Records, their labels 1; the first is replaced. Either column has
    #: mean square 1, so that the scales are 1 whether estimated or declared.
    X: Array
    replacement: Array  #: shape (2,)
    pair: Planar
    cost: Cost  #: what the exact minimum costs on it


def worst(
    n: int, R: float, Lambda: float, sigma: float, delta: float, fine: float = FINE
) -> Worst:
    """The pair of n records in two features that costs the most at delta.

    The search is over the angles of both records and the length of the company's pull.
    It maximises the loss near the point where the Gaussian mechanism loses its epsilon.

    Parameters
    ----------
    n : int
        At least 4 and 2 R^2.
    R, Lambda, sigma : float
        Bound on a record, the whole ridge, and scale of the linear term.
    fine : float
        See ``cost``.
    """
    if n < max(4, 2 * R**2):
        raise ValueError(f"{n} records cannot have columns of mean square 1")
    mu = 2 * R / sigma
    far = gaussian_epsilon(mu, delta) / mu - mu / 2

    def pair_at(at: Array) -> Planar:
        (one, two), kinds, counts = _records(n, R, *at)
        company = _clipped(kinds, R)
        return Planar(company, counts.astype(float), one, two, Lambda, sigma)

    short = math.log(_SHORT * math.sqrt(Lambda / n))
    tried = [
        minimize(
            lambda at: -_typical(pair_at(at), far),
            [*angles, short],
            method="Nelder-Mead",
            options=_SEARCH,
        )
        for angles in _ANGLES
    ]
    best = min(tried, key=lambda one: float(one.fun)).x
    (base, replacement), kinds, counts = _records(n, R, *best)
    X = np.vstack([base[None], np.repeat(kinds, counts, axis=0)])
    return Worst(X, replacement, pair_at(best), cost(pair_at(best), delta, fine))


def pushed(n: int, R: float, Lambda: float) -> tuple[Array, Array]:
    """Records (n, 2), labels 1, and a replacement of the first that moves u most.

    All others are (-R, 0) and drive the minimiser u out. The two records lie nearly
    opposite each other, both turned so far back that u misclassifies them.
    """

    def pair_at(angle: float) -> Planar:
        base = R * np.array([math.sin(angle), math.cos(angle)])
        company = np.array([[-R, 0.0]])
        return Planar(company, np.full(1, n - 1.0), base, base * (1, -1), Lambda, 1.0)

    def near(angle: float) -> float:
        pair, none = pair_at(angle), np.zeros((1, 2))
        moved = pair.minimisers(none) - pair.turned.minimisers(none)
        return -float(np.linalg.norm(moved))

    best = pair_at(minimize_scalar(near, bounds=(0, math.pi / 2), method="bounded").x)
    X = np.vstack([best.base[None], np.repeat(best.company, n - 1, axis=0)])
    return X, best.replacement


def _records(
    n: int, R: float, one: float, other: float, short: float
) -> tuple[Array, Array, Array]:
    """The two records, the kinds of the others, and how many there are of each.

    Two kinds pull. One long record, soon classified, makes up for their short entries,
    and a zero record for an odd n.
    """
    base = R * np.array([math.sin(one), math.cos(one)])
    replacement = R * np.array([math.sin(other), -math.cos(other)])
    m, left = n - 2 - n % 2, n - base**2
    pull = min(math.exp(short), math.sqrt(_MOST * left[0] / m))
    wide, long = math.sqrt(left[1] / m), math.sqrt(left[0] - m * pull**2)
    kinds = np.array([[-pull, wide], [-pull, -wide], [-long, 0.0], [0.0, 0.0]])
    counts = np.array([m // 2, m // 2, 1, n % 2])
    return np.stack([base, replacement]), kinds, counts


def _typical(pair: Planar, far: float) -> float:
    """Mean loss, ``far`` standard deviations out along the records' difference."""
    b = pair.scale * np.array([[-far, across] for across in _PLACES]) @ pair.axes()
    return float(pair.losses(pair.minimisers(b), b).mean())
