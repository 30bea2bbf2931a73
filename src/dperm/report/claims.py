"""The claims of the papers, from their YAML files, and their texts for readers.

A claim (``schema.Claim``) has its place, our words, a rule and the rule's options. The
rule ``cells`` covers all cells of a published table. ``readings`` name the options that
change if the paper is understood in another way. A ``note``, a ``cause`` and ``set`` do
not affect the verdict.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from dperm.core.experiment import config as configuration
from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment.locate import ConfigError, available
from dperm.core.experiment.validation import load_yaml, one_of, paper_file
from dperm.present.tables import plain
from dperm.report import cells, rules
from dperm.report.evidence import (
    HELD,
    NOT,
    SHORT,
    VERDICTS,
    Estimate,
    Evidence,
    Printed,
    interval,
)

Row = dict[str, Any]  # of claims.csv
KINDS = {  # kinds of a claim
    "sentence": "a sentence of the paper",
    "cell": "a number of a printed table",
    "variant": "our variant of a sentence: another reading, calibration or robustness",
    "proof": "a proof or a formula, followed step by step",
    "privacy": "what printed noise costs",
    "other": "about another paper, or nothing that a run can test",
}
STATED = ("sentence", "proof", "privacy")  # kinds of statements of a paper
PRINTED = ("cell",)
HEADLINE = (*STATED, *PRINTED)  # the paper's own claims
CAUSES = {  # causes of a claim that is not confirmed
    "slip": "a slip of the paper",
    "wording": "the wording says more than the paper's own numbers",
    "detail": "a detail that the paper does not give",
    "setup": "our set-up",
    "chance": "chance",
    "unknown": "unknown",
}
READINGS = ("under all", "under some", "under none tried")


def readings(claim: schema.Claim) -> dict[str, dict[str, Any]]:
    """The options of a claim's rule, by reading; the name is "" without readings."""
    tried = {
        name: claim.options | changed
        for name, changed in (claim.readings or {"": {}}).items()
    }
    return {
        name: {key: each for key, each in options.items() if each is not None}
        for name, options in tried.items()
    }


def papers(config: schema.Config) -> Iterator[schema.Config]:
    """The configuration of every paper with claims, at the scale of ``config``."""
    for name in available("paper"):
        found = configuration.with_paper(config, name)
        if found.paper.claims:
            yield found


def load(config: schema.Config) -> list[schema.Claim]:
    """The claims of a paper, checked.

    Raises ConfigError, naming the file, the claim and the fault.
    """
    if not config.paper.claims:
        return []
    place = f"conf/paper/{config.paper.name}/{config.paper.claims}"
    path = paper_file(config.paper, config.paper.claims)
    if path is None:
        raise ConfigError(f"{place}: no such file")
    known = {each.name for each in fields(schema.Claim)}
    found = []
    for number, entry in enumerate(load_yaml(place, path.read_bytes()), 1):
        where = f"{place}: claim {number}"
        wrong = sorted(set(entry) - known) if isinstance(entry, dict) else [entry]
        if wrong:
            raise ConfigError(f"{where}: unknown {wrong}; expected {sorted(known)}")
        try:
            claim = schema.Claim(**entry)
            claim.anchor = claim.anchor and schema.Anchor(**entry["anchor"])
            _check(config, claim)
        except (TypeError, ValueError, KeyError) as error:
            raise ConfigError(f"{where}: {error}") from error
        found.append(claim)
    for number, claim in enumerate(found, 1):
        if claim.kind == "sentence" and authors(config, claim, found).startswith(
            SHORT[NOT]
        ):
            text = "the authors' own numbers fail it; a rule must allow what they print"
            raise ConfigError(f"{place}: claim {number}, {claim.claim!r}: {text}")
    return found


def authors(
    config: schema.Config, claim: schema.Claim, siblings: list[schema.Claim]
) -> str:
    """Verdict and reason of a claim's rule for the numbers that the authors print.

    Empty if the paper does not print them. With readings, the best of them.
    """
    if claim.rule.startswith("cells"):
        return ""
    evidence = Printed(config, claim=claim, siblings=siblings)
    function = rules.function_of(config, claim.rule)
    tried = readings(claim).values()
    findings = [rules.applied(function, each, evidence) for each in tried]
    decided = [each for each in findings if each.verdict in (*HELD, NOT)]
    if not decided or not evidence.used:
        return ""
    best = min(decided, key=lambda each: VERDICTS.index(each.verdict))
    return f"{SHORT[best.verdict]}: {best.reason}"


def _check(config: schema.Config, claim: schema.Claim) -> None:
    one_of("kind", claim.kind, KINDS)
    if claim.cause:
        one_of("cause", claim.cause, CAUSES)
    if claim.rule == "cells":
        _check_cells(config, claim.options)
        return
    evidence = Evidence(config, claim=claim)
    for options in readings(claim).values():
        rules.check(config, claim.rule, options)
        each, where = options.get("each"), options.get("where") or {}
        within = any(isinstance(one, dict) for one in where.values())
        if each and not within and not evidence.expected(each, where):
            raise ValueError(
                f"expects: name the groups of {each}, or list them in where of the "
                "options or of every one of the readings"
            )


