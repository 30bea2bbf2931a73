"""The rules that judge claims: small functions, registered by name.

A rule takes the evidence and its options and returns a ``Finding``. None of them knows
a paper. Every threshold stands in the claim's YAML; those that most claims share are
``CLOSE`` and ``ROUGH`` here, one pair for all papers.

A number is *in* a target if it lies in it and its 95 % interval stays within the looser
target. Then the claim is reproduced; if only the number is in the looser target, with a
caveat; else it is not.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats

from dperm.present.tables import number
from dperm.report import proofs
from dperm.report.evidence import Estimate, Evidence, MissingError, Reading, matching

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
LISTED = 6  # groups that a reason lists


@dataclass(frozen=True)
class Finding:
    """A verdict, the number it was passed on, and why."""

    verdict: Verdict
    reason: str
    reproduced: Estimate | None = None
    published: str = ""


Rule = Callable[..., Finding]
RULES: dict[str, Rule] = {}


def rule(function: Rule) -> Rule:
    """Register a rule under its name."""
    RULES[function.__name__] = function
    return function


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


# --- several at once ------------------------------------------------------------------


def groups(rows: pd.DataFrame, each: str | list[str] | None) -> Iterator[Any]:
    """(name, rows) of each group; the whole without columns to group by."""
    if each is None:
        yield "", rows
        return
    columns = [each] if isinstance(each, str) else each
    for keys, group in rows.groupby(columns, sort=False):
        yield ", ".join(f"{key:g}" if isinstance(key, float) else str(key)
                        for key in keys), group  # fmt: skip


def together(
    found: dict[str, Estimate | str], target: Range, need: str | float
) -> Finding:
    """One finding for several groups.

    Parameters
    ----------
    found : dict
        Group to its estimate, or to the reason why there is none.
    target : Range
    need : "all", "any" or a share
        How many groups the claim speaks of.
    """
    verdicts = {
        name: target.verdict(each)
        for name, each in found.items()
        if isinstance(each, Estimate)
    }
    lost = [f"{n}: {each}" for n, each in found.items() if isinstance(each, str)]
    if not verdicts:
        raise MissingError("; ".join(lost) or "no group to judge")
    known = {n: each for n, each in found.items() if isinstance(each, Estimate)}
    verdict = _combined(list(verdicts.values()), need)
    if lost and verdict is REPRODUCED and need == "all":
        verdict = CAVEAT
    counts = {kind: list(verdicts.values()).count(kind) for kind in VERDICTS[:3]}
    held = f"{counts[REPRODUCED]} of {len(verdicts)} hold" if len(verdicts) > 1 else ""
    if counts[CAVEAT] and held:
        held += f", {counts[CAVEAT]} nearly"
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


def _combined(verdicts: list[Verdict], need: str | float) -> Verdict:
    if need == "any":
        return min(verdicts, key=VERDICTS.index)
    if need == "all":
        return max(verdicts, key=VERDICTS.index)
    wanted = float(need) * len(verdicts)
    if verdicts.count(REPRODUCED) >= wanted:
        return REPRODUCED
    return CAVEAT if len(verdicts) - verdicts.count(NOT) >= wanted else NOT


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
        return VERDICTS.index(verdicts[name]), max(over, under)

    ordered = sorted(known, key=badness)
    place = {"all": -1, "any": 0}.get(str(need), (len(ordered) - 1) // 2)
    return known[ordered[place]]


Measure = Callable[[pd.DataFrame], Estimate]


def by_group(
    rows: pd.DataFrame, each: str | list[str] | None, measure: Measure
) -> dict[str, Estimate | str]:
    """What ``measure`` finds in every group, or why it finds nothing."""
    found: dict[str, Estimate | str] = {}
    for name, part in groups(rows, each):
        try:
            found[name] = measure(part)
        except MissingError as error:
            found[name] = str(error)
    return found


def _exactly(number: float) -> Estimate:
    """A number without an interval."""
    return Estimate(number, number, number)


# --- rules ----------------------------------------------------------------------------


@rule
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


@rule
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


@rule
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
        return _exactly(max(step.value for step in against))

    found = by_group(evidence.rows(file, where), each, measure)
    finding = together(found, Range(high=1.0, loose_high=max(1.0, slack)), need)
    direction = "falls" if falling else "rises"
    text = f"{direction} along {along}; largest step against it: {finding.reason}"
    return replace(finding, reason=text)


@rule
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
        return _exactly(max(values) / min(values))

    found = by_group(evidence.rows(file, where), each, measure)
    target = Range.of(at_least, within if at_least is None else None, nearly)
    finding = together(found, target, need)
    text = f"largest over smallest along {along}: {finding.reason}"
    return replace(finding, reason=text)


@rule
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
        fit = stats.linregress(np.log(kept[x]), np.log(kept[y]))
        half = float(stats.t.ppf(0.975, len(kept) - 2) * fit.stderr)
        found = float(fit.slope)
        return Estimate(found, found - half, found + half)

    found = by_group(evidence.rows(file, where), each, measure)
    return together(found, Range.of(at_least, at_most, nearly), need)


@rule
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
    ends = stats.binomtest(seen, tried).proportion_ci(0.95, "exact")
    found = Estimate(seen / tried, float(ends.low), float(ends.high))
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


@rule
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
        return _exactly(amount / min(enough) if enough else 0.0)

    found = by_group(evidence.rows(file, where), each, measure)
    return together(found, Range.of(at_least, None, nearly), need)


@rule
def proof(evidence: Evidence, argument: str, **given: Any) -> Finding:
    """What the proof's own argument yields, step by step and numerically.

    ``argument`` names a function of ``dperm.report.proofs``; the worst case over
    ``given``, whose lists are crossed, must not exceed its target.
    """
    return _proved(proofs.PROOFS, argument, given, "the argument yields")


@rule
def printed_noise(evidence: Evidence, argument: str, **given: Any) -> Finding:
    """What the noise that a theorem prints costs, by a sound and tight accountant."""
    return _proved(proofs.NOISES, argument, given, "the printed noise costs")


def _proved(
    known: dict[str, proofs.Argument], argument: str, given: dict[str, Any], verb: str
) -> Finding:
    cases = list(proofs.crossed(given))
    shares = [known[argument](**case) for case in cases]
    worst = max(range(len(cases)), key=lambda i: shares[i].share)
    found = shares[worst]
    names = ", ".join(f"{key} {value:g}" for key, value in cases[worst].items())
    verdict = REPRODUCED if found.share <= 1 + 1e-9 else NOT
    reason = (
        f"{verb} at worst {found.found:.4g} where {found.claimed:.4g} is claimed "
        f"({names}; {len(cases)} cases): {found.how}"
    )
    ratio = Estimate(found.found, found.found, found.found)
    return Finding(verdict, reason, ratio, f"{found.claimed:.4g}")


def check_options(name: str, options: dict[str, Any]) -> None:
    """Refuse an unknown rule or options it does not take.

    Raises
    ------
    ValueError
        Naming what was found and what was expected.
    """
    if name not in RULES:
        raise ValueError(f"rule {name!r} is unknown; expected one of {sorted(RULES)}")
    known = inspect.signature(RULES[name]).parameters
    reading = {each.name for each in fields(Reading)}
    takes = set(known) - {"evidence"}
    if "reading" in known:
        takes |= reading
    if "given" not in known and not set(options) <= takes:
        wrong = sorted(set(options) - takes)
        raise ValueError(
            f"rule {name}: unknown options {wrong}; it takes {sorted(takes)}"
        )
    needed = {
        key
        for key, parameter in known.items()
        if parameter.default is parameter.empty
        and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    } - {"evidence"}
    if not needed <= set(options):
        raise ValueError(
            f"rule {name}: options {sorted(needed - set(options))} missing"
        )
