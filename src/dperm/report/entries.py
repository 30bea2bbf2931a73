"""Claims as the page and the scorecard list them.

What a claim is about is read off its text, its place and its rule's options: names of
problems, labels and names of solvers, and the files it was judged by.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment.locate import available
from dperm.present.looks import METHODS
from dperm.present.tables import plain
from dperm.report.claims import KINDS, PRINTED, STATED, load
from dperm.report.evidence import Estimate
from dperm.report.verdicts import PENDING, SHORT, interval

Claims = list[dict[str, Any]]
_FILE = re.compile(r"\b(results|figures)/(?:\w+/)*?(\w+)/(\w+)\.csv")
_FIGURE = re.compile(r"Figures? (\d+)")


@dataclass(frozen=True)
class Names:
    """What a claim may be about: names in texts to what the page calls them."""

    problems: dict[str, str]  #: name of a problem to its title
    methods: dict[str, str]  #: label, or name, of a solver to its label


def slug(*parts: str) -> str:
    """Letters, digits and hyphens, for the address of a place in the page.

    >>> slug("dpcd", "Table 2, electricity_raw")
    'dpcd-table-2-electricity-raw'
    """
    text = re.sub(r"[^a-z0-9]+", "-", " ".join(parts).lower())
    return text.strip("-")


def claim_id(row: dict[str, Any]) -> str:
    """A name that lasts as long as the paper, place, words and rule of the claim do."""
    words = [str(row[key]) for key in ("paper", "place", "claim", "rule")]
    place = slug(row["place"])[:40].rstrip("-")
    return f"c-{slug(row['paper'])}-{place}-{store.digest(words)[:6]}"


def names(config: schema.Config) -> Names:
    """All problems and solvers that there are configurations of."""
    read, overrides = configuration.read, config.overrides
    problems = {
        name: read("problem", name, overrides).title or name
        for name in available("problem")
    }
    methods = {label: label for label in METHODS}
    for name in available("solver"):
        label = read("solver", name, overrides).label
        methods |= {name: label, label: label}
    return Names(problems, methods)


def mentioned(text: str, known: dict[str, str]) -> list[str]:
    """Values of the keys that occur in a text as words, the longest key first.

    A key inside of a longer one that was found does not count: "DP-CD-uniform" is no
    "DP-CD". In the order of ``known``.
    """
    values = set()
    for key in sorted(known, key=len, reverse=True):
        pattern = rf"(?<![\w-]){re.escape(key)}(?![\w-])"
        text, hits = re.subn(pattern, "\0", text)
        if hits:
            values.add(known[key])
    return [value for value in dict.fromkeys(known.values()) if value in values]


def entries(config: schema.Config, claims: pd.DataFrame, known: Names) -> Claims:
    """The claims of one paper with ``id``, ``problems``, ``methods``, ``figures``.

    Parameters
    ----------
    config : schema.Config
        With the paper.
    claims : DataFrame
        Of ``judging.table``, of all papers.
    known : Names
        Of ``names``.
    """
    texts = ("published", "reason", "control", "set")
    rows = claims[claims["paper"] == config.paper.name]
    rows = rows.fillna(dict.fromkeys(texts, "")).astype(dict.fromkeys(texts, str))
    options = {  # of a claim by its words: all words of its options and readings
        claim.claim: " ; ".join(_words([claim.options, claim.readings]))
        for claim in load(config)
        if claim.rule != "cells"
    }
    problems = {name: name for name in known.problems}
    listed = rows.to_dict("records")
    for row in listed:
        # The reason too is searched for names, where the claim was judged.
        judged = "" if row["verdict"] == PENDING else row["reason"]
        parts = (row["place"], row["claim"], options.get(row["claim"], ""), judged)
        text = " ; ".join(parts)
        row["id"] = claim_id(row)
        row["problems"] = mentioned(text, problems)
        row["methods"] = mentioned(text, known.methods)
        row |= _evidence(config, row)
    return listed


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _words([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _words(each)
    else:
        yield str(value)


def _evidence(config: schema.Config, row: dict[str, Any]) -> dict[str, list[Any]]:
    """Figures and tables that a claim was read from, as far as they are there.

    A figure too whose number the claim's place has.
    """
    read = {"figures": list[Any](), "results": list[Any]()}
    for top, paper, name in _FILE.findall(row["reason"]):
        if top == "results":
            read[top].append(plan.results_folder(config, paper, f"{name}.csv"))
        elif paper == config.paper.name:
            read[top].append(name)
    placed = [f"figure{number}" for number in _FIGURE.findall(row["place"])]
    names = dict.fromkeys([*read["figures"], *placed])
    return {
        "figures": [name for name in names if name in config.paper.figures],
        "files": [path for path in dict.fromkeys(read["results"]) if path.is_file()],
    }


def counted(rows: Claims, key: str) -> dict[str, int]:
    """How many claims have each value of a column, or hold it in their list."""
    lists = (row[key] if isinstance(row[key], list) else [row[key]] for row in rows)
    return dict(Counter(value for values in lists for value in values))


def number(claim: dict[str, Any]) -> str:
    """What was found, with its interval; empty where nothing was."""
    if pd.isna(claim["reproduced"]):
        return ""
    ends = (float(claim[key]) for key in ("reproduced", "ci_low", "ci_high"))
    return interval(Estimate(*ends))


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


def in_words(verdicts: Iterable[str]) -> str:
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
