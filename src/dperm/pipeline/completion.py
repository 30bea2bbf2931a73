"""The last stage of a paper: checks completeness and writes the manifest and record.

``manifest.json`` summarises the run for readers of the committed figures.
``record.json`` has everything needed to repeat the run and to check a repetition: the
composed configuration, the platform, the versions of all packages, every seed, and
digests of data, optima, solver code and rows (without timings and provenance). It names
no folder.
"""

from __future__ import annotations

import datetime
import logging
import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pandas as pd

from dperm import data
from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment.results import sweep_path
from dperm.core.experiment.unit import PROVENANCE
from dperm.pipeline import digests, inputs, products

log = logging.getLogger(__name__)

MANIFEST = "manifest.json"
LISTED = (".csv", ".json", ".parquet", ".png")  # files whose digests are recorded
Tables = Mapping[str, pd.DataFrame]  # by path below the paper's folder
AXES = ("passes", "step", "clip")  # of a setting
_NOT_KEPT = ("problem=", "solver=", "data.", "output.")  # choices of a job, and folders
SPENT = re.compile(r"^cost: ([0-9.]+) CPU seconds$", re.MULTILINE)  # ends a log


class IncompleteError(RuntimeError):
    """Results that could not be made; the text has the reasons."""


def complete(config: schema.Config) -> Path:
    """Write ``complete.txt``, the manifest of the run and its record.

    Raises
    ------
    IncompleteError
        If a problem's data are unavailable. Everything else has been made.
    ValueError
        If rows were changed since they were made: the record must be of the run.
    """
    folder = plan.results_folder(config, config.paper.name)
    rows = products.rows(config)
    tables = {
        (problem, solver): store.read_table(folder / problem / solver / "tune.parquet")
        for problem, solver in plan.runs(config)
    }
    for name in config.paper.sweeps:
        tables["sweep", name] = store.read_table(sweep_path(config, name))
    _write(
        folder / MANIFEST,
        _manifest(config, tables.values()),
        lambda manifest: manifest.get("configuration"),
        ("date", "machine", "versions", "wall_seconds", "cpu_seconds"),
    )
    _write(
        folder / "record.json",
        record(
            config,
            {str(p.relative_to(folder)): store.read_table(p) for p in sorted(rows)},
        ),
        lambda record: record.get("digests", {}).get("rows"),
        ("platform", "packages"),
    )
    missing = {
        " ".join(name) if name[0] == "sweep" else name[0]: str(
            table["reason"][lost].iloc[0]
        )
        for name, table in tables.items()
        if (lost := table["status"] == "unavailable").any()
    }
    if missing:
        lines = [f"{problem}: {reason}" for problem, reason in missing.items()]
        raise IncompleteError("made all but\n" + "\n".join(lines))
    made = plan.figures_folder(config, config.paper.name)
    lines = [f"{config.paper.name}: figures in {made}, tables in {folder}"]
    text = "\n".join([*lines, *_winners(config, folder)]) + "\n"
    store.write_text(folder / "complete.txt", text)
    log.info(text.strip())
    return folder / "complete.txt"


def _winners(config: schema.Config, folder: Path) -> Iterable[str]:
    """Yield for every problem the solver and setting with the least fresh mean."""
    best: dict[str, tuple[float, str]] = {}
    for problem, solver in plan.runs(config):
        rows = store.read_table(folder / problem / solver / "evaluate.parquet")
        last = rows[rows["checkpoint"] == rows["passes"]]
        last = last[last["calibration"] == config.paper.calibrations[0]]
        for setting, error in last.groupby(list(AXES))["relative_error"].mean().items():
            said = ", ".join(f"{k} {v:g}" for k, v in zip(AXES, setting, strict=True))
            found = (float(error), f"{plan.label(config, solver)} ({said})")
            best[problem] = min(best.get(problem, found), found)
    for problem, (error, name) in best.items():
        yield f"  {problem}: least relative error {error:.3g}, {name}"


def _write(
    path: Path,
    content: dict[str, Any],
    rows: Callable[[dict[str, Any]], Any],
    run: Iterable[str],
) -> None:
    """Write a manifest or record; keep the facts of the run if no row changed.

    If ``rows`` of the old and the new content are equal, the keys of ``run`` keep their
    old values: this command computed nothing.
    """
    try:
        before = store.read_json(path) if path.exists() else {}
    except ValueError as error:
        log.warning("written again: %s", error)
        before = {}
    if rows(before) == rows(content):
        content |= {key: before[key] for key in run if key in before}
    store.write_json(path, content)


