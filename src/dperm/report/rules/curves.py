"""Rules about how numbers change along a column, or from one curve to another."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pandas as pd

from dperm.present.intervals import power
from dperm.report.evidence import Estimate, Evidence, MissingError, Reading, matching
from dperm.report.groups import by_group, together
from dperm.report.verdicts import CLOSE, ROUGH, Finding, Range


def monotone(
    evidence: Evidence,
    file: str,
    along: str,
    falling: bool = True,
    order: list[Any] | None = None,
    where: dict[str, Any] | None = None,
    each: str | list[str] | None = None,
    need: str | float = "all",
    slack: float = 1.0,
    **reading: Any,
) -> Finding:
    """Values fall (or rise) along a column, in every group.

    Judged is the largest ratio of a value to the one before it, and of the last to the
    first: it must not exceed 1, or ``slack`` for a caveat.
    """
    reader = Reading(**reading)

    def measure(part: pd.DataFrame) -> Estimate:
        keys = sorted(part[along].unique()) if order is None else list(order)
        values = [reader.of(part[part[along] == key]) for key in keys]
        if len(values) < 2:
            raise MissingError(f"fewer than two values along {along}")
        steps = [*itertools.pairwise(values), (values[0], values[-1])]
        against = (b.over(a) if falling else a.over(b) for a, b in steps)
        return Estimate.exactly(max(step.value for step in against))

    found = by_group(evidence.rows(file, where), each, measure)
    finding = together(found, Range(high=1.0, loose_high=max(1.0, slack)), need)
    direction = "falls" if falling else "rises"
    text = f"{direction} along {along}; largest step against it: {finding.reason}"
    return replace(finding, reason=text)


def flat(
    evidence: Evidence,
    file: str,
    where: dict[str, Any] | None = None,
    along: str = "algorithm",
    each: str | list[str] | None = None,
    need: str | float = "all",
    within: float | None = CLOSE,
    at_least: float | None = None,
    nearly: float = ROUGH,
    **reading: Any,
) -> Finding:
    """Whether a parameter matters: the largest of several numbers over the smallest.

    ``within`` claims that it does not, ``at_least`` that it does.
    """
    reader = Reading(**reading)

    def measure(part: pd.DataFrame) -> Estimate:
        known = by_group(part, along, reader.of).values()
        values = [one.value for one in known if isinstance(one, Estimate)]
        if len(values) < 2 or min(values) <= 0:
            raise MissingError(f"fewer than two positive values along {along}")
        return Estimate.exactly(max(values) / min(values))

    found = by_group(evidence.rows(file, where), each, measure)
    target = Range.of(at_least, within if at_least is None else None, nearly)
    finding = together(found, target, need)
    text = f"largest over smallest along {along}: {finding.reason}"
    return replace(finding, reason=text)


def slope(
    evidence: Evidence,
    file: str,
    x: str = "x",
    y: str = "mean",
    where: dict[str, Any] | None = None,
    each: str | list[str] | None = None,
    need: str | float = "all",
    at_least: float | None = None,
    at_most: float | None = None,
    nearly: Any = None,
) -> Finding:
    """Exponent of a power law by least squares of logarithms, with its interval."""

    def measure(part: pd.DataFrame) -> Estimate:
        kept = part[(part[x] > 0) & (part[y] > 0)]
        if kept[x].nunique() < 3:
            raise MissingError(f"fewer than three positive points ({len(kept)})")
        return Estimate(*power(kept[x].to_numpy(), kept[y].to_numpy()))

    found = by_group(evidence.rows(file, where), each, measure)
    return together(found, Range.of(at_least, at_most, nearly), need)


def fewer(
    evidence: Evidence,
    file: str,
    first: dict[str, Any],
    second: dict[str, Any],
    along: str = "passes",
    where: dict[str, Any] | None = None,
    each: str | list[str] | None = None,
    need: str | float = "any",
    at_least: float = 1.0,
    nearly: Any = None,
    **reading: Any,
) -> Finding:
    """How many times less of something the first needs to be as good as the second.

    The second takes the amount of its lowest value, the first the least amount at which
    it is no higher than that.
    """
    reader = Reading(**reading)

    def measure(part: pd.DataFrame) -> Estimate:
        tables = [matching(part, one, file) for one in (first, second)]
        ours, theirs = (
            {float(key): reader.of(rows).value for key, rows in table.groupby(along)
             if key > 0}  # the start, at no cost, is nobody's achievement
            for table in tables
        )  # fmt: skip
        if not ours or not theirs:
            raise MissingError("no row of one of the two")
        goal = min(theirs.values())
        amount = min(key for key, each in theirs.items() if each == goal)
        enough = [key for key, each in ours.items() if each <= goal]
        return Estimate.exactly(amount / min(enough) if enough else 0.0)

    found = by_group(evidence.rows(file, where), each, measure)
    return together(found, Range.of(at_least, None, nearly), need)
