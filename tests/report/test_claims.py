from __future__ import annotations

import re

import pandas as pd
import pytest
import yaml

from dperm.core.experiment import config as configuration
from dperm.core.experiment import schema
from dperm.core.experiment.locate import ConfigError
from dperm.core.experiment.validation import check
from dperm.report import claims, judging, rules
from dperm.report.claims import FIVE, scorecard, summary
from dperm.report.evidence import (
    CAVEAT,
    INCOMPARABLE,
    NOT,
    NOTHING,
    PENDING,
    REPRODUCED,
    UNDECIDED,
    UNTESTED,
    VERDICTS,
)

from .conftest import write

PAPERS = ["dpbcfw", "dpcd", "dpgcd", "dpsco", "dpskgd"]


@pytest.fixture
def made(config, tmp_path, monkeypatch):
    """Make one claim of the DP-CD paper, and judge it."""

    def make(*entries):
        monkeypatch.setattr(claims, "paper_file", lambda _, name: tmp_path / name)
        (tmp_path / "own.yaml").write_text(yaml.safe_dump(list(entries)))
        config.paper.claims = "own.yaml"
        return list(judging.judged(config))

    return make


CLAIM = {
    "place": "Section 1", "claim": "quick is ahead", "rule": "ratio",
    "published": "above 1",
    "options": {"file": "table", "best": "mean", "above": 1,
                "where": {"problem": "a"}, "over": {"algorithm": "slow"},
                "under": {"algorithm": "quick"}},
}  # fmt: skip


def test_a_row_has_the_promised_columns_and_names_its_evidence(made):
    (row,) = made(CLAIM)
    assert list(row) == [
        "paper", "place", "kind", "claim", "rule", "published", "reproduced", "ci_low",
        "ci_high", "verdict", "control", "reason", "set", "first", "id", "section",
        "short", "cause", "note", "authors", "missing", "excludes",
    ]  # fmt: skip
    assert row["short"] == "confirmed"
    assert row["kind"] == "sentence"
    assert row["control"] == "fails for the two exchanged, w = 0, for all"
    assert row["verdict"] == REPRODUCED
    assert row["reproduced"] == pytest.approx(0.31 / 0.025)
    assert row["ci_low"] < row["reproduced"] < row["ci_high"]
    assert "results/dpcd/table.csv" in row["reason"]


def test_the_verdict_follows_the_numbers(made, config, evidence):
    rows = pd.read_csv(evidence.path("table"))
    names = {"slow": "quick", "quick": "slow"}
    write(config, "table", rows.assign(algorithm=rows["algorithm"].map(names)))
    assert made(CLAIM)[0]["verdict"] == NOT


def test_a_missing_result_is_a_verdict(made, evidence):
    evidence.path("table").unlink()
    (row,) = made(CLAIM)
    assert row["verdict"] == PENDING
    assert "is not there" in row["reason"]
    assert row["reproduced"] is None


def test_a_claim_that_w_0_would_meet_says_nothing(made):
    options = CLAIM["options"] | {"at_least": 1, "above": None}  # a tie is enough
    (row,) = made(CLAIM | {"options": options})
    assert row["verdict"] == NOTHING
    assert row["control"] == "holds for w = 0, for all"
    assert "It holds for this too: w = 0, for all" in row["reason"]
    assert row["reproduced"] == pytest.approx(0.31 / 0.025)


def test_readings_are_all_judged_and_named(made):
    near, far = ({"where": {"problem": name}} for name in "ab")
    claim = CLAIM | {"options": CLAIM["options"] | {"where": None}}
    (row,) = made(claim | {"readings": {"a": near, "again": near}})
    assert row["verdict"] == REPRODUCED and "under all (2 of 2)" in row["reason"]
    (row,) = made(claim | {"readings": {"a": near, "b": far}})
    assert row["verdict"] == CAVEAT
    assert "under some: a (1 of 2). a: expected" in row["reason"]
    loose = {"above": None, "at_least": 13, "nearly": 2}  # 12.4 nearly reaches it
    (row,) = made(claim | {"readings": {"a": near, "nearly": near | loose}})
    assert row["verdict"] == CAVEAT and "under all (2 of 2)" in row["reason"]
    strict = claim | {"options": claim["options"] | {"above": 100}}
    (row,) = made(strict | {"readings": {"a": near, "b": far}})
    assert row["verdict"] == NOT and "under none tried" in row["reason"]
    later = {"file": "later"}
    (row,) = made(strict | {"readings": {"a": near, "later": later}})
    assert row["verdict"] == UNDECIDED  # another reading may still hold
    (row,) = made(claim | {"readings": {"later": later}})
    assert row["verdict"] == PENDING


