"""Reports, README and the artifact's files are what ``claims.csv`` gives."""

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

from dperm.core.experiment.config import compose
from dperm.report import reports
from dperm.report.claims import papers
from dperm.report.texts import complete, majors, markdown

ROOT = Path(__file__).parents[2]
NAMES = ("dpbcfw", "dpcd", "dpgcd", "dpsco", "dpskgd")
MOST = 1000  # words of a report: two pages
TABLED = 100_000  # bytes of claims.md
AT_MOST = 40  # words of a reason, of nine in ten


@pytest.fixture(scope="module")
def claims():
    return complete(pd.read_csv(ROOT / "results/claims.csv"))


@pytest.fixture(scope="module")
def of():
    return {config.paper.name: config for config in papers(compose([]))}


def between(path, name):
    """What stands between the marks of a page."""
    text = (ROOT / path).read_text()
    found = re.search(rf"{name}: written by.*?\n(.*)\n.*end of {name}", text, re.S)
    return found[1].strip()


@pytest.mark.parametrize("name", NAMES)
def test_a_report_is_what_the_claims_give(name, of, claims):
    page = f"docs/reports/{name}.md"
    assert between(page, "claims") == reports.block(of[name], claims)
    text = (ROOT / page).read_text()
    words = re.findall(r"\S*\w\S*", re.sub(r"\]\(.*?\)|<!--.*?-->", "]", text))
    assert len(words) <= MOST
    links = re.findall(r"\]\((\.\./[^)#]+)\)", text)
    assert links and all((ROOT / "docs/reports" / link).is_file() for link in links)
    assert "Of " not in reports.bottom(name, claims)[:3], "the bottom line is outdated"
    assert 1 <= len(majors(claims[claims["paper"] == name])) <= 10


def test_a_claim_about_a_figure_links_the_picture():
    text = (ROOT / "docs/reports/dpcd.md").read_text()
    claim = text.partition("### C1. ")[2].partition("\n### ")[0]
    assert "(../../figures/dpcd/figure1.png)" in claim


def test_the_readme_has_a_row_a_paper(of, claims):
    block = between("README.md", "scorecard")
    rows = [line for line in block.splitlines() if "docs/reports/" in line]
    assert [re.search(r"\[(\w+)\]", row)[1] for row in rows] == list(NAMES)
    for name, row in zip(NAMES, rows, strict=True):
        assert reports.bottom(name, claims) in row
    assert reports._front(of["dpcd"], claims).split("\n\n")[0] in block


def test_the_artifact_has_a_command_for_every_major_claim(of, claims):
    told = between("docs/howto/artifact.md", "claims")
    assert told == reports.appendix(of.values(), claims)


def test_the_codecheck_manifest_names_files_that_are_there(claims):
    text = (ROOT / "codecheck.yml").read_text()
    found = yaml.safe_load(text)
    assert found["manifest"] == yaml.safe_load(reports.manifest(claims))["manifest"]
    assert all((ROOT / one["file"]).is_file() for one in found["manifest"])
    assert {"version", "paper", "codechecker", "report"} <= set(found)


def test_the_claims_are_listed_shortly(claims):
    listed = (ROOT / "results/claims.md").read_text()
    assert listed == markdown(claims)
    assert len(listed.encode()) <= TABLED


def test_reasons_are_short(claims):
    words = claims["reason"].str.split().str.len()
    assert words.quantile(0.9) <= AT_MOST
