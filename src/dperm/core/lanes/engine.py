"""Running a block of lanes from checkpoint to checkpoint."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from dperm.core.erm.problem import Problem
from dperm.core.lanes import Block, Lanes
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
    measure: Measure = lambda weights: {},
    workers: int = 1,
    hopeless: float = DIVERGED,
) -> list[Snapshot]:
    """Run lanes of one solver and measure them at the checkpoints.

    A lane's result depends only on its setting, the seed and the checkpoints before it
    stopped: not on the other lanes, the blocks or the workers.

    Parameters
    ----------
    checkpoints : sequence of int
        Increasing numbers of steps; the last one ends the run.
    measure : callable
        Maps weights (L, p) to named arrays (L,); called at every checkpoint with the
        lanes that have not diverged before. Nothing is measured by default.
    workers : int
        Threads.
    hopeless : float
        An objective this many times F(0) ends a lane at the first of several
        checkpoints, as one that diverged. The objective is not private: this is for
        tuning by whoever holds the data, and no part of what is released.
    """
    memory = SPARSE_BYTES if problem.is_sparse else BLOCK_BYTES
    size = max(workers, memory // module.lane_bytes(problem))
    blocks = []
    for low in range(0, len(lanes.step), size):
        part = lanes.take(slice(low, low + size))
        given, total = (problem, part, streams(seed), options), checkpoints[-1]
        begin = functools.partial(module.Run, *given, workers=workers, total=total)
        on = (len(part.step), problem, checkpoints, measure, workers, hopeless)
        blocks.append(list(_measured(begin, *on)))
    return [_joined(parts) for parts in zip(*blocks, strict=True)]


def _measured(
    begin: Callable[[], Block],
    size: int,
    problem: Problem,
    checkpoints: Sequence[int],
    measure: Measure,
    workers: int,
    hopeless: float,
) -> Iterator[Snapshot]:
    """A block of so many lanes at every checkpoint; its memory is free afterwards."""
    start = float(problem.objective(np.zeros(problem.p))[0])
    seconds = -time.perf_counter()
    run = begin()
    seconds += time.perf_counter()
    alive, objective = np.arange(size), np.full(size, start)
    diverged = np.zeros(size, dtype=bool)
    measures: dict[str, np.ndarray] = {}
    done = 0
    for count in checkpoints:
        if len(alive):
            seconds -= time.perf_counter()
            run.advance(count - done)
            seconds += time.perf_counter()
            weights = run.weights
            objective[alive] = problem.objective(weights, workers)
            for name, values in measure(weights).items():
                known = measures.setdefault(name, np.zeros(size, values.dtype))
                known[alive] = values
            del weights  # may be a large copy
            is_first = done == 0 and count < checkpoints[-1]
            limit = (hopeless if is_first else DIVERGED) * start
            lost = ~(objective[alive] <= limit)
            diverged[alive[lost]] = True
            alive = alive[~lost]
            if lost.any() and len(alive):  # a run cannot go on without lanes
                run.keep(~lost)
        done = count
        seen = {name: values.copy() for name, values in measures.items()}
        yield Snapshot(count, objective.copy(), diverged.copy(), seen, seconds)


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
