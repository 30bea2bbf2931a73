"""Gaussian releases of gradients that all read the same records."""

from __future__ import annotations

import math
from functools import lru_cache

from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.given import N
from dperm.core.privacy.ledger import Gaussian, Ledger
from dperm.solvers.streams import Noise, Target, silent
from dperm.solvers.streams.setup import Setup


def gaussian_releases(
    noise_multiplier: float,
    count: int,
    unit: str = "replace-one l_2 change of a mean gradient",
    source: str = "Bassily, Smith and Thakurta 2014; Talwar et al. 2014",
) -> Ledger:
    """``count`` releases, their noise that multiple of the sensitivity."""
    event = Gaussian(1.0, noise_multiplier, count, unit, source)
    return Ledger((event,), given=(N,))


@lru_cache(maxsize=4096)
def least_multiplier(
    epsilon: float, delta: float, calibration: str, count: int
) -> float:
    """Least noise over sensitivity under the calibration's accountant."""
    return calibrate(
        lambda noise: gaussian_releases(noise, count), epsilon, delta, calibration
    ).noise_multiplier


def gaussian_noise(target: Target, count: int) -> Noise:
    """Least noise over sensitivity of ``count`` releases."""
    if math.isinf(target.epsilon):
        return silent()
    goal = (target.epsilon, target.delta, target.calibration)
    multiplier = least_multiplier(*goal, count)
    return Noise(gaussian_releases(multiplier, count), (multiplier,))


def euclidean_lipschitz(setup: Setup) -> float:
    """Largest l_2 norm of a gradient: L0 d^(1/2 - 1/q), or L0 below q = 2."""
    inverse = 0.0 if math.isinf(setup.q) else 1 / setup.q
    return setup.lipschitz * setup.d ** max(0.0, 0.5 - inverse)
