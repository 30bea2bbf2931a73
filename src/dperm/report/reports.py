"""What ``dperm readme`` writes: README's scorecard, a report a paper, an appendix.

``docs/reports/<paper>.md`` is written by hand, except for the text between marks, made
from ``claims.csv``. A bottom line names the claims it rests on, "(C1, C3
reproduced)". If one of them has another verdict, the count is shown instead.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

import pandas as pd

from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment.locate import ConfigError
from dperm.judge.judge import VERDICTS
from dperm.report.claims import papers
from dperm.report.texts import (
    Row,
    complete,
    figures,
    files,
    majors,
    page,
    score,
    stated,
)
from dperm.report.worth import draw_worth

log = logging.getLogger(__name__)

README = Path("README.md")
REPORTS = Path("docs/reports")
ARTIFACT = Path("docs/howto/artifact.md")
_CITED = re.compile(rf"((?:C\d+, )*C\d+) ({'|'.join(VERDICTS)})")
_BOTTOM = re.compile(r"\*\*Bottom line\.\*\* (.+?)\n\n", re.S)


def readme(config: schema.Config) -> list[Path]:
    """Rewrite the text between marks in README and other pages, and draw the picture.

    Pages other than README.md are rewritten only if they exist.

    Raises ConfigError if a page does not have both marks, or there are no claims yet.
    """
    judged = plan.results_folder(config, "claims.csv")
    if not judged.is_file():
        raise ConfigError(f"{judged} is not there; run `dperm claims` first")
    claims = complete(pd.read_csv(judged))
    every = [one for one in papers(config) if one.paper.name in stated(claims)]
    pages = {README: ("scorecard", front(config, claims))}
    pages[ARTIFACT] = ("claims", appendix(claims))
    for one in every:
        pages[REPORTS / f"{one.paper.name}.md"] = ("claims", block(one, claims))
    there = [path for path in pages if path == README or path.is_file()]
    for path in there:
        rewrite(path, *pages[path])
        log.info("%s", path)
    return [*there, *draw_worth(config, every)]


def rewrite(path: Path, name: str, content: str) -> None:
    """Put a text between the two marks of a page.

    Raises ConfigError if the page does not have each of them exactly once.
    """
    text = path.read_text(encoding="utf-8")
    begin, end = f"{name}: written by `dperm readme`", f"end of {name}"
    first, last = (re.findall(rf"(?m)^.*{word}.*$", text) for word in (begin, end))
    if len(first) != 1 or len(last) != 1:
        raise ConfigError(f"{path}: expected the lines {begin!r} and {end!r}, once")
    before, after = text.split(first[0])[0], text.split(last[0])[1]
    made = f"{first[0]}\n\n{content}\n\n{last[0]}"
    store.write_text(path, f"{before}{made}{after}")


def bottom(paper: str, claims: pd.DataFrame) -> str:
    """The bottom line of a paper's report if its claims confirm it, else the count."""
    path = REPORTS / f"{paper}.md"
    found = _BOTTOM.search(path.read_text(encoding="utf-8")) if path.is_file() else None
    told = " ".join(found[1].split()) if found else ""
    rows = claims[claims["paper"] == paper]
    known = {row["name"]: row["verdict"] for row in majors(rows)}
    cited = [
        (name, verdict)
        for names, verdict in _CITED.findall(told)
        for name in names.split(", ")
    ]
    if cited and all(known.get(name) == verdict for name, verdict in cited):
        return told
    return f"Of its statements, {score(rows)}."


def front(config: schema.Config, claims: pd.DataFrame) -> str:
    """README's scorecard, one row a paper."""
    lines = [
        (paper, REPORTS / f"{paper}.md", rows, bottom(paper, claims))
        for paper, rows in stated(claims).items()
    ]
    folder = plan.results_folder(config).as_posix()
    return page("scorecard", papers=lines, folder=folder)


def block(config: schema.Config, claims: pd.DataFrame) -> str:
    """The text on claims in a paper's report."""
    folder, paper = plan.results_folder(config), config.paper.name
    run = store.known_json(folder / "manifest.json") or {}
    rows = stated(claims)[paper]
    listed = [(row, _links(config, row)) for row in majors(rows)]
    return page("paper", rows=rows, run=run, majors=listed, folder=folder.as_posix())


def _links(config: schema.Config, row: Row) -> dict[str, str]:
    """Pictures of a claim, then its tables: paths from a report, by file name."""
    drawn = (name for name in figures(row) if name in config.paper.figures)
    folder = plan.figures_folder(config, config.paper.name)
    tables = (Path(one) for one in files(row) if not one.startswith("figures/"))
    paths = [*(folder / f"{name}.png" for name in drawn), *tables]
    return {path.name: os.path.relpath(path, REPORTS) for path in paths}


def appendix(claims: pd.DataFrame) -> str:
    """The table of an artifact appendix: one command and expected result per claim."""
    lines = []
    for paper, rows in stated(claims).items():
        path = os.path.relpath(REPORTS / f"{paper}.md", ARTIFACT.parent)
        lines += [(row, path) for row in majors(rows)]
    return page("artifact", majors=lines)
