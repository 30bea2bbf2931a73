"""The rules that judge claims, found by name, and what most of them share.

A rule takes the evidence and its options and returns a ``Finding``; a paper's own
``rules.py`` stands before these. A claim that holds is put to the controls of its rule,
under which it ought to fail: one that holds there too says nothing.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, TypeVar, get_type_hints

import pandas as pd

from dperm.core.experiment import schema, validation
from dperm.core.experiment.validation import one_of
from dperm.kinds.proofs import Argument
from dperm.pipeline import products
from dperm.report.evidence import (
    NOTHING,
    PENDING,
    UNTESTED,
    AbsentError,
    Alteration,
    Each,
    Estimate,
    Evidence,
    Finding,
    MissingError,
    Range,
    Reading,
    Where,
    by_group,
    groups,
    matching,
    together,
)
from dperm.store.closure import functions

Rule = Callable[..., Finding]
OURS = ("dperm.report.rules.measures",)
# Endings of the functions that the option ``argument`` names.
ENDINGS = {"proof": "", "printed_noise": "_noise"}
Options = dict[str, Any]
OptionsMap = Callable[[Options], Options | None]
TableMap = Callable[[pd.DataFrame, Options], pd.DataFrame]
Function = TypeVar("Function", bound=Callable[..., Any])
MEASURED = ("mean", "min", "max", "std", "relative_error", "error")
REQUIRED = inspect.Parameter.empty
ROWS: dict[str, Any] = {"file": str, "where": Where, "each": Each, "need": str | float}
ENDS = {key: each for key, each in get_type_hints(Range.of).items() if key != "return"}
READING = get_type_hints(Reading)


class OutsideError(RuntimeError):
    """A theorem that applies to no row of the evidence."""


# --- controls -------------------------------------------------------------------------


@dataclass(frozen=True)
class Control:
    """Something that a claim must not survive."""

    name: str  #: for the reader
    #: the rule's options under the control; None where it does not apply
    options: OptionsMap = lambda options: options
    #: maps a table of evidence and the options to what the control makes of it
    table: TableMap | None = None

    def alteration(self, options: Options) -> Alteration:
        """What the control makes of every table, given the claim's options."""
        alter = self.table
        return lambda table, _: alter(table, options) if alter else table


def controlled(*controls: Control) -> Callable[[Function], Function]:
    """Put a rule under controls."""

    def decorate(function: Function) -> Function:
        function.controls = controls  # type: ignore[attr-defined]
        return function

    return decorate


def controls_of(function: Callable[..., Any]) -> tuple[Control, ...]:
    """The controls of a rule."""
    return getattr(function, "controls", ())


# --- other options --------------------------------------------------------------------


def changed(**other: Any) -> OptionsMap:
    """Options with other values."""
    return lambda options: options | other


def exchanged(first: str, second: str) -> OptionsMap:
    """Two options under each other's names; nothing where one is not there."""

    def swap(options: Options) -> Options | None:
        # That it happens somewhere does not keep the opposite from happening elsewhere.
        if not {first, second} <= set(options) or options.get("need") == "any":
            return None
        return options | {first: options[second], second: options[first]}

    return swap


def narrowed(key: str) -> OptionsMap:
    """The claim about the rows that an option names."""
    return lambda options: (
        options | {"where": {**(options.get("where") or {}), **options[key]}}
    )


def having(*keys: str) -> OptionsMap:
    """Applies where the claim has one of these options."""
    return lambda options: (
        options if any(options.get(each) is not None for each in keys) else None
    )


# --- other tables ---------------------------------------------------------------------


def constant(
    table: pd.DataFrame, columns: Iterable[str], value: float | pd.Series
) -> pd.DataFrame:
    """Those of the columns that there are, with one value."""
    there = [each for each in columns if each in table]
    return table.assign(**dict.fromkeys(there, value))


def measured(table: pd.DataFrame, options: Options) -> list[str]:
    """Columns that hold what was measured, with its intervals."""
    named = {options.get("value"), options.get("y"), *MEASURED}
    return [
        column
        for column in table.columns
        if column in named
        or column.endswith(("_low", "_high"))
        or column.removeprefix("fresh_") in named
    ]


def copied(table: pd.DataFrame, options: Options) -> pd.DataFrame:
    """The column that is judged, with the numbers of the one it is divided by."""
    value, per = options["value"], options["per"]
    return constant(table, [value], table[per]) if per in table else table


def scaled(factor: float) -> TableMap:
    """What is judged, times a factor."""
    return lambda table, options: table.assign(
        **{each: factor * table[each] for each in _judged(table, options)}
    )


def _inverted(table: pd.DataFrame, options: Options) -> pd.DataFrame:
    columns = _judged(table, options)
    ends = [*columns[:1], *reversed(columns[1:])]
    pairs = zip(columns, ends, strict=True)
    return table.assign(**{to: 1 / table[other] for to, other in pairs})


def _judged(table: pd.DataFrame, options: Options) -> list[str]:
    value = options.get("value")
    value = value or ("fresh_mean" if "fresh_mean" in table else "mean")
    if value not in table:
        return []
    place = list(table.columns).index(value)
    after = table.columns[place + 1 : place + 3]
    return [value, *(each for each in after if each.endswith(("_low", "_high")))]


