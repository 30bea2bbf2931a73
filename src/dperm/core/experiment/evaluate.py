"""Evaluate: the chosen settings on fresh seeds, each a run of its own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from dperm.core.experiment import files as store
from dperm.core.experiment import inputs, plan, schema
from dperm.core.experiment.ledgers import calibrations
from dperm.core.experiment.locks import locked
from dperm.core.experiment.results import best
from dperm.core.experiment.solving import Unit, fresh_passes, unavailable
from dperm.core.experiment.tune import collect, tune

log = logging.getLogger(__name__)


def solve(config: schema.Config) -> Path:
    """Tune, then evaluate: one process for both, which loads everything once.

    Returns
    -------
    Path
        Of ``evaluate.parquet``.
    """
    tune(config)
    return evaluate(config)


def evaluate(config: schema.Config) -> Path:
    """Run the best setting of every (calibration, passes) on fresh seeds.

    Others run beside these: their seconds say what was spent, not how fast an algorithm
    is, which ``timing`` measures.

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
    return collect(job, found, job.config.workers, job.config.parallel)


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
                fresh_passes(job, row.passes),
            )
