r"""The price of choosing the best of several private runs, by privacy profiles.

A random number *K* of runs is made. Each has a setting drawn uniformly from a grid and
releases its score; the run with the best score is published. *K* is truncated negative
binomial with parameters :math:`\eta > -1` and :math:`\gamma` (Papernot and Steinke
2022, arXiv:2110.03620, Definition 1). If a run, its score included, has the profile
:math:`\delta(\epsilon)`, the choice has, for any :math:`\hat\epsilon`,

.. math:: \delta'(\epsilon) \le E[K]\, \delta\Bigl(\epsilon - (1 + \eta) \log\bigl(
          e^{\hat\epsilon} + \tfrac{1 - \gamma}{\gamma} \delta(\hat\epsilon)\bigr)
          \Bigr)

(Koskela, Redberg and Wang 2024, arXiv:2402.06701).

*Proof.* Let Q be the law of one run, and q(y) the chance that a run does no better than
y. The published y has the law :math:`Q(dy) f'(q(y))`, f the generating function of K,
with :math:`f'(q) \propto (1 - (1 - \gamma) q)^{-1-\eta}`. Being no better than y is an
event: the privacy of a run gives :math:`1 - q' \le e^{\hat\epsilon}(1 - q) +
\delta(\hat\epsilon)` both ways, so that :math:`1 - (1 - \gamma) q' = \gamma + (1 -
\gamma)(1 - q') \le (e^{\hat\epsilon} + (1 - \gamma)\delta(\hat\epsilon) / \gamma)(1 -
(1 - \gamma) q)`, and :math:`f'(q) \le f'(q') (e^{\hat\epsilon} + \dots)^{1 + \eta}`.
Hence for every set the chance under D less :math:`e^\epsilon` times that under D' is at
most :math:`\int f'(q) (dQ - e^{\epsilon - \dots} dQ')_+`, and :math:`f' \le f'(1) =
E[K]`. ∎

Here :math:`\eta = 0`, the logarithmic distribution: its price has no factor that
grows, and is below that of the geometric one. (Truncated negative binomials with a
negative :math:`\eta` leave a run a few per cent more for as many runs, at tuned
parameters: at epsilon 1, n = 45312, 0.805 of the budget instead of 0.756.) One run is a
MIXTURE: a setting is drawn, and each setting has a separate ledger. The profile of a
mixture is at most the largest of its parts, at every epsilon, so that all parts are
held to one :math:`\hat\epsilon` and one :math:`\epsilon - \log(\dots)`: those of the
first part, which alone just meets the target (:class:`Held`). Where profiles take long
to compute, the same is done with Rényi orders, whose divergences have that property
too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from dperm.accountants.random_stopping import converted, expected_runs, renyi_curve
from dperm.core.calibrations import STRICT
from dperm.core.privacy.accounting import is_closed_form, true_epsilon
from dperm.core.privacy.calibration import UnreachableTargetError, smallest
from dperm.core.privacy.ledger import Ledger

ORDERS = 1 + np.geomspace(0.3, 1000, 40)  # fewer, as each takes long to compute
GAMMA = 0.1  # 3.9 runs on average
TRIED = np.geomspace(1e-4, 0.1, 13)  # deltas of the inner epsilon
TOLERANCE, ROUGH = 1e-6, 1e-3  # relative, of a noise multiplier; ROUGH by Rényi curves


@dataclass(frozen=True)
class Held:
    """Limits on each run of a choice, so that the choice meets a target."""

    #: whether by profiles, ``at`` deltas; else by Rényi curves, ``at`` orders
    closed: bool
    at: tuple[float, float]  #: (float, float); of the outer and of the inner bound
    #: (float, float); epsilons at the deltas, or divergences at the orders
    most: tuple[float, float]

    def excess(self, ledger: Ledger) -> float:
        """What a run costs over what it may cost; at most 1 if it meets the limits."""
        bounds = values(ledger, self.closed, self.at)
        pairs = [one for one in zip(bounds, self.most, strict=True) if any(one)]
        return max((one / most if most else math.inf for one, most in pairs), default=0)


def values(
    ledger: Ledger, closed: bool, at: tuple[float, float]
) -> tuple[float, float]:
    """A ledger's epsilons at two deltas, or divergences at two orders."""
    if closed:
        return true_epsilon(ledger, at[0]), true_epsilon(ledger, at[1])
    one, two = renyi_curve(ledger, np.array(at)).tolist()
    return one, two


