"""Kept parts of other code that a paper wants, and how to make them again."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from dperm import data
from dperm.core.erm.problem import Problem
from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment import tune as tuning
from dperm.core.experiment.files import POINT, Key, Parts, locked
from dperm.core.experiment.unit import Job, Unit, compute, missing, part_key, seed
from dperm.pipeline import digests, inputs
from dperm.pipeline import sweep as sweeping
from dperm.pipeline.products import function_of

log = logging.getLogger(__name__)

Group = tuple[str, ...]  # what parts have in common that are adopted together


@dataclass(frozen=True)
class Candidate:
    """Kept rows of one seed, made by other code than there is.

    Attributes
    ----------
    group : tuple of str
        One replayed member speaks for all; ends with the code that made them.
    stage, problem : str
    name : str
        For whoever reads of it, seed included.
    key : Key
        What it would be called now.
    paths : list of Path
        Its files.
    seconds : float
        What it took.
    replay : callable
        Maps points (step, clip) of it to the rows that the present code makes.
    """

    group: Group
    stage: str
    problem: str
    name: str
    key: Key
    paths: list[Path]
    seconds: float
    replay: Callable[[pd.DataFrame], pd.DataFrame]

    def rows(self) -> pd.DataFrame:
        """What is kept; without the files that were damaged."""
        tables = [store.read_or_drop(path) for path in self.paths]
        found = [table for table in tables if table is not None]
        return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def candidates(config: schema.Config, moved: list[str]) -> Iterator[Candidate]:
    """Those of a paper; optima and noise are made anew first if their code changed.

    An optimum that is not what it was is added to ``moved``: no lane of its problem is
    what it was either, since all are measured by F*.
    """
    given = [o for o in config.overrides if not o.startswith(("problem=", "solver="))]
    for problem, solver in plan.runs(config):
        folder = plan.results_folder(config, config.paper.name, problem, solver)
        if Parts(folder).by_identity():
            names = [f"problem={problem}", f"solver={solver}"]
            yield from _lanes(configuration.compose([*given, *names]), moved)
    for name, what in config.paper.sweeps.items():
        yield from _points(config, name, what, moved)


# --- lanes ----------------------------------------------------------------------------


class _Loaded:
    """A job, loaded when it is wanted; one at a time is kept."""

    kept: dict[int, Job | None] = {}

    def __init__(self, config: schema.Config):
        self.config = config

    def job(self) -> Job | None:
        """The job; None without data."""
        if id(self) not in self.kept:
            self.kept.clear()
            self.kept[id(self)] = inputs.load_job(self.config)
        return self.kept[id(self)]


def _lanes(config: schema.Config, moved: list[str]) -> Iterator[Candidate]:
    folder = plan.results_folder(
        config, config.paper.name, config.problem.name, config.solver.name
    )
    parts = Parts(folder)
    now = digests.lanes(config.solver.algorithm)
    other = {
        identity: kept
        for identity, found in parts.by_identity().items()
        if (kept := {code: paths for code, paths in found.items() if code != now})
    }
    if not other:
        return
    _solve_again(config, moved)
    loaded = _Loaded(config)
    job = loaded.job()
    if job is None:
        return
    seconds = _recorded(folder / "tune.parquet", folder / "evaluate.parquet")
    for unit in _units(job, plan.design(config)):
        key = part_key(job, unit)
        for code, paths in other.get(key.identity, {}).items():
            if _is_wanted(parts, key, unit):
                yield Candidate(
                    (*_kind(job, unit), code), unit.stage, job.problem.name,
                    f"{unit.stage} {folder}, {unit.passes:g} passes, "
                    f"{unit.calibration.calibration}, seed {seed(job, unit)}",
                    key, paths, seconds.get(f"{key.identity}-{code}", 0.0),
                    partial(_again, loaded, unit, config.workers),
                )  # fmt: skip


def _again(
    loaded: _Loaded, unit: Unit, workers: int, points: pd.DataFrame
) -> pd.DataFrame:
    job = loaded.job()
    assert job is not None
    return compute(job, unit, points, workers)


def _solve_again(config: schema.Config, moved: list[str]) -> None:
    """Prepare and solve the problem if what is there was made by other code."""
    path = inputs.optimum_folder(config) / "optimum.json"
    before = store.known_json(path) or {}
    if before.get("made_by") == digests.optimum(config.problem):
        return
    log.info("%s: its optimum is of other code, solving again", config.problem.name)
    data.prepare(config.problem, config.data)
    inputs.optimum(config)
    now = store.read_json(path)
    for key in ("digest", "value", "w_digest"):
        if key in before and before[key] != now.get(key):
            was = f"{key} {before[key]!r} was kept, {now.get(key)!r} is made"
            moved.append(f"optimum of {config.problem.name}: {was}")
            return


def _units(job: Job, design: plan.Design) -> list[Unit]:
    """All units the paper wants now, with the noise the present accountant finds."""
    with locked(job.folder):
        units = list(tuning.tuning_units(job, design))
        tuned = job.folder / "tune.parquet"
        if tuned.is_file():
            units += tuning.fresh_units(job, design, store.read_table(tuned))
        else:
            log.info("%s: not there, what was evaluated is not looked at", tuned)
    return units


def _is_wanted(parts: Parts, key: Key, unit: Unit) -> bool:
    """Whether lanes of a unit are missing under its present key."""
    kept = parts.read(key)
    return kept is None or len(missing(unit.settings(), kept)) > 0


def _kind(job: Job, unit: Unit) -> Group:
    """Lanes of one kind run the same code: solver, options, matrix, loss, penalty."""
    options = json.dumps(asdict(job.options), default=str)
    names = (job.algorithm, options, unit.calibration.calibration)
    return *names, _matrix(job.problem), job.problem.loss.name, _penalty(job.problem)


def _matrix(problem: Problem) -> str:
    if problem.is_centred:
        return "centred"
    return "sparse" if problem.is_sparse else "dense"


def _penalty(problem: Problem) -> str:
    penalty = problem.penalty
    boxed = penalty.upper - penalty.lower < float("inf")
    used = {"l1": penalty.l1 > 0, "l2": penalty.l2 > 0, "box": boxed}
    return "+".join(name for name, there in used.items() if there) or "no penalty"


def _recorded(*tables: Path) -> dict[str, float]:
    """Seconds of every part, by its key, as far as a stage's tables know them."""
    found: dict[str, float] = {}
    for path in tables:
        if path.is_file():
            rows = store.read_table(path)
            if {"config_digest", "seconds", *POINT} <= set(rows):
                lanes = rows.groupby(["config_digest", *POINT])["seconds"].max()
                found |= lanes.groupby(level=0).sum().to_dict()
    return found


