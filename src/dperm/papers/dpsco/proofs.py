"""Proofs of Bassily et al. 2021 in numbers."""

from __future__ import annotations

import math

import numpy as np
import scipy  # its parts come when they are first named

from dperm.papers.shared.proofs import Argument
from dperm.privacy.accountants.published import advanced_epsilon
from dperm.privacy.mechanisms import generalised_gaussian as generalised

# --- Corollary 3.3, Theorem 6.3 -------------------------------------------------------


def generalised_gaussian(
    epsilon: float, delta: float, kappa: float
) -> Argument:
    """Bassily et al. 2021, Corollary 3.3: its own bound by its own conversion."""
    multiplier = math.sqrt(2 * kappa * math.log(1 / delta)) / epsilon
    cost = generalised.proof_epsilon(kappa, multiplier, delta)
    return Argument(
        cost, epsilon, "its Renyi bound by the cited conversion, best order"
    )


def single_pass_selections(epsilon: float, delta: float, n: float) -> Argument:
    """Bassily et al. 2021, Theorem 6.3: n/2 selections by advanced composition."""
    pure = epsilon / math.sqrt(n * math.log(1 / delta))
    cost = advanced_epsilon([(pure, int(n) // 2)], delta)
    return Argument(cost, epsilon, "advanced composition with its second term")


# --- Proposition 3.2, at unit scale ---------------------------------------------------


def noise_moment(m: float, d: float) -> Argument:
    """Bassily et al. 2021, Proposition 3.2 (a): the m-th moment of the noise's norm."""
    moment = _radial(m + d - 1, 1.0) / _radial(d - 1, 1.0)
    logs = math.lgamma((m + d) / 2) - math.lgamma(d / 2)
    return Argument(
        moment, 2 ** (m / 2) * math.exp(logs), "its integral over the radius"
    )


def noise_exponential(square: float, d: float) -> Argument:
    """Bassily et al. 2021, Proposition 3.2 (b): E exp(||z||^2 / nu^2).

    ``square`` is nu^2. The mean is infinite up to 2, where ``found`` is a lower bound.
    """
    expectation = _radial(d - 1, 1 - 2 / square) / _radial(d - 1, 1.0)
    return Argument(
        expectation, math.exp(d / (square - 2)), "its integral over the radius"
    )


def noise_tail(d: float) -> Argument:
    """Proposition 3.2 (b) at nu^2 = d + 2, which the paper then uses."""
    return noise_exponential(d + 2, d)


def _radial(power: float, rate: float) -> float:
    """The integral of r^power exp(-rate r^2 / 2); a part of it if it is infinite."""
    end = (math.sqrt(power) + 12) / math.sqrt(rate if rate > 0 else 1.0)
    density = lambda r: r**power * math.exp(-rate * r * r / 2)  # noqa: E731
    return float(
        scipy.integrate.quad(density, 0, end, epsabs=0, epsrel=1e-11)[0]
    )


def noise_divergence(alpha: float, q: float) -> Argument:
    """Bassily et al. 2021, Proposition 3.2 (c), in the plane; the worse of two shifts.

    Shifts are 4 / alpha long in l_q, along one axis and along both.
    """
    r = generalised.smooth_order(q, 2)
    length = 4 / alpha
    # sums over it are as accurate as integrals
    axis = np.linspace(-12, 12, 161)
    z = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    squares = _square(z, r)
    total = np.exp(-squares / 2).sum()

    def divergence(shift: np.ndarray) -> float:
        """Rényi divergence of the law and its shift."""
        shifted_squares = _square(z - length * shift, r)
        integral = np.exp(
            ((alpha - 1) * squares - alpha * shifted_squares) / 2
        ).sum()
        return math.log(integral / total) / (alpha - 1)

    along = np.array([1.0, 0.0])
    across = np.full(2, 2 ** (-1 / q))
    worse = max(divergence(along), divergence(across))
    claimed = generalised.renyi_bound(
        alpha, generalised.regularity(q, 2), 1 / length
    )
    return Argument(worse, claimed, "the Renyi divergence in the plane")


# --- Algorithm 1 ----------------------------------------------------------------------


def records_read(n: float) -> Argument:
    """Number of records that Algorithm 1 draws with the batches of Theorem 5.2."""
    phases = int(math.log2(n) // 2)
    drawn = (
        sum(1 + t / 2 for t in range(1, phases + 1))
        * 4
        * n
        / math.log2(n) ** 2
    )
    return Argument(
        drawn, n, "b (1 + t/2) records in every phase t, logarithms base 2"
    )


def inner_sensitivity(phases: float) -> Argument:
    """Theorem 5.1: largest change of an inner difference by a record, over L1 M / b.

    It is twice 2^j times the largest move of the iterate below the left sibling, with
    the steps that Algorithm 1 prints.
    """
    largest = 0.0
    for t in range(1, int(phases) + 1):
        weights = [1 - 2 / (2 ** (t - 1) + leaf + 1) for leaf in range(2**t)]
        for j in range(1, t + 1):
            below = 2 ** (t - j)
            for leaf in range(0, 2**t, 2 * below):
                gone = 1 - math.prod(weights[leaf : leaf + below])
                largest = max(largest, 2 * 2**j * gone)
    return Argument(largest, 8.0, "all right children, the printed steps")


def _square(rows: np.ndarray, r: float) -> np.ndarray:
    """||z||_r^2 of each row."""
    return (np.abs(rows) ** r).sum(axis=1) ** (2 / r)
