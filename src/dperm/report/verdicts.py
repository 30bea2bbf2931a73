"""Verdicts: what is passed on a claim, and on which side of a target a number lies.

Every threshold stands in the claim's YAML; those that most claims share are ``CLOSE``
and ``ROUGH`` here, one pair for all papers.

A number is *in* a target if it lies in it and its 95 % interval stays within the looser
target. Then the claim is reproduced; if only the number is in the looser target, with a
caveat; else it is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from dperm.present.tables import number
from dperm.report.evidence import Estimate

Verdict = Literal[
    "reproduced", "reproduced with a caveat", "not reproduced", "could not be tested"
]
REPRODUCED: Verdict = "reproduced"
CAVEAT: Verdict = "reproduced with a caveat"
NOT: Verdict = "not reproduced"
UNTESTED: Verdict = "could not be tested"
VERDICTS = (REPRODUCED, CAVEAT, NOT, UNTESTED)

CLOSE = 1.25  # factor within which two errors count as the same
ROUGH = 2.0  # factor within which they count as alike


@dataclass(frozen=True)
class Finding:
    """A verdict, the number it was passed on, and why."""

    verdict: Verdict
    reason: str
    reproduced: Estimate | None = None
    published: str = ""


@dataclass(frozen=True)
class Range:
    """A target and the looser one around it."""

    low: float = -math.inf
    high: float = math.inf
    loose_low: float = -math.inf
    loose_high: float = math.inf

    @classmethod
    def of(
        cls,
        at_least: float | None = None,
        at_most: float | None = None,
        nearly: list[float] | float | None = None,
    ) -> Range:
        """From a claim's options; ``nearly`` is the looser end, or both of them."""
        low = -math.inf if at_least is None else at_least
        high = math.inf if at_most is None else at_most
        if nearly is None:
            return cls(low, high, low, high)
        if isinstance(nearly, list):
            return cls(low, high, nearly[0], nearly[1])
        ends = (nearly, high) if at_least is not None else (low, nearly)
        return cls(low, high, *ends)

    def verdict(self, found: Estimate) -> Verdict:
        """Where an estimate lies."""
        if math.isnan(found.value):
            return UNTESTED
        inside = self.loose_low <= found.low and found.high <= self.loose_high
        if self.low <= found.value <= self.high and inside:
            return REPRODUCED
        near = self.loose_low <= found.value <= self.loose_high
        return CAVEAT if near else NOT

    def __str__(self) -> str:
        if math.isinf(self.low):
            return f"at most {shown(self.high)}"
        if math.isinf(self.high):
            return f"at least {shown(self.low)}"
        return f"{shown(self.low)} to {shown(self.high)}"


def shown(value: float) -> str:
    """A number for a reason."""
    if math.isinf(value) or value == int(value):
        return f"{value:g}"
    return number(value)


def interval(found: Estimate) -> str:
    """A number with its interval for a reason; without one where there is none."""
    if found.low == found.high:
        return shown(found.value)
    return f"{shown(found.value)} [{shown(found.low)}, {shown(found.high)}]"
