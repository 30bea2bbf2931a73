"""Claims of papers: an entry of YAML each, checked when they are loaded.

    - source: Section 6.1, Figure 1
      statement: DP-CD outperforms DP-SGD by an order of magnitude on imbalanced data.
      kind: sentence
      table: tuned                                        # results/dpcd/tuned.csv
      each: {problem: [electricity_raw, california_raw]}  # a grid; every group must be
      estimate: at(algorithm="DP-SGD") / at(algorithm="DP-CD")
      null: 1                                             # where nothing is behind it
      at_least: 8.6
      tolerance: 5

``estimate`` is evaluated for every group (``dperm.claims.words``). Its 95 % interval
decides: inside the range the claim is reproduced, outside it is contradicted, across an
end nothing is decided; ``tolerance`` is a looser end, or both, for "in part". ``null``
is what the estimate would be if the method did nothing: a claim that holds then too is
uninformative. Without ``null`` that is 1, as of the ratio of equal things.

``defence`` is the best answer of a paper's authors to a number that fails: its
``statement``, and what it changes of the claim. Only if that fails too is the claim
contradicted. ``truth`` is the number if the paper is right, where it prints none.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Strict

from dperm.claims import words
from dperm.claims.number import Missing
from dperm.claims.words import PROOFS, Point, Tables
from dperm.config.locate import ConfigError
from dperm.config.schema import Flag, Section, Text, among
from dperm.config.validation import check, load_yaml, one_of
from dperm.names import hint

KINDS = {
    "sentence": "a sentence of the paper",
    "proof": "a proof or a formula, followed step by step or by runs",
    "privacy": "what printed noise costs",
    "print": "a formula as it is printed, where another line of the paper has it right",
    "cells": "the numbers of a printed table",
    "variant": "our variant of a sentence: another reading, calibration or robustness",
}
STATED = ("sentence", "proof", "privacy", "print")  # what a paper says
CAUSES = {  # of a claim that is not reproduced
    "": "",
    "slip": "a slip of the paper",
    "wording": "the wording says more than the paper's own numbers",
    "detail": "a detail that the paper does not give",
    "setup": "our set-up",
    "chance": "chance",
    "unknown": "unknown",
}
Real = Annotated[float, Strict()]
Grid = dict[str, list[Any]]
ENDS = ("at_least", "at_most", "above", "below")
#: tables whose intervals are those of single tunings, which no number of runs narrows:
#: they predict, and say nothing about a mean
PREDICTIONS = ("tuned",)


@dataclass(frozen=True)
class Claim(Section):
    """An entry of a paper's ``claims.yaml``."""

    source: Text  #: where the paper states it
    statement: Text
    kind: Annotated[str, among(*KINDS)]
    major: Flag = False
    anchor: dict[str, str] = field(
        default_factory=dict
    )  #: section, and sentence's key
    note: str = ""
    cause: Annotated[str, among(*CAUSES)] = ""  #: why it is not reproduced
    set: str = ""  #: when the range was set, and whether results were known
    table: str = ""
    rows: Point = field(
        default_factory=dict
    )  #: of the table, that it is about
    #: a grid of groups, or a list of grids
    each: Grid | list[Grid] | None = None
    without: dict[str, str] = field(
        default_factory=dict
    )  #: value lost: the reason
    estimate: str = ""  #: an expression
    only: str = ""  #: a condition; of other groups it claims nothing
    #: an expression, a mapping of what changes, or a list of these
    null: Any = 1
    required: Any = "all"  #: all, any or a share of the groups
    at_least: Real = -math.inf
    at_most: Real = math.inf
    above: Real = (
        -math.inf
    )  #: an end that the range excludes: a tie is no lead
    below: Real = math.inf
    tolerance: Any = None  #: the looser end, or both, for "in part"
    readings: dict[str, Point] = field(
        default_factory=dict
    )  #: what each changes
    defence: Point = field(
        default_factory=dict
    )  #: its statement, and what it changes
    truth: Any = None  #: an expression: the number if the paper is right
    exact: list[str] = field(
        default_factory=list
    )  #: columns without any chance
    misprint: str = ""  #: its name; claims that share one count once
    #: of ``cells``: the published ``file``, the ``tables`` of ours that it stands for,
    #: and ``columns``, printed to ours
    printed: dict[str, Any] = field(default_factory=dict)

    @property
    def nulls(self) -> list[Any]:
        """Every null."""
        return self.null if isinstance(self.null, list) else [self.null]

    @property
    def range(self) -> tuple[float, float, float, float]:
        """The two ends of the range, and the two looser ones."""
        over = math.isfinite(self.above)
        under = math.isfinite(self.below)
        low = math.nextafter(self.above, math.inf) if over else self.at_least
        high = math.nextafter(self.below, -math.inf) if under else self.at_most
        near = [low, high] if self.tolerance is None else self.tolerance
        if not isinstance(near, list):
            near = [near, high] if math.isfinite(low) else [low, near]
        return low, high, *near

    def changed(self, other: Point) -> Claim:
        """The claim with other values; those of ``rows`` are added."""
        rows = self.rows | other.get("rows", {})
        return replace(
            self, **other | {"rows": rows, "readings": {}, "defence": {}}
        )

    @property
    def answer(self) -> Claim:
        """The claim as its defence has it."""
        changes = {
            key: new for key, new in self.defence.items() if key != "statement"
        }
        base = replace(self, rows={}) if "table" in changes else self
        answer = base.changed(changes)
        own = (
            {} if {"table", "each", "estimate"} & {*changes} else self.readings
        )
        return replace(answer, readings=changes.get("readings", own))

    def read(self) -> dict[str, Claim]:
        """The claim under each reading; under "" without any."""
        readings = {
            name: self.changed(changes or {})
            for name, changes in self.readings.items()
        }
        return readings or {"": self}


