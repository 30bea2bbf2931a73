"""Values against types, names against known ones: every refusal is one line.

``check`` compares a value with a type, by pydantic; the types of the configuration are
those of ``schema``. A ``ConfigError`` names the place, the value expected and the value
found. Checks that need solvers, losses or papers' code are in
``dperm.experiments.checks``.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from dperm.config.locate import ConfigError
from dperm.names import expected

IN_KEYS = "nothing"  # a key has the settings that come out of it
MOST_NODES = 100_000  # of a YAML file; far more than any in conf/
PLAIN = (
    "map",
    "seq",
    "str",
    "int",
    "float",
    "bool",
    "null",
)  # tags of a YAML file
BY_KEYWORD = ("workers", "total")  # arguments that are passed by their names
UNKNOWN = "unknown_key"  # type of the errors of a section's keys
Where = str | Callable[[Sequence[Any]], str]


def key_of(override: str) -> str:
    """The key of an override."""
    return override.partition("=")[0].lstrip("+~")


# --- types ----------------------------------------------------------------------------


def check(
    value: Any, declared_type: Any, where: Where = "", is_whole: bool = True
) -> Any:
    """The value as an object of a type; a value that is not of it is refused.

    Parameters
    ----------
    value : plain value, list, dict or section
        As in a YAML file.
    declared_type : type
        Any type that pydantic knows, such as a class of ``schema``.
    where : str or callable
        Beginning of the message: a key, or a file and a space. Or a function that makes
        the place of an error of its path of keys and indices.
    is_whole : bool
        False for a part of a section: what it leaves empty is not refused.

    Raises
    ------
    ConfigError
    """
    plain = asdict(value) if is_dataclass(value) else value  # type: ignore[arg-type]
    try:
        return _adapter(declared_type).validate_python(plain)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        errors = [
            fault for fault in errors if is_whole or not _is_empty(fault)
        ]
        if errors:
            raise ConfigError(_message(errors, plain, where)) from error
    return value


@functools.lru_cache(256)
def _adapter(declared_type: Any) -> TypeAdapter[Any]:
    strict = ConfigDict(strict=True, arbitrary_types_allowed=True)
    if is_dataclass(declared_type):
        return TypeAdapter(declared_type)
    return TypeAdapter(declared_type, config=strict)


def _is_empty(error: Any) -> bool:
    return error["type"] == "missing" or error["input"] in (None, "", [])


def _message(errors: Sequence[Any], value: Any, where: Where) -> str:
    """One line on the first error: the key, the value expected and the value found."""
    fault = errors[0]
    words = fault.get("ctx", {})
    wrong = fault["input"]
    path = _path(value, fault["loc"])
    keys = [*path, words["key"]] if fault["type"] == UNKNOWN else path
    key = where(keys) if callable(where) else below(where, keys)
    if fault["type"] == "value_error":
        # of a constraint of ours; it may name a key
        text = str(words["error"])
        return key + text if text.startswith((".", ":")) else f"{key}: {text}"
    if fault["type"] == UNKNOWN:
        return f"{key}: {expected(words['key'], words['known'])}"
    if _is_empty(fault):
        is_word = fault["type"] == "string_type" and isinstance(path[-1], int)
        cure = quoted(wrong) if is_word else ""
        return f"{key}: expected a value, found nothing{cure}"
    if fault["type"] == "literal_error":
        choices = re.findall("'(.*?)'", words["expected"])
        return f"{key}: {expected(wrong, choices)}"
    same = [fault for fault in errors if _path(value, fault["loc"]) == path]
    texts = [fault["msg"].replace("Input should be ", "") for fault in same]
    texts = [
        re.sub("^(less|greater) ", r"a number \1 ", text) for text in texts
    ]
    cure = quoted(wrong) if fault["type"] == "string_type" else ""
    text = " ".join(repr(wrong).split())[:80]
    return f"{key}: expected {' or '.join(texts)}, found {text}{cure}"


def quoted(word: Any) -> str:
    """How to write a word that YAML reads as a truth value or as nothing; or empty."""
    if word is None:
        return ": write 'null' in quotes: YAML reads null and ~ as no value"
    if word is True:
        return ": write 'yes' in quotes: YAML reads yes, on and true as true"
    if word is False:
        return ": write 'no' in quotes: YAML reads no, off and false as false"
    return ""


def below(where: str, path: Iterable[Any]) -> str:
    """A place with the keys and indices below it: ``sources[0].kind``."""
    for name in path:
        dot = "." if where and not where.endswith(" ") else ""
        where += f"[{name}]" if isinstance(name, int) else f"{dot}{name}"
    return where


def _path(value: Any, location: Iterable[Any]) -> list[Any]:
    """The keys and indices of a location, without the branches of unions."""
    path = []
    for step in location:
        is_index = isinstance(value, list) and isinstance(step, int)
        if is_index or (isinstance(value, dict) and step in value):
            value = value[step]
        elif isinstance(value, dict) and not re.search(r"\W", str(step)):
            value = {}  # whose default is refused
        else:
            continue
        path.append(step)
    return path


# --- functions ------------------------------------------------------------------------


def check_call(
    function: Callable[..., Any], where: str, names: Sequence[str]
) -> None:
    """Refuse a function that does not take arguments of these names, in this order.

    Raises ValueError; ``where`` begins its text.
    """
    keywords = {name: name for name in names if name in BY_KEYWORD}
    try:
        takes = inspect.signature(function)
    except ValueError:  # of compiled code
        return
    try:
        takes.bind(
            *(name for name in names if name not in BY_KEYWORD), **keywords
        )
    except TypeError as error:
        raise ValueError(
            f"{where}: expected to be called with {', '.join(names)}, found {takes}: "
            f"{error}"
        ) from error


# --- names ----------------------------------------------------------------------------


def one_of(where: str, value: Any, choices: Iterable[Any]) -> None:
    """Refuse a value that is none of the known ones; ``where`` begins the message."""
    if value not in choices:
        raise ConfigError(f"{where}: {expected(value, choices)}")


# --- YAML -----------------------------------------------------------------------------


def load_yaml(where: str, text: bytes) -> Any:
    """The content of a YAML document; ``where`` begins the message of a refusal."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        if _written_out(node, {}) > MOST_NODES:
            raise ValueError(
                f"more than {MOST_NODES} values with its aliases (*name)"
            )
        return loader.construct_document(node)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = " ".join(
            str(error).replace('in "<byte string>", ', "at ").split()
        )
        raise ConfigError(f"{where}: not valid YAML: {reason}") from error


def _written_out(node: yaml.Node, counts: dict[int, float]) -> float:
    """The number of nodes after every alias is replaced by its content."""
    if id(node) not in counts:
        counts[id(node)] = math.inf  # for an alias of a node that contains it
        children = node.value if isinstance(node, yaml.CollectionNode) else []
        if isinstance(node, yaml.MappingNode):
            children = itertools.chain(*children)
        counts[id(node)] = 1 + sum(
            _written_out(child, counts) for child in children
        )
    return counts[id(node)]


class _Loader(yaml.CSafeLoader):
    """As OmegaConf reads, 1e-3 a number and a date text, but a key stands once.

    References (``${...}``), which may read the environment, are refused, and so is what
    is neither a mapping, a list, a text, a number, a truth value nor nothing.
    """

    yaml_constructors = {
        tag: construct
        for tag, construct in yaml.CSafeLoader.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] in PLAIN
    }

    yaml_implicit_resolvers = {  # as the base class has it
        first: [one for one in known if not one[0].endswith(":timestamp")]
        for first, known in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        plain = [key for key, _ in node.value if key.tag.endswith(":str")]
        for place, key in enumerate(plain):
            if key.value in [earlier.value for earlier in plain[:place]]:
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
