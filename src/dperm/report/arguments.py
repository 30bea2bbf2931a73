"""The arguments of a paper's proofs, as its ``proofs.py`` follows them in numbers.

An argument is a function of a case (target, delta, sizes) that returns a
``dperm.kinds.proofs.Case``: what it yields beside what is claimed. One whose name ends
in ``_noise`` leaves the paper's argument aside and asks a tight accountant what the
printed noise costs. A paper's own stand before those of ``dperm.kinds.proofs``.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
from collections.abc import Iterator
from typing import Any

from dperm import schema
from dperm.kinds.proofs import Argument
from dperm.locate import hint
from dperm.pipeline import products

NOISE = "_noise"


def known(config: schema.Config, noise: bool) -> dict[str, str]:
    """Arguments by name, without the ending, and the modules that make them."""
    found: dict[str, str] = {}
    for module in products.modules(config, "proofs"):
        for name in products.names(module):
            if name.endswith(NOISE) == noise:
                found.setdefault(name.removesuffix(NOISE), module)
    return found


def function_of(config: schema.Config, name: str, noise: bool) -> Argument:
    """The function of an argument, or of what it says of the noise.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    modules = known(config, noise)
    if name not in modules:
        raise ValueError(
            f"options.argument: expected one of {', '.join(sorted(modules))}, found "
            f"{name!r}{hint(str(name), modules)}"
        )
    ending = NOISE if noise else ""
    return getattr(importlib.import_module(modules[name]), f"{name}{ending}")


def check(config: schema.Config, name: str, noise: bool, given: dict[str, Any]) -> None:
    """Refuse an argument there is not, or what it does not take.

    Raises
    ------
    ValueError
        Naming the option, what was found and what was expected.
    """
    takes = list(inspect.signature(function_of(config, name, noise)).parameters)
    if set(given) != set(takes):
        raise ValueError(
            f"options: argument {name} takes {', '.join(takes)}; found "
            f"{', '.join(given) or 'none'}"
        )


def crossed(given: dict[str, Any]) -> Iterator[dict[str, float]]:
    """All combinations of the values of each key; a number stands for itself."""
    lists = [each if isinstance(each, list) else [each] for each in given.values()]
    for values in itertools.product(*lists):
        yield dict(zip(given, map(float, values), strict=True))
