"""A user's own solver is checked before it runs.

Releases on small data must stay within its ledger, and weights must follow from
releases. That takes a second and proves little; ``dperm audit`` checks more.
"""

from __future__ import annotations

import functools
import json
import logging
import math
from collections.abc import Mapping
from typing import Any

from dperm.audit.checks import BLIND, Audit
from dperm.audit.solvers import mechanisms
from dperm.core import solvers
from dperm.core.calibrations import STRICT

log = logging.getLogger(__name__)

FEW = 6  # pairs


class LeakError(ValueError):
    """A solver releases more than its ledger states."""


def require_held(name: str, algorithm: str, options: Mapping[str, Any]) -> None:
    """Refuse a user's own solver that leaks on small data.

    A module that states a reason in ``UNCHECKED`` runs unchecked; that is logged.

    Raises
    ------
    LeakError
    """
    if algorithm in solvers.PLACES:  # this package's tests check its own solvers
        return
    unchecked = getattr(solvers.load(algorithm), "UNCHECKED", "")
    if unchecked:
        log.warning("solver %s is not held to its ledger: %s", name, unchecked)
        return
    given = json.dumps(dict(options), sort_keys=True)
    for check, measured in _broken(name, algorithm, given):
        much = f"{measured:.3g} times" if math.isfinite(measured) else "without noise"
        said = {
            "sensitivity": "a record moves a release beyond what its ledger states, "
            + much,
            "published": "its weights do not follow from what its ledger says it "
            "releases",
        }
        raise LeakError(
            f"solver {name}: {said[check]}; once conf/solver/{name}.yaml names it, "
            f"`dperm audit solver={name}` shows all checks; UNCHECKED = 'reason' in "
            "its module runs it all the same"
        )


@functools.cache
def _broken(name: str, algorithm: str, options: str) -> list[tuple[str, float]]:
    """Checks that a solver breaks, and what they measured."""
    every = mechanisms(name, algorithm, json.loads(options), (STRICT,))
    audits = [Audit(m, neighbours=FEW) for m in every]
    found = [check() for one in audits for check in (one.sensitivity, one.published)]
    return [
        (one.check, one.measured) for one in found if one.caught and one.note != BLIND
    ]
