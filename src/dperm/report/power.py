"""What a printed table would have noticed: its power against other noise, measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from dperm.core.experiment import results, schema
from dperm.kinds.law import DRAWN
from dperm.report import tuned
from dperm.report.cells import LAW, law_options
from dperm.report.claims import load, papers
from dperm.report.evidence import AbsentError, Evidence
from dperm.report.verdicts import REPRODUCED

Row = dict[str, Any]
LEVEL = 0.05


def tables(
    config: schema.Config,
) -> Iterator[tuple[Evidence, pd.DataFrame, str, Row]]:
    """Every printed column of tuned means, of every paper.

    Yields
    ------
    tuple
        The paper's evidence, the printed table, its place, and what ``tuned.cells``
        takes of the column.
    """
    for paper in papers(config):
        for claim in load(paper):
            options = claim.options if claim.rule == "cells" else {}
            for column, how in options.get("cells", {}).items():
                if how["kind"] == LAW:
                    printed = results.published(paper, options["published"])
                    given = law_options(column, how, options)
                    yield Evidence(paper), printed, claim.place, given


def powers(config: schema.Config) -> Iterator[Row]:
    """Rows of ``power.csv``.

    For every table with laws, each of its problems and all together: noise factor 1 is
    what is printed, with the pooled ratio to our laws, and ``noticed`` 1 if its
    interval leaves 1 out. Any other factor is a table that was printed with so much
    noise: the ratio to expect, the interval of one such table, and how often a test at
    5 % would notice.
    """
    for evidence, printed, place, how in tables(config):
        for draws in DRAWN:
            of = {"paper": evidence.config.paper.name}
            for row in _powers(evidence, printed, place, how | {"draws": draws}):
                yield of | row | {"draws": draws}


def _powers(
    evidence: Evidence, printed: pd.DataFrame, place: str, how: Row
) -> Iterator[Row]:
    try:
        found = tuned.cells(evidence, printed, how)
        noisy = {
            factor: tuned.cells(evidence, printed, how, tuned.noisier(factor))
            for factor in tuned.FACTORS
        }
    except AbsentError:
        return
    groups = {
        f"{place}, {problem}": cells for problem, cells in tuned.grouped(found).items()
    }
    for table, cells in (groups | {place: list(found.values())}).items():
        for factor in sorted((tuned.PUBLISHED, *tuned.FACTORS)):
            seen = noisy.get(factor, {})
            others = [seen[cell.key] for cell in cells if cell.key in seen]
            if factor == tuned.PUBLISHED or len(others) == len(cells):
                row = _row(cells, None if factor == tuned.PUBLISHED else others)
                yield {"table": table, "noise_factor": factor, **row}


def _row(cells: list[tuned.Cell], others: list[tuned.Cell] | None) -> Row:
    try:
        ratio = tuned.pooled(cells, others).ratio
    except AbsentError:
        return dict.fromkeys(("pooled_ratio", "ci_low", "ci_high", "noticed"))
    outside = float(not ratio.low <= 1 <= ratio.high)
    noticed = outside if others is None else tuned.power(cells, others)
    return {"pooled_ratio": ratio.value, "ci_low": ratio.low, "ci_high": ratio.high,
            "noticed": noticed}  # fmt: skip


# --- wrong tables, put in the place of the right one ----------------------------------


def noticed(config: schema.Config) -> Iterator[Row]:
    """Rows of ``noticed.csv``: what of a wrong table would not have been reproduced.

    For each change: how many cells lie outside their law after Holm's correction, and
    of which problems the pooled ratio leaves 1 out.
    """
    for evidence, printed, place, how in tables(config):
        of = {"paper": evidence.config.paper.name, "table": place}
        for name, change in _changes(how).items():
            try:
                found = tuned.cells(evidence, printed, how, change)
            except AbsentError:
                continue
            if found:
                yield of | {"change": name} | _noticed(found, how["level"])


def _changes(how: Row) -> dict[str, tuned.Change | None]:
    """As is, and wrong in one way each."""
    changes: dict[str, tuned.Change | None] = {"none": None, **tuned.CHANGES}
    if strict := how.get("strict", {}):
        factors = ", ".join(f"{name} x {factor:g}" for name, factor in strict.items())
        name = f"noise of strict accounting, about ({factors})"
        changes[name] = tuned.noisier(strict)
    if "exchanged" in how:
        first, second = how["exchanged"]
        changes[f"{first} and {second} exchanged"] = tuned.exchanged(first, second)
    return changes


def _noticed(found: dict[tuned.Key, tuned.Cell], level: float) -> Row:
    verdicts, problems = tuned.verdicts(found, level), tuned.grouped(found)
    seen = [problem for problem, cells in problems.items() if _differs(cells)]
    return {
        "cells": len(found),
        "cells_noticed": sum(each != REPRODUCED for each in verdicts.values()),
        "problems": len(problems), "problems_noticed": len(seen),
        "which": ", ".join(seen),
    }  # fmt: skip


def _differs(cells: list[tuned.Cell]) -> bool:
    """Whether the pooled ratio leaves 1 out; not where nothing moves with the noise."""
    try:
        return tuned.pooled(cells).probability < LEVEL
    except AbsentError:
        return False
