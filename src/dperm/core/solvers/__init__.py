"""Lookup of solvers; each is a module with options, number of steps, ledger, kernel.

There are four families, each a package with a ``Protocol`` for its modules:

- :mod:`dperm.core.lanes` and :mod:`dperm.solvers.lanes`: a composite problem, many
  settings at a time; only these run the grids of a paper's ``runs``,
- :mod:`dperm.solvers.frank_wolfe`: a finite sum over an l1 ball, one run at a time,
- :mod:`dperm.solvers.fits`: a composite problem, a few releases on all records, runs of
  one setting side by side,
- :mod:`dperm.solvers.streams`: a stream of records, each read once.

A module of this package belongs to the family of its folder. A user's own module
declares ``FAMILY``; the default is lanes. No solver depends on files, grids or seeds.
"""

from __future__ import annotations

import functools
import importlib
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

from dperm.core.names import hint

# Names that a module must define, by family; METHODS lists those of its Run.
OFFERED = {
    "lanes": ("Options", "steps", "ledger", "Run", "lane_bytes"),
    "frank_wolfe": ("Options", "steps", "ledger", "Run", "noise"),
    "streams": ("Options", "Run"),
    "fits": ("Options", "ledger", "Run", "refuses"),
}
# Packages and their families; each module with Options is an algorithm.
PACKAGES = {
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


@functools.cache
def places() -> dict[str, str]:
    """Algorithms of this package, by name, with their modules."""
    ours = Path(__file__).parents[3]  # the folder of the package dperm
    return {
        path.stem: f"{package}.{path.stem}"
        for package in PACKAGES
        for path in sorted((ours / package.replace(".", "/")).glob("*.py"))
        if "class Options" in path.read_text(encoding="utf-8")
    }


def names() -> list[str]:
    """Names of the algorithms of this package, sorted."""
    return sorted(places())


def family(module: ModuleType) -> str:
    """The family of a solver module.

    Raises ValueError if it declares one that does not exist.
    """
    package, _, _ = module.__name__.rpartition(".")
    if package in PACKAGES:
        return PACKAGES[package]
    declared = getattr(module, "FAMILY", "lanes")
    if declared not in OFFERED:
        known = ", ".join(OFFERED)
        raise ValueError(f"FAMILY: expected one of {known}, found {declared!r}")
    return str(declared)


def load(algorithm: str) -> ModuleType:
    """The module of an algorithm, from this package or any other importable one.

    Raises ValueError if there is none (the message suggests the nearest known name), or
    if it lacks a name that its family requires.
    """
    path = places().get(algorithm, algorithm)
    parts = path.split(".")
    if parts[0] in sys.stdlib_module_names or parts[-1] == "__main__":
        raise ValueError(f"algorithm {algorithm!r}: expected a module of solvers")
    if path == algorithm and path not in sys.modules:
        _require_solver(algorithm)  # before it is imported, which runs it
    module = importlib.import_module(path)
    try:
        missing = lacking(module)
    except ValueError as error:
        raise ValueError(f"algorithm {algorithm!r}: {error}") from None
    if missing:
        raise ValueError(f"algorithm {algorithm!r}: has no {', '.join(missing)}")
    return module


def _require_solver(algorithm: str) -> None:
    """Refuse a module that cannot be found, or binds no Options and Run."""
    source = _source(algorithm)
    if source is None:
        raise ValueError(
            f"algorithm {algorithm!r}: expected one of {', '.join(names())}, or a "
            f"module beside conf/ or installed{hint(algorithm, names())}"
        )
    read = compile(source.read_bytes(), str(source), "exec", dont_inherit=True)
    missing = [name for name in ("Options", "Run") if name not in read.co_names]
    if missing:
        raise ValueError(f"algorithm {algorithm!r}: has no {', '.join(missing)}")


def _source(module: str) -> Path | None:
    """The file of a module in plain source, found without importing a package."""
    parts, folders, spec = module.split("."), None, None
    for end in range(1, len(parts) + 1):
        name = ".".join(parts[:end])
        specs = (finder.find_spec(name, folders) for finder in sys.meta_path)
        spec = (
            next(filter(None, specs), None) if parts[end - 1].isidentifier() else None
        )
        folders = spec.submodule_search_locations if spec else None
        if spec is None or (folders is None and end < len(parts)):
            return None
    origin = spec.origin if spec else None
    return Path(origin) if origin and origin.endswith(".py") else None


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
