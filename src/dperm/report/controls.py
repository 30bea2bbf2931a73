"""Controls that must fail: what a claim would say of evidence that cannot bear it out.

A claim that holds is also put to the controls of its rule. Each alters the evidence or
the claim's options so that the claim ought to fail: nothing learnt, algorithms
exchanged, a number a third off. A claim that holds there too says nothing here. Rules
name their controls when they are defined (``controlled``), no claim by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd

Options = dict[str, Any]
OptionsMap = Callable[[Options], Options | None]
TableMap = Callable[[pd.DataFrame, Options], pd.DataFrame]
Function = TypeVar("Function", bound=Callable[..., Any])
ENDS = ("_low", "_high")
MEASURED = ("mean", "min", "max", "std", "relative_error", "error")


@dataclass(frozen=True)
class Control:
    """Something that a claim must not survive.

    Attributes
    ----------
    name : str
        For the reader.
    options : callable
        The rule's options under the control; None where it does not apply.
    table : callable, optional
        Maps a table of evidence and the options to what the control makes of it.
    """

    name: str
    options: OptionsMap = lambda options: options
    table: TableMap | None = None

    def alteration(self, options: Options) -> Callable[[pd.DataFrame], pd.DataFrame]:
        """What the control makes of every table, given the claim's options."""
        alter = self.table
        return (lambda table: alter(table, options)) if alter else lambda table: table


def controlled(*controls: Control) -> Callable[[Function], Function]:
    """Put a rule under controls."""

    def decorate(function: Function) -> Function:
        function.controls = controls  # type: ignore[attr-defined]
        return function

    return decorate


def of(function: Callable[..., Any]) -> tuple[Control, ...]:
    """The controls of a rule."""
    return getattr(function, "controls", ())


# --- other options --------------------------------------------------------------------


def changed(**other: Any) -> OptionsMap:
    """Options with other values."""
    return lambda options: options | other


def exchanged(first: str, second: str) -> OptionsMap:
    """Two options under each other's names; nothing where one is not there."""

    def swap(options: Options) -> Options | None:
        if not {first, second} <= set(options):
            return None
        return options | {first: options[second], second: options[first]}

    return swap


def narrowed(key: str) -> OptionsMap:
    """The claim about the rows that an option names."""

    def narrow(options: Options) -> Options:
        return options | {"where": {**(options.get("where") or {}), **options[key]}}

    return narrow


def having(*keys: str) -> OptionsMap:
    """Applies where the claim has one of these options."""

    def chosen(options: Options) -> Options | None:
        there = any(options.get(each) is not None for each in keys)
        return options if there else None

    return chosen


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
        or column.endswith(ENDS)
        or column.removeprefix("fresh_") in named
    ]


def copied(table: pd.DataFrame, options: Options) -> pd.DataFrame:
    """The column that is judged, with the numbers of the one it is divided by."""
    value, per = options["value"], options["per"]
    return constant(table, [value], table[per]) if per in table else table


def scaled(factor: float) -> TableMap:
    """What is judged, times a factor."""

    def alter(table: pd.DataFrame, options: Options) -> pd.DataFrame:
        columns = _judged(table, options)
        return table.assign(**{each: factor * table[each] for each in columns})

    return alter


def _inverted(table: pd.DataFrame, options: Options) -> pd.DataFrame:
    columns = _judged(table, options)
    ends = [*columns[:1], *reversed(columns[1:])]
    pairs = zip(columns, ends, strict=True)
    return table.assign(**{to: 1 / table[other] for to, other in pairs})


def _judged(table: pd.DataFrame, options: Options) -> list[str]:
    """The column that is judged, and its interval after it."""
    value = options.get("value")
    value = value or ("fresh_mean" if "fresh_mean" in table else "mean")
    if value not in table:
        return []
    place = list(table.columns).index(value)
    after = table.columns[place + 1 : place + 3]
    return [value, *(each for each in after if each.endswith(ENDS))]


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
