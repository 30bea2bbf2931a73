"""The last stage of a paper: whether everything is there, and its manifest."""

from __future__ import annotations

import datetime
import logging
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from dperm import schema
from dperm.pipeline import costs, plan
from dperm.pipeline.record import record
from dperm.pipeline.results import sweep_path
from dperm.store import files as store
from dperm.store import provenance

log = logging.getLogger(__name__)


class IncompleteError(RuntimeError):
    """Something could not be made; the text says what and why."""


def complete(config: schema.Config) -> Path:
    """Write ``complete.txt``, the manifest of the run and its record.

    Raises
    ------
    IncompleteError
        If a problem's data could not be had. Everything else has been made.
    """
    folder = plan.results_folder(config, config.paper.name)
    tables = {
        (problem, solver): store.read_table(folder / problem / solver / "tune.parquet")
        for problem, solver in plan.runs(config)
    }
    for name in config.paper.sweeps:
        tables["sweep", name] = store.read_table(sweep_path(config, name))
    _write_manifest(folder / "manifest.json", _manifest(config, tables.values()))
    _write_record(folder / "record.json", record(config, _all_rows(folder)))
    missing = {
        " ".join(name) if name[0] == "sweep" else name[0]: _reason(table)
        for name, table in tables.items()
        if (table["status"] == "unavailable").any()
    }
    if missing:
        lines = [f"{problem}: {reason}" for problem, reason in missing.items()]
        raise IncompleteError("made all but\n" + "\n".join(lines))
    made = plan.figures_folder(config, config.paper.name)
    text = f"{config.paper.name}: figures in {made}, tables in {folder}\n"
    store.write_text(folder / "complete.txt", text)
    log.info(text.strip())
    return folder / "complete.txt"


def _all_rows(folder: Path) -> dict[str, pd.DataFrame]:
    """Tables of all stages by their path below the paper's folder."""
    return {
        str(path.relative_to(folder)): store.read_table(path)
        for path in sorted(folder.rglob("*.parquet"))
        if "lanes" not in path.parts and not path.name.startswith(".")
    }


def _reason(table: pd.DataFrame) -> str:
    return str(table.loc[table["status"] == "unavailable", "reason"].iloc[0])


def _write_record(path: Path, made: dict[str, Any]) -> None:
    """Write it; a command that computed nothing keeps where the rows were made."""
    before = store.known_json(path) or {}
    if before.get("digests", {}).get("rows") == made["digests"]["rows"]:
        kept = ("platform", "packages")
        made |= {key: before[key] for key in kept if key in before}
    store.write_json(path, made)


def _write_manifest(path: Path, made: dict) -> None:
    """Write it; a command that computed nothing keeps the last one's date, machine."""
    try:
        before = store.read_json(path) if path.exists() else {}
    except ValueError as error:
        log.warning("made anew: %s", error)
        before = {}
    if before.get("configuration") == made["configuration"]:
        kept = ("date", "machine", "versions", "wall_seconds", "cpu_seconds")
        made |= {key: before[key] for key in kept if key in before}
    store.write_json(path, made)


def _manifest(config: schema.Config, tables: Iterable[pd.DataFrame]) -> dict:
    """What a reader of the committed figures wants to know of the run behind them."""
    rows = pd.concat(tables)
    spent = rows["seconds"].sum()
    started = os.environ.get("DPERM_STARTED")  # by the Snakefile, the same clock
    return {
        "paper": config.paper.name,
        "scale": config.scale.name,
        "commit": sorted(rows["commit"].dropna().unique().tolist()),
        "versions": provenance.versions(),
        "configuration": store.digest(sorted(rows["config_digest"].dropna().unique())),
        "master_seed": config.seed,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": provenance.machine(),
        "runs": len(rows),
        "solver_seconds": round(float(spent), 1),
        "wall_seconds": round(time.monotonic() - float(started)) if started else None,
        "cpu_seconds": _cpu_seconds(config),
    }


def _cpu_seconds(config: schema.Config) -> float | None:
    """Of the paper's jobs, each as it ran last; None where none was recorded."""
    known = costs.recorded(Path("logs", config.scale.folder))
    own = [
        cost.cpu for job, cost in known.items() if config.paper.name in job.split("/")
    ]
    return round(sum(own), 1) if own else None
