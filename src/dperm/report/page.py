"""The report: one HTML page that needs no network, made from the committed results.

It opens with answers: whether the papers' claims hold, what their epsilons are worth,
and which method to use. Figures are the drawn files, with links to their data.
"""

from __future__ import annotations

import functools
import logging
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, select_autoescape
from markupsafe import Markup

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.data.fetching import taken_as_it_came
from dperm.judge.judge import VERDICTS
from dperm.present.tables import short
from dperm.report.claims import papers, slug, table
from dperm.report.reports import REPORTS, bottom
from dperm.report.texts import (
    FILES,
    KINDS,
    STATED,
    complete,
    counted,
    figures,
    files,
    found,
    printed,
    without_latex,
)
from dperm.report.worth import NOISE_TABLES, author, true_epsilons, worth_in_words

log = logging.getLogger(__name__)

MARKS = dict(zip(VERDICTS, "✓◐?…✗–", strict=True))
SHADES = ("yes", "caveat", "open", "open", "no", "apart")  # classes of the verdicts
CLASSES = dict(zip(VERDICTS, SHADES, strict=True))
ARENA = "arena"  # the folder of the comparison of methods
Row = dict[str, Any]


def report(config: schema.Config) -> list[Path]:
    """Write ``report/index.html``."""
    folder = plan.results_folder(config)
    path = folder / "report" / "index.html"
    judged = folder / "claims.csv"
    claims = pd.read_csv(judged) if judged.is_file() else table(config)
    store.write_text(path, page(config, claims, path.parent))
    log.info("%s", path)
    return [path]


def page(config: schema.Config, claims: pd.DataFrame, folder: Path) -> str:
    """The whole page as text, with links relative to ``folder``."""
    claims = complete(claims)
    every = [_paper(paper, claims, folder) for paper in papers(config)]
    every.sort(key=lambda paper: not paper["counted"])  # the arena comes last
    listed = [claim for paper in every for claim in paper["claims"]]
    kinds = list(KINDS)
    listed.sort(key=lambda claim: (not claim["major"], kinds.index(claim["kind"])))
    counts = {key: Counter(claim[key] for claim in listed) for key in ("paper", "kind")}
    stated = [claim["verdict"] for claim in listed if claim["kind"] in STATED]
    ranked = leaderboard(config)
    audits = plan.results_folder(config, "audit")
    css, script = (
        Markup((FILES / name).read_text(encoding="utf-8"))  # noqa: S704  # own files
        for name in ("page.css", "explore.js")
    )
    template = _environment(folder).get_template("page.html")
    return template.render(
        papers=[paper for paper in every if paper["counted"]],
        every=every,
        authors={paper["name"]: paper["author"] for paper in every},
        arena=next((paper for paper in every if paper["name"] == ARENA), None),
        advice=_advice(plan.results_folder(config, ARENA, "advice.csv")),
        claims=listed,
        counts=counts,
        held=counted(claim["verdict"] for claim in listed),
        totals=counted(stated),
        board=ranked.to_dict("records"),
        unverified=[  # external data without a declared digest
            _titled(name)
            for name in ranked["problem"].unique()
            if taken_as_it_came(configuration.read("problem", name).dataset)
        ],
        verdicts=[str(verdict) for verdict in VERDICTS],
        marks=MARKS,
        classes=CLASSES,
        kinds=KINDS,
        judged=plan.results_folder(config, "claims.csv").is_file(),
        audits=sorted(audits.glob("*.csv")),
        scale=config.scale.name,
        versions=store.versions(),
        css=css,
        script=script,
        worth=_link(plan.figures_folder(config, "worth.png"), folder),
        epsilons=worth_in_words(
            true_epsilons(config),
            {paper["name"]: author(paper["reference"]) for paper in every},
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
        "number": found,
        "titled": _titled,
        "link": functools.partial(_link, folder=folder),
    }
    return environment


def _titled(problem: str) -> str:
    return configuration.read("problem", problem).title or problem


def _link(path: Path, folder: Path) -> str:
    """Path of a file relative to the page's folder; empty if it does not exist."""
    return os.path.relpath(path, folder) if path.is_file() else ""


def _paper(config: schema.Config, claims: pd.DataFrame, folder: Path) -> Row:
    """Values of one paper for the page, by their names in the template."""
    paper = config.paper
    results = plan.results_folder(config, paper.name)
    rows = claims[claims["paper"] == paper.name]
    listed = [
        row | {"figures": figures(row), "files": [Path(one) for one in files(row)]}
        for row in rows.to_dict("records")
    ]
    stated = [row["verdict"] for row in listed if row["kind"] in STATED]
    title = paper.title.partition(":")[0]
    return {
        "name": paper.name,
        "title": paper.title,
        "author": author(paper.reference) if stated else title,
        "thresholds": paper.thresholds,
        "reference": paper.reference,
        "claims": listed,
        "counted": counted(stated),
        "cells": printed(rows),
        "figures": list(drawn(config, folder)),
        "bottom": bottom(paper.name, claims),
        "report": REPORTS / f"{paper.name}.md",
        "noise": results / f"{NOISE_TABLES.get(paper.name, 'noise')}.csv",
        "manifest": store.known_json(results / "manifest.json") or {},
    }


def drawn(config: schema.Config, folder: Path) -> Iterator[Row]:
    """Yield the drawn figures of a paper, with links relative to ``folder``.

    Each has its caption, the files that Git holds, and the command that draws it again.
    """
    paper, small = config.paper, config.scale.folder
    of_scale = f" --config scale={config.scale.name}" if small else ""
    for name, product in paper.figures.items():
        stem = plan.figures_folder(config, paper.name, name)
        links = {
            kind: _link(stem.with_suffix(f".{kind}"), folder) for kind in ("png", "csv")
        }
        if all(links.values()):
            file = Path("figures", small, paper.name, f"{name}.png").as_posix()
            yield {
                "key": f"{paper.name}/{name}",
                "id": slug("f", paper.name, name),
                "name": name,
                "caption": without_latex(product.caption),
                "links": links,
                "command": f"dperm {file}{of_scale}",
            }


def leaderboard(config: schema.Config) -> pd.DataFrame:
    """Methods of the arena at the best setting of their grid, by data set and epsilon.

    Returns
    -------
    DataFrame
        Columns of ``arena.csv``; ``place``, from 1; ``of``, the number of methods; and
        ``tied``, whether the interval of the row meets that of the first.
    """
    data = _read(plan.results_folder(config, ARENA, "arena.csv"))
    if data.empty:
        return pd.DataFrame(columns=["problem"])
    tuned = data["tuning"] == "grid"
    keys = ["problem", "epsilon"]
    data = data[tuned].dropna(subset=["mean", "ci_low"])
    data = data.sort_values([*keys, "mean", "algorithm"], kind="stable")
    groups = data.groupby(keys, sort=False)
    return data.assign(
        place=groups.cumcount() + 1,
        of=groups["mean"].transform("size"),
        tied=data["ci_low"] <= groups["ci_high"].transform("first"),
    )


def _read(path: Path) -> pd.DataFrame:
    """A table that is only shown; an empty one if it is not there."""
    return pd.read_csv(path) if path.is_file() else pd.DataFrame()


def _advice(path: Path) -> list[Row]:
    """Recommended methods without tuning, by loss: rows of ``advice.csv``."""
    data = _read(path)
    if data.empty:
        return []
    data = data[data["tuning"] == "default"]
    return [
        {"loss": loss, "rows": group.rename(columns={"from": "low"}).to_dict("records")}
        for loss, group in data.groupby("loss", sort=False)
    ]
