"""The epsilon of a ledger at a given delta, under a calibration.

Sensitivities are replace-one sensitivities and are composed as they stand. This agrees
with dp_accounting under ADD_OR_REMOVE_ONE; under REPLACE_ONE its PLD accountant would
double them.
"""

from __future__ import annotations

import math

from dperm.privacy import accountants
from dperm.privacy.events import Ledger


def epsilon(ledger: Ledger, delta: float, calibration: str) -> float:
    """Return the epsilon that a ledger costs at a delta in (0, 1).

    The calibration is ``published`` for the papers' formulas (:mod:`.published`),
    ``tight`` for a proved upper bound (:mod:`.tight`), or another
    (:mod:`dperm.privacy.accountants`).

    Epsilon is 0 if nothing is released and inf if something is released without noise,
    under ``tight`` also if an event has no proved bound.

    Raises
    ------
    ValueError, UnsupportedEventError
        For delta outside (0, 1), an unknown calibration, an event without a formula.
    """
    accountant = accountants.load(calibration)
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie in (0, 1), got {delta}")
    if not all(event.scale for event in ledger.events):
        return math.inf
    return float(accountant.epsilon(ledger, delta)) if ledger.events else 0.0


def true_epsilon(ledger: Ledger, delta: float) -> float:
    """Return a proved upper bound on epsilon, by the calibration ``tight``."""
    return epsilon(ledger, delta, accountants.TIGHT)
