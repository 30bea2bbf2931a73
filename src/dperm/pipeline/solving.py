"""Rows of one unit: all lanes of one (stage, calibration, passes, replicate).

A unit's rows are reused where an earlier run left them, computed where not, and kept as
a part the moment they are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from dperm.pipeline import seeds
from dperm.pipeline.inputs import Job
from dperm.privacy.calibration import Calibration
from dperm.solvers.lanes import trials
from dperm.solvers.lanes.engine import Snapshot, run_lanes
from dperm.store import files as store
from dperm.store import provenance

POINT = ["step", "clip"]
IDENTITY = ["calibration", "passes", "step", "clip", "replicate", "checkpoint"]
COLUMNS = [
    *("paper", "problem", "solver", "algorithm", "calibration", "epsilon", "delta"),
    *("neighbours", "true_epsilon", "noise_multiplier", "passes", "steps", "step"),
    *("clip", "seed", "replicate", "checkpoint", "objective", "relative_error"),
    *("support_size", "true_positives", "false_positives", "seconds", "status"),
    *("reason", "commit", "versions", "config_digest"),
]
PROVENANCE = ["seconds", "commit", "versions", "config_digest"]


@dataclass(frozen=True)
class Unit:
    """One seed, many lanes.

    ``observed`` are the passes after which a row is kept; 0 stands for the start.
    """

    stage: str
    calibration: Calibration
    passes: float
    replicate: int
    points: list[dict[str, float]]
    observed: tuple[float, ...]


def rows(
    job: Job, unit: Unit, parts: store.Parts, workers: int
) -> tuple[pd.DataFrame, int]:
    """The rows of a unit and how many of its lanes had to be computed."""
    context = _context(job, unit)
    have = parts.read(context)
    wanted = pd.DataFrame(unit.points)[POINT]
    todo = wanted if have is None else _missing(wanted, have)
    tables = [] if have is None else [have]
    if len(todo):
        fresh = _compute(job, unit, todo, context, workers)
        parts.write(context, fresh)
        tables.append(fresh)
    table = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
    return wanted.merge(table, on=POINT, how="left")[COLUMNS], len(todo)


def _missing(wanted: pd.DataFrame, have: pd.DataFrame) -> pd.DataFrame:
    known = have[POINT].drop_duplicates()
    merged = wanted.merge(known, on=POINT, how="left", indicator=True)
    return merged.loc[merged["_merge"] == "left_only", POINT]


def _context(job: Job, unit: Unit) -> str:
    """Digest of everything that determines the rows of a unit but the grid point."""
    return store.digest(
        [
            *(job.problem.digest, repr(job.optimum.value), job.config.solver.name),
            *(job.config.solver.algorithm, asdict(job.options)),
            *(unit.stage, unit.calibration.calibration, repr(unit.passes)),
            *(repr(unit.calibration.noise_multiplier), _seed(job, unit)),
            *(unit.observed, job.config.paper.name),
            provenance.code_digest(job.module),
        ]
    )


def _seed(job: Job, unit: Unit) -> int:
    return seeds.seed(
        job.config.seed,
        unit.stage,
        job.problem.name,
        job.config.solver.name,
        unit.passes,
        unit.replicate,
    )


def _compute(
    job: Job, unit: Unit, todo: pd.DataFrame, context: str, workers: int
) -> pd.DataFrame:
    settings = (todo["step"].to_numpy(), todo["clip"].to_numpy())
    lanes = trials.lanes(*settings, unit.calibration)
    watched = {job.steps(value): value for value in _checkpoints(job, unit)}
    snapshots = run_lanes(
        job.module, job.options, job.problem, lanes, sorted(watched), _seed(job, unit),
        lambda W: supports(W, job.optimum.support), workers,
    )  # fmt: skip
    kept = {job.steps(value): value for value in unit.observed if value > 0}
    parts = [_start_rows(job, unit, todo)] if 0.0 in unit.observed else []
    parts += [
        _snapshot_rows(job, unit, todo, snapshot, kept[snapshot.count])
        for snapshot in snapshots
        if snapshot.count in kept
    ]
    return _common(job, unit, pd.concat(parts, ignore_index=True), context)


def _checkpoints(job: Job, unit: Unit) -> list[float]:
    """Where divergence is looked for, powers of 4, and what is observed.

    Sparse problems are large: what diverges at once should not run for a whole pass.
    """
    early = (1 / 16,) if job.problem.is_sparse else ()
    fixed = [value for value in (*early, 1.0, 4.0, 16.0, 64.0) if value < unit.passes]
    return sorted({*fixed, *(value for value in unit.observed if value > 0)})


def supports(W: np.ndarray, truth: np.ndarray) -> dict[str, np.ndarray]:
    """Sizes of the supports of W (L, p), and how they agree with a mask (p,)."""
    size = np.array([np.count_nonzero(w) for w in W])
    right = (W[:, truth] != 0).sum(axis=1)
    return {
        "support_size": size,
        "true_positives": right,
        "false_positives": size - right,
    }


def _snapshot_rows(
    job: Job, unit: Unit, todo: pd.DataFrame, at: Snapshot, checkpoint: float
) -> pd.DataFrame:
    return todo.assign(
        checkpoint=checkpoint,
        objective=at.objective,
        relative_error=(at.objective - job.optimum.value) / job.optimum.value,
        seconds=at.seconds / len(todo),
        status=np.where(at.diverged, "diverged", "ok"),
        **at.measures,
    )


def _start_rows(job: Job, unit: Unit, todo: pd.DataFrame) -> pd.DataFrame:
    none = np.zeros(len(todo), dtype=np.int64)
    names = ("support_size", "true_positives", "false_positives")
    nothing = dict.fromkeys(names, none)
    objective = np.full(len(todo), job.start)
    still = Snapshot(0, objective, np.zeros(len(todo), dtype=bool), nothing, 0.0)
    return _snapshot_rows(job, unit, todo, still, 0.0)


def _common(job: Job, unit: Unit, table: pd.DataFrame, context: str) -> pd.DataFrame:
    return table.assign(
        **header(job.config),
        calibration=unit.calibration.calibration,
        epsilon=job.problem.epsilon,
        delta=job.problem.delta,
        neighbours=unit.calibration.ledger.relation,
        true_epsilon=unit.calibration.true_epsilon,
        noise_multiplier=unit.calibration.noise_multiplier,
        passes=unit.passes,
        steps=job.steps(unit.passes),
        seed=_seed(job, unit),
        replicate=unit.replicate,
        reason="",
        config_digest=context,
    )[COLUMNS]


def header(config: Any) -> dict[str, str]:
    """The columns that name a job and its code."""
    return {
        "paper": config.paper.name,
        "problem": config.problem.name,
        "solver": config.solver.name,
        "algorithm": config.solver.label,
        "commit": provenance.commit(),
        "versions": provenance.versions(),
    }


def unavailable(config: Any, reason: str, status: str = "unavailable") -> pd.DataFrame:
    """The one row of a job that has nothing to show, and why."""
    row = {**header(config), "status": status, "reason": reason}
    return pd.DataFrame([{name: row.get(name) for name in COLUMNS}])


def best(table: pd.DataFrame) -> pd.DataFrame:
    """The best grid point of every (calibration, passes): lowest mean objective.

    Parameters
    ----------
    table : DataFrame
        Rows of ``tune.parquet``.

    Returns
    -------
    DataFrame
        calibration, passes, step, clip, and mean and sd (ddof 0) of the relative error
        over the replicates. A point that diverged in any replicate is never chosen;
        ties go to the smaller step, then the smaller clip.
    """
    finite = table["status"] == "ok"
    keys = ["calibration", "passes", *POINT]
    grouped = table.assign(ok=finite).groupby(keys, sort=True)
    summary = grouped.agg(
        objective=("objective", "mean"),
        mean=("relative_error", "mean"),
        std=("relative_error", lambda values: values.std(ddof=0)),
        ok=("ok", "all"),
    ).reset_index()
    summary = summary[summary["ok"]].drop(columns="ok")
    order = summary.groupby(["calibration", "passes"])["objective"].idxmin()
    return summary.loc[order].drop(columns="objective").reset_index(drop=True)


def fresh_passes(passes: float) -> tuple[float, ...]:
    """Where a trajectory is observed: start, each whole pass, end."""
    return (0.0, *np.arange(1.0, passes).tolist(), float(passes))


def unique_passes(job: Job, values: Sequence[float]) -> list[float]:
    """Numbers of passes, each step count once."""
    return list(
        {job.steps(value): value for value in sorted(values, reverse=True)}.values()
    )[::-1]
