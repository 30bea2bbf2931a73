"""The report: one HTML page that needs no network, made of the committed results.

It opens with answers: whether the papers hold, what their epsilons are worth, and which
method to take. Figures are the files that drawing wrote, with links to their data.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, select_autoescape
from markupsafe import Markup

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment.files import write_csv
from dperm.core.experiment.locate import available
from dperm.data.fetching import taken_as_it_came
from dperm.pipeline import seals
from dperm.present.tables import short
from dperm.report import worth
from dperm.report.claims import (
    FIVE,
    HEADLINE,
    KINDS,
    complete,
    counted,
    entries,
    number,
    papers,
    slug,
    without_latex,
)
from dperm.report.evidence import read_or_empty
from dperm.report.judging import table
from dperm.report.reports import REPORTS, bottom, noticing
from dperm.report.selection import in_words, selection

log = logging.getLogger(__name__)

FILES = Path(__file__).with_name("page_files")
MARKS = dict(zip(FIVE, "✓◐✗?–", strict=True))
CLASSES = dict(zip(FIVE, ("yes", "caveat", "no", "open", "apart"), strict=True))
ARENA = "arena"  # the folder of the comparison of methods
Row = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """One figure: its caption, the files that Git holds, and what draws it again."""

    key: str  # paper/name
    caption: str
    links: dict[str, str]
    command: str

    @property
    def id(self) -> str:
        """Its name in the page's addresses."""
        return slug("f", self.key)

    @property
    def name(self) -> str:
        """Its name within the paper."""
        return self.key.partition("/")[2]


@dataclass(frozen=True)
class Paper:
    """What the page shows of one paper."""

    name: str
    title: str
    reference: str
    thresholds: str
    claims: list[Row]
    figures: list[Figure]
    bottom: str
    report: Path
    noise: Path  # the table of true epsilons
    manifest: Row

    @property
    def author(self) -> str:
        """The first author and the year; of what is no paper the title."""
        short_title = self.title.partition(":")[0]
        return worth.author(self.reference) if self.counted else short_title

    @property
    def counted(self) -> dict[str, int]:
        """How many of its own claims have which verdict."""
        headline = [each for each in self.claims if each["kind"] in HEADLINE]
        return counted(headline, "short")


def report(config: schema.Config) -> list[Path]:
    """Write ``report/index.html``, and ``selection.csv`` beside the claims."""
    folder = plan.results_folder(config)
    rooms = ("", "audit", *available("paper"))
    seals.check(config, [file for room in rooms for file in seals.files(config, room)])
    judged = folder / "claims.csv"
    claims = pd.read_csv(judged) if judged.is_file() else table(config)
    chosen = selection(config)
    write_csv(folder / "selection.csv", chosen)
    path = folder / "report" / "index.html"
    store.write_text(path, page(config, claims, chosen, path.parent))
    written = [folder / "selection.csv", path]
    seals.seal(config, "report", written, of=[judged])
    for each in written:
        log.info("%s", each)
    return written


def page(
    config: schema.Config, claims: pd.DataFrame, chosen: pd.DataFrame, folder: Path
) -> str:
    """The whole page as text; ``folder`` is where links start from."""
    claims = complete(claims)
    every = [_paper(paper, claims, folder) for paper in papers(config)]
    every.sort(key=lambda paper: not paper.counted)  # the arena comes last
    listed = [claim for paper in every for claim in paper.claims]
    kinds = list(KINDS)
    listed.sort(key=lambda claim: (not claim["first"], kinds.index(claim["kind"])))
    counts = {key: counted(listed, key) for key in ("paper", "kind", "short")}
    counts["short"] = {key: n for key in FIVE if (n := counts["short"].get(key))}
    headline = [claim for claim in listed if claim["kind"] in HEADLINE]
    judged = [paper for paper in every if paper.counted]
    ranked = leaderboard(config)
    audits = plan.results_folder(config, "audit")
    css, script = (
        Markup((FILES / name).read_text(encoding="utf-8"))  # nosec B704  # own files
        for name in ("page.css", "explore.js")
    )
    template = _environment(folder).get_template("page.html")
    return template.render(
        papers=judged,
        every=every,
        authors={paper.name: paper.author for paper in every},
        arena=next((paper for paper in every if paper.name == ARENA), None),
        advice=_advice(plan.results_folder(config, ARENA, "advice.csv")),
        claims=listed,
        counts=counts,
        totals=counted(headline, "short"),
        board=ranked.to_dict("records"),
        unverified=_unverified(ranked["problem"].unique()),
        verdicts=FIVE,
        marks=MARKS,
        classes=CLASSES,
        kinds=KINDS,
        judged=plan.results_folder(config, "claims.csv").is_file(),
        selection=in_words(chosen),
        audits=sorted(audits.glob("*.md")),
        scale=config.scale.name,
        versions=store.versions(),
        css=css,
        script=script,
        worth=_link(plan.figures_folder(config, "worth.png"), folder),
        epsilons=worth.in_words(
            worth.table(config),
            {paper.name: worth.author(paper.reference) for paper in every},
        ),
    )


