"""The page on verdicts says what the results say."""

from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[2]
PAPERS = {"DP-CD": "dpcd", "DP-GCD": "dpgcd", "DP-SkGD": "dpskgd",
          "DP-BCFW": "dpbcfw", "DP-SCO": "dpsco"}  # fmt: skip
ASKED = "**Asked now:** "


def rows():
    """paper, place, claim as it is asked now, kind, verdict now."""
    paper = ""
    for line in (ROOT / "docs/verdicts.md").read_text().splitlines():
        if line.startswith("### "):
            paper = PAPERS[line[4:]]
        elif paper and line.startswith("| ") and line[2:4] not in ("--", "pl"):
            place, claim, kind, _, now = line.strip("| ").split(" | ")
            yield paper, place, claim.split(ASKED)[-1], kind, now


def test_the_verdicts_of_now_are_those_of_the_results():
    claims = pd.read_csv(ROOT / "results/claims.csv")
    known = {}
    for row in claims.itertuples():
        known.setdefault((row.paper, row.claim), {})[row.place] = row
    told = list(rows())
    assert len(told) > 100
    for paper, place, claim, kind, now in told:
        at = known[paper, claim]
        found = at.get(place) or next(iter(at.values()))
        assert (found.kind, found.verdict) == (kind, now), f"{paper}: {claim}"
