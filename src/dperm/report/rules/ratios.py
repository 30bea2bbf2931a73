"""Rules about one number over another: ahead, alike, short of, no progress."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from dperm.report.controls import (
    EXCHANGED,
    NOTHING_LEARNT,
    Control,
    controlled,
)
from dperm.report.evidence import (
    AbsentError,
    Estimate,
    Evidence,
    MissingError,
    matching,
)
from dperm.report.groups import by_group, together
from dperm.report.rules.shared import (
    Each,
    Where,
    error_at_start,
    split,
)
from dperm.report.verdicts import (
    Finding,
)


def _ratio(
    evidence: Evidence, file: str, over: Any, under: Any, where: Where, each: Each,
    need: Any, given: Any,
) -> Finding:  # fmt: skip
    target, reader = split(given)

    def measure(part: pd.DataFrame) -> Estimate:
        top, bottom = (reader.of(matching(part, one, file)) for one in (over, under))
        return top.over(bottom)

    found = by_group(evidence.rows(file, where), each, measure)
    return together(found, target, need)


@controlled(EXCHANGED, NOTHING_LEARNT)
def ratio(
    evidence: Evidence,
    file: str,
    over: dict[str, Any],
    under: dict[str, Any],
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """One number over another, in every group: ahead of, times faster, within a factor.

    ``over`` and ``under`` say which rows; several algorithms stand for the best of them
    where ``best`` is given.
    """
    return _ratio(evidence, file, over, under, where, each, need, reading)


def _turned(options: dict[str, Any]) -> dict[str, Any]:
    return options | {"files": options["files"][::-1]}


@controlled(Control("the two files exchanged", _turned), NOTHING_LEARNT)
def contrast(
    evidence: Evidence,
    files: list[str],
    over: dict[str, Any],
    under: dict[str, Any],
    each: str,
    where: Where = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """How a ratio of the first file compares with the same ratio of the second."""
    target, reader = split(reading)

    def ratios(file: str) -> dict[str, Estimate | MissingError]:
        def measure(part: pd.DataFrame) -> Estimate:
            top, bottom = (
                reader.of(matching(part, one, file)) for one in (over, under)
            )
            return top.over(bottom)

        return by_group(evidence.rows(file, where), each, measure)

    first, second = (ratios(file) for file in files)
    found: dict[str, Estimate | MissingError] = {}
    for name, one in first.items():
        other = second.get(name, AbsentError(f"{files[1]} has no {name}"))
        both = isinstance(one, Estimate) and isinstance(other, Estimate)
        found[name] = one.over(other) if both else _lost(one, other)  # type: ignore
    return together(found, target, need)


def _lost(*several: Estimate | MissingError) -> MissingError:
    return next(each for each in several if isinstance(each, MissingError))


def _rival(options: dict[str, Any]) -> dict[str, Any] | None:
    """The claim about another algorithm, of which the opposite is known."""
    where = {**(options.get("where") or {}), **options["rival"]}
    return options | {"where": where}


@controlled(Control("another algorithm, which does make progress", _rival))
def stuck(
    evidence: Evidence,
    file: str,
    rival: dict[str, Any],
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """The start over the end is about 1: nothing is learnt.

    ``rival`` says which rows would have to show progress for that to mean anything.
    """
    start, end = {"x": 0.0}, dict[str, Any]()
    return _ratio(evidence, file, start, end, where, each, need, reading)


@controlled(NOTHING_LEARNT)
def progress(
    evidence: Evidence,
    file: str,
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """The start over the end is above 1: something is learnt."""
    start, end = {"x": 0.0}, dict[str, Any]()
    return _ratio(evidence, file, start, end, where, each, need, reading)


@controlled(EXCHANGED, Control("the first at w = 0", lambda o: o | {"at_start": True}))
def short(
    evidence: Evidence,
    file: str,
    over: dict[str, Any],
    under: dict[str, Any],
    start: float,
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    at_start: bool = False,
    **reading: Any,
) -> Finding:
    """How far one falls short of another, over the other's drop from w = 0.

    0 is as good as it, 1 is ``start``, which is no better than nothing learnt.
    """
    target, reader = split(reading)

    def measure(part: pd.DataFrame) -> Estimate:
        worse, better = (reader.of(matching(part, one, file)) for one in (over, under))
        if at_start:
            worse = Estimate.exactly(start)
        drop = start - better.value
        if not drop > 0:
            raise MissingError("the other one made no progress")
        half = math.hypot(worse.high - worse.low, better.high - better.low) / 2
        apart = worse.value - better.value
        return Estimate(*(each / drop for each in (apart, apart - half, apart + half)))

    return together(by_group(evidence.rows(file, where), each, measure), target, need)


def _one_at_start(name: str) -> Control:
    def chosen(options: dict[str, Any]) -> dict[str, Any] | None:
        return options | {"at_start": name}

    return Control(f"{name} at w = 0", chosen)


def _elsewhere(options: dict[str, Any]) -> dict[str, Any]:
    return options | {"where": options["elsewhere"], "need": "any"}


@controlled(Control("problems on which they must differ", _elsewhere))
def identity(
    evidence: Evidence,
    file: str,
    over: dict[str, Any],
    under: dict[str, Any],
    elsewhere: dict[str, Any],
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    **reading: Any,
) -> Finding:
    """Two formulas agree, where others than these would not.

    Formulas that agree ``elsewhere`` too are the same by construction.
    """
    return _ratio(evidence, file, over, under, where, each, need, reading)


@controlled(_one_at_start("over"), _one_at_start("under"))
def alike(
    evidence: Evidence,
    file: str,
    over: dict[str, Any],
    under: dict[str, Any],
    start: dict[str, str],
    where: Where = None,
    each: Each = None,
    need: str | float = "all",
    at_start: str = "",
    **reading: Any,
) -> Finding:
    """Two errors are alike, and either would not be if it were that of w = 0.

    ``start``: file, value and key (a column of both files) of the error at w = 0.
    """
    target, reader = split(reading)

    def measure(part: pd.DataFrame) -> Estimate:
        found = {name: reader.of(matching(part, one, file))
                 for name, one in (("over", over), ("under", under))}  # fmt: skip
        if at_start:
            found[at_start] = error_at_start(evidence, start, part)
        return found["over"].over(found["under"])

    return together(by_group(evidence.rows(file, where), each, measure), target, need)
