"""Claims in words and tables for readers, from the rows of ``claims.csv``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pandas as pd

from dperm.judge.judge import VERDICTS
from dperm.judge.number import Number
from dperm.present.tables import plain

Row = dict[str, Any]  # of claims.csv
KINDS = {  # kinds of a claim
    "sentence": "a sentence of the paper",
    "proof": "a proof or a formula, followed step by step or by runs",
    "privacy": "what printed noise costs",
    "cells": "the numbers of a printed table",
    "variant": "our variant of a sentence: another reading, calibration or robustness",
}
STATED = ("sentence", "proof", "privacy")  # kinds of statements of a paper
HEADLINE = (*STATED, "cells")  # the paper's own claims
TEXTS = ("section", "tables", "number", "accepted", "reason", "missing", "authors",
         "cause", "note", "set")  # fmt: skip
_FIGURE = re.compile(r"\bFigures? (\d+)")
_LATEX = {
    r"\epsilon": "ε",
    r"\varepsilon": "ε",
    r"\eta": "η",
    r"\tau": "τ",
    r"\kappa": "κ",
    r"\alpha": "α",
    r"\beta": "β",
    r"\lambda": "λ",
    r"\nabla": "∇",
    r"\|": "‖",
    r"\,": " ",
    r"\ ": " ",
    r"\sqrt": "√",
    r"\times": "×",
    r"\leq": "≤",
    r"\geq": "≥",
    r"\ast": "*",
}


def without_latex(text: str) -> str:
    """A label for a reader, without LaTeX."""
    for latex, letter in sorted(_LATEX.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(latex, letter)
    return re.sub(r"[${}]", "", text.replace("_{", "_"))


def complete(data: pd.DataFrame) -> pd.DataFrame:
    """Make empty cells of texts empty strings."""
    return data.fillna(dict.fromkeys(TEXTS, "")).astype(dict.fromkeys(TEXTS, str))


def found(row: Row) -> str:
    """The number found, with its interval, as text; empty without a number."""
    if pd.isna(row["reproduced"]):
        return ""
    if not pd.isna(row["cells"]):
        return f"{row['inside']:.0f} of {row['cells']:.0f}"
    value, low, high = (float(row[key]) for key in ("reproduced", "ci_low", "ci_high"))
    return str(Number(value, low, high))


def files(row: Row) -> list[str]:
    """Tables and data of figures from which a claim was judged."""
    return [name for name in row["tables"].split("; ") if name]


def figures(row: Row) -> list[str]:
    """Names of the figures that a claim names, then of those it was judged from."""
    named = [f"figure{number}" for number in _FIGURE.findall(row["place"])]
    read = (file for file in files(row) if file.startswith("figures/"))
    return list(dict.fromkeys(named + [re.sub(r".*/|\.csv$", "", one) for one in read]))


def majors(data: pd.DataFrame) -> list[Row]:
    """The major claims of a paper, named C1, C2 and so on."""
    rows = data[data["major"]].to_dict("records")
    return [{**row, "name": f"C{place}"} for place, row in enumerate(rows, 1)]


# --- counts ---------------------------------------------------------------------------


def counted(values: Iterable[str]) -> dict[str, int]:
    """Number of claims with each verdict, from best to worst."""
    counts = Counter(map(str, values))
    return {str(v): counts[v] for v in VERDICTS if counts[v]}


def in_words(verdicts: Iterable[str]) -> str:
    """Numbers of the verdicts, in words."""
    return ", ".join(
        f"{count} {verdict}" for verdict, count in counted(verdicts).items()
    )


def scorecard(data: pd.DataFrame, by: str) -> pd.DataFrame:
    """Number of claims with each verdict, one row per value of a column."""
    wide = pd.crosstab(data[by], data["verdict"].astype(str))
    order = [str(verdict) for verdict in VERDICTS]
    return wide.reindex(index=data[by].unique(), columns=order, fill_value=0)


def printed(data: pd.DataFrame) -> str:
    """How many printed cells are as here: "64 of 67"; empty without any."""
    cells = data.dropna(subset=["cells"])
    if cells.empty:
        return ""
    return f"{cells['inside'].sum():.0f} of {cells['cells'].sum():.0f}"


# --- Markdown -------------------------------------------------------------------------


def grid(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table of Markdown, without blanks for alignment."""
    lines = [header, ["---"] * len(list(header)), *rows]
    texts = ([plain(cell).replace("|", "/") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in texts)


def summary(data: pd.DataFrame) -> str:
    """The scorecard of the papers' statements, and their printed cells."""
    stated = data[data["kind"].isin(STATED)]
    card = scorecard(stated, "paper")
    lines = (
        [paper, *card.loc[paper], printed(data[data["paper"] == paper])]
        for paper in card.index
    )
    return grid(["paper", *card.columns, "printed cells"], lines)


def markdown(data: pd.DataFrame) -> str:
    """The scorecard, then one line per claim of each paper, major claims first."""
    data = complete(data)
    kinds = "; ".join(f"*{kind}*, {text}" for kind, text in KINDS.items())
    parts = [
        "# Claims and verdicts",
        f"Kinds: {kinds}. `claims.csv` has the reasons, by the ids; an id ends in what "
        "stands here. The scorecard counts sentences, proofs and privacy; of printed "
        "cells it says how many lie where our runs print.",
        summary(data),
    ]
    order = list(KINDS)
    for paper, group in data.groupby("paper", sort=False):
        names = {row["id"]: row["name"] for row in majors(group)}
        rows = group.to_dict("records")
        rows.sort(key=lambda row: (not row["major"], order.index(row["kind"])))
        lines = [
            [
                names.get(row["id"], ""),
                *(row[key] for key in ("kind", "place", "claim", "verdict")),
                found(row),
                row["id"].rpartition("-")[2],
            ]
            for row in rows
        ]
        header = ["", "kind", "place", "claim", "verdict", "found", "id"]
        parts += [f"## {paper}", grid(header, lines)]
    return "\n\n".join(parts) + "\n"
