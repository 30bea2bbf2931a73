"""Claims of papers: an entry of YAML each, checked when they are loaded.

    - place: Section 6.1, Figure 1
      says: DP-CD outperforms DP-SGD by an order of magnitude on imbalanced data.
      kind: sentence
      table: tuned                                        # results/dpcd/tuned.csv
      each: {problem: [electricity_raw, california_raw]}  # a grid; every group must be
      number: at(algorithm="DP-SGD") / at(algorithm="DP-CD")
      null: 1                                             # where nothing is behind it
      at_least: 8.6
      nearly: 5

``number`` is evaluated for every group (``dperm.judge.words``). Its 95 % interval
decides: inside the range the claim is reproduced, outside it is contradicted, across an
end nothing is decided; ``nearly`` is a looser end, or both, for "in part". ``null`` is
what the number would be if nothing were behind the claim: a claim that holds then too
says nothing. Without ``null`` that is 1, as of the ratio of equal things.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.validation import load_yaml, one_of
from dperm.core.names import hint
from dperm.judge import words
from dperm.judge.number import Missing
from dperm.judge.words import Point, Tables

KINDS = ("sentence", "proof", "privacy", "cells", "variant")
CAUSES = ("slip", "wording", "detail", "setup", "chance", "unknown")
ENDS = ("at_least", "at_most", "above", "below")


@dataclass(frozen=True)
class Claim:
    """An entry of a paper's ``claims.yaml``."""

    place: str
    says: str
    kind: str
    major: bool = False
    anchor: dict[str, str] = field(default_factory=dict)  #: section, and sentence's key
    note: str = ""
    cause: str = ""  #: why it is not reproduced, of ``CAUSES``
    set: str = ""  #: when the range was set, and whether results were known
    why: str = ""  #: why no run can decide; such a claim has no number
    table: str = ""
    rows: Point = field(default_factory=dict)  #: of the table, that it is about
    each: Any = None  #: a grid of groups, or a list of grids
    without: dict[str, str] = field(default_factory=dict)  #: value lost: the reason
    number: str = ""
    only: str = ""  #: a condition; of other groups the claim says nothing
    null: Any = 1  #: an expression, a mapping of what changes, or a list of these
    need: str | float = "all"  #: all, any or a share of the groups
    at_least: float = -math.inf
    at_most: float = math.inf
    above: float = -math.inf  #: an end that the range excludes: a tie is no lead
    below: float = math.inf
    nearly: Any = None
    readings: dict[str, Point] = field(default_factory=dict)  #: what each changes
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
        low = max(self.at_least, math.nextafter(self.above, math.inf))
        high = min(self.at_most, math.nextafter(self.below, -math.inf))
        low = self.at_least if math.isinf(self.above) else low
        high = self.at_most if math.isinf(self.below) else high
        near = [low, high] if self.nearly is None else self.nearly
        if not isinstance(near, list):
            near = [near, high] if math.isfinite(low) else [low, near]
        return low, high, *near

    def changed(self, other: Point) -> Claim:
        """The claim with other values; those of ``rows`` are added."""
        rows = self.rows | other.get("rows", {})
        return replace(self, **other | {"rows": rows, "readings": {}})

    def read(self) -> dict[str, Claim]:
        """The claim under each reading; under "" without any."""
        found = {name: self.changed(one or {}) for name, one in self.readings.items()}
        return found or {"": self}


FIELDS = tuple(each.name for each in fields(Claim))


def groups(each: Any) -> list[Point]:
    """The points of a grid, or of a list of grids; one empty point for None."""
    grids = each if isinstance(each, list) else [each or {}]
    return [
        dict(zip(grid, values, strict=True))
        for grid in grids
        for values in itertools.product(*grid.values())
    ]


def load(
    place: str, text: bytes, tables: Tables, arguments: Iterable[str]
) -> list[Claim]:
    """The claims of a YAML document, checked.

    Columns are checked where a table is there, arguments of proofs by their names.
    Raises ConfigError, naming the place, the claim and the key in one line.
    """
    found, known = [], set(arguments)
    for number, entry in enumerate(load_yaml(place, text) or [], 1):
        try:
            found.append(made(entry))
            for one in found[-1].read().values():
                _check(one, tables, known)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{place}: claim {number}: {error}") from None
    return found


def made(entry: Any) -> Claim:
    """A claim of an entry. Raises ValueError that names the key."""
    if not isinstance(entry, dict):
        raise ValueError(f"expected a mapping, found {entry!r}")
    for one in [entry, *entry.get("readings", {}).values()]:
        for key in one:
            one_of("key", key, FIELDS)
    for key in ("place", "says", "kind"):
        if not entry.get(key):
            raise ValueError(f"{key}: missing")
    one_of("kind", entry["kind"], KINDS)
    one_of("cause", entry.get("cause", "chance"), CAUSES)
    return Claim(**entry)


def _check(claim: Claim, tables: Tables, arguments: set[str]) -> None:
    """Refuse a claim whose expressions have unknown names. Raises ValueError."""
    if bool(claim.number) == bool(claim.why):
        raise ValueError("number: expected one, or why there is none")
    if claim.why:
        return
    for key in ENDS:
        if not isinstance(getattr(claim, key), int | float):
            raise ValueError(f"{key}: expected a number, found {getattr(claim, key)!r}")
    if all(math.isinf(end) for end in claim.range[:2]):
        raise ValueError(f"at_least: expected one of {', '.join(ENDS)}")
    if isinstance(claim.need, str):
        one_of("need", claim.need, ("all", "any"))
    points = groups(claim.each)
    for point in points:
        if "argument" in point:
            one_of("each: argument", point["argument"], sorted(arguments))
    own = {key for point in points for key in point}
    read: list[tuple[str, str, str]] = []  # key, column and its table
    for key in ("number", "only", "null"):
        for one in claim.nulls if key == "null" else [getattr(claim, key)]:
            if isinstance(one, str) and one:
                try:
                    read += [(key, *each) for each in words.columns(one)]
                except ValueError as error:
                    raise ValueError(f"{key}: {error}") from None
    free = {name for _, name, of in read if not of} & own | {"number"}
    read += [("rows", name, claim.table) for name in claim.rows]
    read += [("each", name, "") for name in own if claim.table]
    for key, name, of in read:
        if of or name not in free:
            try:
                columns = list(tables(of or claim.table)) if of or claim.table else []
            except Missing:
                continue
            if name not in columns:
                text = (
                    f"{key}: {name!r} is no column of {of or claim.table or 'a table'}"
                )
                raise ValueError(f"{text}{hint(name, [*columns, *free])}")
