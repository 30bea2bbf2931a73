"""Reports, README and the artifact's files are what ``claims.csv`` gives."""

import re
import runpy
from pathlib import Path

import pandas as pd
import pytest
import yaml

from dperm.core.experiment.config import compose
from dperm.report import texts
from dperm.report.texts import complete, files, majors, markdown, papers

ROOT = Path(__file__).parents[2]
NAMES = ("dpbcfw", "dpcd", "dpgcd", "dpsco", "dpskgd")
MOST = 700  # words of a report
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
    assert between(page, "claims") == texts.block(of[name], claims)
    text = (ROOT / page).read_text()
    words = re.findall(r"\S*\w\S*", re.sub(r"\]\(.*?\)|<!--.*?-->", "]", text))
    assert len(words) <= MOST
    links = re.findall(r"\]\((\.\./[^)#]+)\)", text)
    assert links and all((ROOT / "docs/reports" / link).is_file() for link in links)
    cited = not texts.bottom(name, claims).startswith("Of its statements")
    assert cited, "the bottom line is outdated"


def test_the_readme_has_a_row_a_paper(of, claims):
    block = between("README.md", "scorecard")
    rows = [line for line in block.splitlines() if "docs/reports/" in line]
    assert [re.search(r"\[(\w+)\]", row)[1] for row in rows] == list(NAMES)
    assert texts.front(of["dpcd"], claims).split("\n\n")[0] in block


def test_the_artifact_has_a_command_for_every_major_claim(claims):
    told = between("docs/howto/artifact.md", "claims")
    assert told == texts.appendix(claims)


def test_the_article_finds_its_numbers():
    """A claim or cell that is gone would raise."""
    made = runpy.run_path(str(ROOT / "docs/article/build.py"))["rendered"]()
    assert "{{" not in made and "nan" not in made


def test_the_codecheck_manifest_names_the_files_of_major_claims(of, claims):
    found = yaml.safe_load((ROOT / "codecheck.yml").read_text())
    named = {one["file"] for one in found["manifest"]}
    assert all((ROOT / one).is_file() for one in named)
    for name in NAMES:
        for row in majors(claims[claims["paper"] == name]):
            assert {*files(row)} <= named, row["name"]
    assert {"version", "paper", "codechecker", "report"} <= set(found)


def test_the_claims_are_listed_shortly(claims):
    listed = (ROOT / "results/claims.md").read_text()
    assert listed == markdown(claims)
    assert len(listed.encode()) <= TABLED


def test_reasons_are_short(claims):
    words = claims["reason"].str.split().str.len()
    assert words.quantile(0.9) <= AT_MOST
