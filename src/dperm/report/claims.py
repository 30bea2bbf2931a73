"""The claims stage: every claim of every paper, judged from the result tables.

No verdict is written by hand, and a missing result is a verdict too.
"""

from __future__ import annotations

import importlib
import logging
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from dperm.claims import claims, words
from dperm.claims.claims import Claim
from dperm.claims.judge import (
    CONTRADICTED,
    IN_PART,
    NOT_RUN,
    REPRODUCED,
    SUPPORTED,
    UNDECIDED,
    UNINFORMATIVE,
    Finding,
    badness,
    judged,
    verdict_of,
)
from dperm.claims.number import Missing, MissingRow, rounded
from dperm.claims.words import Tables
from dperm.config import config as configuration
from dperm.config import schema
from dperm.config.config import paper_file
from dperm.config.locate import ConfigError
from dperm.config.validation import one_of
from dperm.experiments import makers, results
from dperm.numerics.intervals import t_quantile
from dperm.report import texts
from dperm.storage import files as store
from dperm.storage.files import write_csv
from dperm.storage.source_code import functions, source

log = logging.getLogger(__name__)

CLAIM_COLUMNS = (
    "paper",
    "id",
    "place",
    "section",
    "kind",
    "major",
    "claim",
    "tables",
    "number",
    "accepted",
    "reproduced",
    "ci_low",
    "ci_high",
    "cells",
    "inside",
    "verdict",
    "reason",
    "missing",
    "authors",
    "cause",
    "note",
    "set",
    "defence",
    "misprint",
)
PRINTED = "published/"  # a printed table, as it is
FIGURES = "figures/"  # the data of a figure
MAX_LISTED = 2  # most groups that a reason lists


def write(config: schema.Config) -> list[Path]:
    """Judge all claims of all papers and write ``claims.csv`` and ``claims.md``.

    The stage runs even if results are missing. Raises ConfigError at the end, when the
    others are judged, if a paper's claims cannot be.
    """
    folder = Path(config.output.results)
    written = [folder / name for name in ("claims.csv", "claims.md")]
    rows, faults = judged_all(config)
    write_csv(written[0], pd.DataFrame(rows, columns=list(CLAIM_COLUMNS)))
    claims_table = pd.read_csv(written[0])
    store.write_text(written[1], texts.markdown(claims_table))
    for paper, rows in texts.stated(claims_table).items():
        log.info("%s: %s", paper, texts.score(rows))
    if faults:
        raise ConfigError("; ".join(faults))
    return written


# --- what the judge reads -------------------------------------------------------------


def file_of(paper: schema.Paper) -> str:
    """Name of a paper's file of claims, for messages."""
    return f"conf/paper/{paper.name}/{paper.claims}"


def load(paper: schema.Paper, tables: Tables) -> list[Claim]:
    """The claims of a paper, checked; columns are checked of tables that are there.

    Raises ConfigError, naming the file, the claim and the key.
    """
    path = paper_file(paper, str(paper.claims))
    if path is None:
        raise ConfigError(f"{file_of(paper)}: no such file")
    return claims.load(
        file_of(paper), path.read_bytes(), tables, arguments(paper.name)
    )


def refuse(names: Sequence[str], overrides: Sequence[str]) -> None:
    """Refuse claims of papers that cannot be read, before anything is computed.

    Columns are left unchecked, since the run may make other tables. Raises ConfigError,
    naming the file, the claim and the key.
    """

    def unknown(name: str) -> pd.DataFrame:
        raise MissingRow(name)

    for paper in texts.papers(configuration.settings(overrides)):
        if paper.name in names:
            # a small scale makes less
            full_paper = configuration.read("paper", paper.name)
            product_names = [
                *full_paper.tables,
                *(f"{FIGURES}{name}" for name in full_paper.figures),
            ]
            for number, claim in enumerate(load(paper, unknown), 1):
                for name in read_by(claim):
                    one_of(
                        f"{file_of(paper)}: claim {number}: table",
                        name,
                        product_names,
                    )


