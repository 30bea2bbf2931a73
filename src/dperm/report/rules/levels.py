"""Rules about how large a number is, or a ratio, or a count."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd

from dperm.present.intervals import clopper_pearson
from dperm.report.controls import (
    EXCHANGED,
    INVERTED,
    LITTLE_NOISE,
    MORE,
    NONE,
    NOTHING_LEARNT,
    Control,
    controlled,
)
from dperm.report.evidence import (
    AbsentError,
    Estimate,
    Evidence,
    MissingError,
    Reading,
    matching,
)
from dperm.report.groups import by_group, groups, together
from dperm.report.rules.shared import (
    Each,
    OutsideError,
    Where,
    error_at_start,
    split,
)
from dperm.report.verdicts import (
    CAVEAT,
    NOT,
    REPRODUCED,
    UNDECIDED,
    Finding,
    Range,
    shown,
)


def _value(
    evidence: Evidence, file: str, where: Where, each: Each, need: Any, given: Any
) -> Finding:
    target, reader = split(given)
    return together(by_group(evidence.rows(file, where), each, reader.of), target, need)


@controlled(NONE, MORE)
def value(
    evidence: Evidence,
    file: str,
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """A number, of every group, lies where the claim says."""
    return _value(evidence, file, where, each, need, reading)


@controlled(LITTLE_NOISE)
def cost(
    evidence: Evidence,
    file: str,
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    exact: dict[str, Any] | None = None,
    **reading: Any,
) -> Finding:
    """What noise costs in epsilon, over its target or not.

    ``exact`` says for which rows the number is the cost; for all others it is the most
    that it can be, which is no breach where it exceeds the target.
    """
    target, reader = split(reading)

    def measure(part: pd.DataFrame) -> Estimate:
        found = reader.of(part)
        if exact is None or len(matching(part, exact, file)) == len(part):
            return found
        return Estimate(found.value, min(0.0, found.low), found.high)

    return together(by_group(evidence.rows(file, where), each, measure), target, need)


def _tight(table: pd.DataFrame, options: dict[str, Any]) -> pd.DataFrame:
    value, per = options["value"], options["per"]
    return table.assign(**{value: table[per]}) if {value, per} <= {*table} else table


@controlled(Control("an accountant without slack", table=_tight))
def slack(
    evidence: Evidence,
    file: str,
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """Noise costs less than an accountant says: ``value`` over ``per`` is below 1."""
    return _value(evidence, file, where, each, need, reading)


@controlled(INVERTED, NOTHING_LEARNT)
def lead(
    evidence: Evidence,
    file: str,
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """A column that is a ratio of two errors says which of them is the lower."""
    return _value(evidence, file, where, each, need, reading)


def _no_slope(table: pd.DataFrame, options: dict[str, Any]) -> pd.DataFrame:
    judged = options.get("value", "exponent")
    ends = [f"{judged}_low", f"{judged}_high", *_interval(table)]
    columns = [each for each in (judged, *ends) if each in table]
    return table.assign(**dict.fromkeys(columns, 0.0))


def _interval(table: pd.DataFrame) -> list[str]:
    return [each for each in ("ci_low", "ci_high") if each in table]


@controlled(Control("an exponent of 0, as where nothing is learnt", table=_no_slope))
def exponent(
    evidence: Evidence,
    file: str,
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """An exponent of a power law that a table has, with its interval."""
    return _value(evidence, file, where, each, need, reading)


@controlled(Control("an exponent of 0, as where nothing is learnt", table=_no_slope))
def rate(
    evidence: Evidence,
    file: str,
    bound: str,
    value: str = "exponent",
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """A measured exponent beside the local one of a bound, logarithms included.

    Judged is the difference; a bound from above allows any that is not positive.
    """
    target, reader = split(reading)
    reader = replace(reader, value=value)

    def measure(part: pd.DataFrame) -> Estimate:
        matching(part, {bound: []}, file)
        found = reader.of(part)
        at = float(part[bound].iloc[0])
        return Estimate(found.value - at, found.low - at, found.high - at)

    finding = together(
        by_group(evidence.rows(file, where), each, measure), target, need
    )
    text = f"exponent less that of the bound there: {finding.reason}"
    return replace(finding, reason=text)


def _witness(options: dict[str, Any]) -> dict[str, Any]:
    """The claim about another algorithm on the same instances."""
    where = {**(options.get("where") or {}), **options["witness"]}
    return options | {"where": where}


@controlled(Control("another algorithm, for which it must grow", _witness))
def growth(
    evidence: Evidence,
    file: str,
    witness: dict[str, Any],
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """An exponent that is small, on instances where another algorithm's is not.

    Nothing grows where there is nothing to find, so that a small exponent says
    something only beside a ``witness`` of which it does not hold.
    """
    return _value(evidence, file, where, each, need, reading)


def _ratio(
    evidence: Evidence, file: str, over: Any, under: Any, where: Where, each: Each,
    need: Any, given: Any,
) -> Finding:  # fmt: skip
    target, reader = split(given)

    def measure(part: pd.DataFrame) -> Estimate:
        top, bottom = (reader.of(matching(part, one, file)) for one in (over, under))
        return top.over(bottom)

    found = by_group(evidence.rows(file, where), each, measure)
    return together(found, target, need)


@controlled(EXCHANGED, NOTHING_LEARNT)
def ratio(
    evidence: Evidence,
    file: str,
    over: dict[str, Any],
    under: dict[str, Any],
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """One number over another, in every group: ahead of, times faster, within a factor.

    ``over`` and ``under`` say which rows; several algorithms stand for the best of them
    where ``best`` is given.
    """
    return _ratio(evidence, file, over, under, where, each, need, reading)


def _turned(options: dict[str, Any]) -> dict[str, Any]:
    return options | {"files": options["files"][::-1]}


@controlled(Control("the two files exchanged", _turned), NOTHING_LEARNT)
def contrast(
    evidence: Evidence,
    files: list[str],
    over: dict[str, Any],
    under: dict[str, Any],
    each: str,
    where: Where = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """How a ratio of the first file compares with the same ratio of the second."""
    target, reader = split(reading)

    def ratios(file: str) -> dict[str, Estimate | MissingError]:
        def measure(part: pd.DataFrame) -> Estimate:
            top, bottom = (
                reader.of(matching(part, one, file)) for one in (over, under)
            )
            return top.over(bottom)

        return by_group(evidence.rows(file, where), each, measure)

    first, second = (ratios(file) for file in files)
    found: dict[str, Estimate | MissingError] = {}
    for name, one in first.items():
        other = second.get(name, AbsentError(f"{files[1]} has no {name}"))
        both = isinstance(one, Estimate) and isinstance(other, Estimate)
        found[name] = one.over(other) if both else _lost(one, other)  # type: ignore
    return together(found, target, need)


def _lost(*several: Estimate | MissingError) -> MissingError:
    return next(each for each in several if isinstance(each, MissingError))


def _rival(options: dict[str, Any]) -> dict[str, Any] | None:
    """The claim about another algorithm, of which the opposite is known."""
    where = {**(options.get("where") or {}), **options["rival"]}
    return options | {"where": where}


@controlled(Control("another algorithm, which does make progress", _rival))
def stuck(
    evidence: Evidence,
    file: str,
    rival: dict[str, Any],
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """The start over the end is about 1: nothing is learnt.

    ``rival`` says which rows would have to show progress for that to mean anything.
    """
    start, end = {"x": 0.0}, dict[str, Any]()
    return _ratio(evidence, file, start, end, where, each, need, reading)


@controlled(NOTHING_LEARNT)
def progress(
    evidence: Evidence,
    file: str,
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """The start over the end is above 1: something is learnt."""
    start, end = {"x": 0.0}, dict[str, Any]()
    return _ratio(evidence, file, start, end, where, each, need, reading)


@controlled(EXCHANGED, Control("the first at w = 0", lambda o: o | {"at_start": True}))
def short(
    evidence: Evidence,
    file: str,
    over: dict[str, Any],
    under: dict[str, Any],
    start: float,
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    at_start: bool = False,
    **reading: Any,
) -> Finding:
    """How far one falls short of another, over the other's drop from w = 0.

    0 is as good as it, 1 is ``start``, which is no better than nothing learnt.
    """
    target, reader = split(reading)

    def measure(part: pd.DataFrame) -> Estimate:
        worse, better = (reader.of(matching(part, one, file)) for one in (over, under))
        if at_start:
            worse = Estimate.exactly(start)
        drop = start - better.value
        if not drop > 0:
            raise MissingError("the other one made no progress")
        half = math.hypot(worse.high - worse.low, better.high - better.low) / 2
        apart = worse.value - better.value
        return Estimate(*(each / drop for each in (apart, apart - half, apart + half)))

    return together(by_group(evidence.rows(file, where), each, measure), target, need)


def _equal(table: pd.DataFrame, options: dict[str, Any]) -> pd.DataFrame:
    value, per = options["value"], options["per"]
    return table.assign(**{value: table[per]}) if {value, per} <= {*table} else table


@controlled(Control("the one written for the other", table=_equal))
def tighter(
    evidence: Evidence,
    file: str,
    value: str,
    per: str,
    each: str,
    where: Where = None,
    at_most: float = 1.0,
    nearly: float | None = None,
) -> Finding:
    """One bound is no larger than another, where they are not the same by construction.

    Rows in which both agree to nine digits are left out: an equality by construction
    bears out nothing.
    """
    rows = evidence.rows(file, where)
    same = (rows[value] / rows[per] - 1).abs() < 1e-9
    if same.all():
        raise OutsideError(f"{value} and {per} are equal by construction in all rows")
    target = Range.of(at_most=at_most, nearly=nearly)
    reader = Reading(value=value, per=per)
    found = together(by_group(rows[~same], each, reader.of), target, "all")
    if not same.any():
        return found
    told = f"; {int(same.sum())} of {len(rows)} equal by construction, left out"
    verdict = CAVEAT if found.verdict == REPRODUCED else found.verdict
    return Finding(verdict, found.reason + told, found.reproduced)


def _one_at_start(name: str) -> Control:
    def chosen(options: dict[str, Any]) -> dict[str, Any] | None:
        return options | {"at_start": name}

    return Control(f"{name} at w = 0", chosen)


def _elsewhere(options: dict[str, Any]) -> dict[str, Any]:
    return options | {"where": options["elsewhere"], "need": "any"}


@controlled(Control("problems on which they must differ", _elsewhere))
def identity(
    evidence: Evidence,
    file: str,
    over: dict[str, Any],
    under: dict[str, Any],
    elsewhere: dict[str, Any],
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """Two formulas agree, where others than these would not.

    Formulas that agree ``elsewhere`` too are the same by construction.
    """
    return _ratio(evidence, file, over, under, where, each, need, reading)


@controlled(_one_at_start("over"), _one_at_start("under"))
def alike(
    evidence: Evidence,
    file: str,
    over: dict[str, Any],
    under: dict[str, Any],
    start: dict[str, str],
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    at_start: str = "",
    **reading: Any,
) -> Finding:
    """Two errors are alike, and either would not be if it were that of w = 0.

    ``start``: file, value and key (a column of both files) of the error at w = 0.
    """
    target, reader = split(reading)

    def measure(part: pd.DataFrame) -> Estimate:
        found = {name: reader.of(matching(part, one, file))
                 for name, one in (("over", over), ("under", under))}  # fmt: skip
        if at_start:
            found[at_start] = error_at_start(evidence, start, part)
        return found["over"].over(found["under"])

    return together(by_group(evidence.rows(file, where), each, measure), target, need)


def _no_drop(table: pd.DataFrame, options: dict[str, Any]) -> pd.DataFrame:
    if options["start"] not in table:
        return table
    columns = [options.get("value", "excess"), *_interval(table)]
    return table.assign(**dict.fromkeys(columns, table[options["start"]]))


@controlled(Control("w = 0", table=_no_drop))
def bounded(
    evidence: Evidence,
    file: str,
    start: str,
    per: str,
    value: str = "excess",
    requires: dict[str, float] | None = None,
    where: Where = None,
    each: Each = None,
    at_most: float = 1.0,
    need: str | float = "all",
) -> Finding:
    """A measured excess stays below a theorem's bound.

    ``start`` is the column of the excess at w = 0: a bound above it is met by doing
    nothing. Rows where a column of ``requires`` is below its number lie outside the
    theorem.
    """
    rows = evidence.rows(file, where)
    matching(rows, {start: [], per: []}, file)  # they must be there
    outside = pd.Series(data=False, index=rows.index)
    for column, least in (requires or {}).items():
        matching(rows, {column: []}, file)
        outside |= ~(rows[column] >= least)
    if outside.all():
        raise OutsideError(
            f"the theorem's preconditions ({_required(requires)}) fail in all "
            f"{len(rows)} rows"
        )
    target, reader = Range.of(at_most=at_most), Reading(value=value, per=per)
    found = together(by_group(rows[~outside], each, reader.of), target, need)
    inside = f"{int((~outside).sum())} of {len(rows)} rows within the preconditions; "
    prefix = inside if requires else ""
    return Finding(found.verdict, prefix + found.reason, found.reproduced)


def _required(requires: dict[str, float] | None) -> str:
    return ", ".join(f"{key} >= {least:g}" for key, least in (requires or {}).items())


def _none_found(table: pd.DataFrame, options: dict[str, Any]) -> pd.DataFrame:
    zero = [each for each in (options["hits"], options["found"]) if each in table]
    return table.assign(**dict.fromkeys(zero, 0))


@controlled(Control("w = 0", table=_none_found))
def never(
    evidence: Evidence,
    file: str,
    hits: str,
    found: str,
    runs: str | None = None,
    where: Where = None,
    each: Each = None,
    at_most: float = 0.2,
) -> Finding:
    """Something never happens in runs that find anything at all.

    ``found`` counts what they find; w = 0 finds nothing, and no wrong thing either.
    Without ``runs`` the paper's own runs are meant, and no hit is enough; with it the
    chance of one is bounded (Clopper and Pearson, 95 %, two-sided) over all runs
    together, and where the bound is above ``at_most`` there were too few runs.
    """
    rows = evidence.rows(file, where)
    matching(rows, {hits: [], found: []}, file)
    seen, useful = float(rows[hits].sum()), float(rows[found].sum())
    if not useful > 0:
        return Finding(NOT, "nothing is found at all", Estimate.exactly(seen))
    if runs is None:
        verdict = NOT if seen else REPRODUCED
        by = _by_group(rows, each, lambda part: shown(float(part[hits].sum())))
        return Finding(verdict, f"{shown(seen)} in all; {by}", Estimate.exactly(seen))
    return _bounded_chance(rows, hits, runs, each, at_most)


def _bounded_chance(
    rows: pd.DataFrame, hits: str, runs: str, each: Each, at_most: float
) -> Finding:
    seen, tried = int(rows[hits].sum()), int(rows[runs].sum())
    if not tried:
        raise MissingError("no runs")
    found = Estimate(seen / tried, *clopper_pearson(seen, tried))
    verdict = NOT if seen else REPRODUCED if found.high <= at_most else UNDECIDED
    reason = (
        f"{seen} of {tried} runs, Clopper-Pearson [{shown(found.low)}, "
        f"{shown(found.high)}], bound wanted at most {at_most:g}"
    )
    by = _by_group(
        rows, each, lambda part: f"{int(part[hits].sum())} of {int(part[runs].sum())}"
    )
    return Finding(verdict, f"{reason}; {by}" if each else reason, found)


def _by_group(
    rows: pd.DataFrame, each: Each, told: Callable[[pd.DataFrame], str]
) -> str:
    return "; ".join(f"{name}: {told(part)}" for name, part in groups(rows, each))


@controlled(Control("the last value of the grid", lambda o: o | {"at_edge": True}))
def inside(
    evidence: Evidence,
    file: str,
    value: str,
    low: float,
    high: float,
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    learnt: dict[str, Any] | None = None,
    at_edge: bool = False,
) -> Finding:
    """A chosen value lies strictly inside its grid, from ``low`` to ``high``.

    ``learnt``: file, key columns and the largest share of the error at w = 0 at which
    a choice counts; where nothing was learnt all settings are as good.
    """
    rows = evidence.rows(file, where)
    skipped = 0
    if learnt:
        rows, skipped = _that_learnt(evidence, rows, learnt)
    if at_edge:
        rows = rows.assign(**{value: high})
    margin = 1 + 1e-6
    target = Range.of(at_least=low * margin, at_most=high / margin)
    found = together(by_group(rows, each, Reading(value=value).of), target, need)
    told = f"; {skipped} of {skipped + len(rows)} left out, where nothing was learnt"
    reason = found.reason + (told if skipped else "")
    return Finding(found.verdict, reason, found.reproduced)


def _that_learnt(
    evidence: Evidence, rows: pd.DataFrame, learnt: dict[str, Any]
) -> tuple[pd.DataFrame, int]:
    other = evidence.table(learnt["file"])
    matching(other, {key: [] for key in (*learnt["keys"], "start")}, learnt["file"])
    starts = other.groupby(learnt["keys"])["start"].first().rename("_start")
    joined = rows.join(starts, on=learnt["keys"])
    kept = joined["mean"] <= learnt["share"] * joined["_start"]
    if not kept.any():
        raise MissingError("nothing was learnt anywhere")
    return rows[kept.to_numpy()], int((~kept).sum())


def _opposite(table: pd.DataFrame, options: dict[str, Any]) -> pd.DataFrame:
    said = {"yes": "no", "no": "yes"}
    column = options["value"]
    if column not in table:
        return table
    return table.assign(**{column: table[column].replace(said)})


@controlled(Control("the two exchanged in every comparison", table=_opposite))
def agree(
    evidence: Evidence,
    file: str,
    value: str,
    where: Where = None,
    at_least: float = 0.75,
    requires: dict[str, float] | None = None,
    fewest: int = 4,
) -> Finding:
    """How often a prediction has the direction right: a column of yes and no.

    Decided are the rows that say either; fewer than ``fewest`` decide nothing, nor
    does an interval (Clopper and Pearson) across a half.
    """
    rows = evidence.rows(file, where)
    matching(rows, {key: [] for key in (value, *(requires or {}))}, file)
    for column, least in (requires or {}).items():
        rows = rows[rows[column] >= least]
    if requires and rows.empty:
        raise OutsideError(f"the theorem applies to no row ({_required(requires)})")
    said = rows[value][rows[value].isin(["yes", "no"])]
    right = int((said == "yes").sum())
    if len(said) < fewest:
        raise MissingError(f"{len(said)} comparisons are decided, fewer than {fewest}")
    found = Estimate(right / len(said), *clopper_pearson(right, len(said)))
    if found.low > 0.5 and found.value >= at_least:
        verdict = REPRODUCED
    else:
        verdict = NOT if found.high < at_least else UNDECIDED
    return Finding(verdict, f"right in {right} of {len(said)} decided rows", found)
