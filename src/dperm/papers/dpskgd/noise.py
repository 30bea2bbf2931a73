"""The noise of Theorem 4.1 beside the noise that its epsilon needs."""

from __future__ import annotations

import math
from typing import Any

from dperm.core.calibrations import STRICT
from dperm.core.erm.problem import Problem
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import LIFTS, SMOOTHNESS, Gaussian, Ledger, united
from dperm.core.privacy.strict import gaussian_epsilon, gaussian_renyi_epsilon

RELEASES = (1, 10, 100, 1000)


def releases(epsilon: float, delta: float, count: int, calibration: str) -> float:
    """Noise multiplier of so many Gaussian releases of sensitivity 2 C_S / n."""

    def ledger(multiplier: float) -> Ledger:
        return Ledger((Gaussian(1.0, multiplier, count, "2 C_S / n", "Theorem 4.1"),))

    return calibrate(ledger, epsilon, delta, calibration).noise_multiplier


def costs(problem: Problem) -> list[dict[str, Any]]:
    """Theorem 4.1's noise, its Renyi curve's and the exact one; cost of the first."""
    epsilon, delta, rows = problem.epsilon, problem.delta, []
    for count in RELEASES:
        printed = math.sqrt(3 * count * math.log(1 / delta)) / epsilon
        mu = math.sqrt(count) / printed
        rows.append(
            {"problem": problem.name, "epsilon": epsilon, "releases": count,
             "theorem": printed, "paper": releases(epsilon, delta, count, "paper"),
             "strict": releases(epsilon, delta, count, STRICT),
             "renyi_epsilon": gaussian_renyi_epsilon(mu**2 / 2, delta),
             "true_epsilon": (exact := gaussian_epsilon(mu, delta)),
             "epsilon_low": exact,
             "given": ", ".join(united(problem.given, (SMOOTHNESS, LIFTS)))}
        )  # fmt: skip
    return rows
