r"""What it would cost to tune privately: random stopping (Papernot and Steinke 2022).

The papers choose the best of a grid and pay for one run. Random stopping tries a random
number *K* of settings, drawn uniformly with replacement, and publishes the best. If one
run is :math:`(\lambda, \epsilon(\lambda))`-Rényi-private, the whole is
:math:`(\lambda, \epsilon')`-Rényi-private with, for a truncated negative binomial *K*
with parameters :math:`\eta, \gamma` and any order :math:`\hat\lambda`,

.. math:: \epsilon' = \epsilon(\lambda)
          + (1 + \eta)(1 - 1/\hat\lambda)\,\epsilon(\hat\lambda)
          + \frac{(1 + \eta)\log(1/\gamma)}{\hat\lambda}
          + \frac{\log E[K]}{\lambda - 1}

(arXiv:2110.03620, Theorem 2), and for a Poisson *K* with mean :math:`\mu`, if a run is
also :math:`(\hat\epsilon, \hat\delta)`-private with
:math:`\hat\epsilon = \log(1 + 1/(\lambda - 1))`,

.. math:: \epsilon' = \epsilon(\lambda) + \mu\hat\delta + \frac{\log\mu}{\lambda - 1}

(Theorem 6). What a run publishes includes the score by which it is chosen; the papers
score by the objective on the data themselves, whose release is not in their epsilon.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy  # its parts come when they are first named

from dperm.accountants.sampled_renyi import sampled_renyi
from dperm.core.privacy.ledger import Event, Gaussian, Ledger, SampledGaussian
from dperm.core.privacy.strict import gaussian_delta, renyi

Array = np.ndarray

ORDERS = 1 + np.geomspace(1e-2, 1e4, 200)
STOPPINGS = {"logarithmic": 0.0, "geometric": 1.0}  # eta


class GridError(ValueError):
    """An expected number of runs that is not above 1."""


def renyi_curve(ledger: Ledger, orders: Array = ORDERS) -> Array:
    """Rényi divergences of a ledger, for orders above 1; infinity where none is known.

    Parameters
    ----------
    ledger : Ledger
    orders : ndarray
    """
    total = np.zeros_like(orders)
    for event in ledger.events:
        total += _curve(event, orders)
    return total


def _curve(event: Event, orders: Array) -> Array:
    if isinstance(event, SampledGaussian):
        return sampled_renyi(event, orders)
    known = renyi(event, orders)
    return np.full_like(orders, np.inf) if known is None else known


@lru_cache(maxsize=256)
def _usual_curve(ledger: Ledger) -> Array:
    return renyi_curve(ledger)


def expected_runs(eta: float, gamma: float) -> float:
    """E[K] of the truncated negative binomial distribution (their Definition 1)."""
    if eta == 0:
        return (1 / gamma - 1) / math.log(1 / gamma)
    return eta * (1 - gamma) / (gamma * (1 - gamma**eta))


def stopping(eta: float, runs: float) -> float:
    """The gamma with so many expected runs."""
    if not runs > 1:
        raise GridError(f"expected runs: expected more than 1, found {runs}")
    log = scipy.optimize.brentq(
        lambda t: math.log(expected_runs(eta, math.exp(t)) / runs), -60, -1e-9
    )
    return math.exp(log)


def converted(curve: Array, delta: float, orders: Array = ORDERS) -> float:
    """Epsilon of a Rényi curve (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    spent = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return max(float((curve + spent).min()), 0.0)


def tuned_epsilon(ledger: Ledger, delta: float, runs: float, kind: str) -> float:
    """Epsilon of random stopping with so many expected runs of a ledger.

    Parameters
    ----------
    ledger : Ledger
        Of one run.
    delta : float
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
    gamma = stopping(eta, runs)
    extra = (1 + eta) * ((1 - 1 / ORDERS) * curve + math.log(1 / gamma) / ORDERS)
    total = curve + extra.min() + math.log(runs) / (ORDERS - 1)
    return converted(total, delta)


def _poisson(ledger: Ledger, curve: Array, delta: float, runs: float) -> float:
    """Theorem 6; delta-hat from Gaussians exactly, otherwise from the Rényi curve."""
    small = np.log1p(1 / (ORDERS - 1))
    if all(isinstance(event, Gaussian) for event in ledger.events):
        mu = math.sqrt(sum(e.count / e.noise_multiplier**2 for e in ledger.events))
        deltas = gaussian_delta(small, mu)
    else:
        a = ORDERS[:, None]
        logs = (a - 1) * (curve[:, None] - small) + a * np.log1p(-1 / a) - np.log(a - 1)
        deltas = np.exp(np.minimum(logs.min(axis=0), 0.0))
    total = curve + runs * deltas + math.log(runs) / (ORDERS - 1)
    return converted(total, delta)
