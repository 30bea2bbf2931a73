"""Rules that hold a number of every group of rows against a target.

Sizes, exponents, one number over another, and how numbers change along a column.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import pandas as pd

from dperm.present.intervals import power
from dperm.report.evidence import (
    AbsentError,
    Estimate,
    Evidence,
    MissingError,
    Range,
    by_group,
    filled,
    matching,
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
    changed,
    constant,
    copied,
    having,
    narrowed,
    rule,
)

Rows = dict[str, Any]  # that match: column to its value, or several
Part: TypeAlias = pd.DataFrame  # the rows of a group
Read = Callable[..., Estimate]  # of a part, and of which of its rows

# --- how large a number is ------------------------------------------------------------


@rule(NONE, MORE)
def value(part: Part, read: Read) -> Estimate:
    """A number, of every group, lies where the claim says."""
    return read(part)


@rule(LITTLE_NOISE)
def cost(
    part: Part,
    read: Read,
    file: str,
    exact: Rows | None = None,
    proved: str | None = None,
) -> Estimate:
    """What noise costs in epsilon, over its target or not.

    ``exact`` says for which rows the number is the cost; for all others it is the most
    that it can be, which is no breach where it exceeds the target. ``proved`` names the
    column of what some mechanism with these releases costs: there the interval begins.
    """
    found = read(part)
    if proved is not None:
        least = read(part, value=proved).value
    elif exact is None or len(matching(part, exact, file)) == len(part):
        return found
    else:
        least = 0.0
    return Estimate(found.value, min(least, found.low), found.high)


@rule(Control("an accountant without slack", table=copied))
def slack(part: Part, read: Read) -> Estimate:
    """Noise costs less than an accountant says: ``value`` over ``per`` is below 1."""
    return read(part)


@rule(INVERTED, NOTHING_LEARNT)
def lead(part: Part, read: Read, band: str | None = None) -> Estimate:
    """A column that is a ratio of two errors says which of them is the lower.

    ``band`` is the column of the widest ratio of a law to itself: no number inside it
    is decided, so that the interval reaches that far to both sides.
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
    """A share of cells in which a method is ahead of another, as no control may be.

    ``itself`` and ``floor`` name the rows of the other method with other seeds, and of
    what learns nothing.
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
    """An exponent of a power law that a table has, with its interval.

    ``rate``, here and below, is the one that the paper has.
    """
    return replace(read(part), rate=rate)


@rule(NO_SLOPE, reason="exponent less that of the bound there: ", value="exponent")
def rate(part: Part, read: Read, file: str, bound: str) -> Estimate:
    """A measured exponent beside the local one of a bound, logarithms included.

    Judged is the difference; a bound from above allows any that is not positive.
    """
    found, at = read(part), float(filled(part, bound)[bound].iloc[0])
    return Estimate(found.value - at, found.low - at, found.high - at, at, at)


@rule(Control("another algorithm, for which it must grow", narrowed("witness")))
def growth(
    part: Part, read: Read, witness: Rows, rate: float | None = None
) -> Estimate:
    """An exponent that is small, on instances where another algorithm's is not.

    Nothing grows where there is nothing to find, so that a small exponent says
    something only beside a ``witness`` of which it does not hold.
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


@rule(EXCHANGED, NOTHING_LEARNT)
def ratio(part: Part, read: Read, over: Rows, under: Rows) -> Estimate:
    """One number over another, in every group: ahead of, times faster, within a factor.

    ``over`` and ``under`` say which rows; several algorithms stand for the best of them
    where ``best`` is given.
    """
    return read(part, over).over(read(part, under))


