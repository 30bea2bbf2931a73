"""Digests of the code behind a stage's numbers, with what it looks up by name.

Code is the closure of the functions that make the numbers
(:mod:`dperm.store.closure`), not of the stage around them. A solver, a loss and an
accountant are found by name, so that an edit of one makes stale only what uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from dperm.core import calibrations, solvers
from dperm.core.erm import losses
from dperm.core.experiment import config as configuration
from dperm.core.experiment import schema
from dperm.pipeline import checks
from dperm.store import closure
from dperm.store.closure import digest as code

RUNNING = ("dperm.core.experiment.unit:lane_rows", "dperm.core.erm.problem:build")
CALIBRATING = "dperm.core.privacy.calibration:calibrate"
LOOKUP = "dperm.core.calibrations"  # looks up an accountant by name
LOSSES = "dperm.core.erm.losses"  # looks up a loss by name
OFFERED = ("Run", "Options", "steps", "lane_bytes")  # by a solver, for its lanes


def lanes(algorithm: str, loss: str | None = None) -> str:
    """Digest of the code that runs a solver's lanes, without its accountant.

    Without the ``loss`` of a problem, the problem is left out.
    """
    return code(*running(algorithm, loss))


def running(algorithm: str, loss: str | None = None) -> list[str]:
    """The entry points of that code."""
    offered = (f"{place(algorithm)}:{name}" for name in OFFERED)
    return [*RUNNING, *offered, *_losses({loss})]


def noise(algorithm: str, kinds: Iterable[str], loss: str) -> str:
    """Digest of the code that finds a solver's noise: its ledger and the accountants.

    ``kinds`` are its calibrations, ``loss`` is that of the problem.
    """
    offered = (f"{place(algorithm)}:{name}" for name in ("ledger", "Options", "steps"))
    places = sorted(map(calibrations.place, kinds))
    return code(CALIBRATING, *offered, *places, *_losses({loss}))


def priced(*entries: str, spelt: Iterable[str] = ()) -> str:
    """Digest of the code behind entry points and of what it looks up by name.

    The package's own accountants are included wherever any accountant is looked up.
    Any other accountant, or a loss, is included if the code or ``spelt`` (strings of
    the settings) contains its name.
    """
    reached = closure.closure(*entries)
    places: list[str] = []
    if LOOKUP in reached:
        places += map(calibrations.place, calibrations.OURS)
    if LOSSES in reached:
        places += _losses({*closure.words(*entries), *spelt})
    return code(*entries, *places)


def _losses(named: set[Any]) -> list[str]:
    """Modules of the losses among some words."""
    return [place for name, place in losses.PLACES.items() if name in named]


def place(algorithm: str) -> str:
    """The module of an algorithm, without importing it."""
    return solvers.PLACES.get(algorithm, algorithm)


def strings(value: Any) -> set[str]:
    """All words in a value of a YAML."""
    return {*re.findall(r"\w+", repr(value))}


SECTIONS: dict[tuple[str, str, tuple[str, ...]], Any] = {}


def section(group: str, name: str, *overrides: str) -> Any:
    """The section of a problem or a solver, read and checked once; do not modify it.

    Raises ConfigError for what is wrong with it.
    """
    ahead(group, [name], overrides)
    return SECTIONS[group, name, overrides]


def ahead(group: str, names: Iterable[str], overrides: tuple[str, ...] = ()) -> None:
    """Read several sections that are needed, in a third of the time of one by one."""
    names = dict.fromkeys(names)
    unread = [name for name in names if (group, name, overrides) not in SECTIONS]
    for name, found in configuration.sections(group, unread, overrides).items():
        getattr(checks, group)(found)
        SECTIONS[group, name, overrides] = found


def solver_of(name: str) -> schema.Solver:
    """The section in a solver's YAML file."""
    return section("solver", name)
