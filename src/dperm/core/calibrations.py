"""Calibrations by name: the accountants that say how much noise is enough.

A calibration is a module that offers ``epsilon(ledger, delta) -> float``. It may offer
``estimate``, the same but faster, for searches, and ``is_closed_form(ledger) -> bool``
where its epsilon is right to rounding. Two are ours; any other name is that of a module
in :mod:`dperm.accountants`, beside ``conf/`` or installed. It is looked up as the
program runs, so that a further one touches no number that was made without it.
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
    """A calibration that is neither of ours nor a module that can be imported."""


def names() -> list[str]:
    """Ours, and the modules of :mod:`dperm.accountants` that are calibrations."""
    folder = Path(__file__).parents[1] / FURTHER.rpartition(".")[2]
    further = (
        path.stem
        for path in sorted(folder.glob("*.py"))
        if "\ndef epsilon(" in path.read_text(encoding="utf-8")
    )
    return [*OURS, *further]


@functools.cache
def place(calibration: str) -> str:
    """The module of a calibration.

    Raises
    ------
    UnknownCalibrationError
        If there is none.
    """
    if calibration in PLACES:
        return PLACES[calibration]
    for module in (f"{FURTHER}.{calibration}", calibration):
        if _exists(module):
            return module
    known = ", ".join(names())
    raise UnknownCalibrationError(
        f"calibration {calibration!r}; known: {known}, or a module beside conf/ or "
        "installed"
    )


def _exists(module: str) -> bool:
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or not module.replace(".", "_").isidentifier():
        return False
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@functools.cache
def load(calibration: str) -> ModuleType:
    """The module of a calibration, imported.

    Raises
    ------
    UnknownCalibrationError
        If there is none, or it prices nothing.
    """
    module = importlib.import_module(place(calibration))
    if not hasattr(module, "epsilon"):
        raise UnknownCalibrationError(
            f"calibration {calibration!r}: {module.__name__} has no epsilon"
        )
    return module
