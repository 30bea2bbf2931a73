"""Lanes spread over threads, units over a cluster.

Threads do because kernels release the interpreter lock. The workers of a cluster see
the same files as this process, under the same path.
"""

import itertools
import os
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dperm.core.experiment import locate, schema

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
    """A call for joblib that finds this process's files and modules wherever it runs.

    It is packed, and opened where it runs: the scheduler of a cluster reads what it
    passes on, and does not know the modules of a folder of one's own.
    """
    import cloudpickle  # where neither is called, a start need not wait for them
    import joblib

    call = cloudpickle.dumps((function, arguments))
    return joblib.delayed(_from)(Path.cwd(), os.environ.get("DPERM_CONF"), call)


def _from(folder: Path, conf: str | None, call: bytes) -> Any:
    from threadpoolctl import threadpool_limits

    os.chdir(folder)
    if conf is not None:
        os.environ["DPERM_CONF"] = conf
    locate.conf_dirs()  # the own folder joins Python's path
    threadpool_limits(1)  # for good: the worker may run other units beside this one
    function, arguments = pickle.loads(call)
    return function(*arguments)
