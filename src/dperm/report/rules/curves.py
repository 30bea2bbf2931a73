"""Rules about how numbers change along a column, or from one curve to another."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import pandas as pd

from dperm.present.intervals import power
from dperm.report.controls import NOTHING_LEARNT, TURNED, Control, controlled
from dperm.report.evidence import Estimate, Evidence, MissingError, Reading, matching
from dperm.report.groups import by_group, together
from dperm.report.rules.shared import Each, Where, error_at_start, split
from dperm.report.verdicts import Finding, Range


def _backwards(options: dict[str, Any]) -> dict[str, Any]:
    return options | {"falling": not options.get("falling", True)}


@controlled(NOTHING_LEARNT, Control("the opposite order", _backwards))
def monotone(
    evidence: Evidence,
    file: str,
    along: str,
    falling: bool = True,
    order: list[Any] | None = None,
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    slack: float = 1.0,
    **reading: Any,
) -> Finding:
    """Values fall (or rise) along a column, in every group.

    Judged is the largest ratio of a value to the one before it, and of the last to the
    first, with its interval: it must be below 1, or below ``slack`` for a caveat.
    """
    reader = Reading(**reading)

    def measure(part: pd.DataFrame) -> Estimate:
        keys = sorted(part[along].unique()) if order is None else list(order)
        values = [reader.of(_named(part, along, key)) for key in keys]
        if len(values) < 2:
            raise MissingError(f"fewer than two values along {along}")
        steps = [*itertools.pairwise(values), (values[0], values[-1])]
        against = [b.over(a) if falling else a.over(b) for a, b in steps]
        return max(against, key=lambda step: step.value)

    found = by_group(evidence.rows(file, where), each, measure)
    target = Range.of(below=1.0, nearly=max(math.nextafter(1.0, 0.0), slack))
    finding = together(found, target, need)
    direction = "falls" if falling else "rises"
    text = f"{direction} along {along}; largest step against it: {finding.reason}"
    return replace(finding, reason=text)


def _named(part: pd.DataFrame, along: str, key: Any) -> pd.DataFrame:
    """Rows of a key, or of a label that has it before a colon."""
    same = part[along] == key
    if not same.any():
        same = part[along].astype(str).str.partition(":")[0] == str(key)
    return part[same]


@controlled(NOTHING_LEARNT)
def flat(
    evidence: Evidence,
    file: str,
    start: dict[str, Any],
    where: Where = None,
    along: str = "algorithm",
    each: Each = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """Whether a parameter matters: the spread of several numbers over their drop.

    The drop is from the error at w = 0 to the lowest of them, so that curves along
    which nothing was learnt are not flat; they have nothing to say.

    ``start``: the number at w = 0, as ``level``, or file, value and key as in
    ``alike``.
    """
    target, reader = split(reading)

    def measure(part: pd.DataFrame) -> Estimate:
        found = [one for one in by_group(part, along, reader.of).values()
                 if isinstance(one, Estimate)]  # fmt: skip
        if len(found) < 2:
            raise MissingError(f"fewer than two numbers along {along}")
        return _spread(found, _level(evidence, start, part))

    found = by_group(evidence.rows(file, where), each, measure)
    finding = together(found, target, need)
    text = f"spread along {along} over the drop from w = 0: {finding.reason}"
    return replace(finding, reason=text)


def _level(evidence: Evidence, start: dict[str, Any], part: pd.DataFrame) -> float:
    if "level" in start:
        return float(start["level"])
    return error_at_start(evidence, start, part).value


def _spread(found: list[Estimate], start: float) -> Estimate:
    """Highest less lowest, over the drop to the lowest; the three are independent."""
    low = min(found, key=lambda one: one.value)
    high = max(found, key=lambda one: one.value)
    drop = start - low.value
    half = math.hypot(high.high - high.low, low.high - low.low) / 2
    if not drop > (low.high - low.low) / 2:
        raise MissingError(f"nothing was learnt: the drop from w = 0 is {drop:.3g}")
    spread = high.value - low.value
    return Estimate(spread / drop, max(0.0, spread - half) / drop,
                    (spread + half) / drop)  # fmt: skip


@controlled(NOTHING_LEARNT)
def slope(
    evidence: Evidence,
    file: str,
    x: str = "x",
    y: str = "mean",
    where: Where = None,
    each: Each = None,
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


@controlled(NOTHING_LEARNT, TURNED)
def fewer(
    evidence: Evidence,
    file: str,
    first: dict[str, Any],
    second: dict[str, Any],
    along: str = "passes",
    where: Where = None,
    each: Each = None,
    need: str | float = "any",
    **reading: Any,
) -> Finding:
    """How many times less of something the first needs to be as good as the second.

    The second takes the amount of its lowest value, the first the least amount at which
    it is no higher than that; 0 if it never is. At the interval's ends the first is
    taken at the unlucky end of its intervals and the second at the lucky one, and the
    other way round.
    """
    target, reader = split(reading)

    def measure(part: pd.DataFrame) -> Estimate:
        tables = [matching(part, one, file) for one in (first, second)]
        ours, theirs = (
            {float(key): reader.of(rows) for key, rows in table.groupby(along)
             if key > 0}  # the start, at no cost, is nobody's achievement
            for table in tables
        )  # fmt: skip
        if not ours or not theirs:
            raise MissingError("no row of one of the two")
        best = min(theirs, key=lambda key: theirs[key].value)
        _require_progress(tables[1], along, reader, theirs[best])

        def ratio(goal: float, end: str) -> float:
            enough = [key for key, each in ours.items() if getattr(each, end) <= goal]
            return best / min(enough) if enough else 0.0

        goal = theirs[best]
        return Estimate(ratio(goal.value, "value"), ratio(goal.low, "high"),
                        ratio(goal.high, "low"))  # fmt: skip

    found = by_group(evidence.rows(file, where), each, measure)
    return together(found, target, need)


def _require_progress(
    table: pd.DataFrame, along: str, reader: Reading, best: Estimate
) -> None:
    """Refuse a goal that is met at the start, at no cost."""
    start = table[table[along] == 0]
    if len(start) and not best.value < reader.of(start).value * (1 - 1e-9):
        raise MissingError("the other one made no progress")


@controlled(NOTHING_LEARNT)
def differ(
    evidence: Evidence,
    file: str,
    along: str,
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """Several numbers differ: the largest over the smallest, with its interval."""
    target, reader = split(reading)

    def measure(part: pd.DataFrame) -> Estimate:
        found = [one for one in by_group(part, along, reader.of).values()
                 if isinstance(one, Estimate)]  # fmt: skip
        if len(found) < 2:
            raise MissingError(f"fewer than two numbers along {along}")
        largest = max(found, key=lambda one: one.value)
        return largest.over(min(found, key=lambda one: one.value))

    found = by_group(evidence.rows(file, where), each, measure)
    finding = together(found, target, need)
    text = f"largest over smallest along {along}: {finding.reason}"
    return replace(finding, reason=text)


def _only_curve(table: pd.DataFrame, options: dict[str, Any]) -> pd.DataFrame:
    """The curve at its start for good; the shape stays as it is."""
    if "mean" not in table:
        return table
    shape = table["algorithm"].astype(str).str.contains(options["shape"], regex=False)
    return table.assign(mean=table["mean"].where(shape, table["mean"].max()))


@controlled(Control("w = 0", table=_only_curve))
def above_shape(
    evidence: Evidence,
    file: str,
    shape: str,
    each: str,
    where: Where = None,
    need: str | float = "all",
    learnt: float = 0.5,
    **reading: Any,
) -> Finding:
    """A measured excess falls no faster than a lower bound whose constant is hidden.

    In every group the curve named X is set beside the one named "X, ``shape``". Judged
    is the exponent in x of their ratio, over points where the excess is below
    ``learnt`` of its largest, which must not be negative.
    """
    target, _ = split(reading)
    found: dict[str, Estimate | MissingError] = {}
    rows = evidence.rows(file, where)
    for panel, part in rows.groupby(each, sort=False):
        for name, curve in part.groupby("algorithm", sort=False):
            beside = part[part["algorithm"] == f"{name}, {shape}"]
            if len(beside):
                key = f"{panel}, {name}"
                found[key] = _ratio_exponent(curve, beside, learnt)
    finding = together(found, target, need)
    text = f"exponent of excess over lower bound: {finding.reason}"
    return replace(finding, reason=text)


def _ratio_exponent(
    curve: pd.DataFrame, shape: pd.DataFrame, learnt: float
) -> Estimate | MissingError:
    joined = curve.merge(shape[["x", "mean"]], on="x", suffixes=("", "_shape"))
    kept = joined[joined["mean"] < learnt * joined["mean"].max()]
    if len(kept) < 3:
        return MissingError(f"{len(kept)} points where anything was learnt")
    ratio = (kept["mean"] / kept["mean_shape"]).to_numpy()
    return Estimate(*power(kept["x"].to_numpy(), ratio))
