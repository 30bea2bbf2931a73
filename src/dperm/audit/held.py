"""A solver of the reader's own is held to its transcript before it runs.

What it releases on small data has to move within its ledger when a record is replaced,
extreme records among them, and what it publishes has to follow from its releases. That
takes about a second and proves little: ``dperm audit`` looks for more.
"""

from __future__ import annotations

import functools
import json
import logging
import math
from collections.abc import Mapping
from typing import Any

from dperm.audit import registry
from dperm.audit.climbing import ROUNDING, Effort, Ladder
from dperm.audit.rungs import published
from dperm.core import solvers

log = logging.getLogger(__name__)

FEW = Effort(pairs=6)


class LeakError(ValueError):
    """A solver lets go of more than its ledger states."""


def require_held(name: str, algorithm: str, options: Mapping[str, Any]) -> None:
    """Refuse a solver of the reader's own that leaks on small data.

    A module that says why in ``UNCHECKED`` runs all the same; that is logged.

    Raises
    ------
    LeakError
    """
    if algorithm in solvers.names():  # those of this package are held by its tests
        return
    unchecked = getattr(solvers.load(algorithm), "UNCHECKED", "")
    if unchecked:
        log.warning("solver %s is not held to its ledger: %s", name, unchecked)
        return
    reason = _leak(name, algorithm, json.dumps(dict(options), sort_keys=True))
    if reason:
        raise LeakError(
            f"solver {name}: {reason}; `dperm audit solver={name}` tells more, and "
            "UNCHECKED = 'reason' in its module runs it all the same"
        )


@functools.cache
def _leak(name: str, algorithm: str, options: str) -> str:
    """What it lets go of; empty if nothing was found."""
    for subject in registry.plain(name, algorithm, json.loads(options)):
        ladder = Ladder(subject, FEW, 0)
        coupled = [found for _, found in ladder.couplings] + ladder.odd
        shifts = [shift for one in coupled for shift in one.shifts]
        worst = max((shift.ratio for shift in shifts), default=0.0)
        if worst > 1 + ROUNDING:
            much = f"{worst:.3g} times" if math.isfinite(worst) else "without noise"
            return f"a record moves a release beyond what its ledger states, {much}"
        if published(ladder).caught:
            return "its weights do not follow from what its ledger says it releases"
    return ""
