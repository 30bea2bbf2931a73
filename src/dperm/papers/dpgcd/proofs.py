"""The privacy proof of Mangold et al. 2023 in numbers: Theorem 4.2."""

from __future__ import annotations

import math

from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.ledger import Ledger
from dperm.core.privacy.noisy_max import ChosenValue, NoisyMax
from dperm.kinds.proofs import Case


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
