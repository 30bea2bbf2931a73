"""Claims have the verdicts that 28 rules gave, or docs/changes.csv says why not."""

import json
import math
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
BEFORE = Path(__file__).parent / "values/claims_before.json"
WORDS = {
    "reproduced with a caveat": "in part",
    "not reproduced": "contradicted",
    "could not be tested": "undecided",
    "not yet run": "not run",
    "says nothing": "uninformative",
}


@pytest.fixture(scope="module")
def before():
    return json.loads(BEFORE.read_text("utf-8"))


@pytest.fixture(scope="module")
def now():
    rows = pd.read_csv(ROOT / "results/claims.csv").to_dict("records")
    return {
        f"{row['paper']} | {row['place']} | {row['claim']}": row
        for row in rows
    }


@pytest.fixture(scope="module")
def told():
    """Paper and place of every line of docs/changes.csv."""
    lines = pd.read_csv(ROOT / "docs/changes.csv")
    pairs = zip(lines["paper"], lines["claim"], strict=True)
    return {
        (paper, one) for paper, places in pairs for one in places.split("; ")
    }


def same(row, known):
    """Whether verdict, number and interval are those that were."""
    verdict, *numbers = known
    if row["verdict"] != WORDS.get(verdict, verdict):
        return False
    if "proof(" in row["number"]:
        return True  # its number was what is found, and is that over what is claimed
    ours = [row["reproduced"], row["ci_low"], row["ci_high"]]
    pairs = zip(ours, numbers, strict=True)
    return all(
        math.isclose(one, float(other or "nan"), rel_tol=1e-6)
        if other and not math.isnan(one)
        else not other and math.isnan(one)
        for one, other in pairs
    )


def test_every_claim_that_stays_is_as_it_was_or_its_line_says_why(
    before, now, told
):
    kept = set(before) & set(now)
    assert len(kept) > 100
    lost = [
        name
        for name in kept
        if not same(now[name], before[name])
        and tuple(name.split(" | ")[:2]) not in told
    ]
    assert not lost


def test_every_claim_that_went_has_a_line(before, now, told):
    tables = {
        (p, one.partition(",")[0]) for p, one in told if ", every " in one
    }
    lost = []
    for name in set(before) - set(now):
        paper, place, _ = name.split(" | ")
        in_table = (paper, place.partition(",")[0]) in tables
        if (paper, place) not in told and not in_table:
            lost.append(name)
    assert not lost
