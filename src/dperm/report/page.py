"""The report: one HTML page that needs no network, made of the committed results.

It reads ``claims.csv``, the figures' data and pictures, the tables' CSV files, ledgers
and manifests; what is not there is left out. Charts are drawn in the browser by a small
script of ours (``page_files/page.js``): those of plotting libraries cannot be read with
a keyboard. Without scripts the figures' PNG files stand in their place.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
from base64 import b64encode
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, select_autoescape
from markupsafe import Markup

from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.report import selection_bias as selection
from dperm.report import stories, views
from dperm.report.board import Ledgers, board, leaders
from dperm.report.charts import BANDS, MARKERS, Palette, plain, short
from dperm.report.claims import HEADLINE, KINDS, papers
from dperm.report.entries import Names, counted, entries, names
from dperm.report.evidence import read_or_empty
from dperm.report.figures import Figure, figures
from dperm.report.judging import table
from dperm.report.scorecard import scorecard
from dperm.report.verdicts import HELD, VERDICTS

log = logging.getLogger(__name__)

FILES = Path(__file__).with_name("page_files")
MARKS = dict(zip(VERDICTS, ("✓", "◐", "✗", "?", "∅", "≠", "–", "…"), strict=True))
CLASSES = dict(
    zip(
        VERDICTS,
        ("yes", "caveat", "no", "open", "empty", "apart", "untested", "pending"),
        strict=True,
    )
)
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
    story: list[stories.Sentence]
    epsilons: list[dict[str, Any]]
    costs: list[dict[str, Any]]
    manifest: dict[str, Any]

    @property
    def held(self) -> float:
        """Share of its sentences and cells that were reproduced."""
        own = [claim for claim in self.claims if claim["kind"] in HEADLINE]
        return sum(claim["verdict"] in HELD for claim in own) / max(1, len(own))

    @property
    def picture(self) -> Figure | None:
        """The figure that most of the claims to see first rest on, or else the first.

        The earliest where several are named as often; a map only where all are maps.
        """
        named = Counter(
            name for claim in self.claims if claim["first"] for name in claim["figures"]
        )
        of = {figure.key.split("/")[1]: figure for figure in self.figures}
        ranked = sorted(of, key=lambda name: (bool(of[name].picture), -named[name]))
        return of[ranked[0]] if ranked else None


def report(config: schema.Config) -> list[Path]:
    """Write ``report/index.html``, and ``selection.csv`` beside the claims."""
    folder = plan.results_folder(config)
    judged = folder / "claims.csv"
    claims = pd.read_csv(judged) if judged.is_file() else table(config)
    chosen = selection.selection(config)
    store.write_csv(folder / "selection.csv", chosen)
    path = folder / "report" / "index.html"
    store.write_text(path, page(config, claims, chosen, path.parent))
    for made in (folder / "selection.csv", path):
        log.info("%s", made)
    return [folder / "selection.csv", path]


def page(
    config: schema.Config, claims: pd.DataFrame, chosen: pd.DataFrame, folder: Path
) -> str:
    """The whole page as text; ``folder`` is where links start from."""
    known, palette = names(config), Palette()
    configs = [(each, Ledgers(each)) for each in papers(config)]
    ranked = board(configs)
    shown = [
        _paper(paper, ledgers, claims, ranked, known, palette, folder)
        for paper, ledgers in configs
    ]
    shown = [paper for paper in shown if paper.claims or paper.figures]
    shown.sort(key=lambda paper: -paper.held)
    every = [claim for paper in shown for claim in paper.claims]
    every.sort(key=lambda claim: (not claim["first"], list(KINDS).index(claim["kind"])))
    return _environment(known, folder).get_template("page.html").render(
        papers=shown, claims=every, counts=_counts(every),
        card=_card(claims, [paper.name for paper in shown]), totals=_totals(claims),
        board=ranked.to_dict("records"), leaders=leaders(ranked).to_dict("records"),
        sets=views.data_sets(ranked, shown, known.problems),
        methods=views.methods(ranked, shown),
        verdicts=VERDICTS, marks=MARKS, classes=CLASSES, kinds=KINDS,
        bands=Markup(_json(BANDS)), markers=MARKERS,
        judged=plan.results_folder(config, "claims.csv").is_file(),
        selection=_listed(selection.summary(chosen)),
        audits=_audits(plan.results_folder(config, "audit")),
        scale=config.scale.name, versions=store.versions(),
        css=Markup((FILES / "page.css").read_text()), colours=palette.css(),
        scripts=[Markup((FILES / name).read_text())
                 for name in ("page.js", "explore.js")],
        data=_packed({made.key: made.data["panels"] for paper in shown
                      for made in paper.figures if not made.picture}),
    )  # fmt: skip


def _environment(known: Names, folder: Path) -> Environment:
    """Templates, and the filters they use; links start from ``folder``."""
    environment = Environment(
        loader=FileSystemLoader(FILES), autoescape=select_autoescape(["html"]),
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "short": short, "plain": plain,
        "number": stories.number, "titled": lambda name: known.problems.get(name, name),
        "data_id": views.data_id, "method_id": views.method_id,
        "link": lambda path: os.path.relpath(path, folder),
    }  # fmt: skip
    return environment


def _counts(claims: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """How many claims each choice of each filter has."""
    keys = ("paper", "kind", "verdict", "problems", "methods")
    found = {key: counted(claims, key) for key in keys}
    found["verdict"] = {
        verdict: found["verdict"][verdict]
        for verdict in VERDICTS
        if verdict in found["verdict"]
    }
    return found


def _card(claims: pd.DataFrame, order: list[str]) -> list[dict[str, Any]]:
    """The scorecard, its papers in this order."""
    rows = scorecard(claims).to_dict("records")
    return sorted(rows, key=lambda row: order.index(row["paper"]))


def _totals(claims: pd.DataFrame) -> dict[str, int]:
    """Verdicts on the papers' own sentences and cells."""
    own = claims[claims["kind"].isin(HEADLINE)]
    return own["verdict"].value_counts().to_dict()


