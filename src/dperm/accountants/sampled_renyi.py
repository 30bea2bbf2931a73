r"""Rényi divergences of the sampled Gaussian, from above, at any order.

At the outcome z the loss of :math:`(1-q) N(0, 1) + q N(\mu, 1)` against
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

from functools import lru_cache

import numpy as np
import scipy  # its parts come when they are first named

from dperm.core.privacy.ledger import SampledGaussian

Array = np.ndarray

_LAST = 60.0  # standard deviations that the grid reaches
_CELL = 0.06  # of a local scale
_ROUNDING = 1e-9  # relative, by which results are raised


def sampled_renyi(event: SampledGaussian, orders: Array) -> Array:
    """Rényi divergences of all releases by the curve that bounds both directions.

    Parameters
    ----------
    event : SampledGaussian
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
    x = _sampled(loss[kept], rate)
    log_weight = x + log_mass[kept]
    tail = _log_tail(rate, mu, orders)
    found = np.empty_like(orders)
    for place, a in enumerate(orders):
        logs = log_weight + _log_expm1((a - 1) * x) + np.log(-np.expm1(-a * x))
        excess = np.logaddexp(scipy.special.logsumexp(logs), tail[place])
        found[place] = np.logaddexp(0.0, excess) / (a - 1)
    whole = orders * mu**2 / 2
    return event.count * np.minimum(found * (1 + _ROUNDING), whole)


def _sampled(loss: Array, rate: float) -> Array:
    """The loss with sampling, log(1 + q (e^l - 1))."""
    small = np.log1p(rate * np.expm1(np.minimum(loss, 30.0)))
    large = np.log(rate) + loss + np.log1p((1 / rate - 1) * np.exp(-loss))
    return np.where(loss < 30.0, small, large)


def _log_expm1(x: Array) -> Array:
    """log(e^x - 1) for x > 0."""
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
