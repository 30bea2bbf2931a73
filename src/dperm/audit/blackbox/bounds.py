"""Lower bounds on epsilon from counts and from privacy losses, each with its level.

A bound exceeds the truth with probability at most its level, whatever the function.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betaincinv

from dperm.audit.evalues import largest

Array = np.ndarray


def clopper_pearson(hits: Array, trials: int, level: float) -> tuple[Array, Array]:
    """One-sided confidence bounds on probabilities, each wrong with chance ``level``.

    Notes
    -----
    Clopper and Pearson 1934.

    Examples
    --------
    >>> low, high = clopper_pearson(np.array([0, 100]), 100, 0.05)
    >>> high.round(4).tolist(), low.round(4).tolist()
    ([0.0295, 1.0], [0.0, 0.9705])
    """
    hits = np.asarray(hits, dtype=float)
    inside = np.clip(hits, 1, trials - 1)
    low = betaincinv(np.where(hits < trials, inside, trials), trials - hits + 1, level)
    high = betaincinv(inside + 1, trials - inside, 1 - level)
    high = np.where(hits == 0, -np.expm1(math.log(level) / trials), high)
    return np.where(hits > 0, low, 0.0), np.where(hits < trials, high, 1.0)


def ratio_bound(
    under: Array, over: Array, trials: int, level: float, delta: float
) -> Array:
    """Lower bounds on epsilon from events with so many hits on D and on D'.

    (epsilon, delta)-privacy means P(E | D) <= e^epsilon P(E | D') + delta.
    """
    low, _ = clopper_pearson(under, trials, level / 2)
    _, high = clopper_pearson(over, trials, level / 2)
    return np.log(np.maximum(low - delta, 1e-300) / high)


def losses_bound(losses: Array, delta: float, level: float, seed: int) -> float:
    """Lower bound on epsilon at delta from privacy losses of outputs on D; at least 0.

    Bounds delta(epsilon) = E (1 - e^(epsilon - loss))_+ from below, by coins that make
    every term 0 or 1, so that Clopper and Pearson's bound is exact.

    Parameters
    ----------
    losses : ndarray
        log P(o | D) / P(o | D') of independent outputs o; infinity is allowed.
    delta : float
    level : float
    seed : int
        Of the coins, one set for all epsilon: the bound only falls with epsilon.
    """
    coins = np.random.Generator(np.random.PCG64(seed)).random(len(losses))

    def enough(epsilon: float) -> bool:
        terms = -np.expm1(np.minimum(epsilon - losses, 0.0))
        hits = np.array((coins < terms).sum())
        return float(clopper_pearson(hits, len(losses), level)[0]) >= delta

    return largest(enough, float(np.minimum(losses, 1e6).max(initial=0.0)))