def groups(each: Any) -> list[Point]:
    """The points of a grid, or of a list of grids; one empty point for None."""
    grids = each if isinstance(each, list) else [each or {}]
    points: list[Point] = []
    for grid in grids:
        combinations = itertools.product(*grid.values())
        points += [
            dict(zip(grid, combination, strict=True))
            for combination in combinations
        ]
    return points


def load(
    place: str, text: bytes, tables: Tables, arguments: Iterable[str]
) -> list[Claim]:
    """The claims of a YAML document, checked.

    Columns are checked where a table is there, arguments of proofs by their names.
    Raises ConfigError, naming the place, the claim and the key in one line.
    """
    claims = []
    argument_names = set(arguments)
    for number, claim_entry in enumerate(load_yaml(place, text) or [], 1):
        try:
            claims.append(made(claim_entry))
            answers = claims[-1].answer.read() if claims[-1].defence else {}
            for reading in [*claims[-1].read().values(), *answers.values()]:
                _check(reading, tables, argument_names)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{place}: claim {number}: {error}") from None
    return claims


def made(claim_entry: Any) -> Claim:
    """A claim of an entry. Raises ValueError that names the key."""
    if isinstance(claim_entry, dict) and "figure" in claim_entry:
        name = claim_entry["figure"]
        raise ValueError(
            f"figure: expected table: figures/{name}, the figure's data"
        )
    check(claim_entry, Claim)
    claim = Claim(**claim_entry)
    for name, reading in claim.readings.items():
        check(claim_entry | reading, Claim, f"readings: {name}: ")
    for null in claim.nulls:
        if isinstance(null, dict):
            check(claim_entry | null, Claim, "null: ")
    if claim.defence:
        check(claim_entry | claim.defence, Claim, "defence: ")
        if not claim.defence.get("statement") or len(claim.defence) < 2:
            raise ValueError(
                "defence: expected a statement, and an estimate or a range"
            )
    if claim.kind == "print" and not claim.misprint:
        raise ValueError("misprint: expected a name, as kind is print")
    return claim


def _check(claim: Claim, tables: Tables, arguments: set[str]) -> None:
    """Refuse a claim whose expressions have unknown names. Raises ValueError."""
    if not claim.estimate and not claim.readings:
        raise ValueError("estimate: missing")
    if all(math.isinf(end) for end in claim.range[:2]):
        raise ValueError(f"at_least: expected one of {', '.join(ENDS)}")
    if not isinstance(claim.required, int | float):
        one_of("required", claim.required, ("all", "any"))
    points = groups(claim.each)
    axes = set(itertools.chain.from_iterable(points))
    read: list[tuple[str, str, str]] = []  # key, column and its table
    texts = [
        ("estimate", claim.estimate),
        ("only", claim.only),
        ("truth", claim.truth),
    ]
    for key, message in texts + [("null", null) for null in claim.nulls]:
        if isinstance(message, str) and message:
            try:
                expression = words.compiled(message)
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from None
            read += [(key, *read_column) for read_column in expression.reads]
            for argument, name in expression.unquoted:
                if name not in axes:
                    text = f'expected "{name}" in quotes, found {name}'
                    raise ValueError(f"{key}: {argument}: {text}")
    free = {name for _, name, table_name in read if not table_name} & axes | {
        "estimate"
    }
    with_argument = [point for point in points if "argument" in point]
    read += [("each", point["argument"], PROOFS) for point in with_argument]
    predicting = {claim.table, *(table for _, _, table in read)} & {
        *PREDICTIONS
    }
    if predicting and claim.kind in STATED:
        table = " and ".join(predicting)
        raise ValueError(f"table: intervals of {table} are of single tunings")
    read += [("rows", name, claim.table) for name in claim.rows]
    read += [("each", name, "") for name in axes if claim.table]
    for key, name, table_name in read:
        table = table_name or claim.table
        if not name or (not table_name and name in free):
            continue
        columns: Iterable[str] = arguments if table_name == PROOFS else []
        if table and table_name != PROOFS:
            try:
                columns = list(tables(table))
            except Missing:
                continue
        if name not in columns:
            message = f"{key}: {name!r} is no column of {table or 'a table'}"
            raise ValueError(f"{message}{hint(name, [*columns, *free])}")
