"""Digests of the code behind a stage's numbers, with what it looks up by name.

Code is the closure of the functions that make the numbers
(:mod:`dperm.store.closure`), not of the stage around them. A solver, a loss and an
accountant are found by name, so that an edit of one makes stale only what uses it.
:mod:`dperm.pipeline.jobs` adds settings and inputs to the keys of jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from dperm.core import calibrations, solvers
from dperm.core.erm import losses
from dperm.core.experiment import config as configuration
from dperm.core.experiment import schema
from dperm.core.experiment.files import digest
from dperm.pipeline import products
from dperm.store import closure
from dperm.store.closure import digest as code

RUNNING = ("dperm.core.experiment.unit:lane_rows", "dperm.core.erm.problem:build")
CALIBRATING = ("dperm.core.privacy.calibration:calibrate",)
LOOKUP = "dperm.core.calibrations"  # looks up an accountant by name
LOSSES = "dperm.core.erm.losses"  # looks up a loss by name


def solved(made: str) -> str:
    """A digest with the versions of the libraries, for what depends on them."""
    return digest([made, closure.versions()])


def lanes(algorithm: str, loss: str | None = None) -> str:
    """Digest of the code that runs a solver's lanes, without its accountant.

    Parameters
    ----------
    loss : str, optional
        Loss of the problem; None leaves the problem out.
    """
    return code(*_running(algorithm, loss))


def running(algorithm: str, loss: str | None = None) -> set[str]:
    """The modules of that code, and its entry points."""
    return closure.closure(*_running(algorithm, loss))


def _running(algorithm: str, loss: str | None) -> list[str]:
    offered = _offered(algorithm, "Run", "Options", "steps")
    return [*RUNNING, *offered, *_losses([loss] if loss else [])]


def noise(algorithm: str, kinds: Iterable[str], loss: str) -> str:
    """Digest of the code that finds a solver's noise: its ledger and the accountants.

    Parameters
    ----------
    kinds : iterable of str
        Calibrations of the solver.
    loss : str
        Loss of the problem.
    """
    entries = _offered(algorithm, "ledger", "Options", "steps")
    places = (*sorted(map(calibrations.place, kinds)), *_losses([loss]))
    return code(*CALIBRATING, *entries, *places)


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


def _losses(words: Iterable[str]) -> list[str]:
    """Modules of the losses among some words."""
    return [losses.place(name) for name in losses.names() if name in words]


def _offered(algorithm: str, *names: str) -> list[str]:
    return [f"{place(algorithm)}:{name}" for name in names]


def place(algorithm: str) -> str:
    """The module of an algorithm, without importing it."""
    return solvers.PLACES.get(algorithm, algorithm)


def swept(config: schema.Config, what: schema.Sweep, names: Iterable[str]) -> str:
    """Digest of the code behind a sweep: its function and its points' solvers."""
    module = products.module_of(config, "sweeps", what.kind)
    named = {place(solver.algorithm) for solver in sections(names)}
    problems = {
        *products.sweep_problems(config, what),
        *products.sweep_prepared(config, what),
    }
    spelt = {*map(loss_of, problems), *strings(asdict(what))}
    return priced(f"{module}:{what.kind}", *sorted(named), spelt=spelt)


def strings(value: Any) -> Iterator[str]:
    """All strings in a value of a YAML."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from strings([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from strings(each)


def sections(names: Iterable[str]) -> list[schema.Solver]:
    """The sections of some solvers, in the order of their names."""
    return [solver_of(name) for name in sorted(names)]


SECTIONS: dict[tuple[str, str], Any] = {}


def section(group: str, name: str) -> Any:
    """The section of a YAML file as it is there, without overrides; do not modify."""
    ahead(group, [name])
    return SECTIONS[group, name]


def ahead(group: str, names: Iterable[str]) -> None:
    """Read several sections that are needed, in a third of the time of one by one."""
    unread = [name for name in names if (group, name) not in SECTIONS]
    for name, found in configuration.sections(group, unread).items():
        SECTIONS[group, name] = found


def solver_of(name: str) -> schema.Solver:
    """The section in a solver's YAML file."""
    return section("solver", name)


def loss_of(problem: str) -> str:
    """The loss in a problem's YAML file."""
    return str(section("problem", problem).loss)
