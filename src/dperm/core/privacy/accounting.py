"""Accountants: the epsilon of a ledger at a given delta.

Two calibrations. ``paper`` evaluates what the papers evaluate; ``strict`` is a proved
upper bound. How far it may lie above what can be proved at all is said by
:mod:`dperm.accountants.intervals`: hardly for Gaussian and Laplace releases, by a fifth
or more for sampled ones, by up to a half for selections. Sensitivities are replace-one
sensitivities and are composed as they stand. That is what dp_accounting does under
ADD_OR_REMOVE_ONE; under REPLACE_ONE its PLD accountant would double them.

A new kind of event registers one small function with :func:`published_cost` and one
with :func:`profile`; one whose Rényi curve is the better bound, one with :func:`renyi`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, singledispatch
from typing import NamedTuple

import numpy as np
import scipy  # its parts come when they are first named
from numpy.typing import NDArray

from dperm.core.privacy.certified import upper_epsilon
from dperm.core.privacy.given import moves_with_data
from dperm.core.privacy.ledger import (
    Event,
    Gaussian,
    Laplace,
    Ledger,
    NonPrivate,
    SampledGaussian,
)
from dperm.core.privacy.pld import Profile, composed_epsilon

Array = NDArray[np.float64]

Accountant = Callable[[Ledger, float], float]

# the orders at which Mironov, Talwar and Zhang 2019, Section 3.3, is a finite sum
ORDERS = (*range(2, 65), 80, 96, 128, 256, 512, 1024)


class DeltaError(ValueError):
    """A delta outside (0, 1)."""


class UnknownCalibrationError(ValueError):
    """A calibration other than ``paper`` and ``strict``."""


class UnsupportedEventError(TypeError):
    """An event for which an accountant has no formula."""


def epsilon(ledger: Ledger, delta: float, calibration: str) -> float:
    """Return the epsilon that a ledger costs.

    Parameters
    ----------
    ledger : Ledger
        What is released.
    delta : float
        In (0, 1).
    calibration : {"paper", "strict"}
        ``paper``: the sum of pure epsilons (Dwork and Roth 2014, Corollary 3.15) plus
        Rényi composition (Mironov 2017, arXiv:1702.07476, Proposition 1). Without
        sampling it is converted by Proposition 3 there; with sampling, over integer
        orders and by the tighter conversion of dp_accounting (Canonne, Kamath and
        Steinke 2020, arXiv:2004.00010, Proposition 12): this is what reproduces the
        published noise, 0.967 at n = 20640 and 50 passes (Proposition 3 asks 1.065).
        Releases of papers that use advanced composition are composed by it.
        ``strict``: Gaussians exactly (Balle and Wang 2018, arXiv:1805.06530, Theorem
        8), all else as privacy loss distributions, or by the Rényi curve where that is
        lower (bounded range). The composition of the events' curves is found to about
        0.2 % and never from below: errors of the grid and of the arithmetic are
        charged (:mod:`.certified`). The curves themselves are upper bounds, so that
        the ledger may cost less (:mod:`.intervals`).

    Returns
    -------
    float
        epsilon >= 0; 0 if nothing is released, inf if something is released without
        noise, and under ``strict`` if no bound of an event can be proved.

    Raises
    ------
    DeltaError, UnknownCalibrationError, UnsupportedEventError
        As their names say.
    """
    return _priced(ACCOUNTANTS, ledger, delta, calibration)


def estimate(ledger: Ledger, delta: float, calibration: str) -> float:
    """Return an epsilon faster, right to about 1e-4 where ``epsilon`` is certified.

    For searches, whose result is then priced by ``epsilon``; the same arguments.
    """
    return _priced(ESTIMATES, ledger, delta, calibration)


def _priced(
    accountants: dict[str, Accountant], ledger: Ledger, delta: float, calibration: str
) -> float:
    if not 0 < delta < 1:
        raise DeltaError(f"delta must lie in (0, 1), got {delta}")
    accountant = accountants.get(calibration)
    if accountant is None:
        known = ", ".join(accountants)
        raise UnknownCalibrationError(f"calibration {calibration!r}; known: {known}")
    if any(event.scale == 0 for event in ledger.events):
        return math.inf
    return accountant(ledger, delta) if ledger.events else 0.0


def true_epsilon(ledger: Ledger, delta: float) -> float:
    """Return an epsilon that is proved to suffice: ``epsilon(..., "strict")``.

    It is the upper end of ``intervals.epsilon_interval``.
    """
    return epsilon(ledger, delta, "strict")


def unconditional(ledger: Ledger, delta: float) -> float:
    """Epsilon if nothing but n is public: infinite where a constant is read off data.

    A variant that pays for its constants with noise (DP-CD-priv-cst for M_j) has them
    in its ledger, and not among what is given.
    """
    return math.inf if moves_with_data(ledger.given) else true_epsilon(ledger, delta)


class Interval(NamedTuple):
    """Both ends of what an epsilon is known to be; closed forms to rounding (1e-9).

    Attributes
    ----------
    low : float
        Some mechanism with this ledger costs at least that, or any epsilon below it.
    high : float
        Every mechanism with this ledger costs at most that; ``true_epsilon``.
    """

    low: float
    high: float


def is_closed_form(ledger: Ledger, calibration: str) -> bool:
    """Tell whether an epsilon is computed to rounding, not on a grid of losses."""
    others = [event for event in ledger.events if not isinstance(event, Gaussian)]
    return calibration == "paper" or all(_is_single(others))


def _is_single(others: list[Event]) -> Iterator[bool]:
    """Of events beside Gaussians: whether a closed form composes them with those."""
    for event in others:
        alone = len(others) == event.count == 1
        yield alone and beside_gaussians(event, 0.0, 0.5) is not None


# --- paper ----------------------------------------------------------------------------


@dataclass(frozen=True)
class PublishedCost:
    """What one event costs in the papers' own accounting.

    Attributes
    ----------
    pure : float
        Pure epsilon, which adds.
    concentrated : float
        rho of a Rényi curve rho * alpha, which adds.
    sampled : tuple of (float, float, int)
        Sampling rate, noise multiplier and count of sampled Gaussians.
    advanced : tuple of (float, int)
        Pure epsilon and count of releases under advanced composition.
    direct : float
        Sum of squares x that is said to cost sqrt(2 x log(1/delta)), which adds.
    """

    pure: float = 0.0
    concentrated: float = 0.0
    sampled: tuple[tuple[float, float, int], ...] = ()
    advanced: tuple[tuple[float, int], ...] = ()
    direct: float = 0.0

    def __add__(self, other: PublishedCost) -> PublishedCost:
        return PublishedCost(
            self.pure + other.pure,
            self.concentrated + other.concentrated,
            self.sampled + other.sampled,
            self.advanced + other.advanced,
            self.direct + other.direct,
        )


@singledispatch
def published_cost(event: Event) -> PublishedCost:
    """Return what an event costs in the papers' own accounting."""
    raise UnsupportedEventError(f"no published cost for {type(event).__name__}")


