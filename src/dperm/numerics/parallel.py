"""Work spread over threads or processes of this machine.

Kernels release Python's global interpreter lock, so that settings share threads.
Functions that spend their time in Python get processes, forked from this one: they need
no import and start at once.
"""

import ctypes
import itertools
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from contextlib import contextmanager
from typing import Any

import numpy as np

# So that a slow slice does not hold up the others for long
_SLICES_PER_WORKER = 4
# Of Linux's prctl: the signal that a process gets when its parent ends
_PDEATHSIG = 1


def spread(function: Callable, *arrays: np.ndarray, workers: int) -> None:
    """Call ``function(*slices)`` on slices of the arrays' first axis.

    The arrays have equal length; the function writes its results into one of them.
    """
    count = len(arrays[0])
    pieces = min(count, workers * _SLICES_PER_WORKER) if workers > 1 else 1
    if pieces <= 1:
        function(*arrays)
        return
    edges = np.linspace(0, count, pieces + 1).astype(int)
    with ThreadPoolExecutor(workers) as pool:
        # joblib's threads poll every 10 ms
        done = []
        for low, high in itertools.pairwise(edges):
            slices = [array[low:high] for array in arrays]
            done.append(pool.submit(function, *slices))
        for future in done:
            future.result()


# --- processes ------------------------------------------------------------------------


@contextmanager
def forked(
    function: Callable[[Any], Any], tasks: Sequence[Any], workers: int
) -> Iterator[Iterator[Any]]:
    """Results of a function of each task, in the order in which they are ready.

    With one worker they are computed in this process, as they are asked for. Otherwise
    each worker is a fork of this process. The workers are gone when the context ends,
    and after a failure or an interrupt they begin no further task.

    Raises
    ------
    concurrent.futures.process.BrokenProcessPool
        If the system ended a worker.
    """
    count = min(workers, len(tasks))
    if count <= 1:
        yield map(function, tasks)
        return
    fork = multiprocessing.get_context("fork")
    begin = (function, tasks, os.getpid())
    pool = ProcessPoolExecutor(count, fork, _Worker.begin, begin)
    try:
        futures = [
            pool.submit(_Worker.call, place) for place in range(len(tasks))
        ]
        yield (future.result() for future in as_completed(futures))
    finally:
        pool.shutdown(cancel_futures=True)


class _Worker:
    """What a forked worker keeps."""

    function: Callable[[Any], Any]
    tasks: Sequence[Any]
    interrupted = False

    @classmethod
    def begin(
        cls, function: Callable[[Any], Any], tasks: Sequence[Any], parent: int
    ) -> None:
        """Keep what the worker computes, and end with the process that forked it."""
        cls.function = staticmethod(function)
        cls.tasks = tasks
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    @classmethod
    def call(cls, place: int) -> Any:
        """Compute a task; an interrupt ends it, and all tasks that wait behind it."""
        if cls.interrupted:
            raise KeyboardInterrupt
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            return cls.function(cls.tasks[place])
        except KeyboardInterrupt:
            cls.interrupted = True
            raise
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