NOTHING_LEARNT = Control(
    "w = 0, for all",
    table=lambda table, options: constant(table, measured(table, options), 1.0),
)
EXCHANGED = Control("the two exchanged", exchanged("over", "under"))
TURNED = Control("the two exchanged", exchanged("first", "second"))
INVERTED = Control("the two exchanged", table=_inverted)
LITTLE_NOISE = Control("a tenth of the noise (ten times epsilon)", table=scaled(10.0))
NONE = Control("nothing at all (0)", having("at_least", "above"), scaled(0.0))
MORE = Control("1.4 times the number", having("at_most", "below"), scaled(1.4))


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
        context = {"part", "read", "evidence", "file"} & set(takes)
        special = {key: takes[key].default for key in takes if key not in context}
        shared = [*(READING if "read" in context else ()), *(() if target else ENDS)]
        known = {"evidence": REQUIRED, "file": REQUIRED, **special}
        known |= dict.fromkeys(("where", "each", *shared)) | {"need": "all"}
        known |= defaults | special
        hints = READING | ENDS | ROWS | get_type_hints(measure)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        every = [inspect.Parameter(key, kind, default=known[key]) for key in known]
        every.sort(key=lambda parameter: parameter.default is not REQUIRED)
        signature = inspect.Signature(every)

        @wraps(measure)
        def judge(*args: Any, **options: Any) -> Finding:
            bound = signature.bind(*args, **options)
            bound.apply_defaults()
            options = bound.arguments
            evidence, file = options["evidence"], options["file"]
            aim, reader = split({key: options[key] for key in shared})

            def read(part: pd.DataFrame, where: Where = None, **other: Any) -> Estimate:
                rows = matching(part, where or {}, file)
                if lost := evidence.lost(rows, where):
                    raise AbsentError(f"no row of {', '.join(lost)}")
                return replace(reader, **other).of(rows)

            extra = {"read": read, "evidence": evidence, "file": file}
            extra = {key: extra[key] for key in context - {"part"}}
            extra |= {key: options[key] for key in special}
            numbers = grouped(
                evidence,
                file,
                options["where"],
                options["each"],
                partial(measure, **extra),
            )
            aim = target(options) if target else aim
            finding = together(numbers, aim, options["need"])
            return replace(finding, reason=before(options) + finding.reason)

        judge.__signature__ = signature  # type: ignore[attr-defined]
        judge.__annotations__ = {key: hints.get(key, Any) for key in known}
        return controlled(*controls)(judge)

    return decorate


def grouped(
    evidence: Evidence,
    file: str,
    where: Where,
    each: Each,
    measure: Callable[[pd.DataFrame], Estimate],
    keep: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows,
) -> dict[str, Estimate | MissingError]:
    """What is measured in every group of rows that a claim speaks of.

    ``keep`` leaves out rows of which a rule does not speak; a group of which none is
    left is not missing.
    """
    rows = evidence.rows(file, where)
    expected = evidence.expected(each, where)
    there = {name for name, _ in groups(rows, each)}
    numbers = by_group(keep(rows), each, measure)
    for name, error in numbers.items():
        if isinstance(error, AbsentError) and expected and name not in expected:
            numbers[name] = MissingError(str(error))  # there is no need of it
    for name, why in expected.items():
        if name not in there:
            numbers[name] = MissingError(why) if why else AbsentError("no row")
    for name in evidence.lost(rows, where, each):
        numbers[name] = AbsentError("no row")
    return numbers


def applied(function: Rule, options: Options, evidence: Evidence) -> Finding:
    """What a rule finds; a result that is not there, or is wrong, is a verdict too."""
    try:
        return function(evidence, **options)
    except AbsentError as error:
        return Finding(PENDING, str(error), missing=("all",))
    except MissingError as error:
        return Finding(UNTESTED, str(error))
    except OutsideError as error:
        control = "outside the theorem's preconditions"
        return Finding(NOTHING, str(error), control=control)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        text = f"{', '.join(evidence.used)} cannot be judged: {error!r}"
        return Finding(UNTESTED, text)


def function_of(config: schema.Config, name: str) -> Rule:
    """The rule of that name.

    Raises ConfigError if there is none.
    """
    return _named("rule", [*products.modules(config, "rules"), *OURS], name)


def argument_of(config: schema.Config, rule: str, name: str) -> Argument:
    """The argument of that name that a rule about proofs follows.

    A function of a paper's ``proofs.py``, or of ``dperm.kinds.proofs``. For what the
    printed noise costs it is the one whose name ends in ``_noise``.

    Raises ConfigError if there is none.
    """
    modules = products.modules(config, "proofs")
    return _named("options.argument", modules, name + ENDINGS[rule])


def _named(key: str, modules: Iterable[str], name: str) -> Callable[..., Any]:
    """The public function of that name in the first of the modules that has one."""
    places: dict[str, str] = {}
    for module in modules:
        places = dict.fromkeys(functions(module), module) | places
    one_of(key, name, sorted(places))
    return getattr(importlib.import_module(places[name]), name)


def check(config: schema.Config, name: str, options: Options) -> None:
    """Refuse an unknown rule or options it does not take.

    Raises ValueError, naming what was found and what was expected.
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
    missing, unknown = sorted(needed - set(options)), sorted(set(options) - known)
    if missing:
        raise ValueError(f"rule {name}: options {missing} missing")
    if set(takes) <= known | {"reading"} and unknown:
        raise ValueError(
            f"rule {name}: unknown options {unknown}; it takes {sorted(known)}"
        )
    for key, value in options.items():
        if value is not None:
            validation.check(value, hints.get(key, Any), f"rule {name}: {key}")
