"""The claims stage: every claim of every paper, judged from the result files.

No verdict is written by hand, and a missing result is a verdict too. A claim that holds
is tested with the negative controls of its rule and in wrong worlds. For tables of
tuned means, ``power.csv`` and ``noticed.csv`` show which other noise and which wrong
tables would have been noticed.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import files as store
from dperm.core.experiment import plan, results, schema
from dperm.core.experiment.files import write_csv
from dperm.kinds.law import DRAWN
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
    AbsentError,
    Alteration,
    Evidence,
    Finding,
    Verdict,
    few,
    groups,
    intervals,
    several,
    slopes_worded,
    worded,
)
from dperm.report.rules import Options, applied

log = logging.getLogger(__name__)

COLUMNS = [
    *("paper", "place", "kind", "claim", "rule", "published", "reproduced"),
    *("ci_low", "ci_high", "verdict", "control", "reason", "set", "first"),
    *("id", "section", "short", "cause", "note", "authors", "missing"),
    *("should_notice", "noticed", "excludes"),
]
WRITTEN = ("claims.csv", "claims.md", "power.csv", "noticed.csv")
Row = dict[str, Any]
LEVEL = 0.05  # of the test that a pooled ratio is 1


def claims(config: schema.Config) -> list[Path]:
    """Judge all claims of all papers and write the files of ``WRITTEN``.

    The stage runs even if results are missing.
    """
    data = table(config)
    folder = plan.results_folder(config)
    power, wrong = (pd.DataFrame(each(config)) for each in (powers, noticed))
    write_csv(folder / "claims.csv", data)
    write_csv(folder / "power.csv", power)
    write_csv(folder / "noticed.csv", wrong)
    store.write_text(folder / "claims.md", markdown(pd.read_csv(folder / WRITTEN[0])))
    for line in summary(data).splitlines():
        log.info("%s", line)
    return [folder / name for name in WRITTEN]


def table(config: schema.Config, bench: bool = True) -> pd.DataFrame:
    """Rows of ``claims.csv``, in the order of the papers' YAML files.

    ``bench``: whether to test claims that hold in the wrong worlds as well.
    """
    rows = [row for paper in papers(config) for row in judged(paper, bench)]
    return pd.DataFrame(rows, columns=COLUMNS)


def judged(config: schema.Config, bench: bool = True) -> Iterator[Row]:
    """Judge every claim of one paper."""
    siblings = load(config)
    for claim in siblings:
        evidence = Evidence(config, claim=claim, siblings=siblings)
        if claim.rule == "cells":
            yield from _cells(evidence, claim)
            continue
        findings, outcomes = {}, []
        for name, options in readings(claim).items():
            found = _controlled(evidence, claim.rule, options)
            outcome = Outcome()
            if bench and found.verdict in HELD:
                outcome = tried(evidence, claim.rule, options, found)
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
    outcome: Outcome,
) -> Row:
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
        explains = finding.verdict != REPRODUCED
        says = " ".join(note["says"] for note in notes) if explains else ""
        yield _row(evidence, cell, finding, says, Outcome())


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


def _silenced(found: Finding, outcome: Outcome) -> Finding:
    """Change the verdict to "says nothing" if a wrong world is not noticed."""
    if not outcome.missed:
        return found
    reason = f"{found.reason}. It does not notice: {few(outcome.missed)}"
    return replace(found, verdict=NOTHING, reason=reason)


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


# --- wrong worlds: mistakes that a claim that holds would have noticed ----------------
#
# A wrong world alters the tables of a claim as a plausible mistake would. A claim
# *should notice* a world that makes its evidence impossible, exchanges the things it
# compares, or makes its words false. It *notices* a world in which it no longer holds,
# or in which its finding names missing groups.

METHODS = ("algorithm", "constants", "solver", "method", "sampling")
DATA = ("problem", "panel", "dataset", "data")
LOST = 12  # most groups of a claim that are removed in turn
STEP = 10 ** (1 / 3)  # ratio of neighbouring steps of a grid
Columns = Callable[[pd.DataFrame, str], list[str]]  # of a table and its file


@dataclass(frozen=True)
class World:
    """A wrong world: a plausible mistake in the results."""

    name: str
    change: Alteration  #: maps a table and its file to the altered table
    #: whether every claim whose numbers change should notice it, even if its words
    #: remain true
    always: bool = False


@dataclass(frozen=True)
class Outcome:
    """Names of the wrong worlds that a claim should notice, and that it notices."""

    should: tuple[str, ...] = ()
    noticed: tuple[str, ...] = ()

    @property
    def missed(self) -> tuple[str, ...]:
        """Wrong worlds that it should notice and does not."""
        return tuple(name for name in self.should if name not in self.noticed)


def tried(evidence: Evidence, rule: str, options: Options, found: Finding) -> Outcome:
    """Judge a claim in every wrong world that changes its numbers.

    Parameters
    ----------
    evidence : Evidence
        The evidence of the finding.
    rule, options : str, dict
        Of the claim. Worlds among the rule's controls are not tried again: the claim
        failed in them.
    found : Finding
        The finding from the unaltered results.
    """
    function = rules.function_of(evidence.config, rule)
    controls = {control.name for control in rules.controls_of(function)}
    should: dict[str, bool] = {}
    noticed: dict[str, bool] = {}

    def judge(change: Alteration, exact: bool = False) -> Finding:
        def alter(table: pd.DataFrame, file: str) -> pd.DataFrame:
            table = change(table, file)
            return _without_intervals(table) if exact else table

        other = replace(evidence, used=[], altered=alter, trusted=exact)
        return applied(function, options, other)

    for world in worlds(evidence, options):
        if world.name in controls:
            should[world.name] = noticed[world.name] = True
            continue
        seen = judge(world.change)
        if _numbers(seen) == _numbers(found):
            continue
        name = world.name.partition(":")[0]  # all lost groups count as one world
        worse = seen.verdict not in HELD or (
            found.verdict == REPRODUCED and seen.verdict != REPRODUCED
        )
        notices = worse or bool(set(seen.missing) - set(found.missing))
        noticed[name] = noticed.get(name, True) and notices
        should[name] = (
            should.get(name, False)
            or world.always
            or judge(world.change, exact=True).verdict in (NOT, NOTHING)
        )
    return Outcome(*(tuple(n for n in d if d[n]) for d in (should, noticed)))


def _numbers(found: Finding) -> tuple[Any, ...]:
    """Numbers of a finding without names, so that a symmetric exchange is no change."""
    numbers = sorted(re.findall(r"-?\d[\d.e+-]*", found.reason))
    return found.verdict, len(found.missing), tuple(numbers)


def worlds(evidence: Evidence, options: Options) -> Iterator[World]:
    """Yield all wrong worlds that may change a claim with these options."""
    named = _named(options, METHODS)
    sets = _named(options | (evidence.claim.expects if evidence.claim else {}), DATA)
    pairs = (("over", "under"), ("first", "second"))
    ahead = options.get("need") != "any" and any(  # a method leads, everywhere
        all(_named(options.get(one), METHODS) for one in pair) for pair in pairs
    )
    yield World("names exchanged", _exchange(METHODS, named), always=ahead)
    yield World("data sets exchanged", _exchange(DATA, sets))
    yield from _lost(evidence, options)
    yield World("half empty", lambda table, _: _emptied(table, options), always=True)
    yield World(
        "intervals of no width", lambda table, _: _without_intervals(table), True
    )
    yield World(
        "fresh runs are tuning runs",
        lambda t, _: t.assign(fresh_mean=t["mean"]) if "fresh_mean" in t else t,
        always=True,
    )
    for factor, way in ((1.01, "low"), (0.99, "high")):
        yield World(f"optimum 1 % too {way}", _other_optimum(evidence, factor))
    yield World("steps off by one", _times(_called(lambda name: name == "step"), STEP))
    yield World("passes off by one", _next_passes)
    yield World("true epsilons doubled", _times(_called(_is_epsilon), 2.0))
    yield World("bounds x 10", _times(_called(lambda name: "bound" in name), 10.0))
    for shift in (-0.25, 0.25):
        yield World(f"exponents {shift:+g}", _shifted(shift))
    for factor in (0.7, 1.4):
        yield World(f"noise x {factor}", _noisier(factor))
        for name in named or [""]:
            change = _times(lambda t, _: rules.measured(t, options), factor, name)
            yield World(f"errors{name and f' of {name}'} x {factor}", change)
    for factor, word in ((10.0, "x 10"), (0.1, "/ 10")):
        for name in named:
            change = _times(_seconds(evidence), factor, name)
            yield World(f"seconds of {name} {word}", change)


def _named(options: Any, columns: tuple[str, ...]) -> list[str]:
    """Values that options have for any of these columns, in order."""
    found: list[str] = []
    if isinstance(options, dict):
        for key, value in options.items():
            if isinstance(value, dict):
                found += _named(value, columns)
            elif key in columns:
                found += [str(one) for one in several(value)]
    return list(dict.fromkeys(found))


def _exchange(columns: tuple[str, ...], named: list[str]) -> Alteration:
    """Exchange the names of two values: one of the claim's, and another."""

    def change(table: pd.DataFrame, file: str) -> pd.DataFrame:
        for column in columns:
            if column in table:
                there = [str(one) for one in table[column].unique()]
                first = [name for name in named if name in there][:1] or there[:1]
                others = [name for name in named if name in there and name not in first]
                if columns is DATA:  # first one that the claim is not about
                    others = [name for name in there if name not in named] + others
                others += [name for name in there if name not in first]
                if first and others:
                    pair = {first[0]: others[0], others[0]: first[0]}
                    return table.assign(**{column: table[column].replace(pair)})
        return table

    return change


