"""The verdict on a claim: its number in every group, its null, its readings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import pandas as pd

from dperm.claims.claims import Claim, groups
from dperm.claims.number import Missing, MissingRow, Number, Undefined
from dperm.claims.words import Tables, Words, evaluated, matching, unlike

Arguments = dict[str, Callable[..., Any]]  # of proofs, by name


class Verdict(StrEnum):
    """Verdict on a claim, from best to worst of several groups."""

    REPRODUCED = "reproduced"
    IN_PART = "in part"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"
    CONTRADICTED = "contradicted"
    UNINFORMATIVE = "uninformative"


REPRODUCED, IN_PART, UNDECIDED, NOT_RUN, CONTRADICTED, UNINFORMATIVE = Verdict
VERDICTS = tuple(Verdict)
SUPPORTED = (REPRODUCED, IN_PART)


@dataclass(frozen=True)
class Finding:
    """A verdict, and what it rests on."""

    verdict: Verdict
    number: Number | None = None  #: the decisive one
    numbers: dict[str, Number] = field(default_factory=dict)  #: by group
    #: absent, idle: groups without a result, and those whose result decides nothing,
    #: with the reasons
    absent: dict[str, str] = field(default_factory=dict)
    idle: dict[str, str] = field(default_factory=dict)
    left_out: int = 0  #: groups that the claim's condition leaves out
    reason: str = ""  #: why there is no number, or which null holds too
    readings: dict[str, Verdict] = field(default_factory=dict)
    shown: str = ""  #: the reading whose number this is
    #: on the defence, of what would be contradicted
    answer: Finding | None = None

    @property
    def missing(self) -> dict[str, str]:
        """Groups without a number, with the reason."""
        return self.absent | self.idle


def judged(
    claim: Claim, tables: Tables, arguments: Arguments, whole: bool = False
) -> Finding:
    """Judge a claim, under all of its readings if it has any, then its defence.

    What fails is contradicted only if the defence fails too. Raises Absent if results
    are ``whole`` and a table that is there lacks a group.
    """
    finding = _by_readings(claim, tables, arguments, whole)
    if finding.verdict != CONTRADICTED or not claim.defence:
        return finding
    answer = _by_readings(claim.answer, tables, arguments, whole)
    verdict = {REPRODUCED: IN_PART, UNINFORMATIVE: UNDECIDED}.get(
        answer.verdict, answer.verdict
    )
    return replace(finding, verdict=verdict, answer=answer)


def _by_readings(
    claim: Claim, tables: Tables, arguments: Arguments, whole: bool
) -> Finding:
    findings = {
        name: _against_nulls(reading, tables, arguments, whole)
        for name, reading in claim.read().items()
    }
    return _of_readings(claim, findings) if claim.readings else findings[""]


def _against_nulls(
    claim: Claim, tables: Tables, arguments: Arguments, whole: bool
) -> Finding:
    """The finding on one reading: uninformative if a null of the claim does as well."""
    finding = _combined(claim, tables, arguments, claim.estimate, whole=whole)
    # A number without an interval decides nothing, but its null may hold all the same.
    is_bare = any(number.bare for number in finding.numbers.values())
    for null in claim.nulls if finding.verdict in SUPPORTED or is_bare else ():
        changed = claim.changed(null) if isinstance(null, dict) else claim
        null_number = changed.estimate if isinstance(null, dict) else null
        verdict_of_null = _combined(
            changed, tables, arguments, null_number, finding.numbers
        ).verdict
        better = min(verdict_of_null, finding.verdict, key=VERDICTS.index)
        if verdict_of_null in SUPPORTED and better == verdict_of_null:
            return replace(finding, verdict=UNINFORMATIVE, reason=worded(null))
    return finding


def _combined(
    claim: Claim,
    tables: Tables,
    arguments: Arguments,
    number: str | float,
    own_numbers: dict[str, Number] | None = None,
    whole: bool = False,
) -> Finding:
    """The number of every group that a claim is about, and one verdict.

    ``own_numbers`` are the claim's numbers, for its null.
    """
    finding = Finding(UNDECIDED, numbers={}, absent={}, idle={})
    try:
        table = tables(claim.table) if claim.table else pd.DataFrame()
        rows = matching(table, claim.rows) if claim.table else table
    except Missing as error:
        if whole and isinstance(error, MissingRow):
            raise
        return replace(finding, verdict=NOT_RUN, reason=str(error))
    for point in groups(claim.each):
        name = ", ".join(map(worded, point.values()))
        reasons = [
            claim.without.get(str(coordinate)) for coordinate in point.values()
        ]
        try:
            group = matching(
                rows, {k: v for k, v in point.items() if k in rows}
            )
            if claim.table and group.empty:
                raise (
                    Undefined(next(filter(None, reasons)))
                    if any(reasons)
                    else MissingRow("no row")
                )
            words = Words(tables, claim.rows, point, group, arguments)
            words.exact = claim.exact
            words.number = (own_numbers or {}).get(name)
            words.badness = lambda number_of_group: badness(
                claim, number_of_group
            )
            if claim.only and not evaluated(claim.only, words):
                finding = replace(finding, left_out=finding.left_out + 1)
            else:
                number_of_group = Number.of_any(evaluated(number, words))
                if own_numbers is not None:  # of a null, whose value counts
                    number_of_group = replace(number_of_group, bare=False)
                finding.numbers[name] = number_of_group
        except Undefined as error:
            finding.idle[name] = str(error)
        except Missing as error:
            if whole and isinstance(error, MissingRow):
                words_of_group = [
                    name,
                    f"{error}{unlike(table, claim.rows | point)}",
                ]
                raise MissingRow(
                    ": ".join(filter(None, words_of_group))
                ) from None
            finding.absent[name] = str(error)
    return combined(claim, finding)


def worded(value: Any) -> str:
    """A value of a group, or a null, as text."""
    if isinstance(value, dict):
        return ", ".join(
            f"{key} {worded(inner)}" for key, inner in value.items()
        )
    return f"{value:g}" if isinstance(value, float) else str(value)


def verdict_of(claim: Claim, number: Number) -> Verdict:
    """Verdict on one number, by where its interval lies.

    Nothing is decided by a number whose interval is not known.
    """
    if number.bare:
        return UNDECIDED
    low, high, loose_low, loose_high = claim.range
    if loose_low <= number.low and number.high <= loose_high:
        return REPRODUCED if low <= number.value <= high else IN_PART
    if number.high < loose_low or number.low > loose_high:
        return CONTRADICTED
    return UNDECIDED


def badness(claim: Claim, number: Number) -> tuple[int, float]:
    """How far from holding a number is; the largest is the worst."""
    low, high, *_ = claim.range
    distance = max(number.value - high, low - number.value)
    return VERDICTS.index(verdict_of(claim, number)), distance


def combined(claim: Claim, seen: Finding) -> Finding:
    """One verdict for all groups, and the decisive number.

    A group without its result leaves "not run". One that decides nothing leaves a
    caveat where all are needed and most decide something, else "undecided".
    """
    numbers = seen.numbers
    total = len(seen.numbers) + len(seen.missing)
    if not total:
        return replace(
            seen, verdict=UNINFORMATIVE, reason=f"nowhere {claim.only}"
        )
    if not numbers:
        return replace(seen, verdict=NOT_RUN if seen.absent else UNDECIDED)
    are_few_missing = (
        claim.required == "all" and 2 * len(seen.missing) <= total
    )
    verdict_of_idle = IN_PART if are_few_missing else UNDECIDED
    verdicts = [verdict_of(claim, number) for number in numbers.values()]
    verdicts += [NOT_RUN] * len(seen.absent) + [verdict_of_idle] * len(
        seen.idle
    )
    verdicts.sort(key=VERDICTS.index)
    share = {"all": 1.0, "any": 0.0}.get(str(claim.required))
    share = float(claim.required) if share is None else share
    needed = max(math.ceil(share * total), 1)
    verdict = verdicts[needed - 1]
    ranked = sorted(
        numbers.values(), key=lambda number: badness(claim, number)
    )
    decisive = ranked[min(needed, len(ranked)) - 1]
    return replace(seen, verdict=verdict, number=decisive)


def _of_readings(claim: Claim, findings: dict[str, Finding]) -> Finding:
    """Under all readings, under some, or under none that was tried.

    Shown is the reading that decides: the worst if all hold, the first that holds if
    some do, one that is undecided if that is why, and else the one nearest to holding.
    """
    verdicts = {name: finding.verdict for name, finding in findings.items()}
    supported = [
        name for name, verdict in verdicts.items() if verdict in SUPPORTED
    ]
    tried = [
        name
        for name, finding in findings.items()
        if finding.number or finding.verdict == UNINFORMATIVE
    ]
    are_all_supported = len(supported) == len(findings)
    if not tried:
        verdict = NOT_RUN if NOT_RUN in verdicts.values() else UNDECIDED
    elif are_all_supported:
        verdict = max(verdicts.values(), key=VERDICTS.index)
    elif supported:
        verdict = IN_PART
    elif {verdicts[name] for name in tried} == {UNINFORMATIVE}:
        verdict = UNINFORMATIVE
    else:  # a reading that is undecided or uninformative is not refuted
        is_refuted = len(tried) == len(findings)
        is_refuted &= not {UNDECIDED, UNINFORMATIVE} & {*verdicts.values()}
        verdict = CONTRADICTED if is_refuted else UNDECIDED
    deciding = [*supported, *tried, *findings][0]
    if are_all_supported:
        deciding = max(
            supported, key=lambda name: VERDICTS.index(verdicts[name])
        )
    elif verdict == UNDECIDED:
        undecided = [name for name in tried if verdicts[name] == UNDECIDED]
        deciding = [*undecided, deciding][0]
    elif verdict == CONTRADICTED:
        read = claim.read()
        deciding = min(
            tried, key=lambda name: _distance(read[name], findings[name])
        )
    return replace(
        findings[deciding], verdict=verdict, readings=verdicts, shown=deciding
    )


def _distance(claim: Claim, finding: Finding) -> tuple[int, float]:
    """How far from holding a reading is."""
    if finding.number is None:
        return VERDICTS.index(finding.verdict), math.inf
    return badness(claim, finding.number)
