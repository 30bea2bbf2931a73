"""The stages that compute rows: tune, evaluate, both, timing, sweep.

A sweep evaluates a function at every point of a grid; each replicate has its own seed.
"""

from __future__ import annotations

import functools
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm import data
from dperm.core.experiment import files as store
from dperm.core.experiment import grid, plan, schema
from dperm.core.experiment import tune as tuning
from dperm.core.experiment.files import Key, Parts
from dperm.core.experiment.results import sweep_path
from dperm.core.experiment.tune import progress
from dperm.core.experiment.unit import COLUMNS, IDENTITY, Job, compute, unavailable
from dperm.core.lanes import Lanes
from dperm.core.lanes.engine import run_lanes
from dperm.core.parallel import forked
from dperm.pipeline import checks, digests, jobs, meter, products
from dperm.pipeline.inputs import (
    UnavailableError,
    load_job,
    optimum_record,
    say_unavailable,
)

log = logging.getLogger(__name__)

Point = dict[str, Any]
Task = tuple[Point, int, Key]  # point, replicate, key of its part


def tune(config: schema.Config) -> Path:
    """Run the grid of one solver on one problem and write ``tune.parquet``."""
    checks.held(config.solver)
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
    config: schema.Config, name: str, made: Callable[[Job, plan.Design], pd.DataFrame]
) -> Path:
    """Write a table of rows; where there are no data, of the reason."""
    names = plan.names_of(config)
    folder = plan.results_folder(config, *names[:3])
    with store.locked(folder):
        try:
            table = made(load_job(config), plan.design(config))
        except UnavailableError as error:
            say_unavailable(config.problem.name, error)
            table = unavailable(names, str(error))
            store.write_json(folder / "ledger.json", [])
        store.write_table(folder / f"{name}.parquet", table)
    meter.note(**{f"{name}_rows": len(table)})
    return folder / f"{name}.parquet"


def timing(config: schema.Config) -> Path:
    """Run again, one after the other, the settings whose seconds a product shows.

    All other stages share the machine with other jobs, so their seconds do not measure
    an algorithm. Except for the seconds, the rows equal those of ``evaluate`` bit for
    bit. ``clocked`` of the paper is the number of fresh runs per setting. Each runs on
    one thread. Returns the path of ``timing.parquet`` of the paper.
    """
    pairs = products.clocked(config)
    bar = progress(f"timing {config.paper.name}", len(pairs), "solvers on problems")
    tables = [pd.DataFrame(columns=COLUMNS)]
    for run, kinds in pairs.items():
        tables += _timed(plan.at_run(config, *run), kinds)
        bar.update()
    bar.close()
    path = plan.results_folder(config, config.paper.name) / "timing.parquet"
    table = pd.concat(tables[1:] or tables, ignore_index=True)
    store.write_table(path, table)
    return path


def _timed(config: schema.Config, kinds: set[str]) -> Iterator[pd.DataFrame]:
    """Yield the rows of one solver on one problem; none if the data are unavailable."""
    try:
        job = load_job(config)
    except UnavailableError:
        return
    design = plan.design(config)
    if design.evaluated == "ties":  # drawn against passes, not seconds
        design = replace(design, evaluated="best")
    units = tuning.fresh_units(job, design)
    if units:  # compile or load the kernels before anything is timed
        lanes = Lanes(np.full(1, 1e-3), np.full(1, 1e-3), 0.0)
        run_lanes(job.module, job.options, job.problem, lanes, [1], 0, lambda W: {})
    for unit in units:
        is_shown = unit.calibration.calibration in kinds
        if is_shown and unit.replicate < config.paper.clocked:
            yield compute(job, unit, unit.settings(), 1)


# --- sweeps -------------------------------------------------------------------------


def sweep(config: schema.Config) -> list[Path]:
    """Run ``product=...``, or all sweeps of the paper, and write their tables.

    Rows of an earlier run are reused unchanged.
    """
    return [Swept(config, name).run() for name in products.chosen(config, "sweeps")]


