"""What a verification has covered: counts by kind of file, and the faults."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

# Kinds of files and of what is in them, in the order of a summary.
KINDS = (
    "files",
    "rows",
    "tables",
    "figures",
    "pictures",
    "verdicts",
    "pages",
    "audit",
    "data",
    "optima",
    "ledgers",
    "settings",
)
CHECKED = "checked"  # read and compared with a digest or with another file
REMADE = "made again"  # made from what it follows from, and compared
ABSENT = "absent"
# What it follows from is not here, or takes hours
UNCHECKABLE = "not checkable"
STATES = (CHECKED, REMADE, ABSENT, UNCHECKABLE)


@dataclass
class Coverage:
    """Counts of a verification by kind and state, and its faults."""

    #: whether a file that is absent is no fault
    is_partial: bool = False
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def count(self, kind: str, state: str, number: int = 1) -> None:
        """Count things of a kind."""
        self.counts[kind, state] += number

    def add(self, other: Coverage) -> None:
        """Add the counts and the faults of another verification."""
        self.counts.update(other.counts)
        self.faults += other.faults

    def absent(self, kind: str, name: object, cure: str) -> None:
        """Count something absent, which is a fault unless a part was asked for."""
        self.count(kind, ABSENT)
        if not self.is_partial:
            self.faults.append(
                f"{name} is missing: {cure}, or verify with --partial"
            )

    def by_kind(self) -> dict[str, dict[str, int]]:
        """The counts of every kind that there is something of."""
        return {
            kind: {state: self.counts[kind, state] for state in STATES}
            for kind in KINDS
            if any(self.counts[kind, state] for state in STATES)
        }

    def lines(self) -> list[str]:
        """A table of the counts, one line a kind."""
        heading = " ".join(f"{state:>13}" for state in STATES)
        lines = [f"{'':9}{heading}"]
        for kind, states in self.by_kind().items():
            numbers = " ".join(f"{number:13,}" for number in states.values())
            lines.append(f"{kind:9}{numbers}")
        return lines

    def summary(self) -> dict[str, Any]:
        """The same as values of JSON."""
        return {"kinds": self.by_kind(), "faults": self.faults}
