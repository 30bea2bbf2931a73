"""Verdicts: what is passed on a claim, and on which side of a target a number lies.

With number and 95 % interval in the target, the interval at least in the looser one, a
claim is reproduced; with only the interval in the looser one there is a caveat; wholly
outside it is not reproduced; across its end nothing is decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from dperm.present.tables import number
from dperm.report.evidence import AbsentError, Estimate, MissingError


class Verdict(StrEnum):
    """What is passed on a claim, as ``claims.csv`` has it."""

    REPRODUCED = "reproduced"
    CAVEAT = "reproduced with a caveat"
    NOT = "not reproduced"
    UNDECIDED = "undecided"
    NOTHING = "says nothing"
    INCOMPARABLE = "not comparable"
    UNTESTED = "could not be tested"
    PENDING = "not yet run"


VERDICTS = tuple(Verdict)
REPRODUCED, CAVEAT, NOT, UNDECIDED, NOTHING, INCOMPARABLE, UNTESTED, PENDING = VERDICTS
OUT_OF_SCOPE = "out of scope"
SHORT = {  # the five verdicts of a report
    REPRODUCED: "confirmed",
    CAVEAT: "in part",
    NOT: "contradicted",
    **dict.fromkeys((UNDECIDED, NOTHING, UNTESTED, PENDING), "not decidable"),
    INCOMPARABLE: OUT_OF_SCOPE,
}
HELD = (REPRODUCED, CAVEAT)
# In this order, where several groups are judged; a group that is missing is pending.
WORSE = (REPRODUCED, CAVEAT, UNDECIDED, PENDING, NOT)

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
    missing: tuple[str, ...] = ()  # groups that were expected
    slopes: tuple[Slope, ...] = ()  # where the numbers are exponents


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
        inside = self.loose_low <= found.low and found.high <= self.loose_high
        if inside:
            held = self.low <= found.value <= self.high
            return REPRODUCED if held else CAVEAT
        outside = found.high < self.loose_low or found.low > self.loose_high
        return NOT if outside else UNDECIDED

    def __str__(self) -> str:
        if math.isinf(self.low):
            return f"at most {rounded(self.high)}"
        if math.isinf(self.high):
            return f"at least {rounded(self.low)}"
        return f"{rounded(self.low)} to {rounded(self.high)}"


def rounded(value: float) -> str:
    """A number for a reason."""
    if not math.isfinite(value) or value == int(value):
        return f"{value:g}"
    return number(value)


def interval(found: Estimate) -> str:
    """A number with its interval for a reason; without one where there is none."""
    if found.low == found.high:
        return rounded(found.value)
    return f"{rounded(found.value)} [{rounded(found.low)}, {rounded(found.high)}]"


# --- several groups -------------------------------------------------------------------

LISTED = 2  # groups that a reason lists


def together(
    found: dict[str, Estimate | MissingError], target: Range, need: str | float
) -> Finding:
    """One finding for several groups.

    Parameters
    ----------
    found : dict
        Group to its estimate, or to why there is none.
    need : "all", "any" or a share
        How many groups the claim speaks of. A group that is not there keeps "all" from
        being reproduced, and so does one that decides nothing, with a caveat.

    Raises
    ------
    AbsentError, MissingError
        If no group has an estimate.
    """
    known = {n: each for n, each in found.items() if isinstance(each, Estimate)}
    lost = {n: each for n, each in found.items() if isinstance(each, MissingError)}
    absent = [n for n, each in lost.items() if isinstance(each, AbsentError)]
    if not known:
        text = "; ".join(_missing(lost)) or "no group to judge"
        raise AbsentError(text) if absent else MissingError(text)
    verdicts = {name: target.verdict(each) for name, each in known.items()}
    dull = CAVEAT if need == "all" else UNDECIDED  # there, and decides nothing
    others = [PENDING if name in absent else dull for name in lost]
    verdict = _combined([*verdicts.values(), *others], need)
    parts = [
        f"expected {target}",
        *_missing(lost),
        *_listed(known, verdicts, len(found)),
    ]
    decisive = _decisive(known, verdicts, need if verdict != NOT else "all", target)
    missing = tuple(name or "all" for name in lost)
    near = tuple(filter(None, (slope_of(name, each) for name, each in known.items())))
    return Finding(verdict, "; ".join(parts), decisive, "", "", missing, near)


def _combined(verdicts: list[Verdict], need: str | float) -> Verdict:
    """The worst for "all", the best for "any", else the worst that a share reaches."""
    ordered = sorted(verdicts, key=WORSE.index)
    if need in ("any", "all"):
        return ordered[0 if need == "any" else -1]
    at = max(math.ceil(float(need) * len(ordered)), 1)
    return ordered[at - 1] if at <= len(ordered) else NOT


def _missing(lost: dict[str, MissingError]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for name, error in lost.items():
        reasons.setdefault(str(error), []).append(name)
    for text, names in reasons.items():
        listed = ", ".join(names[:LISTED])
        more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
        yield f"missing {listed}{more}: {text}" if listed else text


def _listed(
    known: dict[str, Estimate], verdicts: dict[str, Verdict], total: int
) -> Iterator[str]:
    """How many hold, and the groups; of many, those that fail and the range."""

    def named(name: str) -> str:
        text = interval(known[name])
        return f"{name}: {text}" if name else text

    every = list(verdicts.values())
    if total > 1:
        counts = [f"{every.count(REPRODUCED)} of {total} hold"]
        for kind, word in ((CAVEAT, "nearly"), (UNDECIDED, "undecided")):
            if kind in every:
                counts.append(f"{every.count(kind)} {word}")
        yield ", ".join(counts)
    failing = [name for name in known if verdicts[name] != REPRODUCED]
    if len(known) <= LISTED:
        yield from map(named, known)
    elif failing:
        yield from map(named, failing[:LISTED])
        if len(failing) > LISTED:
            yield f"and {len(failing) - LISTED} more that do not hold"
    else:
        least, most = (pick(known, key=lambda n: known[n].value) for pick in (min, max))
        yield f"from {named(least)} to {named(most)}"


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


WRONG = {"half": 0.5, "twice": 2.0, "none": 0.0}  # times the claimed one
NEARLY = 0.1  # of the rate, by which an interval may miss it


@dataclass(frozen=True)
class Slope:
    """What the interval of one exponent tells apart."""

    group: str
    excluded: tuple[str, ...]  #: names of ``WRONG`` that lie outside the interval
    #: ``tight`` where the interval reaches the claimed rate, to a tenth of it;
    #: ``beaten`` where it lies below it, ``exceeded`` where above
    place: str


def slope_of(group: str, found: Estimate) -> Slope | None:
    """The slope of a group; None for a number that is no exponent."""
    if found.rate is None:
        return None
    low, high = (end + found.less for end in (found.low, found.high))
    near = {name: factor * found.rate for name, factor in WRONG.items()}
    excluded = tuple(name for name, at in near.items() if not low <= at <= high)
    slack = NEARLY * abs(found.rate)
    beaten, over = high < found.rate - slack, low > found.rate + slack
    return Slope(
        group, excluded, "beaten" if beaten else "exceeded" if over else "tight"
    )


def slopes_under(reading: str, slopes: Iterable[Slope]) -> tuple[Slope, ...]:
    """Slopes under a reading of the claim, whose name stands before the group's."""
    return tuple(
        replace(each, group=", ".join(filter(None, (reading, each.group))))
        for each in slopes
    )


def slopes_worded(slopes: tuple[Slope, ...], holds: bool) -> str:
    """How many groups exclude which rate, and where the claimed one is reached.

    Of a claim that ``holds`` and is beaten everywhere it says that it is not tight.
    """
    if not slopes:
        return ""
    total = len(slopes)
    counts = (
        f"{name} {sum(name in each.excluded for each in slopes)}" for name in WRONG
    )
    text = f"{', '.join(counts)} of {total}"
    tight = [each.group for each in slopes if each.place == "tight"]
    if not tight and all(each.place == "beaten" for each in slopes):
        tightness = "holds, not tight here; tight on none known"
        return f"{text}; {tightness if holds else 'beaten in all'}"
    if len(tight) == total:
        return f"{text}; tight in all"
    places = (
        f"{place} {sum(each.place == place for each in slopes)}"
        for place in ("tight", "beaten", "exceeded")
    )
    named = f" (tight: {tight[0]})" if tight else ""
    return f"{text}; {', '.join(places)}{named}"
