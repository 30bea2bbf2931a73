"""Calls that find this process's files and modules in the processes of joblib."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dperm.core.experiment import locate


def away(function: Callable, *arguments: Any) -> Any:
    """A call for joblib that finds this process's files and modules.

    The call is pickled here and unpickled by the worker, once it has found the modules
    of a user's folder.
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
    function, arguments = pickle.loads(call)  # noqa: S301 - packed by away
    return function(*arguments)
