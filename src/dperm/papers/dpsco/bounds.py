"""The rates that the paper proves: Table 1, Theorems 5.2 and 5.4."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dperm.accountants.generalised_gaussian import regularity
from dperm.core.erm.sets import dual_exponent

_TREE = "sqrt(kappa/n) + kappa sqrt(d) / (eps n)"
RATES = {  # Table 1's upper bounds, logarithms left out
    "poly_sfw": "log(d) / (eps sqrt(n))",
    "noisy_sfw": _TREE,
    "noisy_sfw_all": _TREE,
    "phased_sgd": "d^(1/2-1/p) / sqrt(n) + d^(1-1/p) / (eps n)",
}
TERMS = {  # their exponents of n: statistical term, privacy term
    "poly_sfw": (-0.5, -0.5),
    "noisy_sfw": (-0.5, -1.0),
    "noisy_sfw_all": (-0.5, -1.0),
    "phased_sgd": (-0.5, -1.0),
}


def theorem(solver: str, p: float, epsilon: float, n: float, d: float) -> float:
    """A theorem's bound with its logarithms; constants, L and M left out.

    Theorem 6.3 (K = 2 d vertices), Theorem 5.2, Proposition 7.1; delta = 1 / n^2, a
    probability beta of 1/20. At epsilon infinity the terms of the noise are gone; what
    is left of Theorem 6.3 is its sampling error.
    """
    beta, private = 0.05, 0.0 if math.isinf(epsilon) else 1 / epsilon
    delta = math.sqrt(math.log(n**2))
    if solver == "poly_sfw":
        logs = math.log(n / math.log(2 * d)) * math.log(2 * d * n / beta)
        return logs * (private * delta if private else 1.0) / math.sqrt(n)
    if solver == "phased_sgd":
        inverse = 0.0 if math.isinf(p) else 1 / p
        statistical = d ** (0.5 - inverse) / math.sqrt(n)
        return statistical + d ** (1 - inverse) * delta * private / n
    kappa = 2 * math.e * math.log(d)
    kappa = min(kappa, 1 / (p - 1)) if p > 1 else kappa
    leading = math.sqrt(kappa) + math.sqrt(math.log(n / beta))
    noise = math.log(n) ** 3 * math.sqrt(kappa * d) * delta * private / n
    return leading * (math.log(n) ** 2 / math.sqrt(n) + noise)


def printed(solver: str, p: float, epsilon: float, n: float, d: float) -> float:
    """Table 1's upper bound as ``RATES`` has it, without other logarithms.

    At epsilon infinity the terms of the noise are gone, and p = 1 has log(d) / sqrt(n).
    """
    private = 0.0 if math.isinf(epsilon) else 1 / epsilon
    if solver == "poly_sfw":
        return math.log(d) * (private or 1.0) / math.sqrt(n)
    if solver == "phased_sgd":
        inverse = 0.0 if math.isinf(p) else 1 / p
        return d ** (0.5 - inverse) / math.sqrt(n) + private * d ** (1 - inverse) / n
    kappa = 2 * math.log(d)
    kappa = min(kappa, 1 / (p - 1)) if p > 1 else kappa
    return math.sqrt(kappa / n) + private * kappa * math.sqrt(d) / n


def exponent(
    solver: str, p: float, epsilon: float, at: dict[str, float], axis: str,
    ends: tuple[float, float],
    rate: Callable[..., float] = theorem,
) -> float:  # fmt: skip
    """Local exponent of a bound in an axis (n or d), between two ends."""
    first, last = (rate(solver, p, epsilon, **{**at, axis: end}) for end in ends)
    return math.log(last / first) / math.log(ends[1] / ends[0])


def growth(solver: str, p: float) -> str:
    """How Table 1's bound grows with d, in words."""
    if solver == "poly_sfw":
        return "log d"
    if p <= 2:
        return "0 (statistical), 0.5 (privacy)"
    inverse = 0.0 if math.isinf(p) else 1 / p
    return f"{0.5 - inverse:g} (statistical), {1 - inverse:g} (privacy)"


def privacy_terms(excess: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Upper and lower bound's privacy terms at p - 1 = ``excess``, over the last's.

    kappa sqrt(d) / (epsilon n) of Theorem 5.2 and (p - 1) sqrt(d) / (epsilon n) of
    Theorem 5.4; d, epsilon and n are the same along the curve. Shapes (k,).
    """
    kappa = np.array([regularity(dual_exponent(1 + value), d) for value in excess])
    return kappa / kappa[-1], excess / excess[-1]
