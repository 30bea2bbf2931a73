"""Verdicts for a reader: counts by paper, and a line for every claim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from dperm.present.tables import plain
from dperm.report.claims import KINDS, PRINTED, STATED
from dperm.report.entries import number
from dperm.report.verdicts import SHORT

FIVE = tuple(dict.fromkeys(SHORT.values()))
TEXTS = (
    *("published", "control", "reason", "set", "section", "cause", "note"),
    *("authors", "missing", "should_notice", "noticed", "excludes"),
)


def complete(data: pd.DataFrame) -> pd.DataFrame:
    """Claims whose texts are all there, if only as empty ones."""
    data = data.reindex(columns=dict.fromkeys([*data, *TEXTS]))
    return data.fillna(dict.fromkeys(TEXTS, "")).astype(dict.fromkeys(TEXTS, str))


def scorecard(data: pd.DataFrame, by: str = "paper") -> pd.DataFrame:
    """Number of claims by the five verdicts, a row for every value of a column."""
    wide = pd.crosstab(data[by], data["short"])
    wide = wide.reindex(index=data[by].unique(), columns=list(FIVE), fill_value=0)
    return wide.assign(all=wide.sum(axis=1)).reset_index().rename_axis(columns=None)


def majors(data: pd.DataFrame) -> list[dict[str, Any]]:
    """The claims of a paper to see first, numbered: C1, C2 and so on."""
    rows = data[data["first"]].to_dict("records")
    return [{**row, "number": f"C{place}"} for place, row in enumerate(rows, 1)]


def counted(verdicts: Iterable[str]) -> str:
    """How many of which verdict, in words."""
    found = list(verdicts)
    return ", ".join(f"{found.count(v)} {v}" for v in FIVE if v in found)


def grid(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table of Markdown, without the blanks that would line it up."""
    lines = [header, ["---"] * len(list(header)), *rows]
    texts = ([plain(cell).replace("|", "/") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in texts)


def tallies(data: pd.DataFrame) -> Iterator[tuple[str, list[str]]]:
    """By paper how many statements, and printed numbers, have each of the verdicts."""
    for paper, rows in data.groupby("paper", sort=False):
        stated, printed = (rows[rows["kind"].isin(k)] for k in (STATED, PRINTED))
        pairs = [[sum(e["short"] == v) for e in (stated, printed)] for v in FIVE]
        of_both = len(stated), len(printed)
        if any(of_both):
            yield paper, [_sum(*each) for each in (*pairs, of_both)]


def _sum(stated: int, printed: int) -> str:
    return f"{stated} + {printed}" if printed else str(stated)


def summary(data: pd.DataFrame) -> str:
    """The scorecard, a line a paper."""
    lines = ([paper, *counts] for paper, counts in tallies(data))
    return grid(["paper", *FIVE, "all"], lines)


def markdown(data: pd.DataFrame) -> str:
    """The scorecard, then each paper: major claims, and a line for every claim."""
    data = complete(data)
    kinds = "; ".join(f"*{kind}*, {text}" for kind, text in KINDS.items())
    parts = [
        "# Claims and verdicts",
        f"Kinds: {kinds}. `claims.csv` has the reasons, by the ids; an id ends in what "
        "stands here. The scorecard counts sentences, proofs and privacy + cells.",
        summary(data),
    ]
    order = list(KINDS)
    for paper, group in data.groupby("paper", sort=False):
        named = {row["id"]: row["number"] for row in majors(group)}
        rows = group.to_dict("records")
        rows.sort(key=lambda row: (not row["first"], order.index(row["kind"])))
        lines = [
            [
                named.get(row["id"], ""),
                row["kind"],
                *(row[key] for key in ("place", "claim", "short")),
                number(row),
                row["id"].rpartition("-")[2],
            ]
            for row in rows
        ]
        header = ["", "kind", "place", "claim", "verdict", "found", "id"]
        parts += [f"## {paper}", grid(header, lines)]
    return "\n\n".join(parts) + "\n"
