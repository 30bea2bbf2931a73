"""Calibrations by name: the accountants that decide how much noise is enough.

A calibration is a module with a function ``epsilon(ledger, delta) -> float``. Two are
built in. Any other name is a user's module (:func:`~dperm.names.own_module`). It
is looked up at run time, so that results made without it stay valid.
"""

from __future__ import annotations

import functools
import sys
from importlib import import_module
from types import ModuleType

from dperm import names

PUBLISHED = "published"
TIGHT = "tight"
PLACES = {
    PUBLISHED: "dperm.privacy.accountants.published",
    TIGHT: "dperm.privacy.accountants.tight",
}
OURS = tuple(PLACES)


@functools.cache
def place(calibration: str) -> str:
    """The name of a calibration's module. Raises ValueError if there is none."""
    module = names.place("accountants", "calibration", calibration, PLACES)
    if calibration not in PLACES and not hasattr(
        import_module(module), "epsilon"
    ):
        raise ValueError(
            f"calibration {calibration!r}: expected epsilon(ledger, delta)"
        )
    return module


def load(calibration: str) -> ModuleType:
    """The module of a calibration, imported. Raises ValueError if there is none."""
    module = place(calibration)
    sys.audit("dperm.lookup", module)  # what keys of results must hold
    return import_module(module)
