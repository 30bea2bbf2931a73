"""Noise of releases that all read the same records: Gaussian, or priced as zCDP."""

from __future__ import annotations

import math
from functools import lru_cache

import scipy  # its submodules load on first use

from dperm.privacy.calibration import calibrate
from dperm.privacy.events import Gaussian, Ledger, N
from dperm.solvers.single_pass import Target, TargetNoise, silent


def gaussian_releases(
    noise_multiplier: float,
    count: int,
    unit: str = "replace-one l_2 change of a mean gradient",
    source: str = "Bassily, Smith and Thakurta 2014; Talwar et al. 2014",
) -> Ledger:
    """``count`` releases, with noise in units of the sensitivity."""
    event = Gaussian(1.0, noise_multiplier, count, unit, source)
    return Ledger((event,), given=(N,))


@lru_cache(maxsize=4096)
def least_multiplier(
    epsilon: float, delta: float, calibration: str, count: int
) -> float:
    """Least noise over sensitivity under the calibration's accountant."""
    return calibrate(
        lambda noise: gaussian_releases(noise, count),
        epsilon,
        delta,
        calibration,
    ).noise_multiplier


def gaussian_noise(target: Target, count: int) -> TargetNoise:
    """Least noise over sensitivity of ``count`` releases."""
    if math.isinf(target.epsilon):
        return silent()
    goal = (target.epsilon, target.delta, target.calibration)
    multiplier = least_multiplier(*goal, count)
    return TargetNoise(gaussian_releases(multiplier, count), (multiplier,))


def concentrated_epsilon(rho: float, delta: float) -> float:
    """Epsilon of rho-zCDP (Canonne, Kamath and Steinke 2020, Proposition 12)."""

    def bound(log_excess: float) -> float:
        """Epsilon by the Rényi divergence at order 1 + exp(x)."""
        alpha = 1 + math.exp(log_excess)
        spent = rho * alpha + math.log1p(-1 / alpha)
        return spent - (math.log(delta) + math.log(alpha)) / (alpha - 1)

    start = 0.5 * math.log1p(math.log(1 / delta) / rho)
    minimum = scipy.optimize.minimize_scalar(
        bound,
        bounds=(start - 6, start + 6),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return max(float(minimum.fun), 0.0)


@lru_cache(maxsize=4096)
def concentrated_budget(epsilon: float, delta: float) -> float:
    """The largest rho whose epsilon stays within the target."""

    def excess(log_rho: float) -> float:
        """Epsilon at a logarithm of rho, above the target; it rises."""
        return concentrated_epsilon(math.exp(log_rho), delta) - epsilon

    rho = math.exp(scipy.optimize.brentq(excess, -40.0, 10.0, xtol=1e-12))
    while concentrated_epsilon(rho, delta) > epsilon:
        rho *= 1 - 1e-9
    return rho
