"""The rules that judge claims, found by name, and the code that most of them share.

A rule takes the evidence and its options and returns a ``Finding``. Rules in a paper's
own ``rules.py`` take precedence. A claim that holds is tested with the negative
controls of its rule, under which it should fail: if it holds there too, it says
nothing.
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
# Endings that a rule adds to the name in the option ``argument``.
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
    """A negative control: altered results under which a claim must fail."""

    name: str  #: for the reader
    #: maps the rule's options to those under the control; None if it does not apply
    options: OptionsMap = lambda options: options
    #: maps a table of evidence and the options to the altered table
    table: TableMap | None = None
    #: whether it makes the contrary true: a claim that then holds even in part says
    #: nothing
    contrary: bool = False

    def alteration(self, options: Options) -> Alteration:
        """The control's change to every table, for the claim's options."""
        alter = self.table
        return lambda table, _: alter(table, options) if alter else table


def controlled(*controls: Control) -> Callable[[Function], Function]:
    """Decorate a rule with its negative controls."""

    def decorate(function: Function) -> Function:
        function.controls = controls  # type: ignore[attr-defined]
        return function

    return decorate


def controls_of(function: Callable[..., Any]) -> tuple[Control, ...]:
    """The negative controls of a rule."""
    return getattr(function, "controls", ())


# --- other options --------------------------------------------------------------------


def changed(**other: Any) -> OptionsMap:
    """Options with other values."""
    return lambda options: options | other


def exchanged(first: str, second: str) -> OptionsMap:
    """Exchange the values of two options; not applicable if one is missing."""

    def swap(options: Options) -> Options | None:
        # With "any", the opposite may hold elsewhere, so this is no control.
        if not {first, second} <= set(options) or options.get("need") == "any":
            return None
        return options | {first: options[second], second: options[first]}

    return swap


def narrowed(key: str) -> OptionsMap:
    """Restrict the claim to the rows that an option names."""
    return lambda options: (
        options | {"where": {**(options.get("where") or {}), **options[key]}}
    )


def having(*keys: str) -> OptionsMap:
    """Apply only if the claim has one of these options."""
    return lambda options: (
        options if any(options.get(each) is not None for each in keys) else None
    )


# --- other tables ---------------------------------------------------------------------


def constant(
    table: pd.DataFrame, columns: Iterable[str], value: float | pd.Series
) -> pd.DataFrame:
    """Set the existing ones of some columns to one value."""
    there = [each for each in columns if each in table]
    return table.assign(**dict.fromkeys(there, value))


def measured(table: pd.DataFrame, options: Options) -> list[str]:
    """Columns of measured numbers and of their intervals."""
    named = {options.get("value"), options.get("y"), *MEASURED}
    return [
        column
        for column in table.columns
        if column in named
        or column.endswith(("_low", "_high"))
        or column.removeprefix("fresh_") in named
    ]


def copied(table: pd.DataFrame, options: Options) -> pd.DataFrame:
    """Replace the judged column by the column that it is divided by."""
    value, per = options["value"], options["per"]
    return constant(table, [value], table[per]) if per in table else table


def scaled(factor: float) -> TableMap:
    """Multiply the judged numbers by a factor."""
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
EXCHANGED = Control("the two exchanged", exchanged("over", "under"), contrary=True)
TURNED = Control("the two exchanged", exchanged("first", "second"), contrary=True)
INVERTED = Control("the two exchanged", table=_inverted, contrary=True)
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
    """Make a rule from a function that measures a group of rows.

    The rule groups the rows of ``file`` that match ``where`` by ``each``. It compares
    the estimates of all groups, of any or of a share of them (``need``) with its
    target.

    Parameters
    ----------
    controls : Control
        Negative controls under which a claim must fail.
    reason : str or callable
        Beginning of the reason; a text names options in braces.
    target : callable, optional
        Maps the options to the target, if they do not include ``at_least`` and similar.
    defaults : Any
        Defaults of the options that rules share; ``REQUIRED`` if there is none.

    Returns
    -------
    callable
        Decorates a function of ``part``, the rows of a group, and of its own options.
        With an argument ``read`` the rule also takes the options of a ``Reading``:
        ``read(part, where)`` is the estimate read off the rows that match. A function
        that needs more than the rows has arguments ``evidence`` or ``file``.
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
    """Measure every group of rows that a claim is about.

    ``keep`` leaves out rows that the rule is not about. A group that loses all its rows
    in this way does not count as missing.
    """
    rows = evidence.rows(file, where)
    expected = evidence.expected(each, where)
    there = {name for name, _ in groups(rows, each)}
    numbers = by_group(keep(rows), each, measure)
    for name, error in numbers.items():
        if isinstance(error, AbsentError) and expected and name not in expected:
            numbers[name] = MissingError(str(error))  # the claim does not expect it
    for name, why in expected.items():
        if name not in there:
            numbers[name] = MissingError(why) if why else AbsentError("no row")
    for name in evidence.lost(rows, where, each):
        numbers[name] = AbsentError("no row")
    return numbers


def applied(function: Rule, options: Options, evidence: Evidence) -> Finding:
    """Apply a rule; a missing or wrong result is a verdict too, not an error."""
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

    Raises ConfigError if there is no such rule.
    """
    return _named("rule", [*products.modules(config, "rules"), *OURS], name)


def argument_of(config: schema.Config, rule: str, name: str) -> Argument:
    """The argument of that name that a rule about proofs follows.

    It is a function of a paper's ``proofs.py``, or of ``dperm.kinds.proofs``. For the
    rule ``printed_noise``, ``_noise`` is added to the name.

    Raises ConfigError if there is no such function.
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
    """Refuse an unknown rule, or options that it does not take.

    Raises ValueError, naming the found and the expected options.
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
