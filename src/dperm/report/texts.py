"""Claims in words for readers, from the rows of ``claims.csv``."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, select_autoescape

from dperm.judge.judge import HOLDS, VERDICTS
from dperm.judge.number import Number
from dperm.present.tables import plain

FILES = Path(__file__).with_name("page_files")
Row = dict[str, Any]  # of claims.csv
KINDS = {  # kinds of a claim
    "sentence": "a sentence of the paper",
    "proof": "a proof or a formula, followed step by step or by runs",
    "privacy": "what printed noise costs",
    "cells": "the numbers of a printed table",
    "variant": "our variant of a sentence: another reading, calibration or robustness",
}
STATED = ("sentence", "proof", "privacy")  # kinds of what a paper says
MOST = 10  # major claims of a paper that a reader is shown
TEXTS = ("section", "tables", "number", "accepted", "reason", "missing", "authors",
         "cause", "note", "set")  # fmt: skip
_FIGURE = re.compile(r"\bFigures? (\d+)")


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
    read = [Path(one).stem for one in files(row) if one.startswith("figures/")]
    return list(dict.fromkeys(named + read))


def majors(data: pd.DataFrame) -> list[Row]:
    """The major claims of a paper, named C1, C2 and so on, ten at most."""
    rows = data[data["major"]].head(MOST).to_dict("records")
    return [{**row, "name": f"C{place}"} for place, row in enumerate(rows, 1)]


# --- the one count of every page ------------------------------------------------------


def counted(data: pd.DataFrame) -> dict[str, int]:
    """Number of statements of a paper with each verdict, from best to worst."""
    counts = Counter(data.loc[data["kind"].isin(STATED), "verdict"].map(str))
    return {str(v): counts[v] for v in VERDICTS if counts[v]}


def score(data: pd.DataFrame) -> str:
    """The count in words: "16 of 22 reproduced, 2 undecided, 4 contradicted"."""
    counts = counted(data)
    total = sum(counts.values())
    held = f"{counts.pop(str(HOLDS), 0)} of {total} {HOLDS}"
    return ", ".join([held, *(f"{count} {word}" for word, count in counts.items())])


def cells(data: pd.DataFrame) -> str:
    """How many printed cells are as our runs would print them: "64 of 67"."""
    rows = data.dropna(subset=["cells"])
    if rows.empty:
        return ""
    return f"{rows['inside'].sum():.0f} of {rows['cells'].sum():.0f}"


def stated(data: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The claims of each paper of which a statement is judged."""
    papers = data[data["kind"].isin(STATED)]["paper"].unique()
    return {paper: data[data["paper"] == paper] for paper in papers}


# --- templates ------------------------------------------------------------------------


def environment() -> Environment:
    """What all pages are made with; only HTML is escaped."""
    made = Environment(
        loader=FileSystemLoader(FILES),
        autoescape=select_autoescape(["html"]),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": found, "cell": cell, "files": files, "plainly": plainly}
    made.filters["clause"] = lambda text: re.split(r"[.;](?: |$)", text)[0]
    made.globals |= {"score": score, "cells": cells}
    return made


def cell(value: Any) -> str:
    """A value as one cell of Markdown: in one line, without strokes or emphasis."""
    text = plain(value).replace("||", "‖").replace("|", "/")
    return text.replace("*", r"\*")


def plainly(text: str) -> str:
    """The label of a curve without the marks of LaTeX."""
    return re.sub(r"[$\\{}]", "", text)


def link(path: Path, folder: Path) -> str:
    """Path of a file relative to a page's folder; empty if it does not exist."""
    return os.path.relpath(path, folder) if path.is_file() else ""


def page(name: str, **values: Any) -> str:
    """A macro of the template of all Markdown pages, with these values."""
    template = environment().get_template("pages.md").module
    text = getattr(template, name)(**values)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def markdown(data: pd.DataFrame) -> str:
    """The score of every paper, then one line per claim, major claims first."""
    data, order = complete(data), list(KINDS)
    papers = []
    for paper, group in data.groupby("paper", sort=False):
        names = {row["id"]: row["name"] for row in majors(group)}
        rows = group.assign(name=group["id"].map(names).fillna("")).to_dict("records")
        rows.sort(key=lambda row: (not row["major"], order.index(row["kind"])))
        papers.append((paper, rows))
    return page("claims", kinds=KINDS, stated=stated(data), papers=papers) + "\n"
