"""The rules: most compare a number of every group of rows with a target.

These are rules on sizes, exponents, ratios and numbers along a column. Others judge
bounds within their preconditions, curves against a shape, counts and choices, all cells
of a printed table together, and the results of privacy proofs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import pandas as pd

from dperm.core.experiment import results
from dperm.kinds.proofs import Argument
from dperm.present.intervals import clopper_pearson, power
from dperm.report import cells
from dperm.report.evidence import (
    CAVEAT,
    CLOSE,
    NOT,
    REPRODUCED,
    UNDECIDED,
    WORSE,
    AbsentError,
    Each,
    Estimate,
    Evidence,
    Finding,
    MissingError,
    Range,
    Reading,
    Where,
    by_group,
    filled,
    groups,
    matching,
    p_value,
    rounded,
    together,
    worded,
)
from dperm.report.rules import (
    EXCHANGED,
    INVERTED,
    LITTLE_NOISE,
    MORE,
    NONE,
    NOTHING_LEARNT,
    REQUIRED,
    TURNED,
    Control,
    Options,
    OutsideError,
    argument_of,
    changed,
    constant,
    controlled,
    copied,
    grouped,
    having,
    narrowed,
    rule,
    split,
)

Rows = dict[str, Any]  # column to its value or list of values, of rows that match
Part: TypeAlias = pd.DataFrame  # the rows of a group
Read = Callable[..., Estimate]  # of a part and of the ``Rows`` to take from it

# --- sizes of numbers -----------------------------------------------------------------


@rule(NONE, MORE)
def value(part: Part, read: Read) -> Estimate:
    """A number of every group lies in the range of the claim."""
    return read(part)


@rule(LITTLE_NOISE)
def cost(
    part: Part,
    read: Read,
    file: str,
    exact: Rows | None = None,
) -> Estimate:
    """The epsilon that the noise costs, possibly over its target.

    The number is the cost in rows that match ``exact``, or in all rows without
    ``exact``. In other rows it is an upper bound: if it exceeds the target, that proves
    no breach, so its interval begins at 0.
    """
    found = read(part)
    if exact is None or len(matching(part, exact, file)) == len(part):
        return found
    return Estimate(found.value, min(0.0, found.low), found.high)


@rule(Control("an accountant without slack", table=copied))
def slack(part: Part, read: Read) -> Estimate:
    """Noise costs less than an accountant states: ``value`` over ``per`` is below 1."""
    return read(part)


@rule(INVERTED, NOTHING_LEARNT)
def lead(part: Part, read: Read, band: str | None = None) -> Estimate:
    """A column with a ratio of two errors shows which of them is lower.

    ``band`` is the column of the widest ratio of a law to itself. Numbers inside this
    band decide nothing, so the interval is at least that wide on both sides.
    """
    found = read(part)
    if band is None:
        return found
    widest = float(filled(part, band)[band].iloc[0])
    low, high = found.value / widest, found.value * widest
    return Estimate(found.value, min(low, found.low), max(high, found.high))


@rule(
    Control("the other method against itself", narrowed("itself")),
    Control("w = 0 or the mean", narrowed("floor")),
)
def leads(part: Part, read: Read, itself: Rows, floor: Rows) -> Estimate:
    """The share of cells in which a method is ahead of another.

    The controls must not be ahead: ``itself`` names the rows of the other method with
    other seeds, ``floor`` those of a method that learns nothing.
    """
    return read(part)


# --- exponents ------------------------------------------------------------------------


def _no_slope(table: pd.DataFrame, options: Options) -> pd.DataFrame:
    judged = options.get("value", "exponent")
    columns = (judged, f"{judged}_low", f"{judged}_high", "ci_low", "ci_high")
    return constant(table, columns, 0.0)


NO_SLOPE = Control("an exponent of 0, as where nothing is learnt", table=_no_slope)


@rule(NO_SLOPE)
def exponent(part: Part, read: Read, rate: float | None = None) -> Estimate:
    """An exponent of a power law in a table, with its interval.

    ``rate``, here and below, is the exponent in the paper.
    """
    return replace(read(part), rate=rate)


@rule(NO_SLOPE, reason="exponent less that of the bound there: ", value="exponent")
def rate(part: Part, read: Read, file: str, bound: str) -> Estimate:
    """A measured exponent less the local exponent of a bound, logarithms included.

    An upper bound allows any difference that is not positive.
    """
    found, at = read(part), float(filled(part, bound)[bound].iloc[0])
    return Estimate(found.value - at, found.low - at, found.high - at, at, at)


@rule(Control("another algorithm, for which it must grow", narrowed("witness")))
def growth(
    part: Part, read: Read, witness: Rows, rate: float | None = None
) -> Estimate:
    """A small exponent, on instances where another algorithm's is not small.

    Nothing grows if there is nothing to find. A small exponent therefore means
    something only if that of a ``witness`` is not small.
    """
    return replace(read(part), rate=rate)


@rule(NOTHING_LEARNT)
def slope(
    part: Part, x: str = "x", y: str = "mean", rate: float | None = None
) -> Estimate:
    """Exponent of a power law by least squares of logarithms, with its interval."""
    kept = filled(part, x, y)[(part[x] > 0) & (part[y] > 0)]
    if kept[x].nunique() < 3:
        raise MissingError(f"fewer than three positive points ({len(kept)})")
    return Estimate(*power(kept[x].to_numpy(), kept[y].to_numpy()), rate=rate)


# --- one number over another ----------------------------------------------------------


def _elsewhere(options: Options) -> Options | None:
    if not options.get("elsewhere"):
        return None
    return options | {"where": (options["where"] or {}) | options["elsewhere"]}


@rule(EXCHANGED, NOTHING_LEARNT, Control("where it must not hold", _elsewhere))
def ratio(
    part: Part, read: Read, over: Rows, under: Rows, elsewhere: Rows | None = None
) -> Estimate:
    """One number over another, in every group.

    Such a claim is that a method is ahead, a number of times faster, or within a
    factor. ``over`` and ``under`` name the rows. With ``best``, several algorithms mean
    the best of them. ``elsewhere`` names the rows without the cause that the claim
    gives.
    """
    return read(part, over).over(read(part, under))


@rule(Control("another algorithm, which does make progress", narrowed("rival")))
def stuck(part: Part, read: Read, rival: Rows) -> Estimate:
    """The start over the end is about 1: nothing is learnt.

    This means something only if the rows of ``rival`` do show progress.
    """
    return read(part, {"x": 0.0}).over(read(part))


@rule(NOTHING_LEARNT)
def progress(part: Part, read: Read) -> Estimate:
    """The start over the end is above 1: something is learnt."""
    return read(part, {"x": 0.0}).over(read(part))


@rule(
    Control(
        "problems on which they must differ",
        lambda options: options | {"where": options["elsewhere"], "need": "any"},
    )
)
def identity(
    part: Part, read: Read, over: Rows, under: Rows, elsewhere: Rows
) -> Estimate:
    """Two formulas agree, and do so only on these problems.

    Formulas that agree ``elsewhere`` too are equal by construction.
    """
    return read(part, over).over(read(part, under))


@rule(EXCHANGED, Control("the first at w = 0", changed(at_start=True)))
def short(
    part: Part,
    read: Read,
    over: Rows,
    under: Rows,
    start: float,
    at_start: bool = False,
) -> Estimate:
    """Shortfall of one number against another, over the other's drop from w = 0.

    0 is as good as the other; 1 is ``start``, where nothing is learnt.
    """
    worse, better = read(part, over), read(part, under)
    if at_start:
        worse = Estimate.exactly(start)
    drop = start - better.value
    if not drop > 0:
        raise MissingError("the other one made no progress")
    half = math.hypot(worse.high - worse.low, better.high - better.low) / 2
    apart = worse.value - better.value
    return Estimate(*(each / drop for each in (apart, apart - half, apart + half)))


@rule(*(Control(f"{one} at w = 0", changed(at_start=one)) for one in ("over", "under")))
def alike(
    part: Part,
    read: Read,
    evidence: Evidence,
    over: Rows,
    under: Rows,
    start: dict[str, str],
    at_start: str = "",
) -> Estimate:
    """Two errors are alike, but neither is like the error at w = 0.

    ``start``: file, value and key (a column of both files) of the error at w = 0.
    """
    found = {"over": read(part, over), "under": read(part, under)}
    if at_start:
        found[at_start] = Estimate.exactly(_at_start(evidence, start, part))
    return found["over"].over(found["under"])


def _at_start(evidence: Evidence, start: Rows, part: Part) -> float:
    key = start["key"]
    rows = evidence.rows(start["file"], {key: part[key].iloc[0]})
    return float(rows[start["value"]].iloc[0])


# --- along a column -------------------------------------------------------------------


@rule(
    NOTHING_LEARNT,
    Control(
        "the opposite order",
        lambda options: options | {"falling": not options.get("falling", True)},
        contrary=True,
    ),
    reason=lambda options: (
        f"{'falls' if options['falling'] else 'rises'} along {options['along']}; "
        "largest step against it: "
    ),
    target=lambda options: _falling(options["slack"]),
)
def monotone(
    part: Part,
    read: Read,
    evidence: Evidence,
    along: str,
    falling: bool = True,
    order: list[Any] | None = None,
    slack: float = 1.0,
) -> Estimate:
    """Values fall (or rise) along a column, in every group.

    The rule judges the ratios of a value to the one before it and of the last to the
    first, with their intervals, and returns the worst. It must be below 1, or below
    ``slack`` for a caveat.
    """
    expected = evidence.claim.expects.get(along) if evidence.claim else None
    keys = order or expected or sorted(part[along].unique())
    values = [read(_labelled(part, along, key)) for key in keys]
    if len(values) < 2:
        raise MissingError(f"fewer than two values along {along}")
    steps = [*itertools.pairwise(values), (values[0], values[-1])]
    against = [b.over(a) if falling else a.over(b) for a, b in steps]
    target = _falling(slack)
    return max(against, key=lambda one: (WORSE.index(target.verdict(one)), one.value))


def _falling(slack: float) -> Range:
    return Range.of(below=1.0, nearly=max(math.nextafter(1.0, 0.0), slack))


def _labelled(part: Part, along: str, key: Any) -> pd.DataFrame:
    """Rows of a key, or of labels that begin with it and a colon."""
    same = part[along] == key
    if not same.any():
        same = part[along].astype(str).str.partition(":")[0] == str(key)
    return part[same]


@rule(
    NOTHING_LEARNT,
    Control("the highest at w = 0", changed(at_start=True)),
    reason="spread along {along} over the drop from w = 0: ",
)
def flat(
    part: Part,
    read: Read,
    evidence: Evidence,
    start: Rows,
    along: str = "algorithm",
    at_start: bool = False,
) -> Estimate:
    """Whether a parameter matters: the spread of several numbers over their drop.

    The drop is from the error at w = 0 to the lowest number. Curves along which nothing
    was learnt are therefore not flat: they decide nothing. The highest number, the
    lowest and the error at w = 0 count as independent.

    ``start``: the number at w = 0, as ``level``, or file, value and key as in
    ``alike``.
    """
    low, high = _extremes(part, read, evidence, along)
    level = start["level"] if "level" in start else _at_start(evidence, start, part)
    high = Estimate.exactly(float(level)) if at_start else high
    drop = float(level) - low.value
    half = math.hypot(high.high - high.low, low.high - low.low) / 2
    if not drop > (low.high - low.low) / 2:
        raise MissingError(f"nothing was learnt: the drop from w = 0 is {drop:.3g}")
    spread = high.value - low.value
    return Estimate(
        spread / drop, max(0.0, spread - half) / drop, (spread + half) / drop
    )


@rule(NOTHING_LEARNT, reason="largest over smallest along {along}: ")
def differ(part: Part, read: Read, evidence: Evidence, along: str) -> Estimate:
    """Several numbers differ: the largest over the smallest, with its interval."""
    low, high = _extremes(part, read, evidence, along)
    return high.over(low)


def _extremes(
    part: Part, read: Read, evidence: Evidence, along: str
) -> tuple[Estimate, Estimate]:
    """The least and the largest of the numbers along a column.

    Raises AbsentError if one that the claim expects is missing, MissingError if there
    are fewer than two.
    """
    found = by_group(part, along, read)
    for name, error in found.items():
        if isinstance(error, AbsentError):
            raise AbsentError(f"{along} {name}: {error}")
    if lost := set(evidence.expected(along, None)) - set(found):
        raise AbsentError(f"no row of {along} {', '.join(sorted(lost))}")
    known = [one for one in found.values() if isinstance(one, Estimate)]
    if len(known) < 2:
        raise MissingError(f"fewer than two numbers along {along}")
    low, high = (pick(known, key=lambda one: one.value) for pick in (min, max))
    return low, high


@rule(NOTHING_LEARNT, TURNED, need="any")
def fewer(
    part: Part,
    read: Read,
    evidence: Evidence,
    file: str,
    first: Rows,
    second: Rows,
    along: str = "passes",
) -> Estimate:
    """How many times less of something the first needs to be as good as the second.

    The second needs the amount at its lowest value. The first needs the least amount at
    which it is no higher than that value; the estimate is 0 if there is none. For the
    lower end of the interval, the first is taken at the high ends of its intervals and
    the second at its low end; for the upper end, the other way round.
    """
    tables = [filled(matching(part, one, file), along) for one in (first, second)]
    for table in tables:
        lost = {*evidence.expected(along, None)} - {f"{key:g}" for key in table[along]}
        if lost:
            raise AbsentError(f"no row of {along} {', '.join(sorted(lost))}")
    ours, theirs = (
        {float(key): read(rows) for key, rows in table.groupby(along) if key > 0}
        for table in tables  # the start, at no cost, does not count
    )
    if not ours or not theirs:
        raise MissingError("no row of one of the two")
    best = min(theirs, key=lambda key: theirs[key].value)
    goal, start = theirs[best], tables[1][tables[1][along] == 0]
    if len(start) and not goal.value < read(start).value * (1 - 1e-9):
        raise MissingError("the other one made no progress")

    def times(level: float, end: str) -> float:
        enough = [key for key, each in ours.items() if getattr(each, end) <= level]
        return best / min(enough) if enough else 0.0

    return Estimate(
        times(goal.value, "value"), times(goal.low, "high"), times(goal.high, "low")
    )


# --- shapes of solutions --------------------------------------------------------------


def _near_zero(table: pd.DataFrame, options: Options) -> pd.DataFrame:
    first = table.groupby("panel")["x"].transform("min") == table["x"]
    return table.assign(mean=first.astype(float) * 1000)


@rule(
    Control(
        "parameters spread evenly",
        having("at_most"),
        lambda table, _: constant(table, ["mean"], 1.0),
    ),
    Control("all parameters near 0", having("at_least"), _near_zero),
    each=REQUIRED,
)
def standing_out(part: Part) -> Estimate:
    """Share of a solution's parameters that are above half the largest one.

    It is read off the histogram of Figure 2: x is the middle of a bin, ``mean`` its
    count and ``max`` its upper edge.
    """
    bins = filled(part[part["algorithm"] == "|w*|"], "x", "mean", "max")
    if bins.empty or not bins["mean"].sum() > 0:
        raise MissingError("no histogram")
    large = bins["x"] > bins["max"].max() / 2
    return Estimate.exactly(float(bins["mean"][large].sum() / bins["mean"].sum()))


# --- bounds ---------------------------------------------------------------------------


@controlled(Control("the one written for the other", table=copied))
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
    """One bound is no larger than another, where they are not equal by construction.

    Rows in which both agree to nine digits are left out: an equality by construction
    confirms nothing.
    """
    rows = filled(evidence.rows(file, where), value, per)
    same = (rows[value] / rows[per] - 1).abs() < 1e-9
    if same.all():
        raise OutsideError(f"{value} and {per} are equal by construction in all rows")
    target = Range.of(at_most=at_most, nearly=nearly)
    measure = Reading(value=value, per=per).of
    numbers = grouped(evidence, file, where, each, measure, lambda rows: rows[~same])
    found = together(numbers, target, "all")
    if not same.any():
        return found
    left_out = f"; {int(same.sum())} of {len(rows)} equal by construction, left out"
    verdict = CAVEAT if found.verdict == REPRODUCED else found.verdict
    return replace(found, verdict=verdict, reason=found.reason + left_out)


def _no_drop(table: pd.DataFrame, options: Options) -> pd.DataFrame:
    columns = (options.get("value", "excess"), "ci_low", "ci_high")
    start = options["start"]
    return constant(table, columns, table[start]) if start in table else table


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

    ``start`` is the column of the excess at w = 0: a bound above it is met without
    learning. Rows in which a column of ``requires`` is below its number are outside the
    theorem.
    """
    rows = filled(evidence.rows(file, where), start, *(requires or {}))
    inside, required = _within(rows, requires)
    if inside.empty:
        raise OutsideError(
            f"the theorem's preconditions ({required}) fail in all {len(rows)} rows"
        )
    target, measure = Range.of(at_most=at_most), Reading(value=value, per=per).of
    numbers = grouped(evidence, file, where, each, measure, lambda _: inside)
    found = together(numbers, target, need)
    prefix = f"{len(inside)} of {len(rows)} rows within the preconditions; "
    return replace(found, reason=(prefix if requires else "") + found.reason)


