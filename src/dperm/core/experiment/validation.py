"""Validation of a configuration: types and ranges, then names, files and grids.

``check`` compares a value with a type, by pydantic; the types of the configuration are
those of ``schema``. Every refusal is a ``ConfigError`` whose one-line text names the
file, the key, the value found and the value expected. Checks that need solvers, losses
or papers' code are in ``dperm.pipeline.checks``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, get_args, get_type_hints

import yaml
from omegaconf._utils import get_yaml_loader
from pydantic import ConfigDict, TypeAdapter, ValidationError
from yaml.constructor import SafeConstructor
from yaml.cyaml import CParser  # type: ignore[attr-defined]
from yaml.resolver import Resolver

from dperm.core.experiment import grid, schema
from dperm.core.experiment.locate import (
    ConfigError,
    available,
    conf_file,
    group_file,
)
from dperm.core.names import hint

MOST_NODES = 100_000  # of a YAML file; far more than any in conf/
# Kinds of pydantic's errors to the expected value, in our words.
EXPECTED = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "string_too_short": "text",
    "missing": "a value",
    "string_pattern_mismatch": "letters, digits, _ and -",
    "list_type": "a list",
    "sequence_str": "a list",
    "too_short": "one or more of them",
    "dict_type": "keys and values",
    "mapping_type": "keys and values",
    "dataclass_type": "keys and values",
    "key_type": "keys that are text",
    "greater_than": "a positive number",
    "finite_number": "a finite number",
    "greater_than_equal": "{ge:.0f} or more",
    "less_than_equal": "at most {le:.0f}",
    "literal_error": "one of {words}",
}


# --- types ----------------------------------------------------------------------------


def check(value: Any, kind: Any, where: str = "") -> None:
    """Refuse a value that is not of a type.

    It is stricter than OmegaConf, which converts ``true`` to 1. Numbers may stand for
    text, as in ``positive: 1``.

    Parameters
    ----------
    value : plain value, list, dict or section
        As in a YAML file. References ``${...}``, which are resolved later, pass.
    kind : type
        Any type that pydantic knows, such as a class of ``schema``.
    where : str
        Beginning of the message: a key, or a file and a space.

    Raises
    ------
    ConfigError
    """
    try:
        _adapter(kind).validate_python(value)
    except ValidationError as error:
        misfits = [one for one in error.errors(include_url=False) if _is_misfit(one)]
        if misfits:
            raise ConfigError(_message(misfits[-1], value, kind, where)) from error


@functools.lru_cache(256)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    strict = ConfigDict(strict=True, arbitrary_types_allowed=True)
    return TypeAdapter(kind, config=None if is_dataclass(kind) else strict)


def _is_misfit(error: Any) -> bool:
    """Whether the value is neither filled in later nor a number in place of text."""
    value = error["input"]
    if isinstance(value, str) and ("${" in value or value == "???"):
        return False
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_value = "[key]" not in error["loc"]
    return not (error["type"] == "string_type" and is_number and is_value)


def _message(error: Any, value: Any, kind: Any, where: str) -> str:
    """One line: the key, the value expected, the value found."""
    reason, words = error["type"], error.get("ctx", {})
    path = _path(value, [step for step in error["loc"] if step != "[key]"])
    if "[key]" in error["loc"] or reason == "invalid_key":
        *path, _ = path
        reason = "key_type" if reason in ("string_type", "invalid_key") else reason
    key = where
    for name in path:
        dot = "." if key and not key.endswith(" ") else ""
        key += f"[{name}]" if isinstance(name, int) else f"{dot}{name}"
    if reason == "unexpected_keyword_argument":
        known = [*_bare(type_of(kind, path[:-1])).__dataclass_fields__]
        return f"{key}: expected one of {', '.join(known)}{hint(path[-1], known)}"
    if reason == "literal_error":
        words = {"words": words["expected"].replace("' or '", ", ").replace("'", "")}
    expected = EXPECTED.get(reason, error["msg"]).format(**words)
    if expected == "text" and isinstance(error["input"], bool):
        expected = "text (in quotes, if it is meant as text)"
    near = (
        hint(str(error["input"]), words["words"].split(", "))
        if "words" in words
        else ""
    )
    return (
        f"{key}: expected {expected}, found {words.get('found') or _spelt(error)}{near}"
    )


def _path(value: Any, location: Sequence[Any]) -> list[Any]:
    """The keys and indices of a location, without the branches of unions in it."""
    path = []
    for step in location:
        inner = dict(enumerate(value)) if isinstance(value, list | tuple) else value
        if isinstance(inner, Mapping) and step in inner:
            value = inner[step]
        elif isinstance(step, str) and hasattr(value, step):
            value = getattr(value, step)
        elif not (location[-1] == step and isinstance(value, Mapping)):
            continue
        path.append(step)
    return path


def _spelt(error: Any) -> str:
    """The value found, in at most 80 characters."""
    value = error["input"]
    if value is None or value == "" or error["type"] == "missing":
        return "nothing"
    return "none" if value == [] else " ".join(repr(value).split())[:80]


def type_of(kind: Any, path: Iterable[Any]) -> Any:
    """The type of the value at a path of keys; ``Any`` where it is not declared."""
    for name in path:
        kind = _bare(kind)
        if is_dataclass(kind):
            kind = get_type_hints(kind).get(name, Any)
        else:
            kind = (get_args(kind) or (Any,))[-1]
    return kind


def _bare(kind: Any) -> Any:
    """The type without an optional None."""
    inner = [one for one in get_args(kind) if one is not type(None)]
    return inner[0] if type(None) in get_args(kind) else kind


# --- sections -------------------------------------------------------------------------


def validate(config: schema.Config, narrowed: bool = False) -> None:
    """Check a whole configuration.

    Parameters
    ----------
    config : Config
    narrowed : bool
        Whether overrides replace the problems of the paper's file: then the file may
        name any known problem.

    Raises
    ------
    ConfigError
    """
    for group in ("paper", "problem", "solver", "scale"):
        validate_section(group, getattr(config, group), narrowed)
    for name, run in config.paper.runs.items():
        where = f"conf/{group_file('paper', config.paper.name)}: runs.{name}.grid"
        check_clips(grid.points(run.grid, where), where, config.problem)
    validate_settings(config)


def validate_section(group: str, section: Any, narrowed: bool = False) -> None:
    """Check one group's section; ``narrowed`` as in ``validate``."""
    check(section, type(section), f"conf/{group_file(group, str(section.name))}: ")
    if group == "paper":
        _validate_paper(section, available("problem") if narrowed else None)
    elif group == "problem":
        _validate_problem(section)