def _json(value: Any) -> str:
    """JSON that may stand inside a script element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c")


def _packed(value: Any) -> str:
    """JSON by gzip and base64: a quarter of its size."""
    return b64encode(gzip.compress(_json(value).encode(), mtime=0)).decode()


# --- one paper ------------------------------------------------------------------------


def _paper(
    config: schema.Config,
    ledgers: Ledgers,
    claims: pd.DataFrame,
    ranked: pd.DataFrame,
    known: Names,
    palette: Palette,
    folder: Path,
) -> Paper:
    paper = config.paper
    results = plan.results_folder(config, paper.name)
    manifest = _manifest(config)
    commit = ", ".join(manifest.get("commit", [])) or "unknown"
    own = entries(config, claims, known)
    costs = [cost for name in EPSILONS for cost in _costs(results / f"{name}.csv")]
    best = leaders(ranked)
    return Paper(
        name=paper.name, title=paper.title, reference=paper.reference,
        thresholds=paper.thresholds, claims=own,
        figures=list(figures(config, folder, palette, ledgers, known, commit)),
        story=stories.story(own, costs, best[best["problem"].isin(paper.problems)]),
        epsilons=_tables(results, EPSILONS), costs=costs, manifest=manifest,
    )  # fmt: skip


def _manifest(config: schema.Config) -> dict[str, Any]:
    path = plan.results_folder(config, config.paper.name, "manifest.json")
    return store.read_json(path) if path.is_file() else {}


def _audits(folder: Path) -> list[dict[str, Any]]:
    """All tables of the privacy audit, if it has run."""
    return _tables(folder, tuple(sorted(path.stem for path in folder.glob("*.csv"))))


def _tables(folder: Path, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The named tables that are there, for reading."""
    found = []
    for name in names:
        path = folder / f"{name}.csv"
        data = read_or_empty(path)
        if len(data):
            listed = _listed(data.head(LONGEST))
            found.append({"name": name, "path": path, "of": len(data), **listed})
    return found


def _costs(path: Path) -> list[dict[str, Any]]:
    """Range of the true epsilon by algorithm and target, and the most that is proved.

    None without such columns; a table without lower bounds proves nothing.
    """
    data = read_or_empty(path)
    if "true_epsilon" not in data:
        return []
    target = "target_epsilon" if "target_epsilon" in data else "epsilon"
    data = data[data["noise"] != "strict"] if "noise" in data else data
    named = [key for key in ("algorithm", "method", "noise") if key in data]
    keys = [*named[:2], target]
    if "epsilon_low" not in data:
        data = data.assign(epsilon_low=0.0)
    return [
        {"name": ", ".join(map(str, names[:-1])) or "published noise",
         "target": names[-1], "low": group["true_epsilon"].min(),
         "high": group["true_epsilon"].max(), "proved": group["epsilon_low"].max()}
        for names, group in data.groupby(keys, sort=False)
    ]  # fmt: skip


def _listed(data: pd.DataFrame) -> dict[str, Any]:
    """Headers and rows of a table, numbers with three digits."""
    rows = [[short(value) for value in row] for row in data.itertuples(index=False)]
    return {"columns": [name.replace("_", " ") for name in data.columns], "rows": rows}