def _within(
    rows: pd.DataFrame, requires: dict[str, float] | None
) -> tuple[pd.DataFrame, str]:
    """The rows that meet preconditions, and the preconditions in words."""
    requires = requires or {}
    for column, least in requires.items():
        rows = rows[rows[column] >= least]
    words = ", ".join(f"{column} >= {least:g}" for column, least in requires.items())
    return rows, words


def _only_curve(table: pd.DataFrame, options: Options) -> pd.DataFrame:
    """Keep the curve at its start throughout; leave the shape unchanged."""
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

    In every group the curve named X is compared with the one named "X, ``shape``". The
    rule judges the exponent in x of their ratio, which must not be negative, over
    points where the excess is below ``learnt`` of its largest.
    """
    target, _ = split(reading)
    rows = filled(evidence.rows(file, where), "x", "mean")
    found: dict[str, Estimate | MissingError] = {}
    for panel, part in rows.groupby(each, sort=False):
        for name, curve in part.groupby("algorithm", sort=False):
            bound = part[part["algorithm"] == f"{name}, {shape}"]
            if len(bound):
                found[f"{panel}, {name}"] = _ratio_exponent(curve, bound, learnt)
    for name in evidence.expected([each, "algorithm"], where):
        found.setdefault(name, AbsentError("no row"))
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
    x, bound = kept["x"].to_numpy(), kept["mean_shape"].to_numpy()
    rate = power(x, bound)[0]
    return Estimate(*power(x, kept["mean"].to_numpy() / bound), rate=rate, less=rate)


# --- counts and choices ---------------------------------------------------------------


@controlled(
    Control(
        "w = 0",
        table=lambda table, options: constant(
            table, (options["hits"], options["found"]), 0
        ),
    )
)
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

    ``found`` counts all findings, ``hits`` the wrong ones; w = 0 finds nothing, so
    nothing wrong either. Without ``runs`` the claim is about the paper's own runs, and
    holds if there is no hit. With ``runs`` the probability of a hit is bounded (Clopper
    and Pearson, 95 %, two-sided) over all runs together. If the bound is above
    ``at_most``, there were too few runs.
    """
    rows = filled(evidence.rows(file, where), hits, found, runs)
    there = {name for name, _ in groups(rows, each)}
    lost = [n for n in evidence.expected(each, where) if n not in there]
    if lost := [*lost, *evidence.lost(rows, where, each)]:
        raise AbsentError(f"no row of {', '.join(lost)}")
    seen = float(rows[hits].sum())
    if not rows[found].sum() > 0:
        return Finding(NOT, "nothing is found at all", Estimate.exactly(seen))
    parts = [(name, part[hits].sum(), part) for name, part in groups(rows, each)]
    if runs is None:
        by = "; ".join(f"{name}: {rounded(float(few))}" for name, few, _ in parts)
        verdict = NOT if seen else REPRODUCED
        return Finding(verdict, f"{rounded(seen)} in all; {by}", Estimate.exactly(seen))
    tried = int(rows[runs].sum())
    if not tried:
        raise MissingError("no runs")
    chance = Estimate(int(seen) / tried, *clopper_pearson(int(seen), tried))
    verdict = NOT if seen else REPRODUCED if chance.high <= at_most else UNDECIDED
    reason = (
        f"{int(seen)} of {tried} runs, Clopper-Pearson [{rounded(chance.low)}, "
        f"{rounded(chance.high)}], bound wanted at most {at_most:g}"
    )
    if each:
        reason += "".join(
            f"; {name}: {int(few)} of {int(part[runs].sum())}"
            for name, few, part in parts
        )
    return Finding(verdict, reason, chance)


