"""Units of work over a cluster.

Its workers see the same files as this process, under the same path.
"""

import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dperm.core.experiment import locate, schema


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


def spread(function: Callable, calls: Iterable[tuple]) -> Iterator[Any]:
    """Results of calls in their order, each computed where joblib sends it."""
    from joblib import Parallel

    away_calls = (away(function, *arguments) for arguments in calls)
    yield from Parallel(return_as="generator")(away_calls)


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
    function, arguments = pickle.loads(call)  # nosec B301  # packed by away
    return function(*arguments)
