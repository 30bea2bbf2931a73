"""The claims stage: every claim of every paper, judged from the result files.

No verdict is written by hand, and a missing result is a verdict too. What holds is put
to the controls of its rule. For tables of tuned means ``power.csv`` and ``noticed.csv``
say which other noise, and which wrong tables, would have been noticed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from dperm.core.experiment import files as store
from dperm.core.experiment import plan, results, schema
from dperm.core.experiment.files import write_csv
from dperm.core.experiment.locate import available
from dperm.core.experiment.validation import paper_file
from dperm.kinds.law import DRAWN
from dperm.pipeline import seals
from dperm.report import cells, rules, worlds
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
    AbsentError,
    Evidence,
    Finding,
    Verdict,
    slopes_under,
    slopes_worded,
    worded,
)
from dperm.report.rules import applied

log = logging.getLogger(__name__)

COLUMNS = [
    *("paper", "place", "kind", "claim", "rule", "published", "reproduced"),
    *("ci_low", "ci_high", "verdict", "control", "reason", "set", "first"),
    *("id", "section", "short", "cause", "note", "authors", "missing"),
    *("should_notice", "noticed", "excludes"),
]
WRITTEN = ("claims.csv", "claims.md", "power.csv", "noticed.csv")
Row = dict[str, Any]
NO_WORLDS = worlds.Outcome()
FEW = 2  # names that a reason lists
LEVEL = 0.05  # at which a pooled ratio leaves 1 out


def claims(config: schema.Config) -> list[Path]:
    """Judge all claims of all papers and write the files of ``WRITTEN``.

    The stage runs with whatever results there are.
    """
    read = [path for name in available("paper") for path in seals.files(config, name)]
    seals.check(config, read)
    data = table(config)
    folder = plan.results_folder(config)
    power, wrong = (pd.DataFrame(each(config)) for each in (powers, noticed))
    write_csv(folder / "claims.csv", data)
    write_csv(folder / "power.csv", power)
    write_csv(folder / "noticed.csv", wrong)
    store.write_text(folder / "claims.md", markdown(pd.read_csv(folder / WRITTEN[0])))
    for line in summary(data).splitlines():
        log.info("%s", line)
    written = [folder / name for name in WRITTEN]
    tables = [path for path in read if path.suffix in (".csv", ".parquet")]
    seals.seal(config, "claims", written, of=[*tables, *_texts(config)])
    return written


def _texts(config: schema.Config) -> Iterator[Path]:
    """The claims of the papers, and what these print."""
    for each in papers(config):
        for name in (each.paper.claims, *each.paper.published.values()):
            path = paper_file(each.paper, name) if name else None
            if path is not None:
                yield path


def table(config: schema.Config, bench: bool = True) -> pd.DataFrame:
    """Rows of ``claims.csv``, in the order of the papers' YAML files.

    ``bench``: whether what holds is put to the wrong worlds as well.
    """
    rows = [row for paper in papers(config) for row in judged(paper, bench)]
    return pd.DataFrame(rows, columns=COLUMNS)


def judged(config: schema.Config, bench: bool = True) -> Iterator[Row]:
    """Every claim of one paper, judged."""
    siblings = load(config)
    for claim in siblings:
        evidence = Evidence(config, claim=claim, siblings=siblings)
        if claim.rule == "cells":
            yield from _cells(evidence, claim)
            continue
        findings, outcomes = {}, []
        for name, options in readings(claim).items():
            found = _controlled(evidence, claim.rule, options)
            outcome = _benched(evidence, claim.rule, options, found, bench)
            findings[name] = _silenced(found, outcome)
            outcomes.append(outcome)
        held = [one for one in findings.values() if one.verdict in HELD]
        finding = _under_readings(findings) if claim.readings else findings[""]
        at = list(findings.values()).index(held[0]) if held else 0
        yield _row(evidence, claim, finding, claim.note, outcomes[at])


def _row(
    evidence: Evidence,
    claim: schema.Claim,
    finding: Finding,
    note: str,
    outcome: worlds.Outcome = NO_WORLDS,
) -> Row:
    """A finding with its claim; the note explains a verdict, and does not judge."""
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
        "note": note if finding.verdict != REPRODUCED else "",
        "authors": authors(evidence.config, claim, evidence.siblings),
        "missing": "; ".join(finding.missing),
        "should_notice": "; ".join(outcome.should),
        "noticed": "; ".join(outcome.noticed),
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
        says = " ".join(note["says"] for note in notes)
        yield _row(evidence, cell, finding, says)


def _controlled(evidence: Evidence, name: str, options: dict[str, Any]) -> Finding:
    """What a rule finds, and what it finds under its controls if that holds."""
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
        if other.verdict in (REPRODUCED, finding.verdict):
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


def _benched(
    evidence: Evidence, name: str, options: Row, found: Finding, bench: bool
) -> worlds.Outcome:
    """What a claim that holds notices of the wrong worlds."""
    if not bench or found.verdict not in HELD:
        return NO_WORLDS
    function = rules.function_of(evidence.config, name)
    controls = {control.name for control in rules.controls_of(function)}
    judge = partial(applied, function, options)
    return worlds.tried(evidence, options, judge, found, controls)


def _silenced(found: Finding, outcome: worlds.Outcome) -> Finding:
    """A claim that does not notice what it should says nothing."""
    if not outcome.missed:
        return found
    reason = f"{found.reason}. It does not notice: {_few(outcome.missed)}"
    return replace(found, verdict=NOTHING, reason=reason)


def _under_readings(findings: dict[str, Finding]) -> Finding:
    """One finding for several readings: it holds under all, under some or under none.

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
        holding, verdict = f"{of_some}: {_few(held)}", CAVEAT
    elif {verdicts[name] for name in tried} == {NOTHING}:
        verdict = NOTHING
    else:  # a reading that is undecided, or says nothing, is not refuted
        unsure = any(each in (UNDECIDED, NOTHING) for each in verdicts.values())
        is_open = unsure or len(tried) < len(findings)
        verdict = UNDECIDED if is_open else NOT
    first = findings[shown]
    controls = [f"{name}: {f.control}" for name, f in findings.items() if f.control]
    reason = f"{holding} ({len(held)} of {len(findings)}). {shown}: {first.reason}"
    control = "; ".join(controls)
    every = (slopes_under(name, each.slopes) for name, each in findings.items())
    near = tuple(one for each in every for one in each)
    return Finding(verdict, reason, first.reproduced, "", control, missing, near)


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return f"{', '.join(names[:FEW])}{more}"


