"""Calibrations by name: the accountants that decide how much noise is enough.

A calibration is a module with a function ``epsilon(ledger, delta) -> float``. Two are
built in. Any other name is a user's module (:func:`~dperm.core.names.own_module`). It
is looked up at run time, so that results made without it stay valid.
"""

from __future__ import annotations

import functools
import importlib
from types import ModuleType

from dperm.core.names import own_module

PAPER, STRICT = "paper", "strict"
PLACES = {PAPER: "dperm.core.privacy.published", STRICT: "dperm.core.privacy.strict"}
OURS = tuple(PLACES)


class UnknownCalibrationError(ValueError):
    """A calibration that is neither built in nor a module with ``epsilon``."""


@functools.cache
def place(calibration: str) -> str:
    """The name of a calibration's module.

    Raises UnknownCalibrationError if there is none.
    """
    if calibration in PLACES:
        return PLACES[calibration]
    found = own_module("accountants", calibration)
    if found and hasattr(importlib.import_module(found), "epsilon"):
        return found
    raise UnknownCalibrationError(
        f"calibration {calibration!r}; known: {', '.join(OURS)}, or a module with "
        "epsilon(ledger, delta) beside conf/ or installed"
    )


def load(calibration: str) -> ModuleType:
    """The module of a calibration, imported.

    Raises UnknownCalibrationError if there is none.
    """
    return importlib.import_module(place(calibration))