class Swept:
    """A sweep of a paper: a function of every point, and of a seed per replicate."""

    def __init__(self, config: schema.Config, name: str):
        self.config, self.name, self.what = config, name, config.paper.sweeps[name]
        self.function = products.function_of(config, "sweeps", self.what.kind)
        self.path = sweep_path(config, name)
        self.parts = Parts(self.path.parent / name)  #: one of each task

    def run(self) -> Path:
        """Compute the tasks that have no part yet, and write the table of all."""
        with store.locked(self.path.parent / self.name):
            every, found = self.tasks(), self.parts.named()
            todo = [
                task
                for task in every
                if (part := found.get(str(task[2]))) is None
                or store.read_or_drop(part) is None
            ]
            reused = (self.name, len(every) - len(todo), len(todo))
            log.info("sweep %s: %d reused, %d to compute", *reused)
            self._compute(todo)
            found = self.parts.named()
            tables = [
                store.unthreaded(found[str(key)]).assign(config_digest=str(key))
                for _, _, key in every
            ]
            store.write_table(self.path, pd.concat(tables, ignore_index=True))
        return self.path

    def tasks(self) -> list[Task]:
        """Every point and replicate, with the key of its part."""
        config, what = self.config, self.what
        every = grid.points(what.grid, axes=None)
        code = functools.cache(lambda *names: jobs.swept(config, self.name, names))
        solved = {}
        for problem in what.problems:
            record = optimum_record(plan.at_problem(config, problem))
            solved[problem] = [record.get(key) for key in ("digest", "w_digest")]
        prepared = [
            data.load_prepared(problem, config.data).meta["digest"]
            for problem in what.prepared
        ]
        tunings = products.sweep_tuned(config, self.name)
        tuned = {run: self._tuned(*run) for run in tunings}
        given = [config.paper.name, self.name, what.kind, config.seed, prepared]
        solvers = sorted(grid.values(every, "solver"))
        given.append(jobs.surroundings(config, self.name, solvers))
        found = []
        for point in every:
            problem, solver = point.get("problem", ""), point.get("solver")
            names, reads = grid.values(every, "solver"), list[Any](solved.values())
            if what.apart:
                names = [solver] if solver else []
                reads = [solved.get(problem)]
            of: list[Any] = [*given, point, self._options(point), reads]
            if solver:
                section = digests.solver_of(solver)
                of += [section.algorithm, section.options, tuned.get((problem, solver))]
            for replicate in range(config.scale.replicates or what.replicates):
                key = Key(store.digest([of, replicate]), code(*sorted(names)))
                found.append((point, replicate, key))
        return found

    def _tuned(self, problem: str, solver: str) -> str:
        """Digest of the numbers in the tuning table of a solver on a problem."""
        names = (self.config.paper.name, problem, solver)
        folder = plan.results_folder(self.config, *names)
        table = store.read_table(folder / "tune.parquet")
        columns = [*IDENTITY, "noise_multiplier", "objective", "relative_error"]
        return store.digest([table[columns].to_csv(index=False)])

    def _options(self, point: Point) -> dict[str, Any]:
        """Options for a point.

        In a sweep with ``apart``, an option may map names of solvers to values. A
        mapping that has the point's solver is replaced by the value of that solver.
        """
        solver, options = point.get("solver"), self.what.options
        if not self.what.apart or solver is None:
            return options
        return {
            key: value[solver] if isinstance(value, Mapping) and solver in value
            else value
            for key, value in options.items()
        }  # fmt: skip

    def _compute(self, todo: list[Task]) -> None:
        """Compute tasks in processes, long ones first; each becomes a part."""
        groups: dict[str, list[Task]] = {}
        for task in sorted(todo, key=_size, reverse=True):
            together = self.what.together
            apart = {key: at for key, at in task[0].items() if key not in together}
            groups.setdefault(repr((apart, task[1])), []).append(task)
        longest = 0.0
        workers = self.config.workers
        with forked(self._several, list(groups.values()), workers) as made:
            bar = progress(f"sweep {self.name}", len(todo), "points")
            for seconds in made:
                bar.update(len(seconds))
                longest = max(longest, sum(seconds))
            bar.close()
        meter.note(tasks=len(todo), indivisible=len(groups), longest_seconds=longest)

    def _several(self, group: list[Task]) -> list[float]:
        """Compute tasks one after the other and keep each; return their CPU seconds."""
        spent = []
        for task in group:
            began = time.process_time()
            self.parts.keep(str(task[2]), self.measured(task))
            spent.append(time.process_time() - began)
        return spent

    def measured(self, task: Task) -> pd.DataFrame:
        """Compute the rows of one point and replicate."""
        from threadpoolctl import threadpool_limits

        config, (point, replicate, key) = self.config, task
        name = self.name + "".join(f"/{at}={point[at]!r}" for at in sorted(point))
        seed = plan.seed_of(config.seed, "sweep", config.paper.name, name, 0, replicate)
        start = time.perf_counter()
        with threadpool_limits(1):
            try:
                result = self.function(config, point, seed, **self._options(point))
            except UnavailableError as error:
                result = {"status": "unavailable", "reason": str(error)}
        rows = pd.DataFrame(result if isinstance(result, list) else [result])
        if "seconds" not in rows:
            rows["seconds"] = (time.perf_counter() - start) / len(rows)
        if "status" not in rows:
            rows["status"] = "ok"
        known = {"paper": config.paper.name, "sweep": self.name, **point}
        known |= {"replicate": replicate, "seed": seed, "commit": store.commit()}
        known |= {"versions": store.versions(), "config_digest": str(key)}
        return rows.assign(**known)


def _size(task: Task) -> float:
    """Size of a point: the product of its numbers above 1, such as n and d."""
    numbers = (value for value in task[0].values() if isinstance(value, int | float))
    return math.prod(value for value in numbers if 1 <= value < math.inf)