@rule(Control("another algorithm, which does make progress", narrowed("rival")))
def stuck(part: Part, read: Read, rival: Rows) -> Estimate:
    """The start over the end is about 1: nothing is learnt.

    ``rival`` says which rows would have to show progress for that to mean anything.
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
    """Two formulas agree, where others than these would not.

    Formulas that agree ``elsewhere`` too are the same by construction.
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
    """How far one falls short of another, over the other's drop from w = 0.

    0 is as good as it, 1 is ``start``, which is no better than nothing learnt.
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
    """Two errors are alike, and either would not be if it were that of w = 0.

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
    ),
    reason=lambda options: (
        f"{'falls' if options['falling'] else 'rises'} along {options['along']}; "
        "largest step against it: "
    ),
    target=lambda options: Range.of(
        below=1.0, nearly=max(math.nextafter(1.0, 0.0), options["slack"])
    ),
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

    Judged is the largest ratio of a value to the one before it, and of the last to the
    first, with its interval: it must be below 1, or below ``slack`` for a caveat.
    """
    expected = evidence.claim.expects.get(along) if evidence.claim else None
    keys = order or expected or sorted(part[along].unique())
    values = [read(_labelled(part, along, key)) for key in keys]
    if len(values) < 2:
        raise MissingError(f"fewer than two values along {along}")
    steps = [*itertools.pairwise(values), (values[0], values[-1])]
    against = [b.over(a) if falling else a.over(b) for a, b in steps]
    return max(against, key=lambda step: step.value)


def _labelled(part: Part, along: str, key: Any) -> pd.DataFrame:
    """Rows of a key, or of a label that has it before a colon."""
    same = part[along] == key
    if not same.any():
        same = part[along].astype(str).str.partition(":")[0] == str(key)
    return part[same]


@rule(NOTHING_LEARNT, reason="spread along {along} over the drop from w = 0: ")
def flat(
    part: Part, read: Read, evidence: Evidence, start: Rows, along: str = "algorithm"
) -> Estimate:
    """Whether a parameter matters: the spread of several numbers over their drop.

    The drop is from the error at w = 0 to the lowest of them, so that curves along
    which nothing was learnt are not flat; they have nothing to say. Highest, lowest and
    the error at w = 0 count as independent.

    ``start``: the number at w = 0, as ``level``, or file, value and key as in
    ``alike``.
    """
    low, high = _extremes(part, read, evidence, along)
    level = start["level"] if "level" in start else _at_start(evidence, start, part)
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

    Raises AbsentError or MissingError if one that the claim expects is missing; if
    there are fewer than two.
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
    part: Part, read: Read, file: str, first: Rows, second: Rows, along: str = "passes"
) -> Estimate:
    """How many times less of something the first needs to be as good as the second.

    The second takes the amount of its lowest value, the first the least amount at which
    it is no higher than that; 0 if it never is. At the interval's ends the first is
    taken at the unlucky end of its intervals and the second at the lucky one, and the
    other way round.
    """
    tables = [filled(matching(part, one, file), along) for one in (first, second)]
    ours, theirs = (
        {float(key): read(rows) for key, rows in table.groupby(along) if key > 0}
        for table in tables  # the start, at no cost, is nobody's achievement
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


# --- what solutions look like ---------------------------------------------------------


def _even(table: pd.DataFrame, options: Options) -> pd.DataFrame:
    return constant(table, ["mean"], 1.0)


def _near_zero(table: pd.DataFrame, options: Options) -> pd.DataFrame:
    first = table.groupby("panel")["x"].transform("min") == table["x"]
    return table.assign(mean=first.astype(float) * 1000)


@rule(
    Control("parameters spread evenly", having("at_most"), _even),
    Control("all parameters near 0", having("at_least"), _near_zero),
    each=REQUIRED,
)
def standing_out(part: Part) -> Estimate:
    """Share of a solution's parameters that are above half the largest one.

    Read off the histogram of Figure 2: x the middle of a bin, ``mean`` its count,
    ``max`` its upper edge.
    """
    bins = filled(part[part["algorithm"] == "|w*|"], "x", "mean", "max")
    if bins.empty or not bins["mean"].sum() > 0:
        raise MissingError("no histogram")
    large = bins["x"] > bins["max"].max() / 2
    return Estimate.exactly(float(bins["mean"][large].sum() / bins["mean"].sum()))
