"""Rules about bounds: what is measured below them, and one beside another."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dperm.report.controls import (
    Control,
    controlled,
)
from dperm.report.evidence import (
    Evidence,
    Reading,
    matching,
)
from dperm.report.groups import by_group, together
from dperm.report.rules.shared import (
    Each,
    OutsideError,
    Where,
    interval_columns,
    required,
)
from dperm.report.verdicts import (
    CAVEAT,
    REPRODUCED,
    Finding,
    Range,
)


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


def _no_drop(table: pd.DataFrame, options: dict[str, Any]) -> pd.DataFrame:
    if options["start"] not in table:
        return table
    columns = [options.get("value", "excess"), *interval_columns(table)]
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
            f"the theorem's preconditions ({required(requires)}) fail in all "
            f"{len(rows)} rows"
        )
    target, reader = Range.of(at_most=at_most), Reading(value=value, per=per)
    found = together(by_group(rows[~outside], each, reader.of), target, need)
    inside = f"{int((~outside).sum())} of {len(rows)} rows within the preconditions; "
    prefix = inside if requires else ""
    return Finding(found.verdict, prefix + found.reason, found.reproduced)
