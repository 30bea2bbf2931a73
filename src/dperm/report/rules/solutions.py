"""Rules about what solutions look like."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dperm.report.controls import Control, controlled
from dperm.report.evidence import Estimate, Evidence, MissingError
from dperm.report.groups import by_group, together
from dperm.report.rules.shared import split
from dperm.report.verdicts import Finding


def _balanced(table: pd.DataFrame, options: dict[str, Any]) -> pd.DataFrame:
    return table.assign(mean=1.0) if "mean" in table else table


def _imbalanced(table: pd.DataFrame, options: dict[str, Any]) -> pd.DataFrame:
    first = table.groupby("panel")["x"].transform("min") == table["x"]
    return table.assign(mean=first.astype(float) * 1000)


@controlled(
    Control(
        "parameters spread evenly",
        lambda given: given if "at_most" in given else None,
        _balanced,
    ),
    Control(
        "all parameters near 0",
        lambda given: given if "at_least" in given else None,
        _imbalanced,
    ),
)
def standing_out(
    evidence: Evidence,
    file: str,
    each: str,
    where: dict[str, Any] | None = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """Share of a solution's parameters that are above half the largest one.

    Read off the histogram of Figure 2: x the middle of a bin, ``mean`` its count,
    ``max`` its upper edge.
    """
    target, _ = split(reading)

    def measure(part: pd.DataFrame) -> Estimate:
        bins = part.dropna(subset=["x", "mean", "max"])
        bins = bins[bins["algorithm"] == "|w*|"]
        if bins.empty or not bins["mean"].sum() > 0:
            raise MissingError("no histogram")
        large = bins["x"] > bins["max"].max() / 2
        return Estimate.exactly(float(bins["mean"][large].sum() / bins["mean"].sum()))

    return together(by_group(evidence.rows(file, where), each, measure), target, need)
