"""Values against types, names against known ones: every refusal is one line.

``check`` compares a value with a type, by pydantic; the types of the configuration are
those of ``schema``. A ``ConfigError`` names the place, the value found and the value
expected. Checks that need solvers, losses or papers' code are in
``dperm.pipeline.checks``.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from itertools import chain
from pathlib import Path
from typing import Any, get_args, get_type_hints

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from dperm.core.experiment import grid, schema
from dperm.core.experiment.locate import ConfigError, available, conf_file
from dperm.core.names import expected, hint

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
Where = str | Callable[[Sequence[Any]], str]


# --- types ----------------------------------------------------------------------------


def check(value: Any, kind: Any, where: Where = "") -> Any:
    """The value as an object of a type; a value that is not of it is refused.

    Parameters
    ----------
    value : plain value, list, dict or section
        As in a YAML file.
    kind : type
        Any type that pydantic knows, such as a class of ``schema``. Numbers may stand
        for text, as in ``positive: 1``, but ``true`` is no number.
    where : str or callable
        Beginning of the message: a key, or a file and a space. Or a function that makes
        the place of an error of its path of keys and indices.

    Raises
    ------
    ConfigError
    """
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        misfits = [
            one for one in error.errors(include_url=False) if not _is_number(one)
        ]
        if misfits:
            raise ConfigError(_message(misfits[-1], value, kind, where)) from error
    return value


@functools.lru_cache(256)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    strict = ConfigDict(strict=True, arbitrary_types_allowed=True)
    return TypeAdapter(kind, config=None if is_dataclass(kind) else strict)


def _is_number(error: Any) -> bool:
    """Whether the value is a number in place of text."""
    value, is_value = error["input"], "[key]" not in error["loc"]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return error["type"] == "string_type" and is_number and is_value


def _message(error: Any, value: Any, kind: Any, where: Where) -> str:
    """One line: the key, the value expected, the value found."""
    reason, words = error["type"], error.get("ctx", {})
    path = _path(value, kind, [step for step in error["loc"] if step != "[key]"])
    if "[key]" in error["loc"] or reason == "invalid_key":
        *path, _ = path
        reason = "key_type" if reason in ("string_type", "invalid_key") else reason
    key = where(path) if callable(where) else below(where, path)
    if reason == "unexpected_keyword_argument":
        known = [*_bare(_type_of(kind, path[:-1])).__dataclass_fields__]
        return f"{key}: expected one of {', '.join(known)}{hint(path[-1], known)}"
    if reason == "literal_error":
        words = {"words": words["expected"].replace("' or '", ", ").replace("'", "")}
    expected = EXPECTED.get(reason, error["msg"]).format(**words)
    if expected == "text" and isinstance(error["input"], bool):
        expected = "text (in quotes, if it is meant as text)"
    known = words["words"].split(", ") if "words" in words else []
    found = words.get("found") or _spelt(error)
    return (
        f"{key}: expected {expected}, found {found}{hint(str(error['input']), known)}"
    )


def below(where: str, path: Iterable[Any]) -> str:
    """A place with the keys and indices below it: ``sources[0].kind``."""
    for name in path:
        dot = "." if where and not where.endswith(" ") else ""
        where += f"[{name}]" if isinstance(name, int) else f"{dot}{name}"
    return where


def _path(value: Any, kind: Any, location: Sequence[Any]) -> list[Any]:
    """The keys and indices of a location, without the branches of unions in it."""
    path: list[Any] = []
    for step in location:
        inner = dict(enumerate(value)) if isinstance(value, list | tuple) else value
        if isinstance(inner, Mapping) and step in inner:
            value = inner[step]
        elif isinstance(step, str) and hasattr(value, step):
            value = getattr(value, step)
        elif step in getattr(_bare(_type_of(kind, path)), "__dataclass_fields__", ()):
            value = None  # it is left out
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


def _type_of(kind: Any, path: Iterable[Any]) -> Any:
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


# --- names and files ------------------------------------------------------------------


def check_name(group: str, name: str, where: str) -> None:
    """Refuse a name that no YAML of the group has."""
    known = available(group)
    if name not in known:
        raise ConfigError(
            f"{where}: {group} {name!r} is unknown; "
            f"{expected(name, known)}{hint(name, known)}"
        )


def one_of(where: str, value: str, known: Any) -> None:
    """Refuse a value that is none of the known ones."""
    if value not in known:
        names, word = [*map(str, known)], str(value)
        raise ConfigError(
            f"{where}: {expected(word, names)}, found {value!r}{hint(word, names)}"
        )


def paper_file(paper: schema.Paper, name: str) -> Path | None:
    """A file in the paper's folder of configuration; None if missing."""
    return conf_file(f"paper/{paper.name}/{name}")


