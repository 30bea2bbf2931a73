"""Sweep: a function at every point of a grid, each replicate with its own seed."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel

from dperm import config as configuration
from dperm import data, grid, schema
from dperm.parallel import away, cluster
from dperm.pipeline import inputs, seeds
from dperm.pipeline.products import chosen, function_of, modules
from dperm.pipeline.results import sweep_path
from dperm.pipeline.tune import Meter
from dperm.store import files as store
from dperm.store import provenance

log = logging.getLogger(__name__)

Point = dict[str, Any]
Task = tuple[Point, int, str]  # point, replicate, key of its part


def sweep(config: schema.Config) -> list[Path]:
    """Run ``product=...``, or all sweeps of the paper, and write their tables.

    Rows that an earlier run left are reused as they are.
    """
    return [
        _sweep(config, name, what) for name, what in chosen(config, "sweeps").items()
    ]


def points(config: schema.Config, what: schema.Sweep) -> list[Point]:
    """The points of a sweep at the configured scale."""
    small = config.scale.problems == "offline" and what.small is not None
    return grid.points(what.small if small else what.grid, axes=None)


def solver_section(point: Point) -> list[Any]:
    """What the YAML of the point's solver says; nothing where it has no ``solver``."""
    return _section(point["solver"]) if "solver" in point else []


@functools.cache
def _section(solver: str) -> list[Any]:
    spec = configuration.compose([f"solver={solver}"]).solver
    return [spec.algorithm, spec.options]


def needed(config: schema.Config, what: schema.Sweep) -> list[str]:
    """The problems a sweep needs at the configured scale; offline ones at the small."""
    offline = config.scale.problems == "offline"
    kept = config.paper.offline if offline else what.problems
    return [name for name in what.problems if name in kept]


def _sweep(config: schema.Config, name: str, what: schema.Sweep) -> Path:
    path = sweep_path(config, name)
    with store.locked(path.parent / name):
        parts = path.parent / name / "lanes"
        tasks = list(_tasks(config, name, what))
        todo = [
            task for task in tasks if store.read_or_drop(_part(parts, task)) is None
        ]
        log.info(
            "sweep %s: %d reused, %d to compute",
            name,
            len(tasks) - len(todo),
            len(todo),
        )
        _compute(config, name, what, todo, parts)
        tables = [store.read_table(_part(parts, task)) for task in tasks]
        store.write_table(path, pd.concat(tables, ignore_index=True))
    return path


def _part(folder: Path, task: Task) -> Path:
    return folder / f"{task[2]}.parquet"


def _tasks(config: schema.Config, name: str, what: schema.Sweep) -> Iterator[Task]:
    replicates = config.scale.replicates or what.replicates
    code = provenance.product_digest(*modules(config, "sweeps"))
    optima = [
        inputs.load_optimum_record(config, problem).get("digest")
        for problem in needed(config, what)
    ]
    optima += [
        data.load_prepared(name, config.data).meta
        for name in inputs.sweep_prepared(config, what)
    ]
    for point in points(config, what):
        for replicate in range(replicates):
            identity = [config.paper.name, name, what.kind, what.options, config.seed]
            given = [identity, point, replicate, code, optima]
            key = store.digest([*given, *solver_section(point)])
            yield point, replicate, key


def _compute(
    config: schema.Config, name: str, what: schema.Sweep, todo: list[Task], parts: Path
) -> None:
    """Compute the tasks over processes, here or on a cluster; each becomes a part."""
    function = function_of(config, "sweeps", what.kind)
    meter = Meter(f"sweep {name}", len(todo), "points")
    jobs = (away(_one, config, name, what, function, task, parts) for task in todo)
    workers = config.workers if config.parallel.backend == "local" else None
    with cluster(config.parallel):
        for _ in Parallel(workers, return_as="generator_unordered")(jobs):
            meter.advance(1)


def _one(
    config: schema.Config,
    name: str,
    what: schema.Sweep,
    function: Callable[..., Any],
    task: Task,
    parts: Path,
) -> None:
    from threadpoolctl import threadpool_limits

    point, replicate, key = task
    seed = seeds.seed(
        config.seed, "sweep", config.paper.name, _name(name, point), 0, replicate
    )
    start = time.perf_counter()
    with threadpool_limits(1):
        measured = function(config, point, seed, **what.options)
    rows = pd.DataFrame(measured if isinstance(measured, list) else [measured])
    if "seconds" not in rows:
        rows["seconds"] = (time.perf_counter() - start) / len(rows)
    if "status" not in rows:
        rows["status"] = "ok"
    known = {
        "paper": config.paper.name, "sweep": name, **point,
        "replicate": replicate, "seed": seed,
        "commit": provenance.commit(), "versions": provenance.versions(),
        "config_digest": key,
    }  # fmt: skip
    store.write_table(_part(parts, task), rows.assign(**known))


def _name(name: str, point: Point) -> str:
    return name + "".join(f"/{key}={point[key]!r}" for key in sorted(point))
