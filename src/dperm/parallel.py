"""Lanes spread over threads, units over a cluster.

Threads do because kernels release the interpreter lock. The workers of a cluster see
the same files as this process, under the same path.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dperm import schema

_SLICES_PER_WORKER = 4  # so that a slow slice does not hold up the others for long


def spread(function: Callable, *arrays: np.ndarray, workers: int) -> None:
    """Call ``function(*slices)`` on slices of the arrays' first axis.

    The arrays have equal length; the function writes its results into one of them.
    """
    count = len(arrays[0])
    parts = min(count, workers * _SLICES_PER_WORKER) if workers > 1 else 1
    if parts <= 1:
        function(*arrays)
        return
    edges = np.linspace(0, count, parts + 1).astype(int)
    with ThreadPoolExecutor(workers) as pool:  # joblib's threads poll every 10 ms
        done = [
            pool.submit(function, *(a[low:high] for a in arrays))
            for low, high in itertools.pairwise(edges)
        ]
        for future in done:
            future.result()


@contextmanager
def cluster(where: schema.Parallel) -> Iterator[None]:
    """Let joblib run what it is given on the configured cluster, if there is one.

    Raises
    ------
    OSError
        If the scheduler does not answer.
    """
    if where.backend == "local":
        yield
        return
    import joblib
    from distributed import Client

    with Client(where.scheduler), joblib.parallel_config(backend="dask", n_jobs=-1):
        yield


def away(function: Callable, *arguments: Any) -> Any:
    """A call for joblib that finds this process's files wherever it runs."""
    import joblib  # where it is not called, a start need not wait for it

    return joblib.delayed(_from)(Path.cwd(), function, *arguments)


def _from(folder: Path, function: Callable, *arguments: Any) -> Any:
    from threadpoolctl import threadpool_limits

    os.chdir(folder)
    threadpool_limits(1)  # for good: the worker may run other units beside this one
    return function(*arguments)