def _environment(folder: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FILES),
        autoescape=select_autoescape(["html"]),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "short": short,
        "plain": without_latex,
        "noticing": noticing,
        "number": number,
        "titled": _titled,
        "link": partial(_link, folder=folder),
    }
    return environment


def _titled(problem: str) -> str:
    return configuration.read("problem", problem).title or problem


def _link(path: Path, folder: Path) -> str:
    """Where a file lies, from the page's folder; empty if it is not there."""
    return os.path.relpath(path, folder) if path.is_file() else ""


def _paper(config: schema.Config, claims: pd.DataFrame, folder: Path) -> Paper:
    paper = config.paper
    results = plan.results_folder(config, paper.name)
    noise = worth.TABLES.get(paper.name, "noise")
    return Paper(
        name=paper.name,
        title=paper.title,
        reference=paper.reference,
        thresholds=paper.thresholds,
        claims=entries(config, claims),
        figures=list(figures(config, folder)),
        bottom=bottom(paper.name, claims),
        report=REPORTS / f"{paper.name}.md",
        noise=results / f"{noise}.csv",
        manifest=store.known_json(results / "manifest.json") or {},
    )


def figures(config: schema.Config, folder: Path) -> Iterator[Figure]:
    """The figures of a paper that were drawn; ``folder`` is where links start from."""
    paper, small = config.paper, config.scale.folder
    of_scale = f" --config scale={config.scale.name}" if small else ""
    for name, product in paper.figures.items():
        stem = plan.figures_folder(config, paper.name, name)
        links = {
            kind: _link(stem.with_suffix(f".{kind}"), folder) for kind in ("png", "csv")
        }
        if all(links.values()):
            file = Path("figures", small, paper.name, f"{name}.png").as_posix()
            yield Figure(
                key=f"{paper.name}/{name}",
                caption=without_latex(product.caption),
                links=links,
                command=f"dperm {file}{of_scale}",
            )


def leaderboard(config: schema.Config) -> pd.DataFrame:
    """Methods of the arena at the best setting of their grid, by data set and epsilon.

    Returns
    -------
    DataFrame
        Columns of ``arena.csv``, and ``place`` from 1, ``of``, and ``tied``: whether
        the interval of the row meets that of the first.
    """
    data = read_or_empty(plan.results_folder(config, ARENA, "arena.csv"))
    if data.empty:
        return pd.DataFrame(columns=["problem"])
    # public_scales is written as 1 where some rows have none
    tuned = (data["tuning"] == "grid") & data["public_scales"].eq(True)
    keys = ["problem", "epsilon"]
    data = data[tuned].dropna(subset=["mean", "ci_low"])
    data = data.sort_values([*keys, "mean", "algorithm"], kind="stable")
    groups = data.groupby(keys, sort=False)
    return data.assign(
        place=groups.cumcount() + 1,
        of=groups["mean"].transform("size"),
        tied=data["ci_low"] <= groups["ci_high"].transform("first"),
    )


def _unverified(problems: Iterable[str]) -> list[str]:
    """Titles of problems whose data came from outside without a declared digest."""
    return [
        _titled(name)
        for name in problems
        if taken_as_it_came(configuration.read("problem", name).dataset)
    ]


def _advice(path: Path) -> list[Row]:
    """What to take without tuning, by loss: rows of ``advice.csv``."""
    data = read_or_empty(path)
    if data.empty:
        return []
    data = data[data["tuning"] == "default"]
    return [
        {"loss": loss, "rows": group.rename(columns={"from": "low"}).to_dict("records")}
        for loss, group in data.groupby("loss", sort=False)
    ]
