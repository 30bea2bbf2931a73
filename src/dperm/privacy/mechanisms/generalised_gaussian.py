r"""The generalised Gaussian mechanism (Bassily, Guzmán and Nandi 2021, Section 3).

A release whose dual norm :math:`\ell_q`, :math:`q \ge 2`, moves by at most *s* is
hidden by noise with density proportional to :math:`\exp(-\|z\|_r^2 / (2\sigma^2))`,
:math:`r = \min(q, 2 \ln d + 1)`. At *r* = 2 it is the Gaussian mechanism.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dperm.privacy.accountants import PUBLISHED
from dperm.privacy.accountants.pld import NODES, Profile, chorded
from dperm.privacy.accountants.published import published_cost
from dperm.privacy.accountants.tight import (
    RENYI_ORDERS,
    converted,
    gaussian_delta,
    gaussian_epsilon,
    profile,
    renyi,
)
from dperm.privacy.calibration import smallest
from dperm.privacy.events import Event, LedgerError, require_positive
from dperm.privacy.noise import deliver

Array = NDArray[np.float64]


def smooth_order(q: float, d: int) -> float:
    """Order r of the smooth norm close to l_q in dimension d (Remark 1), at least 2.

    Raises LedgerError if q is below 2: the square of such a norm is not smooth.
    """
    if not q >= 2:
        raise LedgerError(f"q must be at least 2, got {q}")
    return min(q, max(2.0, 2 * math.log(d) + 1))


def regularity(q: float, d: int) -> float:
    """The constant kappa of l_q in dimension d: (r - 1) d^(2/r - 2/q).

    The value that Section 2 derives before rounding it up to min(q - 1, 2e ln d).
    """
    r = smooth_order(q, d)
    inverse = 0.0 if math.isinf(q) else 2 / q
    return (r - 1) * d ** (2 / r - inverse)


def generalised_gaussian(
    rng: Generator, r: float, shape: tuple[int, int]
) -> Array:
    """Draw noise of unit scale, each row one vector, in O(d) (Remark 1).

    The direction is that of independent coordinates with density proportional to
    exp(-|t|^r), |t|^r being Gamma(1/r); the radius, in l_r, is chi with d degrees of
    freedom. Radius and direction are independent. Order 2 draws standard normals. The
    generator advances by rows, so that blocks do not matter.
    """
    d = shape[1]
    if r == 2:
        return deliver("generalised_gaussian", rng.standard_normal(shape), r)
    noise = np.empty(shape)
    for row in noise:
        powers = rng.standard_gamma(1 / r, d)
        radius = math.sqrt(rng.chisquare(d))
        row[:] = np.where(rng.random(d) < 0.5, -1.0, 1.0) * powers ** (1 / r)
        row *= radius / powers.sum() ** (1 / r)
    return deliver("generalised_gaussian", noise, r)


def renyi_bound(alpha: Any, kappa: float, multiplier: float) -> Any:
    """Upper bound on the Rényi divergence of orders alpha > 1 (Proposition 3.2 (c)).

    *kappa* is the dual norm's regularity, *multiplier* noise scale over sensitivity.
    """
    return kappa * alpha**2 / (2 * multiplier**2 * (alpha - 1))


def proof_epsilon(kappa: float, multiplier: float, delta: float) -> float:
    """Epsilon by the conversion that Corollary 3.3 cites, best over all orders.

    With rho = kappa / (2 multiplier^2) it is 2 rho + 2 sqrt(rho (rho + log(1/delta))),
    which at the corollary's own noise exceeds its target (Mironov 2017, Prop. 3).
    """
    rho = kappa / (2 * multiplier**2)
    log = math.log(1 / delta)
    return 2 * rho + 2 * math.sqrt(rho * (rho + log))


def tight_epsilon(
    r: float, kappa: float, multiplier: float, delta: float
) -> float:
    """The least epsilon we can prove: exact for r = 2, else the Rényi bound's."""
    if r == 2:
        return gaussian_epsilon(1 / multiplier, delta)
    curve = renyi_bound(RENYI_ORDERS, kappa, multiplier)
    return converted(curve, RENYI_ORDERS, delta)


def noise_multiplier(
    q: float, d: int, epsilon: float, delta: float, calibration: str
) -> float:
    """Noise scale over sensitivity in l_q that one release in dimension d needs.

    For ``published`` it is sqrt(2 kappa log(1/delta)) / epsilon (Corollary 3.3), for
    ``tight`` the least for which ``tight_epsilon`` stays within the target. An
    infinite epsilon needs no noise.
    """
    if math.isinf(epsilon):
        return 0.0
    kappa = regularity(q, d)
    if calibration == PUBLISHED:
        return math.sqrt(2 * kappa * math.log(1 / delta)) / epsilon
    return math.sqrt(kappa) * _tight_unit(smooth_order(q, d), epsilon, delta)


@lru_cache(maxsize=4096)
def _tight_unit(r: float, epsilon: float, delta: float) -> float:
    """Tight multiplier at kappa = 1; kappa only scales it by its root."""
    return smallest(lambda z: tight_epsilon(r, 1.0, z, delta), epsilon, 1e-10)


@dataclass(frozen=True)
class GeneralisedGaussian(Event):
    r"""Generalised Gaussian mechanism in the norm :math:`\ell_r`.

    `sensitivity` is in the dual norm, `scale` is :math:`\sigma`, `kappa` the dual
    norm's regularity. The Rényi curve is at most
    :math:`\kappa\alpha^2 s^2 / (2\sigma^2(\alpha-1))` (Proposition 3.2 (c)); the
    published cost is :math:`\sqrt{2\kappa\log(1/\delta)}\, s/\sigma` (Corollary 3.3).
    """

    order: float
    kappa: float

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("kappa", self.kappa)
        if not self.order >= 2:
            raise LedgerError(f"order must be at least 2, got {self.order}")


@published_cost.register
def _(event: GeneralisedGaussian) -> tuple[str, Any]:
    return "direct", event.count * event.kappa / event.noise_multiplier**2


@profile.register
def _(event: GeneralisedGaussian) -> Profile:
    if event.order == 2:
        mu = 1 / event.noise_multiplier
        return Profile(lambda losses: gaussian_delta(losses, mu), event.count)
    orders = RENYI_ORDERS[::7, None]  # more of them hardly help
    spent = renyi_bound(orders, event.kappa, event.noise_multiplier)
    exponent = (orders - 1) * (spent - NODES) + orders * np.log1p(-1 / orders)
    best = (exponent - np.log(orders - 1)).min(axis=0)
    return chorded(np.exp(np.minimum(best, 0.0)), event.count)


@renyi.register
def _(event: GeneralisedGaussian, orders: Array) -> Array:
    if event.order == 2:
        return event.count * orders / (2 * event.noise_multiplier**2)
    divergences = renyi_bound(orders, event.kappa, event.noise_multiplier)
    return np.asarray(event.count * divergences)
