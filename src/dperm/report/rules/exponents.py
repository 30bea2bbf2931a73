"""Rules about exponents of power laws that tables have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from dperm.report.controls import (
    Control,
    controlled,
)
from dperm.report.evidence import (
    Estimate,
    Evidence,
    matching,
)
from dperm.report.groups import by_group, together
from dperm.report.rules.shared import (
    Each,
    Where,
    interval_columns,
    judged_value,
    split,
)
from dperm.report.verdicts import (
    Finding,
)


def _no_slope(table: pd.DataFrame, options: dict[str, Any]) -> pd.DataFrame:
    judged = options.get("value", "exponent")
    ends = [f"{judged}_low", f"{judged}_high", *interval_columns(table)]
    columns = [each for each in (judged, *ends) if each in table]
    return table.assign(**dict.fromkeys(columns, 0.0))


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
    return judged_value(evidence, file, where, each, need, reading)


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
    return judged_value(evidence, file, where, each, need, reading)
