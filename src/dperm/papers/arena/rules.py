"""A rule of the arena's own: a lead over another method that takes learning."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dperm.report.evidence import Estimate
from dperm.report.rules import Control, narrowed, rule
from dperm.report.rules.measures import Read


@rule(
    Control("the other method against itself", narrowed("itself")),
    Control("w = 0 or the mean", narrowed("floor")),
)
def leads(
    part: pd.DataFrame, read: Read, itself: dict[str, Any], floor: dict[str, Any]
) -> Estimate:
    """A share of cells, which neither of two controls may have.

    ``itself`` and ``floor`` name the rows of the other method with other seeds, and of
    what learns nothing.
    """
    return read(part)