def _manifest(config: schema.Config, tables: Iterable[pd.DataFrame]) -> dict:
    rows = pd.concat(tables)
    spent = rows["seconds"].sum()
    started = os.environ.get("DPERM_STARTED")  # set by the Snakefile, same clock
    return {
        "paper": config.paper.name,
        "scale": config.scale.name,
        "commit": sorted(rows["commit"].dropna().unique().tolist()),
        "versions": store.versions(),
        "configuration": store.digest(sorted(rows["config_digest"].dropna().unique())),
        "master_seed": config.seed,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "runs": len(rows),
        "solver_seconds": round(float(spent), 1),
        "wall_seconds": round(time.monotonic() - float(started)) if started else None,
        "cpu_seconds": _spent(Path("logs", config.scale.folder), config.paper.name),
        "files": listed(config),
    }


def listed(config: schema.Config) -> dict[str, str]:
    """SHA-256 of the files of a paper's rows, tables and figures, by their paths."""
    name = config.paper.name
    tops = (plan.results_folder(config, name), plan.figures_folder(config, name))
    return {
        path.as_posix(): store.file_digest(path)
        for top in tops
        for path in sorted(top.rglob("[!.]*"))
        if path.suffix in LISTED
        and "lanes" not in path.parts
        and path.name not in (MANIFEST, "record.json")
    }


def _spent(logs: Path, paper: str) -> float | None:
    """CPU seconds of the last run of each of a paper's jobs, from their logs."""
    found = [
        float(seconds)
        for path in logs.rglob("*.log")
        if paper in path.relative_to(logs).with_suffix("").parts
        for seconds in SPENT.findall(path.read_text("utf-8", errors="replace"))[-1:]
    ]
    return round(sum(found), 1) if found else None


# --- the record -----------------------------------------------------------------------


def record(config: schema.Config, tables: Tables) -> dict[str, Any]:
    """Everything that determined a paper's results, as JSON values."""
    given = [text for text in config.overrides if not text.startswith(_NOT_KEPT)]
    problems = {
        name: configuration.read("problem", name, given)
        for name in plan.problem_names(config)
    }
    folder = Path(config.data.dir)
    by = {
        name: configuration.read("solver", name, given)
        for name in sorted({solver for _, solver in plan.runs(config)})
    }
    return {
        "made": config.made,
        "platform": {  # facts on which numbers may depend
            "machine": machine(),
            "processor": _processor(),
            "system": f"{platform.system()} {platform.release()}",
            "libc": " ".join(platform.libc_ver()),
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "compiler": platform.python_compiler(),
        },
        "packages": dict(
            sorted((item.metadata["Name"], item.version) for item in distributions())
        ),
        "configuration": {
            "overrides": given,
            "seed": config.seed,
            "scale": asdict(config.scale),
            "paper": asdict(config.paper),
            "problems": {name: asdict(found) for name, found in problems.items()},
            "solvers": {name: asdict(found) for name, found in by.items()},
        },
        "digests": {
            # A paper with only sweeps may not need all of its problems.
            "data": {
                name: _data(config, name)
                for name in problems
                if (folder / "prepared" / name / "meta.json").is_file()
            },
            "optima": {
                name: _optimum(config, name)
                for name in problems
                if (folder / "optimum" / name / "optimum.json").is_file()
            },
            "solvers": {
                name: digests.lanes(found.algorithm) for name, found in by.items()
            },
            "rows": {name: digest_results(table) for name, table in tables.items()},
        },
        "seeds": {
            name: sorted(map(int, table["seed"].dropna().unique()))
            if "seed" in table
            else []
            for name, table in tables.items()
        },
    }


def digest_results(table: pd.DataFrame) -> str:
    """Digest of a table's ordered rows, without timings and provenance."""
    return store.digest_rows(table.drop(columns=PROVENANCE, errors="ignore"))


def _data(config: schema.Config, problem: str) -> dict[str, Any]:
    meta = data.load_prepared(problem, config.data).meta
    keys = ("dataset", "dataset_digest", "digest", "n", "p")
    fetched = data.read_record(meta["dataset"], config.data)
    said = {"warning": fetched.warning} if fetched and fetched.warning else {}
    return {**{key: meta[key] for key in keys}, **said}


def _optimum(config: schema.Config, problem: str) -> dict[str, Any]:
    found = inputs.load_optimum_record(config, problem)
    return {key: found.get(key) for key in ("digest", "w_digest", "value", "gap")}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0].partition(":")[2].strip() if names else platform.processor()


def machine() -> str:
    """Class of the machine, for timings; it does not identify the machine."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
