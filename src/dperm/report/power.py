"""What a printed table would have noticed: its power against other noise, measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dperm import schema
from dperm.kinds.law import DRAWN
from dperm.pipeline import results
from dperm.report import tuned
from dperm.report.cells import LAW, law_options
from dperm.report.claims import Claim, load, papers
from dperm.report.evidence import AbsentError, Evidence
from dperm.report.verdicts import REPRODUCED

Row = dict[str, Any]


LEVEL = 0.05
Table = tuple[schema.Config, Claim, str, dict[str, Any]]  # with a column and how


def tables(config: schema.Config) -> Iterator[Table]:
    """Every printed column of tuned means, of every paper."""
    for paper in papers(config):
        for claim in load(paper):
            kinds = claim.options.get("cells", {}) if claim.rule == "cells" else {}
            for column, how in kinds.items():
                if how["kind"] == LAW:
                    yield paper, claim, column, how


def powers(config: schema.Config) -> Iterator[Row]:
    """Rows of ``power.csv``.

    For every table with laws, each of its problems and all together: noise factor 1 is
    what is printed, with the pooled ratio to our laws, and ``noticed`` 1 if its
    interval leaves 1 out. Any other factor is a table that was printed with so much
    noise: the ratio to expect, the interval of one such table, and how often a test at
    5 % would notice.
    """
    for paper, claim, column, how in tables(config):
        given = law_options(how, column, claim.options)
        for draws in DRAWN:
            told = _of_table(
                paper, claim.place, claim.options["published"], given | {"draws": draws}
            )
            yield from (row | {"draws": draws} for row in told)


def _of_table(
    config: schema.Config, place: str, name: str, given: Any
) -> Iterator[Row]:
    evidence, printed = Evidence(config), results.published(config, name)
    try:
        found = tuned.cells(evidence, printed, given)
        noisy = {
            factor: tuned.cells(evidence, printed, given, tuned.noisier(factor))
            for factor in tuned.FACTORS
        }
    except AbsentError:
        return
    groups = {
        **{f"{place}, {problem}": [cell.key for cell in every]
           for problem, every in tuned.grouped(found).items()},
        place: list(found),
    }  # fmt: skip
    for table, keys in groups.items():
        cells = [found[key] for key in keys]
        for factor in sorted((tuned.PUBLISHED, *tuned.FACTORS)):
            others = None
            if factor != tuned.PUBLISHED:
                others = [noisy[factor][key] for key in keys if key in noisy[factor]]
            if others is None or len(others) == len(cells):
                yield {"paper": config.paper.name, "table": table,
                       "noise_factor": factor, **_row(cells, others)}  # fmt: skip


def _row(cells: list[tuned.Cell], others: list[tuned.Cell] | None) -> Row:
    try:
        seen = tuned.pooled(cells, others)
    except AbsentError:
        return {"pooled_ratio": None, "ci_low": None, "ci_high": None, "noticed": None}
    ratio = seen.ratio
    noticed = (
        float(not ratio.low <= 1 <= ratio.high)
        if others is None
        else tuned.power(cells, others)
    )
    return {"pooled_ratio": ratio.value, "ci_low": ratio.low, "ci_high": ratio.high,
            "noticed": noticed}  # fmt: skip


# --- wrong tables, put in the place of the right one ----------------------------------


def noticed(config: schema.Config) -> Iterator[Row]:
    """Rows of ``noticed.csv``: what of a wrong table would not have been reproduced.

    For each change: how many cells lie outside their law after Holm's correction, and
    of which problems the pooled ratio leaves 1 out.
    """
    for paper, claim, column, how in tables(config):
        given = law_options(how, column, claim.options)
        printed = results.published(paper, claim.options["published"])
        evidence = Evidence(paper)
        for name, change in _changes(how).items():
            try:
                found = tuned.cells(evidence, printed, given, change)
            except AbsentError:
                continue
            if found:
                row = {"paper": paper.paper.name, "table": claim.place, "change": name}
                yield row | _noticed(found, how["level"])


def _changes(how: dict[str, Any]) -> dict[str, tuned.Change | None]:
    """As is, and wrong in one way each."""
    strict = how.get("strict", {})
    told = ", ".join(f"{name} x {factor:g}" for name, factor in strict.items())
    changes: dict[str, tuned.Change | None] = {
        "none": None,
        "w = 0": tuned.nothing_learnt,
        "errors x 0.7": tuned.scaled(0.7),
        "errors x 1.4": tuned.scaled(1.4),
        **{f"noise x {factor:g}": tuned.noisier(factor) for factor in tuned.FACTORS},
    }
    if strict:
        changes[f"noise of strict accounting, about ({told})"] = tuned.noisier(strict)
    if "exchanged" in how:
        first, second = how["exchanged"]
        changes[f"{first} and {second} exchanged"] = tuned.exchanged(first, second)
    return changes


def _noticed(found: dict[tuned.Key, tuned.Cell], level: float) -> Row:
    passed = tuned.verdicts(found, level)
    outside = sum(verdict != REPRODUCED for verdict in passed.values())
    seen = [
        problem
        for problem, cells in tuned.grouped(found).items()
        if _probability(cells) < LEVEL
    ]
    return {"cells": len(found), "cells_noticed": outside,
            "problems": len(tuned.grouped(found)), "problems_noticed": len(seen),
            "which": ", ".join(seen)}  # fmt: skip


def _probability(cells: list[tuned.Cell]) -> float:
    try:
        return tuned.pooled(cells).probability
    except AbsentError:
        return 1.0
