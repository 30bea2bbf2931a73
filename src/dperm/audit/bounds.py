"""Lower bounds on epsilon from runs: by betting, and by counting.

Betting is valid at any stopping time. The bet is against "this mechanism is (epsilon,
delta)-private", on pairs of runs, one on D and one on D'. If the mechanism is private,
the expected gain is not positive: with an event E,

    X = 1[E on D],  Y = 1[E on D'],   E[X - e^epsilon Y - delta] <= 0,

so that a capital that starts at 1 and stakes a share of itself on every pair is a
supermartingale. It reaches 1/level with probability at most ``level`` (Ville; Ramdas,
Grünwald, Vovk and Shafer 2023, arXiv:2210.01948). Bets on several events, of several
shares, are averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.random import PCG64, Generator
from scipy.special import logsumexp

from dperm.present.intervals import binomial_bounds

Array = np.ndarray

SHARES = (0.003, 0.03, 0.1, 0.3, 0.6, 0.9)  # of the capital, that may be lost in a bet
QUANTILES = (0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97, 0.99)
EPSILONS = np.concatenate([np.arange(0.02, 1, 0.02), np.geomspace(1, 64, 90)])
_HALVINGS = 40  # bisections of a lower bound on epsilon
SIZE = 60_000  # of a sample of noise; a pilot sample chooses where it is drawn
_PILOT = 4_000
_FAR = np.geomspace(1.0, 100.0, 25)  # places, in units of the shift

Point = tuple[float, float]  # epsilon, delta


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
    logs = []
    for epsilon, delta in points:
        ratio = math.exp(min(epsilon, 500.0))
        forth, back = one - ratio * two - delta, two - ratio * one - delta
        logs.append(capital(np.concatenate([forth, back], axis=1), ratio + delta))
    return logsumexp(logs, axis=0) - math.log(len(logs))


def refuted(one: Array, two: Array, delta: float, level: float) -> float:
    """Lower bound on epsilon at delta: the largest refuted value; 0 if none is.

    Values are tried in increasing order until one is not refuted. The bound is wrong
    only if the first true value is refuted, which is one test.
    """
    refuted_up_to = 0.0
    for epsilon in EPSILONS:
        if best(bets(one, two, [(float(epsilon), delta)])) < -math.log(level):
            break
        refuted_up_to = float(epsilon)
    return refuted_up_to


def thresholds(values: Sequence[float]) -> Array:
    """Quantiles of a statistic, as thresholds of events."""
    return np.unique(np.quantile(np.asarray(values), QUANTILES))


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


# --- generalised Gaussian noise -------------------------------------------------------


def generalised_noise(rng: Generator, order: float, size: int, d: int) -> Array:
    r"""Noise of density exp(-\|z\|_r^2 / 2) up to a constant, (size, d)."""
    powers = rng.standard_gamma(1 / order, (size, d))
    signs = np.where(rng.random((size, d)) < 0.5, -1.0, 1.0)
    radius = np.sqrt(rng.chisquare(d, size)) / powers.sum(axis=1) ** (1 / order)
    return signs * powers ** (1 / order) * radius[:, None]


def norm_bound(
    shift: Array, order: float, delta: float, level: float, seed: int
) -> float:
    """Lower bound on epsilon at delta where a neighbour needs the noise shifted.

    Parameters
    ----------
    shift : ndarray, shape (d,)
    order : float
        r.
    level : float
        Chance that the bound is wrong.
    """
    rng = np.random.default_rng([seed, 11])
    pilot, noise = (
        generalised_noise(rng, order, m, shift.size) for m in (_PILOT, SIZE)
    )
    least, place = 0.0, len(_FAR) // 2
    for epsilon in EPSILONS:
        # the pilot decides where to draw: bets need numbers independent of that
        near = range(max(place - 2, 0), min(place + 3, len(_FAR)))
        tried = {k: _terms(pilot, shift, order, epsilon, _FAR[k]) for k in near}
        merits = {_merit(terms): k for k, terms in tried.items()}
        place = merits[max(merits)]
        terms = _terms(noise, shift, order, epsilon, _FAR[place])
        logs = capital((terms - delta)[:, None], delta)
        if best(logs) < -np.log(level):
            break
        least = float(epsilon)
    return least


def _terms(
    noise: Array, shift: Array, order: float, epsilon: float, far: float
) -> Array:
    """Terms of delta(epsilon) by importance sampling, ``far`` shifts away; (size,)."""
    z = noise + far * shift
    here = _half_square(z, order)
    loss = _half_square(z + shift, order) - here
    weight = np.exp(np.minimum(_half_square(noise, order) - here, 700.0))
    return weight * delta_terms(loss, epsilon)


def _merit(terms: Array) -> float:
    """Mean over deviation."""
    spread = float(terms.std())
    return float(terms.mean()) / spread if spread else 0.0


def _half_square(z: Array, order: float) -> Array:
    return 0.5 * (np.abs(z) ** order).sum(axis=1) ** (2 / order)
