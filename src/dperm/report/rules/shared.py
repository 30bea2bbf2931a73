"""What rules have in common: targets, readings, and the error at w = 0."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dperm.report.evidence import Estimate, Evidence, Reading
from dperm.report.verdicts import Range

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
