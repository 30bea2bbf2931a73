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

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import yaml
from matplotlib.patches import Patch

from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment.files import write_csv
from dperm.core.experiment.locate import ConfigError, available
from dperm.judge.claims import Claim
from dperm.judge.judge import VERDICTS
from dperm.present.drawing import METADATA, write_palette
from dperm.report.claims import claim_id, load, papers
from dperm.report.texts import (
    HEADLINE,
    KINDS,
    STATED,
    complete,
    figures,
    files,
    found,
    grid,
    in_words,
    majors,
    printed,
    scorecard,
    without_latex,
)

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
    notes = (
        "The numbers count a paper's sentences, proofs and privacy statements, and the "
        "cells of its tables that our runs would print. C1, C2, ... are the major "
        f"claims of a report. [Every claim]({folder}/claims.md), and "
        f"[everything on one page]({folder}/report/index.html)."
    )
    header = ["report", *card.columns, "printed cells", "conclusion"]
    return "\n\n".join([grid(header, lines), notes])


def block(config: schema.Config, claims: pd.DataFrame) -> str:
    """The text on claims in a paper's report."""
    rows = claims_of(claims, config.paper.name)
    card = scorecard(rows, "kind")
    card = card.loc[[kind for kind in KINDS if kind in card.index], card.sum() > 0]
    lines = [[kind, *card.loc[kind]] for kind in card.index]
    folder = plan.results_folder(config)
    run = store.known_json(folder / config.paper.name / "manifest.json") or {}
    made = f"{run['runs']} runs, {run['date']}, {run['machine']}. " if run else ""
    table = _links([f"{folder.as_posix()}/claims.csv"])  # Sphinx has no claims.md
    parts = [
        grid(["kind", *card.columns], lines),
        f"{made}Every claim: `{folder}/claims.md`, with reasons in {table}; "
        "[how it is judged](../claims.md).",
        "## Major claims",
        *(_major(config, *pair) for pair in _majors(config, claims)),
    ]
    return "\n\n".join(parts)


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


def _major(config: schema.Config, row: Row, claim: Claim) -> str:
    ours, number = clipped(row["reason"]), found(row)
    if number and number not in ours:
        ours = f"{number}; {ours}"
    lines = {
        "Test": tested(claim, row),
        "Printed": row["authors"] and f"by this test {clipped(row['authors'])}",
        "Ours": ours,
        "Verdict": "; ".join(
            filter(None, [f"**{row['verdict']}**", row["cause"], _note(row)])
        ),
        "Figure": _links(pictures(config, row)),
        "Evidence": _links(files(row)),
    }
    listed = [f"- {key}: {text}" for key, text in lines.items() if text]
    place = re.sub(r"^([A-H]\b)", r"Appendix \1", row["section"])
    place = re.sub(r"^([\dIVX]+\b)", r"Section \1", place) or row["place"]
    heading = f"### {row['name']}. {place}"
    text = "\n".join([heading, "", f"{row['claim'].rstrip('.')}.", "", *listed])
    text = without_latex(text).replace("||", "‖")  # only links and verdicts are markup
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
    return grid(["claim", "command", "expected", "accepted"], lines)


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


# --- README's picture: true over published epsilons of the papers ---------------------
#
# It shows, for each method in a paper's table of published noise, the true epsilon (the
# tight accountant's upper bound) over the published one. Where lower bounds exceed 1 in
# all settings, it shows them as well.

NOISE_TABLES = {  # paper to the table of its published noise
    "dpskgd": "noise",
    "dpcd": "noise",
    "dpgcd": "noise",
    "dpsco": "noise",
    "dpbcfw": "privacy",
}
TARGET = 1.0  # published epsilon that is shown
# Proved to cost at most the published epsilon, open, and proved to cost more.
BLUE, ORANGE, RED = "#0072b2", "#e69f00", "#d55e00"
PALE = "#f2b98a"  # lower bounds of the last
TICKS = (0.01, 0.1, 1, 10, 1e3, 1e5)
WORTH = [
    *("paper", "method", "least", "most", "proved_least", "proved"),
    *("unbounded", "settings"),
]


def true_epsilons(config: schema.Config) -> pd.DataFrame:
    """True over published epsilon of every method, over problems and settings.

    Returns
    -------
    DataFrame
        ``least`` and ``most`` of the finite upper bounds; ``proved_least`` and
        ``proved``, those of the lower bounds (NaN: none); ``unbounded``, the number of
        settings without an upper bound; ``settings``, the number of all.
        A paper without its table has no row, and variants with the same noise share
        one.
    """
    rows = [row for paper in NOISE_TABLES for row in _epsilons(config, paper)]
    data = pd.DataFrame(rows, columns=WORTH)
    return data.drop_duplicates(["paper", "least", "most", "settings"])


