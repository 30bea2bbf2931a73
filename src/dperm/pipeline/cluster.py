"""Runs units of work on a cluster.

Its workers must see the same files as this process, under the same paths.
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
    """Let joblib run its calls on the configured cluster, if there is one.

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
    """Yield the results of calls in order, each computed where joblib sends it."""
    from joblib import Parallel

    away_calls = (away(function, *arguments) for arguments in calls)
    yield from Parallel(return_as="generator")(away_calls)


def away(function: Callable, *arguments: Any) -> Any:
    """A call for joblib that finds this process's files and modules wherever it runs.

    The call is pickled here and unpickled by the worker: the scheduler of a cluster
    reads the messages it passes on and does not know the modules of a user's folder.
    """
    import cloudpickle  # imported here, as most starts need neither
    import joblib

    call = cloudpickle.dumps((function, arguments))
    return joblib.delayed(_from)(Path.cwd(), os.environ.get("DPERM_CONF"), call)


def _from(folder: Path, conf: str | None, call: bytes) -> Any:
    from threadpoolctl import threadpool_limits

    os.chdir(folder)
    if conf is not None:
        os.environ["DPERM_CONF"] = conf
    locate.conf_dirs()  # adds the user's folder to Python's path
    threadpool_limits(1)  # for good: the worker may run other units at the same time
    function, arguments = pickle.loads(call)  # noqa: S301  # packed by away
    return function(*arguments)
