"""Rows of one task: settings of one stage, calibration and number of passes.

A job is one solver on one problem, with everything that its numbers depend on. Its
settings are computed in tasks. A task's rows are reused where an earlier run stored
them and computed otherwise. They are stored as a part as soon as they are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dperm.experiments import plan
from dperm.privacy.calibration import Calibration
from dperm.privacy.events import RELATION
from dperm.problems.optimum import Optimum
from dperm.problems.problem import Problem
from dperm.solvers.batched import BatchedSettings, trials
from dperm.solvers.batched.engine import DIVERGED, Snapshot, run_batched
from dperm.storage import files as store
from dperm.storage.files import POINT, Key, Parts

IDENTITY = ["calibration", "passes", "step", "clip", "replicate", "checkpoint"]
SETTING_COLUMNS = [
    "paper",
    "problem",
    "solver",
    "algorithm",
    "calibration",
    "epsilon",
    "delta",
    "neighbours",
    "given",
    "true_epsilon",
    "noise_multiplier",
    "passes",
    "steps",
    "step",
    "clip",
    "seed",
    "replicate",
    "checkpoint",
    "objective",
    "relative_error",
    "support_size",
    "true_positives",
    "false_positives",
    "seconds",
    "status",
    "reason",
    "commit",
    "versions",
    "config_digest",
]
CHECKPOINTS = 10  # of a fresh run, at least, if it has more steps than that
PROVENANCE = ["seconds", "commit", "versions", "config_digest"]
STOPPED_EARLY = "stopped early"  # status of a setting above its paper's limit
SUPPORT = ("support_size", "true_positives", "false_positives")


class CodeDigests(NamedTuple):
    """Digests of the code that runs a solver, and of the code for its noise."""

    solver: str
    noise: str


@dataclass(frozen=True)
class SolverJob:
    """One solver on one problem for a paper: everything its numbers depend on."""

    names: plan.Names  #: of the paper, the problem and the solver
    algorithm: str  #: name by which the solver's module was found
    problem: Problem
    optimum: Optimum
    module: ModuleType  #: of the solver
    options: Any  #: the solver's
    code: CodeDigests
    seed: int  #: the master seed of the configuration
    folder: Path  #: of its results
    workers: int

    def steps(self, passes: float) -> int:
        """Number of steps in a number of passes."""
        return self.module.steps(self.problem, passes, self.options)

    def unique_passes(self, passes: Sequence[float]) -> list[float]:
        """Numbers of passes, the least one for each number of steps."""
        by_steps = {
            self.steps(count): count for count in sorted(passes, reverse=True)
        }
        return list(by_steps.values())[::-1]

    def checkpoints(self, passes: float) -> tuple[float, ...]:
        """Passes at which a fresh run is observed: start, each whole pass, end.

        A run of at most nine passes is also observed at its tenths, if it has more than
        ten steps.
        """
        watched = [*np.arange(1.0, passes).tolist(), float(passes)]
        if len(watched) < CHECKPOINTS < self.steps(passes):
            seen = {self.steps(count) for count in watched}
            tenths = (passes * k / CHECKPOINTS for k in range(1, CHECKPOINTS))
            watched += [
                count for count in tenths if self.steps(count) not in seen
            ]
        return (0.0, *sorted(watched))


@dataclass(frozen=True)
class Task:
    """Settings on one seed, or on several, one after another.

    A part takes as long to store as a short run, so that fresh runs share one.
    ``observed`` are the passes after which a row is stored; 0 is the start. A setting's
    limit, ``stop_above``, is that of ``setting_rows``.
    """

    stage: str
    calibration: Calibration
    passes: float
    replicates: tuple[int, ...]
    points: list[dict[str, float]]
    observed: tuple[float, ...]
    stop_above: float | None = None

    @property
    def work(self) -> float:
        """Total passes of its settings."""
        return self.size * self.passes

    @property
    def size(self) -> int:
        """Number of its runs."""
        return len(self.points) * len(self.replicates)

    def settings(self) -> pd.DataFrame:
        """Step and clip of its settings."""
        return pd.DataFrame(self.points)[POINT]


def rows(
    job: SolverJob, task: Task, parts: Parts, workers: int
) -> tuple[pd.DataFrame, int]:
    """The rows of a task, and the number of its runs that had to be computed."""
    key = part_key(job, task)
    settings = task.settings()
    tables = list[pd.DataFrame]()
    todo = settings
    if (stored := parts.read(key)) is not None:
        tables.append(stored)
        stored_settings = pd.MultiIndex.from_frame(stored[POINT])
        todo = settings[
            ~pd.MultiIndex.from_frame(settings).isin(stored_settings)
        ]
    if len(todo):
        fresh = compute(job, task, todo, workers)
        parts.write(key, fresh)
        tables.append(fresh)
    table = (
        pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
    )
    # Columns of the accountant are those of the current one, even for reused settings.
    table = table.assign(**_accounted(job, task))
    fresh_runs = len(todo) * len(task.replicates)
    return settings.merge(table, on=POINT, how="left")[
        SETTING_COLUMNS
    ], fresh_runs


def part_key(job: SolverJob, task: Task) -> Key:
    """Digests of everything that determines a task's rows, except the grid point.

    The accountant is not included: where it finds the same noise, settings are the
    same.
    """
    support = np.packbits(job.optimum.support).tobytes().hex()
    identity = store.digest(
        [
            job.problem.digest,
            repr(job.optimum.value),
            support,
            job.names.solver,
            job.algorithm,
            asdict(job.options),
            task.stage,
            task.calibration.calibration,
            repr(task.passes),
            repr(task.calibration.noise_multiplier),
            [seed(job, task, replicate) for replicate in task.replicates],
            task.observed,
            task.stop_above,
            job.names.paper,
        ]
    )
    return Key(identity, job.code.solver)


def seed(job: SolverJob, task: Task, replicate: int) -> int:
    """The seed of the noise of a task's replicate."""
    names = (task.stage, job.names.problem, job.names.solver)
    return plan.seed_of(job.seed, *names, task.passes, replicate)


