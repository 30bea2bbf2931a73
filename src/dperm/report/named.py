"""What a claim names, found among the functions of modules: rules, and arguments.

An argument is a function of a paper's ``proofs.py``, or of ``dperm.kinds.proofs``. For
what the printed noise costs it is the one whose name ends in ``_noise``.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dperm import schema
from dperm.kinds.proofs import Argument
from dperm.pipeline import products
from dperm.store.closure import functions
from dperm.validation import one_of


def function_of(key: str, modules: Iterable[str], name: str) -> Callable[..., Any]:
    """The public function of that name in the first of the modules that has one.

    Raises
    ------
    ConfigError
        If there is none; ``key`` is what named it.
    """
    found: dict[str, str] = {}
    for module in modules:
        found = dict.fromkeys(functions(module), module) | found
    one_of(key, name, sorted(found))
    return getattr(importlib.import_module(found[name]), name)


def argument(config: schema.Config, name: str, ending: str) -> Argument:
    """The argument of that name and ending."""
    modules = products.modules(config, "proofs")
    return function_of("options.argument", modules, f"{name}{ending}")


def crossed(given: dict[str, Any]) -> Iterator[dict[str, float]]:
    """All combinations of the values of each key; a number stands for itself."""
    lists = [each if isinstance(each, list) else [each] for each in given.values()]
    for values in itertools.product(*lists):
        yield dict(zip(given, map(float, values), strict=True))
