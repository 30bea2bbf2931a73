"""Timing: evaluation runs that are shown against time, made again with nothing beside.

Everything else runs beside other jobs, where seconds say little of an algorithm. The
rows are those of ``evaluate`` to the bit but for their seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import inputs, plan, schema
from dperm.core.experiment.evaluate import units
from dperm.core.experiment.parts import POINT
from dperm.core.experiment.solving import COLUMNS, compute
from dperm.core.experiment.tune import Meter
from dperm.core.lanes import Lanes
from dperm.core.lanes.engine import run_lanes

log = logging.getLogger(__name__)


def timing(config: schema.Config) -> Path:
    """Run what the paper's products show against time, one run after the other.

    Of every setting as many fresh runs as ``clocked`` of the paper says, on one thread.

    Returns
    -------
    Path
        Of ``timing.parquet`` of the paper.
    """
    pairs = plan.clocked(config)
    meter = Meter(f"timing {config.paper.name}", len(pairs), "solvers on problems")
    tables = [pd.DataFrame(columns=COLUMNS)]
    for (problem, solver), kinds in pairs.items():
        at = replace(
            plan.at_problem(config, problem),
            solver=configuration.read("solver", solver, config.overrides),
        )
        tables += _timed(at, kinds)
        meter.advance(1)
    path = plan.results_folder(config, config.paper.name) / "timing.parquet"
    rows = [table for table in tables if len(table)] or tables
    store.write_table(path, pd.concat(rows, ignore_index=True))
    return path


def _timed(config: schema.Config, kinds: set[str]) -> Iterator[pd.DataFrame]:
    """The rows of one solver on one problem; none without data."""
    job = inputs.Job.load(config)
    if job is None:
        return
    found = units(job, store.read_table(job.folder / "tune.parquet"))
    if found:
        _warm_up(job)
    for unit in found:
        is_shown = unit.calibration.calibration in kinds
        if is_shown and unit.replicate < config.paper.clocked:
            yield compute(job, unit, pd.DataFrame(unit.points)[POINT], 1)


def _warm_up(job: inputs.Job) -> None:
    """Compile or load the kernels before anything is timed."""
    lanes = Lanes(np.full(1, 1e-3), np.full(1, 1e-3), 0.0)
    run_lanes(job.module, job.options, job.problem, lanes, [1], 0, lambda W: {})
