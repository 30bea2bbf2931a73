"""What the published noise of DP-GCD costs, and the noise that its target needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dperm.core.calibrations import PAPER, STRICT
from dperm.core.experiment import results, schema
from dperm.core.experiment.results import Result
from dperm.core.lanes import dp_gcd
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.calibration import Calibration, calibrate
from dperm.core.privacy.ledger import Ledger
from dperm.core.privacy.noisy_max import NoisyMax

SIZES = (800, 2600, 20640)
ROUNDS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30)


def against_rounds(n: int) -> dict[str, list[float]]:
    """Costs at epsilon 1 and delta 1/n^2 for each of ``ROUNDS``, n records.

    Returns
    -------
    dict
        ``true``: epsilon of equation 2's noise if two epsilon' hold; ``laplace`` and
        ``gumbel``: noise that the target needs, over the published, with that noise
        in the selection.
    """
    paper = [_calibrated(n, T, "laplace", PAPER) for T in ROUNDS]
    found = {"true": [each.true_epsilon for each in paper]}
    for kind in ("laplace", "gumbel"):
        strict = [_calibrated(n, T, kind, STRICT) for T in ROUNDS]
        found[kind] = [s.noise_multiplier / p.noise_multiplier
                       for s, p in zip(strict, paper, strict=True)]  # fmt: skip
    return found


def _calibrated(n: int, rounds: int, kind: str, calibration: str) -> Calibration:
    def ledger(multiplier: float) -> Ledger:
        return dp_gcd.releases(rounds, multiplier, kind, "", True)

    return calibrate(ledger, 1.0, n**-2.0, calibration)


def costs(config: schema.Config, result: Result) -> list[dict[str, Any]]:
    """Published and needed noise of one job, a row for each number of passes."""
    return [
        _row(result, passes, kinds["paper"], kinds.get("strict"))
        for passes, kinds in results.calibrated(config, result).items()
        if PAPER in kinds
    ]


def _row(
    result: Result, passes: float, paper: dict, strict: dict | None
) -> dict[str, Any]:
    ledger = Ledger.from_dict(paper["ledger"])
    needed = strict["noise_multiplier"] if strict else np.nan
    return {
        "problem": result.problem,
        "algorithm": result.label,
        "passes": passes,
        "target_epsilon": paper["target_epsilon"],
        "paper_noise": paper["noise_multiplier"],
        "true_epsilon": paper["true_epsilon"],
        **results.proved(paper),
        "epsilon_if_claim_held": true_epsilon(_as_claimed(ledger), paper["delta"]),
        "strict_noise": needed,
        "ratio": needed / paper["noise_multiplier"],
    }


def _as_claimed(ledger: Ledger) -> Ledger:
    """The ledger if two epsilon' bounded every selection, noise on the score or not."""
    return Ledger(
        tuple(
            replace(event, sound=True) if isinstance(event, NoisyMax) else event
            for event in ledger.events
        )
    )
