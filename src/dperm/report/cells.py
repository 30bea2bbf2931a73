"""Every cell of a published table as a claim, judged by the kind of number it holds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

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
    INCOMPARABLE,
    NOT,
    NOTHING,
    PENDING,
    REPRODUCED,
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
    reason = f"a tuning with five transcripts prints {low} to {high} (95 %)"
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


KINDS = {each.__name__: each for each in (count, seconds, exact, formula, mark)}
LAW = "law"  # a mean of a tuned setting, judged with all others of its table
ERRORS = ["errors x 0.7", "errors x 1.4"]  # of which a law must notice one


def judged(
    evidence: Evidence, printed: pd.DataFrame, options: dict[str, Any]
) -> Iterator[Judged]:
    """Every cell.

    Parameters
    ----------
    evidence : Evidence
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
        for row in printed.to_dict("records"):
            yield _one(evidence, row, column, how, options)


# --- means of tuned settings ----------------------------------------------------------


def law_options(
    column: str, how: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """What ``tuned.cells`` takes, of a column and its table."""
    return {"file": options["file"], "keys": options["keys"], "column": column, **how}


def _by_law(
    evidence: Evidence, printed: pd.DataFrame, how: dict[str, Any]
) -> Iterator[Judged]:
    column, level = how["column"], how["level"]
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
            f"printed {rounded(cell.printed)}; a tuning with five transcripts prints "
            f"{interval(cell.law)}; p = {cell.probability:.2g}, {corrected[key]:.2g} "
            "after Holm's correction"
        )
        finding = Finding(verdict, reason, cell.law, text, control)
        yield Judged(row, column, finding)


# --- all other kinds ------------------------------------------------------------------


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
    if kind == "seconds":
        given["runs"] = config.scale.fresh or config.paper.fresh
    try:
        if kind == "mark":
            ours = {"value": _largest(evidence, names, given, options["file"])}
        else:
            where = {key: given.pop(key) for key in ("file", "also") if key in given}
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

    Raises
    ------
    AbsentError, MissingError
        If there is none; if it is empty.
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
