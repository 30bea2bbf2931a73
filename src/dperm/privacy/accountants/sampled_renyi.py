r"""Rényi divergences of the sampled Gaussian in both directions, at any order.

.. math:: e^{(\alpha-1) D_\alpha} = 1 + \sum_{x_k > 0}
          X_k g_k\,(e^{(\alpha-1) x_k} - 1)(1 - e^{-\alpha x_k}),

over the losses :math:`x_k = \log X_k` of outcomes on a grid whose masses under N(0, 1)
are :math:`g_k`. ``docs/accounting.md`` has the proof.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy  # submodules are loaded on first use

from dperm.privacy.accountants.tight import renyi
from dperm.privacy.events import Ledger, SampledGaussian

Array = np.ndarray

_GRID_END = 60.0  # standard deviations that the grid reaches
_CELL = 0.06  # width of a cell, in local scales
_ROUNDING = 1e-9  # relative, by which results are raised
# Logarithms below the largest term, beyond which terms are left out
_LIGHT = 150.0


def renyi_curve(ledger: Ledger, orders: Array) -> Array:
    """Rényi divergences of a ledger at orders above 1; infinity where not known."""
    curves = [
        sampled_renyi(event, orders)
        if isinstance(event, SampledGaussian)
        else renyi(event, orders)
        for event in ledger.events
    ]
    return np.asarray(np.sum(curves, axis=0))


def sampled_renyi(event: SampledGaussian, orders: Array) -> Array:
    """Rényi divergences of all releases by the curve that bounds both directions.

    They are at most those without sampling (joint quasi-convexity). Orders are above 1.
    """
    rate = event.sampling_rate
    mu = 1 / event.noise_multiplier
    loss, log_mass = _masses(mu)
    is_positive = loss > 0
    x = _sampled(loss[is_positive], rate)
    log_mass = log_mass[is_positive]
    tail = _log_tail(rate, mu, orders)
    divergences = np.empty_like(orders)
    for place, a in enumerate(orders):
        log_bounds = log_mass + a * x  # each term is below this
        heavy = log_bounds > log_bounds.max() - _LIGHT
        losses = x[heavy]
        logs = log_bounds[heavy] + np.log(
            np.expm1((1 - a) * losses) * np.expm1(-a * losses)
        )
        excess = np.logaddexp(scipy.special.logsumexp(logs), tail[place])
        divergences[place] = np.logaddexp(0.0, excess) / (a - 1)
    without_sampling = orders * mu**2 / 2
    return event.count * np.minimum(
        divergences * (1 + _ROUNDING), without_sampling
    )


def _sampled(loss: Array, rate: float) -> Array:
    """The loss with sampling, log(1 + q (e^l - 1))."""
    small = np.log1p(rate * np.expm1(np.minimum(loss, 30.0)))
    large = np.log(rate) + loss + np.log1p((1 / rate - 1) * np.exp(-loss))
    return np.where(loss < 30.0, small, large)


@lru_cache(maxsize=4)
def _masses(mu: float) -> tuple[Array, Array]:
    """Losses l of a grid of outcomes and the logarithms of their masses under N(0, 1).

    The outcome of loss zero is a node, and cells shrink as the density falls.
    """
    count = int((_GRID_END + _GRID_END**2 / 2) / _CELL)
    right = np.sqrt(1 + 2 * _CELL * np.arange(count + 1)) - 1
    step = np.concatenate([-right[:0:-1], right])
    loss = mu * step
    z = mu / 2 + step
    null = _log_between(z)
    shifted = _log_between(z - mu)
    share = np.expm1(shifted - loss[:-1] - null) / np.expm1(np.diff(loss))
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
    return np.asarray(
        top + np.log(-np.expm1(scipy.special.log_ndtr(near) - top))
    )


def _log_tail(rate: float, mu: float, orders: Array) -> Array:
    """Logarithm of a bound on the integral of X^a beyond the grid (Minkowski)."""
    edge = mu / 2 + _GRID_END
    null = np.log1p(-rate) if rate < 1 else -np.inf
    shifted = (orders - 1) * mu**2 / 2 + scipy.special.log_ndtr(
        orders * mu - edge
    ) / orders
    sides = np.logaddexp(
        null + scipy.special.log_ndtr(-edge) / orders, np.log(rate) + shifted
    )
    return np.asarray(orders * sides)
