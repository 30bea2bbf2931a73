"""Lower bounds on privacy losses from samples, each with its level of error.

A bound is exceeded by the truth with probability at least 1 - level, whatever the
mechanism: thresholds are chosen on one half of the samples and judged on the other.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from dperm.privacy.accounting import gaussian_epsilon

Array = np.ndarray


def clopper_pearson(
    hits: Array, trials: int, level: float, upper: bool = False
) -> Array:
    """One-sided confidence bounds on probabilities (Clopper and Pearson 1934).

    Parameters
    ----------
    hits : ndarray of int
    trials : int
    level : float
        Chance that the bound is wrong.
    upper : bool
        Upper instead of lower bounds.

    Examples
    --------
    >>> round(float(clopper_pearson(np.array(0), 100, 0.05, upper=True)), 4)
    0.0295
    """
    hits = np.asarray(hits, dtype=float)
    if upper:
        found = stats.beta.ppf(1 - level, hits + 1, np.maximum(trials - hits, 1e-300))
        return np.where(hits >= trials, 1.0, found)
    found = stats.beta.ppf(level, np.maximum(hits, 1e-300), trials - hits + 1)
    return np.where(hits <= 0, 0.0, found)


def ratio_bound(under: Array, over: Array, trials: int, level: float, delta: float):
    """Lower bounds on epsilon from events with so many hits on D and on D'.

    (epsilon, delta)-privacy means P(E | D) <= e^epsilon P(E | D') + delta.
    """
    low = clopper_pearson(under, trials, level / 2) - delta
    high = clopper_pearson(over, trials, level / 2, upper=True)
    return np.log(np.maximum(low, 1e-300) / high)


def gdp_bound(under: Array, over: Array, trials: int, level: float) -> Array:
    """Lower bounds on mu from events: a mu-GDP release is no easier to tell apart.

    Notes
    -----
    Nasr et al. 2023, arXiv:2302.07956; Dong, Roth and Su 2019, Lemma 2.9.
    """
    low = clopper_pearson(under, trials, level / 2)
    high = clopper_pearson(over, trials, level / 2, upper=True)
    return stats.norm.ppf(low) - stats.norm.ppf(high)


def separation(
    first: Array, second: Array, level: float, delta: float, gaussian: bool
) -> float:
    """Lower bound on the epsilon of two samples of a statistic, on D and on D'.

    Parameters
    ----------
    first, second : ndarray, shape (m,)
        Larger where D is likelier.
    level : float
        Chance that the bound exceeds the truth.
    delta : float
    gaussian : bool
        The release is Gaussian: bound mu, and return the epsilon that belongs to it.

    Returns
    -------
    float
        At least 0.
    """
    half = len(first) // 2
    best, found = -math.inf, 0.0
    thresholds = np.unique(np.quantile(np.concatenate([first, second]), _QUANTILES))
    for sign in (1, -1):  # each direction has half of the level
        one, two = (first, second) if sign == 1 else (-second, -first)
        for at in sign * thresholds:
            guess = _event(one[:half], two[:half], at, level, delta, gaussian)
            if guess > best:
                best = guess
                found = _event(one[half:], two[half:], at, level, delta, gaussian)
    if not gaussian:
        return max(found, 0.0)
    return gaussian_epsilon(found, delta) if found > 0 else 0.0


_LOW = np.geomspace(0.002, 0.5, 14)
_QUANTILES = np.concatenate([_LOW, 1 - _LOW[:-1]])  # where thresholds are tried


def _event(
    one: Array, two: Array, at: float, level: float, delta: float, gaussian: bool
) -> float:
    under, over = (one >= at).sum(), (two >= at).sum()
    if gaussian:
        value = gdp_bound(under, over, len(one), level / 2)
    else:
        value = ratio_bound(under, over, len(one), level / 2, delta)
    return float(np.nan_to_num(value, neginf=-1e300))


def delta_bound(losses: Array, epsilon: float, level: float, seed: int) -> float:
    """Lower bound on delta(epsilon) = E (1 - e^(epsilon - loss))_+.

    Parameters
    ----------
    losses : ndarray
        Privacy losses log P(o | D) / P(o | D') of outputs o on D; inf is allowed.
    epsilon : float
    level : float
        Chance that the bound is wrong.
    seed : int
        Of the coins that make each term 0 or 1, so that the bound is exact.
    """
    terms = -np.expm1(np.minimum(epsilon - losses, 0.0))
    coins = np.random.default_rng(seed).random(len(losses))
    return float(clopper_pearson((coins < terms).sum(), len(losses), level))


def epsilon_bound(losses: Array, delta: float, level: float, seed: int) -> float:
    """Lower bound on epsilon at delta, from a sample of losses: at least 0."""
    low, high = 0.0, float(np.minimum(losses, 1e6).max(initial=0.0))
    if delta_bound(losses, 0.0, level, seed) < delta:
        return 0.0
    for _ in range(50):  # one set of coins: the bound only falls with epsilon
        middle = 0.5 * (low + high)
        enough = delta_bound(losses, middle, level, seed) >= delta
        low, high = (middle, high) if enough else (low, middle)
    return low
