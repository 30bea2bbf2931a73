"""Running a block of lanes from checkpoint to checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from dperm.core.erm.problem import Problem
from dperm.core.lanes import Lanes
from dperm.core.privacy.mechanisms import streams

DIVERGED = 10.0  # an objective this many times F(0) at a checkpoint ends a lane
BLOCK_BYTES = 1 << 26  # of per-lane memory, for lanes that run at the same time
SPARSE_BYTES = 1 << 30  # for sparse A, whose entries are read once for all lanes


@dataclass
class Snapshot:
    """Lanes at one checkpoint."""

    count: int  #: steps taken
    objective: np.ndarray  #: shape (L,)
    #: shape (L,); lanes stopped at this checkpoint or before; they keep their last
    #: values
    diverged: np.ndarray
    #: shape (L,) each; other measures of the weights
    measures: dict[str, np.ndarray]
    #: time spent in steps so far, all lanes together, checkpoints not counted
    seconds: float


Measure = Callable[[np.ndarray], dict[str, np.ndarray]]


def run_lanes(
    module: ModuleType,
    options: Any,
    problem: Problem,
    lanes: Lanes,
    checkpoints: Sequence[int],
    seed: int,
    measure: Measure,
    workers: int = 1,
) -> list[Snapshot]:
    """Run lanes of one solver and measure them at the checkpoints.

    A lane's result depends only on its setting, the seed and the checkpoints before it
    diverged: not on the other lanes, the blocks or the workers.

    Parameters
    ----------
    module : module of ``dperm.core.solvers``
    options : the module's Options
    problem : Problem
    lanes : Lanes
    checkpoints : sequence of int
        Increasing numbers of steps; the last one ends the run.
    seed : int
    measure : callable
        Maps weights (L, p) to named arrays (L,); called at every checkpoint with the
        lanes that have not diverged before.
    workers : int
        Threads.
    """
    memory = SPARSE_BYTES if problem.is_sparse else BLOCK_BYTES
    size = max(workers, memory // module.lane_bytes(problem))
    blocks = [
        _run_block(
            module,
            options,
            problem,
            lanes.take(slice(low, low + size)),
            checkpoints,
            seed,
            measure,
            workers,
        )
        for low in range(0, len(lanes.step), size)
    ]
    return [_joined(parts) for parts in zip(*blocks, strict=True)]


def _run_block(
    module: ModuleType,
    options: Any,
    problem: Problem,
    lanes: Lanes,
    checkpoints: Sequence[int],
    seed: int,
    measure: Measure,
    workers: int,
) -> list[Snapshot]:
    start = float(problem.objective(np.zeros(problem.p))[0])
    seconds = -time.perf_counter()
    run = module.Run(
        problem, lanes, streams(seed), options, workers=workers, total=checkpoints[-1]
    )
    seconds += time.perf_counter()
    alive = np.arange(len(lanes.step))
    objective = np.full(len(alive), start)
    measures: dict[str, np.ndarray] = {}
    diverged = np.zeros(len(alive), dtype=bool)
    snapshots, done = [], 0
    for count in checkpoints:
        if len(alive):
            seconds -= time.perf_counter()
            run.advance(count - done)
            seconds += time.perf_counter()
            weights = run.weights
            objective[alive] = problem.objective(weights, workers)
            for name, values in measure(weights).items():
                known = measures.setdefault(name, np.zeros(len(diverged), values.dtype))
                known[alive] = values
            del weights  # may be a large copy
            lost = ~(objective[alive] <= DIVERGED * start)
            diverged[alive[lost]] = True
            if lost.any():
                alive = alive[~lost]
                if len(alive):  # a run cannot go on without lanes
                    run.keep(~lost)
        done = count
        seen = {name: values.copy() for name, values in measures.items()}
        snapshots.append(
            Snapshot(count, objective.copy(), diverged.copy(), seen, seconds)
        )
    return snapshots


def _joined(parts: Sequence[Snapshot]) -> Snapshot:
    return Snapshot(
        parts[0].count,
        np.concatenate([part.objective for part in parts]),
        np.concatenate([part.diverged for part in parts]),
        {
            name: np.concatenate([part.measures[name] for part in parts])
            for name in parts[0].measures
        },
        sum(part.seconds for part in parts),
    )
