"""The epsilon of a ledger at a given delta, under a calibration.

Sensitivities are replace-one sensitivities and are composed as they stand. This agrees
with dp_accounting under ADD_OR_REMOVE_ONE; under REPLACE_ONE its PLD accountant would
double them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dperm.core import calibrations
from dperm.core.privacy import strict
from dperm.core.privacy.ledger import Ledger


def epsilon(ledger: Ledger, delta: float, calibration: str) -> float:
    """Return the epsilon that a ledger costs at a delta in (0, 1).

    The calibration is ``paper`` for the papers' formulas (:mod:`.published`),
    ``strict`` for a proved upper bound (:mod:`.strict`), or another
    (:mod:`dperm.core.calibrations`).

    Epsilon is 0 if nothing is released and inf if something is released without noise,
    under ``strict`` also if an event has no proved bound.

    Raises
    ------
    ValueError, UnknownCalibrationError, UnsupportedEventError
        For delta outside (0, 1), an unknown calibration, an event without a formula.
    """
    return _priced(calibrations.load(calibration).epsilon, ledger, delta)


def estimate(ledger: Ledger, delta: float, calibration: str, *how: float) -> float:
    """Return a faster estimate of ``epsilon``, within about 1e-3 of it.

    It is for searches, whose result is then priced by ``epsilon``. Arguments are those
    of ``epsilon``, then further ones for the calibration's own estimate.
    """
    module = calibrations.load(calibration)
    accountant = getattr(module, "estimate", module.epsilon)
    return _priced(lambda *given: accountant(*given, *how), ledger, delta)


def true_epsilon(ledger: Ledger, delta: float) -> float:
    """Return a proved upper bound on epsilon, by the calibration ``strict``."""
    return _priced(strict.epsilon, ledger, delta)


def _priced(
    accountant: Callable[[Ledger, float], float], ledger: Ledger, delta: float
) -> float:
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie in (0, 1), got {delta}")
    if any(event.scale == 0 for event in ledger.events):
        return math.inf
    return accountant(ledger, delta) if ledger.events else 0.0


def is_closed_form(ledger: Ledger, calibration: str) -> bool:
    """Tell whether a calibration's epsilon is exact up to rounding, with no grid."""
    module = calibrations.load(calibration)
    return hasattr(module, "is_closed_form") and bool(module.is_closed_form(ledger))
