"""The report: one HTML page that needs no network, made of the committed results.

It reads ``claims.csv``, the figures' data, the tables' CSV files and the manifests;
what is not there is left out. Charts are drawn in the browser by a small script of ours
(``page_files/page.js``, 15 kB): the plotting library at hand weighs 4.5 MB, several
times all data, and its charts cannot be read with a keyboard.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, FileSystemLoader, select_autoescape
from markupsafe import Markup

from dperm import schema
from dperm.pipeline import plan, seeds
from dperm.present.tables import number
from dperm.report import selection_bias as selection
from dperm.report.claims import HEADLINE, KINDS, papers
from dperm.report.evidence import read_or_empty
from dperm.report.judging import COLUMNS, table
from dperm.report.scorecard import scorecard
from dperm.report.verdicts import VERDICTS
from dperm.store import files as store
from dperm.store import provenance

log = logging.getLogger(__name__)

FILES = Path(__file__).with_name("page_files")
FIGURE_COLUMNS = ("x", "mean", "ci_low", "ci_high", "min", "max")
MARKS = dict(zip(VERDICTS, ("✓", "◐", "✗", "?", "∅", "≠", "–", "…"), strict=True))
CLASSES = dict(
    zip(
        VERDICTS,
        ("yes", "caveat", "no", "open", "empty", "apart", "untested", "pending"),
        strict=True,
    )
)
EPSILONS = ("noise", "privacy")  # tables of true epsilons
_LATEX = {
    r"\epsilon": "ε", r"\eta": "η", r"\tau": "τ", r"\kappa": "κ", r"\alpha": "α",
    r"\nabla": "∇", r"\|": "‖", r"\,": " ", r"\sqrt": "√",
}  # fmt: skip


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
    shown = [_paper(paper, claims, folder) for paper in papers(config)]
    figures = {made.key: made.data for paper in shown for made in paper["figures"]}
    environment = Environment(
        loader=FileSystemLoader(FILES), autoescape=select_autoescape(["html"]),
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"short": short, "plain": plain}
    return environment.get_template("page.html").render(
        papers=shown,
        card=scorecard(claims).to_dict("records"),
        totals=_totals(claims),
        verdicts=VERDICTS, marks=MARKS, classes=CLASSES, kinds=KINDS,
        selection=_listed(selection.summary(chosen)),
        audits=_audits(plan.results_folder(config, "audit")),
        scale=config.scale.name, versions=provenance.versions(),
        css=Markup((FILES / "page.css").read_text()),
        js=Markup((FILES / "page.js").read_text()),
        data=Markup(_json(figures)),
    )  # fmt: skip


def _totals(claims: pd.DataFrame) -> dict[str, int]:
    """Verdicts on the papers' own sentences and cells."""
    own = claims[claims["kind"].isin(HEADLINE)]
    return own["verdict"].value_counts().to_dict()


