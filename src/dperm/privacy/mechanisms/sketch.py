r"""Gaussian sketches: the price of normal rows with the records' covariance.

The release is *k* independent rows :math:`N(0, X^T X + \eta I)`, which is the law of
:math:`S X + \sqrt\eta N` for a Gaussian *S* (k, n) and *N* (k, p). Let a record have
norm at most R, *A* be the second moments of the records that two data sets share, and
:math:`M = A + \eta I \succeq \Gamma I`. With :math:`s^2 = R^2/\Gamma` the privacy loss
under replacing a record is at most that of

.. math:: L = \frac{s^2}{2} U - \frac{s^2}{2 (1 + s^2)} V,\qquad U, V \sim \chi^2_k,

independent (proof in ``docs/accounting.md``). For *T* such releases, each chosen by
those before, *kT* replaces *k*. A floor of A that is released with noise fails with a
chance of ``doubt``, which is added to delta. The mechanism is that of Sheffet 2019 and
of Lev et al. 2025, arXiv:2505.24603.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy  # loads scipy.stats where a price is found, and not before
from numpy.typing import NDArray
from scipy.special import gammaincc

from dperm.privacy.accountants.pld import NODES, Profile, chorded
from dperm.privacy.accountants.tight import (
    beside_gaussians,
    gaussian_delta,
    profile,
)
from dperm.privacy.events import Event, LedgerError, require_one
from dperm.privacy.mechanisms.perturbed_objective import crossing

Array = NDArray[np.float64]

# Nodes of a trapezoidal rule over 13 standard deviations either side
QUADRATURE = 53
CHARGE = 1e-6  # relative, for the rule's error, which is far below


@dataclass(frozen=True)
class GaussianSketch(Event):
    r"""Normal rows whose covariance is the records' second moments plus a floor.

    `sensitivity` is R, `scale` is :math:`\sqrt\Gamma`.
    """

    rows: int = 1  #: k, of each release
    #: chance, over all releases, that the covariance is below the floor
    doubt: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one("rows", self.rows)
        if not 0 <= self.doubt < 1:
            raise LedgerError(f"doubt must lie in [0, 1), got {self.doubt}")


def sketch_delta(
    s2: float, freedom: int, mu: float, epsilon: Array | float
) -> Array | float:
    """The exact delta of ``freedom`` rows together with Gaussian releases of mu."""
    losses = np.asarray(epsilon, dtype=float)[..., None, None]
    if not math.isfinite(s2):
        return np.ones(losses.shape[:-2])
    a = s2 / 2
    b = s2 / (2 * (1 + s2))
    u, weights = _chi_squared(freedom)
    if mu > 2 * a * math.sqrt(freedom):
        # the Gaussian part is the smoother one
        thresholds = losses - a * u[:, None] + b * u
        deltas = gaussian_delta(thresholds, mu) @ weights @ weights
    else:
        z, normal = _normal() if mu else (np.zeros(1), np.ones(1))
        thresholds = losses + b * u[:, None] - (mu**2 / 2 + mu * z)
        # E(1 - exp(c - a U))_+ of U chi-squared
        start = np.maximum(thresholds, 0.0) / (2 * a)
        shrunk = np.minimum(
            thresholds - freedom / 2 * math.log1p(2 * a), 700.0
        )
        tail = np.exp(shrunk) * gammaincc(freedom / 2, start * (1 + 2 * a))
        excess = np.maximum(gammaincc(freedom / 2, start) - tail, 0.0)
        deltas = excess @ normal @ weights
    return np.minimum((1 + CHARGE) * deltas, 1.0)


@lru_cache(maxsize=256)
def _chi_squared(freedom: int) -> tuple[Array, Array]:
    """Nodes and weights of a chi-squared law, evenly spaced in the logarithm."""
    law = scipy.stats.chi2(freedom)
    log_nodes = np.linspace(
        math.log(law.ppf(1e-32)), math.log(law.isf(1e-32)), QUADRATURE
    )
    u = np.exp(log_nodes)
    weights = law.pdf(u) * u
    return u, weights / weights.sum()


@lru_cache(maxsize=1)
def _normal() -> tuple[Array, Array]:
    z = np.linspace(-13.0, 13.0, QUADRATURE)
    weights = scipy.stats.norm.pdf(z)
    return z, weights / weights.sum()


@beside_gaussians.register
def _(event: GaussianSketch, mu: float, delta: float) -> float:
    s2 = 1 / event.noise_multiplier**2
    freedom = event.rows * event.count
    if not math.isfinite(s2) or event.doubt >= delta:
        return math.inf
    delta_left = delta - event.doubt
    return crossing(
        lambda at: float(sketch_delta(s2, freedom, mu, at)), delta_left
    )


@profile.register
def _(event: GaussianSketch) -> Profile:
    """One release; the doubt is charged to each of them."""
    s2 = 1 / event.noise_multiplier**2
    deltas = sketch_delta(s2, event.rows, 0.0, NODES) + event.doubt
    return chorded(np.minimum(deltas, 1.0), event.count)