def choice_epsilon(
    ledgers: Sequence[Ledger], delta: float, gamma: float = GAMMA
) -> float:
    """Epsilon of publishing the best of a logarithmic number of runs.

    By profiles where all ledgers have closed forms, by Rényi curves
    (``random_stopping``) where none has, and otherwise by the smaller bound of both.

    Parameters
    ----------
    ledgers : sequence of Ledger
        Of a run and its score, one for every setting that may be drawn.
    delta : float
        Of the whole choice.
    gamma : float
        Parameter of the number of runs.

    Examples
    --------
    >>> from dperm.core.privacy.ledger import Gaussian
    >>> one = Ledger((Gaussian(1.0, 10.0, 1, "", ""),))
    >>> round(choice_epsilon([one], 1e-6), 3)
    0.603
    """
    runs = expected_runs(0.0, gamma)
    closed = [is_closed_form(ledger, STRICT) for ledger in ledgers]
    bounds = []
    if not all(closed):
        bounds.append(_by_orders(_largest_curve(ledgers), delta, gamma)[0])

    def largest(at: float) -> float:
        return max(true_epsilon(ledger, at) for ledger in ledgers)

    if any(closed):
        bounds.append(largest(delta / runs) + _inner(largest, gamma)[0])
    return min(bounds)


def _inner(epsilon: Callable[[float], float], gamma: float) -> tuple[float, float]:
    """The least log(e^epsilon + (1 - gamma) delta / gamma) and its delta, of ``TRIED``.

    It is found by descent from the middle; every delta gives a bound.
    """

    @cache
    def widened(place: int) -> float:
        delta = float(TRIED[place])
        grown = math.exp(min(epsilon(delta), 700.0))
        return math.log(grown + (1 - gamma) / gamma * delta)

    last, place = len(TRIED) - 1, len(TRIED) // 2
    while True:
        best = min((place, max(place - 1, 0), min(place + 1, last)), key=widened)
        if best == place:
            return widened(place), float(TRIED[place])
        place = best


def _largest_curve(ledgers: Sequence[Ledger]) -> np.ndarray:
    return np.max([renyi_curve(ledger, ORDERS) for ledger in ledgers], axis=0)


def _by_orders(curve: np.ndarray, delta: float, gamma: float) -> tuple[float, int, int]:
    """Epsilon of a choice whose runs have a Rényi curve, and the orders that give it.

    Papernot and Steinke 2022, Theorem 2, for every order of the whole.
    """
    extra = (1 - 1 / ORDERS) * curve + math.log(1 / gamma) / ORDERS
    inner = int(extra.argmin())
    runs = math.log(expected_runs(0.0, gamma)) / (ORDERS - 1)
    total = curve + extra[inner] + runs
    every = np.array(
        [
            converted(total[k : k + 1], delta, ORDERS[k : k + 1])
            for k in range(len(ORDERS))
        ]
    )
    outer = int(every.argmin())
    return float(every[outer]), outer, inner


def held(ledger: Ledger, delta: float, gamma: float) -> Held:
    """The limits under which the bound on a choice of runs of one ledger holds."""
    closed = is_closed_form(ledger, STRICT)
    if closed:
        inner = _inner(partial(true_epsilon, ledger), gamma)[1]
        at = (delta / expected_runs(0.0, gamma), inner)
    else:
        _, first, second = _by_orders(renyi_curve(ledger, ORDERS), delta, gamma)
        at = (float(ORDERS[first]), float(ORDERS[second]))
    return Held(closed, at, values(ledger, closed, at))


def calibrate_choice(
    ways: Sequence[Callable[[float], Ledger]],
    epsilon: float,
    delta: float,
    gamma: float = GAMMA,
) -> list[float | None]:
    """Noise multipliers of settings, one of which is drawn for each run of a choice.

    Parameters
    ----------
    ways : sequence of callables
        Map a noise multiplier to the ledger of a run and its score.
    epsilon, delta : float
        Of the whole choice.

    Returns
    -------
    list of float
        The least for the first setting that can meet the target. For the others, the
        least that makes them as private where it matters; None if none does.
    """
    multipliers: list[float | None] = []
    bound: Held | None = None
    near: float | None = None
    for way in ways:
        noise = _least(way, bound, epsilon, delta, gamma, near)
        near = noise or near
        if bound is None and noise is not None:
            bound = held(way(noise), delta, gamma)
        multipliers.append(noise)
    return multipliers


def _least(
    way: Callable[[float], Ledger],
    bound: Held | None,
    epsilon: float,
    delta: float,
    gamma: float,
    near: float | None,
) -> float | None:
    def excess(noise: float) -> float:
        if bound is not None:
            return bound.excess(way(noise))
        return choice_epsilon([way(noise)], delta, gamma) / epsilon

    closed = is_closed_form(way(1.0), STRICT)
    try:
        return smallest(excess, 1.0, TOLERANCE if closed else ROUGH, near)
    except UnreachableTargetError:
        return None


def drawn_runs(rng: np.random.Generator, gamma: float = GAMMA) -> int:
    """Draw the number of runs; at least one."""
    return int(rng.logseries(1 - gamma))
