"""Lookup of solvers; each is a module with options, number of steps, ledger, kernel.

There are four families, each a package with the interface of its modules:

- :mod:`dperm.solvers.batched`: a composite problem, many settings at a time; only these
  run the grids of a paper's ``runs``,
- :mod:`dperm.solvers.frank_wolfe`: a finite sum over an l1 ball, one run at a time,
- :mod:`dperm.solvers.full_batch`: a composite problem, a few releases on all records,
  runs of one setting side by side,
- :mod:`dperm.solvers.single_pass`: a stream of records, each read once.

Besides, a module may declare ``DEFAULT``, its setting without tuning, and ``GRID``, a
mapping of the values that a search tries; ``RECORDWISE`` if a step reads a record or a
few; ``SAME_STEPS`` if a step has one size for all weights, as it has then too.

A module of this package stands in ``PLACES`` and belongs to the family of its folder. A
user's own module (:func:`~dperm.names.own_module`) declares ``FAMILY``; the
default is ``batched``. No solver depends on files, grids or seeds.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import fields
from operator import attrgetter
from types import ModuleType
from typing import Any

from dperm.names import hint, place

# What a module must define, by family.
OFFERED = {
    "batched": "Options steps ledger bytes_per_setting "
    "Run Run.advance Run.keep Run.released",
    "frank_wolfe": "Options steps ledger noise Run Run.advance Run.releases",
    "single_pass": "Options noise Run Run.releases Run.solve",
    "full_batch": "Options ledger refuses Run Run.releases",
}
# The algorithms of this package, by the folders of their families.
FOLDERS = {
    "solvers.batched": "dp_cd dp_cd_priv dp_gcd dp_sgd dp_skgd dp_svrg",
    "solvers.frank_wolfe": "bcfw dp_bcfw dp_fw",
    "solvers.single_pass": (
        "noisy_sfw phased_sgd poly_sfw sco_dp_fw sco_dp_sgd sco_mirror_descent"
    ),
    "solvers.full_batch": (
        "ada_ssp dp_adaptive dp_gd dp_gram dp_minibatch dp_newton dp_selection "
        "hessian_mixing moments objective_perturbation"
    ),
}
PLACES = {
    name: f"dperm.{folder}.{name}"
    for folder, algorithms in FOLDERS.items()
    for name in algorithms.split()
}
_GIVEN: dict[str, Any] = {}  # solvers that a user passed as objects, by name


def family(module: ModuleType) -> str:
    """The family of a solver module.

    Raises ValueError if it declares one that does not exist.
    """
    folder = name_of(module).rpartition(".")[0].removeprefix("dperm.")
    if folder in FOLDERS:
        return folder.rpartition(".")[2]
    declared = getattr(module, "FAMILY", "batched")
    if declared not in OFFERED:
        families = ", ".join(OFFERED)
        raise ValueError(
            f"FAMILY: expected one of {families}, found {declared!r}"
        )
    return str(declared)


def load(algorithm: str) -> ModuleType:
    """The module of an algorithm, from this package or a user's own.

    Raises ValueError if there is none (the message suggests the nearest known name), or
    if it lacks a name that its family requires.
    """
    if algorithm in _GIVEN:
        return _GIVEN[algorithm]
    module = importlib.import_module(
        place("solvers", "algorithm", algorithm, PLACES)
    )
    # what keys of results must hold
    sys.audit("dperm.lookup", module.__name__)
    check(algorithm, module)
    return module


def check(algorithm: str, module: ModuleType) -> None:
    """Refuse a module, or what stands for one, that lacks a name that it needs.

    Raises ValueError.
    """
    try:
        attrgetter(*OFFERED[family(module)].split())(module)
    except (AttributeError, ValueError) as error:
        raise ValueError(f"algorithm {algorithm!r}: {error}") from None


def name_of(module: Any) -> str:
    """The name of a solver's module, or of an object that stands for one."""
    qualified = getattr(module, "__qualname__", type(module).__qualname__)
    return str(getattr(module, "__name__", qualified))


def given(module: Any) -> str:
    """Keep a solver that a user passes as an object; its name, which ``load`` takes.

    Raises ValueError if it lacks a name that its family requires.
    """
    name = name_of(module)
    check(name, module)
    number = 1
    # A number keeps it apart from what the name stands for elsewhere.
    while _GIVEN.setdefault(f"{name} {number}", module) is not module:
        number += 1
    return f"{name} {number}"


def settings(module: ModuleType) -> tuple[dict[str, Any], dict[str, Any]]:
    """A solver's setting without tuning, and the values of each axis of its grid.

    What a module does not declare is that of a similar one of this package.
    """
    similar: Any = None
    if family(module) == "frank_wolfe":
        similar = importlib.import_module(PLACES["dp_fw"])
    elif family(module) == "batched":
        name = "dp_sgd" if getattr(module, "RECORDWISE", False) else "dp_cd"
        similar = importlib.import_module(PLACES[name])
    usual: Mapping[str, Any] = getattr(similar, "DEFAULT", {})
    default = {**usual, **getattr(module, "DEFAULT", {})}
    grid = getattr(module, "GRID", getattr(similar, "GRID", {}))
    return default, dict(grid)


def make_options(module: ModuleType, settings: dict[str, Any]) -> Any:
    """The module's Options with these values.

    Raises ValueError for an unknown key (the message suggests the nearest one) or an
    invalid value.
    """
    names = [field.name for field in fields(module.Options)]
    for key in settings:
        if key not in names:
            raise ValueError(
                f"options.{key}: unknown; expected one of {', '.join(names)}"
                f"{hint(key, names)}"
            )
    return module.Options(**settings)
