"""The claims stage: every claim of every paper, judged from the result files.

No verdict is written by hand, and a missing result is a verdict too. What holds is put
to the controls of its rule, and says nothing if one of them holds as well.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from dperm.core.experiment import files as store
from dperm.core.experiment import plan, results, schema
from dperm.report import cells, controls, rules
from dperm.report.claims import READINGS, load, papers, under
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

log = logging.getLogger(__name__)

COLUMNS = [
    "paper", "place", "kind", "claim", "rule", "published", "reproduced", "ci_low",
    "ci_high", "verdict", "control", "reason", "set", "first",
]  # fmt: skip

WRITTEN = ("claims.csv", "claims.md", "power.csv", "noticed.csv")
Row = dict[str, Any]  # of ``claims.csv``


def claims(config: schema.Config) -> list[Path]:
    """Judge all claims of all papers and write the files of ``WRITTEN``.

    The stage runs with whatever results there are.
    """
    data = table(config)
    folder = plan.results_folder(config)
    power, wrong = (pd.DataFrame(each(config)) for each in (powers, noticed))
    store.write_csv(folder / "claims.csv", data)
    store.write_csv(folder / "power.csv", power)
    store.write_csv(folder / "noticed.csv", wrong)
    store.write_text(folder / "claims.md", markdown(data, power, wrong))
    for line in summary(data).splitlines():
        log.info("%s", line)
    return [folder / name for name in WRITTEN]


def table(config: schema.Config) -> pd.DataFrame:
    """Rows of ``claims.csv``, in the order of the papers' YAML files."""
    rows = [row for paper in papers(config) for row in judged(paper)]
    return pd.DataFrame(rows, columns=COLUMNS)


def judged(config: schema.Config) -> Iterator[Row]:
    """Every claim of one paper, judged."""
    for claim in load(config):
        if claim.rule == "cells":
            yield from _cells(config, claim)
        else:
            yield _sentence(config, claim)


def _row(
    config: schema.Config,
    claim: schema.Claim,
    found: Finding,
    used: list[str],
    note: str,
) -> Row:
    """A finding with its claim; the note explains a verdict, and does not judge."""
    number, reason, files = found.reproduced, found.reason, ", ".join(used)
    if note and found.verdict != REPRODUCED:
        reason = f"{reason}. Note: {note}"
    if files and files not in reason:
        reason = f"{files}: {reason}"
    return {
        "paper": config.paper.name, "place": claim.place, "kind": claim.kind,
        "claim": claim.claim, "rule": claim.rule,
        "published": claim.published or found.published,
        "reproduced": number and number.value, "ci_low": number and number.low,
        "ci_high": number and number.high, "verdict": found.verdict,
        "control": found.control, "reason": reason, "set": claim.set,
        "first": claim.first,
    }  # fmt: skip


def _cells(config: schema.Config, claim: schema.Claim) -> Iterator[Row]:
    options, evidence = claim.options, Evidence(config)
    printed = results.published(config, options["published"])
    for row, column, finding, is_other in cells.judged(evidence, printed, options):
        keys = (row[key] for key in options["keys"])
        name = ", ".join(f"{key:g}" if isinstance(key, int | float) else str(key)
                         for key in keys)  # fmt: skip
        cell = replace(
            claim, place=f"{claim.place}, {name}", kind="other" if is_other else "cell",
            claim=f"{column.removesuffix('_mean').replace('_', ' ')} of {name}",
            rule=f"cells, {options['cells'][column]['kind']}", published="",
            first=False,
        )  # fmt: skip
        notes = (
            note["says"]
            for note in options.get("notes", ())
            if all(row[key] == each for key, each in note["where"].items())
        )
        yield _row(config, cell, finding, evidence.used, " ".join(notes))


def _sentence(config: schema.Config, claim: schema.Claim) -> Row:
    evidence = Evidence(config)
    if claim.readings:
        found = {name: _controlled(evidence, claim.rule, under(claim, name))
                 for name in claim.readings}  # fmt: skip
        finding = _under_readings(found)
    else:
        finding = _controlled(evidence, claim.rule, claim.options)
    return _row(config, claim, finding, evidence.used, claim.note)


def _controlled(evidence: Evidence, name: str, options: dict[str, Any]) -> Finding:
    """What a rule finds, and what it finds under its controls if that holds."""
    function = rules.function_of(evidence.config, name)
    finding = _applied(evidence, function, options)
    if finding.verdict not in HELD:
        return finding
    failing = []
    for control in controls.of(function):
        changed = control.options(options)
        if changed is None:
            continue
        altered = Evidence(evidence.config, altered=control.alteration(options))
        other = _applied(altered, function, changed)
        if other.verdict in (REPRODUCED, finding.verdict):
            reason = f"holds for this too: {control.name} ({other.reason})"
            return replace(
                finding, verdict=NOTHING, reason=f"{finding.reason}. {reason}",
                control=f"holds for {control.name}",
            )  # fmt: skip
        failing.append(control.name)
    text = f"fails for {', '.join(failing)}" if failing else ""
    return replace(finding, control=text)


def _applied(
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
    verdicts = {each.verdict for each in found.values()}
    reasons = "; ".join(f"{name}: {each.verdict} ({each.reason})"
                        for name, each in found.items())  # fmt: skip
    if not tried:
        verdict = PENDING if PENDING in verdicts else UNTESTED
        return Finding(verdict, f"no reading was run: {reasons}")
    first = found[(held or tried)[0]]
    of_all, of_some, holding = READINGS
    if len(held) == len(found):
        holding, verdict = of_all, first.verdict
    elif held:
        holding, verdict = f"{of_some}: {', '.join(held)}", CAVEAT
    elif {found[name].verdict for name in tried} == {NOTHING}:
        verdict = NOTHING
    else:  # undecided before not reproduced
        is_open = UNDECIDED in verdicts or len(tried) < len(found)
        verdict = UNDECIDED if is_open else NOT
    control = "; ".join(f"{name}: {each.control}"
                        for name, each in found.items() if each.control)  # fmt: skip
    return Finding(verdict, f"{holding}. {reasons}", first.reproduced, control=control)
