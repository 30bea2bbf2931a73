"""The claims of the papers, as their YAML files make them.

A claim is an entry of the file that ``claims`` of the paper's YAML names: its place,
what it says (in our words), a rule and the rule's options. The rule ``cells`` stands
for all cells of a published table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import yaml

from dperm import config as configuration
from dperm import schema
from dperm.locate import ConfigError, available
from dperm.report import cells, rules
from dperm.validation import one_of, paper_file

KINDS = {  # of a claim, each with a column of its own in the scorecard
    "sentence": "a sentence of the paper",
    "cell": "a number of a printed table",
    "variant": "our variant of a sentence: another reading, calibration or robustness",
    "proof": "a proof or a formula, followed step by step",
    "privacy": "what printed noise costs",
    "other": "about another paper, or nothing that a run can test",
}
HEADLINE = ("sentence", "cell")  # the paper's own
READINGS = ("under all", "under some", "under none tried")


@dataclass(frozen=True)
class Claim:
    """A sentence or a table of a paper and the rule that judges it.

    Attributes
    ----------
    place, claim : str
        Where it stands, and what it says in our words.
    kind : str
        Of ``KINDS``.
    rule : str
        Of ``dperm.report.rules``, or ``cells``.
    options : dict
        Of the rule.
    published : str
        What the paper says, for the table.
    readings : dict
        Where the paper leaves a choice open: a name of each reading that was tried to
        the options it changes. The claim is judged under all of them.
    note : str
        Explains a verdict that is not "reproduced"; it decides nothing.
    set : str
        When its thresholds were set, and whether the results were known.
    first : bool
        One of the ten that a reader wants to see.
    """

    place: str
    claim: str
    rule: str
    options: dict[str, Any]
    kind: str = "sentence"
    published: str = ""
    readings: dict[str, dict[str, Any]] = field(default_factory=dict)
    note: str = ""
    set: str = ""
    first: bool = False

    def under(self, reading: str) -> dict[str, Any]:
        """The options under a reading."""
        changed = self.options | self.readings[reading]
        return {key: each for key, each in changed.items() if each is not None}


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


def _check(config: schema.Config, claim: Claim) -> None:
    one_of("kind", claim.kind, KINDS)
    if claim.rule == "cells":
        _check_cells(config, claim.options)
        return
    rules.check(config, claim.rule, claim.options)
    for name in claim.readings:
        rules.check(config, claim.rule, claim.under(name))


def _check_cells(config: schema.Config, options: dict[str, Any]) -> None:
    missing = {"published", "file", "keys", "cells"} - set(options)
    if missing:
        raise ValueError(f"options {sorted(missing)} missing")
    if options["published"] not in config.paper.published:
        raise ValueError(f"published: {options['published']!r} is not in `published`")
    for column, how in options["cells"].items():
        if how.get("kind") not in (*cells.KINDS, cells.LAW):
            known = ", ".join((*cells.KINDS, cells.LAW))
            raise ValueError(f"cells.{column}.kind: expected one of {known}")
