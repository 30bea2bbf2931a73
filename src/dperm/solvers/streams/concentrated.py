"""Concentrated privacy of releases whose costs are added up in closed form."""

from __future__ import annotations

import math
from functools import lru_cache

import scipy  # its parts come when they are first named


def concentrated_epsilon(rho: float, delta: float) -> float:
    """Epsilon of rho-zCDP (Canonne, Kamath and Steinke 2020, Proposition 12)."""

    def bound(log_excess: float) -> float:
        alpha = 1 + math.exp(log_excess)
        spent = rho * alpha + math.log1p(-1 / alpha)
        return spent - (math.log(delta) + math.log(alpha)) / (alpha - 1)

    start = 0.5 * math.log1p(math.log(1 / delta) / rho)
    found = scipy.optimize.minimize_scalar(
        bound, bounds=(start - 6, start + 6), method="bounded", options={"xatol": 1e-10}
    )
    return max(float(found.fun), 0.0)


@lru_cache(maxsize=4096)
def concentrated_budget(epsilon: float, delta: float) -> float:
    """The largest rho whose epsilon stays within the target."""

    def excess(log_rho: float) -> float:
        return concentrated_epsilon(math.exp(log_rho), delta) - epsilon

    rho = math.exp(scipy.optimize.brentq(excess, -40.0, 10.0, xtol=1e-12))
    while concentrated_epsilon(rho, delta) > epsilon:
        rho *= 1 - 1e-9
    return rho
