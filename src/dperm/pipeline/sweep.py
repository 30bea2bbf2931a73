"""Sweep: a function at every point of a grid, each replicate with its own seed."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from dperm import data
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment.cluster import away, cluster
from dperm.core.experiment.files import Key, Parts, locked
from dperm.core.experiment.results import sweep_path
from dperm.core.experiment.tune import Meter
from dperm.core.experiment.unit import IDENTITY
from dperm.pipeline import digests, inputs
from dperm.pipeline.products import chosen, function_of

log = logging.getLogger(__name__)

Point = dict[str, Any]
Task = tuple[Point, int, Key]  # point, replicate, key of its part


def sweep(config: schema.Config) -> list[Path]:
    """Run ``product=...``, or all sweeps of the paper, and write their tables.

    Rows that an earlier run left are reused as they are.
    """
    return [
        _sweep(config, name, what) for name, what in chosen(config, "sweeps").items()
    ]


def solver_section(point: Point) -> list[Any]:
    """What the YAML of the point's solver says; nothing where it has no ``solver``."""
    if "solver" not in point:
        return []
    solver = digests.solver_of(point["solver"])
    return [solver.algorithm, solver.options]


def _tuned(config: schema.Config, problem: str, solver: str) -> str:
    """Digest of what a solver was tuned to on a problem, its numbers alone."""
    folder = plan.results_folder(config, config.paper.name, problem, solver)
    table = store.read_table(folder / "tune.parquet")
    columns = [*IDENTITY, "noise_multiplier", "objective", "relative_error"]
    return store.digest([table[columns].to_csv(index=False)])


def _sweep(config: schema.Config, name: str, what: schema.Sweep) -> Path:
    path = sweep_path(config, name)
    parts = Parts(path.parent / name)
    with locked(path.parent / name):
        every = tasks(config, name, what)
        todo = [
            task for task in every if store.read_or_drop(parts.one(task[2])) is None
        ]
        reused = len(every) - len(todo)
        log.info("sweep %s: %d reused, %d to compute", name, reused, len(todo))
        _compute(config, name, what, todo, parts)
        tables = [
            store.read_table(parts.one(key)).assign(config_digest=str(key))
            for _, _, key in every
        ]
        store.write_table(path, pd.concat(tables, ignore_index=True))
    return path


def tasks(config: schema.Config, name: str, what: schema.Sweep) -> list[Task]:
    """Every point and replicate of a sweep, and the key of its part."""
    replicates = config.scale.replicates or what.replicates
    every = plan.sweep_points(config, what)
    code = digests.swept(config, what, every.values("solver"))
    optima = {
        problem: _solved(config, problem)
        for problem in plan.sweep_problems(config, what)
    }
    read = [*optima.values()]
    read += [
        [data.load_prepared(problem, config.data).meta["digest"]]
        for problem in plan.sweep_prepared(config, what)
    ]
    tuned = {pair: _tuned(config, *pair) for pair in plan.sweep_tuned(config, name)}
    given = [config.paper.name, name, what.kind, what.options, config.seed, read]
    found = []
    for point in every:
        if what.apart:
            own = [point[key] for key in ("solver",) if key in point]
            code = digests.swept(config, what, own)
            solved = optima.get(point.get("problem", ""))
            given[3:] = [options_of(what, point), config.seed, solved]
        for replicate in range(replicates):
            identity = [*given, point, replicate, *solver_section(point)]
            if what.tuned:
                identity.append(tuned[point["problem"], point["solver"]])
            found.append((point, replicate, Key(store.digest(identity), code)))
    return found


def _solved(config: schema.Config, problem: str) -> list[Any]:
    """Digests of a problem and of its optimum."""
    record = inputs.load_optimum_record(config, problem)
    return [record.get(key) for key in ("digest", "w_digest")]


def options_of(what: schema.Sweep, point: Point) -> dict[str, Any]:
    """Options that a point is given: where it stands apart, its own of each solver's.

    An option is by solvers' names if it is a mapping that has the point's.
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
    """Compute the tasks over processes, here or on a cluster; each becomes a part."""
    from joblib import Parallel

    function = function_of(config, "sweeps", what.kind)
    meter = Meter(f"sweep {name}", len(todo), "points", at_most=True)
    ordered = sorted(todo, key=_size, reverse=True)  # no long one is left for the end
    jobs = (away(_one, config, name, what, function, task, parts) for task in ordered)
    workers = config.workers if config.parallel.backend == "local" else None
    with cluster(config.parallel):
        for _ in Parallel(workers, return_as="generator_unordered")(jobs):
            meter.advance(1)


def _size(task: Task) -> float:
    """How large a point is: the product of its sizes, n and d for instance."""
    numbers = (value for value in task[0].values() if isinstance(value, int | float))
    return math.prod(value for value in numbers if 1 <= value < math.inf)


def _one(
    config: schema.Config,
    name: str,
    what: schema.Sweep,
    function: Callable[..., Any],
    task: Task,
    parts: Parts,
) -> None:
    rows = measured(config, name, what, function, task)
    store.write_table(parts.one(task[2]), rows)


def measured(
    config: schema.Config,
    name: str,
    what: schema.Sweep,
    function: Callable[..., Any],
    task: Task,
) -> pd.DataFrame:
    """The rows of one point and replicate."""
    from threadpoolctl import threadpool_limits

    point, replicate, key = task
    seed = plan.seed_of(
        config.seed, "sweep", config.paper.name, _name(name, point), 0, replicate
    )
    start = time.perf_counter()
    with threadpool_limits(1):
        found = function(config, point, seed, **options_of(what, point))
    rows = pd.DataFrame(found if isinstance(found, list) else [found])
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
