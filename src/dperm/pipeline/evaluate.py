"""Evaluate: the chosen settings on fresh seeds, one run at a time."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from dperm import schema
from dperm.pipeline import inputs, plan
from dperm.pipeline.ledgers import calibrations
from dperm.pipeline.results import best
from dperm.pipeline.solving import Unit, fresh_passes, unavailable
from dperm.pipeline.tune import collect
from dperm.solvers.lanes import Lanes
from dperm.solvers.lanes.engine import run_lanes
from dperm.store import files as store
from dperm.store.locks import locked

log = logging.getLogger(__name__)


def evaluate(config: schema.Config) -> Path:
    """Run the best setting of every (calibration, passes) on fresh seeds.

    Each run is alone, on one thread, so that its seconds are those of the algorithm.

    Returns
    -------
    Path
        Of ``evaluate.parquet``, with one row per seed and pass.
    """
    names = (config.paper.name, config.problem.name, config.solver.name)
    folder = plan.results_folder(config, *names)
    tuned = store.read_table(folder / "tune.parquet")
    with locked(folder):
        job = inputs.Job.load(config)
        if job is None:
            table = unavailable(config, inputs.unavailable_reason(config))
        else:
            table = _table(job, units(job, tuned))
        store.write_table(folder / "evaluate.parquet", table)
    return folder / "evaluate.parquet"


def _table(job: inputs.Job, found: list[Unit]) -> pd.DataFrame:
    if not found:
        reason = "every setting of the grid diverged"
        log.warning("evaluate %s: %s, or is not finite", job.folder, reason)
        return unavailable(job.config, reason, status="diverged")
    _warm_up(job)
    return collect(job, found, workers=1)


def units(job: inputs.Job, tuned: pd.DataFrame) -> list[Unit]:
    """The best setting of every (calibration, passes) of a tuned table, fresh seeds."""
    chosen = _evaluated(job.config, best(tuned))
    return [] if chosen.empty else list(_units(job, chosen))


def _evaluated(config: schema.Config, chosen: pd.DataFrame) -> pd.DataFrame:
    """All chosen settings, or of every calibration the best number of passes."""
    if config.paper.evaluated == "all":
        return chosen
    return chosen.loc[chosen.groupby("calibration")["mean"].idxmin()]


def _units(job: inputs.Job, chosen: pd.DataFrame) -> Iterator[Unit]:
    kinds, passes = chosen["calibration"].unique(), chosen["passes"].unique()
    found = calibrations(job, kinds.tolist(), passes.tolist())
    fresh = job.config.scale.fresh or job.config.paper.fresh
    for row in chosen.itertuples():
        point = {"passes": row.passes, "step": row.step, "clip": row.clip}
        for replicate in range(fresh):
            yield Unit(
                "evaluate",
                found[row.calibration, row.passes],
                row.passes,
                replicate,
                [point],
                fresh_passes(row.passes),
            )


def _warm_up(job: inputs.Job) -> None:
    """Compile or load the kernels before anything is timed."""
    lanes = Lanes(np.full(1, 1e-3), np.full(1, 1e-3), 0.0)
    run_lanes(job.module, job.options, job.problem, lanes, [1], 0, lambda W: {})
