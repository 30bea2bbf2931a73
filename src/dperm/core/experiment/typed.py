"""Whether a value of a YAML file is of the type that its key has.

Stricter than OmegaConf, which makes 1 of ``true``: what is written is what is meant, or
it is refused. Numbers may stand for text, as in ``positive: 1``.
"""

from __future__ import annotations

import collections.abc
import types
from dataclasses import is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_UNIONS = (Union, types.UnionType)
_LISTS = (list, tuple, collections.abc.Sequence)
_MAPPINGS = (dict, collections.abc.Mapping)
_PLAIN: dict[Any, tuple[str, tuple[type, ...]]] = {
    bool: ("true or false", (bool,)),
    int: ("a whole number", (int,)),
    float: ("a number", (int, float)),
    str: ("text", (str, int, float)),
}


class MisfitError(ValueError):
    """A value of another type than its key; the text begins with the key."""


def check(value: Any, hint: Any, key: str = "") -> None:
    """Refuse a value that is not of a type.

    Parameters
    ----------
    value : plain value, list or dict
        As in a YAML file. What is filled in later, ``${...}``, passes.
    hint : type
        Plain types, lists, mappings, unions, literals and dataclasses, whose unknown
        keys are for others to refuse.
    key : str
        Where the value stands.

    Raises
    ------
    MisfitError
        Naming the key, what was expected and what was found.
    """
    origin = get_origin(hint) or hint
    if hint is Any or (isinstance(value, str) and "${" in value) or value == "???":
        return
    if origin in _UNIONS:
        _check_union(value, get_args(hint), key)
    elif origin is Literal:
        known = get_args(hint)
        if isinstance(value, bool) or value not in known:
            _refuse(key, f"one of {', '.join(map(str, known))}", value)
    elif is_dataclass(hint):
        _check_mapping(value, key)
        hints = get_type_hints(hint)
        for name in value:
            if name in hints:
                check(value[name], hints[name], f"{key}.{name}" if key else str(name))
    elif origin in _MAPPINGS:
        _check_mapping(value, key)
        _, inner = get_args(hint) or (str, Any)
        for name, one in value.items():
            check(one, inner, f"{key}.{name}")
    elif origin in _LISTS:
        if not isinstance(value, list | tuple):
            _refuse(key, "a list", value)
        for number, one in enumerate(value):
            check(one, next(iter(get_args(hint)), Any), f"{key}[{number}]")
    elif hint in _PLAIN:
        _check_plain(value, hint, key)


def hint_of(section: Any, key: str) -> Any:
    """The type of a dotted key of a dataclass; any for one that it does not have."""
    hint = section
    for name in key.split("."):
        inner = [one for one in get_args(hint) if one is not type(None)]
        hint = inner[0] if get_origin(hint) in _UNIONS else hint
        if is_dataclass(hint):
            hint = get_type_hints(hint).get(name, Any)
        elif get_origin(hint) in _MAPPINGS:
            hint = get_args(hint)[1]
        else:
            return Any
    return hint


def _check_union(value: Any, hints: tuple[Any, ...], key: str) -> None:
    if value is None and type(None) in hints:
        return
    inner = [hint for hint in hints if hint is not type(None)]
    for hint in inner[:-1]:
        try:
            return check(value, hint, key)
        except MisfitError:
            continue
    check(value, inner[-1], key)


def _check_mapping(value: Any, key: str) -> None:
    if not isinstance(value, collections.abc.Mapping):
        _refuse(key, "keys and values", value)
    for name in value:
        if not isinstance(name, str):
            _refuse(key, "keys that are text", name)


def _check_plain(value: Any, hint: Any, key: str) -> None:
    expected, allowed = _PLAIN[hint]
    wrong_truth = isinstance(value, bool) and hint is not bool
    if wrong_truth or not isinstance(value, allowed):
        quoted = " (in quotes, if it is meant as text)" if hint is str else ""
        _refuse(key, expected + (quoted if wrong_truth else ""), value)


def _refuse(key: str, expected: str, value: Any) -> None:
    found = "nothing" if value is None else " ".join(repr(value).split())[:80]
    raise MisfitError(f"{key}: expected {expected}, found {found}")
