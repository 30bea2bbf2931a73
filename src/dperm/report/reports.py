"""Reports for readers: two pages per paper, README's scorecard, an artifact's table.

``docs/reports/<paper>.md`` is written by hand, except for the text between marks, which
is made from ``claims.csv``. A bottom line names the claims it rests on, "(C1, C3
reproduced)". If one of them has another verdict, a count of verdicts is shown instead.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment.locate import ConfigError
from dperm.judge.claims import Claim
from dperm.judge.judge import VERDICTS
from dperm.report.claims import claim_id, load, papers
from dperm.report.texts import (
    HEADLINE,
    KINDS,
    STATED,
    complete,
    figures,
    files,
    found,
    in_words,
    majors,
    page,
    printed,
    scorecard,
    without_latex,
)
from dperm.report.worth import draw_worth

log = logging.getLogger(__name__)

README = Path("README.md")
REPORTS = Path("docs/reports")
ARTIFACT = Path("docs/howto/artifact.md")
CODECHECK = Path("codecheck.yml")
WHOLE = 25  # most words of a reason or a note
_CITED = re.compile(rf"((?:C\d+, )*C\d+) ({'|'.join(VERDICTS)})")
_BOTTOM = re.compile(r"\*\*Bottom line\.\*\* (.+?)\n\n", re.S)
Row = dict[str, Any]


def readme(config: schema.Config) -> list[Path]:
    """Rewrite the text between marks in README and other pages, and draw the picture.

    Pages other than README.md are rewritten only if they exist.

    Raises ConfigError if a page does not have both marks, or there are no claims yet.
    """
    judged = plan.results_folder(config, "claims.csv")
    if not judged.is_file():
        raise ConfigError(f"{judged} is not there; run `dperm claims` first")
    claims = complete(pd.read_csv(judged))
    every = [p for p in papers(config) if len(claims_of(claims, p.paper.name))]
    pages: dict[Path, tuple[str, Callable[[], str]]] = {
        README: ("scorecard", partial(_front, config, claims)),
        ARTIFACT: ("claims", lambda: appendix(every, claims)),
        CODECHECK: ("manifest", partial(manifest, claims)),
    }
    for paper in every:
        page = REPORTS / f"{paper.paper.name}.md"
        pages[page] = ("claims", partial(block, paper, claims))
    there = [path for path in pages if path == README or path.is_file()]
    for path in there:
        name, make = pages[path]
        rewrite(path, name, make())
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


def claims_of(claims: pd.DataFrame, paper: str) -> pd.DataFrame:
    """The claims of a paper; none if no sentence or number of the paper is judged."""
    rows = claims[claims["paper"] == paper]
    return rows if rows["kind"].isin(HEADLINE).any() else rows.iloc[:0]


def bottom(paper: str, claims: pd.DataFrame) -> str:
    """The bottom line of a paper's report if its claims confirm it, else a count."""
    path = REPORTS / f"{paper}.md"
    found = _BOTTOM.search(path.read_text(encoding="utf-8")) if path.is_file() else None
    told = " ".join(found[1].split()) if found else ""
    rows = majors(claims[claims["paper"] == paper])
    known = {row["name"]: row["verdict"] for row in rows}
    cited = [
        (name, verdict)
        for names, verdict in _CITED.findall(told)
        for name in names.split(", ")
    ]
    if cited and all(known.get(name) == verdict for name, verdict in cited):
        return told
    return f"Of {len(known)} major claims: {in_words(known.values())}."


# --- pages ----------------------------------------------------------------------------


def _front(config: schema.Config, claims: pd.DataFrame) -> str:
    stated = claims[claims["kind"].isin(STATED)]
    card = scorecard(stated, "paper")
    card = card.loc[:, card.sum() > 0]
    lines = [
        [
            f"[{paper}]({REPORTS / paper}.md)",
            *card.loc[paper],
            printed(claims[claims["paper"] == paper]),
            bottom(paper, claims),
        ]
        for paper in card.index
    ]
    folder = plan.results_folder(config).as_posix()
    return page("scorecard", verdicts=[*card.columns], papers=lines, folder=folder)


def block(config: schema.Config, claims: pd.DataFrame) -> str:
    """The text on claims in a paper's report."""
    rows = claims_of(claims, config.paper.name)
    card = scorecard(rows, "kind")
    card = card.loc[[kind for kind in KINDS if kind in card.index], card.sum() > 0]
    lines = [[kind, *card.loc[kind]] for kind in card.index]
    folder = plan.results_folder(config)
    run = store.known_json(folder / config.paper.name / "manifest.json") or {}
    table = _links([f"{folder.as_posix()}/claims.csv"])  # Sphinx has no claims.md
    majors = [_major(config, *pair) for pair in _majors(config, claims)]
    known = {"verdicts": [*card.columns], "kinds": lines, "run": run, "majors": majors}
    return page("paper", **known, folder=folder, table=table)


