"""Options of figures, tables and sweeps, checked before anything is computed.

A sweep's options are arguments of its function, whose names and types are read from its
source. Those of figures and tables are looked up as the function runs: a key that no
code behind it spells is a slip. What the same key means for every paper stands here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dperm import schema, typed
from dperm.locate import ConfigError, group_file, hint
from dperm.pipeline.products import module_of
from dperm.store import closure
from dperm.validation import one_of

PASSED = 3  # configuration, point and seed: arguments of a sweep that are no options
TYPES = {
    "against": str,
    "along": str,
    "beside": str,
    "by_passes": bool,
    "calibration": str,
    "column": str,
    "columns": int,
    "constraint": str,
    "d": int,
    "ends": bool,
    "epsilon": float,
    "leave_out": list[str],
    "legend": Literal["inside", "beside", "below"],
    "n": int,
    "names": dict[str, str],
    "noise": str,
    "panels": list[list[Any]],
    "published": str,
    "shown": list[str],
    "small": int,
    "solvers": list[str],
    "title": Literal["privacy", "penalty"],
    "x": Literal["passes", "seconds"],
}
_NAMES = {"Any": Any, "Sequence": Sequence, "Mapping": Mapping}


def check_options(config: schema.Config, kind: str, name: str) -> None:
    """Refuse options of a figure, table or sweep that its function does not take.

    Raises
    ------
    ConfigError
        Naming the paper's file and the key.
    """
    what = getattr(config.paper, kind)[name]
    where = f"conf/{group_file('paper', config.paper.name)}: {kind}.{name}.options"
    module = module_of(config, kind, what.kind)
    try:
        if kind == "sweeps":
            _check_arguments(closure.parameters(module, what.kind), what.options, where)
        else:
            _check_spelt(f"{module}:{what.kind}", what.options, where)
            _check_named(config.paper, what.options, where)
    except typed.MisfitError as error:
        raise ConfigError(str(error)) from error


def _check_arguments(
    takes: dict[str, tuple[str, bool]] | None, options: dict[str, Any], where: str
) -> None:
    if takes is None:
        return
    known = dict(list(takes.items())[PASSED:])
    for key, value in options.items():
        one_of(where, key, list(known))
        typed.check(value, _type_of(known[key][0]), f"{where}.{key}")
    missing = [key for key, (_, needed) in known.items() if needed]
    for key in missing:
        if key not in options:
            raise ConfigError(f"{where}.{key}: expected a value, found none")


def _type_of(annotation: str) -> Any:
    """The type an annotation names; any for one of the module's own."""
    try:
        return eval(annotation, {}, _NAMES)  # of source that is about to be run
    except NameError:
        return Any


def _check_spelt(entry: str, options: dict[str, Any], where: str) -> None:
    if not options:
        return
    spelt = closure.words(entry)
    for key, value in options.items():
        if key not in spelt:
            near = hint(str(key), [word for word in TYPES if word in spelt])
            raise ConfigError(f"{where}: {key!r}: {entry} reads no such option{near}")
        typed.check(value, TYPES.get(key, Any), f"{where}.{key}")


def _check_named(paper: schema.Paper, options: dict[str, Any], where: str) -> None:
    """Refuse solvers that the paper does not run, or a table it has not printed."""
    for key in ("solvers", "leave_out", "names"):
        for name in options.get(key, ()):
            if name not in paper.runs:
                listed = ", ".join(paper.runs) or "none"
                raise ConfigError(
                    f"{where}.{key}: expected solvers of the paper's runs ({listed}), "
                    f"found {name!r}{hint(str(name), paper.runs)}"
                )
    if "published" in options:
        one_of(f"{where}.published", options["published"], list(paper.published))
    for key in ("columns", "d", "n", "small", "epsilon"):
        if key in options and not options[key] > 0:
            raise ConfigError(f"{where}.{key}: expected above 0, found {options[key]}")