# --- points of sweeps -----------------------------------------------------------------


def _points(
    config: schema.Config, name: str, what: schema.Sweep, moved: list[str]
) -> Iterator[Candidate]:
    path = sweeping.sweep_path(config, name)
    parts = Parts(path.parent / name)
    kept = parts.by_identity()
    if not kept:
        return
    for problem in plan.sweep_problems(config, what):
        _solve_again(plan.at_problem(config, problem), moved)
    try:
        tasks = sweeping.tasks(config, name, what)
    except (FileNotFoundError, ValueError) as error:
        log.info("sweep %s: not looked at: %s", name, error)
        return
    function = function_of(config, "sweeps", what.kind)
    for task in tasks:
        point, replicate, key = task
        found = {} if parts.one(key).is_file() else kept.get(key.identity, {})
        for code, paths in found.items():
            yield Candidate(
                (config.paper.name, name, *_named(point), code), "sweep", "",
                f"sweep {config.paper.name} {name}, {point}, replicate {replicate}",
                key, paths, _spent(paths),
                partial(_once_more, config, name, what, function, task),
            )  # fmt: skip


def _once_more(
    config: schema.Config, name: str, what: schema.Sweep, function: Any,
    task: sweeping.Task, points: pd.DataFrame,
) -> pd.DataFrame:  # fmt: skip
    return sweeping.measured(config, name, what, function, task)


def _named(point: dict[str, Any]) -> Group:
    """What a point chooses by name, such as a method: other code may run for each."""
    return tuple(
        f"{key}={value}"
        for key, value in sorted(point.items())
        if isinstance(value, str | bool)
    )


def _spent(paths: list[Path]) -> float:
    tables = [store.read_or_drop(path) for path in paths]
    return sum(float(table["seconds"].sum()) for table in tables if table is not None)
