r"""The price of choosing the best of a random number of private runs.

The papers choose the best of a grid and pay for one run. Here a random number *K* of
runs is made, each with a setting drawn uniformly from a grid; the run with the best
score, which it releases too, is published. *K* is logarithmic,
:math:`P(K = k) \propto (1 - \gamma)^k / k`. If a run has the Rényi curve
:math:`\epsilon(\lambda)`, the choice has, for any inner order :math:`\hat\lambda`,

.. math:: \epsilon'(\lambda) = \epsilon(\lambda) + (1 - 1/\hat\lambda)\,
          \epsilon(\hat\lambda) + \frac{\log(1/\gamma)}{\hat\lambda}
          + \frac{\log E[K]}{\lambda - 1}

(Papernot and Steinke 2022, arXiv:2110.03620, Theorem 2 at :math:`\eta = 0`). Tilted
minima and sketches have closed profiles :math:`\delta(\epsilon)` instead. With one the
choice has, for any inner :math:`\hat\epsilon`,

.. math:: \delta'(\epsilon) \le E[K]\, \delta\Bigl(\epsilon - \log\bigl(
          e^{\hat\epsilon} + \tfrac{1 - \gamma}{\gamma} \delta(\hat\epsilon)\bigr)
          \Bigr)

(Koskela, Redberg and Wang 2024, arXiv:2402.06701; proof in ``docs/accounting.md``).
Settings have ledgers of their own; a mixture's profile, or Rényi curve, is at most the
largest of its parts'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

import numpy as np
import scipy  # submodules are loaded on first use

from dperm.privacy.accountants.sampled_renyi import renyi_curve
from dperm.privacy.accountants.tight import converted, is_closed_form
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.calibration import MAX_NOISE, smallest
from dperm.privacy.events import Ledger

Array = np.ndarray

MANY = 1 + np.geomspace(1e-2, 1e4, 200)  # orders of ``tuned_epsilon``
# fewer, as each takes long to compute
ORDERS = 1 + np.geomspace(0.3, 1000, 40)
GAMMA = 0.1  # 3.9 runs on average
INNER_DELTAS = np.geomspace(1e-4, 0.1, 13)  # deltas of the inner epsilon
TOLERANCE = 1e-4  # relative, of a noise multiplier


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


@lru_cache(maxsize=1024)
def _curve(ledger: Ledger, many: bool) -> Array:
    return renyi_curve(ledger, MANY if many else ORDERS)


def tuned_epsilon(ledger: Ledger, delta: float, runs: float) -> float:
    """Epsilon of the best of an expected number of runs of a ledger, by Rényi curves.

    Examples
    --------
    >>> from dperm.privacy.events import Gaussian
    >>> one = Ledger((Gaussian(1.0, 10.0, 1, "", ""),))
    >>> round(tuned_epsilon(one, 1e-6, 1000), 2)
    0.99
    """
    return _by_orders(_curve(ledger, True), MANY, delta, stopping(runs))


def choice_epsilon(
    ledgers: Sequence[Ledger], delta: float, gamma: float = GAMMA
) -> float:
    """Epsilon of publishing the best of a logarithmic number of runs.

    Each ledger is that of a run and its score, one for every setting that may be drawn;
    delta is that of the whole choice. The bound is by profiles where all ledgers have
    closed forms, by Rényi curves where none has, and otherwise the smaller of both.

    Examples
    --------
    >>> from dperm.privacy.events import Gaussian
    >>> one = Ledger((Gaussian(1.0, 10.0, 1, "", ""),))
    >>> round(choice_epsilon([one], 1e-6), 3)
    0.594
    """
    closed = [is_closed_form(ledger) for ledger in ledgers]
    bounds = []
    if not all(closed):
        dearest = np.max([_curve(ledger, False) for ledger in ledgers], axis=0)
        bounds.append(_by_orders(dearest, ORDERS, delta, gamma))
    if any(closed):
        bounds.append(_by_profiles(ledgers, delta, gamma))
    return min(bounds)


def _by_orders(
    curve: Array, orders: Array, delta: float, gamma: float
) -> float:
    """Epsilon of a choice of runs with a Rényi curve."""
    inner = ((1 - 1 / orders) * curve + math.log(1 / gamma) / orders).min()
    total = curve + inner + math.log(expected_runs(gamma)) / (orders - 1)
    return converted(total, orders, delta)


def _by_profiles(
    ledgers: Sequence[Ledger], delta: float, gamma: float
) -> float:
    """Epsilon of a choice of runs with these ledgers.

    The inner delta is found by descent from the middle of ``INNER_DELTAS``; each is a
    bound.
    """

    def epsilon(share: float) -> float:
        """The largest true epsilon of a run at a delta."""
        return max(true_epsilon(ledger, share) for ledger in ledgers)

    @cache
    def widened(place: int) -> float:
        """Epsilon of the choice by an inner delta, the accepted runs made up for."""
        inner_delta = float(INNER_DELTAS[place])
        grown = math.exp(min(epsilon(inner_delta), 700.0))
        return math.log(grown + (1 - gamma) / gamma * inner_delta)

    end = len(INNER_DELTAS) - 1
    place = -1
    best = len(INNER_DELTAS) // 2
    while place != best:
        place = best
        best = min(
            (place, max(place - 1, 0), min(place + 1, end)), key=widened
        )
    return epsilon(delta / expected_runs(gamma)) + widened(place)


def calibrate_choice(
    ways: Sequence[Callable[[float], Ledger]], epsilon: float, delta: float
) -> list[float | None]:
    """Noise multipliers of settings, one of which is drawn for each run of a choice.

    Each of the ``ways`` maps a noise multiplier to the ledger of a run and its score.
    Each setting in turn has the least noise that keeps the target of a choice among it
    and those before, or None if none does.
    """
    multipliers: list[float | None] = []
    able: list[Ledger] = []
    near: float | None = None
    for way in ways:

        def cost(noise: float, way: Callable[[float], Ledger] = way) -> float:
            """Epsilon of the choice if the last run has this noise."""
            return choice_epsilon([*able, way(noise)], delta)

        if cost(MAX_NOISE) > epsilon:
            multipliers.append(None)
            continue
        near = smallest(cost, epsilon, TOLERANCE, near)
        able.append(way(near))
        multipliers.append(near)
    return multipliers
