"""The stages that compute rows: tune, evaluate, both, timing, sweep.

A sweep evaluates a function at every point of a grid; each replicate has its own seed.
"""

from __future__ import annotations

import functools
import logging
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dperm import data
from dperm.config import grid, schema
from dperm.config.config import read
from dperm.config.locate import OWN
from dperm.config.scope import Scope, view
from dperm.experiments import (
    checks,
    digests,
    makers,
    meter,
    plan,
    scopes,
    trace,
)
from dperm.experiments import tune as tuning
from dperm.experiments.inputs import (
    Inputs,
    UnavailableError,
    load_job,
    optimum_record,
    say_unavailable,
)
from dperm.experiments.results import sweep_path
from dperm.experiments.task import (
    IDENTITY,
    SETTING_COLUMNS,
    SolverJob,
    compute,
    unavailable,
)
from dperm.experiments.tune import progress
from dperm.numerics.parallel import forked
from dperm.solvers.batched import BatchedSettings
from dperm.solvers.batched.engine import run_batched
from dperm.storage import files as store
from dperm.storage.files import Key, Parts

log = logging.getLogger(__name__)
# The functions whose code is in the keys, with all that it reaches.
SOLVING = (f"{__name__}:solve", f"{__name__}:timing")
SWEEPING = f"{__name__}:SweepRun"

Point = dict[str, Any]


class SweepTask(NamedTuple):
    """A point of a sweep's grid with one seed."""

    point: Point
    replicate: int
    key: Key  #: of its part


def tune(config: schema.Config) -> Path:
    """Run the grid of one solver on one problem and write ``tune.parquet``."""
    checks.check_ledger(config.solver)
    return _rows_in(config, "tune", tuning.tuned)


def evaluate(config: schema.Config) -> Path:
    """Run the best setting of every (calibration, passes) on fresh seeds.

    Returns the path of ``evaluate.parquet``, with one row per seed and pass.
    """
    return _rows_in(config, "evaluate", tuning.evaluated)


def solve(config: schema.Config) -> Path:
    """Tune, then evaluate: one process for both."""
    tune(config)
    return evaluate(config)


def _rows_in(
    config: schema.Config,
    name: str,
    compute_rows: Callable[[SolverJob, plan.Design], pd.DataFrame],
) -> Path:
    """Write a table of rows; where there are no data, of the reason."""
    names = plan.names_of(config.paper, config.problem.name, config.solver)
    folder = plan.run_folder(config.paper, config.output, *names[1:3])
    with store.locked(folder):
        scope = scopes.scope(
            "solve " + "/".join(names[:3]), scopes.solved(config)
        )
        try:
            with _watched(config, scope) as watched:
                table = compute_rows(load_job(watched), plan.design(watched))
        except UnavailableError as error:
            say_unavailable(config.problem.name, error)
            table = unavailable(names, str(error))
            store.write_json(folder / "ledger.json", [])
        store.write_table(folder / f"{name}.parquet", table)
    meter.note(**{f"{name}_rows": len(table)})
    return folder / f"{name}.parquet"


@contextmanager
def _watched(config: schema.Config, scope: Scope) -> Iterator[schema.Config]:
    """A view of the configuration for a run of the chosen solver on its problem."""
    calibrations = config.paper.calibrations
    chosen = (config.solver.algorithm, calibrations, config.problem.loss)
    behind = functools.partial(digests.solved, SOLVING, *chosen)
    results = Path(config.output.results)
    folders = [
        results / config.paper.name,
        results / OWN,
        Path(config.data.dir),
    ]
    with trace.kept(scope, folders, behind):
        yield view(config, "", scope)


def timing(config: schema.Config) -> Path:
    """Run again, one after the other, the settings whose seconds a product shows.

    All other stages share the machine with other jobs, so their seconds do not measure
    an algorithm. Except for the seconds, the rows equal those of ``evaluate`` bit for
    bit. ``clocked`` of the paper is the number of fresh runs per setting. Each runs on
    one thread. Returns the path of ``timing.parquet`` of the paper.
    """
    pairs = makers.clocked(config.paper)
    bar = progress(
        f"timing {config.paper.name}", len(pairs), "solvers on problems"
    )
    tables = [pd.DataFrame(columns=SETTING_COLUMNS)]
    for run, calibrations in pairs.items():
        tables += _timed(plan.at_run(config, *run), calibrations)
        bar.update()
    bar.close()
    path = Path(config.output.results, config.paper.name, "timing.parquet")
    table = pd.concat(tables[1:] or tables, ignore_index=True)
    store.write_table(path, table)
    return path


def _timed(
    config: schema.Config, calibrations: set[str]
) -> Iterator[pd.DataFrame]:
    """Yield the rows of one solver on one problem; none if the data are unavailable."""
    names = plan.names_of(config.paper, config.problem.name, config.solver)
    scope = scopes.scope("timing " + "/".join(names[:3]), scopes.timed(config))
    with _watched(config, scope) as watched:
        try:
            job = load_job(watched)
        except UnavailableError:
            return
        design = plan.design(watched)
        # the others have no rows
        count = min(watched.paper.clocked, design.fresh)
        tables = [*_clocked(job, design, count, calibrations)]
    yield from tables


