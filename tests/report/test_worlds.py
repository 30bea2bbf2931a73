"""What is missing or impossible is noticed, and what a claim should notice is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment import schema
from dperm.core.experiment.config import compose
from dperm.report import claims, judging, rules
from dperm.report.evidence import (
    CAVEAT,
    HELD,
    NOT,
    PENDING,
    REPRODUCED,
    UNTESTED,
    Evidence,
    flaw_of,
)

from . import worlds
from .conftest import COLUMNS, ROWS, write

TABLE = pd.DataFrame(ROWS, columns=COLUMNS)
AHEAD = {
    "file": "table", "each": "problem", "best": "mean", "above": 1,
    "over": {"algorithm": "slow"}, "under": {"algorithm": "quick"},
}  # fmt: skip


@pytest.fixture
def judge(config):
    """Judge a rule on a table, with what the claim expects."""

    def judge(table, rule="ratio", expects=None, without=None, **options):
        write(config, "table", table)
        claim = schema.Claim(
            place="here", claim="it is so", rule=rule, options=options,
            expects=expects or {}, without=without or {},
        )  # fmt: skip
        evidence = Evidence(config, claim=claim, siblings=[claim])
        found = rules.applied(rules.function_of(config, rule), options, evidence)
        return evidence, found

    return judge


def verdict(judge, table, **options):
    return judge(table, **AHEAD | options)[1].verdict


CLEAR = TABLE[TABLE["problem"] == "a"]
BOTH = pd.concat([CLEAR, CLEAR.assign(problem="b")])


def test_a_group_that_is_not_there_keeps_all_from_being_reproduced(judge):
    expects = {"problem": ["a", "b"]}
    assert verdict(judge, BOTH, expects=expects) == REPRODUCED
    _, found = judge(CLEAR, expects=expects, **AHEAD)
    assert (found.verdict, found.missing) == (PENDING, ("b",))
    assert "missing b: no row" in found.reason
    _, found = judge(CLEAR, where={"problem": ["a", "b"]}, **AHEAD)
    assert (found.verdict, found.missing) == (PENDING, ("b",))
    assert verdict(judge, CLEAR) == REPRODUCED  # nothing says that there is a b


def test_a_missing_group_improves_no_verdict(judge):
    worse = CLEAR.assign(problem="b", algorithm=CLEAR["algorithm"].map(
        {"slow": "quick", "quick": "slow"}))  # fmt: skip
    expects = {"problem": ["a", "b"]}
    assert verdict(judge, pd.concat([CLEAR, worse]), expects=expects) == NOT
    assert verdict(judge, CLEAR, expects=expects) == PENDING
    assert verdict(judge, worse, expects=expects) == NOT


def test_a_group_that_cannot_be_had_leaves_the_claim_in_part(judge):
    expects = {"problem": ["a", "b"]}
    _, found = judge(CLEAR, expects=expects, without={"b": "not published"}, **AHEAD)
    assert (found.verdict, found.missing) == (CAVEAT, ("b",))
    assert "missing b: not published" in found.reason


def test_somewhere_is_still_somewhere_but_says_what_is_missing(judge):
    expects = {"problem": ["a", "b", "c"]}
    _, found = judge(CLEAR, expects=expects, need="any", **AHEAD)
    assert (found.verdict, found.missing) == (REPRODUCED, ("b", "c"))
    assert verdict(judge, CLEAR, expects=expects, need=0.5) == PENDING  # 1 of 3
    assert verdict(judge, BOTH, expects=expects, need=0.5) == REPRODUCED


def test_columns_may_be_expected_together(judge):
    table = BOTH.assign(panel=BOTH["problem"].map({"a": 1, "b": 2}))
    expects = {"problem, panel": [["a", 1], ["b", 2]]}
    given = {"expects": expects, "each": ["problem", "panel"]}
    assert verdict(judge, table, **given) == REPRODUCED
    assert verdict(judge, table[table["panel"] == 1], **given) == PENDING


def test_an_empty_cell_is_missing_and_never_0(judge):
    empty = CLEAR.assign(mean=[0.5, np.nan, 0.03, 0.02])
    assert verdict(judge, empty, expects={"problem": ["a"]}) == PENDING
    counts = pd.DataFrame({"problem": ["a", "b"], "wrong": [0.0, 0.0], "found": 3.0})
    options = {"rule": "never", "file": "table", "hits": "wrong", "found": "found"}
    assert judge(counts, **options)[1].verdict == REPRODUCED
    _, found = judge(counts.assign(wrong=np.nan), **options)
    assert found.verdict == PENDING and "empty cell of wrong" in found.reason


def test_an_empty_cell_that_its_table_explains_decides_nothing(judge):
    rates = pd.DataFrame(
        {"p": [1, 2], "exponent": [-1.0, np.nan], "reason": [np.nan, "2 of 7 points"]}
    )
    options = {"rule": "value", "file": "table", "each": "p", "value": "exponent"}
    _, found = judge(rates, at_most=0.0, expects={"p": [1, 2]}, **options)
    assert (found.verdict, found.missing) == (CAVEAT, ("2",))
    assert "2 of 7 points" in found.reason
    _, found = judge(rates.drop(columns="reason"), at_most=0.0, **options)
    assert found.verdict == PENDING


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda t: t.assign(fresh_mean=t["mean"]), "repeat the tuning"),
        (lambda t: t.assign(fresh_ci_low=t.fresh_mean, fresh_ci_high=t.fresh_mean),
         "no interval has a width"),
        (lambda t: t.assign(fresh_mean=t["fresh_mean"] - 0.1), "negative"),
    ],
)  # fmt: skip
def test_a_table_that_no_run_leaves_is_not_believed(judge, change, text):
    assert flaw_of(TABLE) == ""
    _, found = judge(change(CLEAR), **AHEAD)
    assert found.verdict == UNTESTED and text in found.reason


def test_a_wrong_file_costs_its_claim_and_not_the_stage(judge):
    _, found = judge(CLEAR.assign(mean="much", fresh_mean="more"), **AHEAD)
    assert found.verdict == UNTESTED and "cannot be judged" in found.reason


# --- wrong worlds ---------------------------------------------------------------------


def outcome(judge, table, only=None, monkeypatch=None, **options):
    evidence, found = judge(table, **options)
    if only is not None:
        monkeypatch.setattr(worlds, "worlds", lambda *_: only)
    return worlds.tried(evidence, "ratio", evidence.claim.options, found)


def test_a_clear_lead_notices_what_makes_it_false_or_empty(judge):
    expects = {"problem": ["a", "b"]}
    found = outcome(judge, BOTH, expects=expects, **AHEAD)
    assert {"names exchanged", "a group lost", "half empty", "intervals of no width",
            "fresh runs are tuning runs"} <= set(found.should)  # fmt: skip
    assert found.missed == ()
    assert "errors of slow x 1.4" not in found.should  # it stays true


def test_a_copy_and_a_symmetric_exchange_are_no_worlds(judge, monkeypatch):
    copy = worlds.World("a copy", lambda table, _: table.copy(), always=True)
    swap = worlds.World(
        "problems exchanged",
        lambda t, _: t.assign(problem=t["problem"].map({"a": "b", "b": "a"})),
        always=True,
    )
    found = outcome(judge, BOTH, [copy, swap], monkeypatch, **AHEAD)
    assert found == worlds.Outcome()


def test_what_is_not_noticed_is_missed(judge, monkeypatch):
    lucky = worlds.World(
        "twice as far ahead",
        lambda t, _: t.assign(fresh_mean=t["fresh_mean"].where(t["mean"] > 0.1, 0.01)),
        always=True,
    )
    found = outcome(judge, CLEAR, [lucky], monkeypatch, **AHEAD)
    assert found.missed == ("twice as far ahead",)
    false = worlds.World("no lead", lambda t, _: t.assign(fresh_mean=0.3))
    found = outcome(judge, CLEAR, [false], monkeypatch, **AHEAD)
    assert found == worlds.Outcome(("no lead",), ("no lead",))


@pytest.mark.slow
@pytest.mark.parametrize("paper", ["dpbcfw", "dpcd", "dpgcd", "dpsco", "dpskgd"])
def test_no_claim_that_holds_misses_a_wrong_world(paper):
    """On the results in Git; most worlds are noticed too where words remain true."""
    config = compose([f"paper={paper}"])
    siblings, missed, held = claims.load(config), {}, 0
    for claim in siblings:
        evidence = Evidence(config, claim=claim, siblings=siblings)
        for name, options in claims.readings(claim).items():
            if claim.rule == "cells":
                continue
            found = judging._controlled(evidence, claim.rule, options)
            if found.verdict in HELD:
                held += 1
                seen = worlds.tried(evidence, claim.rule, options, found)
                if seen.missed:
                    missed[claim.place, name] = seen.missed
    assert held > 10
    assert missed == {}


# --- the authors ----------------------------------------------------------------------


def five_times(config, **options):
    """A claim on the ratio of seconds in DP-CD's Table 3, beside the printed table."""
    table = schema.Claim(
        place="Table 3", claim="seconds", rule="cells",
        options={"published": "table3", "file": "table3",
                 "cells": {"seconds_mean": {"kind": "seconds", "value": "mean"}}},
    )  # fmt: skip
    claim = schema.Claim(
        place="Appendix G.2", claim="five times faster", rule="ratio",
        options={"file": "table3", "each": ["problem", "passes"], "value": "mean",
                 "over": {"algorithm": "DP-SGD"}, "under": {"algorithm": "DP-CD"},
                 **options},
    )  # fmt: skip
    return claims.authors(config, claim, [table, claim])


def test_the_authors_numbers_go_through_the_same_rule(config):
    narrow = {"at_least": 4, "at_most": 6.25, "nearly": [2.5, 10]}
    assert five_times(config, **narrow).startswith("contradicted")
    assert five_times(config, at_least=2, at_most=11).startswith("confirmed")
    assert five_times(config, file="figures/figure1", above=1) == ""  # not printed


# --- anchors --------------------------------------------------------------------------

TEXT = "Before. The error of\nDP-CD falls, and that of DP-SGD does\nnot. After."


def test_an_anchor_finds_its_sentence_and_no_altered_one():
    key = claims.anchor_key("The error of DP-CD falls, and that of DP-SGD does not.")
    assert claims.anchored(TEXT, key).startswith("The error of DP-CD falls")
    assert claims.anchored(TEXT.replace("falls", "rises"), key) == ""
    assert claims.anchored(TEXT.replace("error", "errors"), key) == ""
