"""What rules have in common: targets, readings, and the error at w = 0."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dperm.report.evidence import Estimate, Evidence, Reading
from dperm.report.groups import by_group, together
from dperm.report.verdicts import Finding, Range

Where = dict[str, Any] | None
Each = str | list[str] | None
ENDS = ("at_least", "at_most", "nearly", "above", "below")


def split(given: dict[str, Any]) -> tuple[Range, Reading]:
    """The target and the reading among a rule's options."""
    target = Range.of(**{key: given.pop(key) for key in ENDS if key in given})
    return target, Reading(**given)


class OutsideError(RuntimeError):
    """A theorem that applies to no row of the evidence."""


def error_at_start(
    evidence: Evidence, start: dict[str, str], part: pd.DataFrame
) -> Estimate:
    """The error at w = 0 that belongs to rows of one group."""
    key = start["key"]
    rows = evidence.rows(start["file"], {key: part[key].iloc[0]})
    return Estimate.exactly(float(rows[start["value"]].iloc[0]))


def judged_value(
    evidence: Evidence, file: str, where: Where, each: Each, need: Any, given: Any
) -> Finding:
    """A finding on what is read off every group, against the target in ``given``."""
    target, reader = split(given)
    return together(by_group(evidence.rows(file, where), each, reader.of), target, need)


def interval_columns(table: pd.DataFrame) -> list[str]:
    """The columns of an interval that a table has."""
    return [each for each in ("ci_low", "ci_high") if each in table]


def required(requires: dict[str, float] | None) -> str:
    """Preconditions in words."""
    return ", ".join(f"{key} >= {least:g}" for key, least in (requires or {}).items())
