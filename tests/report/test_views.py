"""The page by data set and by method, of rows made by hand."""

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from dperm.report import board as views
from dperm.report.entries import slug

BOARD = pd.DataFrame(
    [
        ("a", "X", 1.0, 0.1, 1, 2, True, Path("one")),
        ("a", "Y", 1.0, 0.2, 2, 2, True, Path("two")),
        ("a", "Y", 0.3, 0.3, 1, 1, True, Path("two")),
        ("b", "Y", 1.0, 0.3, 1, 1, True, None),
    ],
    columns=["problem", "algorithm", "at", "mean", "place", "of", "tied", "ledger"],
).assign(paper="p")
FIGURE = SimpleNamespace(key="p/f", problems=["a", "c"], methods={"Y"})


@pytest.fixture
def papers():
    claims = [{"problems": ["a"], "methods": ["Y"]}, {"problems": [], "methods": ["Y"]}]
    return [SimpleNamespace(figures=[FIGURE], claims=claims)]


def test_a_data_set_has_its_leader_at_each_epsilon(papers, monkeypatch):
    known = SimpleNamespace(dataset=SimpleNamespace(digest="sha256:0", sources=[]))
    monkeypatch.setattr(views.configuration, "read", lambda *_: known)
    titles = {"a": "A", "b": "B", "c": "C", "d": "nothing of it"}
    a, b, c = views.data_sets(BOARD, papers, titles)
    assert [(row["at"], row["algorithm"], row["ties"]) for row in a["levels"]] == [
        (0.3, "Y", 0), (1.0, "X", 1),
    ]  # fmt: skip
    assert (a["title"], a["claims"], a["figures"]) == ("A", 1, [FIGURE])
    assert [row["ledger"] for row in a["ledgers"]] == [Path("one"), Path("two")]
    assert b["ledgers"] == [] and b["figures"] == []
    assert c["levels"] == [] and c["figures"] == [FIGURE]


def test_a_method_wins_only_where_it_has_rivals(papers):
    x, y = views.methods(BOARD, papers)
    assert (x["name"], x["wins"], x["rivals"]) == ("X", 1, 1)
    assert (y["wins"], y["rivals"], y["claims"]) == (0, 1, 2)
    assert x["figures"] == [] and y["figures"] == [FIGURE]
    assert len(y["rows"]) == 3


def test_addresses():
    assert slug("d", "electricity_raw") == "d-electricity-raw"
    assert slug("m", "DP-GCD, GS-r") == "m-dp-gcd-gs-r"
