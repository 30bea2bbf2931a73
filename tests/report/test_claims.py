from __future__ import annotations

import pandas as pd
import pytest
import yaml

from dperm import config as configuration
from dperm.locate import ConfigError
from dperm.report import claims
from dperm.report.rules import CAVEAT, NOT, REPRODUCED, UNTESTED, VERDICTS

from .conftest import write

PAPERS = ["dpbcfw", "dpcd", "dpgcd", "dpsco", "dpskgd"]


@pytest.fixture
def made(config, tmp_path, monkeypatch):
    """Make one claim of the DP-CD paper, and judge it."""

    def make(*entries):
        monkeypatch.setattr(configuration, "conf_file", lambda name: tmp_path / name)
        (tmp_path / "own.yaml").write_text(yaml.safe_dump(list(entries)))
        config.paper.claims = "own.yaml"
        return [each.row() for each in claims.judged(config)]

    return make


CLAIM = {
    "place": "Section 1", "claim": "quick is ahead", "rule": "ratio",
    "published": "above 1",
    "options": {"file": "table", "best": "mean", "at_least": 1,
                "where": {"problem": "a"}, "over": {"algorithm": "slow"},
                "under": {"algorithm": "quick"}},
}  # fmt: skip


def test_a_row_has_the_promised_columns_and_names_its_evidence(made):
    (row,) = made(CLAIM)
    assert list(row) == [
        "paper", "place", "claim", "rule", "published", "reproduced", "ci_low",
        "ci_high", "verdict", "reason",
    ]  # fmt: skip
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
    assert row["verdict"] == UNTESTED
    assert "is not there" in row["reason"]
    assert row["reproduced"] is None


def test_a_control_that_fails_leaves_a_caveat(made):
    control = {"rule": "value", "says": "that it learns",
               "options": {"file": "table", "each": ["problem", "algorithm", "passes"],
                           "at_most": 0.1}}  # fmt: skip
    (row,) = made(CLAIM | {"provided": control})
    assert row["verdict"] == CAVEAT
    assert "that it learns does not hold" in row["reason"]
    control["options"]["at_most"] = 1.0
    assert made(CLAIM | {"provided": control})[0]["verdict"] == REPRODUCED


def test_a_note_explains_only_what_did_not_come_out(made):
    held = made(CLAIM | {"note": "because"})[0]
    assert "because" not in held["reason"]
    failed = CLAIM | {
        "options": CLAIM["options"] | {"at_least": 100},
        "note": "because",
    }
    (row,) = made(failed)
    assert (row["verdict"], row["reason"][-7:]) == (NOT, "because")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"rule": "guess"}, "rule 'guess' is unknown"),
        ({"verdict": "reproduced"}, "unknown"),
        ({"options": {"file": "table"}}, "missing"),
        ({"rule": "cells", "options": {}}, "missing"),
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


def test_without_any_result_nothing_crashes_and_proofs_are_still_judged(judged):
    data = judged
    assert set(data["paper"]) == set(PAPERS)
    assert list(data.columns) == claims.COLUMNS
    assert set(data["verdict"]) <= set(VERDICTS)
    tested = data[data["verdict"] != UNTESTED]
    assert set(tested["rule"]) == {"proof", "printed_noise"}
    sentences = data[~data["rule"].str.startswith("cells")]
    assert len(sentences) >= 40
    assert (data["reason"].str.len() > 10).all()


def test_every_cell_of_every_published_table_is_a_claim(judged):
    data = judged
    cells = data[data["rule"].str.startswith("cells")].groupby("paper").size()
    assert cells.to_dict() == {"dpcd": 50 + 50, "dpgcd": 12 * 4 + 7 * 2,
                               "dpbcfw": 13 * 3 + 3 * 3}  # fmt: skip


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
    monkeypatch.setattr(claims, "table", lambda _: judged)
    paths = claims.claims(config)
    assert [path.name for path in paths] == ["claims.csv", "claims.md"]
    data = pd.read_csv(paths[0])
    card = claims.scorecard(data)
    assert card["all"].sum() == len(data)
    text = paths[1].read_text()
    assert text.startswith("# Claims and verdicts")
    assert "## dpskgd" in text
