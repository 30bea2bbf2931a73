r"""Lower bounds on epsilon from pairs of distributions that releases attain.

A release of an event's kind, on some data and some neighbour, has exactly this pair
(P, Q), or one arbitrarily near to it. Composing one pair per release, all in the same
direction, prices a mechanism that the ledger describes: the epsilon of the ledger
cannot be less.

An observer of the releases may test them. Every outcome is given a score on a grid, its
loss rounded up or down at random so that it is right on average, and the scores are
added up over all releases. Whatever the rounding, for every threshold c

.. math:: \delta \ge P(T > c) - e^\epsilon Q(T > c),

so that a coarse grid weakens the bound but never makes it wrong. The laws of the sum
*T* under P and under Q are composed separately, and every arithmetic error is charged
downwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
import scipy  # submodules are loaded on first use
from numpy.typing import NDArray

from dperm.accountants.noisy_max import NoisyMax
from dperm.core.privacy.certified import Composed, Scaled, U, compose, order
from dperm.core.privacy.ledger import Event, Gaussian, Laplace, SampledGaussian
from dperm.core.privacy.pld import Release

Array = NDArray[np.float64]

_BINS = 1 << 14  # of a density's outcomes
_REACH = 13.0  # standard deviations that they cover, on either side
LOUDEST = 30.0  # largest shift, for narrow bins; an epsilon of a few hundred
_TAIL_ERROR = 1e-13  # relative, of scipy's normal distribution function
_WINDOW = 300.0  # natural logarithms about the bulk in which thresholds are looked for


@dataclass(frozen=True)
class Pair:
    """The outcomes of a release, in bins, each with its chance under P and under Q."""

    #: p, q: shape (k,)
    p: Array
    q: Array
    error: Array  #: shape (k,); relative error of both

    def turned(self) -> Pair:
        """The pair (Q, P)."""
        return Pair(self.q, self.p, self.error)


@singledispatch
def gaussian_mu(event: Event) -> float:
    """The mu of a Gaussian pair that one release attains; 0 where none is known.

    It may also be approached. Let laws (P_k, Q_k) of what is released converge to
    N(mu, 1) and N(0, 1). Then delta of the limit is the largest of P f - e^epsilon Q f
    over continuous f with values in [0, 1]. Each of these is a limit of what the k-th
    pair costs at least. Below the epsilon of the limit some k costs more than delta.
    The same holds in composition with other releases, which do not depend on k.
    """
    return 0.0


@gaussian_mu.register
def _(event: Gaussian) -> float:
    return 1 / event.noise_multiplier


@singledispatch
def pair(event: Event, gap: float) -> Pair | None:
    """An attained pair of one release; None where none is known.

    Parameters
    ----------
    gap : float
        For selections: how far the leader is ahead, in noise scales.
    """
    mu = gaussian_mu(event)
    return gaussian_pair(mu) if mu else None


def gaussian_pair(mu: float) -> Pair:
    """N(mu, 1) against N(0, 1)."""
    return sampled_pair(1.0, mu)


def sampled_pair(rate: float, mu: float) -> Pair:
    """(1-q) N(0, 1) + q N(mu, 1) against N(0, 1).

    All other records of the data have the gradient -C, the neighbour's record as well,
    and the replaced one C: a batch has the sum -b C, or 2 C more if the record is in
    it. A shift beyond ``LOUDEST`` is replaced by that, which costs less.
    """
    mu = min(mu, LOUDEST)
    edges = np.linspace(-_REACH, mu + _REACH, _BINS + 1)
    (null, off), (moved, error) = _normal(edges), _normal(edges - mu)
    return Pair((1 - rate) * null + rate * moved, null, np.maximum(off, error) + 4 * U)


def _normal(edges: Array) -> tuple[Array, Array]:
    """Mass of N(0, 1) in narrow bins, the first and last open, and its relative error.

    The density at the middle and two terms of its Taylor series; the third bounds the
    rest. A difference of distribution functions would lose digits.
    """
    width, at = edges[1] - edges[0], (edges[:-1] + edges[1:]) / 2
    square = at * at
    mass = np.exp(-square / 2) / math.sqrt(2 * math.pi) * width
    mass *= 1 + (square - 1) * width**2 / 24
    error = np.abs(square * (square - 6) + 3) * width**4 / 960 + (16 + 4 * square) * U
    mass[0], mass[-1] = scipy.special.ndtr(edges[1]), scipy.special.ndtr(-edges[-2])
    error[0] = error[-1] = _TAIL_ERROR
    return mass, error


@pair.register
def _(event: SampledGaussian, gap: float) -> Pair:
    return sampled_pair(event.sampling_rate, 1 / event.noise_multiplier)


@pair.register
def _(event: Laplace, gap: float) -> Pair:
    """Lap(0, 1) against Lap(a, 1): below 0, above a, and between."""
    a = event.sensitivity / event.scale
    x = np.linspace(0.0, a, _BINS // 4 + 1)
    between = -np.expm1(-np.diff(x)) / 2
    p = np.concatenate([[0.5], between * np.exp(-x[:-1]), [math.exp(-a) / 2]])
    return Pair(p, p[::-1].copy(), np.full(p.size, 32 * U * (1 + a)))


def response_pair(win: Callable[[float], float], shift: float, gap: float) -> Pair:
    """Which of two noisy scores is the larger, when their difference moves.

    Parameters
    ----------
    win : callable
        Chance that a score wins, as a function of its lead in noise scales.
    shift : float
        Between the two data sets, in noise scales.
    gap : float
        By how much the score that gains is behind, beyond half the shift. At 0 either
        answer reveals as much; far behind, the rare one reveals more.
    """
    p, q = win(shift / 2 - gap), win(-shift / 2 - gap)
    return Pair(np.array([p, 1 - p]), np.array([q, 1 - q]), np.full(2, 64 * U))


def _laplace_win(ahead: float) -> float:
    tail = math.exp(-abs(ahead)) * (2 + abs(ahead)) / 4
    return 1 - tail if ahead > 0 else tail


def _exponential_win(ahead: float) -> float:
    return 1 - math.exp(-ahead) / 2 if ahead > 0 else math.exp(ahead) / 2


def _gumbel_win(ahead: float) -> float:
    return 1 / (1 + math.exp(-ahead))


# Chance that the first of two noisy scores wins, by its lead in noise scales.
WINS = {
    "laplace": _laplace_win,
    "gumbel": _gumbel_win,
    "exponential": _exponential_win,
}


@pair.register
def _(event: NoisyMax, gap: float) -> Pair | None:
    """Two scores, of which one gains and the other loses; noise on the score."""
    return response_pair(WINS[event.noise], event.pure, gap) if event.sound else None


# --- what several of them cost --------------------------------------------------------


def least_epsilon(
    pairs: Sequence[tuple[Pair, int, float]], interval: float, delta: float
) -> tuple[float, int]:
    """Lower bound >= 0 on the epsilon of composed pairs, and the points it took.

    Parameters
    ----------
    pairs : sequence of (Pair, int, float)
        With how often each is composed, and the largest loss worth a separate cell.
    interval : float
        Spacing of the grid of scores.
    """
    laws = [_laws(*one, interval) for one in pairs]
    high = [law for law, _ in laws]
    tilt = order([one.release for one in high], delta, interval)
    p = compose(high, interval, tilt)
    q = compose([law for _, law in laws], interval, tilt + interval)
    first = max(p.first, q.first)
    last = min(p.first + p.masses.size, q.first + q.masses.size) - 1
    peak = p.first + int(np.argmax(p.masses))
    reach = int(_WINDOW / tilt) + 1
    least = max(math.ceil((law.log_scale - 700) / law.tilt) for law in (p, q))
    ends = (max(first, peak - reach, least), min(last, peak + reach))
    cells = np.arange(*ends, dtype=np.int64)
    points = p.masses.size + q.masses.size
    if not cells.size:
        return 0.0, points
    (lower, short), (upper, over) = (_beyond(law, cells) for law in (p, q))
    above = lower - short > delta  # false where it is NaN
    if not above.any():
        return 0.0, points
    ratios = (lower - short - delta)[above] / (upper + over)[above]
    best = float(np.log(np.nanmax(ratios, initial=1.0)))
    return best * (1 - 1e-12), points


def _laws(pair: Pair, count: int, top: float, interval: float) -> tuple[Scaled, Scaled]:
    """Laws of the score of one release under P, from below, and under Q, from above."""
    cells = max(1, math.ceil(top / interval))
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.nan_to_num(np.log(pair.p / pair.q) / interval)
    score = np.clip(score, -cells, cells)
    below = np.minimum(np.floor(score), cells - 1.0)
    up, at = score - below, below.astype(np.int64) + cells
    both = np.concatenate([at, at + 1])

    def law(mass: Array) -> Scaled:
        split = np.concatenate([mass * (1 - up), mass * up])
        masses = np.asarray(np.bincount(both, split, 2 * cells + 1), dtype=float)
        return Scaled(Release(masses, 0.0, count), 2 * U * math.sqrt(split.size))

    return law(pair.p * (1 - pair.error)), law(pair.q * (1 + pair.error))


def _beyond(law: Composed, cells: NDArray[np.int64]) -> tuple[Array, Array]:
    """Chances that the score exceeds each of a range of cells, and their errors.

    NaN where the sum would have to reach beyond the range that was summed.
    """
    start, stop = int(cells[0]) - law.first, int(cells[-1]) - law.first
    masses = np.maximum(law.masses[start + 1 :], 0.0)
    steps = np.arange(1.0, masses.size + 1)
    kept = steps * law.tilt < 2 * _WINDOW + 80  # the rest is negligible
    summed = np.cumsum((masses * np.exp(-law.tilt * steps))[kept][::-1])[::-1]
    scale = np.exp(law.log_scale - law.tilt * cells[0])
    chances = np.full(cells.size, np.nan)
    chances[: min(summed.size, stop - start + 1)] = scale * summed[: stop - start + 1]
    weight = np.exp(law.log_scale - law.tilt * (cells + 1.0))
    norm = 1 / math.sqrt(-math.expm1(-2 * law.tilt))
    off = weight * (law.error * norm + law.wrapped + math.exp(-70))
    return chances, off + chances * (law.relative + 4 * U * masses.size)