def compute(
    job: SolverJob, task: Task, todo: pd.DataFrame, workers: int
) -> pd.DataFrame:
    """Run the settings of a task at some points (step, clip), and return their rows."""
    step = todo["step"].to_numpy()
    clip = todo["clip"].to_numpy()
    tables = []
    for replicate in task.replicates:
        drawn = seed(job, task, replicate)
        table = setting_rows(
            job.module,
            job.options,
            job.problem,
            job.optimum,
            trials.batched(step, clip, task.calibration),
            task.passes,
            task.observed,
            drawn,
            workers,
            task.stop_above,
        )
        tables.append(table.assign(replicate=replicate, seed=drawn))
    table = pd.concat(tables, ignore_index=True)
    return table.assign(**_described(job, task), reason="")[SETTING_COLUMNS]


def unavailable(
    names: plan.Names, reason: str, status: str = "unavailable"
) -> pd.DataFrame:
    """The only row of a job without results, with the reason."""
    code = {"commit": store.commit(), "versions": store.versions()}
    row = {**names._asdict(), **code, "status": status, "reason": reason}
    return pd.DataFrame([{name: row.get(name) for name in SETTING_COLUMNS}])


def _described(job: SolverJob, task: Task) -> dict[str, Any]:
    """Columns that are the same for all settings of a task."""
    return {
        **_accounted(job, task),
        "calibration": task.calibration.calibration,
        "epsilon": job.problem.epsilon,
        "delta": job.problem.delta,
        "noise_multiplier": task.calibration.noise_multiplier,
        "passes": task.passes,
        "commit": store.commit(),
        "versions": store.versions(),
        "config_digest": str(part_key(job, task)),
    }


