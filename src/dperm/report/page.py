"""The report: one HTML page that needs no network, made from the committed results.

It opens with answers: whether the papers' claims hold, what their epsilons are worth,
and which method to use. Below are the major claims and the figures of each paper, which
are the drawn files, with links to their data.
"""

from __future__ import annotations

import functools
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from jinja2 import Environment

from dperm.claims.judge import VERDICTS
from dperm.config import config as configuration
from dperm.config import schema
from dperm.plotting import drawing
from dperm.plotting.tables import groups, short
from dperm.report import texts
from dperm.report.true_epsilons import (
    NOISE_TABLES,
    epsilons_in_words,
    epsilons_picture,
    true_epsilons,
)
from dperm.storage import files as store

log = logging.getLogger(__name__)

SHADES = (
    "yes",
    "caveat",
    "open",
    "open",
    "no",
    "apart",
)  # classes of the verdicts
CLASSES = dict(zip(VERDICTS, SHADES, strict=True))
EPSILONS_LABEL = (
    "Proved bounds of epsilon of noise published for epsilon = 1, by method"
)
ARENA = "arena"  # the folder of the comparison of methods


def page(config: schema.Config, claims: pd.DataFrame, folder: Path) -> str:
    """The whole page as text, with links relative to ``folder``."""
    root = Path(config.output.results)
    template = environment(folder).get_template("page.html")
    return template.render(
        judged=os.path.relpath(root / "claims.csv", folder),
        audits=sorted((root / "audit").glob("*.csv")),
        board=leaders(root),
        **answers(config, claims, folder),
    )


def answers(
    config: schema.Config, claims: pd.DataFrame, folder: Path
) -> texts.Row:
    """Values of the first screens, by their names in the templates."""
    scale = config.scale
    all_papers = [
        _paper(paper, scale, config.output, claims, folder)
        for paper in texts.papers(config)
    ]
    # the arena comes last
    all_papers.sort(key=lambda paper: not paper["counted"])
    prices = true_epsilons(Path(config.output.results))
    picture = ""
    if len(prices):
        picture = drawing.inline(epsilons_picture(prices), EPSILONS_LABEL)
    return {
        "papers": [paper for paper in all_papers if paper["counted"]],
        "every": all_papers,
        "arena": next(
            (paper for paper in all_papers if paper["name"] == ARENA), None
        ),
        "epsilons": epsilons_in_words(prices),
        "epsilons_picture": picture,
        "scale": scale.name,
        "versions": store.versions(),
        "marks": texts.MARKS,
        "classes": CLASSES,
    }


def environment(folder: Path) -> Environment:
    """What pages in a folder are made with: links are relative to it."""
    environment = texts.environment()
    environment.filters |= {
        "short": short,
        # without marks of LaTeX
        "plainly": lambda text: re.sub(r"[$\\{}]", "", text),
        "path": Path,
        "titled": lambda name: (
            configuration.read("problem", name).title or name
        ),
        "link": functools.partial(link, folder=folder),
    }
    return environment


def link(path: Path, folder: Path) -> str:
    """Path of a file relative to a page's folder; empty if it does not exist."""
    return os.path.relpath(path, folder) if path.is_file() else ""


def _paper(
    paper: schema.Paper,
    scale: schema.Scale,
    output: schema.Output,
    claims: pd.DataFrame,
    folder: Path,
) -> texts.Row:
    """Values of one paper for the page, by their names in the template."""
    results_folder = Path(output.results, paper.name)
    rows = claims[claims["paper"] == paper.name]
    return {
        "name": paper.name,
        "title": paper.title,
        "label": configuration.paper_label(paper.name),
        "reference": paper.reference,
        "rows": rows,
        "claims": [
            row
            | {
                "figures": [
                    f"{paper.name}-{name}" for name in texts.figures(row)
                ]
            }
            for row in texts.majors(rows)
        ],
        "counted": texts.counted(rows),
        "kinds": texts.by_kind(rows),
        "misprints": texts.misprints(rows),
        "figures": list(drawn(paper, scale, output, folder)),
        "bottom": texts.bottom(paper.name, claims),
        "report": texts.REPORTS / f"{paper.name}.md",
        "noise": results_folder
        / f"{NOISE_TABLES.get(paper.name, 'noise')}.csv",
    }


def drawn(
    paper: schema.Paper,
    scale: schema.Scale,
    output: schema.Output,
    folder: Path,
) -> Iterator[texts.Row]:
    """Yield the drawn figures of a paper, with links relative to ``folder``.

    Each has its caption, the files that Git holds, and the command that draws it again.
    """
    small = scale.folder
    of_scale = f" --config scale={scale.name}" if small else ""
    for name, product in paper.figures.items():
        stem = Path(output.figures, paper.name, name)
        png, csv = (
            link(stem.with_suffix(f".{ending}"), folder)
            for ending in ("png", "csv")
        )
        if png and csv:
            file = Path("figures", small, paper.name, f"{name}.png").as_posix()
            yield {
                "id": f"{paper.name}-{name}",
                "name": name,
                "caption": product.caption,
                "png": png,
                "csv": csv,
                "command": f"dperm {file}{of_scale}",
            }


def leaders(folder: Path) -> list[texts.Row]:
    """The least error of the arena, one row per data set and epsilon.

    Methods run with the best setting of their grid. ``level`` are methods whose 95 %
    interval meets that of the first, ``of`` is the number of all.
    """
    path = folder / ARENA / "arena.csv"
    if not path.is_file():
        return []
    board = pd.read_csv(path).dropna(subset=["mean", "ci_low"])
    board = board[board["tuning"] == "grid"]
    board = board.sort_values(
        ["problem", "epsilon", "mean", "algorithm"], kind="stable"
    )
    leader_rows = []
    for cell, rows in groups(board, ["problem", "epsilon"]):
        leader = rows.iloc[0].to_dict()
        level = rows.loc[
            rows["ci_low"] <= leader["ci_high"], "algorithm"
        ].iloc[1:]
        leader_rows.append(
            leader | cell | {"level": level.tolist(), "of": len(rows)}
        )
    return leader_rows
