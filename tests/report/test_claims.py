"""Rows of claims.csv: of one claim, and of all papers."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml

from changing import changed
from dperm.claims.judge import CONTRADICTED, NOT_RUN, REPRODUCED, VERDICTS
from dperm.config import config as configuration
from dperm.config.locate import ConfigError
from dperm.report import claims, texts

from . import anchors
from .conftest import COLUMNS, ROWS, write

PAPERS = ["dpbcfw", "dpcd", "dpgcd", "dpsco", "dpskgd"]
MAX_CLAIMS = 160  # claims of all papers
CLAIM = {
    "source": "Section 1", "statement": "quick is ahead", "kind": "sentence",
    "table": "table",
    "each": {"problem": ["a"]}, "above": 1, "cause": "chance", "note": "at one epsilon",
    "estimate": 'at(best="mean", algorithm="slow") / '
    'at(best="mean", algorithm="quick")',
}  # fmt: skip


@pytest.fixture
def made(config, tmp_path, monkeypatch):
    """Make claims of the DP-CD paper, and judge them."""

    def make(*entries, of=None):
        monkeypatch.setattr(
            claims, "paper_file", lambda _, name: tmp_path / name
        )
        (tmp_path / "own.yaml").write_text(yaml.safe_dump(list(entries)))
        own = changed(of or config, "paper.claims", "own.yaml")
        return list(
            claims.judged_paper(own.paper, own.output, not own.scale.folder)
        )

    return make


def test_claims_that_cannot_be_read_are_refused_before_a_run(
    tmp_path, monkeypatch
):
    claims.refuse(PAPERS, [])
    monkeypatch.setattr(claims, "paper_file", lambda _, name: tmp_path / name)
    slips = {"kind": "rumour", "table": "figures/figre1"}
    for key, slip in slips.items():
        (tmp_path / "claims.yaml").write_text(
            yaml.safe_dump([CLAIM | {key: slip}])
        )
        claims.refuse([], [])
        with pytest.raises(
            ConfigError, match=rf"claims\.yaml: claim 1: {key}: .*'{slip}'"
        ):
            claims.refuse(["dpcd"], [])


def test_a_row_has_its_number_its_verdict_and_its_tables(made, config):
    (row,) = made(CLAIM)
    assert set(row) <= set(claims.CLAIM_COLUMNS)
    assert row["verdict"] == REPRODUCED and row["cause"] == ""
    assert row["reproduced"] == pytest.approx(0.31 / 0.025)
    assert (
        row["tables"]
        == claims.path_of("dpcd", config.output, "table").as_posix()
    )
    assert row["accepted"] == "above 1"
    assert (
        made(CLAIM | {"required": 0.9})[0]["accepted"]
        == "above 1, in 0.9 of the cases"
    )
    assert row["reason"].startswith("a: 12.4 [")
    assert (row["section"], row["authors"], row["missing"]) == ("", "", "")
    defence = {"statement": "It is ahead of fifty", "above": 50}
    (failed,) = made(CLAIM | {"above": 100, "defence": defence})
    assert (failed["verdict"], failed["cause"]) == (CONTRADICTED, "chance")
    assert failed["defence"].startswith(
        "It is ahead of fifty: fails too (12.4 ["
    )
    assert failed["note"] == row["note"]
    assert failed["id"] == row["id"], (
        "it depends on the paper, the place and the words"
    )
    assert row["id"] == "c-dpcd-section-1-a2a9b5", "links to it stay"


def test_nothing_is_contradicted_without_a_defence(made, config):
    with pytest.raises(
        ConfigError, match=r"own.yaml: claim 1: defence: missing"
    ):
        made(CLAIM | {"above": 100})
    small = changed(config, "scale.folder", "smoke")
    write(small, "table", pd.DataFrame(ROWS, columns=COLUMNS))
    assert made(CLAIM | {"above": 100}, of=small)[0]["verdict"] == "undecided"


def test_a_range_allows_the_spread_of_the_authors_own_runs():
    table = pd.DataFrame({"mean": [10.0], "std": [2.0]})
    wide = claims.spread(table, 5)
    assert wide["mean_low"][0] == pytest.approx(
        10 - 2.776 * 2 / 5**0.5, rel=1e-3
    )
    assert "mean_low" not in claims.spread(table, 0)


def test_a_claim_that_cannot_be_judged_stops_its_paper_alone(
    config, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(claims, "paper_file", lambda _, name: tmp_path / name)
    (tmp_path / "sound.yaml").write_text(yaml.safe_dump([CLAIM]))
    (tmp_path / "bad.yaml").write_text(
        yaml.safe_dump([CLAIM | {"kind": "rumour"}])
    )
    files = ("bad.yaml", "sound.yaml")
    papers = [changed(config.paper, "claims", name) for name in files]
    monkeypatch.setattr(claims.texts, "papers", lambda *_: papers)
    with pytest.raises(
        ConfigError, match=r"bad\.yaml: claim 1: kind: .*'rumour'"
    ):
        claims.write(config)
    table = pd.read_csv(Path(config.output.results, "claims.csv"))
    assert table["claim"].tolist() == [CLAIM["statement"]]


def test_what_was_not_run_turns_by_itself(made, config):
    later = CLAIM | {"table": "later"}
    (row,) = made(later)
    assert row["verdict"] == NOT_RUN and "is not there" in row["reason"]
    write(
        config,
        "later",
        pd.read_csv(claims.path_of("dpcd", config.output, "table")),
    )
    assert made(later)[0]["verdict"] == REPRODUCED


def test_a_group_that_a_table_lacks_is_an_error_at_full_scale(made, config):
    lost = CLAIM | {"each": {"problem": ["a", "c"]}}
    with pytest.raises(
        ConfigError, match=r"own.yaml: claim 1: each: table: c: no row"
    ):
        made(lost)
    small = changed(config, "scale.folder", "smoke")
    write(small, "table", pd.DataFrame(ROWS, columns=COLUMNS))
    assert made(lost, of=small)[0]["verdict"] == NOT_RUN


def test_what_the_authors_print_must_pass(made, monkeypatch):
    printed = pd.DataFrame(
        {
            "problem": ["a", "a"],
            "algorithm": ["slow", "quick"],
            "error": [0.1, 0.2],
        }
    )
    monkeypatch.setattr(claims.results, "published", lambda *_: printed)
    cells = {
        "source": "Table 2", "statement": "Errors", "kind": "cells", "table": "table",
        "each": {"algorithm": ["slow"]}, "at_most": 1,
        "estimate": 'at("mean", best="mean") / at("error", of="published/t")',
        "printed": {"file": "t", "tables": ["table"], "columns": {"error": "mean"}},
    }  # fmt: skip
    with pytest.raises(
        ConfigError, match=r"claim 2: estimate: the authors' own numbers"
    ):
        made(cells, CLAIM)
    _, row = made(cells, CLAIM | {"kind": "variant"})
    assert row["authors"] == "contradicted: 0.500"
    printed["error"] = [0.2, 0.1]
    assert made(cells, CLAIM)[1]["authors"] == "reproduced: 2"


def test_the_authors_tuned_numbers_are_the_least_of_all_passes(
    config, monkeypatch
):
    printed = pd.DataFrame(
        {"problem": "a", "algorithm": "quick", "error": [0.3, 0.1, 0.2]}
    )
    monkeypatch.setattr(claims.results, "published", lambda *_: printed)
    known = {"file": "t", "tables": ["tuned"], "columns": {"error": "mean"}}
    read = claims.published(config.paper, [SimpleNamespace(printed=known)])
    assert read("tuned")["mean"].tolist() == [0.1]


def test_a_null_that_holds_too_is_told(made):
    (row,) = made(CLAIM | {"null": ["2"]})
    assert row["verdict"] == "uninformative"
    assert row["reason"].endswith("; it holds for this too: 2")


def test_cells_are_counted(made):
    rows = CLAIM | {
        "kind": "cells", "estimate": "passes / 2", "null": [], "at_most": 1,
        "above": float("-inf"), "exact": ["passes"],
        "each": {"passes": [2.0, 5.0], "algorithm": ["slow"]},
        "defence": {"statement": "few passes count", "estimate": "2", "at_most": 1},
    }  # fmt: skip
    (row,) = made(rows)
    assert (row["cells"], row["inside"]) == (2, 1)
    assert texts.found(row) == "1 of 2"
    share = {"estimate": 'inside("mean", level=0.1)', "at_most": 1, "each": {}}
    (row,) = made(rows | share)  # two of the four means are above it
    assert (row["cells"], row["inside"]) == (4, 2)


def test_a_wrong_claim_is_refused_by_file_claim_and_key(made):
    with pytest.raises(
        ConfigError, match=r"own\.yaml: claim 1: estimate: 'men' is no"
    ):
        made(CLAIM | {"estimate": "men"})


# --- the papers -----------------------------------------------------------------------


@pytest.mark.parametrize("paper", PAPERS)
def test_the_claims_of_every_paper_are_well_made(paper):
    config = configuration.compose([f"paper={paper}"])
    found = claims.load(
        config.paper, claims.tables(config.paper, config.output)
    )
    assert len(found) >= 18
    for claim in found:
        assert len(claim.statement) < 220
        assert claim.set.startswith("20"), "when, and what was known then"
        assert claim.nulls, (
            "what the number would be if nothing were behind it"
        )
    assert 8 <= sum(claim.major for claim in found) <= 10
    assert sum(claim.kind == "variant" for claim in found) <= 3


def test_there_are_few_claims_and_each_is_named_once(judged):
    assert len(judged) <= MAX_CLAIMS
    assert judged["id"].is_unique


def test_without_any_result_nothing_crashes_and_proofs_are_still_judged(
    judged,
):
    assert set(judged["paper"]) == {*PAPERS, "arena"}
    assert set(judged["verdict"]) <= set(VERDICTS)
    tested = judged[judged["verdict"] != NOT_RUN]
    assert (
        len(tested) >= 20 and tested["number"].str.startswith("proof(").all()
    )
    assert (judged["reason"].str.len() > 2).all()


def test_readings_are_named_in_the_reason(made):
    low = {"above": 100}
    (row,) = made(CLAIM | {"readings": {"far": low, "near": {}}})
    assert row["verdict"] == "in part"
    assert row["reason"].startswith(
        "under 1 of 2 readings (near); shown is near; a: "
    )


def test_a_sentence_is_found_by_its_key():
    text = "It is fast.\nDP-CD runs fa-\nster than DP-SGD. Always."
    key = anchors.anchor_key("DP-CD runs faster than DP-SGD.")
    assert anchors.stands_in(text, key)
    assert not anchors.stands_in(text.replace("runs", "ran"), key)


@pytest.mark.skipif(
    "DPERM_TEXTS" not in os.environ, reason="the papers' texts"
)
@pytest.mark.parametrize("paper", PAPERS)
def test_every_anchored_sentence_stands_in_its_paper(paper):
    text = (Path(os.environ["DPERM_TEXTS"]) / f"{paper}.txt").read_text(
        "utf-8"
    )
    config = configuration.compose([f"paper={paper}"])
    tables = claims.tables(config.paper, config.output)
    for claim in claims.load(config.paper, tables):
        if claim.anchor:
            assert anchors.stands_in(text, claim.anchor["sentence"]), (
                claim.statement
            )
