"""Calibration: the smallest noise whose composed epsilon stays within its target."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import scipy  # it imports its parts when they are first used

from dperm.privacy.accountants import OURS, TIGHT
from dperm.privacy.accountants.tight import estimate, is_closed_form
from dperm.privacy.accounting import epsilon as epsilon_of
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.events import Ledger

MIN_NOISE = 2.0**-30
MAX_NOISE = 2.0**60  # noise multipliers searched

TOLERANCE_CLOSED = 1e-7
TOLERANCE_GRID = 2e-4  # relative, of the noise multiplier
# Relative change of epsilon between the coarsest grids of a search
COARSE = 0.5


class UnreachableTargetError(ValueError):
    """A target that no noise reaches: the fixed part of the ledger costs too much."""


@dataclass(frozen=True)
class Calibration:
    """A noise multiplier and what it costs."""

    noise_multiplier: float  #: argument of the ledger; 0 without privacy
    calibration: str  #: ``published`` or ``tight``
    target_epsilon: float  #: requested
    delta: float  #: in (0, 1)
    #: cost under the calibration's own accountant, at most the target
    claimed_epsilon: float
    #: cost under the tight accountant, with ``ledger.given`` taken as public
    true_epsilon: float
    ledger: Ledger  #: the releases with that noise

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; infinities stay."""
        stored = {
            column.name: getattr(self, column.name) for column in fields(self)
        }
        return {**stored, "ledger": self.ledger.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """Return the calibration that :meth:`to_dict` wrote."""
        stored = {column.name: values[column.name] for column in fields(cls)}
        return cls(**{**stored, "ledger": Ledger.from_dict(values["ledger"])})


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
        Target, positive; inf requests the method without noise.
    delta, calibration
        As of :func:`dperm.privacy.accounting.epsilon`.

    Returns
    -------
    Calibration
        Its claimed epsilon never exceeds the target. The multiplier is at least 2**-30
        and exceeds the smallest one by at most 1e-7 (relative) for closed forms, and by
        2e-4 for privacy loss distributions, whose bound is not quite smooth, and for a
        user's calibration.

    Raises
    ------
    ValueError
        If the target is not positive, delta not in (0, 1), or the calibration unknown.
    UnsupportedEventError
        From the accountant.
    UnreachableTargetError
        If no noise reaches the target.
    """
    if not epsilon > 0:
        raise ValueError(f"epsilon must be positive, got {epsilon}")

    @cache
    def price(multiplier: float) -> float:
        """Epsilon at a noise multiplier by the chosen accountant."""
        return epsilon_of(ledger_of(multiplier), delta, calibration)

    @cache
    def near(multiplier: float, *tolerance: float) -> float:
        """An estimate of epsilon at a noise multiplier, from a coarse grid."""
        return estimate(ledger_of(multiplier), delta, *tolerance)

    if math.isinf(epsilon):
        multiplier = 0.0
    elif calibration == TIGHT and not is_closed_form(ledger_of(1.0)):
        multiplier = _near(near, price, epsilon)
    else:
        tolerance = TOLERANCE_CLOSED if calibration in OURS else TOLERANCE_GRID
        multiplier = smallest(price, epsilon, tolerance)
    while price(multiplier) > epsilon:
        multiplier *= 1 + TOLERANCE_GRID / 2
    ledger = ledger_of(multiplier)
    claimed = price(multiplier)
    true = claimed if calibration == TIGHT else true_epsilon(ledger, delta)
    return Calibration(
        multiplier, calibration, epsilon, delta, claimed, true, ledger
    )


def _near(
    cost: Callable[..., float], price: Callable[[float], float], target: float
) -> float:
    """Search on coarse grids, then correct by a finer grid and by the proved bounds.

    Near the solution, epsilon is close to a power of the multiplier. Where it is not,
    or a fixed cost is too near the target for coarse grids, the bounds themselves are
    searched.
    """
    slope = 0.0
    with suppress(UnreachableTargetError):
        near = smallest(
            lambda multiplier: cost(multiplier, COARSE), target, 2e-3
        )
        ends = [max(cost(near * k, COARSE), 1e-300) for k in (1.0, 1.01)]
        slope = math.log(ends[0] / ends[1]) / math.log(1.01)
    if slope <= 0:
        return smallest(price, target, TOLERANCE_GRID)
    for _ in range(2):
        near *= _correction(cost(near), target, slope)
    for _ in range(4):
        epsilon = price(near)
        spare = _spare(epsilon, target, slope)
        if 0 <= spare * min(max(slope, 1), 2) < TOLERANCE_GRID:
            return near
        near *= _correction(epsilon, target, slope)
    return smallest(price, target, TOLERANCE_GRID)


def _spare(epsilon: float, target: float, slope: float) -> float:
    """Logarithm of the factor by which less noise would reach the target."""
    return math.log(target / min(max(epsilon, 1e-300), 1e300)) / slope


def _correction(epsilon: float, target: float, slope: float) -> float:
    """The factor to a multiplier a little above the target's, by a tenth at most."""
    step = TOLERANCE_GRID / 4 - _spare(epsilon, target, slope)
    return math.exp(min(max(step, -0.1), 0.1))


def smallest(
    cost: Callable[[float], float],
    target: float,
    tolerance: float,
    near: float | None = None,
) -> float:
    """Return the smallest multiplier whose cost is at most the target, from above.

    The search starts at ``near``, a guess of the multiplier.

    Raises UnreachableTargetError if no noise reaches the target.
    """
    cached_cost = cache(cost)
    if near:
        lower, upper = _bracket(cached_cost, target, near, 1.02)
    else:
        lower, upper = _bracket(cached_cost, target, 1.0, 2.0)
    if lower == upper:
        return upper

    ends = {
        math.log(lower): lower,
        math.log(upper): upper,
    }  # not computed again

    def excess(log: float) -> float:
        """Logarithm of the cost over the target at a logarithm of noise."""
        clipped_cost = min(
            max(cached_cost(ends.get(log, math.exp(log))), 1e-300), 1e300
        )
        return math.log(clipped_cost / target)

    root = math.exp(scipy.optimize.brentq(excess, *ends, xtol=tolerance / 2))
    while cached_cost(root) > target:
        root *= 1 + tolerance / 2
    return root


def _bracket(
    cost: Callable[[float], float], target: float, upper: float, factor: float
) -> tuple[float, float]:
    """Return two multipliers, one with too little noise and one with enough.

    Their ratio starts at ``factor``, which is squared in every step, up to 2.
    """
    lower = 0.0
    while cost(upper) > target:
        if upper >= MAX_NOISE:
            raise UnreachableTargetError(
                f"epsilon {target} is out of reach: {cost(upper)} whatever the noise"
            )
        lower = upper
        upper = upper * factor
        factor = min(factor**2, 2.0)
    while not lower:
        if upper <= MIN_NOISE:
            return upper, upper
        if cost(upper / factor) > target:
            lower = upper / factor
        else:
            upper = upper / factor
            factor = min(factor**2, 2.0)
    return lower, upper
