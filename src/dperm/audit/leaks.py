"""A user's own solver is checked before it runs.

Releases on small data must stay within its ledger, also in number, and weights must
follow from releases. That takes a second and proves little; ``dperm audit`` checks
more.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Mapping
from typing import Any

from dperm.audit.checks import BLIND, Audit
from dperm.audit.solvers import mechanisms
from dperm.config.locate import ConfigError
from dperm.privacy.accountants import TIGHT
from dperm.solvers import registry

IN_KEYS = "nothing"  # refusals
log = logging.getLogger(__name__)

PAIRS = 6  # pairs


class LeakError(ConfigError):
    """A solver releases more than its ledger states."""


def refuse_leaks(
    name: str, algorithm: str, options: Mapping[str, Any]
) -> None:
    """Refuse a user's own solver that leaks on small data, by a LeakError.

    A module that states a reason in ``UNCHECKED`` runs unchecked; that is logged.
    """
    if algorithm in registry.PLACES:
        # this package's tests check its own solvers
        return
    unchecked = getattr(registry.load(algorithm), "UNCHECKED", "")
    if unchecked:
        log.warning("solver %s is not held to its ledger: %s", name, unchecked)
        return
    try:
        leak = _leak(
            name, algorithm, json.dumps(dict(options), sort_keys=True)
        )
    except (AttributeError, TypeError) as error:  # as of a ledger that is None
        raise ConfigError(
            f"solver {name}: {registry.load(algorithm).__file__} fails on small data: "
            f"{error}"
        ) from error
    if leak:
        raise LeakError(
            f"solver {name}: {leak}; once conf/solver/{name}.yaml names it, "
            f"`dperm audit solver={name}` shows all checks; UNCHECKED = 'reason' in "
            "its module runs it all the same"
        )


@functools.cache
def _leak(name: str, algorithm: str, options: str) -> str:
    """How a solver with options, as JSON, leaks; empty if it does not."""
    for m in mechanisms(name, algorithm, json.loads(options), (TIGHT,)):
        audit = Audit(m, neighbours=PAIRS)
        moved = audit.sensitivity()
        if moved.caught and moved.note != BLIND:
            times = f"{moved.measured:.3g} times"
            return f"a record moves a release beyond what its ledger states, {times}"
        counted = audit.count()
        if counted.caught:
            return f"it makes more releases than its ledger states, {counted.note}"
        if audit.published().caught:
            return "its weights do not follow from what its ledger says it releases"
    return ""
