"""Rules about how large a number is, or a ratio, or a count."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dperm.present.intervals import clopper_pearson
from dperm.report.evidence import Estimate, Evidence, MissingError, Reading, matching
from dperm.report.groups import by_group, groups, together
from dperm.report.verdicts import CAVEAT, NOT, REPRODUCED, Finding, Range, shown


def value(
    evidence: Evidence,
    file: str,
    where: dict[str, Any] | None = None,
    each: str | list[str] | None = None,
    need: str | float = "all",
    at_least: float | None = None,
    at_most: float | None = None,
    nearly: Any = None,
    **reading: Any,
) -> Finding:
    """A number, of every group, lies where the claim says."""
    found = by_group(evidence.rows(file, where), each, Reading(**reading).of)
    return together(found, Range.of(at_least, at_most, nearly), need)


def ratio(
    evidence: Evidence,
    file: str,
    over: dict[str, Any],
    under: dict[str, Any],
    where: dict[str, Any] | None = None,
    each: str | list[str] | None = None,
    need: str | float = "all",
    at_least: float | None = None,
    at_most: float | None = None,
    nearly: Any = None,
    **reading: Any,
) -> Finding:
    """One number over another, in every group: ahead of, times faster, within a factor.

    ``over`` and ``under`` say which rows; several algorithms stand for the best of them
    where ``best`` is given.
    """
    reader = Reading(**reading)

    def measure(part: pd.DataFrame) -> Estimate:
        top, bottom = (reader.of(matching(part, one, file)) for one in (over, under))
        return top.over(bottom)

    found = by_group(evidence.rows(file, where), each, measure)
    return together(found, Range.of(at_least, at_most, nearly), need)


def never(
    evidence: Evidence,
    file: str,
    hits: str,
    runs: str,
    where: dict[str, Any] | None = None,
    each: str | list[str] | None = None,
    at_most: float = 0.2,
) -> Finding:
    """Something never happens: no hit at all, and the chance of one bounded.

    The bound is Clopper and Pearson's (95 %, two-sided) over all runs together; where
    it is above ``at_most`` there were too few runs to say "never".
    """
    rows = evidence.rows(file, where)
    seen, tried = int(rows[hits].sum()), int(rows[runs].sum())
    if not tried:
        raise MissingError("no runs")
    found = Estimate(seen / tried, *clopper_pearson(seen, tried))
    bounded = found.high <= at_most
    verdict = NOT if seen else REPRODUCED if bounded else CAVEAT
    by = "; ".join(
        f"{name}: {int(part[hits].sum())} of {int(part[runs].sum())}"
        for name, part in groups(rows, each)
    )
    reason = (
        f"{seen} of {tried} runs, Clopper-Pearson [{shown(found.low)}, "
        f"{shown(found.high)}], bound wanted at most {at_most:g}"
    )
    return Finding(verdict, f"{reason}; {by}" if each else reason, found)
