"""What generalised Gaussian noise costs at least: its divergence by sampling.

Two data sets whose releases differ by s, ||s||_q = 1, leave noise about two centres.
The hockey-stick divergence of that pair at epsilon is E (1 - exp(epsilon - L))_+ over
the log-ratio L of the densities, and no accountant can go below the epsilon at which it
is delta. L is that large only once in 1/delta draws, so that draws come from a centre
further off and are weighted. Any s will do for a bound from below; three are tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # its parts come when they are first named

from dperm.accountants.generalised_gaussian import generalised_gaussian
from dperm.core.privacy.mechanisms import streams

DRAWS = 8_000
ERRORS = 3.0  # standard errors off the estimate: one-sided 99.9 % in each direction
_FURTHEST = 1e4  # shifts off the centre, for the draws


@dataclass(frozen=True)
class Draws:
    """Unit noise of order r in dimension d, for finding a shift and for the estimate.

    Attributes
    ----------
    pilot, sample : ndarray (k, d)
    """

    r: float
    pilot: np.ndarray
    sample: np.ndarray

    @cached_property
    def squares(self) -> np.ndarray:
        """||z||_r^2 of each draw of the sample, shape (k,)."""
        return _square(self.sample, self.r)

    @classmethod
    def of(cls, r: float, d: int, seed: int, draws: int = DRAWS) -> Draws:
        """Both from one named seed."""
        rng = streams(seed).noise
        pilot = generalised_gaussian(rng, r, (draws // 10, d))
        return cls(r, pilot, generalised_gaussian(rng, r, (draws, d)))


def directions(d: int, q: float) -> list[np.ndarray]:
    """Shifts of unit l_q norm: along one coordinate, half of them, all of them."""
    found = []
    for count in sorted({1, -(-d // 2), d}):
        shift = np.zeros(d)
        shift[:count] = 1.0 if math.isinf(q) else count ** (-1 / q)
        found.append(shift)
    return found


def least_epsilon(draws: Draws, q: float, multiplier: float, delta: float) -> float:
    """An epsilon that noise costs at least; the largest of all directions.

    Parameters
    ----------
    draws : Draws
    q : float
        Dual norm in which the release moves by 1.
    multiplier : float
        Noise scale over that.
    delta : float

    Returns
    -------
    float
        ``ERRORS`` standard errors below the estimate; 0 where nothing is seen.
    """
    d = draws.sample.shape[1]
    return max(_along(draws, shift / multiplier, delta) for shift in directions(d, q))


def _along(draws: Draws, shift: np.ndarray, delta: float) -> float:
    """The epsilon at which the divergence, less its errors, is delta; by bisection."""

    def beyond(epsilon: float) -> float:
        away = _centre(draws, shift, epsilon)
        return divergence(draws, shift, epsilon, away) - delta

    high = 1.0
    if beyond(0.0) <= 0:
        return 0.0
    while beyond(high) > 0:
        high *= 2
    return float(scipy.optimize.brentq(beyond, 0.0, high, xtol=1e-2))


def divergence(draws: Draws, shift: np.ndarray, epsilon: float, away: float) -> float:
    """The hockey-stick divergence less its errors, from draws about -away shifts."""
    z = draws.sample - away * shift
    here = _square(z, draws.r)
    loss = (_square(z - shift, draws.r) - here) / 2
    weight = np.exp((draws.squares - here) / 2)
    terms = weight * np.maximum(-np.expm1(epsilon - loss), 0.0)
    return float(terms.mean() - ERRORS * terms.std() / math.sqrt(len(terms)))


def _centre(draws: Draws, shift: np.ndarray, epsilon: float) -> float:
    """How many shifts off the loss is epsilon on average, by the pilot draws."""

    def short(away: float) -> float:
        z = draws.pilot - away * shift
        loss = (_square(z - shift, draws.r) - _square(z, draws.r)) / 2
        return float(loss.mean()) - epsilon

    if short(0.0) >= 0 or short(_FURTHEST) <= 0:
        return 0.0
    return float(scipy.optimize.brentq(short, 0.0, _FURTHEST, xtol=1e-3))


def _square(rows: np.ndarray, r: float) -> np.ndarray:
    """||z||_r^2 of each row."""
    return (np.abs(rows) ** r).sum(axis=1) ** (2 / r)
