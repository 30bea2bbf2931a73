"""The rules that judge claims, found by name.

A rule takes the evidence and its options and returns a ``Finding``. None of those here
knows a paper; a paper may bring its own, functions of its ``rules.py``, which stand
before these.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_type_hints

from dperm import schema, typed
from dperm.pipeline import products
from dperm.report import named
from dperm.report.evidence import Reading
from dperm.report.rules import (
    bounds,
    counts,
    curves,
    exponents,
    levels,
    proofs,
    ratios,
    solutions,
    tables,
)
from dperm.report.rules.shared import ENDS
from dperm.report.verdicts import Finding

Rule = Callable[..., Finding]
OURS = (levels, ratios, exponents, bounds, counts, curves, proofs, solutions, tables)
ENDINGS = {proofs.proof: "", proofs.printed_noise: "_noise"}  # of their arguments


def function_of(config: schema.Config, name: str) -> Rule:
    """The rule of that name.

    Raises
    ------
    ConfigError
        If there is none.
    """
    ours = [module.__name__ for module in OURS]
    return named.function_of("rule", [*products.modules(config, "rules"), *ours], name)


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
    if function in ENDINGS and "argument" in options:
        argument = named.argument(config, options["argument"], ENDINGS[function])
        takes |= inspect.signature(argument).parameters
        del takes["given"]
    needed = {key for key, each in takes.items() if _needed(each)}
    if not needed <= set(options):
        raise ValueError(
            f"rule {name}: options {sorted(needed - set(options))} missing"
        )
    known = {key for key, each in takes.items() if each.kind is not each.VAR_KEYWORD}
    if "reading" in takes:
        known |= {each.name for each in fields(Reading)} | {*ENDS}
    closed = set(takes) <= known | {"reading"}
    if closed and not set(options) <= known:
        wrong = sorted(set(options) - known)
        raise ValueError(
            f"rule {name}: unknown options {wrong}; it takes {sorted(known)}"
        )
    hints = get_type_hints(Reading) | dict.fromkeys(ENDS, list[float] | float)
    hints |= get_type_hints(function)
    for key, value in options.items():
        if value is not None:
            typed.check(value, hints.get(key, Any), f"rule {name}: {key}")


def _needed(parameter: inspect.Parameter) -> bool:
    plain = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    return plain and parameter.default is parameter.empty