def validate_settings(config: schema.Config) -> None:
    """Check the settings that belong to no group."""
    check(config, schema.Config)


def check_name(group: str, name: str, where: str) -> None:
    """Refuse a name that no YAML of the group has."""
    known = available(group)
    if name not in known:
        raise ConfigError(
            f"{where}: {group} {name!r} is unknown; expected one of "
            f"{', '.join(known)}{hint(name, known)}"
        )


def one_of(where: str, value: str, known: Any) -> None:
    """Refuse a value that is none of the known ones."""
    if value not in known:
        raise ConfigError(
            f"{where}: expected one of {', '.join(known)}, found {value!r}"
            f"{hint(str(value), known)}"
        )


def _of(where: str, names: Iterable[Any] | None, known: Iterable[str]) -> None:
    """Refuse a list with an unknown name; None passes."""
    for name in names or ():
        one_of(where, name, list(known))


def _validate_problem(problem: schema.Problem) -> None:
    where = f"conf/problem/{problem.name}.yaml"
    delta = number(problem.privacy.delta, 1000, f"{where}: privacy.delta")
    if not 0 < delta < 1:
        raise ConfigError(f"{where}: privacy.delta: expected in (0, 1), found {delta}")
    for key in ("l1", "l2"):
        strength = number(
            getattr(problem.penalty, key), 1000, f"{where}: penalty.{key}"
        )
        if not 0 <= strength < float("inf"):
            raise ConfigError(
                f"{where}: penalty.{key}: expected 0 or more, found {strength}"
            )
    if not problem.penalty.lower <= 0 <= problem.penalty.upper:
        raise ConfigError(f"{where}: penalty: the box must hold 0, where runs start")


def _validate_paper(paper: schema.Paper, problems: list[str] | None = None) -> None:
    where = f"conf/{group_file('paper', paper.name)}"
    if not any((paper.runs, paper.sweeps, paper.figures, paper.tables, paper.claims)):
        raise ConfigError(f"{where}: runs: expected runs, sweeps or tables, found none")
    if paper.runs and not (paper.problems or problems):
        raise ConfigError(
            f"{where}: problems: expected one or more of them, found none"
        )
    for key in ("problems", "offline"):
        for name in getattr(paper, key):
            check_name("problem", name, f"{where}: {key}")
    allowed = problems or list(dict.fromkeys([*paper.problems, *paper.offline]))
    for name, run in paper.runs.items():
        check_name("solver", name, f"{where}: runs")
        place = f"{where}: runs.{name}"
        _of(f"{place}.problems", run.problems, allowed)
        _of(f"{place}.leave_out", run.leave_out, allowed)
        _validate_grid(run.grid, f"{place}.grid")
    for name, sweep in paper.sweeps.items():
        _validate_sweep(sweep, f"{where}: sweeps.{name}")
    for kind in ("figures", "tables"):
        for name, product in getattr(paper, kind).items():
            place = f"{where}: {kind}.{name}"
            _of(f"{place}.problems", product.problems, allowed)
            _of(f"{place}.sweeps", product.sweeps, paper.sweeps)
    _validate_files(paper, where)


