"""The papers' own accounting: the calibration ``published``.

Pure epsilons add (Dwork and Roth 2014, Corollary 3.15), and so do Rényi curves (Mironov
2017, arXiv:1702.07476, Proposition 1). Without sampling they are converted by
Proposition 3 there; with sampling, over integer orders and by the tighter conversion
(Canonne, Kamath and Steinke 2020, arXiv:2004.00010, Proposition 12): this
reproduces the published noise, 0.967 at n = 20640 and 50 passes (Proposition 3 would
need 1.065). Where a paper uses advanced composition, so does this module.

A new kind of event registers one small function with :func:`published_cost`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from functools import singledispatch
from typing import Any

import numpy as np
import scipy  # it imports its parts when they are first used

from dperm.privacy.accountants.tight import gaussian_renyi_epsilon
from dperm.privacy.events import (
    Event,
    Gaussian,
    Laplace,
    Ledger,
    SampledGaussian,
    UnsupportedEventError,
)

# the orders at which Mironov, Talwar and Zhang 2019, Section 3.3, is a finite sum
ORDERS = np.array([*range(2, 65), 80, 96, 128, 256, 512, 1024], dtype=float)


def epsilon(ledger: Ledger, delta: float) -> float:
    """Return the epsilon of a ledger by the papers' formulas."""
    costs: dict[str, list[Any]] = defaultdict(list)
    for event in ledger.events:
        rule, amount = published_cost(event)
        costs[rule].append(amount)
    added = float(sum(costs["pure"])) + advanced_epsilon(
        costs["advanced"], delta
    )
    added += math.sqrt(2 * sum(costs["direct"]) * math.log(1 / delta))
    rho = sum(costs["concentrated"])
    if not costs["sampled"]:
        return added + gaussian_renyi_epsilon(rho, delta)
    curve = rho * ORDERS + sum(
        event.count
        * sampled_renyi(event.sampling_rate, event.noise_multiplier)
        for event in costs["sampled"]
    )
    spent = np.log1p(-1 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (
        ORDERS - 1
    )
    # a small divergence bounds the total variation distance (Bretagnolle and Huber)
    small = delta**2 + np.expm1(-curve) > 0
    return added + max(float(np.where(small, 0.0, curve + spent).min()), 0.0)


def sampled_renyi(rate: float, noise_multiplier: float) -> np.ndarray:
    """Return the Rényi divergences at ``ORDERS`` of a Poisson-sampled Gaussian.

    Mironov, Talwar and Zhang 2019, arXiv:1908.10530, Section 3.3.
    """
    k = np.arange(ORDERS[-1] + 1)
    a = ORDERS[:, None]
    log_gamma = scipy.special.gammaln
    logs = (
        log_gamma(a + 1)
        - log_gamma(k + 1)
        - log_gamma(np.maximum(a - k, 0) + 1)
    )
    logs += k * math.log(rate) + scipy.special.xlog1py(a - k, -rate)
    logs += k * (k - 1) / (2 * noise_multiplier**2)
    logs = np.where(k <= a, logs, -np.inf)
    return np.asarray(scipy.special.logsumexp(logs, axis=1) / (ORDERS - 1))


@singledispatch
def published_cost(event: Event) -> tuple[str, Any]:
    """Return how the papers' own accounting composes an event, and what of it.

    - pure: an epsilon, which adds
    - concentrated: rho of a Rényi curve rho * alpha, which adds
    - sampled: the event itself, composed over ``ORDERS``
    - advanced: epsilon and count of pure releases, under advanced composition
    - direct: x, where the sum of all x costs sqrt(2 x log(1/delta))
    """
    raise UnsupportedEventError(
        f"no published cost for {type(event).__name__}"
    )


@published_cost.register
def _(event: Gaussian) -> tuple[str, Any]:
    return "concentrated", event.count / (2 * event.noise_multiplier**2)


@published_cost.register
def _(event: SampledGaussian) -> tuple[str, Any]:
    return "sampled", event


@published_cost.register
def _(event: Laplace) -> tuple[str, Any]:
    sensitivity = event.published_sensitivity or event.sensitivity
    return "pure", event.count * sensitivity / event.scale


def advanced_epsilon(
    releases: Iterable[tuple[float, int]], delta: float
) -> float:
    r"""Return the epsilon of pure releases under advanced composition.

    .. math:: \sqrt{2 \log(1/\delta) \sum_i \epsilon_i^2}
              + \sum_i \epsilon_i (e^{\epsilon_i} - 1)

    *releases* are pure epsilons and how often each is spent (Dwork and Roth 2014,
    Theorem 3.20; dpgcd (Mangold et al. 2023), Appendix A, equation 2, has 2T releases
    at epsilon').
    """
    pures = list(releases)
    squares = sum(count * pure**2 for pure, count in pures)
    drift = sum(
        count * pure * math.expm1(min(pure, 700.0)) for pure, count in pures
    )
    return math.sqrt(2 * math.log(1 / delta) * squares) + drift
