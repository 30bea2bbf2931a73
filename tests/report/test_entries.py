"""What a claim is about, and the names it keeps."""

import pandas as pd
import pytest

from dperm.report import entries
from dperm.report.entries import Names, claim_id, mentioned, slug

KNOWN = Names(
    {"electricity_raw": "Electricity", "electricity_raw_l2": "Electricity, L2"},
    {"DP-CD": "DP-CD", "dp_cd": "DP-CD", "DP-CD-uniform": "DP-CD-uniform",
     "DP-SGD": "DP-SGD"},
)  # fmt: skip
ROW = {
    "paper": "dpcd", "place": "Section 6.1, Figure 1", "kind": "sentence",
    "claim": "DP-CD is ahead", "rule": "ratio", "published": "above 1",
    "reproduced": 2.0, "ci_low": 1.0, "ci_high": 3.0, "verdict": "reproduced",
    "control": None, "reason": "results/dpcd/table2.csv: electricity_raw: 2",
    "set": None, "first": True,
}  # fmt: skip


def test_a_longer_name_hides_the_shorter_one_inside_of_it():
    names = KNOWN.methods
    assert mentioned("DP-CD-uniform, then dp_cd", names) == ["DP-CD", "DP-CD-uniform"]
    assert mentioned("DP-CD-uniform alone", names) == ["DP-CD-uniform"]
    assert mentioned("DP-CDs, xDP-SGD", names) == []
    assert mentioned("(DP-SGD), at DP-CD.", names) == ["DP-CD", "DP-SGD"]


def test_a_claim_is_known_by_its_words_and_by_nothing_else():
    name = claim_id(ROW)
    assert name.startswith("c-dpcd-section-6-1-figure-1-")
    changed = {"verdict": "undecided", "reason": "x", "published": "2", "first": False}
    assert claim_id(ROW | changed) == name
    for key in ("paper", "place", "claim", "rule"):
        assert claim_id(ROW | {key: "other"}) != name
    # permanent: an address that somebody wrote down has to lead here for good
    assert name == "c-dpcd-section-6-1-figure-1-0c47fe"


def test_slugs_are_letters_digits_and_hyphens():
    assert slug("f", "dpcd", "Figure 1_strict (ε)") == "f-dpcd-figure-1-strict"


def test_entries_know_data_sets_methods_figures_and_files(config):
    (found,) = entries.entries(config, pd.DataFrame([ROW]), KNOWN)
    assert found["problems"] == ["electricity_raw"]
    assert found["methods"] == ["DP-CD"]
    assert found["figures"] == ["figure1"]
    assert found["control"] == "" and found["set"] == ""
    assert found["files"] == []  # results/dpcd/table2.csv of a smoke run is not there


def test_options_of_a_rule_count_as_what_it_is_about(config, judged):
    known = Names({"sparse_lasso": "LASSO, sparse"}, {})  # its words: "Sparse LASSO"
    own = {row["claim"]: row for row in entries.entries(config, judged, known)}
    (stuck,) = [row for text, row in own.items() if "barely able to make any" in text]
    assert stuck["problems"] == ["sparse_lasso"]


def test_every_claim_has_a_name_of_its_own(judged):
    found = [claim_id(row) for row in judged.to_dict("records")]
    assert len(found) > 300 and len(set(found)) == len(found)


def test_counts_go_into_lists():
    rows = [{"m": ["a", "b"], "k": "x"}, {"m": ["b"], "k": "x"}, {"m": [], "k": "y"}]
    assert entries.counted(rows, "m") == {"a": 1, "b": 2}
    assert entries.counted(rows, "k") == {"x": 2, "y": 1}


@pytest.mark.parametrize(
    ("place", "expected"),
    [("Figures 1a, 1b", ["figure1"]), ("Section 2", []), ("Figure 99", [])],
)
def test_a_place_names_its_figure(config, place, expected):
    row = ROW | {"place": place, "reason": ""}
    assert entries._evidence(config, row)["figures"] == expected


def test_a_number_has_its_interval():
    assert entries.number(ROW) == "2 [1, 3]"
    assert entries.number(ROW | {"reproduced": float("nan")}) == ""
