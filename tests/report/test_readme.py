"""Pages that are made of the claims: what is written, and what is not touched."""

from __future__ import annotations

import pandas as pd
import pytest

from dperm.core.experiment import plan
from dperm.core.experiment.locate import ConfigError
from dperm.judge.claims import Claim
from dperm.report import reports
from dperm.report.texts import complete

MARK = "<!-- scorecard: written by `dperm readme` -->"
END = "<!-- end of scorecard -->"
ROW = {
    "paper": "dpcd", "place": "Section 1", "kind": "sentence", "claim": "A beats B",
    "tables": "results/dpcd/table2.csv", "number": "at(a) / b", "accepted": "above 1",
    "reproduced": 3.0, "ci_low": 2.0, "ci_high": 4.0, "cells": None, "inside": None,
    "verdict": "reproduced", "major": True, "section": "6.1", "set": "", "cause": "",
    "note": "", "authors": "", "missing": "", "id": "c-dpcd-1",
    "reason": "2 of 2 hold; a: 3 [2, 4]; b: 5 [4, 6]",
}  # fmt: skip


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """All pages in a folder of their own, none of them there."""
    for name in ("README", "REPORTS", "ARTIFACT", "CODECHECK"):
        monkeypatch.setattr(reports, name, tmp_path / getattr(reports, name))
    reports.REPORTS.mkdir(parents=True)
    return tmp_path


def test_only_what_stands_between_marks_is_written(config, judged, pages):
    path, page = pages / "README.md", reports.REPORTS / "dpcd.md"
    path.write_text(f"before\n{MARK}\nold\n{END}\nafter\n")
    page.write_text("own\n<!-- claims: written by `dperm readme` -->\n"
                    "<!-- end of claims -->\nwords\n")  # fmt: skip
    with pytest.raises(ConfigError, match=r"claims\.csv is not there"):
        reports.readme(config)
    judged.to_csv(plan.results_folder(config, "claims.csv"), index=False)
    assert reports.readme(config) == [path, page]
    text = path.read_text()
    assert text.startswith(f"before\n{MARK}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    assert f"[dpcd]({page}) | " in text and "arena" not in text
    made = page.read_text()
    assert made.startswith("own\n<!-- claims") and made.endswith("claims -->\nwords\n")
    assert "### C1. Section" in made
    reports.readme(config)
    assert (path.read_text(), page.read_text()) == (text, made)


def test_a_page_without_marks_is_left_alone(config, judged, pages):
    path = pages / "README.md"
    path.write_text("no marks\n")
    judged.to_csv(plan.results_folder(config, "claims.csv"), index=False)
    with pytest.raises(ConfigError, match=r"README\.md: expected the lines"):
        reports.readme(config)
    assert path.read_text() == "no marks\n"


def test_a_bottom_line_stands_while_its_claims_have_the_verdicts_it_names(pages):
    rows = complete(pd.DataFrame([ROW, ROW | {"verdict": "in part"}]))
    assert reports.bottom("dpcd", rows) == "Of 2 major claims: 1 reproduced, 1 in part."
    page = reports.REPORTS / "dpcd.md"
    for told, holds in (
        ("It leads (C1 reproduced),\nnot by much (C2 in part).", True),
        ("It leads (C1, C2\nreproduced).", False),
        ("It leads (C3 reproduced).", False),
        ("It leads.", False),
    ):
        page.write_text(f"# Report\n\n**Bottom line.** {told}\n\n**Scope.** All.\n")
        found = reports.bottom("dpcd", rows)
        assert found == (" ".join(told.split()) if holds else found)
        assert found.startswith("It leads") == holds


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "`at(a) / b`; above 1"),
        ({"each": {"problem": ["x"], "passes": [1]}},
         "`at(a) / b`, for every problem and passes; above 1"),
        ({"each": [{"case": ["x"]}], "need": "any"},
         "`at(a) / b`, for some case; above 1"),
        ({"each": {"p": [1]}, "need": 0.75, "readings": {"one": {}, "two": {}}},
         "`at(a) / b`, for 75% of the groups by p; above 1; 2 readings"),
    ],
)  # fmt: skip
def test_a_test_is_said_in_words(changed, said):
    claim = Claim(place="Section 1", says="A beats B", kind="sentence", **changed)
    assert reports.tested(claim, ROW) == said


def test_a_reason_is_cut_between_groups():
    assert reports.clipped(ROW["reason"]) == ROW["reason"]
    long = "; ".join(f"group {number}: 1 [0, 2]" for number in range(9))
    cut = reports.clipped(long)
    assert cut.endswith("1 [0, 2] ...") and len(cut.split()) <= reports.WHOLE + 1


def test_the_appendix_has_a_command_a_claim(config, judged):
    table = reports.appendix([config], complete(judged))
    majors = judged[judged["major"] & (judged["paper"] == "dpcd")]
    assert len(table.splitlines()) == 2 + len(majors)
    assert "| [dpcd C1](../reports/dpcd.md) |" in table


def test_the_manifest_names_every_file_of_a_major_claim():
    rows = complete(pd.DataFrame([ROW, ROW | {"tables": "figures/dpcd/a.csv"}]))
    assert reports.manifest(rows).splitlines() == [
        "manifest:",
        "- file: results/dpcd/table2.csv",
        "  comment: major claims dpcd C1",
        "- file: figures/dpcd/a.csv",
        "  comment: major claims dpcd C2",
    ]