def _accounted(job: SolverJob, task: Task) -> dict[str, Any]:
    """Columns that name a job, and those of the accountant."""
    return {
        **job.names._asdict(),
        "neighbours": RELATION,
        "given": ", ".join(task.calibration.ledger.given),
        "true_epsilon": task.calibration.true_epsilon,
    }


# --- the numbers ----------------------------------------------------------------------


def setting_rows(
    module: ModuleType,
    options: Any,
    problem: Problem,
    optimum: Optimum,
    settings: BatchedSettings,
    passes: float,
    observed: Sequence[float],
    seed: int,
    workers: int,
    stop_above: float | None = None,
) -> pd.DataFrame:
    """Results of settings: one row for every setting and observed pass.

    Everything a setting's numbers depend on is an argument or code of this function. On
    sparse data a setting that is above ``stop_above`` times F(0) after a sixteenth of a
    pass ends there, with the status ``stopped early``. This is part of tuning, never of
    what is released: the objective is not private.

    Returns
    -------
    DataFrame
        step, clip, checkpoint, steps, objective, relative_error, support_size,
        true_positives, false_positives, seconds, status.
    """

    def steps(count: float) -> int:
        return module.steps(problem, count, options)

    def measures(W: np.ndarray) -> dict[str, np.ndarray]:
        return supports(W, optimum.support)

    # Divergence is checked after powers of 4 too. Sparse problems are large: settings
    # that diverge at once should not run for a whole pass.
    early = (1 / 16,) if problem.is_sparse else ()
    fixed = [
        count for count in (*early, 1.0, 4.0, 16.0, 64.0) if count < passes
    ]
    checkpoints = {steps(count): count for count in observed if count > 0}
    watched = sorted({*map(steps, fixed), *checkpoints})
    limit = stop_above if stop_above and problem.is_sparse else DIVERGED
    snapshots = []
    for snapshot in run_batched(
        module,
        options,
        problem,
        settings,
        watched,
        seed,
        measures,
        workers,
        limit,
    ):
        if snapshot.count in checkpoints:
            snapshots.append((snapshot, checkpoints[snapshot.count]))
    size = len(settings.step)
    start = _start(problem, len(settings.step))
    if 0.0 in observed:
        snapshots.insert(0, (start, 0.0))
    frames = [
        {
            "step": settings.step,
            "clip": settings.clip,
            "checkpoint": np.full(size, checkpoint),
            "objective": snapshot.objective,
            "relative_error": (snapshot.objective - optimum.value)
            / optimum.value,
            "seconds": np.full(size, snapshot.seconds / size),
            "status": _status(snapshot, start),
            **snapshot.measures,
        }
        for snapshot, checkpoint in snapshots
    ]
    columns = {
        name: np.concatenate([frame[name] for frame in frames])
        for name in frames[0]
    }
    return pd.DataFrame({**columns, "steps": steps(passes)})


def _status(snapshot: Snapshot, start: Snapshot) -> np.ndarray:
    """Status of each setting, (L,); one that ended without diverging was stopped."""
    far = ~(snapshot.objective <= DIVERGED * start.objective)
    stopped = np.where(far, "diverged", STOPPED_EARLY)
    return np.where(snapshot.diverged, stopped, "ok")


def supports(W: np.ndarray, truth: np.ndarray) -> dict[str, np.ndarray]:
    """Support sizes of W (L, p), and true and false positives against a mask (p,)."""
    size = np.array([np.count_nonzero(w) for w in W])
    right = (W[:, truth] != 0).sum(axis=1)
    return dict(zip(SUPPORT, (size, right, size - right), strict=True))


def _start(problem: Problem, size: int) -> Snapshot:
    """Settings before their first step."""
    nothing = dict.fromkeys(SUPPORT, np.zeros(size, dtype=np.int64))
    objective = np.full(size, float(problem.objective(np.zeros(problem.p))[0]))
    return Snapshot(0, objective, np.zeros(size, dtype=bool), nothing, 0.0)
