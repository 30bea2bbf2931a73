"""Rows of one unit: all lanes of one (stage, calibration, passes, replicate).

A unit's rows are reused where an earlier run left them, computed where not, and kept as
a part the moment they are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.erm.optimum import Optimum
from dperm.core.erm.problem import Problem
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, provenance, seeds
from dperm.core.experiment.inputs import Job
from dperm.core.experiment.parts import POINT, Key, Parts
from dperm.core.lanes import Lanes, trials
from dperm.core.lanes.engine import Snapshot, run_lanes
from dperm.core.privacy.calibration import Calibration
from dperm.pipeline import digests

IDENTITY = ["calibration", "passes", "step", "clip", "replicate", "checkpoint"]
COLUMNS = [
    *("paper", "problem", "solver", "algorithm", "calibration", "epsilon", "delta"),
    *("neighbours", "given", "epsilon_low", "true_epsilon", "noise_multiplier"),
    *("passes", "steps", "step"),
    *("clip", "seed", "replicate", "checkpoint", "objective", "relative_error"),
    *("support_size", "true_positives", "false_positives", "seconds", "status"),
    *("reason", "commit", "versions", "config_digest"),
]
CHECKPOINTS = 10  # of a fresh run, at least, where it has as many steps
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


def rows(job: Job, unit: Unit, parts: Parts, workers: int) -> tuple[pd.DataFrame, int]:
    """The rows of a unit and how many of its lanes had to be computed."""
    key = part_key(job, unit)
    have = parts.read(key)
    wanted = pd.DataFrame(unit.points)[POINT]
    todo = wanted if have is None else missing(wanted, have)
    tables = [] if have is None else [have]
    if len(todo):
        fresh = compute(job, unit, todo, workers)
        parts.write(key, fresh)
        tables.append(fresh)
    table = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
    # What the accountant says of the noise is said now, however old the lanes are.
    table = table.assign(**_named(job, unit))
    return wanted.merge(table, on=POINT, how="left")[COLUMNS], len(todo)


def missing(wanted: pd.DataFrame, have: pd.DataFrame) -> pd.DataFrame:
    """The points that are wanted and not there."""
    known = have[POINT].drop_duplicates()
    merged = wanted.merge(known, on=POINT, how="left", indicator=True)
    return merged.loc[merged["_merge"] == "left_only", POINT]


def part_key(job: Job, unit: Unit) -> Key:
    """Digests of everything that determines the rows of a unit but the grid point.

    The accountant is not among it: where it finds the same noise, lanes are the same.
    """
    identity = store.digest(
        [
            *(job.problem.digest, repr(job.optimum.value), _mask(job.optimum.support)),
            *(job.config.solver.name, job.config.solver.algorithm),
            *(asdict(job.options), unit.stage, unit.calibration.calibration),
            *(repr(unit.passes), repr(unit.calibration.noise_multiplier)),
            *(seed(job, unit), unit.observed, job.config.paper.name),
        ]
    )
    return Key(identity, digests.lanes(job.config.solver.algorithm))


def _mask(support: np.ndarray) -> str:
    return np.packbits(support).tobytes().hex()


def seed(job: Job, unit: Unit) -> int:
    """The seed of a unit's noise."""
    return seeds.seed(
        job.config.seed,
        unit.stage,
        job.problem.name,
        job.config.solver.name,
        unit.passes,
        unit.replicate,
    )


def compute(job: Job, unit: Unit, todo: pd.DataFrame, workers: int) -> pd.DataFrame:
    """Run the lanes of a unit at some points (step, clip); their rows."""
    settings = (todo["step"].to_numpy(), todo["clip"].to_numpy())
    lanes = trials.lanes(*settings, unit.calibration)
    table = lane_rows(
        job.module, job.options, job.problem, job.optimum, lanes, unit.passes,
        unit.observed, seed(job, unit), workers,
    )  # fmt: skip
    return table.assign(**_named(job, unit), **_of_unit(job, unit), reason="")[COLUMNS]


def skipped(job: Job, unit: Unit, status: str, reasons: Sequence[str]) -> pd.DataFrame:
    """Rows of a unit that is not run, one for each point, each with its reason."""
    known = {
        **_named(job, unit),
        **_of_unit(job, unit),
        "steps": job.steps(unit.passes),
        "checkpoint": unit.passes,
        "seconds": 0.0,
        "status": status,
        **dict.fromkeys(("support_size", "true_positives", "false_positives"), 0),
    }
    rows = pd.DataFrame(unit.points)[POINT].assign(**known, reason=list(reasons))
    return rows.reindex(columns=COLUMNS)