def _check_cells(config: schema.Config, options: dict[str, Any]) -> None:
    missing = {"published", "file", "keys", "cells"} - set(options)
    if missing:
        raise ValueError(f"options {sorted(missing)} missing")
    if options["published"] not in config.paper.published:
        raise ValueError(f"published: {options['published']!r} is not in `published`")
    for note in options.get("notes", ()):
        if "cause" in note:
            one_of("notes.cause", note["cause"], CAUSES)
    known = (*cells.KINDS, cells.LAW, cells.STAR)
    for column, how in options["cells"].items():
        if how.get("kind") not in known:
            expected = ", ".join(known)
            raise ValueError(f"cells.{column}.kind: expected one of {expected}")


# --- words for a reader ---------------------------------------------------------------

FIVE = tuple(dict.fromkeys(SHORT.values()))
TEXTS = (
    *("published", "control", "reason", "set", "section", "cause", "note"),
    *("authors", "missing", "excludes"),
)
_FILE = re.compile(r"\b(results|figures)/(?:\w+/)*?(\w+)/(\w+)\.csv")
_FIGURE = re.compile(r"Figures? (\d+)")
_LATEX = {
    r"\epsilon": "ε",
    r"\varepsilon": "ε",
    r"\eta": "η",
    r"\tau": "τ",
    r"\kappa": "κ",
    r"\alpha": "α",
    r"\beta": "β",
    r"\lambda": "λ",
    r"\nabla": "∇",
    r"\|": "‖",
    r"\,": " ",
    r"\ ": " ",
    r"\sqrt": "√",
    r"\times": "×",
    r"\leq": "≤",
    r"\geq": "≥",
    r"\ast": "*",
}


