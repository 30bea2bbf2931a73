"""Wrong worlds: what a claim that holds would have noticed.

A world alters the tables of a claim as a plausible mistake would. A claim *should
notice* one that leaves its evidence impossible, exchanges what it compares, or makes
its words false; it *notices* one in which it no longer holds, or says what is missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.report import cells, rules
from dperm.report.evidence import (
    HELD,
    NOT,
    NOTHING,
    REPRODUCED,
    Evidence,
    Finding,
    groups,
    intervals,
)

METHODS = ("algorithm", "constants", "solver", "method", "sampling")
DATA = ("problem", "panel", "dataset", "data")
LOST = 12  # groups of a claim at most that are lost in turn
STEP = 10 ** (1 / 3)  # from one step of a grid to the next
Options = dict[str, Any]
Change = Callable[[pd.DataFrame, str], pd.DataFrame]  # of a table and its file
Judge = Callable[[Evidence], Finding]  # the claim's rule, with its options


@dataclass(frozen=True)
class World:
    """A way to be wrong."""

    name: str
    change: Change  #: what becomes of a table, given its file
    #: whether a claim whose numbers it touches should notice it, be its words true or
    #: not
    always: bool = False


@dataclass(frozen=True)
class Outcome:
    """Names of the worlds that a claim should notice, and of those that it does."""

    should: tuple[str, ...] = ()
    noticed: tuple[str, ...] = ()

    @property
    def missed(self) -> tuple[str, ...]:
        """What it should notice and does not."""
        return tuple(name for name in self.should if name not in self.noticed)


def tried(
    evidence: Evidence,
    options: Options,
    judge: Judge,
    found: Finding,
    controls: Collection[str],
) -> Outcome:
    """Judge a claim in every wrong world that touches its numbers.

    Parameters
    ----------
    evidence : Evidence
        That the finding rests on.
    options : dict
        Of the claim's rule.
    judge : callable
        Evidence to finding, without controls.
    found : Finding
        In the world as it is.
    controls : collection of str
        Worlds that the claim was put to already, and failed in.
    """
    should: dict[str, bool] = {}
    noticed: dict[str, bool] = {}
    for world in worlds(evidence, options):
        if world.name in controls:
            should[world.name] = noticed[world.name] = True
            continue
        seen = judge(_in(evidence, world.change))
        if _numbers(seen) == _numbers(found):
            continue
        name = world.name.partition(":")[0]  # all groups that are lost are one world
        worse = seen.verdict not in HELD or (
            found.verdict == REPRODUCED and seen.verdict != REPRODUCED
        )
        notices = worse or bool(set(seen.missing) - set(found.missing))
        noticed[name] = noticed.get(name, True) and notices
        should[name] = (
            should.get(name, False)
            or world.always
            or (
                judge(_in(evidence, world.change, exact=True)).verdict in (NOT, NOTHING)
            )
        )
    return Outcome(*(tuple(n for n in d if d[n]) for d in (should, noticed)))


def _in(evidence: Evidence, change: Change, exact: bool = False) -> Evidence:
    """The evidence of another world; ``exact`` without intervals."""

    def alter(table: pd.DataFrame, file: str) -> pd.DataFrame:
        table = change(table, file)
        return _without_intervals(table) if exact else table

    return replace(evidence, used=[], altered=alter, trusted=exact)


def _numbers(found: Finding) -> tuple[Any, ...]:
    """What was found whatever the groups are called: a symmetric exchange is none."""
    numbers = sorted(re.findall(r"-?\d[\d.e+-]*", found.reason))
    return found.verdict, len(found.missing), tuple(numbers)


# --- the bench ------------------------------------------------------------------------


def worlds(evidence: Evidence, options: Options) -> Iterator[World]:
    """All worlds that may touch a claim with these options."""
    named = _named(options, METHODS)
    sets = _named(options | (evidence.claim.expects if evidence.claim else {}), DATA)
    yield World("names exchanged", _exchange(METHODS, named), always=_compares(options))
    yield World("data sets exchanged", _exchange(DATA, sets))
    yield from _lost(evidence, options)
    yield World("half empty", lambda table, _: _emptied(table, options), always=True)
    yield World(
        "intervals of no width", lambda table, _: _without_intervals(table), True
    )
    yield World("fresh runs are tuning runs", _repeated, always=True)
    for factor, way in ((1.01, "low"), (0.99, "high")):
        yield World(f"optimum 1 % too {way}", _other_optimum(evidence, factor))
    yield World("steps off by one", _times(lambda name: name == "step", STEP))
    yield World("passes off by one", _next_passes)
    yield World("true epsilons doubled", _times(_is_epsilon, 2.0))
    yield World("bounds x 10", _times(lambda name: "bound" in name, 10.0))
    for shift in (-0.25, 0.25):
        yield World(f"exponents {shift:+g}", _shifted(shift))
    for factor in (0.7, 1.4):
        yield World(f"noise x {factor}", _noisier(factor))
        for name in named or [""]:
            change = _of_method(name, _measured(options), factor)
            yield World(f"errors{name and f' of {name}'} x {factor}", change)
    for factor, word in ((10.0, "x 10"), (0.1, "/ 10")):
        for name in named:
            change = _of_method(name, _seconds(evidence), factor)
            yield World(f"seconds of {name} {word}", change)


def _compares(options: Options) -> bool:
    """Whether a claim says that one is ahead of the other, everywhere."""
    pairs = (("over", "under"), ("first", "second"))
    return options.get("need") != "any" and any(
        all(_named(options.get(one), METHODS) for one in pair) for pair in pairs
    )


def _named(options: Any, columns: tuple[str, ...]) -> list[str]:
    """Values that options give to one of these columns, in order."""
    found: list[str] = []
    if isinstance(options, dict):
        for key, value in options.items():
            if key in columns and not isinstance(value, dict):
                several = value if isinstance(value, list) else [value]
                found += [str(one) for one in several]
            elif isinstance(value, dict):
                found += _named(value, columns)
    return list(dict.fromkeys(found))


def _exchange(columns: tuple[str, ...], named: list[str]) -> Change:
    """Two values under each other's names: one of the claim's, and another."""

    def change(table: pd.DataFrame, file: str) -> pd.DataFrame:
        for column in columns:
            if column in table:
                there = [str(one) for one in table[column].unique()]
                first = [name for name in named if name in there][:1] or there[:1]
                others = [name for name in named if name in there and name not in first]
                if columns is DATA:  # one of which the claim does not speak, first
                    others = [name for name in there if name not in named] + others
                others += [name for name in there if name not in first]
                if first and others:
                    pair = {first[0]: others[0], others[0]: first[0]}
                    return table.assign(**{column: table[column].replace(pair)})
        return table

    return change


def _lost(evidence: Evidence, options: Options) -> Iterator[World]:
    """Without each of the groups that the claim expects; of many, some."""
    each = options.get("each")
    if not isinstance(each, str | list):
        return
    expected = list(evidence.expected(each, options.get("where")))
    for lost in expected[:: len(expected) // LOST + 1]:

        def change(table: pd.DataFrame, file: str, lost: str = lost) -> pd.DataFrame:
            columns = [each] if isinstance(each, str) else each
            if not set(columns) <= set(table):
                return table
            kept = [part for name, part in groups(table, columns) if name != lost]
            return pd.concat(kept) if kept else table.iloc[:0]

        yield World(f"a group lost: {lost}", change, always=True)


def _emptied(table: pd.DataFrame, options: Options) -> pd.DataFrame:
    """Every second row without what was measured."""
    named = [one for one in options.values() if isinstance(one, str)]
    columns = {*rules.measured(table, options), *named} & set(table)
    columns = {c for c in columns if table[c].dtype.kind in "fiu"} - {
        options.get("each")
    }
    table = table.astype(dict.fromkeys(columns, float))
    table.loc[np.arange(len(table)) % 2 == 1, sorted(columns)] = np.nan
    return table


def _without_intervals(table: pd.DataFrame) -> pd.DataFrame:
    """Every interval shrunk to its middle."""
    ends: dict[str, pd.Series] = {}
    for low, high in intervals(table):
        ends |= dict.fromkeys((low, high), (table[low] + table[high]) / 2)
    laws = {name: table["q0.5"] for name in table if name.startswith("q0.")}
    return table.assign(**ends | laws)


def _repeated(table: pd.DataFrame, file: str) -> pd.DataFrame:
    return table.assign(fresh_mean=table["mean"]) if "fresh_mean" in table else table


def _other_optimum(evidence: Evidence, factor: float) -> Change:
    def change(table: pd.DataFrame, file: str) -> pd.DataFrame:
        if "fresh_mean" not in table and _axis(evidence, file, "y") != "relative error":
            return table
        columns = rules.measured(table, {})
        columns = [name for name in columns if name not in ("std", "error")]
        return table.assign(**{c: (1 + table[c]) / factor - 1 for c in columns})

    return change


def _times(which: Callable[[str], bool], factor: float) -> Change:
    def change(table: pd.DataFrame, file: str) -> pd.DataFrame:
        columns = [c for c in table if which(c) and table[c].dtype.kind in "fi"]
        return table.assign(**{c: table[c] * factor for c in columns})

    return change


def _is_epsilon(name: str) -> bool:
    return "epsilon" in name and "target" not in name and name != "epsilon"


def _next_passes(table: pd.DataFrame, file: str) -> pd.DataFrame:
    """Every number of passes under the name of the next; the last has no name."""
    if "passes" not in table or table["passes"].dtype.kind not in "fi":
        return table
    known = sorted(table["passes"].unique())
    following = dict(zip(known, [*known[1:], np.nan], strict=True))
    moved = table.assign(passes=table["passes"].map(following))
    return moved.dropna(subset=["passes"])


def _shifted(shift: float) -> Change:
    def change(table: pd.DataFrame, file: str) -> pd.DataFrame:
        columns = [c for c in table if re.match(r"exponent", c)]
        if columns and {"ci_low", "ci_high"} <= set(table):
            columns += ["ci_low", "ci_high"]
        return table.assign(**{c: table[c] + shift for c in columns})

    return change


def _noisier(factor: float) -> Change:
    change = cells.noisier(factor)
    return lambda table, _: change(table) if "noise_factor" in table else table


def _measured(options: Options) -> Callable[[pd.DataFrame, str], list[str]]:
    return lambda table, _: rules.measured(table, options)


def _seconds(evidence: Evidence) -> Callable[[pd.DataFrame, str], list[str]]:
    timed = {
        claim.options["file"] if "file" not in how else how["file"]
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


def _of_method(
    name: str, which: Callable[[pd.DataFrame, str], list[str]], factor: float
) -> Change:
    """Columns times a factor, in the rows of one method, or in all."""

    def change(table: pd.DataFrame, file: str) -> pd.DataFrame:
        columns = [c for c in which(table, file) if table[c].dtype.kind in "fi"]
        column = next((one for one in METHODS if one in table), None)
        own = table[column].astype(str) == name if name and column else True
        return table.assign(
            **{
                c: table[c].where(~(table[c].notna() & own), table[c] * factor)
                for c in columns
            }
        )

    return change


def _axis(evidence: Evidence, file: str, axis: str) -> str:
    """What the axis of a figure says; empty for a table."""
    path = Path(evidence.path(file)).with_suffix(".json")
    if not (file.startswith("figures/") and path.is_file()):
        return ""
    panels = json.loads(path.read_text(encoding="utf-8")).values()
    return str(next((panel.get(axis, "") for panel in panels), ""))