# --- grids and numbers ----------------------------------------------------------------


def check_problem(problem: schema.Problem, where: str) -> None:
    """Refuse a delta, penalty or box that no run could have."""
    delta = grid.number(problem.privacy.delta, 1000, f"{where}privacy.delta")
    if not 0 < delta < 1:
        raise ConfigError(f"{where}privacy.delta: expected in (0, 1), found {delta}")
    for key in ("l1", "l2"):
        place, value = f"{where}penalty.{key}", getattr(problem.penalty, key)
        strength = grid.number(value, 1000, place)
        if not 0 <= strength < float("inf"):
            raise ConfigError(f"{place}: expected 0 or more, found {strength}")
    if not problem.penalty.lower <= 0 <= problem.penalty.upper:
        raise ConfigError(f"{where}penalty: the box must hold 0, where runs start")


def check_grid(spec: Any, where: str) -> None:
    """Refuse a grid of a run whose values no solver could take."""
    points = grid.points(spec, where)
    for name in schema.AXES:
        for value in points.values(name):
            if not value > 0:
                raise ConfigError(f"{where}.{name}: expected positive, found {value}")
            if value == float("inf") and name != "clip":
                raise ConfigError(f"{where}.{name}: {INFINITE}")
            if name == "passes" and value > schema.MOST_PASSES:
                raise ConfigError(
                    f"{where}.passes: expected at most {schema.MOST_PASSES} passes, "
                    f"found {value:g}"
                )


INFINITE = ".inf is accepted only for clip, without noise (privacy.epsilon: .inf)"


def check_clips(points: grid.Grid, where: str, problem: schema.Problem) -> None:
    """Refuse an infinite clip on a problem with noise, which it would scale."""
    private = problem.privacy.epsilon != float("inf")
    if private and float("inf") in points.values("clip"):
        raise ConfigError(f"{where}.clip: {INFINITE}")


# --- YAML -----------------------------------------------------------------------------


def load_yaml(where: str, text: bytes) -> Any:
    """The content of a YAML document; ``where`` begins the message of a refusal."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None or _written_out(node, {}) <= MOST_NODES:
            return None if node is None else loader.construct_document(node)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark, reason = getattr(error, "problem_mark", None), str(error)
        if mark is not None:
            reason = f"line {mark.line + 1}: {getattr(error, 'problem', reason)}"
        reason = " ".join(reason.split())
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


class _Loader(yaml.CSafeLoader):
    """Reads as OmegaConf does: 1e-3 is a number, a date is text, a key stands once."""

    yaml_implicit_resolvers = {  # as the base class has it
        first: [one for one in known if not one[0].endswith((":timestamp", ":float"))]
        for first, known in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        plain = [key for key, _ in node.value if key.tag.endswith(":str")]
        for place, key in enumerate(plain):
            if key.value in [one.value for one in plain[:place]]:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key.value!r} is given twice", key.start_mark
                )
        return super().construct_mapping(node, deep=deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"""^(?:[-+]?[0-9]+(?:_[0-9]+)*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
        |[-+]?[0-9]+(?:_[0-9]+)*[eE][-+]?[0-9]+
        |\.[0-9]+(?:_[0-9]+)*(?:[eE][-+][0-9]+)?
        |[-+]?[0-9]+(?:_[0-9]+)*(?::[0-5]?[0-9])+\.[0-9_]*
        |[-+]?\.(?:inf|Inf|INF)
        |\.(?:nan|NaN|NAN))$""",
        re.VERBOSE,
    ),
    [*"-+0123456789."],
)
