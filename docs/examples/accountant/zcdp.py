"""Zero-concentrated privacy of Gaussian releases (Bun and Steinke 2016)."""

import math


def epsilon(ledger, delta):
    """Their rho adds up; Proposition 1.3 makes an epsilon of it."""
    rho = 0.0
    for event in ledger.events:
        rho += event.count * event.sensitivity**2 / (2 * event.scale**2)
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))
