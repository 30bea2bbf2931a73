r"""The price of choosing the best of a random number of private runs.

The papers choose the best of a grid and pay for one run. Here a random number *K* of
runs is made. Each has a setting drawn uniformly from a grid and releases its score; the
run with the best score is published. *K* is truncated negative binomial with parameters
:math:`\eta > -1` and :math:`\gamma` (Papernot and Steinke 2022, arXiv:2110.03620,
Definition 1). If a run, its score included, has the Rényi curve
:math:`\epsilon(\lambda)`, the choice has, for any inner order :math:`\hat\lambda`,

.. math:: \epsilon'(\lambda) = \epsilon(\lambda) + (1 + \eta)\Bigl(
          (1 - 1/\hat\lambda)\,\epsilon(\hat\lambda)
          + \frac{\log(1/\gamma)}{\hat\lambda}\Bigr)
          + \frac{\log E[K]}{\lambda - 1}

(their Theorem 2). If a run has the profile :math:`\delta(\epsilon)`, it has, for any
inner :math:`\hat\epsilon`,

.. math:: \delta'(\epsilon) \le E[K]\, \delta\Bigl(\epsilon - (1 + \eta) \log\bigl(
          e^{\hat\epsilon} + \tfrac{1 - \gamma}{\gamma} \delta(\hat\epsilon)\bigr)
          \Bigr)

(Koskela, Redberg and Wang 2024, arXiv:2402.06701; ``docs/accounting.md`` has the
proof). For a Poisson *K* with mean :math:`\mu`, if a run is also
:math:`(\hat\epsilon, \hat\delta)`-private with :math:`\hat\epsilon = \log(1 +
1/(\lambda - 1))`, it is :math:`\epsilon(\lambda) + \mu\hat\delta + \log\mu / (\lambda -
1)` (Papernot and Steinke, Theorem 6).

A choice here has :math:`\eta = 0`, the logarithmic distribution. Its settings have
separate ledgers, so that one run is a mixture. The profile of a mixture is at most the
largest of its parts, at every epsilon, so that all parts are held to the inner and
outer bounds of the first, which alone just meets the target (:class:`Held`). Rényi
divergences have that property too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial

import numpy as np
import scipy  # submodules are loaded on first use

from dperm.accountants.sampled_renyi import renyi_curve
from dperm.core.calibrations import STRICT
from dperm.core.privacy.accounting import is_closed_form, true_epsilon
from dperm.core.privacy.calibration import UnreachableTargetError, smallest
from dperm.core.privacy.ledger import Gaussian, Ledger
from dperm.core.privacy.strict import converted, gaussian_delta

Array = np.ndarray

MANY = 1 + np.geomspace(1e-2, 1e4, 200)  # orders of ``tuned_epsilon``
ORDERS = 1 + np.geomspace(0.3, 1000, 40)  # fewer, as each takes long to compute
STOPPINGS = {"logarithmic": 0.0, "geometric": 1.0}  # eta
GAMMA = 0.1  # 3.9 runs on average
TRIED = np.geomspace(1e-4, 0.1, 13)  # deltas of the inner epsilon
TOLERANCE, ROUGH = 1e-6, 1e-3  # relative, of a noise multiplier; ROUGH by Rényi curves


class GridError(ValueError):
    """An expected number of runs that is not above 1."""


def expected_runs(eta: float, gamma: float) -> float:
    """E[K] of the truncated negative binomial distribution (their Definition 1)."""
    if eta == 0:
        return (1 / gamma - 1) / math.log(1 / gamma)
    return eta * (1 - gamma) / (gamma * (1 - gamma**eta))


def stopping(eta: float, runs: float) -> float:
    """The gamma with the given expected number of runs."""
    if not runs > 1:
        raise GridError(f"expected runs: expected more than 1, found {runs}")
    log = scipy.optimize.brentq(
        lambda t: math.log(expected_runs(eta, math.exp(t)) / runs), -60, -1e-9
    )
    return math.exp(log)


def chosen_curve(
    curve: Array, orders: Array, eta: float, gamma: float, runs: float
) -> tuple[Array, int]:
    """The Rényi curve of a choice of runs with this curve, and the inner order's place.

    Theorem 2, with the best inner order; ``runs`` is E[K].
    """
    inner = (1 - 1 / orders) * curve + math.log(1 / gamma) / orders
    best = int(inner.argmin())
    return curve + (1 + eta) * inner[best] + math.log(runs) / (orders - 1), best


@lru_cache(maxsize=256)
def _usual_curve(ledger: Ledger) -> Array:
    return renyi_curve(ledger, MANY)


def tuned_epsilon(ledger: Ledger, delta: float, runs: float, kind: str) -> float:
    """Epsilon of random stopping with an expected number of runs of a ledger.

    Parameters
    ----------
    ledger : Ledger
        Of one run.
    runs : float
        Expected number of settings tried, above 1.
    kind : {"logarithmic", "geometric", "poisson"}

    Examples
    --------
    >>> one = Ledger((Gaussian(1.0, 10.0, 1, "", ""),))
    >>> round(tuned_epsilon(one, 1e-6, 1000, "logarithmic"), 2)
    0.99
    """
    curve = _usual_curve(ledger)
    if kind == "poisson":
        return _poisson(ledger, curve, delta, runs)
    eta = STOPPINGS[kind]
    total, _ = chosen_curve(curve, MANY, eta, stopping(eta, runs), runs)
    return converted(total, MANY, delta)


def _poisson(ledger: Ledger, curve: Array, delta: float, runs: float) -> float:
    """Theorem 6; delta-hat from Gaussians exactly, otherwise from the Rényi curve."""
    small = np.log1p(1 / (MANY - 1))
    if all(isinstance(event, Gaussian) for event in ledger.events):
        mu = math.sqrt(sum(e.count / e.noise_multiplier**2 for e in ledger.events))
        deltas = gaussian_delta(small, mu)
    else:
        a = MANY[:, None]
        logs = (a - 1) * (curve[:, None] - small) + a * np.log1p(-1 / a) - np.log(a - 1)
        deltas = np.exp(np.minimum(logs.min(axis=0), 0.0))
    total = curve + runs * deltas + math.log(runs) / (MANY - 1)
    return converted(total, MANY, delta)


# --- a choice of settings with ledgers of their own -----------------------------------


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
    where none has, and otherwise by the smaller bound of both.

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
    0.594
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


def _largest_curve(ledgers: Sequence[Ledger]) -> Array:
    return np.max([renyi_curve(ledger, ORDERS) for ledger in ledgers], axis=0)


def _by_orders(curve: Array, delta: float, gamma: float) -> tuple[float, int, int]:
    """Epsilon of a choice whose runs have a Rényi curve, and places of its orders."""
    runs = expected_runs(0.0, gamma)
    total, inner = chosen_curve(curve, ORDERS, 0.0, gamma, runs)
    every = [converted(total[[k]], ORDERS[[k]], delta) for k in range(len(ORDERS))]
    outer = int(np.argmin(every))
    return every[outer], outer, inner


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
