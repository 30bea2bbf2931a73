"""Verdicts: what is passed on a claim, and on which side of a target a number lies.

Every threshold stands in the claim's YAML; those that most claims share are ``CLOSE``
and ``ROUGH`` here, one pair for all papers.

A number is *in* a target if it lies in it and its 95 % interval stays within the looser
target: the claim is reproduced. With the interval in the looser target and the number
not in the target there is a caveat; with the interval wholly outside the looser target
it is not reproduced. An interval across the looser target's end decides nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from dperm.present.tables import number
from dperm.report.evidence import Estimate

Verdict = Literal[
    "reproduced",
    "reproduced with a caveat",
    "not reproduced",
    "undecided",
    "says nothing",
    "not comparable",
    "could not be tested",
    "not yet run",
]
REPRODUCED: Verdict = "reproduced"
CAVEAT: Verdict = "reproduced with a caveat"
NOT: Verdict = "not reproduced"
UNDECIDED: Verdict = "undecided"
NOTHING: Verdict = "says nothing"
INCOMPARABLE: Verdict = "not comparable"
UNTESTED: Verdict = "could not be tested"
PENDING: Verdict = "not yet run"
VERDICTS = (
    REPRODUCED, CAVEAT, NOT, UNDECIDED, NOTHING, INCOMPARABLE, UNTESTED, PENDING,
)  # fmt: skip
HELD = (REPRODUCED, CAVEAT)
WORSE = (REPRODUCED, CAVEAT, UNDECIDED, NOT)  # in this order, where several are judged

CLOSE = 1.25  # factor within which two errors count as the same
ROUGH = 2.0  # factor within which they count as alike


@dataclass(frozen=True)
class Finding:
    """A verdict, the number it was passed on, why, and how its controls went."""

    verdict: Verdict
    reason: str
    reproduced: Estimate | None = None
    published: str = ""
    control: str = ""

    def put_to(self, control: str) -> Finding:
        """The same, with what its controls said."""
        return replace(self, control=control)


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
        above: float | None = None,
        below: float | None = None,
    ) -> Range:
        """From a claim's options; ``nearly`` is the looser end, or both of them.

        ``above`` and ``below`` leave out the end itself: a tie is no lead.
        """
        if above is not None:
            at_least = math.nextafter(above, math.inf)
        if below is not None:
            at_most = math.nextafter(below, -math.inf)
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
        if inside:
            held = self.low <= found.value <= self.high
            return REPRODUCED if held else CAVEAT
        outside = found.high < self.loose_low or found.low > self.loose_high
        return NOT if outside else UNDECIDED

    def __str__(self) -> str:
        if math.isinf(self.low):
            return f"at most {shown(self.high)}"
        if math.isinf(self.high):
            return f"at least {shown(self.low)}"
        return f"{shown(self.low)} to {shown(self.high)}"


def shown(value: float) -> str:
    """A number for a reason."""
    if not math.isfinite(value) or value == int(value):
        return f"{value:g}"
    return number(value)


def interval(found: Estimate) -> str:
    """A number with its interval for a reason; without one where there is none."""
    if found.low == found.high:
        return shown(found.value)
    return f"{shown(found.value)} [{shown(found.low)}, {shown(found.high)}]"
