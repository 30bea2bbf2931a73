"""What a printed table would have noticed: its power against other noise, measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dperm import schema
from dperm.pipeline import results
from dperm.report import tuned
from dperm.report.cells import LAW, law_options
from dperm.report.claims import load, papers
from dperm.report.evidence import AbsentError, Evidence

Row = dict[str, Any]


def powers(config: schema.Config) -> Iterator[Row]:
    """Rows of ``power.csv``.

    For every table with laws, each of its problems and all together: noise factor 1 is
    what is printed, with the pooled ratio to our laws, and ``noticed`` 1 if its
    interval leaves 1 out. Any other factor is a table that was printed with so much
    noise: the ratio to expect, the interval of one such table, and how often a test at
    5 % would notice.
    """
    for paper in papers(config):
        for claim in load(paper):
            kinds = claim.options.get("cells", {}) if claim.rule == "cells" else {}
            for column, how in kinds.items():
                if how["kind"] == LAW:
                    given = law_options(how, column, claim.options)
                    name = claim.options["published"]
                    yield from _of_table(paper, claim.place, name, given)


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