def _clocked(
    job: SolverJob, design: plan.Design, count: int, calibrations: set[str]
) -> Iterator[pd.DataFrame]:
    tasks = tuning.fresh_tasks(job, design, range(count))
    if tasks:  # compile or load the kernels before anything is timed
        settings = BatchedSettings(np.full(1, 1e-3), np.full(1, 1e-3), 0.0)
        run_batched(
            job.module,
            job.options,
            job.problem,
            settings,
            [1],
            0,
            lambda W: {},
        )
    for task in tasks:
        is_shown = task.calibration.calibration in calibrations
        if is_shown:
            yield compute(job, task, task.settings(), 1)


# --- sweeps -------------------------------------------------------------------------


def sweep(config: schema.Config) -> list[Path]:
    """Run ``product=...``, or all sweeps of the paper, and write their tables.

    Rows of an earlier run are reused unchanged.
    """
    names = makers.chosen(config.paper, "sweeps", config.product)
    return [SweepRun(config, name).run() for name in names]


class SweepRun:
    """A sweep of a paper: a function of every point, and of a seed per replicate."""

    def __init__(self, config: schema.Config, name: str):
        self.config = config
        self.name = name
        self.sweep = config.paper.sweeps[name]
        function = self.sweep.function
        self.function = makers.function_of(
            config.paper.name, "sweeps", function
        )
        self.folder = Path(config.output.results, config.paper.name)
        self.inputs = Inputs(config.data, config.overrides)
        self.path = sweep_path(self.folder, name)
        self.parts = Parts(self.path.parent / name)  #: one of each task
        #: settings and digest of code by the strings of points
        self.dependencies: dict[frozenset[str], tuple[Any, str]] = {}

    def run(self) -> Path:
        """Compute the tasks that have no part yet, and write the table of all."""
        with store.locked(self.path.parent / self.name):
            tasks = self.tasks()
            paths = self.parts.named()
            todo = [
                task
                for task in tasks
                if (path := paths.get(str(task.key))) is None
                or store.read_or_drop(path) is None
            ]
            reused = (self.name, len(tasks) - len(todo), len(todo))
            log.info("sweep %s: %d reused, %d to compute", *reused)
            self._compute(todo)
            paths = self.parts.named()
            tables = [
                store.unthreaded(paths[str(task.key)]).assign(
                    config_digest=str(task.key)
                )
                for task in tasks
            ]
            store.write_table(self.path, pd.concat(tables, ignore_index=True))
        return self.path

    def tasks(self) -> list[SweepTask]:
        """Every point and replicate, with the key of its part."""
        config = self.config
        sweep = self.sweep
        points = scopes.points(sweep)
        solved = {}
        for problem in sweep.problems:
            spec = read("problem", problem, config.overrides)
            record = optimum_record(spec, config.data)
            fields = ("status", "made", "value", "w_digest")
            solved[problem] = [record.get(key) for key in fields]
        prepared = [
            data.load_prepared(problem, config.data).meta["digest"]
            for problem in sweep.prepared
        ]
        tunings = makers.sweep_tuned(config.paper, self.name)
        tuned = {run: self._tuned(*run) for run in tunings}
        constant = [
            config.paper.name,
            self.name,
            sweep.function,
            config.seed,
            prepared,
        ]
        tasks = []
        for point in points:
            solver = point.get("solver")
            settings, code = self._depends(point)
            reads = list[Any](solved.values())
            if sweep.apart and "problem" in point:
                reads = [solved.get(point["problem"])]
            depends_on: list[Any] = [
                *constant,
                point,
                self._options(point),
                reads,
                settings,
            ]
            if solver:
                depends_on.append(
                    tuned.get((point.get("problem", ""), solver))
                )
            for replicate in range(
                config.scale.replicates or sweep.replicates
            ):
                key = Key(store.digest([depends_on, replicate]), code)
                tasks.append(SweepTask(point, replicate, key))
        return tasks

    def _behind(self, point: Point) -> list[str]:
        """Entry points of the code in the key of a point."""
        config = self.config
        solvers = self._solvers(point)
        where = (config.paper, self.name, config.overrides)
        return scopes.sweeping(*where, solvers, SWEEPING, point)

    def _solvers(self, point: Point) -> list[str]:
        """The solver of a point, or those of all points where none stands apart."""
        if not self.sweep.apart:
            return sorted(grid.values(scopes.points(self.sweep), "solver"))
        return [point["solver"]] if "solver" in point else []

    def _depends(self, point: Point) -> tuple[Any, str]:
        """The settings that a point depends on, and the digest of its code.

        They are the same for all points of one solver, and where points stand apart for
        those of which the same strings stand in the point and its options.
        """
        key = self._words(point)
        if key not in self.dependencies:
            settings = scopes.swept(self.config, self.name, point)
            self.dependencies[key] = (settings, self.code_of(point))
        return self.dependencies[key]

    def code_of(self, point: Point) -> str:
        """Digest of the code behind a point."""
        return digests.code(*self._behind(point))

    def _words(self, point: Point) -> frozenset[str]:
        if not self.sweep.apart:
            return frozenset({point.get("solver", "")})
        return frozenset(scopes.option_words(self.sweep, point))

    def _tuned(self, problem: str, solver: str) -> str:
        """Digest of the numbers in the tuning table of a solver on a problem."""
        table = store.read_table(
            self.folder / problem / solver / "tune.parquet"
        )
        columns = [
            *IDENTITY,
            "noise_multiplier",
            "objective",
            "relative_error",
        ]
        return store.digest([table[columns].to_csv(index=False)])

    def _options(self, point: Point) -> dict[str, Any]:
        """Options for a point."""
        return scopes.options_at(self.sweep, point)

    def _compute(self, todo: list[SweepTask]) -> None:
        """Compute tasks in processes, long ones first; each becomes a part."""
        groups: dict[str, list[SweepTask]] = {}
        for task in sorted(todo, key=_size, reverse=True):
            together = self.sweep.together
            apart = {
                key: coordinate
                for key, coordinate in task.point.items()
                if key not in together
            }
            groups.setdefault(repr((apart, task.replicate)), []).append(task)
        longest = 0.0
        workers = self.config.workers
        with forked(self._several, list(groups.values()), workers) as timings:
            bar = progress(f"sweep {self.name}", len(todo), "points")
            for seconds in timings:
                bar.update(len(seconds))
                longest = max(longest, sum(seconds))
            bar.close()
        meter.note(
            tasks=len(todo), indivisible=len(groups), longest_seconds=longest
        )

    def _several(self, group: list[SweepTask]) -> list[float]:
        """Compute tasks one after the other and keep each; return their CPU seconds."""
        spent = []
        for task in group:
            began = sum(os.times()[:4])  # with processes that it started
            self.parts.keep(str(task.key), self.measured(task))
            spent.append(sum(os.times()[:4]) - began)
        return spent

    def measured(self, task: SweepTask) -> pd.DataFrame:
        """Compute the rows of one point and replicate."""
        from threadpoolctl import threadpool_limits

        config = self.config
        point, replicate, key = task
        name = self.name + "".join(
            f"/{axis}={point[axis]!r}" for axis in sorted(point)
        )
        seed = plan.seed_of(
            config.seed, "sweep", config.paper.name, name, 0, replicate
        )
        start = time.perf_counter()
        with threadpool_limits(1):
            try:
                outcome = self._result(point, seed)
            except UnavailableError as error:
                outcome = {"status": "unavailable", "reason": str(error)}
        rows = pd.DataFrame([outcome])
        if isinstance(outcome, list):
            rows = pd.DataFrame(outcome)
        if "seconds" not in rows:
            rows["seconds"] = (time.perf_counter() - start) / len(rows)
        if "status" not in rows:
            rows["status"] = "ok"
        provenance = {"paper": config.paper.name, "sweep": self.name, **point}
        provenance |= {
            "replicate": replicate,
            "seed": seed,
            "commit": store.commit(),
        }
        provenance |= {"versions": store.versions(), "config_digest": str(key)}
        return rows.assign(**provenance)

    def _result(self, point: Point, seed: int) -> Any:
        """What the function of the sweep returns; it sees what its key holds."""
        remembered = self.dependencies.get(self._words(point))
        settings = (
            remembered[0]
            if remembered
            else scopes.swept(self.config, self.name, point)
        )
        scope = scopes.scope(
            f"sweep {self.config.paper.name}/{self.name}", settings
        )
        by_digest = [self.folder, Path(self.config.data.dir)]
        with trace.kept(
            scope, by_digest, functools.partial(self._behind, point)
        ):
            watched = view(self.config, "", scope)
            passed = {
                "point": point,
                "seed": seed,
                "master": watched.seed,
                "paper": watched.paper,
                "scale": watched.scale,
                "folder": self.folder,
                "inputs": self.inputs,
            }
            outcome = makers.called(
                self.function, self._options(point), passed
            )
        rows = outcome if isinstance(outcome, list) else [outcome]
        if not rows or not all(isinstance(row, dict) for row in rows):
            words = "a row, as {'error': 0.1}, or a list of rows"
            raise makers.unlike(self.function, words, outcome)
        for column, cell in chain.from_iterable(row.items() for row in rows):
            if isinstance(cell, list | dict | set | np.ndarray):
                words = f"a number or a text in {column}"
                raise makers.unlike(self.function, words, cell)
        return outcome


def _size(task: SweepTask) -> float:
    """Size of a point: the product of its numbers above 1, such as n and d."""
    numbers = (
        coordinate
        for coordinate in task.point.values()
        if isinstance(coordinate, int | float)
    )
    return math.prod(
        coordinate for coordinate in numbers if 1 <= coordinate < math.inf
    )
