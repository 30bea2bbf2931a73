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
from dataclasses import dataclass
from typing import Literal

from dperm.present.tables import number
from dperm.report.evidence import AbsentError, Estimate, MissingError

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


# --- several groups -------------------------------------------------------------------

LISTED = 6  # groups that a reason lists


def together(
    found: dict[str, Estimate | MissingError], target: Range, need: str | float
) -> Finding:
    """One finding for several groups.

    Parameters
    ----------
    found : dict
        Group to its estimate, or to why there is none.
    target : Range
    need : "all", "any" or a share
        How many groups the claim speaks of.
    """
    known = {n: each for n, each in found.items() if isinstance(each, Estimate)}
    lost = [f"{n}: {each}" for n, each in found.items() if n not in known]
    verdicts = {name: target.verdict(each) for name, each in known.items()}
    verdicts = {name: each for name, each in verdicts.items() if each != UNTESTED}
    if not verdicts:
        absent = any(isinstance(each, AbsentError) for each in found.values())
        text = "; ".join(lost) or "no group to judge"
        raise AbsentError(text) if absent else MissingError(text)
    known = {name: known[name] for name in verdicts}
    verdict = _combined(list(verdicts.values()), need)
    if lost and verdict is REPRODUCED and need == "all":
        verdict = CAVEAT
    held = _counted(list(verdicts.values())) if len(verdicts) > 1 else ""
    told = _listed(known, verdicts)
    parts = [f"expected {target}", held, told]
    parts += [f"missing {text}" for text in lost[:LISTED]]
    if len(lost) > LISTED:
        parts.append(f"and {len(lost) - LISTED} more missing")
    return Finding(
        verdict,
        "; ".join(filter(None, parts)),
        _decisive(known, verdicts, need if verdict != NOT else "all", target),
    )


def _counted(verdicts: list[Verdict]) -> str:
    """How many hold, nearly hold, and are undecided."""
    said = [f"{verdicts.count(REPRODUCED)} of {len(verdicts)} hold"]
    for kind, word in ((CAVEAT, "nearly"), (UNDECIDED, "undecided")):
        if verdicts.count(kind):
            said.append(f"{verdicts.count(kind)} {word}")
    return ", ".join(said)


def _combined(verdicts: list[Verdict], need: str | float) -> Verdict:
    if need == "any":
        return min(verdicts, key=WORSE.index)
    if need == "all":
        return max(verdicts, key=WORSE.index)
    wanted = float(need) * len(verdicts)
    counted = 0
    for kind in WORSE:
        counted += verdicts.count(kind)
        if counted >= wanted:
            return kind
    return NOT


def _listed(known: dict[str, Estimate], verdicts: dict[str, Verdict]) -> str:
    """The groups with their numbers; of many, those that fail and the range."""
    if len(known) <= LISTED:
        return "; ".join(_named(name, each) for name, each in known.items())
    failing = [name for name in known if verdicts[name] != REPRODUCED]
    shown_ones = [_named(name, known[name]) for name in failing[:LISTED]]
    if len(failing) > LISTED:
        shown_ones.append(f"and {len(failing) - LISTED} more that do not hold")
    ends = [pick(known, key=lambda name: known[name].value) for pick in (min, max)]
    return "; ".join([*shown_ones, "range " + " to ".join(
        _named(name, known[name]) for name in ends)])  # fmt: skip


def _named(name: str, found: Estimate) -> str:
    return f"{name}: {interval(found)}" if name else interval(found)


def _decisive(
    known: dict[str, Estimate],
    verdicts: dict[str, Verdict],
    need: str | float,
    target: Range,
) -> Estimate:
    """The estimate that decided: the worst for "all", best for "any", else middle."""

    def badness(name: str) -> tuple[int, float]:
        value = known[name].value
        over, under = value - target.high, target.low - value
        return WORSE.index(verdicts[name]), max(over, under)

    ordered = sorted(known, key=badness)
    place = {"all": -1, "any": 0}.get(str(need), (len(ordered) - 1) // 2)
    return known[ordered[place]]