@published_cost.register
def _(event: Gaussian) -> PublishedCost:
    return PublishedCost(concentrated=event.count / (2 * event.noise_multiplier**2))


@published_cost.register
def _(event: SampledGaussian) -> PublishedCost:
    release = (event.sampling_rate, event.noise_multiplier, event.count)
    return PublishedCost(sampled=(release,))


@published_cost.register
def _(event: Laplace) -> PublishedCost:
    sensitivity = event.published_sensitivity or event.sensitivity
    return PublishedCost(pure=event.count * sensitivity / event.scale)


@published_cost.register
def _(event: NonPrivate) -> PublishedCost:
    return PublishedCost(pure=math.inf)


def gaussian_renyi_epsilon(rho: float, delta: float) -> float:
    r"""Return the Rényi epsilon of Gaussian releases, optimised over all orders.

    .. math:: \min_\alpha \rho\alpha + \log(1/\delta)/(\alpha - 1)
              = \rho + 2\sqrt{\rho\log(1/\delta)}

    Parameters
    ----------
    rho : float
        Sum of count / (2 sigma^2), sigma the noise multiplier (zCDP, unit 1).
    delta : float
        In (0, 1).

    Notes
    -----
    dpcd (Mangold et al. 2022), Appendix B, Corollary B.8 before it is simplified;
    Mironov 2017, arXiv:1702.07476, Proposition 3.
    """
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def advanced_epsilon(releases: Iterable[tuple[float, int]], delta: float) -> float:
    r"""Return the epsilon of pure releases under advanced composition.

    .. math:: \sqrt{2 \log(1/\delta) \sum_i \epsilon_i^2}
              + \sum_i \epsilon_i (e^{\epsilon_i} - 1)

    Parameters
    ----------
    releases : iterable of (float, int)
        Pure epsilon of a release, and how often it is made.
    delta : float
        In (0, 1).

    Notes
    -----
    Dwork and Roth 2014, Theorem 3.20; dpgcd (Mangold et al. 2023), Appendix A, equation
    2, has 2T releases at epsilon'.
    """
    found = list(releases)
    squares = sum(count * pure**2 for pure, count in found)
    drift = sum(count * pure * math.expm1(min(pure, 700.0)) for pure, count in found)
    return math.sqrt(2 * math.log(1 / delta) * squares) + drift


