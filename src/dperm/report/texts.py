"""Pages in Markdown, made from the rows of ``claims.csv``.

``dperm readme`` writes README's scorecard, a report a paper and the artifact's table.
``docs/reports/<paper>.md`` is written by hand, except for the text between marks. A
bottom line names the claims it rests on, "(C1, C3 reproduced)". If one of them has
another verdict, the count is shown instead.
"""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, select_autoescape

from dperm.claims.claims import KINDS, STATED
from dperm.claims.judge import REPRODUCED, VERDICTS
from dperm.claims.number import Number
from dperm.config import config as configuration
from dperm.config import schema
from dperm.config.locate import ConfigError, available
from dperm.experiments import plan
from dperm.plotting.tables import plain
from dperm.report.printed import draw_printed
from dperm.report.true_epsilons import draw_epsilons
from dperm.storage import files as store

log = logging.getLogger(__name__)

README = Path("README.md")
REPORTS = Path("docs/reports")
ARTIFACT = Path("docs/howto/artifact.md")
FILES = Path(__file__).with_name("page_files")
Row = dict[str, Any]  # of claims.csv
MARKS = dict(zip(map(str, VERDICTS), "✓◐?…✗–", strict=False))
JUDGED = {"sentence": "experiments", "proof": "theorems", "privacy": "privacy"}
MAX_MAJOR = 10  # major claims of a paper that a reader is shown
TEXTS = ("section", "tables", "number", "accepted", "reason", "missing", "authors",
         "cause", "note", "set", "defence", "misprint")  # fmt: skip
_MEASURED = re.compile(r" \(([^()]*(?:\([^()]*\)[^()]*)*)\)\.?$")
_FIGURE = re.compile(r"\bFigures? (\d+)")
_CITED = re.compile(rf"((?:C\d+, )*C\d+) ({'|'.join(VERDICTS)})")
_BOTTOM = re.compile(r"\*\*Bottom line\.\*\* (.+?)\n\n", re.S)


def papers(config: schema.Config) -> list[schema.Paper]:
    """Every paper here with claims, at the scale of ``config``."""
    names = plan.papers_here(Path(config.output.results))
    sections = configuration.papers(names, config.scale, config.overrides)
    return [paper for paper in sections if paper.claims]


def judged(folder: Path) -> pd.DataFrame:
    """Rows of ``claims.csv`` of results. Raises ConfigError if there are none yet."""
    path = folder / "claims.csv"
    if not path.is_file():
        raise ConfigError(f"{path} is not there; run `dperm claims` first")
    return complete(pd.read_csv(path))


def complete(data: pd.DataFrame) -> pd.DataFrame:
    """Make empty cells of texts empty strings."""
    return data.fillna(dict.fromkeys(TEXTS, "")).astype(
        dict.fromkeys(TEXTS, str)
    )


# --- a claim in words -----------------------------------------------------------------


def found(row: Row) -> str:
    """The number found, with its interval, as text; empty without a number."""
    if pd.isna(row["reproduced"]):
        return ""
    if not pd.isna(row["cells"]):
        return f"{row['inside']:.0f} of {row['cells']:.0f}"
    estimate, low, high = (
        float(row[key]) for key in ("reproduced", "ci_low", "ci_high")
    )
    return str(Number(estimate, low, high))


def files(row: Row) -> list[str]:
    """Tables and data of figures from which a claim was judged, if they were made."""
    return [name for name in row["tables"].split("; ") if Path(name).is_file()]


def figures(row: Row) -> list[str]:
    """Names of the figures that a claim names, then of those it was judged from."""
    numbered = [f"figure{number}" for number in _FIGURE.findall(row["place"])]
    read = [
        Path(file_name).stem
        for file_name in files(row)
        if file_name.startswith("figures/")
    ]
    return list(dict.fromkeys(numbered + read))


def majors(data: pd.DataFrame) -> list[Row]:
    """The major claims of a paper, named C1, C2 and so on, ten at most."""
    rows = data[data["major"]].head(MAX_MAJOR).to_dict("records")
    return [{**row, "name": f"C{place}"} for place, row in enumerate(rows, 1)]


# --- the one count of every page ------------------------------------------------------


def counted(data: pd.DataFrame) -> dict[str, int]:
    """Number of statements of a paper with each verdict, from best to worst.

    A formula that can only be a misprint is none: ``misprints`` counts those.
    """
    counts = Counter(data.loc[data["kind"].isin(JUDGED), "verdict"].map(str))
    return {str(v): counts[v] for v in VERDICTS if counts[v]}


