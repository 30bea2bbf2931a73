"""Running a block of settings from checkpoint to checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from dperm.privacy.noise import streams
from dperm.problems.problem import Problem
from dperm.solvers.batched import BatchedSettings

# An objective this many times F(0) at a checkpoint ends a setting
DIVERGED = 10.0
# of per-setting memory, for settings that run at the same time
BLOCK_BYTES = 1 << 26
# for sparse A, whose entries are read once for all settings
SPARSE_BYTES = 1 << 30


@dataclass
class Snapshot:
    """Settings at one checkpoint."""

    count: int  #: steps taken
    objective: np.ndarray  #: shape (L,)
    #: shape (L,); settings stopped at this checkpoint or before; they keep their last
    #: values
    diverged: np.ndarray
    #: shape (L,) each; other measures of the weights
    measures: dict[str, np.ndarray]
    #: time spent in steps so far, all settings together, checkpoints not counted
    seconds: float


Measure = Callable[[np.ndarray], dict[str, np.ndarray]]


def run_batched(
    module: ModuleType,
    options: Any,
    problem: Problem,
    settings: BatchedSettings,
    checkpoints: Sequence[int],
    seed: int,
    measure: Measure = lambda weights: {},
    workers: int = 1,
    stop_above: float = DIVERGED,
) -> list[Snapshot]:
    """Run settings of one solver and measure them at the checkpoints.

    A setting's result depends only on its setting, the seed and the checkpoints before
    it stopped: not on the other settings, the blocks or the workers.

    Parameters
    ----------
    checkpoints : sequence of int
        Increasing numbers of steps; the last one ends the run.
    measure : callable
        Maps weights (L, p) to named arrays (L,); called at every checkpoint with the
        settings that have not diverged before. Nothing is measured by default.
    workers : int
        Threads.
    stop_above : float
        An objective this many times F(0) ends a setting at the first of several
        checkpoints, as one that diverged. The objective is not private: this is for
        tuning by whoever holds the data, and no part of what is released.
    """
    memory = SPARSE_BYTES if problem.is_sparse else BLOCK_BYTES
    size = max(workers, memory // module.bytes_per_setting(problem))
    start = float(problem.objective(np.zeros(problem.p))[0])
    shape = (len(checkpoints), len(settings.step))
    objective = np.full(shape, start)
    diverged = np.zeros(shape, dtype=bool)
    measures = dict[str, np.ndarray]()
    seconds = np.zeros(shape[0])
    for low in range(0, shape[1], size):
        block = settings.take(slice(low, low + size))
        done = 0
        began = time.perf_counter()
        alive = np.arange(low, low + len(block.step))
        arguments = (problem, block, streams(seed), options)
        run = module.Run(*arguments, workers=workers, total=checkpoints[-1])
        for k, count in enumerate(checkpoints):
            run.advance(count - done)
            done = count
            weights = run.weights
            seconds[k:] += time.perf_counter() - began
            # of later checkpoints too, for settings that stop here
            objective[k:, alive] = problem.objective(weights, workers)
            for name, measurements in measure(weights).items():
                measured = measures.setdefault(
                    name, np.zeros(shape, measurements.dtype)
                )
                measured[k:, alive] = measurements
            del weights  # may be a large copy
            limit = stop_above if k == 0 and shape[0] > 1 else DIVERGED
            has_diverged = ~(objective[k, alive] <= limit * start)
            diverged[k:, alive[has_diverged]] = True
            alive = alive[~has_diverged]
            if not len(alive):  # a run cannot go on without settings
                break
            if has_diverged.any():
                run.keep(~has_diverged)
            began = time.perf_counter()
        del run  # its memory is needed for the next block
    return [
        Snapshot(
            count,
            objective[k],
            diverged[k],
            {name: measurements[k] for name, measurements in measures.items()},
            float(seconds[k]),
        )
        for k, count in enumerate(checkpoints)
    ]
