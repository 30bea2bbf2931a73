"""Wrong worlds: mistakes that a claim that holds would have noticed.

A wrong world alters the tables of a claim as a plausible mistake would. A claim
*should notice* a world that makes its evidence impossible, exchanges the things it
compares, or makes its words false. It *notices* a world in which it no longer holds,
or in which its finding names missing groups.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dperm.report import cells, rules
from dperm.report.evidence import (
    HELD,
    NOT,
    NOTHING,
    REPRODUCED,
    Alteration,
    Evidence,
    Finding,
    groups,
    intervals,
    several,
)
from dperm.report.rules import Options, applied

METHODS = ("algorithm", "constants", "solver", "method", "sampling")
DATA = ("problem", "panel", "dataset", "data")
RELATIVE = ("trajectories", "against_epsilon", "samplings")  # figures of such errors
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
        name = file.removeprefix("figures/")
        figures = evidence.config.paper.figures if name != file else {}
        relative = name in figures and figures[name].kind in RELATIVE
        if "fresh_mean" not in table and not relative:
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
    return cells.next_passes(table)


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
