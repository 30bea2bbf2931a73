"""Pages that are made of the claims: what is written, and what is not touched."""

from __future__ import annotations

import pandas as pd
import pytest

from dperm.core.experiment import plan, schema
from dperm.core.experiment.locate import ConfigError
from dperm.report import reports
from dperm.report.claims import complete

MARK = "<!-- scorecard: written by `dperm readme` -->"
END = "<!-- end of scorecard -->"
ROW = {
    "paper": "dpcd", "place": "Section 1", "kind": "sentence", "claim": "A beats B",
    "rule": "ratio", "published": "2", "reproduced": 3.0, "ci_low": 2.0, "ci_high": 4.0,
    "verdict": "reproduced", "short": "confirmed", "first": True, "section": "6.1",
    "control": "", "set": "", "cause": "", "note": "", "authors": "", "missing": "",
    "id": "c-dpcd-1",
    "reason": "results/dpcd/table2.csv: expected at least 2; a: 3 [2, 4]; b: 5 [4, 6]",
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
    rows = complete(pd.DataFrame([ROW, ROW | {"short": "in part"}]))
    assert reports.bottom("dpcd", rows) == "Of 2 major claims: 1 confirmed, 1 in part."
    page = reports.REPORTS / "dpcd.md"
    for told, holds in (
        ("It leads (C1 confirmed),\nnot by much (C2 in part).", True),
        ("It leads (C1, C2\nconfirmed).", False),
        ("It leads (C3 confirmed).", False),
        ("It leads.", False),
    ):
        page.write_text(f"# Report\n\n**Bottom line.** {told}\n\n**Scope.** All.\n")
        found = reports.bottom("dpcd", rows)
        assert found == (" ".join(told.split()) if holds else found)
        assert found.startswith("It leads") == holds


@pytest.mark.parametrize(
    ("text", "rule", "options", "said"),
    [
        ("A leads (error of B over A's).", "ratio", {"each": "problem", "above": 1},
         "Error of B over A's, for every problem; above 1."),
        ("A leads", "ratio", {"over": {"algorithm": ["B", "C"]},
                              "under": {"algorithm": "A"}, "need": 0.75,
                              "each": ["problem", "passes"]},
         "B or C over A, for 75% of the groups by problem and passes."),
        ("It falls", "monotone", {"along": "n"},
         "The largest step against the order along n; below 1."),
        ("It holds", "proof", {}, "What the proof's own argument yields, step by step "
         "and numerically."),
        ("It never does", "never", {"hits": "h"}, "Something never happens in runs "
         "that find anything at all; at most 0."),
        ("No run can", "untestable", {"why": "no"}, ""),
    ],
)  # fmt: skip
def test_a_test_is_said_in_words(config, text, rule, options, said):
    claim = schema.Claim(place="Section 1", claim=text, rule=rule, options=options)
    assert reports.tested(config, claim) == said


def test_targets_say_where_a_claim_is_in_part():
    assert reports.target({"above": 1}) == "above 1"
    assert reports.target({"at_least": 10, "nearly": 5}) == "at least 10 (in part 5)"
    ends = {"at_least": 0.5, "at_most": 2, "nearly": [0.2, 5]}
    assert reports.target(ends) == "at least 0.5 and at most 2 (in part 0.2 to 5)"
    assert reports.target({}) == ""


def test_a_reason_is_cut_between_groups():
    assert reports.clipped(ROW["reason"]) == "a: 3 [2, 4]; b: 5 [4, 6]"
    long = "; ".join(f"group {number}: 1 [0, 2]" for number in range(9))
    cut = reports.clipped(long)
    assert cut.endswith("1 [0, 2] ...") and len(cut.split()) <= reports.LONGEST + 1


def test_the_appendix_has_a_command_a_claim(config, judged):
    table = reports.appendix([config], complete(judged))
    majors = judged[judged["first"] & (judged["paper"] == "dpcd")]
    assert len(table.splitlines()) == 2 + len(majors)
    assert "| [dpcd C1](../reports/dpcd.md) |" in table
    assert 0 < table.count("`dperm ") <= len(majors)


def test_the_manifest_names_every_file_of_a_major_claim():
    rows = complete(pd.DataFrame([ROW, ROW | {"reason": "figures/dpcd/a.csv: x"}]))
    assert reports.manifest(rows).splitlines() == [
        "manifest:",
        "- file: results/dpcd/table2.csv",
        "  comment: major claims dpcd C1",
        "- file: figures/dpcd/a.csv",
        "  comment: major claims dpcd C2",
    ]
