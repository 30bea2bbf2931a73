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
from typing import Any, get_args, get_type_hints

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from dperm.core.experiment.locate import ConfigError
from dperm.core.names import expected, hint

MOST_NODES = 100_000  # of a YAML file; far more than any in conf/
Where = str | Callable[[Sequence[Any]], str]


# --- types ----------------------------------------------------------------------------


def check(value: Any, kind: Any, where: Where = "", is_whole: bool = True) -> Any:
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
    is_whole : bool
        False for a part of a section: what it leaves out is not refused.

    Raises
    ------
    ConfigError
    """
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            path, is_there = _path(value, one["loc"])
            if not _is_number(one) and (is_whole or is_there):
                raise ConfigError(_message(one, path, kind, where)) from error
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


def _message(error: Any, path: list[Any], kind: Any, where: Where) -> str:
    """One line: the key, the value expected in pydantic's words, the value found."""
    reason, words, value = error["type"], error.get("ctx", {}), error["input"]
    key = where(path) if callable(where) else below(where, path)
    if reason == "value_error":  # of a constraint of ours, whose text follows the key
        return f"{key}{words['error']}"
    if reason == "unexpected_keyword_argument":
        known = [*_bare(_type_of(kind, path[:-1])).__dataclass_fields__]
        return f"{key}: expected one of {', '.join(known)}{hint(path[-1], known)}"
    if reason == "literal_error":
        return _none_of(key, value, re.findall("'(.*?)'", words["expected"]))
    if value in (None, "", []) or reason == "missing":
        return f"{key}: expected a value, found nothing"
    text = error["msg"].replace("Input should be", "expected")
    return f"{key}: {text}, found {' '.join(repr(value).split())[:80]}"


def below(where: str, path: Iterable[Any]) -> str:
    """A place with the keys and indices below it: ``sources[0].kind``."""
    for name in path:
        dot = "." if where and not where.endswith(" ") else ""
        where += f"[{name}]" if isinstance(name, int) else f"{dot}{name}"
    return where


BRANCH = re.compile(r"int|float|str|bool|.*\W.*")  # how pydantic names one of a union


def _path(value: Any, location: Sequence[Any]) -> tuple[list[Any], bool]:
    """The keys and indices of a location, and whether all of them are there.

    The branches of unions and the marks of keys are left out.
    """
    path, is_there = list[Any](), True
    for step in location:
        known = vars(value) if is_dataclass(value) else value
        inside = range(len(known)) if isinstance(known, list) else known
        inside = inside if isinstance(inside, range | Mapping) else ()
        if step in inside:
            value = known[step]
        elif isinstance(step, str) and BRANCH.fullmatch(step):
            continue
        else:
            value, is_there = None, False
        path.append(step)
    return path, is_there


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


# --- names ----------------------------------------------------------------------------


def one_of(where: str, value: Any, known: Iterable[Any]) -> None:
    """Refuse a value that is none of the known ones; ``where`` begins the message."""
    if value not in known:
        raise ConfigError(_none_of(where, value, [*map(str, known)]))


def _none_of(where: str, value: Any, known: Sequence[str]) -> str:
    word = str(value)
    return f"{where}: {expected(word, known)}, found {value!r}{hint(word, known)}"


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
    """As OmegaConf reads, 1e-3 a number and a date text, but a key stands once.

    References (``${...}``), which may read the environment, are refused.
    """

    yaml_implicit_resolvers = {  # as the base class has it
        first: [one for one in known if not one[0].endswith(":timestamp")]
        for first, known in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        plain = [key for key, _ in node.value if key.tag.endswith(":str")]
        for place, key in enumerate(plain):
            if key.value in [one.value for one in plain[:place]]:
                raise _refusal(f"key {key.value!r} is given twice", key)
        return super().construct_mapping(node, deep=deep)

    def construct_scalar(self, node: Any) -> Any:
        if "${" in node.value or node.value == "???":
            raise _refusal(f"expected a value, found {node.value!r}", node)
        return super().construct_scalar(node)


def _refusal(text: str, node: yaml.Node) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, text, node.start_mark)


_Loader.add_implicit_resolver(  # an exponent without a dot, or without a sign
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9_]+)[eE][-+]?[0-9]+$"),
    [*"-+0123456789."],
)
