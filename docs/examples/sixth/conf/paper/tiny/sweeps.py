"""What is computed: one call for each point of a grid and each replicate."""

import numpy as np

from dperm.privacy.calibration import calibrate
from dperm.privacy.events import Gaussian, Ledger
from dperm.privacy.noise import gaussian, streams


def rounds(point, seed, epsilon, delta, draws):
    """Root mean square of the noise in one of so many releases."""
    count = int(point["releases"])
    if point["rule"] == "split":  # each has its share of the budget
        noise = needed(1, epsilon / count, delta / count)
    else:
        noise = needed(count, epsilon, delta)
    seen = noise * gaussian(streams(seed).noise, draws)
    return {"noise": noise, "error": float(np.sqrt(np.mean(seen**2)))}


def needed(count, epsilon, delta):
    """Noise multiplier of so many releases at once."""

    def ledger(multiplier):
        return Ledger((Gaussian(1.0, multiplier, count, "1", "Theorem 1"),))

    return calibrate(ledger, epsilon, delta, "tight").noise_multiplier
