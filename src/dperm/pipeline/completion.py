"""The last stage of a paper: whether everything is there; its manifest and its record.

``manifest.json`` is what a reader of the committed figures wants to know of the run.
``record.json`` is all that is needed to make it again, and to tell if it was: the
composed configuration, the platform and the versions of all packages, every seed, and
digests of data, optima, solver code and rows (without timings and provenance). It names
no folder.
"""

from __future__ import annotations

import datetime
import hashlib
import logging
import os
import platform
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
from dperm.pipeline import digests, forecast, inputs, products, seals

log = logging.getLogger(__name__)

Tables = Mapping[str, pd.DataFrame]  # by path below the paper's folder
AXES = ("passes", "step", "clip")  # of a setting
_NOT_KEPT = ("problem=", "solver=", "data.", "output.")  # choices, and places


class IncompleteError(RuntimeError):
    """Something could not be made; the text says what and why."""


def complete(config: schema.Config) -> Path:
    """Write ``complete.txt``, the manifest of the run and its record.

    Raises
    ------
    IncompleteError
        If a problem's data could not be had. Everything else has been made.
    ChangedError
        If rows were changed since they were made: what is recorded is what was run.
    """
    folder = plan.results_folder(config, config.paper.name)
    rows = products.rows(config)
    seals.check(config, rows)
    tables = {
        (problem, solver): store.read_table(folder / problem / solver / "tune.parquet")
        for problem, solver in plan.runs(config)
    }
    for name in config.paper.sweeps:
        tables["sweep", name] = store.read_table(sweep_path(config, name))
    _write(
        folder / "manifest.json",
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
    written = [folder / "manifest.json", folder / "record.json"]
    seals.seal(config, "complete", written, config.made, rows)
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
    """The solver and setting with the least mean error of fresh runs, by problem."""
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
    """Write it; a command that computed nothing keeps what was said of the run.

    Where its ``rows`` are what they were, ``run`` are the keys that keep their values.
    """
    try:
        before = store.read_json(path) if path.exists() else {}
    except ValueError as error:
        log.warning("made anew: %s", error)
        before = {}
    if rows(before) == rows(content):
        content |= {key: before[key] for key in run if key in before}
    store.write_json(path, content)


def _manifest(config: schema.Config, tables: Iterable[pd.DataFrame]) -> dict:
    """What a reader of the committed figures wants to know of the run behind them."""
    rows = pd.concat(tables)
    spent = rows["seconds"].sum()
    started = os.environ.get("DPERM_STARTED")  # by the Snakefile, the same clock
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
        "cpu_seconds": _cpu_seconds(config),
    }


def _cpu_seconds(config: schema.Config) -> float | None:
    """Of the paper's jobs, each as it ran last; None where none was recorded."""
    known = forecast.recorded(Path("logs", config.scale.folder))
    own = [
        cost.cpu for job, cost in known.items() if config.paper.name in job.split("/")
    ]
    return round(sum(own), 1) if own else None


# --- the record -----------------------------------------------------------------------


def record(config: schema.Config, tables: Tables) -> dict[str, Any]:
    """Everything that determined a paper's results, as JSON values."""
    given = [text for text in config.overrides if not text.startswith(_NOT_KEPT)]
    problems = {
        name: configuration.read("problem", name, given)
        for name in plan.problem_names(config)
    }
    by = {
        name: configuration.read("solver", name, given)
        for name in sorted({solver for _, solver in plan.runs(config)})
    }
    return {
        "made": config.made,
        "platform": _platform(),
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
            "data": _known(_data, config, problems, "prepared", "meta"),
            "optima": _known(_optimum, config, problems, "optimum", "optimum"),
            "solvers": {
                name: digests.lanes(found.algorithm) for name, found in by.items()
            },
            "rows": {name: digest_rows(table) for name, table in tables.items()},
        },
        "seeds": {name: _seeds(table) for name, table in tables.items()},
    }


def digest_rows(table: pd.DataFrame) -> str:
    """SHA-256 over the rows of a table in their order, timings and provenance apart."""
    kept = table.drop(columns=PROVENANCE, errors="ignore")
    rows = pd.util.hash_pandas_object(kept, index=False).to_numpy("<u8")
    names = ",".join(map(str, kept.columns))
    return hashlib.sha256(names.encode() + rows.tobytes()).hexdigest()


def _known(
    read: Callable[[schema.Config, str], dict[str, Any]],
    config: schema.Config,
    problems: Iterable[str],
    kind: str,
    file: str,
) -> dict[str, Any]:
    """What was made of the problems; a paper of sweeps may not need it of them all."""
    folder = Path(config.data.dir, kind)
    made = (name for name in problems if (folder / name / f"{file}.json").is_file())
    return {name: read(config, name) for name in made}


def _data(config: schema.Config, problem: str) -> dict[str, Any]:
    meta = data.load_prepared(problem, config.data).meta
    keys = ("dataset", "dataset_digest", "digest", "n", "p")
    fetched = data.read_record(meta["dataset"], config.data)
    said = {"warning": fetched.warning} if fetched and fetched.warning else {}
    return {**{key: meta[key] for key in keys}, **said}


def _optimum(config: schema.Config, problem: str) -> dict[str, Any]:
    found = inputs.load_optimum_record(config, problem)
    return {key: found.get(key) for key in ("digest", "w_digest", "value", "gap")}


def _seeds(table: pd.DataFrame) -> list[int]:
    if "seed" not in table or table["seed"].isna().all():
        return []
    return sorted(int(seed) for seed in table["seed"].dropna().unique())


def _platform() -> dict[str, Any]:
    """Machine and system as far as numbers may depend on them."""
    return {
        "machine": machine(),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "compiler": platform.python_compiler(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0].partition(":")[2].strip() if names else platform.processor()


def machine() -> str:
    """Class of the machine, for timings; nothing that identifies it."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
