"""Verdicts for a reader: counts by paper, and every claim with its reason."""

from __future__ import annotations

from typing import Any

import pandas as pd
from tabulate import tabulate

from dperm.report.evidence import Estimate
from dperm.report.verdicts import VERDICTS, interval


def scorecard(data: pd.DataFrame) -> pd.DataFrame:
    """Number of claims by paper, kind (cells, sentences) and verdict."""
    kind = data["rule"].str.startswith("cells").map({True: "cells", False: "sentences"})
    counts = data.groupby([data["paper"], kind.rename("of")])["verdict"].value_counts()
    wide = counts.unstack(fill_value=0).reindex(columns=list(VERDICTS), fill_value=0)
    wide["all"] = wide.sum(axis=1)
    return wide.reset_index().rename_axis(columns=None)


def summary(data: pd.DataFrame) -> str:
    """The scorecard in lines."""
    return tabulate(scorecard(data), headers="keys", tablefmt="pipe", showindex=False)


def markdown(data: pd.DataFrame) -> str:
    """The scorecard, the sentences of every paper, then the cells."""
    is_cell = data["rule"].str.startswith("cells")
    parts = ["# Claims and verdicts", summary(data)]
    for paper, group in data.groupby("paper", sort=False):
        parts.append(f"## {paper}")
        for title, rows in (
            ("Sentences", group[~is_cell[group.index]]),
            ("Cells of tables", group[is_cell[group.index]]),
        ):
            if len(rows):
                parts += [f"### {title}", _listed(rows)]
    return "\n\n".join(parts) + "\n"


def _listed(rows: pd.DataFrame) -> str:
    lines = [
        {"place": row["place"], "claim": row["claim"], "published": row["published"],
         "reproduced": _interval(row), "verdict": row["verdict"],
         "reason": str(row["reason"]).replace("|", "/")}
        for row in rows.to_dict("records")
    ]  # fmt: skip
    return tabulate(pd.DataFrame(lines), headers="keys", tablefmt="pipe",
                    showindex=False, disable_numparse=True)  # fmt: skip


def _interval(row: dict[str, Any]) -> str:
    if pd.isna(row["reproduced"]):
        return ""
    found = Estimate(*(float(row[key]) for key in ("reproduced", "ci_low", "ci_high")))
    return interval(found)