def _epsilons(config: schema.Config, paper: str) -> Iterator[tuple[object, ...]]:
    path = plan.results_folder(config, paper, f"{NOISE_TABLES[paper]}.csv")
    if not path.is_file():
        return
    data = pd.read_csv(path)
    data = data.rename(columns={"method": "algorithm", "target_epsilon": "epsilon"})
    data = data[data["epsilon"] == TARGET]
    if "update" in data:  # DP-BCFW: as printed, not our corrected forms
        data = data[(data["update"] == "published") & (data["noise"] != "strict")]
    if "algorithm" not in data:
        data = data.assign(algorithm="DP-SkGD")
    for name, group in data.groupby("algorithm", sort=False):
        known_solver = name in available("solver")
        method = plan.label(config, str(name)) if known_solver else name
        known = group[np.isfinite(group["true_epsilon"])]
        ends = known["true_epsilon"].agg(["min", "max"]) / TARGET
        least = group.get("epsilon_low", pd.Series(np.nan, group.index))
        lower = least.replace(0.0, np.nan).agg(["min", "max"]) / TARGET
        yield paper, method, *ends, *lower, len(group) - len(known), len(group)


def worth_picture(data: pd.DataFrame, papers: dict[str, str]) -> plt.Figure:
    """A bar for every method, from the least to the largest upper bound.

    The colour says whether the noise is proved to cost at most, or more than, the
    published epsilon. A pale bar spans lower bounds that all exceed it.
    """
    figure, axes = plt.subplots(figsize=(8.0, 0.3 * len(data) + 0.8))
    rows: list[Any] = list(data.itertuples())
    for place, row in enumerate(rows):
        is_open = row.most > TARGET or row.unbounded > 0
        bars = [(row.least, row.most, ORANGE if is_open else BLUE)]
        if row.proved_least > TARGET:
            bars = [(row.least, row.most, RED), (row.proved_least, row.proved, PALE)]
        for least, most, shade in bars:
            ends = least / 1.08, most * 1.08  # wide enough to be seen
            axes.plot(
                ends, [place] * 2, color=shade, linewidth=8, solid_capstyle="butt"
            )
        axes.annotate(
            _label(row),
            (max(row.most, TARGET), place),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    axes.axvline(TARGET, color="0.3", linewidth=1)
    named = [f"{row.method}, {papers[row.paper]}" for row in rows]
    axes.set_yticks(range(len(data)), named)
    axes.set(xscale="log", xlim=(5e-3, 1e12), ylim=(len(data) - 0.4, -0.6))
    axes.set_xticks(*zip(*((t, f"{t:,g}") for t in TICKS), strict=True))
    axes.minorticks_off()
    axes.grid(axis="y", visible=False)
    axes.spines["bottom"].set_bounds(5e-3, 10 * TICKS[-1])  # labels stand beyond it
    keys = {
        BLUE: "proved to cost at most 1",
        ORANGE: "open",
        RED: "proved to cost more than 1",
        PALE: "proved to cost at least this",
    }
    axes.legend(
        handles=[Patch(color=colour, label=text) for colour, text in keys.items()],
        loc="upper right",
    )
    axes.set_xlabel(
        "proved upper bound of epsilon, for noise published for epsilon = 1"
    )
    return figure


def _label(row: Any) -> str:
    """Range of upper bounds, and of lower bounds if all exceed the target."""
    text = f"{_rounded(row.least)} to {_rounded(row.most)}"
    if row.proved_least > TARGET:
        ends = f"{_rounded(row.proved_least)} to {_rounded(row.proved)}"
        text += f"; at least {ends}"
    if row.unbounded:
        text += f"; no bound in {row.unbounded} of {row.settings} settings"
    return text


def worth_in_words(data: pd.DataFrame, papers: dict[str, str]) -> list[str]:
    """Sentences on the methods whose noise costs less or more than published."""

    def named(rows: pd.DataFrame) -> str:
        return ", ".join(
            f"{row.method} of {papers[row.paper]} ({_label(row)})"
            for row in rows.itertuples()
        )

    loose = data[(data["most"] > TARGET) | (data["unbounded"] > 0)]
    wasted = data[data["most"] < TARGET / 2]
    rest = len(data) - len(loose)
    sentences = [
        f"{rest} of {len(data)} methods publish noise that costs no more than the "
        "epsilon that they name."
    ]
    if len(wasted):
        sentences.append(
            "Some add more than twice the noise that they need; their epsilon of 1 "
            f"costs: {named(wasted)}."
        )
    broken = loose["proved_least"] > TARGET
    if (~broken).any():
        sentences.append(
            f"Others are open, with a bound above 1 or none: {named(loose[~broken])}."
        )
    if broken.any():
        sentences.append(f"Proved to cost more: {named(loose[broken])}.")
    return sentences if len(data) else []


def _rounded(end: float) -> str:
    return f"{float(f'{end:.2g}'):,g}"


def author(reference: str) -> str:
    """The first author and the year of a reference: "Mangold 2022"."""
    year = re.search(r"\b(?:19|20)\d\d\b", reference)
    return " ".join([re.split(r"[ ,]", reference)[0], year[0] if year else ""]).strip()


def draw_worth(config: schema.Config, papers: Iterable[schema.Config]) -> list[Path]:
    """Write ``figures/worth.png`` and its numbers as CSV; nothing without tables."""
    data = true_epsilons(config)
    if data.empty:
        return []
    named = {each.paper.name: author(each.paper.reference) for each in papers}
    paths = [plan.figures_folder(config, f"worth.{kind}") for kind in ("png", "csv")]
    with store.whole(paths[0]) as new:
        worth_picture(data, named).savefig(new, format="png", metadata=METADATA["png"])
        write_palette(new, new)
    write_csv(paths[1], data)
    return paths
