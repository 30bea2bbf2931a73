"""A function as a black box: numbers out of data and a seed."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import io
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dperm.audit.blackbox import recording
from dperm.audit.blackbox.domain import Data
from dperm.audit.blackbox.recording import Record
from dperm.core.experiment import locate

Array = np.ndarray
Fit = Callable[[Array, Array, Any], Any]

GENERATORS = ("rng", "generator")  # names of a third parameter that wants a generator


class RefusedError(ValueError):
    """What cannot be audited; the text says why, in one line."""


@dataclass(frozen=True)
class Run:
    """One run: its output (k,), which is empty where it raised, and what it drew."""

    output: Array
    raised: str
    record: Record


class Target:
    """``fit`` on given data and noise.

    Parameters
    ----------
    fit : callable
        ``fit(X, y, seed)`` returns numbers: an array, several, or an object with
        ``coef_``. A third parameter called ``rng`` gets a generator.
    """

    def __init__(self, fit: Fit):
        self.fit, self.runs = fit, 0
        self.wants_generator = _third(fit) in GENERATORS

    def __call__(
        self,
        data: Data,
        seed: int,
        script: Sequence[Array] = (),
        careful: bool = False,
    ) -> Run:
        """Run once, on copies of the data; see :func:`.recording.run`."""
        self.runs += 1
        with recording.run(seed, script, careful) as record:
            given = recording.default_rng(seed) if self.wants_generator else seed
            try:
                value = self.fit(data.X.copy(), data.y.copy(), given)
            except Exception as error:  # what the code of others may raise
                text = f"{type(error).__name__}: {error}".split("\n")[0]
                return Run(np.empty(0), text, record)
        return Run(numbers(value), "", record)

    def repeats(self, data: Data) -> bool:
        """Whether a seed fixes the output, whatever ran before."""
        first, _, again = (self(data, seed).output for seed in (11, 12, 11))
        return first.tobytes() == again.tobytes()


def _third(fit: Fit) -> str:
    """Name of the third parameter."""
    try:
        names = list(inspect.signature(fit).parameters)
    except (TypeError, ValueError):
        return ""
    return names[2] if len(names) > 2 else ""


@contextlib.contextmanager
def quiet() -> Any:
    """Drop what the code of others warns of and prints."""
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


def numbers(value: Any) -> Array:
    """All numbers of an output, flat.

    Raises RefusedError if it holds something that is no number.
    """
    if hasattr(value, "coef_"):
        value = [value.coef_, getattr(value, "intercept_", ())]
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value)]
    if isinstance(value, list | tuple):
        return np.concatenate([np.empty(0), *map(numbers, value)])
    try:
        return np.ravel(np.asarray(value, dtype=float)) + 0.0  # -0.0 is 0.0
    except (TypeError, ValueError) as error:
        kind = type(value).__name__
        raise RefusedError(f"the output: expected numbers, found {kind}") from error


# --- where it is ----------------------------------------------------------------------


def load(place: str) -> Fit:
    """The function that ``module:name`` or ``path.py:name`` names.

    Raises RefusedError if there is no such module or function, or its module does not
    import.
    """
    module, _, name = place.rpartition(":")
    try:
        loaded = _by_path(module) if module.endswith(".py") else _by_name(module)
    except Exception as error:
        text = f"{type(error).__name__}: {error}".split("\n")[0]
        raise RefusedError(f"{place}: {module} does not import: {text}") from error
    fit: Any = loaded
    for part in name.split("."):
        fit = getattr(fit, part, None)
    if not callable(fit):
        raise RefusedError(
            f"{place}: expected a function {name} in {module}, found none"
        )
    return fit


def _by_name(module: str) -> Any:
    locate.conf_dirs()  # the folder beside one's own conf/ joins the path
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    return importlib.import_module(module)


def _by_path(module: str) -> Any:
    path = Path(module).resolve()
    sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = loaded
    spec.loader.exec_module(loaded)
    return loaded
