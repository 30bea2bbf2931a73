"""Verdicts for a reader: counts by paper and kind, and every claim with its reason."""

from __future__ import annotations

from typing import Any

import pandas as pd
from tabulate import tabulate

from dperm.report.claims import HEADLINE, KINDS
from dperm.report.evidence import Estimate
from dperm.report.verdicts import VERDICTS, interval

TITLES = {
    "sentence": "Sentences of the paper",
    "cell": "Cells of tables",
    "variant": "Our variants",
    "proof": "Proofs and formulas",
    "privacy": "Privacy statements",
    "other": "Not counted: about other papers, or nothing a run can test",
}


def scorecard(data: pd.DataFrame) -> pd.DataFrame:
    """Number of claims by paper, kind and verdict; what is not counted is left out."""
    data = data[data["kind"] != "other"]
    counts = data.groupby(["paper", data["kind"].rename("of")])["verdict"]
    wide = counts.value_counts().unstack(fill_value=0)
    wide = wide.reindex(columns=list(VERDICTS), fill_value=0)
    wide["all"] = wide.sum(axis=1)
    order = list(KINDS)
    return wide.reset_index().sort_values(
        ["paper", "of"], key=lambda column: column.map(
            lambda each: f"{order.index(each)}" if each in order else each)
    ).reset_index(drop=True).rename_axis(columns=None)  # fmt: skip


def headline(data: pd.DataFrame) -> pd.DataFrame:
    """The scorecard of the papers' own sentences and cells."""
    card = scorecard(data)
    return card[card["of"].isin(HEADLINE)].reset_index(drop=True)


def summary(data: pd.DataFrame) -> str:
    """The scorecard in lines: the papers' own sentences and cells, then the rest."""
    card = scorecard(data)
    own = card["of"].isin(HEADLINE)
    parts = [_grid(part) for part in (card[own], card[~own]) if len(part)]
    return "\n\n".join(parts)


def markdown(data: pd.DataFrame, powers: pd.DataFrame, wrong: pd.DataFrame) -> str:
    """The scorecard, then a page a paper: ten claims first, then all of each kind."""
    parts = ["# Claims and verdicts", _introduction(), summary(data)]
    for paper, group in data.groupby("paper", sort=False):
        parts.append(f"## {paper}")
        if group["first"].any():
            parts += ["### First", _listed(group[group["first"]])]
        if len(powers) and (powers["paper"] == paper).any():
            own = wrong[wrong["paper"] == paper].drop(columns="paper")
            parts += ["### What the printed tables would notice",
                      _powers(powers[powers["paper"] == paper]),
                      _grid(own)]  # fmt: skip
        for kind, title in TITLES.items():
            rows = group[group["kind"] == kind]
            if len(rows):
                parts += [f"### {title}", _listed(rows)]
    return "\n\n".join(parts) + "\n"


def _introduction() -> str:
    kinds = "; ".join(f"*{kind}*, {text}" for kind, text in KINDS.items())
    return (
        f"Kinds: {kinds}. What holds was also put to controls that must fail; where "
        "one of them holds too, the claim *says nothing* here. Intervals are of 95 %; "
        "one that crosses a threshold leaves a claim *undecided*."
    )


def _grid(data: pd.DataFrame) -> str:
    return tabulate(data, headers="keys", tablefmt="pipe", showindex=False)


def _powers(rows: pd.DataFrame) -> str:
    """A line a table: the printed pooled ratio, and how often other noise is seen."""
    lines = []
    for (table, draws), group in rows.groupby(["table", "draws"], sort=False):
        line = {"table": table, "draws": draws}
        for row in group.to_dict("records"):
            if row["noise_factor"] == 1:
                line["printed over law, pooled"] = _interval(
                    {"reproduced": row["pooled_ratio"], **row}
                )
            elif not pd.isna(row["noticed"]):
                line[f"noise x {row['noise_factor']:g}"] = f"{row['noticed']:.0%}"
        lines.append(line)
    return _grid(pd.DataFrame(lines).fillna(""))


def _listed(rows: pd.DataFrame) -> str:
    lines = [
        {"place": row["place"], "claim": row["claim"], "published": row["published"],
         "reproduced": _interval(row), "verdict": row["verdict"],
         "control": _text(row["control"]), "reason": _text(row["reason"])}
        for row in rows.to_dict("records")
    ]  # fmt: skip
    return tabulate(pd.DataFrame(lines), headers="keys", tablefmt="pipe",
                    showindex=False, disable_numparse=True)  # fmt: skip


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value).replace("|", "/")


def _interval(row: dict[str, Any]) -> str:
    if pd.isna(row["reproduced"]):
        return ""
    found = Estimate(*(float(row[key]) for key in ("reproduced", "ci_low", "ci_high")))
    return interval(found)
