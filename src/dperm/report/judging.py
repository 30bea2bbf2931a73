"""The claims stage: every claim of every paper, judged from the result files.

No verdict is written by hand, and a missing result is a verdict too. What holds is put
to the controls of its rule, and says nothing if one of them holds as well.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from dperm import schema
from dperm.pipeline import plan, results
from dperm.report import cells, controls, rules
from dperm.report.claims import READINGS, Claim, load, papers
from dperm.report.evidence import AbsentError, Evidence, MissingError
from dperm.report.power import noticed, powers
from dperm.report.scorecard import markdown, summary
from dperm.report.verdicts import (
    CAVEAT,
    HELD,
    NOT,
    NOTHING,
    PENDING,
    REPRODUCED,
    UNDECIDED,
    UNTESTED,
    Finding,
)
from dperm.store import files as store

log = logging.getLogger(__name__)

COLUMNS = [
    "paper", "place", "kind", "claim", "rule", "published", "reproduced", "ci_low",
    "ci_high", "verdict", "control", "reason", "set", "first",
]  # fmt: skip

WRITTEN = ("claims.csv", "claims.md", "power.csv", "noticed.csv")


@dataclass(frozen=True)
class Judged:
    """A claim and what was found."""

    paper: str
    place: str
    kind: str
    claim: str
    rule: str
    finding: Finding
    files: tuple[str, ...]
    set: str = ""
    first: bool = False

    def row(self) -> dict[str, Any]:
        """A row of ``claims.csv``."""
        found = self.finding.reproduced
        ends = (found.value, found.low, found.high) if found else (None,) * 3
        files = ", ".join(self.files)
        reason = self.finding.reason
        told = f"{files}: {reason}" if files and files not in reason else reason
        values = (self.paper, self.place, self.kind, self.claim, self.rule,
                  self.finding.published, *ends, self.finding.verdict,
                  self.finding.control, told, self.set, self.first)  # fmt: skip
        return dict(zip(COLUMNS, values, strict=True))


def claims(config: schema.Config) -> list[Path]:
    """Judge all claims of all papers and write the files of ``WRITTEN``.

    The stage runs with whatever results there are.
    """
    data = table(config)
    folder = plan.results_folder(config)
    told, wrong = (pd.DataFrame(each(config)) for each in (powers, noticed))
    store.write_csv(folder / "claims.csv", data)
    store.write_csv(folder / "power.csv", told)
    store.write_csv(folder / "noticed.csv", wrong)
    store.write_text(folder / "claims.md", markdown(data, told, wrong))
    for line in summary(data).splitlines():
        log.info("%s", line)
    return [folder / name for name in WRITTEN]


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
    used: dict[str, None] = {}
    if claim.readings:
        found = {name: _controlled(config, claim.rule, claim.under(name), used)
                 for name in claim.readings}  # fmt: skip
        finding = _under_readings(found)
    else:
        finding = _controlled(config, claim.rule, claim.options, used)
    published = claim.published or finding.published
    finding = replace(finding, reason=_noted(finding, claim.note), published=published)
    names = (config.paper.name, claim.place, claim.kind, claim.claim, claim.rule)
    return Judged(*names, finding, tuple(used), claim.set, claim.first)


def _controlled(
    config: schema.Config, name: str, options: dict[str, Any], used: dict[str, None]
) -> Finding:
    """What a rule finds, and what it finds under its controls if that holds."""
    function = rules.function_of(config, name)
    evidence = Evidence(config)
    finding = _found(evidence, function, options)
    used.update(dict.fromkeys(evidence.used))
    if finding.verdict not in HELD:
        return finding
    tried = []
    for control in controls.of(function):
        changed = control.options(options)
        if changed is None:
            continue
        alter = None if control.table is None else partial(_alter, control, options)
        other = _found(Evidence(config, altered=alter), function, changed)
        if other.verdict in (REPRODUCED, finding.verdict):
            reason = f"holds for this too: {control.name} ({other.reason})"
            found = replace(finding, verdict=NOTHING)
            return replace(
                found.put_to(f"holds for {control.name}"),
                reason=f"{finding.reason}. {reason}",
            )
        tried.append(control.name)
    return finding.put_to(f"fails for {', '.join(tried)}" if tried else "")


def _alter(
    control: controls.Control, options: dict[str, Any], table: pd.DataFrame
) -> pd.DataFrame:
    assert control.table is not None
    return control.table(table, options)


def _found(
    evidence: Evidence, function: rules.Rule, options: dict[str, Any]
) -> Finding:
    try:
        return function(evidence, **options)
    except AbsentError as error:
        return Finding(PENDING, str(error))
    except MissingError as error:
        return Finding(UNTESTED, str(error))
    except rules.OutsideError as error:
        control = "outside the theorem's preconditions"
        return Finding(NOTHING, str(error), control=control)


def _under_readings(found: dict[str, Finding]) -> Finding:
    """One finding for several readings: it holds under all, under some or under none.

    Readings that were not run leave "under all" and "under none" open.
    """
    held = [name for name, each in found.items() if each.verdict in HELD]
    tried = [name for name, each in found.items()
             if each.verdict not in (PENDING, UNTESTED)]  # fmt: skip
    of_all, of_some, of_none = READINGS
    told = "; ".join(f"{name}: {each.verdict} ({each.reason})"
                     for name, each in found.items())  # fmt: skip
    if not tried:
        every = [each.verdict for each in found.values()]
        verdict = PENDING if PENDING in every else UNTESTED
        return Finding(verdict, f"no reading was run: {told}")
    shown = found[(held or tried)[0]]
    if held == tried and len(tried) == len(found):
        said, verdict = of_all, shown.verdict
    elif held:
        said, verdict = f"{of_some}: {', '.join(held)}", CAVEAT
    else:
        said, verdict = of_none, _none(found, tried)
    control = "; ".join(f"{name}: {each.control}"
                        for name, each in found.items() if each.control)  # fmt: skip
    return Finding(verdict, f"{said}. {told}", shown.reproduced, control=control)


def _none(found: dict[str, Finding], tried: list[str]) -> Any:
    """Of readings under none of which it holds: undecided before not reproduced."""
    every = {found[name].verdict for name in tried}
    if every == {NOTHING}:
        return NOTHING
    if UNDECIDED in every or len(tried) < len(found):
        return UNDECIDED
    return NOT


def _noted(finding: Finding, note: str) -> str:
    """The reason with the claim's note, which explains but does not judge."""
    if not note or finding.verdict == REPRODUCED:
        return finding.reason
    return f"{finding.reason}. Note: {note}"


def _cells(config: schema.Config, claim: Claim) -> Iterator[Judged]:
    options, paper = claim.options, config.paper.name
    printed = results.published(config, options["published"])
    evidence = Evidence(config)
    for each in cells.judged(evidence, printed, options):
        row, column = each.row, each.column
        name = ", ".join(_name(row[key]) for key in options["keys"])
        quantity = column.removesuffix("_mean").replace("_", " ")
        reason = _noted(each.finding, _note_of(options, row))
        yield Judged(
            paper, f"{claim.place}, {name}", "other" if each.other else "cell",
            f"{quantity} of {name}", f"cells, {options['cells'][column]['kind']}",
            replace(each.finding, reason=reason), tuple(evidence.used), claim.set,
        )  # fmt: skip


def _name(key: Any) -> str:
    return f"{key:g}" if isinstance(key, int | float) else str(key)


def _note_of(options: dict[str, Any], row: dict[str, Any]) -> str:
    """The notes whose condition the row meets."""
    return " ".join(
        note["says"]
        for note in options.get("notes", ())
        if all(row[key] == each for key, each in note["where"].items())
    )
