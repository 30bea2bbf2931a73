"""Every cell of a published table as a claim, judged by the kind of number it holds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from dperm.present.intervals import t_quantile
from dperm.report.evidence import Estimate, Evidence, MissingError, matching
from dperm.report.verdicts import (
    CAVEAT,
    CLOSE,
    NOT,
    REPRODUCED,
    ROUGH,
    UNTESTED,
    Finding,
    Range,
    interval,
    shown,
)

PUBLISHED_RUNS = 5  # behind a printed mean
Row = Any  # of a published table, as ``to_dict`` gives it


def error(
    row: Row, ours: Row, published: str, spread: str | None = None,
    value: str = "fresh_mean", tuned: str = "mean", low: str = "fresh_ci_low",
    high: str = "fresh_ci_high",
) -> Finding:  # fmt: skip
    """A mean error of the tuned setting: ours on fresh runs, within a factor.

    Reproduced within ``CLOSE``, or within ``ROUGH`` where the two intervals cannot tell
    them apart. With a caveat within ``ROUGH``, or where the mean over the runs that the
    setting was chosen by, which is what the paper prints, is within ``CLOSE``.
    """
    printed = _printed(row, published, spread)
    ends = (ours.get(low), ours.get(high))
    fresh = Estimate(ours[value], *(ours[value] if e is None else e for e in ends))
    compared = fresh.over(printed)
    ratio, chosen = compared.value, ours[tuned] / printed.value
    alike = 1 / ROUGH <= ratio <= ROUGH
    same = compared.low <= 1 <= compared.high
    if 1 / CLOSE <= ratio <= CLOSE or (alike and same):
        verdict = REPRODUCED
    elif alike or 1 / CLOSE <= chosen <= CLOSE:
        verdict = CAVEAT
    else:
        verdict = NOT
    reason = (
        f"fresh {interval(fresh)}, tuning {shown(ours[tuned])}, printed "
        f"{interval(printed)}; fresh over printed {interval(compared)}, tuning over "
        f"printed {shown(chosen)}; close is within {CLOSE:g}, rough within {ROUGH:g}"
    )
    return Finding(verdict, reason, fresh, _text(row, published, spread))


def count(
    row: Row, ours: Row, published: str, value: str, tuned: str
) -> Finding:  # fmt: skip
    """A mean number of coordinates, printed as a whole number.

    Reproduced where the fresh mean rounds to it; with a caveat within one of it, or
    where the tuning mean rounds to it.
    """
    printed, fresh, chosen = row[published], ours[value], ours[tuned]
    if abs(fresh - printed) <= 0.5:
        verdict = REPRODUCED
    else:
        near = min(abs(fresh - printed) - 0.5, abs(chosen - printed))
        verdict = CAVEAT if near <= 0.5 else NOT
    reason = f"fresh mean {shown(fresh)}, tuning mean {shown(chosen)}"
    return Finding(verdict, reason, Estimate.exactly(fresh), shown(printed))


def seconds(
    row: Row, ours: Row, published: str, spread: str, value: str, std: str, runs: int
) -> Finding:
    """Seconds of a run on another machine: alike, or at least no slower.

    Reproduced within ``ROUGH``; with a caveat where ours is faster than that, since the
    machine and the code are others; not where it is slower.
    """
    printed = _printed(row, published, spread)
    half = t_quantile(runs - 1) * ours[std] / math.sqrt(runs - 1)
    found = Estimate(ours[value], ours[value] - half, ours[value] + half)
    ratio = ours[value] / printed.value
    quicker = Range(1 / ROUGH, ROUGH, 0.0, math.inf)
    point = Estimate.exactly(ratio)
    verdict = NOT if ratio > ROUGH else quicker.verdict(point)
    text = f"{interval(found)} s here, {shown(printed.value)} s printed, "
    text += f"{shown(1 / ratio)} times as fast on another machine with other code"
    return Finding(verdict, text, found, _text(row, published, spread))


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


def _printed(row: Row, published: str, spread: str | None) -> Estimate:
    mean = float(row[published])
    if spread is None or math.isnan(row[spread]):
        return Estimate.exactly(mean)
    t = t_quantile(PUBLISHED_RUNS - 1)
    half = t * float(row[spread]) / math.sqrt(PUBLISHED_RUNS)
    return Estimate(mean, mean - half, mean + half)


def _text(row: Row, published: str, spread: str | None) -> str:
    text = f"{row[published]:.4g}"
    return text if spread is None else f"{text} ± {row[spread]:.1g}"


KINDS = {each.__name__: each for each in (error, count, seconds, exact, formula, mark)}


def judged(
    evidence: Evidence, printed: pd.DataFrame, options: dict[str, Any]
) -> Iterator[tuple[Row, str, Finding]]:
    """(row, column, finding) of every cell.

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
    for row in printed.to_dict("records"):
        for column, how in options["cells"].items():
            yield row, column, _one(evidence, row, column, how, keys, options)


def _one(
    evidence: Evidence,
    row: Row,
    column: str,
    how: dict[str, Any],
    keys: list[str],
    options: dict[str, Any],
) -> Finding:
    given = dict(how)
    kind = given.pop("kind")
    printed = row[column]
    text = _text(row, column, None) if isinstance(printed, float) else str(printed)
    if "only" in given:
        only = given.pop("only")
        if any(row[key] not in values for key, values in only["where"].items()):
            return Finding(UNTESTED, only["otherwise"], published=text)
    if kind == "seconds":
        given["runs"] = evidence.config.scale.fresh or evidence.config.paper.fresh
    try:
        if kind == "mark":
            ours = {"value": _marked(evidence, row, keys, given, options)}
            return mark(row, ours, column, **given)
        where = options | {"file": given.pop("file", options["file"])}
        ours = _ours(evidence, {key: row[key] for key in keys}, where)
        return KINDS[kind](row, ours, column, **given)
    except MissingError as error:
        return Finding(UNTESTED, str(error), published=text)


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
    MissingError
        If there is none, or it is empty.
    """
    file = options["file"]
    renamed = {options.get("renamed", {}).get(key, key): each
               for key, each in names.items()}  # fmt: skip
    table = matching(evidence.table(file), renamed | options.get("also", {}), file)
    known = table.dropna(axis=1, how="all")
    if len(table) != 1 or not set(renamed) < set(known.columns):
        text = " ".join(f"{each:g}" if isinstance(each, float) else str(each)
                        for each in names.values())  # fmt: skip
        raise MissingError(f"{evidence.path(file)} has no result for {text}")
    found = table.iloc[0].to_dict()
    numbers = [each for each in found.values() if isinstance(each, float)]
    if numbers and np.isnan(numbers).all():
        raise MissingError(f"{evidence.path(file)} has empty cells only")
    return found
