"""Rules about how large a number is: measured, of noise, or a ratio in a column."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dperm.report.controls import (
    INVERTED,
    LITTLE_NOISE,
    MORE,
    NONE,
    NOTHING_LEARNT,
    Control,
    controlled,
)
from dperm.report.evidence import (
    Estimate,
    Evidence,
    Reading,
    matching,
)
from dperm.report.groups import by_group, together
from dperm.report.rules.shared import (
    Each,
    Where,
    judged_value,
    split,
)
from dperm.report.verdicts import (
    Finding,
)


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
    return judged_value(evidence, file, where, each, need, reading)


@controlled(LITTLE_NOISE)
def cost(
    evidence: Evidence,
    file: str,
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    exact: dict[str, Any] | None = None,
    proved: str | None = None,
    **reading: Any,
) -> Finding:
    """What noise costs in epsilon, over its target or not.

    ``exact`` says for which rows the number is the cost; for all others it is the most
    that it can be, which is no breach where it exceeds the target. ``proved`` names the
    column of what some mechanism with these releases costs: there the interval begins.
    """
    target, reader = split(reading)
    lower = None if proved is None else Reading(**{**reading, "value": proved})

    def measure(part: pd.DataFrame) -> Estimate:
        found = reader.of(part)
        if lower is not None:
            low = min(lower.of(part).value, found.low)
            return Estimate(found.value, low, found.high)
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
    return judged_value(evidence, file, where, each, need, reading)


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
    return judged_value(evidence, file, where, each, need, reading)
