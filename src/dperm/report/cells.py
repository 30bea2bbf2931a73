"""Every cell of a published table as a claim, judged by the kind of number it holds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
    interval,
    shown,
)

Row = Any  # of a published table, as ``to_dict`` gives it


@dataclass(frozen=True)
class Judged:
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
    printed = row[published]
    low, high = (round(ours[f"{value}_{end}"]) for end in ("low", "high"))
    found = Estimate((low + high) / 2, low, high)
    idle = ours["median"] > 0.99 * ours["start"]
    if ours["tied"] > 0.5 and (low < high or idle):
        reason = (
            f"a tie: in {ours['tied']:.0%} of tunings another setting is as good to 1 %"
            f"{', and none learns anything' if idle else ''}; the number is {low} to "
            f"{high} by chance"
        )
        return Finding(UNTESTED, reason, found, shown(printed))
    verdict = REPRODUCED if low <= printed <= high else NOT
    reason = f"a tuning with five transcripts prints {low} to {high} (95 %)"
    return Finding(verdict, reason, found, shown(printed))


def seconds(
    row: Row, ours: Row, published: str, spread: str, value: str, std: str, runs: int
) -> Finding:
    """Seconds of a run on another machine: shown, and not comparable."""
    half = t_quantile(runs - 1) * ours[std] / math.sqrt(runs - 1)
    found = Estimate(ours[value], ours[value] - half, ours[value] + half)
    text = (
        f"{interval(found)} s here, {shown(row[published])} s printed, of other code "
        "on another machine"
    )
    return Finding(INCOMPARABLE, text, found, _text(row, published, spread))


def exact(row: Row, ours: Row, published: str, value: str) -> Finding:
    """A number that must come out to the digit."""
    printed, found = row[published], ours[value]
    verdict = REPRODUCED if found == printed else NOT
    reason = f"{shown(found)} here, {shown(printed)} printed"
    return Finding(verdict, reason, Estimate.exactly(found), shown(printed))


def formula(row: Row, ours: Row, published: str, value: str, limit: float) -> Finding:
    """A printed formula: how far its values are from what it stands for."""
    found = ours[value]
    verdict = REPRODUCED if found <= limit else NOT
    reason = (
        f"relative error {shown(found)} of the formula as printed, at most {limit:g}"
    )
    return Finding(verdict, reason, Estimate.exactly(found), str(row[published]))


def mark(row: Row, ours: Row, published: str, at_most: float, means: str) -> Finding:
    """A tick in a table: the number that stands for it is as small as it must be."""
    found = ours["value"]
    verdict = REPRODUCED if (found <= at_most) == (row[published] == "yes") else NOT
    reason = f"{means} {shown(found)}, a tick being at most {at_most:g}"
    return Finding(verdict, reason, Estimate.exactly(found), str(row[published]))


def _text(row: Row, published: str, spread: str | None) -> str:
    text = f"{row[published]:.4g}"
    return text if spread is None else f"{text} ± {row[spread]:.1g}"


KINDS = {each.__name__: each for each in (count, seconds, exact, formula, mark)}
LAW = "law"  # a mean of a tuned setting, judged with all others of its table


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
    keys = list(options["keys"])
    for column, how in options["cells"].items():
        if how["kind"] == LAW:
            yield from _by_law(evidence, printed, column, how, options)
            continue
        for row in printed.to_dict("records"):
            yield _one(evidence, row, column, how, keys, options)


# --- means of tuned settings ----------------------------------------------------------


def law_options(how: dict[str, Any], column: str, given: dict[str, Any]) -> Any:
    """What ``tuned.cells`` wants, of a cell's options."""
    names = ("decimals", "digits", "spread")
    own = {name: how[name] for name in names if name in how}
    return {"file": how.get("file", given["file"]), "keys": given["keys"],
            "column": column, "redrawn": how.get("redrawn", {}),
            "draws": how["draws"], **own}  # fmt: skip


