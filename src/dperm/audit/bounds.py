"""Lower bounds on epsilon from runs: by betting, and by counting.

Betting is valid at any stopping time. A capital that starts at 1 and stakes shares of
itself on payoffs whose expectation is not positive is a supermartingale, and reaches
1/level with probability at most ``level`` (Ville; Ramdas, Grünwald, Vovk and Shafer
2023, arXiv:2210.01948). Bets of several shares are averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.random import PCG64, Generator
from scipy.special import logsumexp

from dperm.present.intervals import binomial_bounds

Array = np.ndarray

SHARES = (0.003, 0.03, 0.1, 0.3, 0.6, 0.9)  # of the capital, that may be lost in a bet
_HALVINGS = 40  # bisections of a lower bound on epsilon


def capital(payoffs: Array, lost: float) -> Array:
    """Logarithm of the capital after each round, all bets averaged.

    Parameters
    ----------
    payoffs : ndarray, shape (rounds, bets)
        Of stakes of 1; their expectation is not positive if the claim is true.
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
    return logsumexp(every, axis=1) - math.log(every.shape[1])


def best(logs: Array) -> float:
    """Logarithm of the largest capital in any round; at least 0, the start."""
    return float(max(logs.max(initial=0.0), 0.0))


def delta_terms(losses: Array, epsilon: float) -> Array:
    """Terms of delta(epsilon) = E (1 - e^(epsilon - loss))_+, each in [0, 1]."""
    return -np.expm1(np.minimum(epsilon - losses, 0.0))


def losses_bound(
    losses: Array, delta: float, level: float, coins: int | None = None
) -> float:
    """Lower bound on epsilon at delta from privacy losses of outputs on D; at least 0.

    Bounds delta(epsilon) from below by betting, or with ``coins`` by counting: coins
    make every term 0 or 1, so that Clopper and Pearson's bound is exact.

    Parameters
    ----------
    losses : ndarray
        log P(o | D) / P(o | D') of independent outputs o; infinity is allowed.
    level : float
        Chance that the bound is wrong.
    coins : int, optional
        Seed of the coins, shared by all epsilon: the bound only falls with epsilon.
    """
    tossed = None if coins is None else Generator(PCG64(coins)).random(len(losses))

    def enough(epsilon: float) -> bool:
        terms = delta_terms(losses, epsilon)
        if tossed is None:
            return best(capital((terms - delta)[:, None], delta)) >= -math.log(level)
        hits = np.array((tossed < terms).sum())
        return float(clopper_pearson(hits, len(losses), level)[0]) >= delta

    return largest(enough, float(np.minimum(losses, 1e6).max(initial=0.0)))


def largest(enough: Callable[[float], bool], high: float) -> float:
    """The largest epsilon up to ``high`` that is ``enough``; 0 if none is."""
    low = 0.0
    if not enough(0.0):
        return 0.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


def clopper_pearson(hits: Array, trials: int, level: float) -> tuple[Array, Array]:
    """One-sided confidence bounds on probabilities, each wrong with chance ``level``.

    Examples
    --------
    >>> low, high = clopper_pearson(np.array([0, 100]), 100, 0.05)
    >>> high.round(4).tolist(), low.round(4).tolist()
    ([0.0295, 1.0], [0.0, 0.9705])
    """
    low, high = binomial_bounds(hits, trials, level)
    none = -math.expm1(math.log(level) / trials)  # 1 - level loses the digits of level
    return low, np.where(np.asarray(hits) == 0, none, high)


def ratio_bound(
    under: Array, over: Array, trials: int, level: float, delta: float
) -> Array:
    """Lower bounds on epsilon from numbers of hits of events on D and on D'.

    (epsilon, delta)-privacy means P(E | D) <= e^epsilon P(E | D') + delta.
    """
    low, _ = clopper_pearson(under, trials, level / 2)
    _, high = clopper_pearson(over, trials, level / 2)
    return np.log(np.maximum(low - delta, 1e-300) / high)
