"""The stages that compute rows: tune, evaluate, both, timing, sweep.

A sweep evaluates a function at every point of a grid; each replicate has its own seed.
"""

from __future__ import annotations

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
from dperm.core.experiment import plan, schema
from dperm.core.experiment import tune as tuning
from dperm.core.experiment.files import Key, Parts
from dperm.core.experiment.results import sweep_path
from dperm.core.experiment.unit import COLUMNS, IDENTITY, compute, unavailable
from dperm.core.lanes import Lanes
from dperm.core.lanes.engine import run_lanes
from dperm.pipeline import checks, digests, products
from dperm.pipeline.inputs import (
    current_optimum,
    load_job,
    unavailable_reason,
)
from dperm.pipeline.products import chosen, function_of
from dperm.pipeline.workers import away
from dperm.store.folders import locked

log = logging.getLogger(__name__)

Point = dict[str, Any]
Task = tuple[Point, int, Key]  # point, replicate, key of its part


def tune(config: schema.Config) -> Path:
    """Run the grid of one solver on one problem and write ``tune.parquet``.

    Returns
    -------
    Path
        Of the table.
    """
    checks.held(config.solver)
    folder = _folder(config)
    with locked(folder):
        job = load_job(config)
        if job is None:
            table = unavailable(plan.names_of(config), unavailable_reason(config))
            store.write_json(folder / "ledger.json", [])
        else:
            table = tuning.tuned(job, plan.design(config))
        store.write_table(folder / "tune.parquet", table, digests.tune(config))
    return folder / "tune.parquet"


def evaluate(config: schema.Config) -> Path:
    """Run the best setting of every (calibration, passes) on fresh seeds.

    Returns
    -------
    Path
        Of ``evaluate.parquet``, with one row per seed and pass.

    Raises
    ------
    ValueError
        If the tuning was made by other code or settings.
    """
    folder = _folder(config)
    made = digests.tune(config)
    tuned = store.read_table(folder / "tune.parquet", made)
    with locked(folder):
        job = load_job(config)
        if job is None:
            table = unavailable(plan.names_of(config), unavailable_reason(config))
        else:
            table = tuning.evaluated(job, plan.design(config), tuned)
        made = digests.evaluate(config, made)
        store.write_table(folder / "evaluate.parquet", table, made)
    return folder / "evaluate.parquet"


def solve(config: schema.Config) -> Path:
    """Tune, then evaluate: one process for both.

    Returns
    -------
    Path
        Of ``evaluate.parquet``.
    """
    tune(config)
    return evaluate(config)


def _folder(config: schema.Config) -> Path:
    names = (config.paper.name, config.problem.name, config.solver.name)
    return plan.results_folder(config, *names)


def timing(config: schema.Config) -> Path:
    """Run again, one after the other, the settings whose seconds a product shows.

    All other stages share the machine with other jobs, so their seconds do not measure
    an algorithm. Except for the seconds, the rows equal those of ``evaluate`` bit for
    bit. ``clocked`` of the paper is the number of fresh runs per setting. Each runs on
    one thread.

    Returns
    -------
    Path
        Of ``timing.parquet`` of the paper.
    """
    pairs = products.clocked(config)
    meter = tuning.Meter(
        f"timing {config.paper.name}", len(pairs), "solvers on problems"
    )
    tables = [pd.DataFrame(columns=COLUMNS)]
    for (problem, solver), kinds in pairs.items():
        tables += _timed(plan.at_run(config, problem, solver), kinds)
        meter.advance(1)
    path = plan.results_folder(config, config.paper.name) / "timing.parquet"
    rows = [table for table in tables if len(table)] or tables
    table = pd.concat(rows, ignore_index=True)
    store.write_table(path, table, digests.timed(config))
    return path


def _timed(config: schema.Config, kinds: set[str]) -> Iterator[pd.DataFrame]:
    """Yield the rows of one solver on one problem; none if the data are unavailable."""
    job = load_job(config)
    if job is None:
        return
    table = store.read_table(job.folder / "tune.parquet", digests.tune(config))
    design = plan.design(config)
    if design.evaluated == "ties":  # drawn against passes, not seconds
        design = replace(design, evaluated="best")
    units = tuning.fresh_units(job, design, table)
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
    return [
        _sweep(config, name, what) for name, what in chosen(config, "sweeps").items()
    ]


def solver_section(point: Point) -> list[Any]:
    """Algorithm and options of the point's solver; empty if it has no ``solver``."""
    if "solver" not in point:
        return []
    solver = digests.solver_of(point["solver"])
    return [solver.algorithm, solver.options]


def _tuned(config: schema.Config, problem: str, solver: str) -> str:
    """Digest of the numbers in the tuning table of a solver on a problem."""
    folder = plan.results_folder(config, config.paper.name, problem, solver)
    made = digests.tune(plan.at_run(config, problem, solver))
    table = store.read_table(folder / "tune.parquet", made)
    columns = [*IDENTITY, "noise_multiplier", "objective", "relative_error"]
    return store.digest([table[columns].to_csv(index=False)])