def arguments(paper: str) -> dict[str, Callable[..., Any]]:
    """The arguments of proofs by name: a paper's own, then those of all papers."""
    functions_by_name: dict[str, Callable[..., Any]] = {}
    for name in makers.modules(paper, "proofs"):
        try:
            module = importlib.import_module(name)
        except Exception as error:  # the claims of other papers are judged
            text = f"{type(error).__name__}: {error}"
            raise ConfigError(f"{source(name)}: {text}") from error
        functions_by_name = {
            function: getattr(module, function) for function in functions(name)
        } | functions_by_name
    return functions_by_name


def path_of(paper: str, output: schema.Output, name: str) -> Path:
    """Path of the table of that name; ``figures/x`` is the data of a figure."""
    if name.startswith(FIGURES):
        stem = name.removeprefix(FIGURES)
        return Path(output.figures, paper, f"{stem}.csv")
    return Path(output.results, paper, f"{name}.csv")


def tables(paper: schema.Paper, output: schema.Output) -> Tables:
    """The result tables of a paper by name; one that is not there raises Missing.

    ``published/x`` is a printed table.
    """
    cache: dict[str, pd.DataFrame] = {}

    def read(name: str) -> pd.DataFrame:
        if name.startswith(PRINTED):
            return results.published(paper, name.removeprefix(PRINTED))
        path = path_of(paper.name, output, name)
        if not path.is_file():
            raise Missing(f"{path} is not there")
        try:
            if name not in cache:
                cache[name] = pd.read_csv(path)
        except (ValueError, OSError) as error:  # pandas: also empty files
            raise Missing(f"{path} cannot be read: {error}") from None
        return cache[name]

    return read


def published(paper: schema.Paper, claims: list[Claim]) -> Tables:
    """The printed tables in place of ours, with the names of our columns.

    ``tuned`` is the least of all numbers of passes. Other tables raise Missing.
    """
    printed: dict[str, dict[str, Any]] = {}
    for claim in claims:
        printed |= dict.fromkeys(
            claim.printed.get("tables", ()), claim.printed
        )

    def read(name: str) -> pd.DataFrame:
        if name.startswith(PRINTED):
            return results.published(paper, name.removeprefix(PRINTED))
        if name not in printed:
            raise Missing(f"the paper does not print {name}")
        table = results.published(paper, printed[name]["file"])
        table = table.rename(columns=printed[name].get("columns", {}))
        if name == "tuned":
            return table.groupby(
                ["problem", "algorithm"], as_index=False
            ).min()
        return spread(table, int(printed[name].get("runs", 0)))

    return read


def spread(table: pd.DataFrame, runs: int) -> pd.DataFrame:
    """A printed table whose means have the interval of so many runs' deviation.

    They also stand for our means of fresh runs, which authors do not print.
    """
    if runs < 2 or "std" not in table:
        return table
    half = t_quantile(runs - 1) * table["std"] / math.sqrt(runs)
    means = {
        "mean": table["mean"],
        "mean_low": table["mean"] - half,
        "mean_high": table["mean"] + half,
    }
    return table.assign(
        **means, **{f"fresh_{key}": mean for key, mean in means.items()}
    )


# --- rows of claims.csv ---------------------------------------------------------------


def judged_all(config: schema.Config) -> tuple[list[texts.Row], list[str]]:
    """Rows of all papers whose claims can be judged, and the faults of the others."""
    rows: list[texts.Row] = []
    faults: list[str] = []
    is_whole = not config.scale.folder
    for paper in texts.papers(config):
        log.info("  judging %s", paper.name)
        try:
            rows += judged_paper(paper, config.output, is_whole)
        except ConfigError as error:
            faults.append(str(error))
    return rows, faults


