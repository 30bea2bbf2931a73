"""Rules that are more than a number of every group against a target.

Bounds within their preconditions, curves beside a shape, counts and choices, all cells
of a printed table together, and what privacy proofs yield.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

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
    AbsentError,
    Each,
    Estimate,
    Evidence,
    Finding,
    MissingError,
    Range,
    Reading,
    Where,
    filled,
    groups,
    matching,
    rounded,
    together,
    worded,
)
from dperm.report.rules import (
    NOTHING_LEARNT,
    Control,
    Options,
    OutsideError,
    argument_of,
    changed,
    constant,
    controlled,
    copied,
    grouped,
    split,
)

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
    """One bound is no larger than another, where they are not the same by construction.

    Rows in which both agree to nine digits are left out: an equality by construction
    bears out nothing.
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

    ``start`` is the column of the excess at w = 0: a bound above it is met by doing
    nothing. Rows where a column of ``requires`` is below its number lie outside the
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
    """The rows that meet preconditions, and these in words."""
    requires = requires or {}
    for column, least in requires.items():
        rows = rows[rows[column] >= least]
    words = ", ".join(f"{column} >= {least:g}" for column, least in requires.items())
    return rows, words


def _only_curve(table: pd.DataFrame, options: Options) -> pd.DataFrame:
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


@controlled(
    Control(
        "the two files exchanged",
        lambda options: options | {"files": options["files"][::-1]},
    ),
    NOTHING_LEARNT,
)
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
            top, bottom = (matching(part, one, file) for one in (over, under))
            return reader.of(top).over(reader.of(bottom))

        return grouped(evidence, file, where, each, measure)

    first, second = (ratios(file) for file in files)
    for name, one in first.items():
        other = second.get(name, AbsentError(f"{files[1]} has no {name}"))
        if isinstance(one, Estimate):
            first[name] = one.over(other) if isinstance(other, Estimate) else other
    return together(first, target, need)


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

    ``found`` counts what they find; w = 0 finds nothing, and no wrong thing either.
    Without ``runs`` the paper's own runs are meant, and no hit is enough; with it the
    chance of one is bounded (Clopper and Pearson, 95 %, two-sided) over all runs
    together, and where the bound is above ``at_most`` there were too few runs.
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
    a choice counts; where nothing was learnt all settings are as good.
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
    joined = rows.join(starts, on=learnt["keys"])
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
    rows, required = _within(filled(rows, *(requires or {})), requires)
    if rows.empty:
        raise OutsideError(f"the theorem applies to no row ({required})")
    decided = rows[value][rows[value].isin(["yes", "no"])]
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
    return Finding(verdict, f"right in {right} of {len(decided)} decided rows", found)


ALONE = 0.05  # of a control, which is one test
OTHERS = ("w = 0", "noise x 0.7", "noise x 1.4", "errors x 0.7", "errors x 1.4")