def without_latex(text: str) -> str:
    """A label for a reader, without LaTeX."""
    for latex, letter in sorted(_LATEX.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(latex, letter)
    return re.sub(r"[${}]", "", text.replace("_{", "_"))


def slug(*parts: str) -> str:
    """Letters, digits and hyphens, for the address of a place on the page.

    >>> slug("dpcd", "Table 2, electricity_raw")
    'dpcd-table-2-electricity-raw'
    """
    text = re.sub(r"[^a-z0-9]+", "-", " ".join(parts).lower())
    return text.strip("-")


def claim_id(row: Row) -> str:
    """Identifier of a claim; it depends on its paper, place, words and rule alone."""
    words = [str(row[key]) for key in ("paper", "place", "claim", "rule")]
    place = slug(row["place"])[:40].rstrip("-")
    return f"c-{slug(row['paper'])}-{place}-{store.digest(words)[:6]}"


def complete(data: pd.DataFrame) -> pd.DataFrame:
    """Add missing columns of texts, and make empty cells of texts empty strings."""
    data = data.reindex(columns=dict.fromkeys([*data, *TEXTS]))
    return data.fillna(dict.fromkeys(TEXTS, "")).astype(dict.fromkeys(TEXTS, str))


def number(claim: Row) -> str:
    """The number found, with its interval, as text; empty without a number."""
    if pd.isna(claim["reproduced"]):
        return ""
    ends = (float(claim[key]) for key in ("reproduced", "ci_low", "ci_high"))
    return interval(Estimate(*ends))


def entries(config: schema.Config, claims: pd.DataFrame) -> list[Row]:
    """The claims of one paper, as the page lists them.

    Parameters
    ----------
    config : schema.Config
        With the paper.
    claims : DataFrame
        Claims of all papers, of ``judging.table`` and ``complete``.

    Returns
    -------
    list of dict
        Columns of ``claims.csv``; ``figures``, the figures of the paper that the claim
        was read from or whose number is in its place; ``files``, existing tables that
        it was read from.
    """
    rows = claims[claims["paper"] == config.paper.name].to_dict("records")
    for row in rows:
        figures, files = list[str](), list[Path]()
        for top, paper, name in _FILE.findall(row["reason"]):
            if top == "results":
                files.append(plan.results_folder(config, paper, f"{name}.csv"))
            elif paper == config.paper.name:
                figures.append(name)
        figures += [f"figure{number}" for number in _FIGURE.findall(row["place"])]
        known = [one for one in dict.fromkeys(figures) if one in config.paper.figures]
        there = [path for path in dict.fromkeys(files) if path.is_file()]
        row |= {"figures": known, "files": there}
    return rows


def counted(rows: list[Row], key: str) -> dict[str, int]:
    """Number of claims for each value of a column; a cell may be a list of values."""
    lists = (row[key] if isinstance(row[key], list) else [row[key]] for row in rows)
    return dict(Counter(value for values in lists for value in values))


def scorecard(data: pd.DataFrame, by: str = "paper") -> pd.DataFrame:
    """Number of claims by the five verdicts, one row per value of a column."""
    wide = pd.crosstab(data[by], data["short"])
    wide = wide.reindex(index=data[by].unique(), columns=list(FIVE), fill_value=0)
    return wide.assign(all=wide.sum(axis=1)).reset_index().rename_axis(columns=None)


def majors(data: pd.DataFrame) -> list[dict[str, Any]]:
    """The major claims of a paper, numbered C1, C2 and so on."""
    rows = data[data["first"]].to_dict("records")
    return [{**row, "number": f"C{place}"} for place, row in enumerate(rows, 1)]


def in_words(verdicts: Iterable[str]) -> str:
    """Numbers of the verdicts, in words."""
    found = list(verdicts)
    return ", ".join(f"{found.count(v)} {v}" for v in FIVE if v in found)


def grid(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table of Markdown, without blanks for alignment."""
    lines = [header, ["---"] * len(list(header)), *rows]
    texts = ([plain(cell).replace("|", "/") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in texts)


def tallies(data: pd.DataFrame) -> Iterator[tuple[str, list[str]]]:
    """Yield for each paper how many statements + printed numbers have each verdict."""
    for paper, rows in data.groupby("paper", sort=False):
        stated, printed = (rows[rows["kind"].isin(k)] for k in (STATED, PRINTED))
        pairs = [[sum(e["short"] == v) for e in (stated, printed)] for v in FIVE]
        of_both = len(stated), len(printed)
        if any(of_both):
            yield paper, [f"{a} + {b}" if b else f"{a}" for a, b in (*pairs, of_both)]


def summary(data: pd.DataFrame) -> str:
    """The scorecard, one line per paper."""
    lines = ([paper, *counts] for paper, counts in tallies(data))
    return grid(["paper", *FIVE, "all"], lines)


def markdown(data: pd.DataFrame) -> str:
    """The scorecard, then one line per claim of each paper, major claims first."""
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


# --- anchors: the sentence of a paper that a claim stands for -------------------------
#
# The papers' sentences are not part of this project. Instead, a claim has the section
# of its sentence, the number of its letters and digits, and their digest. A sentence
# with one altered word is not found.


def anchor_key(sentence: str) -> str:
    """Key of a sentence: number and digest of its letters and digits.

    Line breaks, hyphens, ligatures and capitals make no difference.

    >>> anchor_key("DP-CD runs faster.") == anchor_key("DPCD Runs faster")
    True
    """
    text, _ = _letters(sentence)
    return f"{len(text)}-{_digest(text)}"


def anchored(text: str, key: str) -> str:
    """The sentence with that key, as it stands in a text; empty if there is none."""
    length, digest = key.split("-")
    letters, places = _letters(text)
    size = int(length)
    for start in range(len(letters) - size + 1):
        if _digest(letters[start : start + size]) == digest:
            return " ".join(text[places[start] : places[start + size - 1] + 1].split())
    return ""


def _letters(text: str) -> tuple[str, list[int]]:
    """Letters and digits of a text in lower case, and the place of each."""
    kept = [
        (letter, place)
        for place, sign in enumerate(text)
        for letter in unicodedata.normalize("NFKC", sign).lower()
        if letter.isalnum()
    ]
    return "".join(letter for letter, _ in kept), [place for _, place in kept]


def _digest(letters: str) -> str:
    return hashlib.sha256(letters.encode()).hexdigest()[:16]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``dperm anchors``."""
    parser.add_argument("folder", type=Path, help="with the papers' texts, <paper>.txt")
    parser.add_argument("--key", metavar="SENTENCE", help="print its key, and stop")


def main(options: argparse.Namespace) -> None:
    """Print every anchored claim with its sentence, or the key of a sentence.

    Raises ConfigError if the folder lacks a paper's text, or a text lacks a sentence.
    """
    if options.key:
        print(anchor_key(options.key))
        return
    wrapped = partial(textwrap.fill, width=88, subsequent_indent=" " * 12)
    lost = 0
    for config in papers(configuration.compose([])):
        path = options.folder / f"{config.paper.name}.txt"
        for claim in load(config):
            if claim.anchor is None:
                continue
            if not path.is_file():
                text = f"{path}: no such file; expected the paper's text there"
                raise ConfigError(text)
            sentence = anchored(path.read_text("utf-8"), claim.anchor.sentence)
            lost += not sentence
            print(f"{config.paper.name}, {claim.place}")
            print(f"  claim:    {wrapped(claim.claim)}")
            print(f"  sentence: {wrapped(sentence or 'NOT FOUND')}\n")
    if lost:
        raise ConfigError(f"{lost} anchors name no sentence of these texts")