def judged_paper(
    paper: schema.Paper, output: schema.Output, is_whole: bool
) -> Iterator[texts.Row]:
    """Rows of one paper, at full scale if its run ``is_whole``.

    Raises ConfigError if the authors' own numbers contradict a sentence or, at full
    scale, if a table that is there lacks a group that a claim is about.
    """
    ours = tables(paper, output)
    paper_claims = load(paper, ours)
    theirs = published(paper, paper_claims)
    follow = arguments(paper.name)
    # What authors print is what they say, whether or not with a spread.
    printed_columns = {
        column
        for claim in paper_claims
        for column in claim.printed.get("columns", {}).values()
    }
    for number, claim in enumerate(paper_claims, 1):
        where = f"{file_of(paper)}: claim {number}"
        try:
            finding = judged(claim, ours, follow, whole=is_whole)
        except MissingRow as error:
            key = "each" if claim.each else "rows"
            raise ConfigError(
                f"{where}: {key}: {claim.table}: {error}"
            ) from None
        printed = Finding(NOT_RUN)
        if claim.table:
            exact = [*claim.exact, *printed_columns]
            own_claim = replace(claim, defence={}, exact=exact)
            printed = judged(own_claim, theirs, follow)
        if claim.kind == "sentence" and fails_authors(printed):
            text = (
                "the authors' own numbers fail it; a range must allow "
                "what they print"
            )
            raise ConfigError(f"{where}: estimate: {text}: {printed.number}")
        if finding.verdict == CONTRADICTED and not claim.defence:
            text = "missing: nothing is contradicted before its authors' best answer"
            if is_whole:
                raise ConfigError(f"{where}: defence: {text}")
            finding = replace(
                finding, verdict=UNDECIDED, reason=f"defence: {text}"
            )
        yield row_of(paper.name, output, claim, finding, printed)


def fails_authors(printed: Finding) -> bool:
    """Whether the authors' own numbers, with their spread, are not in the range.

    An interval without a lower end, as where runs may never be as good, says nothing.
    """
    number = printed.number
    if number is None or printed.verdict in SUPPORTED:
        return False
    spread_known = not (number.bare or number.is_exact) and number.low > 0
    return printed.verdict == CONTRADICTED or spread_known


def row_of(
    paper: str,
    output: schema.Output,
    claim: Claim,
    finding: Finding,
    printed: Finding,
) -> texts.Row:
    """Row of a claim with its finding, and that of the authors' numbers."""
    number = finding.number
    reading = claim.read()[finding.shown]
    row = {
        key: getattr(claim, key) for key in ("kind", "major", "note", "set")
    }
    row |= {
        "paper": paper,
        "id": claim_id(paper, claim),
        "section": claim.anchor.get("section", ""),
        "place": claim.source,
        "claim": claim.statement,
        "tables": "; ".join(
            path_of(paper, output, table_name).as_posix()
            for table_name in read_by(claim)
        ),
        "number": reading.estimate,
        "accepted": accepted(reading),
        "verdict": finding.verdict,
        "reason": reason(reading, finding),
        "missing": "; ".join(finding.missing),
        "authors": f"{printed.verdict}: {printed.number}"
        if printed.number
        else "",
        "cause": claims.CAUSES[
            claim.cause if finding.verdict != REPRODUCED else ""
        ],
        "defence": answered(claim, finding),
        "misprint": claim.misprint,
    }
    if number is None:
        return row
    row |= {
        "reproduced": number.value,
        "ci_low": number.low,
        "ci_high": number.high,
    }
    if claim.kind != "cells":
        return row
    inside = [
        verdict_of(reading, number) == REPRODUCED
        for number in finding.numbers.values()
    ]
    cells = number.of or len(inside)
    many = round(number.value * number.of) if number.of else sum(inside)
    return row | {"cells": cells, "inside": many}


def read_by(claim: Claim) -> list[str]:
    """Names of the tables that a claim is judged from, under any reading."""
    names: dict[str, None] = {}
    for reading in claim.read().values():
        nulls = [null for null in reading.nulls if isinstance(null, str)]
        names[reading.table] = None
        for expression in filter(
            None, (reading.estimate, reading.only, *nulls)
        ):
            reads = words.compiled(expression).reads
            names |= dict.fromkeys(table_name for _, table_name in reads)
    read = (name for name in names if name and name != words.PROOFS)
    return [name for name in read if not name.startswith(PRINTED)]