def _sampled_renyi_epsilon(cost: PublishedCost, delta: float) -> float:
    """Return the Rényi epsilon of a cost that has sampled Gaussians in it."""
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(ORDERS)
    for rate, multiplier, count in cost.sampled:
        release = dp_event.PoissonSampledDpEvent(
            rate, dp_event.GaussianDpEvent(multiplier)
        )
        accountant.compose(release, count)
    if cost.concentrated:
        multiplier = 1 / math.sqrt(2 * cost.concentrated)
        accountant.compose(dp_event.GaussianDpEvent(multiplier))
    return float(accountant.get_epsilon(delta))


def _paper(ledger: Ledger, delta: float) -> float:
    cost = sum(map(published_cost, ledger.events), PublishedCost())
    added = cost.pure + advanced_epsilon(cost.advanced, delta)
    added += math.sqrt(2 * cost.direct * math.log(1 / delta))
    if cost.sampled:
        return added + _sampled_renyi_epsilon(cost, delta)
    return added + gaussian_renyi_epsilon(cost.concentrated, delta)


# --- strict ---------------------------------------------------------------------------


def _gaussian_curve(log_ratio: Array, mu: float) -> Array:
    """Return Phi(-a) - exp(log_ratio) Phi(-b), where b - a = mu, without cancelling."""
    first = scipy.special.log_ndtr(mu / 2 - log_ratio / mu)
    second = log_ratio + scipy.special.log_ndtr(-mu / 2 - log_ratio / mu)
    return np.exp(first) * -np.expm1(np.minimum(second - first, 0.0))


