"""Arguments of privacy proofs, evaluated step by step; any paper may use them.

An argument takes a case (target, delta, sizes) and returns its result with the claimed
value. It is the paper's own, with its conversion and composition, and with the cost of
each step as in the literature. An argument whose name ends in ``_noise`` applies a
tight accountant to the printed noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dperm.privacy.accountants.tight import (
    gaussian_epsilon,
    gaussian_renyi_epsilon,
)


@dataclass(frozen=True)
class Argument:
    """Result of an argument for one case, the claimed value, and the method."""

    found: float
    claimed: float
    how: str

    @property
    def share(self) -> float:
        """Found over claimed; above 1 the argument fails."""
        return self.found / self.claimed


def theorem_gaussian(epsilon: float, delta: float) -> Argument:
    """Gaussian releases at variance 12 L^2 TK log(1/delta) / (n epsilon)^2.

    Sensitivity 2 L / n; the number of releases cancels. Mangold et al. 2022, Theorem
    3.1; Maranjyan et al. 2024, Theorem 4.1.
    """
    rho = epsilon**2 / (6 * math.log(1 / delta))
    cost = gaussian_renyi_epsilon(rho, delta)
    return Argument(
        cost, epsilon, "Renyi composition, converted at the best order"
    )


def theorem_gaussian_noise(epsilon: float, delta: float) -> Argument:
    """The same noise by the exact profile of one Gaussian (Balle and Wang 2018)."""
    cost = gaussian_epsilon(
        epsilon / math.sqrt(3 * math.log(1 / delta)), delta
    )
    return Argument(cost, epsilon, "exact composition of Gaussians")
