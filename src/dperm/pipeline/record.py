"""The record of a run: all that is needed to make it again, and to tell if it was.

``record.json`` lies beside the manifest. It holds the composed configuration, the
platform and the versions of all packages, every seed, and digests of data, optima,
solver code and rows (without timings and provenance). It names no folder.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from dperm import config as configuration
from dperm import data, schema
from dperm.pipeline import digests, inputs, plan
from dperm.pipeline.solving import PROVENANCE
from dperm.store import provenance

Tables = Mapping[str, pd.DataFrame]  # by path below the paper's folder
_NOT_KEPT = ("problem=", "solver=", "data.", "output.")  # choices, and places


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
        "packages": _packages(),
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
    return {key: meta[key] for key in ("dataset", "dataset_digest", "digest", "n", "p")}


def _optimum(config: schema.Config, problem: str) -> dict[str, Any]:
    found = inputs.load_optimum_record(config, problem)
    return {key: found.get(key) for key in ("digest", "w_digest", "value", "gap")}


def _seeds(table: pd.DataFrame) -> list[int]:
    if "seed" not in table or table["seed"].isna().all():
        return []
    return sorted(int(seed) for seed in table["seed"].dropna().unique())


def _packages() -> dict[str, str]:
    """Every package of the environment and its version."""
    found = importlib.metadata.distributions()
    return dict(sorted((item.metadata["Name"], item.version) for item in found))


def _platform() -> dict[str, Any]:
    """Machine and system as far as numbers may depend on them."""
    return {
        "machine": provenance.machine(),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "compiler": platform.python_compiler(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            found = [line for line in lines if line.startswith("model name")]
    except OSError:
        found = []
    return found[0].partition(":")[2].strip() if found else platform.processor()
