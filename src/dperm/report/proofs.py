r"""What the privacy proofs of the papers yield, followed step by step in numbers.

Each function takes a case (target, delta, sizes) and returns what the argument gives
beside what is claimed. ``PROOFS`` follow the paper's own argument, with its conversion
and its composition, and with the cost of each step as the literature has it. ``NOISES``
leave the argument aside and ask a tight accountant what the printed noise costs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dperm.privacy import generalised_gaussian as gg
from dperm.privacy.accounting import (
    advanced_epsilon,
    gaussian_epsilon,
    gaussian_renyi_epsilon,
    true_epsilon,
)
from dperm.privacy.ledger import Ledger
from dperm.privacy.noisy_max import ChosenValue, NoisyMax


@dataclass(frozen=True)
class Case:
    """What an argument yields for one case, what is claimed, and how it goes."""

    found: float
    claimed: float
    how: str

    @property
    def share(self) -> float:
        """Found over claimed; above 1 the argument fails."""
        return self.found / self.claimed


Argument = Callable[..., Case]


def crossed(given: dict[str, Any]) -> Iterator[dict[str, float]]:
    """All combinations of the values of each key; a number stands for itself."""
    lists = [each if isinstance(each, list) else [each] for each in given.values()]
    for values in itertools.product(*lists):
        yield dict(zip(given, map(float, values), strict=True))


def theorem_gaussian(epsilon: float, delta: float) -> Case:
    """Gaussian releases at variance 12 L^2 TK log(1/delta) / (n epsilon)^2.

    Sensitivity 2 L / n; the number of releases cancels. Mangold et al. 2022, Theorem
    3.1; Maranjyan et al. 2024, Theorem 4.1.
    """
    rho = epsilon**2 / (6 * math.log(1 / delta))
    found = gaussian_renyi_epsilon(rho, delta)
    return Case(found, epsilon, "Renyi composition, converted at the best order")


def theorem_gaussian_noise(epsilon: float, delta: float) -> Case:
    """The same noise by the exact profile of one Gaussian (Balle and Wang 2018)."""
    found = gaussian_epsilon(epsilon / math.sqrt(3 * math.log(1 / delta)), delta)
    return Case(found, epsilon, "exact composition of Gaussians")


def noisy_max_step(gap: float, pure: float) -> Case:
    """One report-noisy-max under replacement, two scores moving against each other.

    Two scores a ``gap`` apart, in noise scales, each with Laplace noise at ratio
    ``pure`` of sensitivity to scale. Found is the log-ratio of the chances that the
    lower one is chosen. Mangold et al. 2023, proof of Theorem 4.2, claims ``pure``.
    """

    def log_chance(distance: float) -> float:
        return -distance + math.log1p(distance / 2)

    found = log_chance(gap - 2 * pure) - log_chance(gap)
    return Case(
        found, pure, "gradients move both ways, so a selection costs up to twice"
    )


def greedy_noise(epsilon: float, delta: float, rounds: float) -> Case:
    """Mangold et al. 2023, closed form of Theorem 4.2, selections at twice epsilon'.

    Laplace scale 8 L sqrt(T log(1/delta)) / (n epsilon), sensitivity 2 L / n, for T
    selections and T values.
    """
    scale = 4 * math.sqrt(rounds * math.log(1 / delta)) / epsilon
    made = ("2 L / n", "Mangold et al. 2023, Theorem 4.2")
    ledger = Ledger(
        (
            NoisyMax(1.0, scale, int(rounds), *made),
            ChosenValue(1.0, scale, int(rounds), *made),
        )
    )
    found = true_epsilon(ledger, delta)
    return Case(found, epsilon, "selections at twice, values at once; composed as PLD")


def generalised_gaussian(epsilon: float, delta: float, kappa: float) -> Case:
    """Bassily et al. 2021, Corollary 3.3: its own bound, converted as it says."""
    multiplier = math.sqrt(2 * kappa * math.log(1 / delta)) / epsilon
    found = gg.proof_epsilon(kappa, multiplier, delta)
    return Case(found, epsilon, "its Renyi bound by the cited conversion, best order")


def single_pass_selections(epsilon: float, delta: float, n: float) -> Case:
    """Bassily et al. 2021, Theorem 6.3: n/2 selections by advanced composition."""
    count = int(n) // 2
    pure = epsilon / math.sqrt(n * math.log(1 / delta))
    found = advanced_epsilon([(pure, count)], delta)
    return Case(found, epsilon, "advanced composition with its second term")


def node_selections(
    epsilon: float, delta: float, nodes: float, iterations: float
) -> Case:
    """Lou and Cheung 2020, Lemma 3: a record is on all nodes, K T selections compose.

    Laplace scale 8 G eta sqrt(2 T log(2/delta)) / (n epsilon) on scores that move by
    2 G eta / n: the K of the printed scale cancels.
    """
    pure = epsilon / (2 * math.sqrt(2 * iterations * math.log(2 / delta)))
    found = advanced_epsilon([(pure, int(nodes * iterations))], delta / 2)
    return Case(found, epsilon / 2, "advanced composition of all nodes' selections")


def sketched_features(
    epsilon: float,
    delta: float,
    n: float,
    length: float,
    nodes: float,
    iterations: float,
) -> Case:
    """Lou and Cheung 2020, Lemma 2: a sketched feature moves by ||J_:i||, whatever n.

    J is (length, n) with entries N(0, 1/length): columns of norm about 1, largest
    singular value about 1 + sqrt(n / length). An entry of the data changes by 1.
    """
    count = nodes * iterations
    leading = 1 + math.sqrt(n / length)
    logs = math.sqrt(2 * (math.log(1 / delta) + epsilon / 2))
    noise = leading * math.sqrt(count) * logs / (n * epsilon / 2)
    found = gaussian_epsilon(math.sqrt(count) / noise, delta)
    return Case(found, epsilon / 2, "exact composition of K T Gaussian releases")


PROOFS: dict[str, Argument] = {
    "theorem_gaussian": theorem_gaussian,
    "noisy_max_step": noisy_max_step,
    "generalised_gaussian": generalised_gaussian,
    "single_pass_selections": single_pass_selections,
    "node_selections": node_selections,
    "sketched_features": sketched_features,
}
NOISES: dict[str, Argument] = {
    "theorem_gaussian": theorem_gaussian_noise,
    "greedy": greedy_noise,
    "sketched_features": sketched_features,
}
