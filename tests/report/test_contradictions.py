"""No table of the results says otherwise than the claims that are judged by it.

Read from the files of the last full run, as they are committed.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from dperm.core.experiment import config as configuration
from dperm.report import claims
from dperm.report.evidence import HELD, Evidence, matching

ROOT = Path(__file__).resolve().parents[2]
PAPERS = [config.paper.name for config in claims.papers(configuration.compose([]))]


@pytest.fixture(scope="module")
def listed():
    return pd.read_csv(ROOT / "results/claims.csv").fillna("")


def of(listed, paper, claim):
    same = (listed["paper"] == paper) & (listed["place"] == claim.place)
    rows = listed[same & (listed["claim"] == claim.claim)]
    assert len(rows) == 1, (claim.place, claim.claim)
    return rows.iloc[0]


def undecided_by_its_table(evidence, claim):
    """Whether the table's own column says that none of the claim's rows is decided."""
    file = claim.options.get("file", "")
    path = evidence.path(file) if file else None
    if path is None or not path.is_file() or path.suffix != ".csv":
        return False
    rows = matching(pd.read_csv(path), claim.options.get("where") or {}, file)
    return (
        "verdict" in rows and len(rows) > 0 and (rows["verdict"] == "undecided").all()
    )


@pytest.mark.parametrize("paper", PAPERS)
def test_what_a_table_leaves_undecided_no_claim_decides(paper, listed, monkeypatch):
    monkeypatch.chdir(ROOT)
    config = configuration.compose([f"paper={paper}"])
    for claim in claims.load(config):
        if undecided_by_its_table(Evidence(config), claim):
            assert of(listed, paper, claim)["verdict"] not in HELD, claim.claim


def test_figures_that_hold_under_no_reading_are_not_confirmed(listed):
    table = pd.read_csv(ROOT / "results/dpbcfw/reading_sentences.csv")
    ways = ["holding", "holding_without_learning", "holding_somewhere", "undecided"]
    own = listed[(listed["paper"] == "dpbcfw") & (listed["kind"] == "sentence")]
    for row in table[(table[ways] == 0).all(axis=1)].to_dict("records"):
        number = re.escape(str(row["figure"]))
        about = own[own["place"].str.contains(rf"{number}\b")]
        assert not about["verdict"].isin(HELD).any(), row["figure"]
