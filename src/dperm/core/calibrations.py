"""Calibrations by name: the accountants that decide how much noise is enough.

A calibration is a module with a function ``epsilon(ledger, delta) -> float``. It may
also offer ``estimate``, a faster approximation for searches, and
``is_closed_form(ledger) -> bool``, true where its epsilon is exact up to rounding. Two
are built in. Any other name is a module in :mod:`dperm.accountants`, next to ``conf/``
or installed. It is looked up at run time, so that results made without it stay valid.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

PAPER, STRICT = "paper", "strict"
PLACES = {PAPER: "dperm.core.privacy.published", STRICT: "dperm.core.privacy.strict"}
OURS = tuple(PLACES)
FURTHER = "dperm.accountants"


class UnknownCalibrationError(ValueError):
    """A calibration that is neither built in nor a module with ``epsilon``."""


def names() -> list[str]:
    """Built-in calibrations, then those among :mod:`dperm.accountants`."""
    folder = Path(__file__).parents[1] / FURTHER.rpartition(".")[2]
    return [*OURS, *(path.stem for path in sorted(folder.glob("*.py")) if prices(path))]


def prices(path: Path) -> bool:
    """Whether a file defines a calibration; the file is not run."""
    return "\ndef epsilon(" in path.read_text(encoding="utf-8")


@functools.cache
def place(calibration: str) -> str:
    """The name of a calibration's module.

    Raises UnknownCalibrationError if there is none.
    """
    if calibration in PLACES:
        return PLACES[calibration]
    for module in (f"{FURTHER}.{calibration}", calibration):
        path = _file(module)
        if path is not None and prices(path):
            return module
    raise UnknownCalibrationError(
        f"calibration {calibration!r}; known: {', '.join(names())}, or a module with "
        "epsilon(ledger, delta) beside conf/ or installed"
    )


def _file(module: str) -> Path | None:
    """The source file of a module; None if it cannot be imported."""
    is_name = all(part.isidentifier() for part in module.split("."))
    if not is_name or module.partition(".")[0] in sys.stdlib_module_names:
        return None
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    origin = spec.origin if spec else None
    return Path(origin) if origin and origin.endswith(".py") else None


def load(calibration: str) -> ModuleType:
    """The module of a calibration, imported.

    Raises UnknownCalibrationError if there is none.
    """
    return importlib.import_module(place(calibration))
