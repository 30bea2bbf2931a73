"""Selections of a vertex by report noisy max: what is published, and what it costs."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from dperm.core.calibrations import STRICT
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import Ledger
from dperm.core.privacy.noisy_max import NoisyMax

LOUD = 2.0  # pure epsilon of one selection; adding costs at most a third more here
HOPELESS = 100.0  # epsilon beyond which the exact one is not computed
_UNIT = "a vertex's inner product with the gradient"
_SOURCE = "Talwar, Thakurta and Zhang 2015, Algorithm 2"


def selections(moved: float, scale: float, count: int) -> NoisyMax:
    """That many selections; replacing a record moves each score by ``moved``."""
    return NoisyMax(moved, scale, count, _UNIT, _SOURCE)


def published_root(count: int, delta: float) -> float:
    """sqrt(8 T log(1/delta)): Talwar et al.'s Laplace scale is L r / (n epsilon) that.

    L bounds a record's largest partial derivative, r the l1 norm of the vertices.
    """
    return math.sqrt(8 * count * math.log(1 / delta))


@cache
def least_multiplier(count: int, epsilon: float, delta: float) -> float:
    """Least noise over sensitivity of so many selections under a sound accountant.

    Where one may cost more than ``LOUD`` there is nothing to gain from composing
    jointly, and pure epsilons add up.
    """
    if epsilon / count > LOUD:
        return 2 * count / epsilon

    def of(multiplier: float) -> Ledger:
        return Ledger((selections(1.0, multiplier, count),))

    with np.errstate(over="ignore"):  # of tilted masses that end as infinity
        return calibrate(of, epsilon, delta, STRICT).noise_multiplier


@cache
def selections_epsilon(count: int, pure: float, delta: float) -> float:
    """True epsilon of so many selections; pure epsilons add beyond ``HOPELESS``."""
    if count * pure > HOPELESS:
        return count * pure
    return true_epsilon(Ledger((selections(pure, 2.0, count),)), delta)
