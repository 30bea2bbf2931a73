"""Pages that are made of the claims: what is written, and what is not touched."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dperm.config.locate import ConfigError
from dperm.report import texts
from dperm.report.texts import complete

MARK = "<!-- scorecard: written by `dperm readme` -->"
END = "<!-- end of scorecard -->"
ROW = {
    "paper": "dpcd", "place": "Figure 1", "kind": "sentence",
    "claim": "A | B beats w* (error over error).",
    "tables": "results/dpcd/table2.csv", "number": "at(a) / b", "accepted": "above 1",
    "reproduced": 3.0, "ci_low": 2.0, "ci_high": 4.0, "cells": None, "inside": None,
    "verdict": "reproduced", "major": True, "section": "6.1", "set": "", "cause": "",
    "note": "", "authors": "", "missing": "", "id": "c-dpcd-1",
    "defence": "", "misprint": "",
    "reason": "2 of 2 hold; a: 3 [2, 4]; b: 5 [4, 6]",
}  # fmt: skip


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """All pages in a folder of their own, none of them there."""
    for name in ("README", "REPORTS", "ARTIFACT"):
        monkeypatch.setattr(texts, name, tmp_path / getattr(texts, name))
    texts.REPORTS.mkdir(parents=True)
    return tmp_path


def test_only_what_stands_between_marks_is_written(config, judged, pages):
    path, page = pages / "README.md", texts.REPORTS / "dpcd.md"
    path.write_text(f"before\n{MARK}\nold\n{END}\nafter\n")
    page.write_text("own\n<!-- claims: written by `dperm readme` -->\n"
                    "<!-- end of claims -->\nwords\n")  # fmt: skip
    with pytest.raises(ConfigError, match=r"claims\.csv is not there"):
        texts.readme(config)
    judged.to_csv(Path(config.output.results, "claims.csv"), index=False)
    assert texts.readme(config) == [path, page]
    text = path.read_text()
    assert text.startswith(f"before\n{MARK}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "\nold\n" not in text
    assert f"[DP-CD]({page}) | " in text and "arena" not in text
    made = page.read_text()
    assert made.startswith("own\n<!-- claims") and made.endswith(
        "claims -->\nwords\n"
    )
    assert "### C1. Not run: DP-CD outperforms DP-SGD by an order" in made
    texts.readme(config)
    assert (path.read_text(), page.read_text()) == (text, made)


def test_a_page_without_marks_is_left_alone(config, judged, pages):
    path = pages / "README.md"
    path.write_text("no marks\n")
    judged.to_csv(Path(config.output.results, "claims.csv"), index=False)
    with pytest.raises(ConfigError, match=r"README\.md: expected the lines"):
        texts.readme(config)
    assert path.read_text() == "no marks\n"


def test_a_bottom_line_stands_while_its_claims_have_the_verdicts_it_names(
    pages,
):
    rows = complete(pd.DataFrame([ROW, ROW | {"verdict": "in part"}]))
    count = "Of its statements, 1 of 2 reproduced, 1 in part."
    assert texts.bottom("dpcd", rows) == count
    page = texts.REPORTS / "dpcd.md"
    for told, holds in (
        ("It leads (C1 reproduced),\nnot by much (C2 in part).", True),
        ("It leads (C1, C2\nreproduced).", False),
        ("It leads (C3 reproduced).", False),
        ("It leads.", False),
    ):
        page.write_text(
            f"# Report\n\n**Bottom line.** {told}\n\n**Scope.** All.\n"
        )
        found = texts.bottom("dpcd", rows)
        words = " ".join(told.split()).replace("C1 ", "").replace("C2 ", "")
        assert found == (words if holds else count)


def test_a_report_has_ten_major_claims_with_their_pictures(config):
    claims = complete(pd.DataFrame([ROW | {"id": str(k)} for k in range(12)]))
    text = texts.block(config.paper, config.output, claims)
    assert text.count("\n### C") == 10
    first = text.partition("### C1. ")[2].partition("\n### ")[0]
    assert first.startswith("Reproduced: A / B beats"), "the finding first"
    assert "\nError over error: 3 [2, 4], accepted above 1. Figure 1." in first
    assert "/figures/dpcd/figure1.png)" in first and "/table2.csv)" in first
    assert r"A / B beats w\*" in first, "nothing in a claim is markup"


def test_the_appendix_has_a_command_a_claim(judged):
    lines = texts.appendix(complete(judged)).splitlines()
    assert len(lines) == 2 + sum(
        judged["major"] & (judged["paper"] != "arena")
    )
    named = "| [DP-CD C1](../reports/dpcd.md): DP-CD outperforms "
    assert any(line.startswith(named) for line in lines)
