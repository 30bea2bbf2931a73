"""Which rows a run leaves: those that its configuration, ledgers and tuning ask for.

Names, noise and seeds of a row follow from these, how often a setting ran from the rows
before it, and its status from its objective. Only measurements need a solver. So a row
that was left out, doubled or renamed, or has another seed, is seen without any run.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.config import schema
from dperm.data import load_prepared
from dperm.experiments import makers, plan
from dperm.experiments import tune as tuning
from dperm.experiments.stages import SweepRun, SweepTask
from dperm.experiments.task import (
    IDENTITY,
    PROVENANCE,
    SETTING_COLUMNS,
    STOPPED_EARLY,
    SUPPORT,
    SolverJob,
    Task,
    part_key,
    seed,
)
from dperm.privacy.events import RELATION, N, united
from dperm.solvers.batched.engine import DIVERGED
from dperm.storage import files as store
from dperm.storage.files import POINT

RTOL = 2e-9  # relative difference that counts as rounding
LEDGER = "ledger.json"
AGAIN = "delete it and run again; finished settings are kept"
# may be whole
REAL = dict.fromkeys(("passes", "step", "clip", "checkpoint"), float)
KEY = "config_digest"  # its first half is of all settings, the second of the code


def of_run(
    job: SolverJob, design: plan.Design, tables: Mapping[str, pd.DataFrame]
) -> Iterator[str]:
    """Find rows of a solver on a problem that its design does not give.

    ``tables`` are its rows by stage. The tasks of the run are planned again in a
    scratch folder, with the ledger and the tuning that are here.
    """
    ledgers = store.read_json(job.folder / LEDGER, AGAIN, list)
    keys = {ledger.get("key") for ledger in ledgers}
    for key, (calibration, count) in entries(job, design).items():
        if key not in keys:
            task = f"calibration {calibration} and {count:g} passes"
            yield f"{job.folder / LEDGER}: no entry of {task} as they are now: {AGAIN}"
            return
    with tempfile.TemporaryDirectory() as scratch:
        for file in (LEDGER, "tune.parquet"):
            shutil.copy(job.folder / file, scratch)
        start = float(job.problem.objective(np.zeros(job.problem.p))[0])
        run = _Run(replace(job, folder=Path(scratch)), design, start)
        planned = {
            "tune": run.tuned(tables["tune"]),
            "evaluate": run.evaluated(tables["evaluate"]),
        }
    for stage, rows in planned.items():
        if text := _unlike(tables[stage], rows):
            yield f"{job.folder / stage}.parquet: {text}: {AGAIN}"


def entries(
    job: SolverJob, design: plan.Design
) -> dict[str, tuple[str, float]]:
    """Keys of the entries of a run's ledger, with their calibrations and passes.

    A ledger may have more: of settings that the run had before.
    """
    passes = job.unique_passes([point["passes"] for point in design.points])
    pairs = itertools.product(design.calibrations, passes)
    return {tuning._key(job, *pair): pair for pair in pairs}


@dataclass(frozen=True)
class _Run:
    """A run that is planned again, whose measurements are those that are stored."""

    job: SolverJob
    design: plan.Design
    start: float  #: objective at w = 0

    def tuned(self, stored: pd.DataFrame) -> pd.DataFrame:
        """The rows of tuning: in a race the best of one replicate run in others."""

        def kept(tasks: list[Task]) -> Iterator[pd.DataFrame]:
            rows = self.of_tasks(tasks, stored) if tasks else pd.DataFrame()
            for task in tasks:
                yield rows[: task.size].reset_index(drop=True)
                rows = rows[task.size :]

        tasks = list(tuning.tuning_tasks(self.job, self.design))
        tables = (
            tuning.two_stages(tasks, kept) if self.design.race else kept(tasks)
        )
        return pd.concat(list(tables)).sort_values(IDENTITY)

    def evaluated(self, stored: pd.DataFrame) -> pd.DataFrame:
        """The rows of fresh runs, which end where their mean is precise."""
        settings = tuning.fresh_tasks(self.job, self.design, range(1))
        if not settings:  # every setting diverged
            names = self.job.names._asdict()
            return pd.DataFrame([{**names, "status": "diverged"}])
        tables: list[pd.DataFrame] = []
        for replicates in tuning.rounds(self.design):
            if tables:
                vague = tuning._vague(
                    stored[stored["replicate"] < replicates.start]
                )
                settings = [
                    task for task in settings if tuning._pair(task) in vague
                ]
            if not settings:
                break
            parts = tuning.together(replicates)
            tasks = [
                replace(task, replicates=shared)
                for task, shared in itertools.product(settings, parts)
            ]
            tables.append(self.of_tasks(tasks, stored).sort_values(IDENTITY))
        return pd.concat(tables)

    def of_tasks(
        self, tasks: list[Task], stored: pd.DataFrame
    ) -> pd.DataFrame:
        """The rows of tasks, each in the order of its points, with what they measured.

        A row is a task's, with a replicate, a checkpoint and a point of it.
        """
        described = pd.DataFrame([self.described(task) for task in tasks])
        places = []
        for number, task in enumerate(tasks):
            counts = [
                count and self.job.steps(count) for count in task.observed
            ]
            by_steps = dict(zip(counts, task.observed, strict=True))
            points = [(point["step"], point["clip"]) for point in task.points]
            seeds = [(r, seed(self.job, task, r)) for r in task.replicates]
            product = itertools.product(
                [number], seeds, by_steps.values(), points
            )
            places += [
                (n, *pair, count, *point) for n, pair, count, point in product
            ]
        columns = ["task", "replicate", "seed", "checkpoint", *POINT]
        rows = pd.DataFrame(places, columns=columns)
        rows = rows.join(described, "task").drop(columns="task").astype(REAL)
        size, *signs = SUPPORT
        measured = stored[[*IDENTITY, "objective", "status", *signs]].astype(
            REAL
        )
        rows = rows.merge(
            measured.drop_duplicates(IDENTITY), on=IDENTITY, how="left"
        )
        limit = rows.pop("stop_above") * self.start
        is_stopped = (rows["status"] == STOPPED_EARLY) & (
            rows["objective"] > limit
        )
        is_far = ~(rows["objective"] <= DIVERGED * self.start)
        status = np.select(
            [is_far, is_stopped], ["diverged", STOPPED_EARLY], "ok"
        )
        return rows.assign(**{"status": status, size: rows[signs].sum(axis=1)})

    def described(self, task: Task) -> dict[str, Any]:
        """What all rows of a task have in common, and its limit."""
        noise = task.calibration
        return {
            **self.job.names._asdict(),
            "calibration": noise.calibration,
            "epsilon": self.job.problem.epsilon,
            "delta": self.job.problem.delta,
            "neighbours": RELATION,
            "given": ", ".join(noise.ledger.given),
            "true_epsilon": noise.true_epsilon,
            "noise_multiplier": noise.noise_multiplier,
            "passes": task.passes,
            "steps": self.job.steps(task.passes),
            "reason": "",
            KEY: part_key(self.job, task).identity,
            "stop_above": task.stop_above or DIVERGED,
        }


def of_sweep(sweep: SweepRun) -> Iterator[str]:
    """Find rows of a sweep that are of no point, and points without rows."""
    rows = store.read_table(sweep.path)
    tasks = {task.key.identity: task for task in sweep.tasks()}
    identities = rows[KEY].str.partition("-")[0]
    points = [*dict.fromkeys(identities)]
    if points != [*tasks]:
        count = sum(point in tasks for point in points)
        yield (
            f"{sweep.path} has {count} of {len(tasks)} points, or another order, and "
            f"{len(points) - count} that are not of the configuration: {AGAIN}"
        )
        return
    described = [_described(sweep, tasks[point]) for point in identities]
    # where rows may be equal
    is_even = identities.value_counts().nunique() == 1
    if not is_even and rows.astype(str).duplicated().any():
        yield f"{sweep.path} has a row twice: {AGAIN}"
    if text := _unlike(rows, pd.DataFrame(described)):
        yield f"{sweep.path}: {text}: {AGAIN}"
    if "unavailable" in {*rows["status"]} and _has_data(sweep):
        yield f"{sweep.path} says unavailable, and its data are here: {AGAIN}"


def _described(sweep: SweepRun, task: SweepTask) -> dict[str, Any]:
    """What all rows of a point and replicate have in common."""
    config = sweep.config
    axes = [f"/{axis}={task.point[axis]!r}" for axis in sorted(task.point)]
    name = sweep.name + "".join(axes)
    sown = config.paper.name, name, 0, task.replicate
    return {
        **task.point,
        "paper": config.paper.name,
        "sweep": sweep.name,
        "replicate": task.replicate,
        "seed": plan.seed_of(config.seed, "sweep", *sown),
    }


def _has_data(sweep: SweepRun) -> bool:
    """Whether all problems of a sweep are here; points on others need none."""
    section = sweep.config.paper.sweeps[sweep.name]
    names = [*section.problems, *section.prepared]
    where = sweep.config.data
    return all(load_prepared(name, where).available for name in names)


def of_timing(config: schema.Config, folder: Path) -> Iterator[str]:
    """Find timed rows that are not, but for their seconds, those of evaluation."""
    paper = config.paper
    path = folder / "timing.parquet"
    tables: list[pd.DataFrame] = []
    count = min(paper.clocked, config.scale.fresh or paper.fresh)
    for run, calibrations in makers.clocked(paper).items():
        ran = store.read_table(folder.joinpath(*run, "evaluate.parquet"))
        is_timed = ran["calibration"].isin(calibrations) & (
            ran["replicate"] < count
        )
        if is_timed.any():
            tables.append(ran[is_timed])
    none = pd.DataFrame(columns=SETTING_COLUMNS)
    planned = pd.concat(tables or [none]).drop(columns=PROVENANCE)
    keys = ["problem", "solver", *IDENTITY]
    rows = store.read_table(path)
    if text := _unlike(rows, planned, keys):
        yield f"{path}: {text}: {AGAIN}"
    ran = rows["seconds"][rows["status"] == "ok"]
    if not (np.isfinite(ran) & (ran >= 0)).all():
        yield f"{path}: seconds are missing or below 0: {AGAIN}"


def of_audit(path: Path, subjects: Sequence[Any]) -> Iterator[str]:
    """Find findings about a solver that are not of its subjects, or at other prices.

    ``subjects`` are its mechanisms, each of which has every check once.
    """
    from dperm.audit.checks import CHECKS

    stored = findings(path)
    if stored.empty and not subjects:
        return
    planned = [
        {
            "subject": subject.name,
            "calibration": subject.calibration,
            "claimed_epsilon": subject.claimed,
            "true_epsilon": subject.true,
            "given": "; ".join(united((N,), subject.ledger.given)),
            "check": check,
        }
        for subject in subjects
        for check in CHECKS
    ]
    if text := _unlike(stored, pd.DataFrame(planned)):
        yield f"{path}: {text}"
        return
    measured = stored["measured"].where(stored["check"] == "epsilon")
    lower = measured.groupby([stored["subject"], stored["calibration"]])
    if (stored["epsilon"] != lower.transform("max")).any():
        yield f"{path}: epsilon is not what its check measured"


def of_subject(path: Path, fresh: pd.DataFrame) -> Iterator[str]:
    """Find findings about a subject that differ from those of a fresh audit.

    Differences of rounding are measured as well, and are of no size.
    """
    stored = findings(path)
    keys = ["subject", "calibration"]
    is_of = (stored[keys] == fresh[keys].iloc[0]).all(axis=1)
    ran = stored[is_of].reset_index(drop=True)
    near = np.isclose(ran["measured"], fresh["measured"], rtol=1e-6, atol=1e-9)
    same = near & (ran[["caught", "note"]] == fresh[["caught", "note"]]).all(
        axis=1
    )
    for _, row in fresh[~same].iterrows():
        text = f"{row['check']} of {row['subject']}, {row['calibration']}"
        yield f"{path}: {text} is {row['measured']:.6g} now ({row['note']})"


def findings(path: Path) -> pd.DataFrame:
    """The findings about a solver; there are none if it states no privacy."""
    if not path.read_text(encoding="utf-8").strip():
        return pd.DataFrame()
    return pd.read_csv(path, keep_default_na=False)


def _unlike(
    stored: pd.DataFrame, planned: pd.DataFrame, keys: Sequence[str] = ()
) -> str:
    """How stored rows differ from planned ones, in the columns of these; or empty.

    Their order counts where there are no ``keys``.
    """
    if len(stored) != len(planned):
        return f"{len(stored)} rows, where a run leaves {len(planned)}"
    if keys and len(planned) > 1:
        stored = stored.sort_values([*keys])
        planned = planned.sort_values([*keys])
    for column in planned:
        ours = stored[column].reset_index(drop=True)
        theirs = planned[column].reset_index(drop=True)
        if column == KEY:
            ours = ours.str.partition("-")[0]
        is_same = (ours == theirs) | (ours.isna() & theirs.isna())
        if pd.api.types.is_float_dtype(theirs):
            is_same |= np.isclose(
                ours.astype(float), theirs, rtol=RTOL, atol=0.0
            )
        if not is_same.all():
            row = is_same.idxmin()
            return f"{column} is {ours[row]}, where a run leaves {theirs[row]}"
    return ""