def _majors(config: schema.Config, claims: pd.DataFrame) -> Iterator[tuple[Row, Claim]]:
    """The major claims of a paper, each as judged and as in its YAML file.

    Raises ConfigError if they were judged before the YAML file was altered.
    """
    paper = config.paper.name
    known = {claim_id(paper, claim): claim for claim in load(config)}
    for row in majors(claims_of(claims, paper)):
        if row["id"] not in known:
            text = f"{row['claim']!r} is no claim of {paper} any more"
            raise ConfigError(f"{text}; run `dperm claims` again")
        yield row, known[row["id"]]


def _major(config: schema.Config, row: Row, claim: Claim) -> dict[str, Any]:
    """A major claim for the template: name, where, says, and lines by their keys."""
    ours, number = clipped(row["reason"]), found(row)
    if number and number not in ours:
        ours = f"{number}; {ours}"
    verdict = [f"**{row['verdict']}**", row["cause"], _note(row)]
    lines = {
        "Test": tested(claim, row),
        "Printed": row["authors"] and f"by this test {clipped(row['authors'])}",
        "Ours": ours,
        "Verdict": "; ".join(filter(None, verdict)),
        "Figure": _links(pictures(config, row)),
        "Evidence": _links(files(row)),
    }
    place = re.sub(r"^([A-H]\b)", r"Appendix \1", row["section"])
    place = re.sub(r"^([\dIVX]+\b)", r"Section \1", place) or row["place"]
    texts = {"where": place, "says": row["claim"].rstrip(".")}
    known = {key: _escaped(text) for key, text in texts.items()}
    escaped = {key: _escaped(text) for key, text in lines.items()}
    return {"name": row["name"], **known, "lines": escaped}


def _escaped(text: str) -> str:
    """A text without LaTeX, of which only links and verdicts are markup."""
    text = without_latex(text).replace("||", "‖")
    return re.sub(r"((?<!\*)\*(?!\*)|[|<>])", r"\\\1", text)


def _note(row: Row) -> str:
    return clipped(row["note"].split(". ")[0])


def tested(claim: Claim, row: Row) -> str:
    """The measured number, its groups and its range."""
    each = claim.each[0] if isinstance(claim.each, list) else claim.each or {}
    names = " and ".join(name.replace("_", " ") for name in each)
    which = {"all": "every", "any": "some"}.get(str(claim.need))
    which = which or f"{float(claim.need):.0%} of the groups by"
    parts = [f"`{row['number']}`", names and f"for {which} {names}"]
    readings = f"{len(claim.readings)} readings" if claim.readings else ""
    text = ", ".join(part for part in parts if part)
    return "; ".join(part for part in (text, row["accepted"], readings) if part)


def clipped(reason: str, longest: int = WHOLE) -> str:
    """A reason, cut after some group if it is too long.

    A parenthesis that the cut would leave open goes too.
    """
    words = reason.split()
    if len(words) <= longest:
        return reason
    first = " ".join(words[:longest])
    first = first.rpartition(";")[0] or first
    if first.count("(") > first.count(")"):
        first = first.rpartition("(")[0].rstrip()
    return f"{first} ..."


def pictures(config: schema.Config, row: Row) -> list[str]:
    """Figures of the paper that a claim names, and those that it was judged from."""
    folder = plan.figures_folder(config, config.paper.name).as_posix()
    drawn = [name for name in figures(row) if name in config.paper.figures]
    return [f"{folder}/{name}.png" for name in drawn]


def _links(listed: list[str]) -> str:
    links = (f"[{Path(one).name}]({os.path.relpath(one, REPORTS)})" for one in listed)
    return ", ".join(links)


def appendix(configs: Iterable[schema.Config], claims: pd.DataFrame) -> str:
    """The table of an artifact appendix: one command and expected result per claim."""
    lines = []
    for config in configs:
        for row in majors(claims_of(claims, config.paper.name)):
            read = files(row)
            path = os.path.relpath(REPORTS / f"{row['paper']}.md", ARTIFACT.parent)
            lines.append(
                [
                    f"[{row['paper']} {row['name']}]({path})",
                    f"`dperm {' '.join(read)}`" if read else "",
                    "; ".join(filter(None, [row["verdict"], found(row)])),
                    row["accepted"],
                ]
            )
    return page("artifact", rows=lines)


def manifest(claims: pd.DataFrame) -> str:
    """Files that the major claims rest on, in the form of CODECHECK."""
    of: dict[str, list[str]] = {}
    for paper in claims["paper"].unique():
        for row in majors(claims_of(claims, paper)):
            for file in files(row):
                of.setdefault(file, []).append(f"{paper} {row['name']}")
    listed = [
        {"file": file, "comment": f"major claims {', '.join(names)}"}
        for file, names in of.items()
    ]
    return yaml.safe_dump({"manifest": listed}, sort_keys=False, width=88).rstrip()
