"""Verdicts for a reader: counts by paper and kind, and every claim with its reason."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pandas as pd
from tabulate import tabulate

from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment.locate import ConfigError
from dperm.report.claims import HEADLINE, KINDS
from dperm.report.entries import number
from dperm.report.verdicts import VERDICTS

log = logging.getLogger(__name__)

TITLES = {
    "sentence": "Sentences of the paper",
    "cell": "Cells of tables",
    "variant": "Our variants",
    "proof": "Proofs and formulas",
    "privacy": "Privacy statements",
    "other": "Not counted: about other papers, or nothing a run can test",
}

README = Path("README.md")
BEGIN = "<!-- scorecard: written by `dperm readme`"  # and the figures, "with a/b, c/d"
END = "<!-- end of scorecard -->"
_MARK = re.compile(re.escape(BEGIN) + r"(?: with ([\w/-]+(?:, [\w/-]+)*))? -->")


def scorecard(data: pd.DataFrame) -> pd.DataFrame:
    """Number of claims by paper, kind and verdict; what is not counted is left out."""
    data = data[data["kind"] != "other"]
    counts = data.groupby(["paper", data["kind"].rename("of")])["verdict"]
    wide = counts.value_counts().unstack(fill_value=0)
    wide = wide.reindex(columns=list(VERDICTS), fill_value=0)
    wide["all"] = wide.sum(axis=1)
    order = list(KINDS)
    return (
        wide.reset_index()
        .sort_values(
            ["paper", "of"],
            key=lambda column: column.map(
                lambda each: f"{order.index(each)}" if each in order else each
            ),
        )
        .reset_index(drop=True)
        .rename_axis(columns=None)
    )


def summary(data: pd.DataFrame) -> str:
    """The scorecard in lines: the papers' own sentences and cells, then the rest."""
    card = scorecard(data)
    own = card["of"].isin(HEADLINE)
    parts = [_grid(part) for part in (card[own], card[~own]) if len(part)]
    return "\n\n".join(parts)


def markdown(data: pd.DataFrame, powers: pd.DataFrame, wrong: pd.DataFrame) -> str:
    """The scorecard, then a page a paper: ten claims first, then all of each kind."""
    kinds = "; ".join(f"*{kind}*, {text}" for kind, text in KINDS.items())
    introduction = (
        f"Kinds: {kinds}. What holds was also put to controls that must fail; where "
        "one of them holds too, the claim *says nothing* here. Intervals are of 95 %; "
        "one that crosses a threshold leaves a claim *undecided*."
    )
    parts = ["# Claims and verdicts", introduction, summary(data)]
    for paper, group in data.groupby("paper", sort=False):
        parts.append(f"## {paper}")
        if group["first"].any():
            parts += ["### First", _listed(group[group["first"]])]
        if len(powers) and (powers["paper"] == paper).any():
            own = wrong[wrong["paper"] == paper].drop(columns="paper")
            parts += [
                "### What the printed tables would notice",
                _powers(powers[powers["paper"] == paper]),
                _grid(own),
            ]
        for kind, title in TITLES.items():
            rows = group[group["kind"] == kind]
            if len(rows):
                parts += [f"### {title}", _listed(rows)]
    return "\n\n".join(parts) + "\n"


def _grid(data: pd.DataFrame) -> str:
    return tabulate(data, headers="keys", tablefmt="pipe", showindex=False)


def _powers(rows: pd.DataFrame) -> str:
    """A line a table: the printed pooled ratio, and how often other noise is seen."""
    lines = []
    for (table, draws), group in rows.groupby(["table", "draws"], sort=False):
        line = {"table": table, "draws": draws}
        for row in group.to_dict("records"):
            if row["noise_factor"] == 1:
                pooled = {"reproduced": row["pooled_ratio"], **row}
                line["printed over law, pooled"] = number(pooled)
            elif not pd.isna(row["noticed"]):
                line[f"noise x {row['noise_factor']:g}"] = f"{row['noticed']:.0%}"
        lines.append(line)
    return _grid(pd.DataFrame(lines).fillna(""))


def _listed(rows: pd.DataFrame) -> str:
    lines = [
        {
            "place": row["place"],
            "claim": row["claim"],
            "published": row["published"],
            "reproduced": number(row),
            "verdict": row["verdict"],
            "control": _text(row["control"]),
            "reason": _text(row["reason"]),
        }
        for row in rows.to_dict("records")
    ]
    return tabulate(
        pd.DataFrame(lines),
        headers="keys",
        tablefmt="pipe",
        showindex=False,
        disable_numparse=True,
    )


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value).replace("|", "/")


# --- README.md ------------------------------------------------------------------------


def readme(config: schema.Config) -> Path:
    """Rewrite what stands between the two marks; nothing else is touched.

    The first mark names the figures that are shown: ``with dpgcd/figure1, ...``.

    Raises
    ------
    ConfigError
        If README.md does not have both marks, or there are no claims yet.
    """
    claims = plan.results_folder(config, "claims.csv")
    if not claims.is_file():
        raise ConfigError(f"{claims} is not there; run `dperm claims` first")
    text = README.read_text(encoding="utf-8")
    marks = list(_MARK.finditer(text))
    if len(marks) != 1 or text.count(END) != 1:
        raise ConfigError(
            f"{README}: expected the lines '{BEGIN} -->' and {END!r}, once"
        )
    before, after = text[: marks[0].end()], text[text.index(END) :]
    names = marks[0][1].split(", ") if marks[0][1] else []
    block = _block(config, pd.read_csv(claims), names)
    store.write_text(README, f"{before}\n\n{block}\n\n{after}")
    log.info("%s", README)
    return README


def _block(config: schema.Config, claims: pd.DataFrame, figures: list[str]) -> str:
    folder = plan.results_folder(config).as_posix()
    parts = [
        summary(claims),
        f"[Every claim with its reason]({folder}/claims.md) and "
        f"[the report]({folder}/report/index.html), one page that works offline.",
    ]
    for name in figures:
        path = plan.figures_folder(config, f"{name}.png")
        if path.is_file():
            parts.append(f"![{name}]({path.as_posix()})")
    return "\n\n".join(parts)