def _json(value: Any) -> str:
    """JSON that may stand inside a script element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c")


# --- one paper ------------------------------------------------------------------------


def _paper(config: schema.Config, claims: pd.DataFrame, folder: Path) -> dict[str, Any]:
    paper = config.paper
    empty = dict.fromkeys(("published", "reason", "control", "set"), "")
    own = claims[claims["paper"] == paper.name].fillna(empty)
    is_cell = own["kind"] == "cell"
    own["kind"] = pd.Categorical(own["kind"], list(KINDS), ordered=True)
    results = plan.results_folder(config, paper.name)
    return {
        "name": paper.name,
        "title": paper.title,
        "reference": paper.reference,
        "thresholds": paper.thresholds,
        "sentences": own[~is_cell]
        .sort_values("kind", kind="stable")[COLUMNS]
        .to_dict("records"),
        "cells": own[is_cell][COLUMNS].to_dict("records"),
        "figures": list(_figures(config, folder)),
        "epsilons": _tables(results, EPSILONS),
        "costs": [
            cost for name in EPSILONS for cost in _costs(results / f"{name}.csv")
        ],
        "manifest": _manifest(config),
    }


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
        data = read_or_empty(folder / f"{name}.csv")
        if len(data):
            found.append({"name": name, **_listed(data)})
    return found


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
        {"name": ", ".join(map(str, names[:-1])) or "published noise",
         "target": names[-1], "low": group.min(), "high": group.max()}
        for names, group in data.groupby(keys, sort=False)["true_epsilon"]
    ]  # fmt: skip


def _listed(data: pd.DataFrame) -> dict[str, Any]:
    """Headers and rows of a table, numbers with three digits."""
    rows = [[short(value) for value in row] for row in data.itertuples(index=False)]
    return {"columns": [name.replace("_", " ") for name in data.columns], "rows": rows}


def short(value: Any) -> str:
    """A value for a reader: three significant digits, whole numbers as they are."""
    if isinstance(value, bool | str):
        return str(value)
    if value is None or pd.isna(value):
        return ""
    if math.isinf(value) or (value == int(value) and abs(value) < 1e6):
        return f"{value:g}"
    return number(value)


# --- figures --------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """One figure: what the script draws, and where it comes from."""

    key: str  # paper/name
    name: str
    caption: str
    data: dict[str, Any]
    links: dict[str, str]
    command: str
    setting: str
    seeds: str
    commit: str
    missing: list[str]  # problems whose data could not be had


def _figures(config: schema.Config, folder: Path) -> Iterator[Figure]:
    commit = ", ".join(_manifest(config).get("commit", [])) or "unknown"
    for name, product in config.paper.figures.items():
        stem = plan.figures_folder(config, config.paper.name, name)
        points = read_or_empty(stem.with_suffix(".csv"))
        if points.empty:
            continue
        settings = _settings(config, product)
        yield Figure(
            key=f"{config.paper.name}/{name}",
            name=name.replace("_", " "),
            caption=plain(product.caption),
            data=_curves(points, product, settings),
            links={
                kind: os.path.relpath(stem.with_suffix(f".{kind}"), folder)
                for kind in ("csv", "svg", "pdf")
            },
            command=_command(config, name),
            setting=_recipe(config, product, settings),
            seeds=_seeds(config, product, settings),
            commit=commit,
            missing=_missing(config, product, points),
        )


def _missing(
    config: schema.Config, product: schema.Product, points: pd.DataFrame
) -> list[str]:
    """Problems of a figure of trajectories that have no panel."""
    if product.kind != "trajectories":
        return []
    names = plan.product_problems(product, plan.problem_names(config))
    return [name for name in names if name not in set(points["panel"])]


def _command(config: schema.Config, name: str) -> str:
    """What rebuilds one figure alone."""
    scale = config.scale
    path = Path("figures", scale.folder, config.paper.name, f"{name}.svg").as_posix()
    small = f" --config scale={scale.name} --" if scale.folder else ""
    return f"snakemake -j 2{small} {path}"


def _curves(
    data: pd.DataFrame, product: schema.Product, settings: pd.DataFrame
) -> dict[str, Any]:
    """Panels with curves, in the order of the data; numbers rounded to four digits."""
    chosen = {
        (row["problem"], row["algorithm"]): _setting_text(row)
        for row in settings.to_dict("records")
    }
    panels = []
    for panel, part in data.groupby("panel", sort=False):
        curves = []
        for algorithm, rows in part.groupby("algorithm", sort=False):
            values = {name: _numbers(rows[name]) for name in FIGURE_COLUMNS}
            curves.append({"name": plain(algorithm), **values,
                           "setting": chosen.get((panel, algorithm), "")})  # fmt: skip
        name = str(panel).replace("_", " ") if str(panel).isidentifier() else panel
        panels.append({"name": plain(str(name)), "curves": curves})
    axis = product.options.get("x", "passes")
    return {"panels": panels, "x": axis if product.kind == "trajectories" else "x"}


def _numbers(column: pd.Series) -> list[float | None]:
    return [float(f"{v:.4g}") if math.isfinite(v) else None for v in column]


def plain(text: str) -> str:
    """A label without LaTeX."""
    for latex, letter in _LATEX.items():
        text = text.replace(latex, letter)
    return re.sub(r"[${}]", "", text.replace("_{", "_"))


def _settings(config: schema.Config, product: schema.Product) -> pd.DataFrame:
    """The chosen passes, step and clip of every curve, from the paper's own tables."""
    keys = ["problem", "algorithm"]
    for name, made in config.paper.tables.items():
        if made.calibration != product.calibration or product.kind != "trajectories":
            continue
        path = plan.results_folder(config, config.paper.name, f"{name}.csv")
        data = read_or_empty(path)
        if {*keys, "passes", "step", "clip", "mean"} <= set(data.columns):
            known = data.dropna(subset="mean")
            best = known.groupby(keys, sort=False)["mean"].idxmin()
            return known.loc[best, [*keys, "passes", "step", "clip"]]
    return pd.DataFrame(columns=[*keys, "passes", "step", "clip"])


def _setting_text(row: dict[str, Any]) -> str:
    return ", ".join(f"{key} {short(row[key])}" for key in ("passes", "step", "clip"))


def _recipe(
    config: schema.Config, product: schema.Product, settings: pd.DataFrame
) -> str:
    """The YAML that makes the figure: product, sweeps or grids, and what was chosen."""
    paper = config.paper
    told: dict[str, Any] = {
        "scale": config.scale.name,
        "figure": _clean(asdict(product)),
    }
    told["figure"].pop("caption", None)
    for name in product.sweeps:
        told.setdefault("sweeps", {})[name] = _clean(asdict(paper.sweeps[name]))
    if not product.sweeps:
        told["runs"] = {name: run.grid for name, run in paper.runs.items()}
        told["replicates"], told["fresh"] = paper.replicates, paper.fresh
    text = yaml.safe_dump(told, sort_keys=False, default_flow_style=None, width=100)
    chosen = [
        f"{row['problem']}, {row['algorithm']}: {_setting_text(row)}"
        for row in settings.to_dict("records")
    ]
    return text + ("\nchosen:\n" + "\n".join(chosen) if chosen else "")


def _clean(value: dict[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in value.items() if each not in (None, [], {}, "")}


def _seeds(
    config: schema.Config, product: schema.Product, settings: pd.DataFrame
) -> str:
    """The master seed, how it is spread, and the seeds of every tuned curve."""
    fresh = config.scale.fresh or config.paper.fresh
    text = f"master seed {config.seed}; SHA-256 of stage, names and replicate"
    if product.sweeps:
        counts = {
            config.scale.replicates or config.paper.sweeps[name].replicates
            for name in product.sweeps
        }
        return f"{text}; replicates 0 to {max(counts) - 1} of every point"
    text += f"; fresh replicates 0 to {fresh - 1}"
    names = {plan.label(config, name): name for name in config.paper.runs}
    lines = [
        f"{row['problem']}, {row['algorithm']}: "
        + " ".join(
            str(seeds.seed(config.seed, "evaluate", row["problem"],
                           names[row["algorithm"]], row["passes"], replicate))
            for replicate in range(fresh)
        )
        for row in settings.to_dict("records")
        if row["algorithm"] in names
    ]  # fmt: skip
    return "\n".join([text, *lines])
