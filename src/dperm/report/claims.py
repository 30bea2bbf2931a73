"""The claims stage: every claim of every paper, judged from the result files.

A claim is an entry of ``conf/claims/<paper>.yaml``, the file that ``claims`` of the
paper's YAML names: its place, what it says (in our words), a rule and the rule's
options. The rule ``cells`` stands for all cells of a published table. No verdict is
written by hand, and a missing result is a verdict too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from tabulate import tabulate

from dperm import config as configuration
from dperm import schema
from dperm.locate import ConfigError, available
from dperm.pipeline import inputs, results
from dperm.report import cells, rules
from dperm.report.evidence import Estimate, Evidence, MissingError
from dperm.report.rules import CAVEAT, REPRODUCED, UNTESTED, VERDICTS, Finding
from dperm.store import files as store
from dperm.validation import paper_file

log = logging.getLogger(__name__)

COLUMNS = [
    "paper", "place", "claim", "rule", "published", "reproduced", "ci_low", "ci_high",
    "verdict", "reason",
]  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """A sentence or a table of a paper and the rule that judges it.

    Attributes
    ----------
    place, claim : str
        Where it stands, and what it says in our words.
    rule : str
        Of ``dperm.report.rules``, or ``cells``.
    options : dict
        Of the rule.
    published : str
        What the paper says, for the table.
    provided : dict
        A control without which a claim holds with a caveat only: ``rule``, ``options``,
        ``says``.
    note : str
        Explains a verdict that is not "reproduced"; it decides nothing.
    """

    place: str
    claim: str
    rule: str
    options: dict[str, Any]
    published: str = ""
    provided: dict[str, Any] | None = None
    note: str = ""


@dataclass(frozen=True)
class Judged:
    """A claim and what was found."""

    paper: str
    place: str
    claim: str
    rule: str
    finding: Finding
    files: tuple[str, ...]

    def row(self) -> dict[str, Any]:
        """A row of ``claims.csv``."""
        found = self.finding.reproduced
        ends = (found.value, found.low, found.high) if found else (None,) * 3
        files = ", ".join(self.files)
        reason = self.finding.reason
        told = f"{files}: {reason}" if files and files not in reason else reason
        values = (self.paper, self.place, self.claim, self.rule, self.finding.published,
                  *ends, self.finding.verdict, told)  # fmt: skip
        return dict(zip(COLUMNS, values, strict=True))


def claims(config: schema.Config) -> list[Path]:
    """Judge all claims of all papers and write ``claims.csv`` and ``claims.md``.

    The stage runs with whatever results there are.
    """
    data = table(config)
    folder = inputs.results_folder(config)
    store.write_text(folder / "claims.csv", data.to_csv(index=False))
    store.write_text(folder / "claims.md", markdown(data))
    for line in summary(data).splitlines():
        log.info("%s", line)
    return [folder / "claims.csv", folder / "claims.md"]


def table(config: schema.Config) -> pd.DataFrame:
    """Rows of ``claims.csv``, in the order of the papers' YAML files."""
    rows = [each.row() for paper in papers(config) for each in judged(paper)]
    return pd.DataFrame(rows, columns=COLUMNS)


def papers(config: schema.Config) -> Iterator[schema.Config]:
    """The configuration of every paper that makes claims, at the scale of this one."""
    for name in available("paper"):
        found = configuration.with_paper(config, name)
        if found.paper.claims:
            yield found


def load(config: schema.Config) -> list[Claim]:
    """The claims of a paper, checked.

    Raises
    ------
    ConfigError
        Naming the file, the claim and what is wrong.
    """
    if not config.paper.claims:
        return []
    path = paper_file(config.paper, config.paper.claims)
    if path is None:
        raise ConfigError(f"{_place(config)}: no such file")
    known = {each.name for each in fields(Claim)}
    found = []
    for number, entry in enumerate(yaml.safe_load(path.read_text()), 1):
        where = f"{_place(config)}: claim {number}"
        wrong = sorted(set(entry) - known) if isinstance(entry, dict) else [entry]
        if wrong:
            raise ConfigError(f"{where}: unknown {wrong}; expected {sorted(known)}")
        try:
            claim = Claim(**entry)
            _check(config, claim)
        except (TypeError, ValueError, KeyError) as error:
            raise ConfigError(f"{where}: {error}") from error
        found.append(claim)
    return found


def _place(config: schema.Config) -> str:
    return f"conf/paper/{config.paper.name}/{config.paper.claims}"


def judged(config: schema.Config) -> Iterator[Judged]:
    """Every claim of one paper, judged."""
    for claim in load(config):
        if claim.rule == "cells":
            yield from _cells(config, claim)
        else:
            yield _sentence(config, claim)


def _check(config: schema.Config, claim: Claim) -> None:
    if claim.rule == "cells":
        _check_cells(config, claim.options)
    else:
        rules.check_options(claim.rule, claim.options)
    if claim.provided:
        rules.check_options(claim.provided["rule"], claim.provided["options"])