def _sweep(config: schema.Config, name: str, what: schema.Sweep) -> Path:
    path = sweep_path(config, name)
    parts = Parts(path.parent / name)
    with locked(path.parent / name):
        every = tasks(config, name, what)
        found = parts.named()
        todo = [
            task
            for task in every
            if (part := found.get(str(task[2]))) is None
            or store.read_or_drop(part) is None
        ]
        reused = len(every) - len(todo)
        log.info("sweep %s: %d reused, %d to compute", name, reused, len(todo))
        _compute(config, name, what, todo, parts)
        named = parts.named()
        tables = [
            store.unthreaded(named[str(key)]).assign(config_digest=str(key))
            for _, _, key in every
        ]
        made = digests.swept_at(config, name)
        store.write_table(path, pd.concat(tables, ignore_index=True), made)
    return path


def tasks(config: schema.Config, name: str, what: schema.Sweep) -> list[Task]:
    """Every point and replicate of a sweep, with the key of its part."""
    replicates = config.scale.replicates or what.replicates
    every = products.sweep_points(config, what)
    code = digests.swept(config, what, every.values("solver"))
    optima = {
        problem: _solved(config, problem)
        for problem in products.sweep_problems(config, what)
    }
    prepared = [
        [data.load_prepared(problem, config.data).meta["digest"]]
        for problem in products.sweep_prepared(config, what)
    ]
    read = [*optima.values(), *prepared]
    tuned = {pair: _tuned(config, *pair) for pair in products.sweep_tuned(config, name)}
    given = [config.paper.name, name, what.kind, what.options, config.seed, read]
    every_task = []
    for point in every:
        if what.apart:
            own = [point[key] for key in ("solver",) if key in point]
            code = digests.swept(config, what, own)
            solved = optima.get(point.get("problem", ""))
            given[3:] = [options_of(what, point), config.seed, solved, *prepared]
        for replicate in range(replicates):
            identity = [*given, point, replicate, *solver_section(point)]
            if what.tuned:
                identity.append(tuned[point["problem"], point["solver"]])
            every_task.append((point, replicate, Key(store.digest(identity), code)))
    return every_task


def _solved(config: schema.Config, problem: str) -> list[Any]:
    """Digests of a problem and of the weights of its optimum."""
    record = current_optimum(plan.at_problem(config, problem))
    return [record.get(key) for key in ("digest", "w_digest")]


def options_of(what: schema.Sweep, point: Point) -> dict[str, Any]:
    """Options that are passed for a point.

    In a sweep with ``apart``, an option may map names of solvers to values. A mapping
    that has the point's solver is replaced by the value of that solver.
    """
    if not what.apart or "solver" not in point:
        return what.options
    return {
        key: value[point["solver"]]
        if isinstance(value, Mapping) and point["solver"] in value
        else value
        for key, value in what.options.items()
    }


def _compute(
    config: schema.Config, name: str, what: schema.Sweep, todo: list[Task], parts: Parts
) -> None:
    """Compute the tasks in processes; each becomes a part."""
    from joblib import Parallel

    function = function_of(config, "sweeps", what.kind)
    meter = tuning.Meter(f"sweep {name}", len(todo), "points", at_most=True)
    groups: dict[str, list[Task]] = {}
    for task in sorted(
        todo, key=_size, reverse=True
    ):  # long tasks first, so that none is left for the end
        apart = {key: at for key, at in task[0].items() if key not in what.together}
        groups.setdefault(repr((apart, task[1])), []).append(task)
    jobs = (
        away(_several, config, name, what, function, group, parts)
        for group in groups.values()
    )
    for done in Parallel(config.workers, return_as="generator_unordered")(jobs):
        meter.advance(done)


def _size(task: Task) -> float:
    """Size of a point: the product of its numbers above 1, such as n and d."""
    numbers = (value for value in task[0].values() if isinstance(value, int | float))
    return math.prod(value for value in numbers if 1 <= value < math.inf)


def _several(
    config: schema.Config,
    name: str,
    what: schema.Sweep,
    function: Callable[..., Any],
    group: list[Task],
    parts: Parts,
) -> int:
    """Compute tasks one after the other and keep each; return their number."""
    for task in group:
        rows = measured(config, name, what, function, task)
        parts.keep(str(task[2]), rows)
    return len(group)


def measured(
    config: schema.Config,
    name: str,
    what: schema.Sweep,
    function: Callable[..., Any],
    task: Task,
) -> pd.DataFrame:
    """Compute the rows of one point and replicate."""
    from threadpoolctl import threadpool_limits

    point, replicate, key = task
    seed = plan.seed_of(
        config.seed, "sweep", config.paper.name, _name(name, point), 0, replicate
    )
    start = time.perf_counter()
    with threadpool_limits(1):
        result = function(config, point, seed, **options_of(what, point))
    rows = pd.DataFrame(result if isinstance(result, list) else [result])
    if "seconds" not in rows:
        rows["seconds"] = (time.perf_counter() - start) / len(rows)
    if "status" not in rows:
        rows["status"] = "ok"
    known = {
        "paper": config.paper.name,
        "sweep": name,
        **point,
        "replicate": replicate,
        "seed": seed,
        "commit": store.commit(),
        "versions": store.versions(),
        "config_digest": str(key),
    }
    return rows.assign(**known)


def _name(name: str, point: Point) -> str:
    return name + "".join(f"/{key}={point[key]!r}" for key in sorted(point))