@controlled(Control("the last value of the grid", changed(at_edge=True)))
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
    a choice counts; if nothing was learnt, all settings are equally good.
    """
    every = filled(evidence.rows(file, where), value)
    rows = _that_learnt(evidence, every, learnt) if learnt else every
    if at_edge:
        rows = rows.assign(**{value: high})
    margin = 1 + 1e-6
    target = Range.of(at_least=low * margin, at_most=high / margin)
    measure = Reading(value=value).of
    numbers = grouped(evidence, file, where, each, measure, lambda _: rows)
    found = together(numbers, target, need)
    skipped = len(every) - len(rows)
    left_out = f"; {skipped} of {len(every)} left out, where nothing was learnt"
    return replace(found, reason=found.reason + (left_out if skipped else ""))


def _that_learnt(
    evidence: Evidence, rows: pd.DataFrame, learnt: dict[str, Any]
) -> pd.DataFrame:
    other = filled(evidence.table(learnt["file"]), *learnt["keys"], "start")
    starts = other.groupby(learnt["keys"])["start"].first().rename("_start")
    joined = filled(rows.join(starts, on=learnt["keys"]), "mean", "_start")
    kept = joined["mean"] <= learnt["share"] * joined["_start"]
    if not kept.any():
        raise MissingError("nothing was learnt anywhere")
    return rows[kept.to_numpy()]


def _opposite(table: pd.DataFrame, options: Options) -> pd.DataFrame:
    column = options["value"]
    if column not in table:
        return table
    exchanged = table[column].replace({"yes": "no", "no": "yes"})
    return table.assign(**{column: exchanged})


@controlled(
    Control("the two exchanged in every comparison", table=_opposite, contrary=True)
)
def agree(
    evidence: Evidence,
    file: str,
    value: str,
    where: Where = None,
    at_least: float = 0.75,
    requires: dict[str, float] | None = None,
    fewest: int = 4,
    per: list[str] | None = None,
) -> Finding:
    """How often a prediction has the right direction, by a column of yes and no.

    Rows with another value are undecided. Fewer than ``fewest`` decided rows decide
    nothing, nor does an interval (Clopper and Pearson) across a half. Rows that agree
    in the columns ``per`` are one trial, right if all of them are.
    """
    rows = evidence.rows(file, where)
    rows, required = _within(filled(rows, *(requires or {})), requires)
    if rows.empty:
        raise OutsideError(f"the theorem applies to no row ({required})")
    rows = rows[rows[value].isin(["yes", "no"])]
    decided = rows.groupby(per)[value].min() if per else rows[value]  # "no" < "yes"
    right = int((decided == "yes").sum())
    if len(decided) < fewest:
        raise MissingError(
            f"{len(decided)} comparisons are decided, fewer than {fewest}"
        )
    found = Estimate(right / len(decided), *clopper_pearson(right, len(decided)))
    if found.low > 0.5 and found.value >= at_least:
        verdict = REPRODUCED
    else:
        verdict = NOT if found.high < at_least else UNDECIDED
    trials = f"{len(decided)} decided {'trials' if per else 'rows'}"
    return Finding(verdict, f"right in {right} of {trials}", found)


OTHERS = (
    *("w = 0", "passes off by one"),
    *("noise x 0.7", "noise x 1.4", "errors x 0.7", "errors x 1.4"),
)


@controlled(*(Control(name, changed(change=name)) for name in OTHERS))
def pooled(
    evidence: Evidence,
    claim: str,
    column: str,
    problem: str,
    level: float,
    draws: str,
    prints: str = cells.LEAST,
    change: str = "",
) -> Finding:
    """The printed means of a problem, pooled, are those of our noise and solvers.

    ``claim`` is the place of the claim about the table's cells, whose options apply
    here except for ``prints`` and ``draws``. Not reproduced if the pooled ratio differs
    from 1 at ``level``, two-sided, or if the cells are far from their laws. There is a
    caveat if only the ratio differs, within ``CLOSE``. The controls are laws measured
    with other noise, scaled errors, w = 0, and passes off by one.
    """
    drawn = {"prints": prints, "draws": draws}
    how, _, found = _laws(evidence, claim, column, change, drawn)
    group = cells.grouped(found).get(problem)
    if not group:
        raise AbsentError(f"{evidence.path(how['file'])} has no law for {problem}")
    seen = cells.pooled(group)
    close = 1 / CLOSE <= seen.ratio.value <= CLOSE
    differs = seen.probability < (cells.ALONE if change else level)
    verdict = REPRODUCED if not differs else CAVEAT if close else NOT
    chance = cells.apart(group)
    verdict = NOT if chance < level else verdict
    reason = (
        f"printed over law, {len(group)} cells by how they move with noise; "
        f"{p_value(seen.probability)}, of each apart {p_value(chance)}; level {level:g}"
    )
    return Finding(verdict, reason, seen.ratio, "1")


def _laws(
    evidence: Evidence, claim: str, column: str, change: str, drawn: Rows
) -> tuple[Rows, pd.DataFrame, dict[cells.Key, cells.Cell]]:
    """Options, printed table and laws of a column, by the claim about its cells."""
    named = (each for each in evidence.siblings if each.place == claim)
    of = next(each for each in named if each.rule == "cells")
    how = of.options | of.options["cells"][column] | {"column": column} | drawn
    printed = results.published(evidence.config, how["published"])
    found = cells.with_laws(evidence, printed, how, cells.CHANGES.get(change))
    return how, printed, found


FAR = ("w = 0", "noise x 0.5", "noise x 2", "errors x 0.5")


@controlled(*(Control(name, changed(change=name)) for name in FAR))
def in_law(
    evidence: Evidence,
    claim: str,
    column: str,
    prints: str,
    draws: str = "own",
    without: list[list[Any]] | None = None,
    change: str = "",
) -> Finding:
    """All printed means of a table lie in their laws, under one reading of the table.

    ``claim`` is as in ``pooled``; ``without`` names cells to leave out. Reproduced if
    no cell is outside after Holm's correction and all together are no surprise
    (Fisher's method); with a caveat if at most one cell in twenty is outside.
    """
    drawn = {"prints": prints, "draws": draws}
    how, printed, found = _laws(evidence, claim, column, change, drawn)
    rows = evidence.rows(how["file"], drawn)
    if (rows["q0.025"] == rows["q0.975"]).all():
        raise MissingError("laws of no width leave every print outside")
    kept = {k: c for k, c in found.items() if [*k] not in (without or [])}
    if not kept:
        raise AbsentError(f"{evidence.path(how['file'])} has no law of {prints}")
    corrected = cells.holm({key: cell.probability for key, cell in kept.items()})
    outside = [worded(key) for key, each in corrected.items() if each < how["level"]]
    chance = cells.apart([*kept.values()])
    few = (
        REPRODUCED if not outside else CAVEAT if 20 * len(outside) <= len(kept) else NOT
    )
    verdict = few if chance >= cells.ALONE else NOT
    which = f" ({'; '.join(outside[:2])})" if outside else ""
    missing = len(printed) - len(found)
    lost = f"; {missing} cells have no law" if missing else ""
    reason = (
        f"{len(outside)} of {len(kept)} cells outside{which}, all together "
        f"{p_value(chance)}{lost}"
    )
    held = CAVEAT if missing and verdict == REPRODUCED else verdict
    return Finding(held, reason, Estimate.exactly(len(outside)), "0")


TARGETS = ("epsilon", "pure")  # targets that an argument may take


def _mutated(is_of_target: bool) -> Callable[[Options], Options | None]:
    """Twice the target, for arguments that take one; half the claimed value, else."""
    return lambda options: (
        options | {"mutation": 2.0}
        if is_of_target == bool({*TARGETS} & {*options})
        else None
    )


MUTATED = (
    Control("the formula at twice the target", _mutated(True)),
    Control("half the claimed value", _mutated(False)),
)


@controlled(*MUTATED)
def proof(
    evidence: Evidence, argument: str, mutation: float = 1.0, **given: Any
) -> Finding:
    """What the proof's own argument yields, step by step and numerically.

    ``argument`` names a function of the paper's ``proofs.py``, or of
    ``dperm.kinds.proofs``. The worst case over all combinations of the lists in
    ``given`` must not exceed its target. Under a mutation the formula is computed for
    another target than the one it is compared with; without a target, the claimed value
    is divided by the mutation.
    """
    follow = argument_of(evidence.config, "proof", argument)
    return _worst(follow, mutation, given, "the argument yields")


@controlled(*MUTATED)
def printed_noise(
    evidence: Evidence, argument: str, mutation: float = 1.0, **given: Any
) -> Finding:
    """What the noise that a theorem prints costs, by a sound and tight accountant.

    ``argument`` is as in ``proof``, without the ending ``_noise`` of its function.
    """
    follow = argument_of(evidence.config, "printed_noise", argument)
    return _worst(follow, mutation, given, "the printed noise costs")


def _worst(
    follow: Argument, mutation: float, given: dict[str, Any], verb: str
) -> Finding:
    """Finding of the case with the largest ratio of found to claimed."""
    lists = [each if isinstance(each, list) else [each] for each in given.values()]
    cases = [
        dict(zip(given, map(float, values), strict=True))
        for values in itertools.product(*lists)
    ]
    found = [
        follow(
            **{
                key: mutation * value if key in TARGETS else value
                for key, value in case.items()
            }
        )
        for case in cases
    ]
    if any(math.isnan(each.share) for each in found):
        raise MissingError("the argument yields no number in some case")
    at = max(range(len(cases)), key=lambda i: found[i].share)
    worst = found[at]
    share = worst.share * mutation  # the claimed value does not change
    names = ", ".join(f"{key} {value:g}" for key, value in cases[at].items())
    verdict = REPRODUCED if share <= 1 + 1e-9 else NOT
    claimed = worst.claimed / mutation
    reason = (
        f"{verb} at worst {worst.found:.4g} where {claimed:.4g} is claimed "
        f"({names}; {len(cases)} cases): {worst.how}"
    )
    return Finding(verdict, reason, Estimate.exactly(worst.found), f"{claimed:.4g}")


def untestable(evidence: Evidence, why: str) -> Finding:
    """No verdict: ``why`` is the reason that no run can decide."""
    raise MissingError(why)