def by_kind(data: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What a paper says of experiments, of theorems and of privacy, if it does."""
    kinds = {name: data[data["kind"] == kind] for kind, name in JUDGED.items()}
    return {name: rows for name, rows in kinds.items() if len(rows)}


def misprints(data: pd.DataFrame) -> int:
    """Number of misprints, each counted once however many claims it spoils."""
    names = data.loc[data["verdict"] != REPRODUCED, "misprint"].fillna("")
    return int(names[names != ""].nunique())


def parts(data: pd.DataFrame) -> str:
    """The counts of experiments, theorems and privacy apart, then the misprints."""
    clauses = [
        f"{name}: {score(rows)}" for name, rows in by_kind(data).items()
    ]
    slips = misprints(data)
    if slips:
        clauses.append(f"{slips} misprint{'s' * (slips > 1)}")
    return "; ".join(clauses)


def score(data: pd.DataFrame) -> str:
    """The count in words: "16 of 22 reproduced, 2 undecided, 4 contradicted"."""
    counts = counted(data)
    total = sum(counts.values())
    reproduced = f"{counts.pop(str(REPRODUCED), 0)} of {total} {REPRODUCED}"
    return ", ".join(
        [reproduced, *(f"{count} {word}" for word, count in counts.items())]
    )


def marks(text: str) -> str:
    """Counts of ``score`` or ``parts`` in marks: "✓ 16, ? 2, ✗ 3 of 22"."""
    clauses = []
    for clause in text.split("; "):
        words = re.sub(r"(\d+) of (\d+) (\w+)(.*)", r"\1 \3\4 of \2", clause)
        for verdict, mark in MARKS.items():
            words = re.sub(rf"(\d+) {verdict}\b", f"{mark}\u00a0\\1", words)
        clauses.append(words)
    return "; ".join(clauses)


def first_sentence(text: str) -> str:
    """Up to the first full stop that a capital follows."""
    return re.split(r"(?<=\.) (?=[A-Z])", text)[0]


def cells(data: pd.DataFrame) -> str:
    """How many printed cells are as our runs would print them: "64 of 67"."""
    rows = data.dropna(subset=["cells"])
    if rows.empty:
        return ""
    return f"{rows['inside'].sum():.0f} of {rows['cells'].sum():.0f}"


def stated(data: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The claims of each paper of which a statement is judged."""
    names = data[data["kind"].isin(STATED)]["paper"].unique()
    return {paper: data[data["paper"] == paper] for paper in names}


def bottom(paper: str, claims: pd.DataFrame) -> str:
    """The bottom line of a paper's report if its claims confirm it, else the count."""
    path = REPORTS / f"{paper}.md"
    line = (
        _BOTTOM.search(path.read_text(encoding="utf-8"))
        if path.is_file()
        else None
    )
    line_text = " ".join(line[1].split()) if line else ""
    rows = claims[claims["paper"] == paper]
    verdicts = {row["name"]: row["verdict"] for row in majors(rows)}
    cited: list[tuple[str, str]] = []
    for names, verdict in _CITED.findall(line_text):
        cited += [(name, verdict) for name in names.split(", ")]
    if cited and all(verdicts.get(name) == verdict for name, verdict in cited):
        # a name such as C1 says nothing alone
        return _CITED.sub(r"\2", line_text)
    return f"Of its statements, {score(rows)}."


def statement(claim: str) -> str:
    """A claim without what is measured, which stands in parentheses at its end."""
    return _MEASURED.sub("", claim).rstrip(".")


def quantity(claim: str) -> str:
    """What is measured of a claim, as the beginning of a sentence; "Number" if unsaid.

    >>> quantity("DP-CD is ahead of DP-SGD (DP-SGD's error over DP-CD's).")
    "DP-SGD's error over DP-CD's"
    """
    words = (_MEASURED.findall(claim) or ["number"])[0]
    return words[0].upper() + words[1:]


# --- templates ------------------------------------------------------------------------


def environment() -> Environment:
    """What all pages are made with; only HTML is escaped."""
    templates = Environment(
        loader=FileSystemLoader(FILES),
        autoescape=select_autoescape(["html"]),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"number": found, "cell": cell, "files": files}
    templates.filters["clause"] = lambda text: re.split(r"[.;](?: |$)", text)[
        0
    ]
    templates.filters |= {"marks": marks, "sentence": first_sentence}
    templates.filters["named"] = configuration.paper_label
    templates.filters |= {"statement": statement, "quantity": quantity}
    templates.globals |= {"score": score, "cells": cells, "parts": parts}
    templates.globals["counted"] = counted
    return templates


def cell(value: Any) -> str:
    """A value as one cell of Markdown: in one line, without strokes or emphasis."""
    text = plain(value).replace("||", "‖").replace("|", "/")
    return text.replace("*", r"\*")


def made(name: str, **values: Any) -> str:
    """A macro of the template of all Markdown pages, with these values."""
    template = environment().get_template("pages.md").module
    text = getattr(template, name)(**values)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


# --- pages ----------------------------------------------------------------------------


def readme(config: schema.Config) -> list[Path]:
    """Rewrite the text between marks in README and other pages, and draw the picture.

    Pages are rewritten only if they exist.

    Raises ConfigError if no page exists, one does not have both marks, or there are no
    claims yet.
    """
    claims = judged(Path(config.output.results))
    pages = blocks(config, claims)
    existing = [path for path in pages if path.is_file()]
    if not existing:
        names = ", ".join(map(str, pages))
        raise ConfigError(
            f"{README}: expected one of {names} with the lines <!-- scorecard: written "
            "by `dperm readme` --> and <!-- end of scorecard --> (claims in the others)"
        )
    for path in existing:
        store.write_text(path, filled(path, *pages[path]))
        log.info("%s", path)
    sections = configuration.papers(
        available("paper"), config.scale, config.overrides
    )
    printed = draw_printed(sections, config.output, config.formats)
    return [*existing, *draw_epsilons(config.output, config.formats), *printed]


def blocks(
    config: schema.Config, claims: pd.DataFrame
) -> dict[Path, tuple[str, str]]:
    """The pages with a block of ours: its name and its text."""
    pages = {
        README: ("scorecard", front(config.output, claims)),
        ARTIFACT: ("claims", appendix(claims)),
    }
    for paper in papers(config):
        if paper.name in stated(claims):
            path = REPORTS / f"{paper.name}.md"
            pages[path] = ("claims", block(paper, config.output, claims))
    return pages


def filled(path: Path, name: str, content: str) -> str:
    """The text of a page with a content between its two marks.

    Raises ConfigError if the page does not have each of them exactly once.
    """
    text = path.read_text(encoding="utf-8")
    begin = f"{name}: written by `dperm readme`"
    end = f"end of {name}"
    begin_marks, end_marks = (
        re.findall(rf"(?m)^.*{word}.*$", text) for word in (begin, end)
    )
    if len(begin_marks) != 1 or len(end_marks) != 1:
        raise ConfigError(
            f"{path}: expected the lines {begin!r} and {end!r}, once"
        )
    before = text.split(begin_marks[0])[0]
    after = text.split(end_marks[0])[1]
    between = f"{begin_marks[0]}\n\n{content}\n\n{end_marks[0]}"
    return f"{before}{between}{after}"


def front(output: schema.Output, claims: pd.DataFrame) -> str:
    """README's scorecard, one row a paper."""
    lines = [
        (paper, REPORTS / f"{paper}.md", rows, bottom(paper, claims))
        for paper, rows in stated(claims).items()
    ]
    folder = Path(output.results).as_posix()
    return made("scorecard", papers=lines, folder=folder)


def block(
    paper: schema.Paper, output: schema.Output, claims: pd.DataFrame
) -> str:
    """The text on claims in a paper's report."""
    folder = Path(output.results)
    run = store.known_json(folder / "manifest.json") or {}
    rows = stated(claims)[paper.name]
    listed = [(row, _links(paper, output, row)) for row in majors(rows)]
    return made(
        "paper", rows=rows, run=run, majors=listed, folder=folder.as_posix()
    )


def _links(
    paper: schema.Paper, output: schema.Output, row: Row
) -> dict[str, str]:
    """Pictures of a claim, then its tables: paths from a report, by file name."""
    drawn = (name for name in figures(row) if name in paper.figures)
    folder = Path(output.figures, paper.name)
    tables = (
        Path(file_name)
        for file_name in files(row)
        if not file_name.startswith("figures/")
    )
    paths = [*(folder / f"{name}.png" for name in drawn), *tables]
    return {path.name: os.path.relpath(path, REPORTS) for path in paths}


def appendix(claims: pd.DataFrame) -> str:
    """The table of an artifact appendix: one command and expected result per claim."""
    lines = []
    for paper, rows in stated(claims).items():
        path = os.path.relpath(REPORTS / f"{paper}.md", ARTIFACT.parent)
        lines += [(row, path) for row in majors(rows)]
    return made("artifact", majors=lines)


def markdown(claims_table: pd.DataFrame) -> str:
    """The score of every paper, then one line per claim, major claims first."""
    claims_table = complete(claims_table)
    order = list(KINDS)
    listed = []
    for paper, group in claims_table.groupby("paper", sort=False):
        names = {row["id"]: row["name"] for row in majors(group)}
        rows = group.assign(name=group["id"].map(names).fillna("")).to_dict(
            "records"
        )
        rows.sort(key=lambda row: (not row["major"], order.index(row["kind"])))
        listed.append((paper, rows))
    return (
        made("claims", kinds=KINDS, stated=stated(claims_table), papers=listed)
        + "\n"
    )
