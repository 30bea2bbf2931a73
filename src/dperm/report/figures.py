"""Figures of the page: what is drawn, where it comes from, and what rebuilds it."""

from __future__ import annotations

import io
import math
import os
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.present.drawing import write_palette
from dperm.report import charts
from dperm.report.board import Ledgers
from dperm.report.charts import PUBLISHED, Extra, Palette, plain, short, subject
from dperm.report.entries import Names, figure_id
from dperm.report.evidence import read_or_empty

SEEDS = 3  # of a curve that are shown; lanes hold all
KEPT = ("csv", "png")  # of a figure's files those that Git holds
_KEYS = ["problem", "algorithm"]


@dataclass(frozen=True)
class Figure:
    """One figure: what the script draws, and where it comes from."""

    id: str
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
    problems: list[str]  # its panels, as far as they are problems
    picture: str = ""  # a map, as a data URI: no chart of lines shows it


def figures(
    config: schema.Config,
    folder: Path,
    palette: Palette,
    ledgers: Ledgers,
    known: Names,
    commit: str,
) -> Iterator[Figure]:
    """The figures of a paper that have data.

    Parameters
    ----------
    config : schema.Config
        With the paper.
    folder : Path
        Where links start from.
    palette : Palette
        Collects the colours.
    ledgers : Ledgers
        Of the paper.
    known : Names
        Titles of problems, and labels of solvers that stand by their names.
    commit : str
        That the results are of.
    """
    for name, product in config.paper.figures.items():
        stem = plan.figures_folder(config, config.paper.name, name)
        points = read_or_empty(stem.with_suffix(".csv"))
        if points.empty:
            continue
        settings = _settings(config, product)
        yield Figure(
            id=figure_id(config.paper.name, name),
            key=f"{config.paper.name}/{name}",
            name=name.replace("_", " "),
            caption=plain(product.caption),
            data=charts.figure_data(
                points, store.known_json(stem.with_suffix(".json")) or {}, palette,
                known, **_texts(product, ledgers, settings),
            ),
            links=_links(stem, folder),
            command=_command(config, name),
            setting=_recipe(config, product, settings),
            seeds=_seeds(config, product, settings, ledgers.solvers),
            commit=commit,
            missing=_missing(config, product, points),
            problems=sorted({subject(str(panel)) for panel in points["panel"]}),
            picture=_picture(stem, points),
        )  # fmt: skip


def _picture(stem: Path, points: pd.DataFrame) -> str:
    """The PNG of a figure without a line in it: a map, or a diagram of ranks."""
    path = stem.with_suffix(".png")
    many = points.groupby(["panel", "algorithm"]).size().max() > 1
    if many or not path.is_file():
        return ""
    few = io.BytesIO()
    write_palette(path, few, 64)
    return f"data:image/png;base64,{b64encode(few.getvalue()).decode()}"


def _links(stem: Path, folder: Path) -> dict[str, str]:
    """The figure's files that are there and that a clone has too."""
    paths = {kind: stem.with_suffix(f".{kind}") for kind in KEPT}
    return {
        kind: os.path.relpath(path, folder)
        for kind, path in paths.items()
        if path.is_file()
    }


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


def _texts(
    product: schema.Product, ledgers: Ledgers, settings: pd.DataFrame
) -> dict[str, Extra]:
    """What is said of tuned curves: their true epsilons, and the chosen settings."""
    chosen = {(row["problem"], row["algorithm"]): row
              for row in settings.to_dict("records")}  # fmt: skip

    def setting(panel: str, algorithm: str) -> str:
        row = chosen.get((panel, algorithm.removesuffix(PUBLISHED)))
        return _setting_text(row) if row else ""

    def cost(panel: str, algorithm: str) -> str:
        row = chosen.get((panel, algorithm))
        epsilon = ledgers.epsilon(row, product.calibration) if row else None
        if epsilon is None:
            return ""
        finite = math.isfinite(epsilon)
        return f"true ε {short(epsilon)}" if finite else "no sound ε"

    return {"cost": cost, "setting": setting}


def _settings(config: schema.Config, product: schema.Product) -> pd.DataFrame:
    """The chosen passes, step and clip of every curve, from the paper's own tables."""
    for name, made in config.paper.tables.items():
        if made.calibration != product.calibration or product.kind != "trajectories":
            continue
        path = plan.results_folder(config, config.paper.name, f"{name}.csv")
        data = read_or_empty(path)
        if {*_KEYS, "passes", "step", "clip", "mean"} <= set(data.columns):
            known = data.dropna(subset="mean")
            best = known.groupby(_KEYS, sort=False)["mean"].idxmin()
            return known.loc[best, [*_KEYS, "passes", "step", "clip"]]
    return pd.DataFrame(columns=[*_KEYS, "passes", "step", "clip"])


def _setting_text(row: dict[str, Any]) -> str:
    return ", ".join(f"{key} {short(row[key])}" for key in ("passes", "step", "clip"))


def _recipe(
    config: schema.Config, product: schema.Product, settings: pd.DataFrame
) -> str:
    """The YAML that makes the figure: product, sweeps or grids, and what was chosen."""
    paper = config.paper
    recipe: dict[str, Any] = {
        "scale": config.scale.name,
        "figure": _clean(asdict(product)),
    }
    recipe["figure"].pop("caption", None)
    for name in product.sweeps:
        recipe.setdefault("sweeps", {})[name] = _clean(asdict(paper.sweeps[name]))
    if not product.sweeps:
        recipe["runs"] = {name: run.grid for name, run in paper.runs.items()}
        recipe["replicates"], recipe["fresh"] = paper.replicates, paper.fresh
    text = yaml.safe_dump(recipe, sort_keys=False, default_flow_style=None, width=100)
    chosen = [
        f"{row['problem']}, {row['algorithm']}: {_setting_text(row)}"
        for row in settings.to_dict("records")
    ]
    return text + ("\nchosen:\n" + "\n".join(chosen) if chosen else "")


def _clean(value: dict[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in value.items() if each not in (None, [], {}, "")}


def _seeds(
    config: schema.Config,
    product: schema.Product,
    settings: pd.DataFrame,
    names: dict[str, str],
) -> str:
    """The master seed, how it is spread, and the first seeds of every tuned curve."""
    fresh = config.scale.fresh or config.paper.fresh
    text = f"master seed {config.seed}; SHA-256 of stage, names and replicate"
    if product.sweeps:
        counts = {
            config.scale.replicates or config.paper.sweeps[name].replicates
            for name in product.sweeps
        }
        return f"{text}; replicates 0 to {max(counts) - 1} of every point"
    text += f"; fresh replicates 0 to {fresh - 1}"
    lines = [
        f"{row['problem']}, {row['algorithm']}: "
        + " ".join(
            str(plan.seed_of(config.seed, "evaluate", row["problem"],
                           names[row["algorithm"]], row["passes"], replicate))
            for replicate in range(min(fresh, SEEDS))
        )
        + (" ..." if fresh > SEEDS else "")
        for row in settings.to_dict("records")
        if row["algorithm"] in names
    ]  # fmt: skip
    return "\n".join([text, *lines])
