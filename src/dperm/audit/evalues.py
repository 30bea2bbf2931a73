"""Tests and lower bounds on privacy losses by betting, valid whenever one stops.

Who bets against "this mechanism is (epsilon, delta)-private" on pairs of runs, one on D
and one on D', cannot expect to win: with an event E,

    X = 1[E on D],  Y = 1[E on D'],   E[X - e^epsilon Y - delta] <= 0,

so that capital 1, a share of it staked on every pair, is a supermartingale. It reaches
1/level with probability at most ``level`` (Ville; Ramdas, Grünwald, Vovk and Shafer
2023, arXiv:2210.01948). Bets on several events, of several shares, are averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy.special import logsumexp

Array = np.ndarray

SHARES = (0.003, 0.03, 0.1, 0.3, 0.6, 0.9)  # of the capital, over what can be lost
QUANTILES = (0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97, 0.99)
EPSILONS = np.concatenate([np.arange(0.02, 1, 0.02), np.geomspace(1, 64, 90)])
_HALVINGS = 40  # of a lower bound on epsilon

Point = tuple[float, float]  # epsilon, delta


def capital(payoffs: Array, lost: float) -> Array:
    """Logarithm of the capital after each round, all bets averaged.

    Parameters
    ----------
    payoffs : ndarray, shape (rounds, bets)
        Of stakes of 1; their expectation is not positive where nothing is wrong.
    lost : float
        The most that a stake of 1 can lose.

    Returns
    -------
    ndarray, shape (rounds,)

    Examples
    --------
    A coin said to be fair, which always shows heads:

    >>> bool(capital(np.ones((20, 1)), 1.0)[-1] > np.log(1000))
    True
    """
    gains = [
        np.cumsum(np.log1p(np.maximum(share / lost * payoffs, -0.999)), axis=0)
        for share in SHARES
    ]
    every = np.concatenate(gains, axis=1)
    found: Array = logsumexp(every, axis=1) - math.log(every.shape[1])
    return found


def best(logs: Array) -> float:
    """Logarithm of the largest capital there ever was, at least that at the start."""
    return float(max(logs.max(initial=0.0), 0.0))


def events(first: Array, second: Array, thresholds: Array) -> tuple[Array, Array]:
    """Events "above" and "not above" each threshold on D and D', (rounds, events)."""
    one, two = (side[:, None] > thresholds for side in (first, second))
    both = np.concatenate([one, ~one], axis=1), np.concatenate([two, ~two], axis=1)
    return both[0].astype(float), both[1].astype(float)


def bets(one: Array, two: Array, points: Iterable[Point]) -> Array:
    """Capital after each round of pairs, against all points of a privacy curve.

    Parameters
    ----------
    one, two : ndarray of 0 and 1, shape (rounds, events)
        Events on D and on D'; both directions are bet on.
    points : iterable of (epsilon, delta)

    Returns
    -------
    ndarray, shape (rounds,)
        Logarithms.
    """
    found = []
    for epsilon, delta in points:
        ratio = math.exp(min(epsilon, 500.0))
        forth, back = one - ratio * two - delta, two - ratio * one - delta
        found.append(capital(np.concatenate([forth, back], axis=1), ratio + delta))
    return logsumexp(found, axis=0) - math.log(len(found))


def refuted(one: Array, two: Array, delta: float, level: float) -> float:
    """Lower bound on epsilon at delta: all that is below it is refuted; 0 if nothing.

    Going up a ladder of values until one stands, a wrong bound takes a wrong refutation
    of the first value that is true, which is one test.
    """
    found = 0.0
    for epsilon in EPSILONS:
        if best(bets(one, two, [(float(epsilon), delta)])) < -math.log(level):
            break
        found = float(epsilon)
    return found


def thresholds(values: Sequence[float]) -> Array:
    """Quantiles of a statistic, to cut it at."""
    found: Array = np.unique(np.quantile(np.asarray(values), QUANTILES))
    return found


def delta_capital(losses: Array, epsilon: float, delta: float) -> Array:
    """Capital against E (1 - e^(epsilon - loss))_+ <= delta, after each loss."""
    terms = -np.expm1(np.minimum(epsilon - losses, 0.0))
    return capital((terms - delta)[:, None], delta)


def losses_bound(losses: Array, delta: float, level: float) -> float:
    """Lower bound on epsilon at delta from privacy losses of outputs on D.

    Parameters
    ----------
    losses : ndarray
        log P(o | D) / P(o | D') of independent outputs o; infinity is allowed.
    delta : float
    level : float
        Chance that the bound is wrong.
    """

    def enough(epsilon: float) -> bool:
        return best(delta_capital(losses, epsilon, delta)) >= -math.log(level)

    return largest(enough, float(np.minimum(losses, 1e6).max(initial=0.0)))


def largest(enough: Callable[[float], bool], high: float) -> float:
    """The largest epsilon up to a bound that is enough; at least 0."""
    low = 0.0
    if not enough(0.0):
        return 0.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low
