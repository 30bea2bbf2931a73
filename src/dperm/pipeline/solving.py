"""The stages of a solver on a problem: tune, evaluate, both, and timing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment import tune as tuning
from dperm.core.experiment.files import locked
from dperm.core.experiment.unit import COLUMNS, compute, unavailable
from dperm.core.lanes import Lanes
from dperm.core.lanes.engine import run_lanes
from dperm.pipeline import checks
from dperm.pipeline.inputs import load_job, unavailable_reason


def tune(config: schema.Config) -> Path:
    """Run the grid of one solver on one problem and write ``tune.parquet``.

    Returns
    -------
    Path
        Of the table.
    """
    checks.held(config.solver)
    folder = _folder(config)
    with locked(folder):
        job = load_job(config)
        if job is None:
            table = unavailable(plan.names_of(config), unavailable_reason(config))
            store.write_json(folder / "ledger.json", [])
        else:
            table = tuning.tuned(job, plan.design(config))
        store.write_table(folder / "tune.parquet", table)
    return folder / "tune.parquet"


def evaluate(config: schema.Config) -> Path:
    """Run the best setting of every (calibration, passes) on fresh seeds.

    Returns
    -------
    Path
        Of ``evaluate.parquet``, with one row per seed and pass.
    """
    folder = _folder(config)
    tuned = store.read_table(folder / "tune.parquet")
    with locked(folder):
        job = load_job(config)
        if job is None:
            table = unavailable(plan.names_of(config), unavailable_reason(config))
        else:
            table = tuning.evaluated(job, plan.design(config), tuned)
        store.write_table(folder / "evaluate.parquet", table)
    return folder / "evaluate.parquet"


def solve(config: schema.Config) -> Path:
    """Tune, then evaluate: one process for both.

    Returns
    -------
    Path
        Of ``evaluate.parquet``.
    """
    tune(config)
    return evaluate(config)


def _folder(config: schema.Config) -> Path:
    names = (config.paper.name, config.problem.name, config.solver.name)
    return plan.results_folder(config, *names)


def timing(config: schema.Config) -> Path:
    """Run what the paper's products show against time, one run after the other.

    Everything else runs beside other jobs, where seconds say little of an algorithm.
    The rows are those of ``evaluate`` to the bit but for their seconds.

    Of every setting as many fresh runs as ``clocked`` of the paper says, on one thread.

    Returns
    -------
    Path
        Of ``timing.parquet`` of the paper.
    """
    pairs = plan.clocked(config)
    meter = tuning.Meter(
        f"timing {config.paper.name}", len(pairs), "solvers on problems"
    )
    tables = [pd.DataFrame(columns=COLUMNS)]
    for (problem, solver), kinds in pairs.items():
        section = configuration.read("solver", solver, config.overrides)
        at = replace(plan.at_problem(config, problem), solver=section)
        tables += _timed(at, kinds)
        meter.advance(1)
    path = plan.results_folder(config, config.paper.name) / "timing.parquet"
    rows = [table for table in tables if len(table)] or tables
    store.write_table(path, pd.concat(rows, ignore_index=True))
    return path


def _timed(config: schema.Config, kinds: set[str]) -> Iterator[pd.DataFrame]:
    """The rows of one solver on one problem; none without data."""
    job = load_job(config)
    if job is None:
        return
    table = store.read_table(job.folder / "tune.parquet")
    units = tuning.fresh_units(job, plan.design(config), table)
    if units:  # kernels are compiled or loaded before anything is timed
        lanes = Lanes(np.full(1, 1e-3), np.full(1, 1e-3), 0.0)
        run_lanes(job.module, job.options, job.problem, lanes, [1], 0, lambda W: {})
    for unit in units:
        is_shown = unit.calibration.calibration in kinds
        if is_shown and unit.replicate < config.paper.clocked:
            yield compute(job, unit, unit.settings(), 1)
