"""The claims stage: every claim of every paper, judged from the result files.

No verdict is written by hand, and a missing result is a verdict too. A claim that holds
is tested with the negative controls of its rule.
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
from dperm.core.experiment.files import write_csv
from dperm.report import cells, rules
from dperm.report.claims import (
    CAUSES,
    READINGS,
    authors,
    claim_id,
    load,
    markdown,
    papers,
    readings,
    summary,
)
from dperm.report.evidence import (
    CAVEAT,
    HELD,
    NOT,
    NOTHING,
    OUT_OF_SCOPE,
    PENDING,
    REPRODUCED,
    SHORT,
    UNDECIDED,
    UNTESTED,
    Evidence,
    Finding,
    Verdict,
    few,
    slopes_worded,
    worded,
)
from dperm.report.rules import applied

log = logging.getLogger(__name__)

COLUMNS = [
    *("paper", "place", "kind", "claim", "rule", "published", "reproduced"),
    *("ci_low", "ci_high", "verdict", "control", "reason", "set", "first"),
    *("id", "section", "short", "cause", "note", "authors", "missing"),
    "excludes",
]
WRITTEN = ("claims.csv", "claims.md")
Row = dict[str, Any]


def claims(config: schema.Config) -> list[Path]:
    """Judge all claims of all papers and write the files of ``WRITTEN``.

    The stage runs even if results are missing.
    """
    data = table(config)
    folder = plan.results_folder(config)
    written = [folder / name for name in WRITTEN]
    write_csv(written[0], data)
    store.write_text(written[1], markdown(pd.read_csv(written[0])))
    for line in summary(data).splitlines():
        log.info("%s", line)
    return written


def table(config: schema.Config) -> pd.DataFrame:
    """Rows of ``claims.csv``, in the order of the papers' YAML files."""
    rows = [row for paper in papers(config) for row in judged(paper)]
    return pd.DataFrame(rows, columns=COLUMNS)


def judged(config: schema.Config) -> Iterator[Row]:
    """Judge every claim of one paper."""
    siblings = load(config)
    for claim in siblings:
        evidence = Evidence(config, claim=claim, siblings=siblings)
        if claim.rule == "cells":
            yield from _cells(evidence, claim)
            continue
        findings = {
            name: _controlled(evidence, claim.rule, options)
            for name, options in readings(claim).items()
        }
        finding = _under_readings(findings) if claim.readings else findings[""]
        yield _row(evidence, claim, finding, claim.note)


def _row(evidence: Evidence, claim: schema.Claim, finding: Finding, note: str) -> Row:
    """Row of a claim with its finding."""
    number, reason = finding.reproduced, finding.reason
    files = ", ".join(evidence.used)
    if files and files not in reason:
        reason = f"{files}: {reason}"
    row = {
        "paper": evidence.config.paper.name,
        **{key: getattr(claim, key) for key in ("place", "kind", "claim", "rule")},
        "published": claim.published or finding.published,
        "reproduced": number and number.value,
        "ci_low": number and number.low,
        "ci_high": number and number.high,
        "verdict": finding.verdict,
        "control": finding.control,
        "reason": reason,
        "set": claim.set,
        "first": claim.first,
    }
    return row | {
        "id": claim_id(row),
        "section": claim.anchor.section if claim.anchor else "",
        "short": OUT_OF_SCOPE if claim.kind == "other" else SHORT[finding.verdict],
        "cause": CAUSES.get(claim.cause, "") if finding.verdict != REPRODUCED else "",
        "note": note,
        "authors": authors(evidence.config, claim, evidence.siblings),
        "missing": "; ".join(finding.missing),
        "excludes": slopes_worded(finding.slopes, finding.verdict in HELD),
    }


