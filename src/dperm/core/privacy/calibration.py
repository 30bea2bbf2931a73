"""Calibration: the smallest noise whose composed epsilon stays within its target."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Any

import scipy  # its parts come when they are first named

from dperm.core.calibrations import STRICT
from dperm.core.privacy.accounting import (
    Interval,
    estimate,
    is_closed_form,
    true_epsilon,
    unconditional,
)
from dperm.core.privacy.accounting import epsilon as epsilon_of
from dperm.core.privacy.ledger import Ledger

INTERVALS = "dperm.accountants.intervals"  # lies above, and is found by its name

LEAST, MOST = 2.0**-30, 2.0**60  # noise multipliers searched

TOLERANCE_CLOSED, TOLERANCE_GRID = 1e-7, 2e-4  # relative, of the noise multiplier


class EpsilonError(ValueError):
    """A target epsilon that is not positive."""


class UnreachableTargetError(ValueError):
    """A target that no noise reaches: what the ledger fixes costs too much already."""


@dataclass(frozen=True)
class Calibration:
    """A noise multiplier and what it costs.

    Attributes
    ----------
    noise_multiplier : float
        What the ledger was built from; 0 without privacy.
    calibration : str
        ``paper`` or ``strict``.
    target_epsilon : float
        What was asked for.
    delta : float
        In (0, 1).
    claimed_epsilon : float
        Cost under the calibration's own accountant, at most the target.
    true_epsilon : float
        Cost under the strict accountant, given what ``ledger.given`` says.
    ledger : Ledger
        The releases with that noise.
    """

    noise_multiplier: float
    calibration: str
    target_epsilon: float
    delta: float
    claimed_epsilon: float
    true_epsilon: float
    ledger: Ledger

    @cached_property
    def interval(self) -> Interval:
        """What the true epsilon is proved to lie between; found when asked for."""
        interval: Interval = importlib.import_module(INTERVALS).epsilon_interval(
            self.ledger, self.delta
        )
        return interval

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, the true epsilon's interval too; infinities stay."""
        stored = {each.name: getattr(self, each.name) for each in fields(self)}
        bounds = {
            "epsilon_low": self.interval.low,
            "epsilon_high": self.interval.high,
            "given": list(self.ledger.given),
            "unconditional_epsilon": unconditional(self.ledger, self.delta),
        }
        return {**stored, **bounds, "ledger": self.ledger.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """Return the calibration that :meth:`to_dict` wrote."""
        stored = {each.name: values[each.name] for each in fields(cls)}
        calibration = cls(**{**stored, "ledger": Ledger.from_dict(values["ledger"])})
        if "epsilon_low" in values:
            ends = (values["epsilon_low"], values["epsilon_high"])
            calibration.__dict__["interval"] = Interval(*ends)  # not found anew
        return calibration


def calibrate(
    ledger_of: Callable[[float], Ledger],
    epsilon: float,
    delta: float,
    calibration: str,
) -> Calibration:
    """Return the smallest noise multiplier whose epsilon stays within the target.

    Parameters
    ----------
    ledger_of : callable
        Maps a noise multiplier (noise scale / sensitivity, 0 for no noise) to the
        ledger of a run; more noise must not cost more.
    epsilon : float
        Target, positive; inf asks for the method without noise.
    delta : float
        In (0, 1).
    calibration : {"paper", "strict"}
        The accountant, see :func:`dperm.core.privacy.accounting.epsilon`.

    Returns
    -------
    Calibration
        On the safe side: its claimed epsilon never exceeds the target. The multiplier
        is the smallest one to 1e-7 (relative) for closed forms and to 2e-4 for privacy
        loss distributions, whose bound is not quite smooth; at least 2**-30. It is
        searched by an estimate, and raised where the certified epsilon is above.

    Raises
    ------
    EpsilonError
        If the target is not positive.
    DeltaError, UnknownCalibrationError, UnsupportedEventError
        From the accountant.
    UnreachableTargetError
        If no noise reaches the target.
    """
    if not epsilon > 0:
        raise EpsilonError(f"epsilon must be positive, got {epsilon}")

    @cache
    def cost(multiplier: float) -> float:
        return estimate(ledger_of(multiplier), delta, calibration)

    if math.isinf(epsilon):
        multiplier = 0.0
    else:
        closed = is_closed_form(ledger_of(1.0), calibration)
        tolerance = TOLERANCE_CLOSED if closed else TOLERANCE_GRID
        multiplier = smallest(cost, epsilon, tolerance)
    ledger = ledger_of(multiplier)
    claimed = epsilon_of(ledger, delta, calibration)
    while claimed > epsilon:
        multiplier *= 1 + TOLERANCE_GRID / 2
        ledger = ledger_of(multiplier)
        claimed = epsilon_of(ledger, delta, calibration)
    true = claimed if calibration == STRICT else true_epsilon(ledger, delta)
    return Calibration(multiplier, calibration, epsilon, delta, claimed, true, ledger)


def smallest(cost: Callable[[float], float], target: float, tolerance: float) -> float:
    """Return the smallest multiplier whose cost is at most the target, from above.

    Raises
    ------
    UnreachableTargetError
        If no noise reaches it.
    """
    lower, upper = _bracket(cost, target)
    if lower == upper:
        return upper

    def excess(log_multiplier: float) -> float:
        value = min(max(cost(math.exp(log_multiplier)), 1e-300), 1e300)
        return math.log(value / target)

    root = math.exp(
        scipy.optimize.brentq(
            excess, math.log(lower), math.log(upper), xtol=tolerance / 2
        )
    )
    while cost(root) > target:
        root *= 1 + tolerance / 2
    return root


def _bracket(cost: Callable[[float], float], target: float) -> tuple[float, float]:
    """Return multipliers a factor of two apart, too little noise and enough."""
    upper = 1.0
    while cost(upper) > target:
        if upper >= MOST:
            raise UnreachableTargetError(
                f"epsilon {target} is out of reach: {cost(upper)} whatever the noise"
            )
        upper *= 2
    while upper > LEAST and cost(upper / 2) <= target:
        upper /= 2
    return (upper / 2, upper) if upper > LEAST else (upper, upper)
