"""The claims of the papers, as their YAML files make them (``schema.Claim``).

A claim has its place, our words, a rule and the rule's options. The rule ``cells``
stands for all cells of a published table; ``readings`` name the options that a choice
of the paper's changes. A ``note``, a ``cause`` and ``set`` decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from dperm.core.experiment import config as configuration
from dperm.core.experiment import schema
from dperm.core.experiment.locate import ConfigError, available
from dperm.core.experiment.validation import load_yaml, one_of, paper_file
from dperm.report import cells, rules
from dperm.report.evidence import Evidence, Printed
from dperm.report.verdicts import HELD, NOT, SHORT, VERDICTS

KINDS = {  # of a claim
    "sentence": "a sentence of the paper",
    "cell": "a number of a printed table",
    "variant": "our variant of a sentence: another reading, calibration or robustness",
    "proof": "a proof or a formula, followed step by step",
    "privacy": "what printed noise costs",
    "other": "about another paper, or nothing that a run can test",
}
STATED = ("sentence", "proof", "privacy")  # by the paper
PRINTED = ("cell",)
HEADLINE = (*STATED, *PRINTED)  # the paper's own
CAUSES = {  # of a claim that is not confirmed
    "slip": "a slip of the paper",
    "wording": "the wording says more than the paper's own numbers",
    "detail": "a detail that the paper does not give",
    "setup": "our set-up",
    "chance": "chance",
    "unknown": "unknown",
}
READINGS = ("under all", "under some", "under none tried")


def readings(claim: schema.Claim) -> dict[str, dict[str, Any]]:
    """The options of a claim's rule, by the reading that was tried; "" if by none."""
    tried = {
        name: claim.options | changed
        for name, changed in (claim.readings or {"": {}}).items()
    }
    return {
        name: {key: each for key, each in options.items() if each is not None}
        for name, options in tried.items()
    }


def papers(config: schema.Config) -> Iterator[schema.Config]:
    """The configuration of every paper that makes claims, at the scale of this one."""
    for name in available("paper"):
        found = configuration.with_paper(config, name)
        if found.paper.claims:
            yield found


def load(config: schema.Config) -> list[schema.Claim]:
    """The claims of a paper, checked.

    Raises ConfigError, naming the file, the claim and what is wrong.
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
    """What a claim's rule makes of the numbers that the authors print.

    Empty where the paper does not print them. Under readings it is the best of them.
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
                f"expects: name the groups of {each}, or list them in where"
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
