"""Controls that must fail: what a claim would say of evidence that cannot bear it out.

A claim that holds is also put to the controls of its rule. Each alters the evidence or
the claim's options so that the claim ought to fail: nothing learnt, algorithms
exchanged, a number a third off. A claim that holds there too says nothing here. Rules
name their controls when they are defined (``controlled``), no claim by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd

Options = dict[str, Any]
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
    options: Callable[[Options], Options | None] = lambda options: options
    table: Callable[[pd.DataFrame, Options], pd.DataFrame] | None = None


def controlled(*controls: Control) -> Callable[[Function], Function]:
    """Put a rule under controls."""

    def marked(function: Function) -> Function:
        function.controls = controls  # type: ignore[attr-defined]
        return function

    return marked


def of(function: Callable[..., Any]) -> tuple[Control, ...]:
    """The controls of a rule."""
    return getattr(function, "controls", ())


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


def _constant(table: pd.DataFrame, options: Options) -> pd.DataFrame:
    return table.assign(**dict.fromkeys(measured(table, options), 1.0))


def _value_columns(table: pd.DataFrame, options: Options) -> list[str]:
    """The column that is judged, and its interval after it."""
    value = options.get("value")
    value = value or ("fresh_mean" if "fresh_mean" in table else "mean")
    if value not in table:
        return []
    place = list(table.columns).index(value)
    after = [each for each in table.columns[place + 1 : place + 3]
             if each.endswith(ENDS)]  # fmt: skip
    return [value, *after]


def scaled(factor: float) -> Callable[[pd.DataFrame, Options], pd.DataFrame]:
    """What is judged, times a factor."""

    def alter(table: pd.DataFrame, options: Options) -> pd.DataFrame:
        columns = _value_columns(table, options)
        return table.assign(**{each: factor * table[each] for each in columns})

    return alter


def _inverted(table: pd.DataFrame, options: Options) -> pd.DataFrame:
    columns = _value_columns(table, options)
    ends = [columns[0], *reversed(columns[1:])] if columns else []
    return table.assign(
        **{to: 1 / table[other] for to, other in zip(columns, ends, strict=True)}
    )


def _exchanged(*pair: str) -> Callable[[Options], Options | None]:
    def swap(options: Options) -> Options | None:
        if not set(pair) <= set(options):
            return None
        first, second = pair
        return options | {first: options[second], second: options[first]}

    return swap


def _if_ended(key: str) -> Callable[[Options], Options | None]:
    """Applies where the claim has an end there."""
    ends = {"least": ("at_least", "above"), "most": ("at_most", "below")}

    def chosen(options: Options) -> Options | None:
        given = any(options.get(each) is not None for each in ends[key])
        return options if given else None

    return chosen


NOTHING_LEARNT = Control("w = 0, for all", table=_constant)
EXCHANGED = Control("the two exchanged", _exchanged("over", "under"))
TURNED = Control("the two exchanged", _exchanged("first", "second"))
INVERTED = Control("the two exchanged", table=_inverted)
LITTLE_NOISE = Control("a tenth of the noise (ten times epsilon)", table=scaled(10.0))
NONE = Control("nothing at all (0)", _if_ended("least"), scaled(0.0))
MORE = Control("1.4 times the number", _if_ended("most"), scaled(1.4))
