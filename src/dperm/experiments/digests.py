"""Digests of the code behind a stage's numbers, with what it looks up by name.

Code is that of the functions that make the numbers, with all that they reach
(:mod:`dperm.storage.source_code`), not that of the stage around them. A solver, a loss
and an accountant are found by name, so that an edit of one makes stale only what uses
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dperm import names
from dperm.config import config as configuration
from dperm.config import schema, scope
from dperm.config.locate import available
from dperm.experiments import checks
from dperm.privacy import accountants
from dperm.problems import losses
from dperm.solvers import registry
from dperm.storage import source_code
from dperm.storage.source_code import digest as code

IN_KEYS = "nothing"  # keys come out of it
RUNNING = ("dperm.experiments.task:compute", "dperm.problems.problem:build")
CALIBRATING = (
    "dperm.privacy.calibration:calibrate",
    "dperm.solvers.batched.trials:noise",
    "dperm.experiments.tune:calibrations",
)
LOOKUP = "dperm.privacy.accountants"  # looks up an accountant by name
LOSSES = "dperm.problems.losses"  # looks up a loss by name
OFFERED = (
    "Run",
    "Options",
    "steps",
    "bytes_per_setting",
)  # by a solver, for its settings


def solver(algorithm: str, loss: str | None = None) -> str:
    """Digest of the code that runs a solver's settings, without its accountant.

    Without the ``loss`` of a problem, the problem is left out.
    """
    return code(*running(algorithm, loss))


def running(algorithm: str, loss: str | None = None) -> list[str]:
    """The entry points of that code."""
    offered = (f"{place(algorithm)}:{name}" for name in OFFERED)
    return [*RUNNING, *offered, *_losses({loss})]


def solved(
    stages: Iterable[str],
    algorithm: str,
    calibrations: Iterable[str],
    loss: str,
) -> list[str]:
    """Entry points of the code of stages that run a solver with its calibrations."""
    priced_by = pricing(algorithm, calibrations, loss)
    return [*stages, *running(algorithm, loss), *priced_by]


def noise(algorithm: str, calibrations: Iterable[str], loss: str) -> str:
    """Digest of the code that finds a solver's noise: its ledger and the accountants.

    ``calibrations`` are their names, ``loss`` is that of the problem.
    """
    return code(*pricing(algorithm, calibrations, loss))


def pricing(
    algorithm: str, calibrations: Iterable[str], loss: str
) -> list[str]:
    """The entry points of that code."""
    offered = (
        f"{place(algorithm)}:{name}" for name in ("ledger", "Options", "steps")
    )
    places = sorted(map(accountants.place, calibrations))
    return [*CALIBRATING, *offered, *places, *_losses({loss})]


def priced(*entries: str, option_words: Iterable[str] = ()) -> str:
    """Digest of the code behind entry points and of what it looks up by name.

    The package's own accountants are included wherever any accountant is looked up.
    Any other accountant, a loss or a user's own module is included if the code or
    ``option_words`` (strings of the settings) contains its name.
    """
    return code(*looked_up(*entries, option_words=option_words))


def looked_up(*entries: str, option_words: Iterable[str] = ()) -> list[str]:
    """Entry points with those of what their code looks up by name."""
    option_words = {*option_words}
    reached = source_code.reached(*entries)
    places: list[str] = []
    if LOOKUP in reached:
        places += map(accountants.place, accountants.OURS)
    if LOSSES in reached:
        words = source_code.words(*entries)
        ours = {
            place for name, place in losses.PLACES.items() if name in words
        }
        places += [
            *ours,
            *_losses(option_words | source_code.own_words(*entries)),
        ]
    places += (word for word in option_words if source_code.is_beside(word))
    return [*dict.fromkeys([*entries, *sorted({*places})])]


def solver_places(
    *entries: str, option_words: Iterable[str] = ()
) -> list[str]:
    """Modules of the solvers that settings or users' own code name, on any axis.

    ``option_words`` are strings of the settings: names of solvers' YAMLs or of
    algorithms.
    """
    own_words = source_code.own_words(*entries)
    places = {
        place(solver_of(name).algorithm)
        for name in solvers_in({*option_words} | own_words)
    }
    algorithms = {*option_words} | own_words
    places |= {
        registry.PLACES[name] for name in algorithms if name in registry.PLACES
    }
    return sorted(places)


def solvers_in(option_words: Iterable[str]) -> list[str]:
    """The names of solvers' YAMLs among some strings."""
    return sorted({*option_words} & {*available("solver")})


def _losses(words: set[Any]) -> list[str]:
    """Modules of the losses among some words."""
    ours = [place for name, place in losses.PLACES.items() if name in words]
    users_losses = (
        word for word in words if word and source_code.is_beside(word)
    )
    return [*ours, *sorted(users_losses)]


def place(algorithm: str) -> str:
    """The module of an algorithm, without importing it."""
    ours = registry.PLACES.get(algorithm)
    return ours or names.entry_points("solvers").get(algorithm, algorithm)


def strings(value: Any) -> set[str]:
    """All words in a value of a YAML."""
    return {*re.findall(r"\w+", repr(value))}


def texts(value: Any) -> set[str]:
    """All strings in a value of a YAML, also those that are keys."""
    words = set[str]()
    remaining = [value]
    while remaining:
        part = remaining.pop()
        if isinstance(part, str):
            words.add(part)
        elif isinstance(part, list | tuple | set):
            remaining += part
        elif isinstance(part, Mapping):
            remaining += [*part.keys(), *part.values()]
    return words


SECTIONS: dict[tuple[str, str, tuple[str, ...]], Any] = {}


def section(group: str, name: str, *overrides: str) -> Any:
    """The section of a problem or a solver, read and checked once; do not modify it.

    Raises ConfigError for what is wrong with it.
    """
    if (group, name, overrides) not in SECTIONS:
        ahead(group, [name], overrides)
    return scope.seen(group, name, SECTIONS[group, name, overrides])


def ahead(
    group: str, names: Iterable[str], overrides: tuple[str, ...] = ()
) -> None:
    """Read several sections that are needed, in a third of the time of one by one."""
    names = dict.fromkeys(names)
    unread = [
        name for name in names if (group, name, overrides) not in SECTIONS
    ]
    with scope.unwatched:  # they are kept for jobs of any scope
        for name, content in configuration.sections(
            group, unread, overrides
        ).items():
            getattr(checks, group)(content)
            SECTIONS[group, name, overrides] = content


def solver_of(name: str) -> schema.Solver:
    """The section in a solver's YAML file."""
    return section("solver", name)
