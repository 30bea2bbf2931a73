"""Ledgers of one event, and prices worked out anew without our accountants."""

import math

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from dperm.privacy.events import Gaussian, Laplace, Ledger, SampledGaussian
from dperm.privacy.mechanisms.perturbed_objective import PerturbedObjective

DELTA = 1e-6


# --- ledgers of one event of sensitivity 1 --------------------------------------------


def gaussian(noise, count=1):
    return Ledger((Gaussian(1.0, noise, count, "", ""),))


def laplace(noise, count=1, **more):
    return Ledger((Laplace(1.0, noise, count, "", "", **more),))


def sampled(noise, count, n, batch=1):
    return Ledger((SampledGaussian(1.0, noise, count, "", "", batch, n),))


def tilted(noise, curvature):
    return Ledger((PerturbedObjective(1.0, noise, 1, "", "", curvature),))


# --- laws -----------------------------------------------------------------------------


def crossing(delta_of, high=60.0):
    return brentq(lambda e: delta_of(e) - DELTA, 0.0, high, xtol=1e-13)


def coins(pure, count):
    """Randomised response, the worst mechanism of a pure epsilon: a binomial law."""
    true = 1 / (1 + math.exp(-pure))
    heads = np.arange(count + 1)
    losses, law = (
        pure * (2 * heads - count),
        stats.binom.pmf(heads, count, true),
    )
    return crossing(
        lambda e: law @ np.maximum(-np.expm1(np.minimum(e - losses, 1)), 0),
        400.0,
    )


def coin_divergence(pure, a):
    """Of order a, between the laws of such a coin's two sides."""
    true = 1 / (1 + math.exp(-pure))
    moment = true**a * (1 - true) ** (1 - a) + (1 - true) ** a * true ** (
        1 - a
    )
    return math.log(moment) / (a - 1)


def expected(gamma):
    """E[K] of a logarithmic number of runs, by its sum."""
    k = np.arange(1, 5000)
    return ((1 - gamma) ** k).sum() / ((1 - gamma) ** k / k).sum()


# --- a tilted minimum -----------------------------------------------------------------


def curve(epsilon, mu):
    """Delta of N(mu, 1) against N(0, 1); 1 where epsilon is not positive."""
    if epsilon <= 0:
        return 1.0
    if not mu:
        return 0.0
    up, down = (stats.norm.logcdf(s * mu / 2 - epsilon / mu) for s in (1, -1))
    return float(np.exp(up) - np.exp(epsilon + down))


def tilted_epsilon(event, mu, delta):
    """Epsilon of one minimum beside Gaussian releases of shift ``mu``.

    From the fixed shifts a v - a' v' of the proof, with a in twentieths; or jointly.
    """
    M, K = 1 / event.noise_multiplier / 2, event.curvature

    def grid(epsilon):
        total = 0.0
        for k in range(21):
            ends = [
                t for t in (k - 1, k, k + 1, 10) if max(k - 1, 0) <= t <= k + 1
            ]
            J = max(
                math.log1p(K * t * (20 - t) / 400) for t in ends if t <= 20
            )
            shifts = (math.hypot((k / 20 + b) * M, mu) for b in (0, 1))
            total += sum(curve(epsilon - J, shift) for shift in shifts)
        return total

    def joint(epsilon):
        left = sum(curve(epsilon, math.hypot(b * M, mu)) for b in (1, 2))
        return left + sum(
            curve(epsilon - K, math.hypot(b * M, mu)) for b in (0, 1)
        )

    def excess(epsilon):
        return min(grid(epsilon), joint(epsilon)) - delta

    high = 1.0
    while excess(high) > 0:
        high *= 2
    return brentq(excess, 1e-9, high, xtol=1e-13)
