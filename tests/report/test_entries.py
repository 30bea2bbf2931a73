"""What a claim is about, and the names it keeps."""

import pandas as pd
import pytest

from dperm.report import claims as entries
from dperm.report.claims import claim_id, slug

ROW = {
    "paper": "dpcd", "place": "Section 6.1, Figure 1", "kind": "sentence",
    "claim": "DP-CD is ahead", "rule": "ratio", "published": "above 1",
    "reproduced": 2.0, "ci_low": 1.0, "ci_high": 3.0, "verdict": "reproduced",
    "control": None, "reason": "results/dpcd/table2.csv: electricity_raw: 2",
    "set": None, "first": True,
}  # fmt: skip


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


def test_entries_know_figures_and_files(config):
    (found,) = entries.entries(config, entries.complete(pd.DataFrame([ROW])))
    assert found["figures"] == ["figure1"]
    assert found["control"] == "" and found["set"] == ""
    assert found["files"] == []  # results/dpcd/table2.csv of a smoke run is not there


def test_every_claim_has_a_name_of_its_own(judged):
    found = [claim_id(row) for row in judged.to_dict("records")]
    assert len(found) > 300 and len(set(found)) == len(found)


def test_rows_are_counted_by_a_column():
    rows = [{"k": "x"}, {"k": "x"}, {"k": "y"}]
    assert entries.counted(rows, "k") == {"x": 2, "y": 1}


@pytest.mark.parametrize(
    ("place", "expected"),
    [("Figures 1a, 1b", ["figure1"]), ("Section 2", []), ("Figure 99", [])],
)
def test_a_place_names_its_figure(config, place, expected):
    row = ROW | {"place": place, "reason": ""}
    (found,) = entries.entries(config, entries.complete(pd.DataFrame([row])))
    assert found["figures"] == expected


def test_a_number_has_its_interval():
    assert entries.number(ROW) == "2 [1, 3]"
    assert entries.number(ROW | {"reproduced": float("nan")}) == ""
