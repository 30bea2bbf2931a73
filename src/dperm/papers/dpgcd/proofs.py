"""The privacy proof of Mangold et al. 2023 in numbers."""

from __future__ import annotations

import math

from dperm.papers.shared.proofs import Argument
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.events import Ledger
from dperm.privacy.mechanisms.noisy_max import ChosenValue, NoisyMax


def noisy_max_step(gap: float, pure: float) -> Argument:
    """One report-noisy-max under replacement, where two scores move in opposite ways.

    The scores differ by ``gap``, in noise scales. Each has Laplace noise at ratio
    ``pure`` of sensitivity to scale. ``found`` is the log-ratio of the chances that the
    lower one is chosen. Mangold et al. 2023, proof of Theorem 4.2, claims ``pure``.
    """

    def log_chance(distance: float) -> float:
        """Logarithm of the chance that two Laplace draws lie so far apart."""
        return -distance + math.log1p(distance / 2)

    ratio = log_chance(gap - 2 * pure) - log_chance(gap)
    reason = "gradients move both ways, so a selection costs up to twice"
    return Argument(ratio, pure, reason)


def greedy_noise(epsilon: float, delta: float, rounds: float) -> Argument:
    """Mangold et al. 2023, closed form of Theorem 4.2, selections at twice epsilon'.

    Laplace scale 8 L sqrt(T log(1/delta)) / (n epsilon), sensitivity 2 L / n, for T
    selections and T values.
    """
    scale = 4 * math.sqrt(rounds * math.log(1 / delta)) / epsilon
    event = (
        1.0,
        scale,
        int(rounds),
        "2 L / n",
        "Mangold et al. 2023, Theorem 4.2",
    )
    ledger = Ledger((NoisyMax(*event), ChosenValue(*event)))
    cost = true_epsilon(ledger, delta)
    return Argument(
        cost, epsilon, "selections at twice, values at once; composed as PLD"
    )
