"""The rules that judge claims, found by name.

A rule takes the evidence and its options and returns a ``Finding``. None of those here
knows a paper; a paper may bring its own, functions of its ``rules.py``, which stand
before these.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from dperm import schema
from dperm.locate import hint
from dperm.pipeline import products
from dperm.report import arguments
from dperm.report.evidence import Reading
from dperm.report.rules import curves, levels, proofs
from dperm.report.verdicts import Finding

Rule = Callable[..., Finding]
OURS = (levels, curves, proofs)


def known(config: schema.Config) -> dict[str, str]:
    """Names of the rules a paper may use, and the modules they are in."""
    found: dict[str, str] = {}
    for module in (*products.modules(config, "rules"), *(m.__name__ for m in OURS)):
        for name in products.names(module):
            found.setdefault(name, module)
    return found


def function_of(config: schema.Config, name: str) -> Rule:
    """The rule of that name.

    Raises
    ------
    ValueError
        If there is none.
    """
    modules = known(config)
    if name not in modules:
        raise ValueError(
            f"rule {name!r} is unknown; expected one of {', '.join(sorted(modules))}"
            f"{hint(str(name), modules)}"
        )
    return getattr(importlib.import_module(modules[name]), name)


def check(config: schema.Config, name: str, options: dict[str, Any]) -> None:
    """Refuse an unknown rule or options it does not take.

    Raises
    ------
    ValueError
        Naming what was found and what was expected.
    """
    function = function_of(config, name)
    takes = dict(inspect.signature(function).parameters)
    takes.pop("evidence", None)
    needed = {key for key, each in takes.items() if _needed(each)}
    if not needed <= set(options):
        raise ValueError(
            f"rule {name}: options {sorted(needed - set(options))} missing"
        )
    if function in (proofs.proof, proofs.printed_noise):
        given = {key: each for key, each in options.items() if key != "argument"}
        noise = function is proofs.printed_noise
        arguments.check(config, options["argument"], noise, given)
        return
    reading = {each.name for each in fields(Reading)} if "reading" in takes else set()
    wrong = sorted(set(options) - set(takes) - reading)
    if wrong and "given" not in takes:
        raise ValueError(
            f"rule {name}: unknown options {wrong}; it takes "
            f"{sorted(set(takes) | reading)}"
        )


def _needed(parameter: inspect.Parameter) -> bool:
    plain = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    return plain and parameter.default is parameter.empty