def gaussian_delta(epsilon: Array | float, mu: float) -> Array:
    """Return delta(epsilon) of telling N(0, 1) from N(mu, 1).

    Parameters
    ----------
    epsilon : array or float
        Privacy losses.
    mu : float
        Root of the sum of count / sigma^2, sigma the noise multiplier.

    Notes
    -----
    Balle and Wang 2018, arXiv:1805.06530, Theorem 8.
    """
    return _gaussian_curve(np.asarray(epsilon, dtype=float), mu)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the exact epsilon of Gaussian releases that compose to mu.

    Parameters
    ----------
    mu : float
        Root of the sum of count / sigma^2.
    delta : float
        In (0, 1).

    Notes
    -----
    Balle and Wang 2018, arXiv:1805.06530, Theorem 8; Dong, Roth and Su 2019,
    arXiv:1905.02383, Corollary 3.3 for the composition.
    """
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    upper = gaussian_renyi_epsilon(mu**2 / 2, delta)

    def excess(value: float) -> float:
        return float(gaussian_delta(value, mu)) / delta - 1

    return float(
        scipy.optimize.brentq(excess, 0.0, upper, xtol=1e-14 * upper, rtol=1e-14)
    )


def sampled_gaussian_delta(epsilon: Array | float, rate: float, mu: float) -> Array:
    """Return the bound on delta(epsilon) of one sampled Gaussian, epsilon >= 0.

    Parameters
    ----------
    epsilon : array or float
        Privacy losses, not negative.
    rate : float
        q = batch / population.
    mu : float
        1 / sigma, sigma the noise multiplier of the release without sampling.

    Notes
    -----
    Balle, Barthe and Gaboardi 2018, arXiv:1807.01647, Theorem 11.
    """
    loss = np.asarray(epsilon, dtype=float)
    small = np.log1p(np.expm1(np.minimum(loss, 30.0)) / rate)
    large = loss + np.log1p((rate - 1) * np.exp(-np.maximum(loss, 30.0)))
    log_ratio = np.where(loss < 30.0, small, large - math.log(rate))
    return rate * _gaussian_curve(log_ratio, mu)


def laplace_delta(epsilon: Array | float, pure: float) -> Array:
    """Return delta(epsilon) of one Laplace release, epsilon >= 0.

    Parameters
    ----------
    epsilon : array or float
        Privacy losses, not negative.
    pure : float
        Sensitivity / scale.

    Notes
    -----
    The hockey-stick divergence of Lap(0, 1) and Lap(pure, 1), integrated.
    """
    excess = (np.asarray(epsilon, dtype=float) - pure) / 2
    return -np.expm1(np.minimum(excess, 0.0))


@singledispatch
def profile(event: Event) -> Profile:
    """Return the curve of one release of an event, the worse of both directions."""
    raise UnsupportedEventError(f"no privacy profile for {type(event).__name__}")


@profile.register
def _(event: Gaussian) -> Profile:
    mu = 1 / event.noise_multiplier
    return Profile(lambda losses: gaussian_delta(losses, mu), event.count)


@profile.register
def _(event: SampledGaussian) -> Profile:
    rate, mu = event.sampling_rate, 1 / event.noise_multiplier
    return Profile(lambda losses: sampled_gaussian_delta(losses, rate, mu), event.count)


@profile.register
def _(event: Laplace) -> Profile:
    pure = event.sensitivity / event.scale
    return Profile(lambda losses: laplace_delta(losses, pure), event.count)


@profile.register
def _(event: NonPrivate) -> Profile:
    return Profile(lambda losses: np.ones_like(losses, dtype=float), event.count)


@singledispatch
def renyi(event: Event, orders: Array) -> Array | None:
    """Return the Rényi divergences of all releases of an event, at orders above 1.

    None, which most events leave it at, where the loss distribution is never worse.
    """
    return None


@renyi.register
def _(event: Gaussian, orders: Array) -> Array:
    return orders * event.count / (2 * event.noise_multiplier**2)


@renyi.register
def _(event: Laplace, orders: Array) -> Array:
    # Mironov 2017, arXiv:1702.07476, Proposition 6
    pure, share = event.sensitivity / event.scale, orders / (2 * orders - 1)
    up = np.log(share) + (orders - 1) * pure
    down = np.log1p(-share) - orders * pure
    return event.count * np.logaddexp(up, down) / (orders - 1)


@renyi.register
def _(event: NonPrivate, orders: Array) -> Array:
    return np.full_like(orders, np.inf)


@singledispatch
def beside_gaussians(event: Event, mu: float, delta: float) -> float | None:
    """Return the epsilon of one release and of Gaussian ones of that mu, together.

    None, which most events leave it at, where there is no closed form.
    """
    return None


RENYI_ORDERS = 1 + np.geomspace(1e-3, 1e5, 2000)


def renyi_epsilon(ledger: Ledger, delta: float) -> float:
    """Return the epsilon of a ledger by its Rényi curve; inf if an event has none.

    Notes
    -----
    Conversion of Canonne, Kamath and Steinke 2020, arXiv:2004.00010, Proposition 12;
    every order gives a bound.
    """
    total, orders = np.zeros_like(RENYI_ORDERS), RENYI_ORDERS
    for event in ledger.events:
        curve = renyi(event, orders)
        if curve is None:
            return math.inf
        total += curve
    spent = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return max(float((total + spent).min()), 0.0)


def _composed_mu(ledger: Ledger) -> float:
    events = (event for event in ledger.events if isinstance(event, Gaussian))
    return math.sqrt(sum(event.count / event.noise_multiplier**2 for event in events))


@lru_cache(maxsize=4096)
def _strict(ledger: Ledger, delta: float) -> float:
    return _sound(ledger, delta, upper_epsilon)


def _strict_estimate(ledger: Ledger, delta: float) -> float:
    return _sound(ledger, delta, composed_epsilon)


def _sound(
    ledger: Ledger, delta: float, composed: Callable[[list[Profile], float], float]
) -> float:
    if not all(event.sound for event in ledger.events):
        return math.inf
    mu = _composed_mu(ledger)
    others = [event for event in ledger.events if not isinstance(event, Gaussian)]
    if not others:
        return gaussian_epsilon(mu, delta)
    if len(others) == others[0].count == 1:
        closed = beside_gaussians(others[0], mu, delta)
        if closed is not None:
            return closed
    profiles = [profile(event) for event in others]
    if mu:
        profiles.append(Profile(lambda losses: gaussian_delta(losses, mu)))
    return min(composed(profiles, delta), renyi_epsilon(ledger, delta))


ACCOUNTANTS: dict[str, Accountant] = {"paper": _paper, "strict": _strict}
ESTIMATES: dict[str, Accountant] = {"paper": _paper, "strict": _strict_estimate}