def _of_unit(job: Job, unit: Unit) -> dict[str, Any]:
    """Columns that name a unit and what made it."""
    return {
        "calibration": unit.calibration.calibration,
        "epsilon": job.problem.epsilon,
        "delta": job.problem.delta,
        "noise_multiplier": unit.calibration.noise_multiplier,
        "passes": unit.passes,
        "seed": seed(job, unit),
        "replicate": unit.replicate,
        "commit": provenance.commit(),
        "versions": provenance.versions(),
        "config_digest": str(part_key(job, unit)),
    }


def _named(job: Job, unit: Unit) -> dict[str, Any]:
    """Columns that name a job, and what the accountant says of its noise."""
    return {
        **header(job.config),
        "neighbours": unit.calibration.ledger.relation,
        "given": ", ".join(unit.calibration.ledger.given),
        "epsilon_low": unit.calibration.interval.low,
        "true_epsilon": unit.calibration.true_epsilon,
    }


# --- the numbers ----------------------------------------------------------------------


def lane_rows(
    module: ModuleType,
    options: Any,
    problem: Problem,
    optimum: Optimum,
    lanes: Lanes,
    passes: float,
    observed: Sequence[float],
    seed: int,
    workers: int,
) -> pd.DataFrame:
    """What lanes reach: a row for every lane and pass that is observed.

    Everything a lane's numbers depend on is an argument, or code behind this function.

    Returns
    -------
    DataFrame
        step, clip, checkpoint, steps, objective, relative_error, support_size,
        true_positives, false_positives, seconds, status.
    """

    def steps(count: float) -> int:
        return module.steps(problem, count, options)

    watched = sorted({steps(at) for at in _checkpoints(problem, passes, observed)})
    snapshots = run_lanes(
        module, options, problem, lanes, watched, seed,
        lambda W: supports(W, optimum.support), workers,
    )  # fmt: skip
    kept = {steps(at): at for at in observed if at > 0}
    found = [(at, kept[at.count]) for at in snapshots if at.count in kept]
    if 0.0 in observed:
        found.insert(0, (_start(problem, len(lanes.step)), 0.0))
    tables = [_snapshot_rows(optimum, lanes, *one) for one in found]
    return pd.concat(tables, ignore_index=True).assign(steps=steps(passes))


def _checkpoints(
    problem: Problem, passes: float, observed: Sequence[float]
) -> list[float]:
    """Where divergence is looked for, powers of 4, and what is observed.

    Sparse problems are large: what diverges at once should not run for a whole pass.
    """
    early = (1 / 16,) if problem.is_sparse else ()
    fixed = [value for value in (*early, 1.0, 4.0, 16.0, 64.0) if value < passes]
    return sorted({*fixed, *(value for value in observed if value > 0)})


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
    optimum: Optimum, lanes: Lanes, at: Snapshot, checkpoint: float
) -> pd.DataFrame:
    return pd.DataFrame({"step": lanes.step, "clip": lanes.clip}).assign(
        checkpoint=checkpoint,
        objective=at.objective,
        relative_error=(at.objective - optimum.value) / optimum.value,
        seconds=at.seconds / len(lanes.step),
        status=np.where(at.diverged, "diverged", "ok"),
        **at.measures,
    )


def _start(problem: Problem, size: int) -> Snapshot:
    """Lanes before their first step."""
    names = ("support_size", "true_positives", "false_positives")
    nothing = dict.fromkeys(names, np.zeros(size, dtype=np.int64))
    objective = np.full(size, float(problem.objective(np.zeros(problem.p))[0]))
    return Snapshot(0, objective, np.zeros(size, dtype=bool), nothing, 0.0)


# --- rows of a job --------------------------------------------------------------------


def header(config: Any) -> dict[str, str]:
    """The columns that name a job."""
    return {
        "paper": config.paper.name,
        "problem": config.problem.name,
        "solver": config.solver.name,
        "algorithm": plan.label(config, config.solver.name),
    }


def unavailable(config: Any, reason: str, status: str = "unavailable") -> pd.DataFrame:
    """The one row of a job that has nothing to show, and why."""
    code = {"commit": provenance.commit(), "versions": provenance.versions()}
    row = {**header(config), **code, "status": status, "reason": reason}
    return pd.DataFrame([{name: row.get(name) for name in COLUMNS}])


def fresh_passes(job: Job, passes: float) -> tuple[float, ...]:
    """Where a trajectory is observed: start, each whole pass, end.

    Of a run with few passes also its tenths, if it has more steps than that.
    """
    whole = [*np.arange(1.0, passes).tolist(), float(passes)]
    if len(whole) < CHECKPOINTS < job.steps(passes):
        seen = {job.steps(value) for value in whole}
        tenths = (passes * k / CHECKPOINTS for k in range(1, CHECKPOINTS))
        whole += [value for value in tenths if job.steps(value) not in seen]
    return (0.0, *sorted(whole))


def unique_passes(job: Job, values: Sequence[float]) -> list[float]:
    """Numbers of passes, each step count once."""
    return list(
        {job.steps(value): value for value in sorted(values, reverse=True)}.values()
    )[::-1]