def _cells(evidence: Evidence, claim: schema.Claim) -> Iterator[Row]:
    options = claim.options
    printed = results.published(evidence.config, options["published"])
    tried = readings(claim)
    judged = (cells.judged(evidence, printed, each) for each in tried.values())
    for every in zip(*judged, strict=True):
        row, column, finding, is_other = every[0]
        findings = dict(zip(tried, (each.finding for each in every), strict=True))
        if any(each != finding for each in findings.values()):
            published = finding.published
            finding = replace(_under_readings(findings), published=published)
        name = worded(row[key] for key in options["keys"])
        notes = [
            note
            for note in options.get("notes", ())
            if all(row[key] == each for key, each in note["where"].items())
        ]
        causes = [note["cause"] for note in notes if "cause" in note]
        cell = replace(
            claim,
            place=f"{claim.place}, {name}",
            kind="other" if is_other else "cell",
            claim=f"{column.removesuffix('_mean').replace('_', ' ')} of {name}",
            rule=f"cells, {options['cells'][column]['kind']}",
            published="",
            first=False,
            cause="" if is_other else (causes or [claim.cause])[0],
        )
        explains = finding.verdict != REPRODUCED
        says = " ".join(note["says"] for note in notes) if explains else ""
        yield _row(evidence, cell, finding, says)


def _controlled(evidence: Evidence, name: str, options: dict[str, Any]) -> Finding:
    """Apply a rule and, if the claim holds, its negative controls."""
    function = rules.function_of(evidence.config, name)
    finding = applied(function, options, evidence)
    if finding.verdict not in HELD:
        return finding
    by_verdict: dict[Verdict, list[str]] = {}
    for control in rules.controls_of(function):
        changed = control.options(options)
        if changed is None:
            continue
        alter = control.alteration(options)
        altered = replace(evidence, used=[], altered=alter, trusted=True)
        other = applied(function, changed, altered)
        holds = HELD if control.contrary else (REPRODUCED, finding.verdict)
        if other.verdict in holds:
            reason = f"{finding.reason}. It holds for this too: {control.name}"
            return replace(
                finding,
                verdict=NOTHING,
                reason=reason,
                control=f"holds for {control.name}",
            )
        by_verdict.setdefault(other.verdict, []).append(control.name)
    texts = [
        f"{'fails' if verdict == NOT else verdict} for {', '.join(names)}"
        for verdict, names in by_verdict.items()
    ]
    return replace(finding, control="; ".join(texts))


def _under_readings(findings: dict[str, Finding]) -> Finding:
    """Combine the findings of several readings: under all, under some or under none.

    Readings that were not run leave "under all" and "under none" open.
    """
    verdicts = {name: each.verdict for name, each in findings.items()}
    held = [name for name, each in verdicts.items() if each in HELD]
    missing = tuple(
        f"{name}: {one}" for name, each in findings.items() for one in each.missing
    )
    tried = [name for name in verdicts if verdicts[name] not in (PENDING, UNTESTED)]
    if not tried:
        verdict = PENDING if PENDING in verdicts.values() else UNTESTED
        name, each = next(iter(findings.items()))
        return replace(each, verdict=verdict, reason=f"under {name}: {each.reason}")
    shown = (held or tried)[0]
    of_all, of_some, holding = READINGS
    if len(held) == len(findings):
        holding, verdict = of_all, max(verdicts.values(), key=HELD.index)
    elif held:
        holding, verdict = f"{of_some}: {few(held)}", CAVEAT
    elif {verdicts[name] for name in tried} == {NOTHING}:
        verdict = NOTHING
    else:  # a reading that is undecided or says nothing is not refuted
        unsure = any(each in (UNDECIDED, NOTHING) for each in verdicts.values())
        is_open = unsure or len(tried) < len(findings)
        verdict = UNDECIDED if is_open else NOT
    first = findings[shown]
    controls = [f"{name}: {f.control}" for name, f in findings.items() if f.control]
    reason = f"{holding} ({len(held)} of {len(findings)}). {shown}: {first.reason}"
    control = "; ".join(controls)
    near = tuple(  # a reading's name stands before the group's
        replace(slope, group=", ".join(filter(None, (name, slope.group))))
        for name, each in findings.items()
        for slope in each.slopes
    )
    return Finding(verdict, reason, first.reproduced, "", control, missing, near)