def _by_law(
    evidence: Evidence,
    printed: pd.DataFrame,
    column: str,
    how: dict[str, Any],
    options: dict[str, Any],
) -> Iterator[Judged]:
    given = law_options(how, column, options)
    spread = how.get("std")
    try:
        found = tuned.cells(evidence, printed, given)
    except AbsentError as error:
        for row in printed.to_dict("records"):
            text = _text(row, column, spread)
            yield Judged(row, column, Finding(PENDING, str(error), published=text))
        return
    passed = tuned.verdicts(found, how["level"])
    corrected = tuned.holm({key: cell.probability for key, cell in found.items()})
    altered = _under_controls(evidence, printed, given)
    for row in printed.to_dict("records"):
        key, text = tuple(row[k] for k in options["keys"]), _text(row, column, spread)
        if key not in found:
            reason = f"{evidence.path(given['file'])} has no law for it"
            yield Judged(row, column, Finding(PENDING, reason, published=text))
            continue
        cell, verdict = found[key], passed[key]
        unnoticed = [name for name, seen in altered.items()
                     if seen[key].probability >= how["level"]]  # fmt: skip
        told = _blind(unnoticed) if verdict == REPRODUCED else ""
        reason = (
            f"printed {shown(cell.printed)}; a tuning with five transcripts prints "
            f"{interval(cell.law)}; p = {cell.probability:.2g}, {corrected[key]:.2g} "
            "after Holm's correction"
        )
        finding = Finding(NOTHING if told else verdict, reason, cell.law, text)
        names = told or (f"not noticed: {', '.join(unnoticed)}" if unnoticed else "")
        yield Judged(row, column, finding.put_to(names))


CHANGES: dict[str, tuned.Change] = {
    "w = 0": tuned.nothing_learnt,
    "errors x 0.7": tuned.scaled(0.7),
    "errors x 1.4": tuned.scaled(1.4),
}


def _under_controls(
    evidence: Evidence, printed: pd.DataFrame, given: Any
) -> dict[str, dict[tuned.Key, tuned.Cell]]:
    """The cells beside altered laws; each is one test, which needs no correction."""
    return {
        name: tuned.cells(evidence, printed, given, change)
        for name, change in CHANGES.items()
    }


def _blind(unnoticed: list[str]) -> str:
    """The controls that leave a cell with nothing to say; empty if none."""
    if "w = 0" in unnoticed:
        return "holds for w = 0"
    both = [name for name in unnoticed if name.startswith("errors")]
    return f"holds for {' and '.join(both)}" if len(both) > 1 else ""


# --- all other kinds ------------------------------------------------------------------


def _one(
    evidence: Evidence,
    row: Row,
    column: str,
    how: dict[str, Any],
    keys: list[str],
    options: dict[str, Any],
) -> Judged:
    given = dict(how)
    kind = given.pop("kind")
    printed = row[column]
    text = _text(row, column, None) if isinstance(printed, float) else str(printed)
    if "only" in given:
        only = given.pop("only")
        if any(row[key] not in values for key, values in only["where"].items()):
            finding = Finding(UNTESTED, only["otherwise"], published=text)
            return Judged(row, column, finding, other=True)
    if kind == "seconds":
        given["runs"] = evidence.config.scale.fresh or evidence.config.paper.fresh
    try:
        if kind == "mark":
            ours = {"value": _marked(evidence, row, keys, given, options)}
            return Judged(row, column, mark(row, ours, column, **given))
        where = {key: given.pop(key) for key in ("file", "also") if key in given}
        names = {key: row[key] for key in keys}
        ours = _ours(evidence, names, options | where)
        return Judged(row, column, KINDS[kind](row, ours, column, **given))
    except MissingError as error:
        verdict = PENDING if isinstance(error, AbsentError) else UNTESTED
        return Judged(row, column, Finding(verdict, str(error), published=text))


def _marked(
    evidence: Evidence,
    row: Row,
    keys: list[str],
    given: dict[str, Any],
    options: dict[str, Any],
) -> float:
    """The largest number of the rows behind a tick; takes its options off ``given``."""
    file = given.pop("file", options["file"])
    value, per = given.pop("value"), given.pop("per", None)
    rows = evidence.rows(file, given.pop("where", {key: row[key] for key in keys}))
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
    renamed = {options.get("renamed", {}).get(key, key): each
               for key, each in names.items()}  # fmt: skip
    table = matching(evidence.table(file), renamed | options.get("also", {}), file)
    known = table.dropna(axis=1, how="all")
    if len(table) != 1 or not set(renamed) < set(known.columns):
        text = " ".join(f"{each:g}" if isinstance(each, float) else str(each)
                        for each in names.values())  # fmt: skip
        raise AbsentError(f"{evidence.path(file)} has no result for {text}")
    found = table.iloc[0].to_dict()
    numbers = [each for each in found.values() if isinstance(each, float)]
    if numbers and np.isnan(numbers).all():
        raise MissingError(f"{evidence.path(file)} has empty cells only")
    return found
