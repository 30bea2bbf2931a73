"""Several groups of rows judged as one: the claim speaks of all, any or a share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd

from dperm.report.evidence import AbsentError, Estimate, MissingError
from dperm.report.verdicts import (
    CAVEAT,
    NOT,
    REPRODUCED,
    UNDECIDED,
    UNTESTED,
    WORSE,
    Finding,
    Range,
    Verdict,
    interval,
)

LISTED = 6  # groups that a reason lists


def groups(rows: pd.DataFrame, each: str | list[str] | None) -> Iterator[Any]:
    """(name, rows) of each group; the whole without columns to group by."""
    if each is None:
        yield "", rows
        return
    columns = [each] if isinstance(each, str) else each
    for keys, group in rows.groupby(columns, sort=False):
        yield ", ".join(f"{key:g}" if isinstance(key, float) else str(key)
                        for key in keys), group  # fmt: skip


def together(
    found: dict[str, Estimate | MissingError], target: Range, need: str | float
) -> Finding:
    """One finding for several groups.

    Parameters
    ----------
    found : dict
        Group to its estimate, or to why there is none.
    target : Range
    need : "all", "any" or a share
        How many groups the claim speaks of.
    """
    known = {n: each for n, each in found.items() if isinstance(each, Estimate)}
    lost = [f"{n}: {each}" for n, each in found.items() if n not in known]
    verdicts = {name: target.verdict(each) for name, each in known.items()}
    verdicts = {name: each for name, each in verdicts.items() if each != UNTESTED}
    if not verdicts:
        absent = any(isinstance(each, AbsentError) for each in found.values())
        text = "; ".join(lost) or "no group to judge"
        raise AbsentError(text) if absent else MissingError(text)
    known = {name: known[name] for name in verdicts}
    verdict = _combined(list(verdicts.values()), need)
    if lost and verdict is REPRODUCED and need == "all":
        verdict = CAVEAT
    held = _counted(list(verdicts.values())) if len(verdicts) > 1 else ""
    told = _listed(known, verdicts)
    parts = [f"expected {target}", held, told]
    parts += [f"missing {text}" for text in lost[:LISTED]]
    if len(lost) > LISTED:
        parts.append(f"and {len(lost) - LISTED} more missing")
    return Finding(
        verdict,
        "; ".join(filter(None, parts)),
        _decisive(known, verdicts, need if verdict != NOT else "all", target),
    )


def _counted(verdicts: list[Verdict]) -> str:
    """How many hold, nearly hold, and are undecided."""
    said = [f"{verdicts.count(REPRODUCED)} of {len(verdicts)} hold"]
    for kind, word in ((CAVEAT, "nearly"), (UNDECIDED, "undecided")):
        if verdicts.count(kind):
            said.append(f"{verdicts.count(kind)} {word}")
    return ", ".join(said)


def _combined(verdicts: list[Verdict], need: str | float) -> Verdict:
    if need == "any":
        return min(verdicts, key=WORSE.index)
    if need == "all":
        return max(verdicts, key=WORSE.index)
    wanted = float(need) * len(verdicts)
    counted = 0
    for kind in WORSE:
        counted += verdicts.count(kind)
        if counted >= wanted:
            return kind
    return NOT


def _listed(known: dict[str, Estimate], verdicts: dict[str, Verdict]) -> str:
    """The groups with their numbers; of many, those that fail and the range."""
    if len(known) <= LISTED:
        return "; ".join(_named(name, each) for name, each in known.items())
    failing = [name for name in known if verdicts[name] != REPRODUCED]
    shown_ones = [_named(name, known[name]) for name in failing[:LISTED]]
    if len(failing) > LISTED:
        shown_ones.append(f"and {len(failing) - LISTED} more that do not hold")
    ends = [pick(known, key=lambda name: known[name].value) for pick in (min, max)]
    return "; ".join([*shown_ones, "range " + " to ".join(
        _named(name, known[name]) for name in ends)])  # fmt: skip


def _named(name: str, found: Estimate) -> str:
    return f"{name}: {interval(found)}" if name else interval(found)


def _decisive(
    known: dict[str, Estimate],
    verdicts: dict[str, Verdict],
    need: str | float,
    target: Range,
) -> Estimate:
    """The estimate that decided: the worst for "all", best for "any", else middle."""

    def badness(name: str) -> tuple[int, float]:
        value = known[name].value
        over, under = value - target.high, target.low - value
        return WORSE.index(verdicts[name]), max(over, under)

    ordered = sorted(known, key=badness)
    place = {"all": -1, "any": 0}.get(str(need), (len(ordered) - 1) // 2)
    return known[ordered[place]]


Measure = Callable[[pd.DataFrame], Estimate]


def by_group(
    rows: pd.DataFrame, each: str | list[str] | None, measure: Measure
) -> dict[str, Estimate | MissingError]:
    """What ``measure`` finds in every group, or why it finds nothing."""
    found: dict[str, Estimate | MissingError] = {}
    for name, part in groups(rows, each):
        try:
            found[name] = measure(part)
        except MissingError as error:
            found[name] = error
    return found