def _lost(evidence: Evidence, options: Options) -> Iterator[World]:
    """Yield a world without each group that the claim expects; of many, some."""
    each = options.get("each")
    if not isinstance(each, str | list):
        return
    expected = list(evidence.expected(each, options.get("where")))
    for lost in expected[:: len(expected) // LOST + 1]:

        def change(table: pd.DataFrame, file: str, lost: str = lost) -> pd.DataFrame:
            if not set(several(each)) <= set(table):
                return table
            kept = [part for name, part in groups(table, each) if name != lost]
            return pd.concat(kept) if kept else table.iloc[:0]

        yield World(f"a group lost: {lost}", change, always=True)


def _emptied(table: pd.DataFrame, options: Options) -> pd.DataFrame:
    """Remove the measured numbers of every second row."""
    named = [one for one in options.values() if isinstance(one, str)]
    columns = {*rules.measured(table, options), *named} & set(table)
    columns = {c for c in columns if table[c].dtype.kind in "fiu"} - {
        options.get("each")
    }
    table = table.astype(dict.fromkeys(columns, float))
    table.loc[np.arange(len(table)) % 2 == 1, sorted(columns)] = np.nan
    return table


def _without_intervals(table: pd.DataFrame) -> pd.DataFrame:
    """Shrink every interval to its middle."""
    ends: dict[str, pd.Series] = {}
    for low, high in intervals(table):
        ends |= dict.fromkeys((low, high), (table[low] + table[high]) / 2)
    laws = {name: table["q0.5"] for name in table if name.startswith("q0.")}
    return table.assign(**ends | laws)


def _other_optimum(evidence: Evidence, factor: float) -> Alteration:
    def change(table: pd.DataFrame, file: str) -> pd.DataFrame:
        if "fresh_mean" not in table and _axis(evidence, file, "y") != "relative error":
            return table
        columns = rules.measured(table, {})
        columns = [name for name in columns if name not in ("std", "error")]
        return table.assign(**{c: (1 + table[c]) / factor - 1 for c in columns})

    return change


def _called(which: Callable[[str], bool]) -> Columns:
    return lambda table, _: [name for name in table if which(name)]


def _is_epsilon(name: str) -> bool:
    return "epsilon" in name and "target" not in name and name != "epsilon"


def _next_passes(table: pd.DataFrame, file: str) -> pd.DataFrame:
    """Label every number of passes as the next larger one; drop the largest."""
    if "passes" not in table or table["passes"].dtype.kind not in "fi":
        return table
    known = sorted(table["passes"].unique())
    following = dict(zip(known, [*known[1:], np.nan], strict=True))
    moved = table.assign(passes=table["passes"].map(following))
    return moved.dropna(subset=["passes"])


def _shifted(shift: float) -> Alteration:
    def change(table: pd.DataFrame, file: str) -> pd.DataFrame:
        columns = [c for c in table if re.match(r"exponent", c)]
        if columns and {"ci_low", "ci_high"} <= set(table):
            columns += ["ci_low", "ci_high"]
        return table.assign(**{c: table[c] + shift for c in columns})

    return change


def _noisier(factor: float) -> Alteration:
    change = cells.noisier(factor)
    return lambda table, _: change(table) if "noise_factor" in table else table


def _seconds(evidence: Evidence) -> Columns:
    timed = {
        how.get("file", claim.options["file"])
        for claim in evidence.siblings
        if claim.rule == "cells"
        for how in claim.options["cells"].values()
        if how["kind"] == "seconds"
    }

    def columns(table: pd.DataFrame, file: str) -> list[str]:
        named = [name for name in table if "seconds" in name]
        if _axis(evidence, file, "x") == "seconds":
            named.append("x")
        return named or (rules.measured(table, {}) if file in timed else [])

    return columns


def _times(which: Columns, factor: float, method: str = "") -> Alteration:
    """Multiply columns by a factor, in the rows of one method or in all."""

    def change(table: pd.DataFrame, file: str) -> pd.DataFrame:
        columns = [c for c in which(table, file) if table[c].dtype.kind in "fi"]
        column = next((one for one in METHODS if one in table), None)
        own = table[column].astype(str) == method if method and column else True
        return table.assign(
            **{
                c: table[c].where(~(table[c].notna() & own), table[c] * factor)
                for c in columns
            }
        )

    return change


def _axis(evidence: Evidence, file: str, axis: str) -> str:
    """Label of an axis of a figure; empty for a table."""
    path = Path(evidence.path(file)).with_suffix(".json")
    if not (file.startswith("figures/") and path.is_file()):
        return ""
    panels = json.loads(path.read_text(encoding="utf-8")).values()
    return str(next((panel.get(axis, "") for panel in panels), ""))


# --- errors that printed tables would notice ------------------------------------------


def _tables(
    config: schema.Config,
) -> Iterator[tuple[Evidence, pd.DataFrame, str, Row]]:
    """Every printed column of tuned means, of every paper, under each of its readings.

    Yields the paper's evidence, the printed table, its place, and the options of
    ``cells.with_laws`` for the column.
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

    There are rows for every table with laws: for each of its problems, and for all
    together. Noise factor 1 stands for the printed table: it has the pooled ratio to
    our laws, and ``noticed`` is 1 if the ratio's interval excludes 1. Any other factor
    stands for a table printed with that multiple of the noise: it has the expected
    ratio, the interval of one such table, and the probability that a test at 5 % would
    notice.
    """
    for (evidence, printed, place, how), draws in product(_tables(config), DRAWN):
        laws = partial(cells.with_laws, evidence, printed, how | {"draws": draws})
        factors = (*cells.FACTORS, *cells.FAR)
        try:
            known, noisy = laws(), {f: laws(cells.noisier(f)) for f in factors}
        except AbsentError:
            continue
        named = {
            f"{place}, {name}": each for name, each in cells.grouped(known).items()
        }
        for name, group in (named | {place: list(known.values())}).items():
            for factor in sorted((cells.PUBLISHED, *noisy)):
                other = noisy.get(factor, {})
                others = [other[cell.key] for cell in group if cell.key in other]
                if factor == cells.PUBLISHED or len(others) == len(group):
                    row = _power(group, None if factor == cells.PUBLISHED else others)
                    row = {"table": name, "noise_factor": factor, **row}
                    read = {"draws": draws, "prints": how["prints"]}
                    yield {"paper": evidence.config.paper.name, **row, **read}


def _power(group: list[cells.Cell], others: list[cells.Cell] | None) -> Row:
    """The pooled ratio and its ``noticed`` of ``powers``; empty if it is unknown."""
    columns = ("pooled_ratio", "ci_low", "ci_high", "noticed")
    try:
        ratio = cells.pooled(group, others).ratio
    except AbsentError:
        return dict.fromkeys(columns)
    seen = float(not ratio.low <= 1 <= ratio.high)
    seen = seen if others is None else cells.power(group, others)
    return dict(zip(columns, (ratio.value, ratio.low, ratio.high, seen), strict=True))


def noticed(config: schema.Config) -> Iterator[Row]:
    """Rows of ``noticed.csv``: parts of wrong tables that would not be reproduced.

    For each change: the number of cells outside their law after Holm's correction, and
    the problems whose pooled ratio differs from 1.
    """
    for evidence, printed, place, how in _tables(config):
        of = {"paper": evidence.config.paper.name, "table": place}
        of |= {"prints": how["prints"]}
        changes: dict[str, cells.Change | None] = {"none": None, **cells.CHANGES}
        if strict := how.get("strict", {}):
            factors = ", ".join(f"{name} x {f:g}" for name, f in strict.items())
            name = f"noise of strict accounting, about ({factors})"
            changes[name] = cells.noisier(strict)
        if "exchanged" in how:
            first, second = how["exchanged"]
            changes[f"{first} and {second} exchanged"] = cells.exchanged(first, second)
        for name, change in changes.items():
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


def _differs(group: list[cells.Cell]) -> bool:
    """Whether the pooled ratio differs from 1; no if no cell moves with the noise."""
    try:
        return cells.pooled(group).probability < LEVEL
    except AbsentError:
        return False
