"""Exponents beside wrong ones near by: half the rate, twice the rate, none at all.

That an exponent lies below a bound's says little where another rate would do as well;
and a bound from above that is beaten by a power is not tight on that instance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dperm.report.evidence import Estimate

WRONG = {"half": 0.5, "twice": 2.0, "none": 0.0}  # times the claimed one
CLOSE = 0.1  # of the rate, by which an interval may miss it


@dataclass(frozen=True)
class Slope:
    """What the interval of one exponent tells apart."""

    group: str
    excluded: tuple[str, ...]  #: names of ``WRONG`` that lie outside the interval
    #: ``tight`` where the interval reaches the claimed rate, to a tenth of it;
    #: ``beaten`` where it lies below it, ``exceeded`` where above
    place: str


def of(group: str, found: Estimate) -> Slope | None:
    """The slope of a group; None for a number that is no exponent."""
    if found.rate is None:
        return None
    low, high = (end + found.less for end in (found.low, found.high))
    near = {name: factor * found.rate for name, factor in WRONG.items()}
    excluded = tuple(name for name, at in near.items() if not low <= at <= high)
    slack = CLOSE * abs(found.rate)
    beaten, over = high < found.rate - slack, low > found.rate + slack
    return Slope(
        group, excluded, "beaten" if beaten else "exceeded" if over else "tight"
    )


def under(reading: str, slopes: Iterable[Slope]) -> tuple[Slope, ...]:
    """Slopes under a reading of the claim, whose name stands before the group's."""
    return tuple(
        replace(each, group=", ".join(filter(None, (reading, each.group))))
        for each in slopes
    )


def worded(slopes: tuple[Slope, ...], holds: bool) -> str:
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
