"""Lookup of solvers; each is a module with options, number of steps, ledger, kernel.

There are four families, each a package with a ``Protocol`` for its modules:

- :mod:`dperm.core.lanes` and :mod:`dperm.solvers.lanes`: a composite problem, many
  settings at a time; only these run the grids of a paper's ``runs``,
- :mod:`dperm.solvers.frank_wolfe`: a finite sum over an l1 ball, one run at a time,
- :mod:`dperm.solvers.fits`: a composite problem, a few releases on all records, runs of
  one setting side by side,
- :mod:`dperm.solvers.streams`: a stream of records, each read once.

A module of this package stands in ``PLACES`` and belongs to the family of its folder. A
user's own module (:func:`~dperm.core.names.own_module`) declares ``FAMILY``; the
default is lanes. No solver depends on files, grids or seeds.
"""

from __future__ import annotations

import importlib
from dataclasses import fields
from types import ModuleType
from typing import Any

from dperm.core.names import hint, own_module

# Names that a module must define, by family; METHODS lists those of its Run.
OFFERED = {
    "lanes": ("Options", "steps", "ledger", "Run", "lane_bytes"),
    "frank_wolfe": ("Options", "steps", "ledger", "Run", "noise"),
    "streams": ("Options", "Run"),
    "fits": ("Options", "ledger", "Run", "refuses"),
}
# The algorithms of this package, and the families of its folders.
PLACES = {
    "dp_cd": "dperm.core.lanes.dp_cd",
    "dp_cd_priv": "dperm.solvers.lanes.dp_cd_priv",
    "dp_gcd": "dperm.solvers.lanes.dp_gcd",
    "dp_sgd": "dperm.solvers.lanes.dp_sgd",
    "dp_skgd": "dperm.solvers.lanes.dp_skgd",
    "dp_svrg": "dperm.solvers.lanes.dp_svrg",
    "bcfw": "dperm.solvers.frank_wolfe.bcfw",
    "dp_bcfw": "dperm.solvers.frank_wolfe.dp_bcfw",
    "dp_fw": "dperm.solvers.frank_wolfe.dp_fw",
    "fw": "dperm.solvers.frank_wolfe.fw",
    "noisy_sfw": "dperm.solvers.streams.noisy_sfw",
    "phased_sgd": "dperm.solvers.streams.phased_sgd",
    "poly_sfw": "dperm.solvers.streams.poly_sfw",
    "sco_dp_fw": "dperm.solvers.streams.sco_dp_fw",
    "sco_dp_sgd": "dperm.solvers.streams.sco_dp_sgd",
    "sco_mirror_descent": "dperm.solvers.streams.sco_mirror_descent",
    "ada_ssp": "dperm.solvers.fits.ada_ssp",
    "dp_gd": "dperm.solvers.fits.dp_gd",
    "dp_gram": "dperm.solvers.fits.dp_gram",
    "dp_minibatch": "dperm.solvers.fits.dp_minibatch",
    "dp_selection": "dperm.solvers.fits.dp_selection",
    "hessian_mixing": "dperm.solvers.fits.hessian_mixing",
    "moments": "dperm.solvers.fits.moments",
    "objective_perturbation": "dperm.solvers.fits.objective_perturbation",
}
FAMILIES = {
    "dperm.core.lanes": "lanes",
    "dperm.solvers.lanes": "lanes",
    "dperm.solvers.frank_wolfe": "frank_wolfe",
    "dperm.solvers.streams": "streams",
    "dperm.solvers.fits": "fits",
}
METHODS = {
    "lanes": ("advance", "keep", "released"),
    "frank_wolfe": ("advance", "releases"),
    "fits": ("releases",),
    "streams": ("releases", "solve"),
}


def names() -> list[str]:
    """Names of the algorithms of this package, sorted."""
    return sorted(PLACES)


def family(module: ModuleType) -> str:
    """The family of a solver module.

    Raises ValueError if it declares one that does not exist.
    """
    package, _, _ = module.__name__.rpartition(".")
    if package in FAMILIES:
        return FAMILIES[package]
    declared = getattr(module, "FAMILY", "lanes")
    if declared not in OFFERED:
        known = ", ".join(OFFERED)
        raise ValueError(f"FAMILY: expected one of {known}, found {declared!r}")
    return str(declared)


def load(algorithm: str) -> ModuleType:
    """The module of an algorithm, from this package or a user's own.

    Raises ValueError if there is none (the message suggests the nearest known name), or
    if it lacks a name that its family requires.
    """
    place = PLACES.get(algorithm) or own_module("solvers", algorithm)
    if place is None:
        raise ValueError(
            f"algorithm {algorithm!r}: expected one of {', '.join(names())}, or a "
            f"module beside conf/ or installed{hint(algorithm, names())}"
        )
    module = importlib.import_module(place)
    try:
        missing = lacking(module)
    except ValueError as error:
        raise ValueError(f"algorithm {algorithm!r}: {error}") from None
    if missing:
        raise ValueError(f"algorithm {algorithm!r}: has no {', '.join(missing)}")
    return module


def lacking(module: ModuleType) -> list[str]:
    """Names that a module's family requires and the module lacks."""
    kind = family(module)
    found = [name for name in OFFERED[kind] if not hasattr(module, name)]
    run = getattr(module, "Run", None)
    if run is not None:
        found += [f"Run.{name}" for name in METHODS[kind] if not hasattr(run, name)]
    return found


def make_options(module: ModuleType, given: dict[str, Any]) -> Any:
    """The module's Options with these values.

    Raises
    ------
    ValueError
        For an unknown key (the message suggests the nearest one) or an invalid value.
    """
    known = [field.name for field in fields(module.Options)]
    for key in given:
        if key not in known:
            raise ValueError(
                f"options.{key}: unknown; expected one of {', '.join(known)}"
                f"{hint(key, known)}"
            )
    return module.Options(**given)
