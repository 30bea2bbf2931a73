"""The privacy proofs of Bassily et al. 2021 in numbers: Corollary 3.3, Theorem 6.3."""

from __future__ import annotations

import math

from dperm.accountants.generalised_gaussian import proof_epsilon
from dperm.core.privacy.published import advanced_epsilon
from dperm.kinds.proofs import Case


def generalised_gaussian(epsilon: float, delta: float, kappa: float) -> Case:
    """Bassily et al. 2021, Corollary 3.3: its own bound, converted as it says."""
    multiplier = math.sqrt(2 * kappa * math.log(1 / delta)) / epsilon
    found = proof_epsilon(kappa, multiplier, delta)
    return Case(found, epsilon, "its Renyi bound by the cited conversion, best order")


def single_pass_selections(epsilon: float, delta: float, n: float) -> Case:
    """Bassily et al. 2021, Theorem 6.3: n/2 selections by advanced composition."""
    count = int(n) // 2
    pure = epsilon / math.sqrt(n * math.log(1 / delta))
    found = advanced_epsilon([(pure, count)], delta)
    return Case(found, epsilon, "advanced composition with its second term")
