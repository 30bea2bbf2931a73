"""The rules that judge claims, found by name, and what most of them share.

A rule takes the evidence and its options and returns a ``Finding``. Most measure a
number in every group of rows and hold it against a target (``rule``, ``measures``); the
others are functions under ``controlled`` (``special``). None of ours knows a paper; a
paper may bring its own, functions of its ``rules.py``, which stand before these.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from typing import Any, get_type_hints

import pandas as pd

from dperm.core.experiment import schema, validation
from dperm.core.experiment.validation import one_of
from dperm.kinds.proofs import Argument
from dperm.pipeline import products
from dperm.report.controls import Control, Options, controlled
from dperm.report.evidence import (
    Each,
    Estimate,
    Reading,
    Where,
    by_group,
    matching,
)
from dperm.report.verdicts import Finding, Range, together
from dperm.store.closure import functions

Rule = Callable[..., Finding]
OURS = ("dperm.report.rules.measures", "dperm.report.rules.special")
# Endings of the functions that the option ``argument`` names.
ENDINGS = {"proof": "", "printed_noise": "_noise"}
REQUIRED = inspect.Parameter.empty
ROWS: dict[str, Any] = {"file": str, "where": Where, "each": Each, "need": str | float}
ENDS = {key: each for key, each in get_type_hints(Range.of).items() if key != "return"}
READING = get_type_hints(Reading)


class OutsideError(RuntimeError):
    """A theorem that applies to no row of the evidence."""


def split(options: Options) -> tuple[Range, Reading]:
    """The target and the reading that a rule's options make."""
    rest = dict(options)
    target = Range.of(**{key: rest.pop(key) for key in ENDS if key in rest})
    return target, Reading(**rest)


def rule(
    *controls: Control,
    reason: str | Callable[[Options], str] = "",
    target: Callable[[Options], Range] | None = None,
    **defaults: Any,
) -> Callable[[Callable[..., Estimate]], Rule]:
    """Make a rule of what it measures in a group of rows.

    The rule groups the rows of ``file`` that match ``where`` by ``each``, and holds all
    of what it measures, any or a share of it (``need``) against its target.

    Parameters
    ----------
    controls : Control
        Under which a claim must fail.
    reason : str or callable
        Stands before the reason; a text names options in braces.
    target : callable, optional
        Of the options, where ``at_least`` and the like are none of them.
    defaults : Any
        Of the options that rules share; ``REQUIRED`` for one that must be there.

    Returns
    -------
    callable
        Decorates a function of ``part``, the rows of a group, and of options of its
        own. One with an argument ``read`` takes the options of a ``Reading`` too:
        ``read(part, where)`` is the estimate read off the rows that match. One that
        needs more than the rows has ``evidence`` or ``file``.
    """
    before = reason if callable(reason) else reason.format_map

    def decorate(measure: Callable[..., Estimate]) -> Rule:
        takes = inspect.signature(measure).parameters
        given = {"part", "read", "evidence", "file"} & set(takes)
        own = {key: each.default for key, each in takes.items() if key not in given}
        shared = [*(READING if "read" in given else ()), *(() if target else ENDS)]
        known = {"evidence": REQUIRED, "file": REQUIRED, **own}
        known |= dict.fromkeys(("where", "each", *shared)) | {"need": "all"}
        known |= defaults | own
        hints = READING | ENDS | ROWS | get_type_hints(measure)
        signature = _signature(known)

        @wraps(measure)
        def judge(*args: Any, **options: Any) -> Finding:
            bound = signature.bind(*args, **options)
            bound.apply_defaults()
            options = bound.arguments
            evidence, file = options["evidence"], options["file"]
            aim, reader = split({key: options[key] for key in shared})

            def read(part: pd.DataFrame, where: Where = None, **other: Any) -> Estimate:
                return replace(reader, **other).of(matching(part, where or {}, file))

            extra = {"read": read, "evidence": evidence, "file": file}
            extra = {key: extra[key] for key in given - {"part"}}
            extra |= {key: options[key] for key in own}
            rows = evidence.rows(file, options["where"])
            found = by_group(rows, options["each"], lambda part: measure(part, **extra))
            aim = target(options) if target else aim
            finding = together(found, aim, options["need"])
            return replace(finding, reason=before(options) + finding.reason)

        judge.__signature__ = signature  # type: ignore[attr-defined]
        judge.__annotations__ = {key: hints.get(key, Any) for key in known}
        return controlled(*controls)(judge)

    return decorate


def _signature(defaults: dict[str, Any]) -> inspect.Signature:
    """Of a function that takes these, those that must be there first."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    every = [inspect.Parameter(key, kind, default=one) for key, one in defaults.items()]
    return inspect.Signature(sorted(every, key=lambda one: one.default is not REQUIRED))


# --- by name --------------------------------------------------------------------------


def function_of(config: schema.Config, name: str) -> Rule:
    """The rule of that name.

    Raises
    ------
    ConfigError
        If there is none.
    """
    return _named("rule", [*products.modules(config, "rules"), *OURS], name)


def argument_of(config: schema.Config, rule: str, name: str) -> Argument:
    """The argument of that name that a rule about proofs follows.

    A function of a paper's ``proofs.py``, or of ``dperm.kinds.proofs``. For what the
    printed noise costs it is the one whose name ends in ``_noise``.

    Raises
    ------
    ConfigError
        If there is none.
    """
    modules = products.modules(config, "proofs")
    return _named("options.argument", modules, name + ENDINGS[rule])


def _named(key: str, modules: Iterable[str], name: str) -> Callable[..., Any]:
    """The public function of that name in the first of the modules that has one."""
    found: dict[str, str] = {}
    for module in modules:
        found = dict.fromkeys(functions(module), module) | found
    one_of(key, name, sorted(found))
    return getattr(importlib.import_module(found[name]), name)


def check(config: schema.Config, name: str, options: Options) -> None:
    """Refuse an unknown rule or options it does not take.

    Raises
    ------
    ValueError
        Naming what was found and what was expected.
    """
    function = function_of(config, name)
    takes = dict(inspect.signature(function).parameters)
    takes.pop("evidence", None)
    if name in ENDINGS and "argument" in options:
        follow = argument_of(config, name, options["argument"])
        takes |= inspect.signature(follow).parameters
        del takes["given"]
    hints = get_type_hints(function)
    known = {key for key, each in takes.items() if each.kind is not each.VAR_KEYWORD}
    needed = {key for key in known if takes[key].default is REQUIRED}
    if "reading" in takes:
        known, hints = known | {*READING, *ENDS}, READING | ENDS | hints
    if not needed <= set(options):
        raise ValueError(
            f"rule {name}: options {sorted(needed - set(options))} missing"
        )
    if set(takes) <= known | {"reading"} and not set(options) <= known:
        wrong = sorted(set(options) - known)
        raise ValueError(
            f"rule {name}: unknown options {wrong}; it takes {sorted(known)}"
        )
    for key, value in options.items():
        if value is not None:
            validation.check(value, hints.get(key, Any), f"rule {name}: {key}")