def _validate_sweep(sweep: schema.Sweep, where: str) -> None:
    for key in ("grid",) if sweep.small is None else ("grid", "small"):
        points = grid.points(getattr(sweep, key), f"{where}.{key}", axes=None)
        for group in ("problem", "solver"):  # axes that name something
            for value in points.values(group):
                check_name(group, str(value), f"{where}.{key}.{group}")
    for key in ("problems", "prepared"):
        _of(f"{where}.{key}", getattr(sweep, key), available("problem"))


def _validate_files(paper: schema.Paper, where: str) -> None:
    named = {f"published.{name}": file for name, file in paper.published.items()}
    named |= {"claims": paper.claims} if paper.claims else {}
    for name, file in named.items():
        path = paper_file(paper, file)
        if path is None:
            raise ConfigError(
                f"{where}: {name}: no file conf/paper/{paper.name}/{file}"
            )


def load_yaml(where: str, text: bytes) -> Any:
    """The content of a YAML document, read as OmegaConf reads it."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None or _written_out(node, {}) <= MOST_NODES:
            return None if node is None else loader.construct_document(node)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark, reason = (
            getattr(error, "problem_mark", None),
            " ".join(str(error).split()),
        )
        if mark is not None:
            reason = f"line {mark.line + 1}: {getattr(error, 'problem', reason)}"
        raise ConfigError(f"{where}: not valid YAML: {reason}") from error
    raise ConfigError(
        f"{where}: expected at most {MOST_NODES} values, found more once its aliases "
        "(*name) are written out"
    )


def _written_out(node: yaml.Node, known: dict[int, float]) -> float:
    """The number of nodes after every alias is replaced by its content."""
    if id(node) not in known:
        known[id(node)] = math.inf  # for an alias of a node that contains it
        parts = node.value if isinstance(node, yaml.CollectionNode) else ()
        inner = chain.from_iterable(
            part if isinstance(part, tuple) else (part,) for part in parts
        )
        known[id(node)] = 1 + sum(_written_out(one, known) for one in inner)
    return known[id(node)]


class _Loader(CParser, get_yaml_loader()):  # type: ignore[misc]
    """OmegaConf's loader with the parser in C, which takes a tenth of the time."""

    def __init__(self, stream: bytes):
        CParser.__init__(self, stream)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)


def paper_file(paper: schema.Paper, name: str) -> Path | None:
    """A file in the paper's folder of configuration; None if missing."""
    return conf_file(f"paper/{paper.name}/{name}")


def _validate_grid(spec: Any, where: str) -> None:
    points = grid.points(spec, where)
    for name in schema.AXES:
        for value in points.values(name):
            if not value > 0:
                raise ConfigError(f"{where}.{name}: expected positive, found {value}")
            if value == float("inf") and name != "clip":
                _refuse_infinite(f"{where}.{name}")
            if name == "passes" and value > schema.MOST_PASSES:
                raise ConfigError(
                    f"{where}.passes: expected at most {schema.MOST_PASSES} passes, "
                    f"found {value:g}"
                )


def check_clips(points: grid.Grid, where: str, problem: schema.Problem) -> None:
    """Refuse an infinite clip on a problem with noise, which it would scale."""
    private = problem.privacy.epsilon != float("inf")
    if private and float("inf") in points.values("clip"):
        _refuse_infinite(f"{where}.clip")


def _refuse_infinite(where: str) -> NoReturn:
    raise ConfigError(
        f"{where}: .inf is accepted only for clip, without noise "
        "(privacy.epsilon: .inf)"
    )


def number(value: Any, n: int, where: str) -> float:
    """A number, or the value of ``1/n`` or ``1/n^2`` for n records."""
    named = {"1/n": 1.0 / n, "1/n^2": 1.0 / n**2}
    if isinstance(value, str) and value.replace(" ", "") in named:
        return named[value.replace(" ", "")]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{where}: expected a number, 1/n or 1/n^2, found {value!r}")
    return float(value)