def test_what_was_not_run_turns_by_itself(made, config, evidence):
    claim = CLAIM | {"options": CLAIM["options"] | {"file": "later"}}
    assert made(claim)[0]["verdict"] == PENDING
    write(config, "later", pd.read_csv(evidence.path("table")))
    assert made(claim)[0]["verdict"] == REPRODUCED


def test_a_note_stands_beside_any_verdict(made):
    held = made(CLAIM | {"note": "at one epsilon"})[0]
    assert (held["verdict"], held["note"]) == (REPRODUCED, "at one epsilon")
    failed = CLAIM | {
        "options": CLAIM["options"] | {"above": 100},
        "note": "because",
    }
    (row,) = made(failed)
    assert (row["verdict"], row["note"]) == (NOT, "because")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"rule": "guess"}, "rule: expected one of .*found 'guess'"),
        ({"verdict": "reproduced"}, "unknown"),
        ({"options": {"file": "table"}}, "missing"),
        ({"rule": "cells", "options": {}}, "missing"),
        ({"kind": "hearsay"}, "kind: expected one of .*found 'hearsay'"),
    ],
)
def test_a_wrong_claim_is_refused_by_name(made, change, text):
    with pytest.raises(ConfigError, match=rf"own\.yaml: claim 1: .*{text}"):
        made(CLAIM | change)


@pytest.mark.parametrize("paper", PAPERS)
def test_the_claims_of_every_paper_can_be_judged(paper):
    config = configuration.compose([f"paper={paper}"])
    found = claims.load(config)
    assert len(found) >= 18
    for claim in found:
        assert claim.place and claim.claim and len(claim.claim) < 200
        assert claim.set.startswith("20")  # when, and what was known then
    assert 8 <= sum(claim.first for claim in found) <= 13


@pytest.mark.parametrize("paper", PAPERS)
def test_every_rule_that_is_used_has_a_control(paper):
    config = configuration.compose([f"paper={paper}"])
    for claim in claims.load(config):
        if claim.rule not in ("cells", "untestable"):  # which never says that it holds
            assert rules.controls_of(rules.function_of(config, claim.rule)), claim.rule


def test_without_any_result_nothing_crashes_and_proofs_are_still_judged(judged):
    data = judged
    assert set(data["paper"]) == {*PAPERS, "arena"}
    assert list(data.columns) == judging.COLUMNS
    assert set(data["verdict"]) <= set(VERDICTS)
    tested = data[~data["verdict"].isin([UNTESTED, PENDING])]
    assert set(tested["rule"]) == {"proof", "printed_noise"}
    cannot = (data["kind"] == "other") | (data["rule"] == "untestable")
    assert (data["verdict"] == UNTESTED).equals(cannot)
    sentences = data[~data["rule"].str.startswith("cells")]
    assert len(sentences) >= 40
    assert (data["reason"].str.len() > 10).all()


def test_every_cell_of_every_published_table_is_a_claim(judged):
    data = judged
    cells = data[data["rule"].str.startswith("cells")].groupby("paper").size()
    assert cells.to_dict() == {"dpcd": 3 + 50 + 50 + 10 + 50, "dpgcd": 12 * 4 + 7 * 2,
                               "dpbcfw": 13 * 3 + 3 * 3}  # fmt: skip


def test_a_note_may_give_its_cell_a_cause_of_its_own(judged):
    own = judged[judged["rule"].str.startswith("cells") & (judged["paper"] == "dpgcd")]
    causes = own.set_index("claim")["cause"]
    assert causes["features of madelon_l2"] == claims.CAUSES["slip"]
    assert causes["features of log1"] == ""
    assert causes["relative error of california_norm, DP-SGD"] == "unknown"
    assert causes["relative error of square, DP-GCD"] == claims.CAUSES["chance"]
    assert causes["support size of square, DP-CD"] == ""


