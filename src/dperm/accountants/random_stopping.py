r"""The price of private tuning by random stopping (Papernot and Steinke 2022).

The papers choose the best of a grid and pay for one run. Random stopping tries a random
number *K* of settings, drawn uniformly with replacement, and publishes the best. If one
run is :math:`(\lambda, \epsilon(\lambda))`-Rényi-private, the whole is
:math:`(\lambda, \epsilon')`-Rényi-private with, for a truncated negative binomial *K*
with parameters :math:`\eta, \gamma` and any order :math:`\hat\lambda`,

.. math:: \epsilon' = \epsilon(\lambda)
          + (1 + \eta)(1 - 1/\hat\lambda)\,\epsilon(\hat\lambda)
          + \frac{(1 + \eta)\log(1/\gamma)}{\hat\lambda}
          + \frac{\log E[K]}{\lambda - 1}

(arXiv:2110.03620, Theorem 2). For a Poisson *K* with mean :math:`\mu`, if a run is
also :math:`(\hat\epsilon, \hat\delta)`-private with
:math:`\hat\epsilon = \log(1 + 1/(\lambda - 1))`,

.. math:: \epsilon' = \epsilon(\lambda) + \mu\hat\delta + \frac{\log\mu}{\lambda - 1}

(Theorem 6). What a run publishes includes the score by which it is chosen; the papers
score by the objective on the data themselves, whose release is not in their epsilon.

*Rényi divergences of the sampled Gaussian*, from above, at any order. At the outcome z
the loss of :math:`(1-q) N(0, 1) + q N(\mu, 1)` against
:math:`N(0, 1)` is :math:`x = \log X`, :math:`X = 1 + q (e^l - 1)`, with
:math:`l = \mu z - \mu^2/2` the loss without sampling. So it is resolved on the scale
of *l* whatever *q* is: with the masses :math:`g_k` under N(0, 1) of a grid in *l*, the
pair has

.. math:: e^{(\alpha-1) D_\alpha} = 1 + \sum_k g_k\,(X_k^\alpha - 1 - \alpha (X_k - 1)).

The curve :math:`\delta(\epsilon)` of
:class:`~dperm.core.privacy.ledger.SampledGaussian` holds in both directions. Continued
to losses below zero by its own mirror image it has the mass :math:`X_k g_k` at each
:math:`x_k > 0` and :math:`g_k` at :math:`-x_k`, and

.. math:: e^{(\alpha-1) D_\alpha} = 1 + \sum_{x_k > 0}
          X_k g_k\,(e^{(\alpha-1) x_k} - 1)(1 - e^{-\alpha x_k}),

which is never below the pair's divergence in either direction: at high orders equal to
it, at low ones up to twice as much (losses below zero are smaller than those above).

Masses between two nodes are put on them so that both distributions keep their total:
the curve is replaced by its chords in :math:`e^\epsilon`, which raises it, here by
less than 1e-3 of itself. The tail is bounded in closed form.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy  # submodules are loaded on first use

from dperm.core.privacy.ledger import Event, Gaussian, Ledger, SampledGaussian
from dperm.core.privacy.strict import gaussian_delta, renyi

Array = np.ndarray

ORDERS = 1 + np.geomspace(1e-2, 1e4, 200)
STOPPINGS = {"logarithmic": 0.0, "geometric": 1.0}  # eta


class GridError(ValueError):
    """An expected number of runs that is not above 1."""


def renyi_curve(ledger: Ledger, orders: Array = ORDERS) -> Array:
    """Rényi divergences of a ledger for orders above 1; infinity where not known."""
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
    """The gamma with the given expected number of runs."""
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


# --- sampled Gaussians, at any order --------------------------------------------------


_LAST = 60.0  # standard deviations that the grid reaches
_CELL = 0.06  # width of a cell, in local scales
_ROUNDING = 1e-9  # relative, by which results are raised
_LIGHT = 150.0  # logarithms below the largest term, beyond which terms are left out


def sampled_renyi(event: SampledGaussian, orders: Array) -> Array:
    """Rényi divergences of all releases by the curve that bounds both directions.

    Parameters
    ----------
    orders : ndarray
        Above 1.

    Returns
    -------
    ndarray
        At most those without sampling (joint quasi-convexity).
    """
    rate, mu = event.sampling_rate, 1 / event.noise_multiplier
    loss, log_mass = _masses(mu)
    kept = loss > 0
    x, log_mass = _sampled(loss[kept], rate), log_mass[kept]
    tail = _log_tail(rate, mu, orders)
    divergences = np.empty_like(orders)
    for place, a in enumerate(orders):
        most = log_mass + a * x  # each term is below this
        heavy = np.flatnonzero(most > most.max() - _LIGHT)
        some = slice(heavy[0], heavy[-1] + 1)
        at = x[some]
        logs = (
            at + log_mass[some] + _log_expm1((a - 1) * at) + np.log(-np.expm1(-a * at))
        )
        top = float(logs.max())
        excess = np.logaddexp(top + math.log(np.exp(logs - top).sum()), tail[place])
        divergences[place] = np.logaddexp(0.0, excess) / (a - 1)
    whole = orders * mu**2 / 2
    return event.count * np.minimum(divergences * (1 + _ROUNDING), whole)


def _sampled(loss: Array, rate: float) -> Array:
    """The loss with sampling, log(1 + q (e^l - 1))."""
    small = np.log1p(rate * np.expm1(np.minimum(loss, 30.0)))
    large = np.log(rate) + loss + np.log1p((1 / rate - 1) * np.exp(-loss))
    return np.where(loss < 30.0, small, large)


def _log_expm1(x: Array) -> Array:
    return x + np.log(-np.expm1(-x))


@lru_cache(maxsize=4)
def _masses(mu: float) -> tuple[Array, Array]:
    """Losses l of a grid of outcomes and the logarithms of their masses under N(0, 1).

    The outcome of loss zero is a node, and cells shrink as the density falls.
    """
    count = int((_LAST + _LAST**2 / 2) / _CELL)
    right = np.sqrt(1 + 2 * _CELL * np.arange(count + 1)) - 1
    step = np.concatenate([-right[:0:-1], right])
    loss, z = mu * step, mu / 2 + step
    null, other = _log_between(z), _log_between(z - mu)
    share = np.expm1(other - loss[:-1] - null) / np.expm1(np.diff(loss))
    share = np.clip(share, 0.0, 1.0)  # of a cell's mass, for its upper end
    mass = np.full_like(loss, -np.inf)
    with np.errstate(divide="ignore"):
        mass[1:] = null + np.log(share)
        mass[:-1] = np.logaddexp(mass[:-1], null + np.log1p(-share))
    return loss, mass


def _log_between(z: Array) -> Array:
    """Logarithm of the mass of N(0, 1) between successive outcomes."""
    far = np.where(z[:-1] + z[1:] > 0, -z[:-1], z[1:])
    near = np.where(z[:-1] + z[1:] > 0, -z[1:], z[:-1])
    top = scipy.special.log_ndtr(far)
    return np.asarray(top + np.log(-np.expm1(scipy.special.log_ndtr(near) - top)))


def _log_tail(rate: float, mu: float, orders: Array) -> Array:
    """Logarithm of a bound on the integral of X^a beyond the grid (Minkowski)."""
    last = mu / 2 + _LAST
    null = np.log1p(-rate) if rate < 1 else -np.inf
    other = (orders - 1) * mu**2 / 2 + scipy.special.log_ndtr(
        orders * mu - last
    ) / orders
    sides = np.logaddexp(
        null + scipy.special.log_ndtr(-last) / orders, np.log(rate) + other
    )
    return np.asarray(orders * sides)