@controlled(*(Control(name, changed(change=name)) for name in OTHERS))
def pooled(
    evidence: Evidence,
    published: str,
    file: str,
    keys: list[str],
    column: str,
    problem: str,
    spread: float,
    level: float,
    draws: str,
    decimals: int | None = None,
    digits: int | None = None,
    redrawn: dict[str, float] | None = None,
    prints: str = cells.LEAST,
    change: str = "",
) -> Finding:
    """The printed means of a problem, pooled, are those of our noise and solvers.

    Not reproduced where the pooled ratio differs from 1 at ``level``, two-sided, or the
    cells are apart from their laws; with a caveat where only the ratio differs, within
    ``CLOSE``. The controls are other noise, as measured.
    """
    how: dict[str, Any] = {
        "file": file,
        "keys": keys,
        "column": column,
        "decimals": decimals,
        "digits": digits,
        "spread": spread,
        "redrawn": redrawn or {},
        "draws": draws,
        "prints": prints,
    }
    printed = results.published(evidence.config, published)
    found = cells.with_laws(evidence, printed, how, cells.CHANGES.get(change))
    group = cells.grouped(found).get(problem)
    if not group:
        raise AbsentError(f"{evidence.path(file)} has no law for {problem}")
    seen = cells.pooled(group)
    close = 1 / CLOSE <= seen.ratio.value <= CLOSE
    differs = seen.probability < (ALONE if change else level)
    verdict = REPRODUCED if not differs else CAVEAT if close else NOT
    chance = cells.apart(group)
    verdict = NOT if chance < level else verdict
    reason = (
        f"printed over law, {len(group)} cells by how they move with noise; "
        f"p = {seen.probability:.2g}, of each apart {chance:.2g}; level {level:g}"
    )
    return Finding(verdict, reason, seen.ratio, "1")


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
    """All printed means of a table lie in their laws, under one reading of the print.

    ``claim`` is the place of the claim about its cells, whose options hold here, but
    for ``prints`` and ``draws``; ``without`` names cells that are left out. Reproduced
    where no cell is outside after Holm's correction and all together are no surprise
    (Fisher's method); with a caveat where one of twenty is.
    """
    named = (each for each in evidence.siblings if each.place == claim)
    of = next(each for each in named if each.rule == "cells")
    how = of.options | of.options["cells"][column] | {"column": column}
    how |= {"prints": prints, "draws": draws}
    rows = evidence.rows(how["file"], {"prints": prints, "draws": draws})
    if (rows["q0.025"] == rows["q0.975"]).all():
        raise MissingError("laws of no width leave every print outside")
    printed = results.published(evidence.config, how["published"])
    found = cells.with_laws(evidence, printed, how, cells.CHANGES.get(change))
    kept = {k: c for k, c in found.items() if [*k] not in (without or [])}
    if not kept:
        raise AbsentError(f"{evidence.path(how['file'])} has no law of {prints}")
    corrected = cells.holm({key: cell.probability for key, cell in kept.items()})
    outside = [worded(key) for key, each in corrected.items() if each < how["level"]]
    chance = cells.apart([*kept.values()])
    few = (
        REPRODUCED if not outside else CAVEAT if 20 * len(outside) <= len(kept) else NOT
    )
    verdict = few if chance >= ALONE else NOT
    which = f" ({'; '.join(outside[:2])})" if outside else ""
    missing = len(printed) - len(found)
    lost = f"; {missing} cells have no law" if missing else ""
    reason = (
        f"{len(outside)} of {len(kept)} cells outside{which}, all together p = "
        f"{chance:.2g}{lost}"
    )
    held = CAVEAT if missing and verdict == REPRODUCED else verdict
    return Finding(held, reason, Estimate.exactly(len(outside)), "0")


TARGETS = ("epsilon", "pure")  # what an argument may be told to reach
MUTATED = Control("the formula at twice the target", changed(mutation=2.0))


@controlled(MUTATED)
def proof(
    evidence: Evidence, argument: str, mutation: float = 1.0, **given: Any
) -> Finding:
    """What the proof's own argument yields, step by step and numerically.

    ``argument`` names a function of the paper's ``proofs.py``, or of
    ``dperm.kinds.proofs``; the worst case over ``given``, whose lists are crossed, must
    not exceed its target. Under a mutation the formula is made for another target than
    it is held to.
    """
    follow = argument_of(evidence.config, "proof", argument)
    return _worst(follow, mutation, given, "the argument yields")


@controlled(MUTATED)
def printed_noise(
    evidence: Evidence, argument: str, mutation: float = 1.0, **given: Any
) -> Finding:
    """What the noise that a theorem prints costs, by a sound and tight accountant.

    ``argument`` as in ``proof``, without the ending ``_noise`` of its function.
    """
    follow = argument_of(evidence.config, "printed_noise", argument)
    return _worst(follow, mutation, given, "the printed noise costs")


def _worst(
    follow: Argument, mutation: float, given: dict[str, Any], verb: str
) -> Finding:
    """The case in which most is found for what is claimed, over all combinations."""
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
    at = max(range(len(cases)), key=lambda i: found[i].share)
    worst = found[at]
    share = worst.share * mutation  # what is claimed stays what it was
    names = ", ".join(f"{key} {value:g}" for key, value in cases[at].items())
    verdict = REPRODUCED if share <= 1 + 1e-9 else NOT
    claimed = worst.claimed / mutation
    reason = (
        f"{verb} at worst {worst.found:.4g} where {claimed:.4g} is claimed "
        f"({names}; {len(cases)} cases): {worst.how}"
    )
    return Finding(verdict, reason, Estimate.exactly(worst.found), f"{claimed:.4g}")


def untestable(evidence: Evidence, why: str) -> Finding:
    """No verdict: ``why`` says what keeps any run from deciding."""
    raise MissingError(why)