def test_proofs_and_their_noise_get_two_verdicts(judged):
    data = judged
    for paper, place in (("dpcd", "Theorem 3.1"), ("dpgcd", "Theorem 4.2"),
                         ("dpsco", "Theorem 6.3"), ("dpbcfw", "Lemma 2")):  # fmt: skip
        own = data[(data["paper"] == paper) & data["place"].str.startswith(place)]
        kinds = own["place"].str.rsplit(", ", n=1).str[-1]
        assert {"proof", "printed noise"} <= set(kinds)
    greedy = data[data["place"].str.startswith("Theorem 4.2") & (data.paper == "dpgcd")]
    assert list(greedy["verdict"]) == [NOT, REPRODUCED]


def test_files_are_written_with_a_scorecard(config, judged, monkeypatch):
    monkeypatch.setattr(judging, "table", lambda *_: judged)
    paths = judging.claims(config)
    assert [path.name for path in paths] == list(judging.WRITTEN)
    assert all(path.is_file() for path in paths)
    data = pd.read_csv(paths[0])
    assert (
        scorecard(data)["all"].tolist()
        == data["paper"].value_counts(sort=False).tolist()
    )
    header, _, *lines = summary(data).splitlines()
    assert re.search(r" \| \d+ \+ \d+ \|$", lines[1])  # statements, printed numbers
    assert header == f"| paper | {' | '.join(FIVE)} | all |"
    assert [line.split(" | ")[0] for line in lines] == [f"| {name}" for name in PAPERS]
    text = paths[1].read_text()
    assert text.startswith("# Claims and verdicts")
    assert text.count("\n| ") - len(lines) - 2 - 2 * data["paper"].nunique() == len(
        data
    )


def test_seconds_of_another_machine_are_not_compared(judged):
    seconds = judged[judged["rule"] == "cells, seconds"]
    assert len(seconds) == 50
    assert set(seconds["verdict"]) <= {PENDING, INCOMPARABLE}


def test_a_cell_is_judged_under_every_reading_of_what_is_printed(
    made, config, monkeypatch
):
    known = {"tied": 0.0, "median": 0.1, "start": 1.0}
    laws = [{"prints": "least", "t_low": 1.0, "t_high": 3.0},
            {"prints": "fresh", "t_low": 3.0, "t_high": 4.0}]  # fmt: skip
    rows = [{"problem": name} | known | each for each in laws for name in "abc"]
    write(config, "law", pd.DataFrame(rows))
    table = pd.DataFrame({"problem": list("abc"), "n": [3, 2, 9]})
    monkeypatch.setattr(judging.results, "published", lambda *_: table)
    claim = {
        "place": "Table 2", "claim": "n", "kind": "cell", "rule": "cells",
        "options": {"published": "table2", "file": "law", "keys": ["problem"],
                    "cells": {"n": {"kind": "count", "value": "t"}}},
    }  # fmt: skip
    by = {"tuning": {"prints": "least"}, "new runs": {"prints": "fresh"}}
    found = made(claim | {"readings": by})
    assert [each["verdict"] for each in found] == [REPRODUCED, CAVEAT, NOT]
    assert "under some: tuning" in found[1]["reason"]
    assert [each["published"] for each in found] == ["3", "2", "9"]
    once = made(claim | {"readings": {"tuning": by["tuning"], "again": by["tuning"]}})
    alone = made(claim)
    assert [each["reason"] for each in once] == [each["reason"] for each in alone]
    assert [each["verdict"] for each in alone] == [REPRODUCED, REPRODUCED, NOT]


def test_an_unknown_key_of_an_anchor_is_refused_by_name():
    anchor = {"sectoin": "5", "sentence": "45-c8d0bb01f00a24ff"}
    claim = CLAIM | {"anchor": anchor}
    with pytest.raises(ConfigError, match=r"anchor\.sectoin: expected one of section,"):
        check(claim, schema.Claim)