def _check_cells(config: schema.Config, options: dict[str, Any]) -> None:
    missing = {"published", "file", "keys", "cells"} - set(options)
    if missing:
        raise ValueError(f"options {sorted(missing)} missing")
    if options["published"] not in config.paper.published:
        raise ValueError(f"published: {options['published']!r} is not in `published`")
    for column, how in options["cells"].items():
        if how.get("kind") not in cells.KINDS:
            known = ", ".join(cells.KINDS)
            raise ValueError(f"cells.{column}.kind: expected one of {known}")


def _sentence(config: schema.Config, claim: Claim) -> Judged:
    evidence = Evidence(config)
    finding = _found(evidence, claim.rule, claim.options)
    if claim.provided and finding.verdict == REPRODUCED:
        control = _found(evidence, claim.provided["rule"], claim.provided["options"])
        finding = _with_control(finding, control, claim.provided.get("says", "control"))
    finding = Finding(
        finding.verdict,
        _noted(finding, claim.note),
        finding.reproduced,
        claim.published or finding.published,
    )
    names = (config.paper.name, claim.place, claim.claim, claim.rule)
    return Judged(*names, finding, tuple(evidence.used))


def _found(evidence: Evidence, name: str, options: dict[str, Any]) -> Finding:
    try:
        return rules.RULES[name](evidence, **options)
    except MissingError as error:
        return Finding(UNTESTED, str(error))


def _with_control(finding: Finding, control: Finding, says: str) -> Finding:
    """A claim that holds, but not for its reason, holds with a caveat."""
    verdict = finding.verdict if control.verdict == REPRODUCED else CAVEAT
    held = "holds" if control.verdict == REPRODUCED else "does not hold"
    reason = f"{finding.reason}. {says} {held}: {control.reason}"
    return Finding(verdict, reason, finding.reproduced, finding.published)


def _noted(finding: Finding, note: str) -> str:
    """The reason with the claim's note, which explains but does not judge."""
    if not note or finding.verdict == REPRODUCED:
        return finding.reason
    return f"{finding.reason}. Note: {note}"


def _cells(config: schema.Config, claim: Claim) -> Iterator[Judged]:
    options, paper = claim.options, config.paper.name
    printed = results.published(config, options["published"])
    evidence = Evidence(config)
    for row, column, finding in cells.judged(evidence, printed, options):
        name = ", ".join(_name(row[key]) for key in options["keys"])
        quantity = column.removesuffix("_mean").replace("_", " ")
        told = Finding(
            finding.verdict,
            _noted(finding, _note_of(options, row)),
            finding.reproduced,
            finding.published,
        )
        place = f"{claim.place}, {name}"
        text = f"{quantity} of {name}"
        files = tuple(evidence.used)
        yield Judged(paper, place, text, f"cells, {options['cells'][column]['kind']}",
                     told, files)  # fmt: skip


def _name(key: Any) -> str:
    return f"{key:g}" if isinstance(key, int | float) else str(key)


def _note_of(options: dict[str, Any], row: dict[str, Any]) -> str:
    """The notes whose condition the row meets."""
    return " ".join(
        note["says"]
        for note in options.get("notes", ())
        if all(row[key] == each for key, each in note["where"].items())
    )


# --- what a reader is shown -----------------------------------------------------------


def scorecard(data: pd.DataFrame) -> pd.DataFrame:
    """Number of claims by paper, kind (cells, sentences) and verdict."""
    kind = data["rule"].str.startswith("cells").map({True: "cells", False: "sentences"})
    counts = data.groupby([data["paper"], kind.rename("of")])["verdict"].value_counts()
    wide = counts.unstack(fill_value=0).reindex(columns=list(VERDICTS), fill_value=0)
    wide["all"] = wide.sum(axis=1)
    return wide.reset_index().rename_axis(columns=None)


def summary(data: pd.DataFrame) -> str:
    """The scorecard in lines."""
    return tabulate(scorecard(data), headers="keys", tablefmt="pipe", showindex=False)


def markdown(data: pd.DataFrame) -> str:
    """The scorecard, the sentences of every paper, then the cells."""
    is_cell = data["rule"].str.startswith("cells")
    parts = ["# Claims and verdicts", summary(data)]
    for paper, group in data.groupby("paper", sort=False):
        parts.append(f"## {paper}")
        for title, rows in (
            ("Sentences", group[~is_cell[group.index]]),
            ("Cells of tables", group[is_cell[group.index]]),
        ):
            if len(rows):
                parts += [f"### {title}", _listed(rows)]
    return "\n\n".join(parts) + "\n"


def _listed(rows: pd.DataFrame) -> str:
    lines = [
        {"place": row["place"], "claim": row["claim"], "published": row["published"],
         "reproduced": _interval(row), "verdict": row["verdict"],
         "reason": str(row["reason"]).replace("|", "/")}
        for row in rows.to_dict("records")
    ]  # fmt: skip
    return tabulate(pd.DataFrame(lines), headers="keys", tablefmt="pipe",
                    showindex=False, disable_numparse=True)  # fmt: skip


def _interval(row: dict[str, Any]) -> str:
    if pd.isna(row["reproduced"]):
        return ""
    found = Estimate(*(float(row[key]) for key in ("reproduced", "ci_low", "ci_high")))
    return rules.interval(found)
