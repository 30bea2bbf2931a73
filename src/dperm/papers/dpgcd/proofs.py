"""The privacy proof of Mangold et al. 2023 in numbers, and the cost of its noise."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from dperm.accountants.noisy_max import ChosenValue, NoisyMax
from dperm.core.calibrations import PAPER, STRICT
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.calibration import Calibration, calibrate
from dperm.core.privacy.ledger import Ledger
from dperm.kinds.proofs import Case

SIZES = (800, 2600, 20640)
ROUNDS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30)


def noisy_max_step(gap: float, pure: float) -> Case:
    """One report-noisy-max under replacement, where two scores move in opposite ways.

    The scores differ by ``gap``, in noise scales. Each has Laplace noise at ratio
    ``pure`` of sensitivity to scale. ``found`` is the log-ratio of the chances that the
    lower one is chosen. Mangold et al. 2023, proof of Theorem 4.2, claims ``pure``.
    """

    def log_chance(distance: float) -> float:
        return -distance + math.log1p(distance / 2)

    ratio = log_chance(gap - 2 * pure) - log_chance(gap)
    how = "gradients move both ways, so a selection costs up to twice"
    return Case(ratio, pure, how)


def greedy_noise(epsilon: float, delta: float, rounds: float) -> Case:
    """Mangold et al. 2023, closed form of Theorem 4.2, selections at twice epsilon'.

    Laplace scale 8 L sqrt(T log(1/delta)) / (n epsilon), sensitivity 2 L / n, for T
    selections and T values.
    """
    scale = 4 * math.sqrt(rounds * math.log(1 / delta)) / epsilon
    event = (1.0, scale, int(rounds), "2 L / n", "Mangold et al. 2023, Theorem 4.2")
    ledger = Ledger((NoisyMax(*event), ChosenValue(*event)))
    cost = true_epsilon(ledger, delta)
    return Case(cost, epsilon, "selections at twice, values at once; composed as PLD")


# --- the published noise, and the noise that its target needs -------------------------


def against_rounds(n: int) -> dict[str, list[float]]:
    """Costs at epsilon 1 and delta 1/n^2 for each of ``ROUNDS``, n records.

    Returns
    -------
    dict
        ``true``: epsilon of equation 2's noise, if a selection costs 2 epsilon';
        ``laplace`` and ``gumbel``: noise that the target needs, over the published,
        with that noise in the selection.
    """
    paper = [_calibrated(n, T, "laplace", PAPER) for T in ROUNDS]
    costs = {"true": [each.true_epsilon for each in paper]}
    for kind in ("laplace", "gumbel"):
        strict = [_calibrated(n, T, kind, STRICT) for T in ROUNDS]
        pairs = zip(strict, paper, strict=True)
        costs[kind] = [s.noise_multiplier / p.noise_multiplier for s, p in pairs]
    return costs


def _calibrated(n: int, rounds: int, kind: str, calibration: str) -> Calibration:
    from dperm.solvers.lanes import dp_gcd  # compiles

    def ledger(multiplier: float) -> Ledger:
        return dp_gcd.releases(rounds, multiplier, kind, "", True)

    return calibrate(ledger, 1.0, n**-2.0, calibration)


def epsilon_as_claimed(calibrated: dict[str, Any]) -> float:
    """True epsilon of a stored calibration if the claimed bound held."""
    ledger = Ledger.from_dict(calibrated["ledger"])
    return true_epsilon(as_claimed(ledger), calibrated["delta"])


def as_claimed(ledger: Ledger) -> Ledger:
    """The ledger if a selection cost 2 epsilon' at most, noise on the score or not."""
    events = (
        replace(event, sound=True) if isinstance(event, NoisyMax) else event
        for event in ledger.events
    )
    return Ledger(tuple(events))
