"""Epsilon of a generalised Gaussian release by importance sampling, from below.

Where a shift has no convenient direction, delta(epsilon) = E (1 - e^(epsilon - L))_+
is an integral in all dimensions. Noise is drawn about a point where the loss is large,
and weighed; the terms are not negative, which is all that a bet on their mean needs.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from dperm.audit.evalues import EPSILONS, best, capital
from dperm.audit.subjects import Array

SIZE = 60_000
_PILOT = 4_000
_FAR = np.geomspace(1.0, 100.0, 25)  # places, in units of the shift


def drawn(rng: Generator, order: float, size: int, d: int) -> Array:
    r"""Noise of density exp(-\|z\|_r^2 / 2) up to a constant, (size, d)."""
    powers = rng.standard_gamma(1 / order, (size, d))
    signs = np.where(rng.random((size, d)) < 0.5, -1.0, 1.0)
    radius = np.sqrt(rng.chisquare(d, size)) / powers.sum(axis=1) ** (1 / order)
    found: Array = signs * powers ** (1 / order) * radius[:, None]
    return found


def norm_bound(
    shift: Array, order: float, delta: float, level: float, seed: int
) -> float:
    """Lower bound on epsilon at delta of noise that a neighbour needs shifted.

    Parameters
    ----------
    shift : ndarray, shape (d,)
    order : float
        r.
    delta : float
    level : float
        Chance that the bound is wrong.
    seed : int
    """
    rng = np.random.default_rng([seed, 11])
    pilot, noise = (drawn(rng, order, m, shift.size) for m in (_PILOT, SIZE))
    found, place = 0.0, len(_FAR) // 2
    for epsilon in EPSILONS:
        # where to draw is decided on other numbers than those that are bet on
        near = range(max(place - 2, 0), min(place + 3, len(_FAR)))
        tried = {k: _terms(pilot, shift, order, epsilon, _FAR[k]) for k in near}
        merits = {_merit(terms): k for k, terms in tried.items()}
        place = merits[max(merits)]
        terms = _terms(noise, shift, order, epsilon, _FAR[place])
        logs = capital((terms - delta)[:, None], delta)
        if best(logs) < -np.log(level):
            break
        found = float(epsilon)
    return found


def _terms(
    noise: Array, shift: Array, order: float, epsilon: float, far: float
) -> Array:
    """Terms of delta(epsilon), weighed for noise that is drawn so far away; (size,)."""
    z = noise + far * shift
    here = _half_square(z, order)
    loss = _half_square(z + shift, order) - here
    weight = np.exp(np.minimum(_half_square(noise, order) - here, 700.0))
    found: Array = weight * -np.expm1(np.minimum(epsilon - loss, 0.0))
    return found


def _merit(terms: Array) -> float:
    """Mean over deviation."""
    spread = float(terms.std())
    return float(terms.mean()) / spread if spread else 0.0


def _half_square(z: Array, order: float) -> Array:
    found: Array = 0.5 * (np.abs(z) ** order).sum(axis=1) ** (2 / order)
    return found
