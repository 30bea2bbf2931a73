r"""The price of choosing the best of a random number of private runs.

The papers choose the best of a grid and pay for one run. Here a random number *K* of
runs is made, each with a setting drawn uniformly from a grid; the run with the best
score, which it releases too, is published. *K* is logarithmic,
:math:`P(K = k) \propto (1 - \gamma)^k / k`. If a run has the Rényi curve
:math:`\epsilon(\lambda)`, the choice has, for any inner order :math:`\hat\lambda`,

.. math:: \epsilon'(\lambda) = \epsilon(\lambda) + (1 - 1/\hat\lambda)\,
          \epsilon(\hat\lambda) + \frac{\log(1/\gamma)}{\hat\lambda}
          + \frac{\log E[K]}{\lambda - 1}

(Papernot and Steinke 2022, arXiv:2110.03620, Theorem 2 at :math:`\eta = 0`; in every
setting of the papers it is lower than for a geometric or Poisson *K*). Tilted minima
and sketches have no Rényi curve, but closed forms of the profile
:math:`\delta(\epsilon)`. With it the choice has, for any inner :math:`\hat\epsilon`,

.. math:: \delta'(\epsilon) \le E[K]\, \delta\Bigl(\epsilon - \log\bigl(
          e^{\hat\epsilon} + \tfrac{1 - \gamma}{\gamma} \delta(\hat\epsilon)\bigr)
          \Bigr)

(Koskela, Redberg and Wang 2024, arXiv:2402.06701; ``docs/accounting.md`` has the
proof). Settings have ledgers of their own, so that one run is a mixture. A mixture's
profile, or Rényi curve, is at most the largest of its parts'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial

import numpy as np
import scipy  # submodules are loaded on first use

from dperm.accountants.sampled_renyi import renyi_curve
from dperm.core.calibrations import STRICT
from dperm.core.privacy.accounting import is_closed_form, true_epsilon
from dperm.core.privacy.calibration import UnreachableTargetError, smallest
from dperm.core.privacy.ledger import Ledger
from dperm.core.privacy.strict import converted

Array = np.ndarray

MANY = 1 + np.geomspace(1e-2, 1e4, 200)  # orders of ``tuned_epsilon``
ORDERS = 1 + np.geomspace(0.3, 1000, 40)  # fewer, as each takes long to compute
GAMMA = 0.1  # 3.9 runs on average
TRIED = np.geomspace(1e-4, 0.1, 13)  # deltas of the inner epsilon
TOLERANCE, ROUGH = 1e-6, 1e-3  # relative, of a noise multiplier; ROUGH by Rényi curves


def expected_runs(gamma: float = GAMMA) -> float:
    """E[K] of the logarithmic distribution."""
    return (1 / gamma - 1) / math.log(1 / gamma)


def drawn_runs(rng: np.random.Generator) -> int:
    """Draw the number of runs; at least one."""
    return int(rng.logseries(1 - GAMMA))


def stopping(runs: float) -> float:
    """The gamma with an expected number of runs.

    Raises ValueError unless that number is above 1.
    """
    if not runs > 1:
        raise ValueError(f"runs: expected more than 1, found {runs}")
    log = scipy.optimize.brentq(
        lambda t: math.log(expected_runs(math.exp(t)) / runs), -60, -1e-9
    )
    return math.exp(log)


@lru_cache(maxsize=256)
def _usual_curve(ledger: Ledger) -> Array:
    return renyi_curve(ledger, MANY)


def tuned_epsilon(ledger: Ledger, delta: float, runs: float) -> float:
    """Epsilon of the best of an expected number of runs of a ledger, by Rényi curves.

    Examples
    --------
    >>> from dperm.core.privacy.ledger import Gaussian
    >>> one = Ledger((Gaussian(1.0, 10.0, 1, "", ""),))
    >>> round(tuned_epsilon(one, 1e-6, 1000), 2)
    0.99
    """
    return _by_orders(_usual_curve(ledger), MANY, delta, stopping(runs))[0]


def choice_epsilon(
    ledgers: Sequence[Ledger], delta: float, gamma: float = GAMMA
) -> float:
    """Epsilon of publishing the best of a logarithmic number of runs.

    Each ledger is that of a run and its score, one for every setting that may be drawn;
    delta is that of the whole choice. The bound is by profiles where all ledgers have
    closed forms, by Rényi curves where none has, and otherwise the smaller of both.

    Examples
    --------
    >>> from dperm.core.privacy.ledger import Gaussian
    >>> one = Ledger((Gaussian(1.0, 10.0, 1, "", ""),))
    >>> round(choice_epsilon([one], 1e-6), 3)
    0.594
    """
    closed = [is_closed_form(ledger, STRICT) for ledger in ledgers]
    bounds = []
    if not all(closed):
        largest = np.max([renyi_curve(ledger, ORDERS) for ledger in ledgers], axis=0)
        bounds.append(_by_orders(largest, ORDERS, delta, gamma)[0])

    def epsilon(at: float) -> float:
        return max(true_epsilon(ledger, at) for ledger in ledgers)

    if any(closed):
        bounds.append(epsilon(delta / expected_runs(gamma)) + _inner(epsilon, gamma)[0])
    return min(bounds)


def _by_orders(
    curve: Array, orders: Array, delta: float, gamma: float
) -> tuple[float, int, int]:
    """Epsilon of a choice of runs with a Rényi curve; places of its two orders."""
    widened = (1 - 1 / orders) * curve + math.log(1 / gamma) / orders
    inner = int(widened.argmin())
    total = curve + widened[inner] + math.log(expected_runs(gamma)) / (orders - 1)
    every = [converted(total[[k]], orders[[k]], delta) for k in range(len(orders))]
    outer = int(np.argmin(every))
    return every[outer], outer, inner


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


def calibrate_choice(
    ways: Sequence[Callable[[float], Ledger]], epsilon: float, delta: float
) -> list[float | None]:
    """Noise multipliers of settings, one of which is drawn for each run of a choice.

    Each of the ``ways`` maps a noise multiplier to the ledger of a run and its score.
    The first setting that can meet the target of the whole choice has the least for
    it, each other one the least that makes it as private where it matters, or None.
    """
    found: list[float | None] = []
    near: float | None = None

    def alone(ledger: Ledger) -> float:
        return choice_epsilon([ledger], delta) / epsilon

    excess: Callable[[Ledger], float] = alone
    for way in ways:

        def cost(
            noise: float,
            way: Callable[[float], Ledger] = way,
            excess: Callable[[Ledger], float] = excess,
        ) -> float:
            return excess(way(noise))

        tolerance = TOLERANCE if is_closed_form(way(1.0), STRICT) else ROUGH
        try:
            noise = smallest(cost, 1.0, tolerance, near)
        except UnreachableTargetError:
            found.append(None)
            continue
        if near is None:
            excess = _excess_over(way(noise), delta)
        near = noise
        found.append(noise)
    return found


def _excess_over(ledger: Ledger, delta: float) -> Callable[[Ledger], float]:
    """What another run costs in units of this one, at both points of its bound.

    The points are two deltas or two orders, the outer and the inner one.
    """
    spent: Callable[[Ledger], Sequence[float]]
    if is_closed_form(ledger, STRICT):
        inner = _inner(partial(true_epsilon, ledger), GAMMA)[1]
        at = (delta / expected_runs(), inner)
        spent = lambda one: [true_epsilon(one, each) for each in at]  # noqa: E731
    else:
        curve = renyi_curve(ledger, ORDERS)
        orders = ORDERS[[*_by_orders(curve, ORDERS, delta, GAMMA)[1:]]]
        spent = lambda one: renyi_curve(one, orders).tolist()  # noqa: E731
    most = spent(ledger)

    def excess(one: Ledger) -> float:
        pairs = [pair for pair in zip(spent(one), most, strict=True) if any(pair)]
        return max((cost / limit if limit else math.inf for cost, limit in pairs),
                   default=0.0)  # fmt: skip

    return excess
