"""Rules about counts and choices: never, inside the grid, how often right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from dperm.present.intervals import clopper_pearson
from dperm.report.controls import (
    Control,
    controlled,
)
from dperm.report.evidence import (
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
    required,
)
from dperm.report.verdicts import (
    NOT,
    REPRODUCED,
    UNDECIDED,
    Finding,
    Range,
    shown,
)


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
        raise OutsideError(f"the theorem applies to no row ({required(requires)})")
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
