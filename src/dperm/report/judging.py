"""The claims stage: every claim of every paper, judged from the result files.

No verdict is written by hand, and a missing result is a verdict too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dperm import schema
from dperm.pipeline import plan, results
from dperm.report import cells, rules
from dperm.report.claims import Claim, load, papers
from dperm.report.evidence import Evidence, MissingError
from dperm.report.scorecard import markdown, summary
from dperm.report.verdicts import CAVEAT, REPRODUCED, UNTESTED, Finding
from dperm.store import files as store

log = logging.getLogger(__name__)

COLUMNS = [
    "paper", "place", "claim", "rule", "published", "reproduced", "ci_low", "ci_high",
    "verdict", "reason",
]  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """A claim and what was found."""

    paper: str
    place: str
    claim: str
    rule: str
    finding: Finding
    files: tuple[str, ...]

    def row(self) -> dict[str, Any]:
        """A row of ``claims.csv``."""
        found = self.finding.reproduced
        ends = (found.value, found.low, found.high) if found else (None,) * 3
        files = ", ".join(self.files)
        reason = self.finding.reason
        told = f"{files}: {reason}" if files and files not in reason else reason
        values = (self.paper, self.place, self.claim, self.rule, self.finding.published,
                  *ends, self.finding.verdict, told)  # fmt: skip
        return dict(zip(COLUMNS, values, strict=True))


def claims(config: schema.Config) -> list[Path]:
    """Judge all claims of all papers and write ``claims.csv`` and ``claims.md``.

    The stage runs with whatever results there are.
    """
    data = table(config)
    folder = plan.results_folder(config)
    store.write_text(folder / "claims.csv", data.to_csv(index=False))
    store.write_text(folder / "claims.md", markdown(data))
    for line in summary(data).splitlines():
        log.info("%s", line)
    return [folder / "claims.csv", folder / "claims.md"]


def table(config: schema.Config) -> pd.DataFrame:
    """Rows of ``claims.csv``, in the order of the papers' YAML files."""
    rows = [each.row() for paper in papers(config) for each in judged(paper)]
    return pd.DataFrame(rows, columns=COLUMNS)


def judged(config: schema.Config) -> Iterator[Judged]:
    """Every claim of one paper, judged."""
    for claim in load(config):
        if claim.rule == "cells":
            yield from _cells(config, claim)
        else:
            yield _sentence(config, claim)


def _sentence(config: schema.Config, claim: Claim) -> Judged:
    evidence = Evidence(config)
    finding = _found(evidence, claim.rule, claim.options)
    if claim.provided and finding.verdict == REPRODUCED:
        control = _found(evidence, claim.provided["rule"], claim.provided["options"])
        finding = _with_control(finding, control, claim.provided.get("says", "control"))
    finding = Finding(
        finding.verdict,
        _noted(finding, claim.note),
        finding.reproduced,
        claim.published or finding.published,
    )
    names = (config.paper.name, claim.place, claim.claim, claim.rule)
    return Judged(*names, finding, tuple(evidence.used))


def _found(evidence: Evidence, name: str, options: dict[str, Any]) -> Finding:
    try:
        return rules.function_of(evidence.config, name)(evidence, **options)
    except MissingError as error:
        return Finding(UNTESTED, str(error))


def _with_control(finding: Finding, control: Finding, says: str) -> Finding:
    """A claim that holds, but not for its reason, holds with a caveat."""
    verdict = finding.verdict if control.verdict == REPRODUCED else CAVEAT
    held = "holds" if control.verdict == REPRODUCED else "does not hold"
    reason = f"{finding.reason}. {says} {held}: {control.reason}"
    return Finding(verdict, reason, finding.reproduced, finding.published)


def _noted(finding: Finding, note: str) -> str:
    """The reason with the claim's note, which explains but does not judge."""
    if not note or finding.verdict == REPRODUCED:
        return finding.reason
    return f"{finding.reason}. Note: {note}"


def _cells(config: schema.Config, claim: Claim) -> Iterator[Judged]:
    options, paper = claim.options, config.paper.name
    printed = results.published(config, options["published"])
    evidence = Evidence(config)
    for row, column, finding in cells.judged(evidence, printed, options):
        name = ", ".join(_name(row[key]) for key in options["keys"])
        quantity = column.removesuffix("_mean").replace("_", " ")
        told = Finding(
            finding.verdict,
            _noted(finding, _note_of(options, row)),
            finding.reproduced,
            finding.published,
        )
        place = f"{claim.place}, {name}"
        text = f"{quantity} of {name}"
        files = tuple(evidence.used)
        yield Judged(paper, place, text, f"cells, {options['cells'][column]['kind']}",
                     told, files)  # fmt: skip


def _name(key: Any) -> str:
    return f"{key:g}" if isinstance(key, int | float) else str(key)


def _note_of(options: dict[str, Any], row: dict[str, Any]) -> str:
    """The notes whose condition the row meets."""
    return " ".join(
        note["says"]
        for note in options.get("notes", ())
        if all(row[key] == each for key, each in note["where"].items())
    )