def claim_id(paper: str, claim: Claim) -> str:
    """Identifier of a claim; it depends on its paper, place and words alone."""
    place = slug(claim.source)[:40].rstrip("-")
    digest = store.digest([paper, claim.source, claim.statement])
    return f"c-{slug(paper)}-{place}-{digest[:6]}"


def slug(text: str) -> str:
    """Letters, digits and hyphens, for the address of a place on the page.

    >>> slug("Table 2, electricity_raw")
    'table-2-electricity-raw'
    """
    return "-".join(re.findall("[a-z0-9]+", text.lower()))


def answered(claim: Claim, finding: Finding) -> str:
    """What the authors may answer, and what becomes of it; empty without an answer."""
    if finding.answer is None:
        return ""
    word = {
        CONTRADICTED: "fails too",
        REPRODUCED: "holds",
        IN_PART: "holds in part",
    }
    outcome = word.get(finding.answer.verdict, str(finding.answer.verdict))
    number = f" ({finding.answer.number})" if finding.answer.number else ""
    return f"{claim.defence['statement']}: {outcome}{number}"


# --- reasons --------------------------------------------------------------------------


def accepted(claim: Claim) -> str:
    """The range of a claim in words: "at least 8.6 (in part 5)"."""
    ends = [
        f"{key.replace('_', ' ')} {rounded(float(end))}"
        for key in claims.ENDS
        if math.isfinite(end := getattr(claim, key))
    ]
    near = (
        claim.tolerance
        if isinstance(claim.tolerance, list)
        else [claim.tolerance]
    )
    wider = " to ".join(rounded(float(end)) for end in near if end is not None)
    share = {"all": "", "any": ", in one case or more"}.get(
        str(claim.required), f", in {claim.required} of the cases"
    )
    return " and ".join(ends) + (wider and f" (in part {wider})") + share


def reason(claim: Claim, finding: Finding) -> str:
    """What a verdict rests on, in one line: readings, gaps, then the worst groups."""
    clauses = []
    if finding.readings:
        supporting = [
            name
            for name, verdict in finding.readings.items()
            if verdict in SUPPORTED
        ]
        listed = (
            f" ({few(supporting)})"
            if 0 < len(supporting) < len(finding.readings)
            else ""
        )
        clauses.append(
            f"under {len(supporting)} of {len(finding.readings)} readings{listed}"
        )
        clauses.append(f"shown is {finding.shown}")
    reasons: dict[str, list[str]] = {}
    for name, why in finding.missing.items():
        reasons.setdefault(why, []).append(
            f"({name})" if ", " in name else name
        )
    for why, names in reasons.items():
        clauses.append(f"missing {few(names)}: {why}" if any(names) else why)
    if finding.number and finding.number.bare:
        clauses.append("no interval is known")
    clauses += _groups(claim, finding)
    if finding.left_out:
        clauses.append(
            f"{finding.left_out} groups left out, where not {claim.only}"
        )
    if finding.reason:
        holds = finding.verdict == UNINFORMATIVE and finding.numbers
        clauses.append(
            "it holds for this too: " * bool(holds) + finding.reason
        )
    return "; ".join(clauses)


def few(names: Sequence[str], limit: int = MAX_LISTED) -> str:
    """The first of the names, and the number of the others."""
    remainder = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + remainder


def _groups(claim: Claim, finding: Finding) -> Iterator[str]:
    """How many groups hold, then the numbers of the worst."""
    numbers = finding.numbers
    total = len(finding.numbers) + len(finding.missing)
    if total > 1:
        verdicts = [verdict_of(claim, number) for number in numbers.values()]
        counts = [f"{verdicts.count(REPRODUCED)} of {total} hold"]
        counts += [
            f"{verdicts.count(v)} {v}"
            for v in (IN_PART, UNDECIDED)
            if v in verdicts
        ]
        yield ", ".join(counts)
    worst = sorted(
        numbers, key=lambda name: badness(claim, numbers[name]), reverse=True
    )
    for name in worst[:MAX_LISTED]:
        yield f"{name}: {numbers[name]}" if name else str(numbers[name])
