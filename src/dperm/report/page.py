"""The report: one HTML page that needs no network, made of the committed results.

Charts are drawn in the browser by a small script of ours (``page_files/page.js``):
those of plotting libraries cannot be read with a keyboard. What is not there is left
out; without scripts the figures' PNG files stand in their place.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, select_autoescape
from markupsafe import Markup

from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment.files import write_csv
from dperm.core.experiment.locate import available
from dperm.pipeline import seals
from dperm.report import board as boards
from dperm.report.board import Ledgers
from dperm.report.claims import HEADLINE, KINDS, papers
from dperm.report.entries import (
    FIVE,
    Names,
    complete,
    counted,
    entries,
    names,
    number,
    slug,
)
from dperm.report.evidence import read_or_empty
from dperm.report.figures import BANDS, MARKERS, Figure, Palette, figures, plain, short
from dperm.report.judging import table
from dperm.report.reports import REPORTS, bottom, noticing

log = logging.getLogger(__name__)

FILES = Path(__file__).with_name("page_files")
MARKS = dict(zip(FIVE, "✓◐✗?–", strict=True))
CLASSES = dict(zip(FIVE, ("yes", "caveat", "no", "open", "apart"), strict=True))
LONGEST = 60  # rows of a table that the page shows; the CSV file has all
EPSILONS = ("noise", "privacy")  # tables of true epsilons


@dataclass(frozen=True)
class Paper:
    """What the page shows of one paper."""

    name: str
    title: str
    reference: str
    thresholds: str
    claims: list[dict[str, Any]]
    figures: list[Figure]
    bottom: str
    report: Path
    epsilons: list[dict[str, Any]]
    costs: list[dict[str, Any]]
    manifest: dict[str, Any]

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
    chosen = boards.selection(config)
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
    known, palette, claims = names(config), Palette(), complete(claims)
    configs = [(each, Ledgers(each)) for each in papers(config)]
    ranked = boards.board(configs)
    every = [
        _paper(paper, ledgers, claims, known, palette, folder)
        for paper, ledgers in configs
    ]
    shown = [paper for paper in every if paper.claims or paper.figures]
    shown.sort(key=lambda paper: not paper.counted)  # what is no paper comes last
    listed = [claim for paper in shown for claim in paper.claims]
    kinds = list(KINDS)
    listed.sort(key=lambda claim: (not claim["first"], kinds.index(claim["kind"])))
    filters = ("paper", "kind", "short", "problems", "methods")
    counts = {key: counted(listed, key) for key in filters}
    verdicts = counts["short"]
    counts["short"] = {key: verdicts[key] for key in FIVE if key in verdicts}
    headline = [claim for claim in listed if claim["kind"] in HEADLINE]
    audits = plan.results_folder(config, "audit")
    charts = {
        figure.key: figure.data["panels"]
        for paper in shown
        for figure in paper.figures
        if not figure.picture
    }
    css, *scripts = (
        Markup((FILES / name).read_text(encoding="utf-8"))  # nosec B704  # own files
        for name in ("page.css", "page.js", "explore.js")
    )
    template = _environment(known, folder).get_template("page.html")
    return template.render(
        papers=shown,
        claims=listed,
        counts=counts,
        totals=counted(headline, "short"),
        board=ranked.to_dict("records"),
        sets=boards.data_sets(ranked, shown, known.problems),
        methods=boards.methods(ranked, shown),
        verdicts=FIVE,
        marks=MARKS,
        classes=CLASSES,
        kinds=KINDS,
        bands=Markup(_json(BANDS)),  # nosec B704  # a constant, without "<"
        markers=MARKERS,
        judged=plan.results_folder(config, "claims.csv").is_file(),
        selection=_listed(boards.by_algorithm(chosen)),
        audits=_tables(audits, sorted(path.stem for path in audits.glob("*.csv"))),
        scale=config.scale.name,
        versions=store.versions(),
        css=css,
        colours=palette.css(),
        scripts=scripts,
        data=_packed(charts),
        worth=_link(plan.figures_folder(config, "worth.png"), folder),
    )


def _environment(known: Names, folder: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FILES),
        autoescape=select_autoescape(["html"]),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "short": short,
        "plain": plain,
        "noticing": noticing,
        "number": number,
        "titled": lambda name: known.problems.get(name, name),
        "data_id": partial(slug, "d"),
        "method_id": partial(slug, "m"),
        "link": lambda path: os.path.relpath(path, folder),
    }
    return environment


def _link(path: Path, folder: Path) -> str:
    """Where a file lies, from the page's folder; empty if it is not there."""
    return os.path.relpath(path, folder) if path.is_file() else ""


def _json(value: Any) -> str:
    """JSON that may stand inside a script element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c")


def _packed(value: Any) -> str:
    """JSON by gzip and base64: a quarter of its size."""
    return b64encode(gzip.compress(_json(value).encode(), mtime=0)).decode()


def _paper(
    config: schema.Config,
    ledgers: Ledgers,
    claims: pd.DataFrame,
    known: Names,
    palette: Palette,
    folder: Path,
) -> Paper:
    paper = config.paper
    results = plan.results_folder(config, paper.name)
    manifest = store.known_json(results / "manifest.json") or {}
    commit = ", ".join(manifest.get("commit", [])) or "unknown"
    listed = entries(config, claims, known)
    costs = [cost for name in EPSILONS for cost in _costs(results / f"{name}.csv")]
    return Paper(
        name=paper.name,
        title=paper.title,
        reference=paper.reference,
        thresholds=paper.thresholds,
        claims=listed,
        figures=list(figures(config, folder, palette, ledgers, known, commit)),
        bottom=bottom(paper.name, claims),
        report=REPORTS / f"{paper.name}.md",
        epsilons=_tables(results, EPSILONS),
        costs=costs,
        manifest=manifest,
    )


def _tables(folder: Path, names: Iterable[str]) -> list[dict[str, Any]]:
    tables = []
    for name in names:
        path = folder / f"{name}.csv"
        data = read_or_empty(path)
        if len(data):
            listed = _listed(data.head(LONGEST))
            tables.append({"name": name, "path": path, "of": len(data), **listed})
    return tables


def _costs(path: Path) -> list[dict[str, Any]]:
    """Range of the true epsilon by algorithm and target; none without such columns."""
    data = read_or_empty(path)
    if "true_epsilon" not in data:
        return []
    target = "target_epsilon" if "target_epsilon" in data else "epsilon"
    data = data[data["noise"] != "strict"] if "noise" in data else data
    named = [key for key in ("algorithm", "method", "noise") if key in data]
    keys = [*named[:2], target]
    return [
        {
            "name": ", ".join(map(str, names[:-1])) or "published noise",
            "target": names[-1],
            "low": group["true_epsilon"].min(),
            "high": group["true_epsilon"].max(),
        }
        for names, group in data.groupby(keys, sort=False)
    ]


def _listed(data: pd.DataFrame) -> dict[str, Any]:
    rows = [[short(value) for value in row] for row in data.itertuples(index=False)]
    return {"columns": [name.replace("_", " ") for name in data.columns], "rows": rows}
