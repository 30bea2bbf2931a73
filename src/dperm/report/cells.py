"""Every cell of a published table as a claim, judged by the kind of number it holds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import fdtr, fdtrc

from dperm.present.intervals import t_quantile
from dperm.report import tuned
from dperm.report.evidence import (
    AbsentError,
    Estimate,
    Evidence,
    MissingError,
    matching,
)
from dperm.report.verdicts import (
    CAVEAT,
    INCOMPARABLE,
    NOT,
    NOTHING,
    PENDING,
    REPRODUCED,
    ROUGH,
    UNDECIDED,
    UNTESTED,
    Finding,
    Verdict,
    interval,
    rounded,
)

Row = Any  # of a published table, as ``to_dict`` gives it


class Judged(NamedTuple):
    """A cell and what was found; ``other`` marks what no run of ours can speak to."""

    row: Row
    column: str
    finding: Finding
    other: bool = False


def count(row: Row, ours: Row, published: str, value: str) -> Finding:
    """A mean number of coordinates, printed as a whole number.

    Reproduced where the law of what a tuning prints has the printed number in its
    central 95 %, rounded. Where settings are as good to 1 % and chance decides among
    them, there is nothing to test if they lead to other numbers, or learn nothing.
    """
    low, high = (round(ours[f"{value}_{end}"]) for end in ("low", "high"))
    found = Estimate((low + high) / 2, low, high)
    idle = ours["median"] > 0.99 * ours["start"]
    verdict = REPRODUCED if low <= row[published] <= high else NOT
    reason = f"{PRINTING[ours['prints']]} {low} to {high} (95 %)"
    if ours["tied"] > 0.5 and (low < high or idle):
        verdict = UNTESTED
        reason = (
            f"a tie: in {ours['tied']:.0%} of tunings another setting is as good to 1 %"
            f"{', and none learns anything' if idle else ''}; the number is {low} to "
            f"{high} by chance"
        )
    return Finding(verdict, reason, found, rounded(row[published]))


def seconds(
    row: Row, ours: Row, published: str, spread: str, value: str, std: str, runs: int
) -> Finding:
    """Seconds of a run on another machine: shown, and not comparable."""
    half = t_quantile(runs - 1) * ours[std] / math.sqrt(runs - 1)
    found = Estimate(ours[value], ours[value] - half, ours[value] + half)
    text = (
        f"{interval(found)} s here, {rounded(row[published])} s printed, of other code "
        "on another machine"
    )
    return Finding(INCOMPARABLE, text, found, _text(row, published, spread))


def deviation(
    row: Row, ours: Row, published: str, value: str, of: int, level: float, runs: int
) -> Finding:
    """A standard deviation ``of`` so many runs, printed to one digit, over n or n - 1.

    Beside that of our ``runs`` fresh ones, by the F-test: not reproduced at ``level``
    (with a caveat within ``ROUGH``), undecided if alone it would not be. A test that
    would notice neither three times it nor a third says nothing.
    """
    half, text = (
        (ours["fresh_ci_high"] - ours["fresh_ci_low"]) / 2,
        _text(row, published),
    )
    if not half > 0:
        reason = "our runs all end at w = 0, so that nothing varies"
        return Finding(UNTESTED, reason, published=text)
    fresh, printed = half * math.sqrt(runs) / t_quantile(runs - 1), row[published]
    unit = tuned.half_unit(printed, {"digits": 1})
    ends = (printed - unit, (printed + unit) * math.sqrt(of / (of - 1)))

    def chance(factor: float) -> float:
        low, high = ((factor * end / fresh) ** 2 for end in ends)
        free = (of - 1, runs - 1)
        return float(min(1.0, 2 * min(fdtr(*free, high), fdtrc(*free, low))))

    seen, close = chance(1.0), ends[0] / ROUGH <= fresh <= ends[1] * ROUGH
    outside = UNDECIDED if seen >= level else CAVEAT if close else NOT
    verdict = REPRODUCED if seen >= ALONE else outside
    control = ""
    if verdict == REPRODUCED and min(chance(3.0), chance(1 / 3)) >= ALONE:
        verdict, control = NOTHING, "holds for deviations x 3 and / 3"
    reason = (
        f"{text} printed; {fresh:.2g} of {runs} fresh runs, "
        f"{ours[value]:.2g} of the tuning's {of}; p = {seen:.2g}, level {level:g}"
    )
    return Finding(verdict, reason, Estimate.exactly(fresh), text, control)


def exact(row: Row, ours: Row, published: str, value: str) -> Finding:
    """A number that must come out to the digit."""
    printed, found = row[published], ours[value]
    reason = f"{rounded(found)} here, {rounded(printed)} printed"
    return _exactly(found == printed, reason, found, rounded(printed))


def formula(row: Row, ours: Row, published: str, value: str, limit: float) -> Finding:
    """A printed formula: how far its values are from what it stands for."""
    found = ours[value]
    reason = (
        f"relative error {rounded(found)} of the formula as printed, at most {limit:g}"
    )
    return _exactly(found <= limit, reason, found, str(row[published]))


def mark(row: Row, ours: Row, published: str, at_most: float, means: str) -> Finding:
    """A tick in a table: the number that stands for it is as small as it must be."""
    found = ours["value"]
    reason = f"{means} {rounded(found)}, a tick being at most {at_most:g}"
    held = (found <= at_most) == (row[published] == "yes")
    return _exactly(held, reason, found, str(row[published]))


def _exactly(held: bool, reason: str, found: float, published: str) -> Finding:
    verdict: Verdict = REPRODUCED if held else NOT
    return Finding(verdict, reason, Estimate.exactly(found), published)


def _text(row: Row, published: str, spread: str | None = None) -> str:
    text = f"{row[published]:.4g}"
    return text if spread is None else f"{text} ± {row[spread]:.1g}"


_ALL = (count, seconds, deviation, exact, formula, mark)
KINDS = {each.__name__: each for each in _ALL}
LAW = "law"  # a mean of a tuned setting, judged with all others of its table
STAR = "star"  # marks the least mean of several, 1 in the column
ALONE = 0.05  # level of one test, which needs no correction
PRINTING = {
    tuned.LEAST: "a tuning with five transcripts prints",
    tuned.FRESH: "five new runs of what a tuning chose print",
}
ERRORS = ["errors x 0.7", "errors x 1.4"]  # of which a law must notice one


def judged(
    evidence: Evidence, printed: pd.DataFrame, options: dict[str, Any]
) -> Iterator[Judged]:
    """Every cell.

    Parameters
    ----------
    printed : DataFrame
        The published table.
    options : dict
        ``file`` of ours, ``keys`` that name a row in both, ``also`` what our row must
        match besides, ``cells``: column to its kind, a file of its own if need be, and
        the options of its kind.
    """
    for column, how in options["cells"].items():
        if how["kind"] == LAW:
            yield from _by_law(evidence, printed, law_options(column, how, options))
            continue
        if how["kind"] == STAR:
            how = law_options(column, how, options)
            yield from _by_star(evidence, printed, column, how)
            continue
        for row in printed.to_dict("records"):
            yield _one(evidence, row, column, how, options)


def law_options(
    column: str, how: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """What ``tuned.cells`` takes, of a column and its table."""
    names = {"file": options["file"], "keys": options["keys"], "column": column}
    return {"prints": options.get("prints", tuned.LEAST), **names, **how}


def _by_law(
    evidence: Evidence, printed: pd.DataFrame, how: dict[str, Any]
) -> Iterator[Judged]:
    column, level = how["column"], how["level"]
    says = PRINTING[how["prints"]]
    try:
        found = tuned.cells(evidence, printed, how)
        missing = f"{evidence.path(how['file'])} has no law for it"
    except AbsentError as error:
        found, missing = {}, str(error)
    verdicts = tuned.verdicts(found, level)
    corrected = tuned.holm({key: cell.probability for key, cell in found.items()})
    altered = {  # each is one test, which needs no correction
        name: tuned.cells(evidence, printed, how, tuned.CHANGES[name])
        for name in ("w = 0", *ERRORS)
        if found
    }
    for row in printed.to_dict("records"):
        key = tuple(row[name] for name in how["keys"])
        text = _text(row, column, how.get("std"))
        if key not in found:
            yield Judged(row, column, Finding(PENDING, missing, published=text))
            continue
        cell, verdict = found[key], verdicts[key]
        unnoticed = [
            name for name, seen in altered.items() if seen[key].probability >= level
        ]
        control = f"not noticed: {', '.join(unnoticed)}" if unnoticed else ""
        blind = ["w = 0"] if "w = 0" in unnoticed else ERRORS
        if verdict == REPRODUCED and set(blind) <= set(unnoticed):
            verdict, control = NOTHING, f"holds for {' and '.join(blind)}"
        reason = (
            f"printed {rounded(cell.printed)}; {says} "
            f"{interval(cell.law)}; p = {cell.probability:.2g}, {corrected[key]:.2g} "
            "after Holm's correction"
        )
        finding = Finding(verdict, reason, cell.law, text, control)
        yield Judged(row, column, finding)


def _by_star(
    evidence: Evidence, printed: pd.DataFrame, star: str, how: dict[str, Any]
) -> Iterator[Judged]:
    """Every star: whether that cell prints the least of its row, by their laws.

    Reproduced where it does in 95 % of tunings, not where in fewer than ``level``; in
    between it is a tie. ``column`` of the options is that of the means.
    """
    try:
        found = tuned.cells(evidence, printed, how)
        missing = f"{evidence.path(how['file'])} has no law for it"
    except AbsentError as error:
        found, missing = {}, str(error)
    for row in printed[printed[star] == 1].to_dict("records"):
        *of, mine = key = tuple(row[name] for name in how["keys"])
        chances = tuned.least({k: c for k, c in found.items() if [*k[:-1]] == of})
        if key not in chances:
            yield Judged(row, star, Finding(PENDING, missing, published=str(mine)))
            continue
        best = max(chances, key=chances.__getitem__)
        chance = Estimate.exactly(chances[key])
        reason = f"the least of its row in {chances[key]:.1%} of tunings"
        reason += "" if best == key else f"; {best[-1]} in {chances[best]:.1%}"
        verdict = REPRODUCED if chance.value >= 1 - ALONE else UNTESTED
        if verdict == UNTESTED:
            reason = f"a tie: {reason}"
        if chance.value < how["level"]:
            verdict = NOT
        yield Judged(row, star, Finding(verdict, reason, chance, str(mine)))


def _one(
    evidence: Evidence,
    row: Row,
    column: str,
    how: dict[str, Any],
    options: dict[str, Any],
) -> Judged:
    given = dict(how)
    kind, only = given.pop("kind"), given.pop("only", None)
    printed, config = row[column], evidence.config
    text = _text(row, column) if isinstance(printed, float) else str(printed)
    if only and any(row[key] not in each for key, each in only["where"].items()):
        finding = Finding(UNTESTED, only["otherwise"], published=text)
        return Judged(row, column, finding, other=True)
    names = {key: row[key] for key in options["keys"]}
    if kind in ("seconds", "deviation"):
        given["runs"] = config.scale.fresh or config.paper.fresh
    try:
        if kind == "mark":
            ours = {"value": _largest(evidence, names, given, options["file"])}
        else:
            where = {key: given.pop(key) for key in ("file", "also") if key in given}
            if kind == "count":  # of the runs behind the printed mean
                prints = options.get("prints", tuned.LEAST)
                where["also"] = where.get("also", {}) | {"prints": prints}
            ours = _ours(evidence, names, options | where)
        return Judged(row, column, KINDS[kind](row, ours, column, **given))
    except MissingError as error:
        verdict = PENDING if isinstance(error, AbsentError) else UNTESTED
        return Judged(row, column, Finding(verdict, str(error), published=text))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        reason = f"{evidence.path(options['file'])} cannot be judged: {error!r}"
        return Judged(row, column, Finding(UNTESTED, reason, published=text))


def _largest(evidence: Evidence, names: Row, given: dict[str, Any], file: str) -> float:
    """The largest number of the rows behind a tick; takes its options off ``given``."""
    file = given.pop("file", file)
    value, per = given.pop("value"), given.pop("per", None)
    rows = evidence.rows(file, given.pop("where", names))
    found = rows[value] / rows[per] if per else rows[value]
    if found.isna().all():
        raise MissingError(f"{evidence.path(file)} has no {value}")
    return float(found.max())


def _ours(evidence: Evidence, names: Row, options: dict[str, Any]) -> Row:
    """Our row for a published one.

    Raises AbsentError or MissingError if there is none; if it is empty.
    """
    file = options["file"]
    renamed = {
        options.get("renamed", {}).get(key, key): each for key, each in names.items()
    }
    table = matching(evidence.table(file), renamed | options.get("also", {}), file)
    known = table.dropna(axis=1, how="all")
    if len(table) != 1 or not set(renamed) < set(known.columns):
        text = " ".join(
            f"{each:g}" if isinstance(each, float) else str(each)
            for each in names.values()
        )
        raise AbsentError(f"{evidence.path(file)} has no result for {text}")
    found = table.iloc[0].to_dict()
    numbers = [each for each in found.values() if isinstance(each, float)]
    if numbers and np.isnan(numbers).all():
        raise MissingError(f"{evidence.path(file)} has empty cells only")
    return found