# --- what printed tables would notice -------------------------------------------------


def _tables(
    config: schema.Config,
) -> Iterator[tuple[Evidence, pd.DataFrame, str, Row]]:
    """Every printed column of tuned means, of every paper, under each of its readings.

    Yields the paper's evidence, the printed table, its place, and what
    ``cells.with_laws`` takes of the column.
    """
    for paper in papers(config):
        for claim in load(paper):
            if claim.rule != "cells":
                continue
            printed = results.published(paper, claim.options["published"])
            for options in readings(claim).values():
                for column, how in options["cells"].items():
                    if how["kind"] == cells.LAW:
                        law = cells.law_options(column, how, options)
                        yield Evidence(paper), printed, claim.place, law


def powers(config: schema.Config) -> Iterator[Row]:
    """Rows of ``power.csv``.

    For every table with laws, each of its problems and all together: noise factor 1 is
    what is printed, with the pooled ratio to our laws, and ``noticed`` 1 if its
    interval leaves 1 out. Any other factor is a table that was printed with so much
    noise: the ratio to expect, the interval of one such table, and how often a test at
    5 % would notice.
    """
    for evidence, printed, place, how in _tables(config):
        for draws in DRAWN:
            for row in _powers(evidence, printed, place, how | {"draws": draws}):
                read = {"draws": draws, "prints": how["prints"]}
                yield {"paper": evidence.config.paper.name, **row, **read}


def _powers(
    evidence: Evidence, printed: pd.DataFrame, place: str, how: Row
) -> Iterator[Row]:
    try:
        known = cells.with_laws(evidence, printed, how)
        noisy = {
            factor: cells.with_laws(evidence, printed, how, cells.noisier(factor))
            for factor in (*cells.FACTORS, *cells.FAR)
        }
    except AbsentError:
        return
    groups = {f"{place}, {name}": each for name, each in cells.grouped(known).items()}
    for name, group in (groups | {place: list(known.values())}).items():
        for factor in sorted((cells.PUBLISHED, *noisy)):
            laws = noisy.get(factor, {})
            others = [laws[cell.key] for cell in group if cell.key in laws]
            if factor == cells.PUBLISHED or len(others) == len(group):
                row = _power(group, None if factor == cells.PUBLISHED else others)
                yield {"table": name, "noise_factor": factor, **row}


def _power(group: list[cells.Cell], others: list[cells.Cell] | None) -> Row:
    """The pooled ratio, and whether or how often it would be noticed; empty if none."""
    columns = ("pooled_ratio", "ci_low", "ci_high", "noticed")
    try:
        ratio = cells.pooled(group, others).ratio
    except AbsentError:
        return dict.fromkeys(columns)
    seen = float(not ratio.low <= 1 <= ratio.high)
    seen = seen if others is None else cells.power(group, others)
    return dict(zip(columns, (ratio.value, ratio.low, ratio.high, seen), strict=True))


def noticed(config: schema.Config) -> Iterator[Row]:
    """Rows of ``noticed.csv``: what of a wrong table would not have been reproduced.

    For each change: how many cells lie outside their law after Holm's correction, and
    of which problems the pooled ratio leaves 1 out.
    """
    for evidence, printed, place, how in _tables(config):
        of = {"paper": evidence.config.paper.name, "table": place}
        of |= {"prints": how["prints"]}
        for name, change in _changes(how).items():
            try:
                known = cells.with_laws(evidence, printed, how, change)
            except AbsentError:
                continue
            if known:
                verdicts = cells.verdicts_by_law(known, how["level"]).values()
                problems = cells.grouped(known)
                which = [key for key, group in problems.items() if _differs(group)]
                yield of | {
                    "change": name,
                    "cells": len(known),
                    "cells_noticed": sum(each != REPRODUCED for each in verdicts),
                    "problems": len(problems),
                    "problems_noticed": len(which),
                    "which": ", ".join(which),
                }


def _changes(how: Row) -> dict[str, cells.Change | None]:
    """As is, and wrong in one way each."""
    changes: dict[str, cells.Change | None] = {"none": None, **cells.CHANGES}
    if strict := how.get("strict", {}):
        factors = ", ".join(f"{name} x {factor:g}" for name, factor in strict.items())
        name = f"noise of strict accounting, about ({factors})"
        changes[name] = cells.noisier(strict)
    if "exchanged" in how:
        first, second = how["exchanged"]
        changes[f"{first} and {second} exchanged"] = cells.exchanged(first, second)
    return changes


def _differs(group: list[cells.Cell]) -> bool:
    """Whether the pooled ratio leaves 1 out; not where nothing moves with the noise."""
    try:
        return cells.pooled(group).probability < LEVEL
    except AbsentError:
        return False
