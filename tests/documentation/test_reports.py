"""Reports, README and the artifact's files are what ``claims.csv`` gives."""

import re
import runpy
from pathlib import Path

import pandas as pd
import pytest
import yaml

from dperm.core.experiment.config import compose
from dperm.report import texts

ROOT = Path(__file__).parents[2]
NAMES = ("dpbcfw", "dpcd", "dpgcd", "dpsco", "dpskgd")
MOST = 700  # words of a report
TABLED = 100_000  # bytes of claims.md
AT_MOST = 40  # words of a reason, of nine in ten


@pytest.fixture(scope="module")
def claims():
    return texts.complete(pd.read_csv(ROOT / "results/claims.csv"))


@pytest.fixture(scope="module")
def of():
    return {config.paper.name: config for config in texts.papers(compose([]))}


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


@pytest.mark.parametrize("name", NAMES)
def test_every_page_has_the_count_of_a_paper(name, claims):
    """Of statements; printed cells are counted apart."""
    rows = claims[claims["paper"] == name]
    verdicts = rows[rows["kind"].isin(["sentence", "proof", "privacy"])]["verdict"]
    score = texts.score(rows)
    assert score.startswith(f"{(verdicts == 'reproduced').sum()} of {len(verdicts)} ")
    count = texts.parts(rows)
    (row,) = re.findall(
        rf"\| \[{texts.named(name)}\].*", between("README.md", "scorecard")
    )
    assert f" | {count} | {texts.cells(rows)} | " in row
    for page in (f"docs/reports/{name}.md", "results/claims.md"):
        assert count in (ROOT / page).read_text()


def test_the_pages_of_all_papers_are_what_the_claims_give(of, claims):
    front = texts.front(of["dpcd"], claims).split("\n\n")[0]
    assert front in between("README.md", "scorecard")
    assert between("docs/howto/artifact.md", "claims") == texts.appendix(claims)
    listed = (ROOT / "results/claims.md").read_text()
    assert listed == texts.markdown(claims)
    assert len(listed.encode()) <= TABLED
    words = claims["reason"].str.split().str.len()
    assert words.quantile(0.9) <= AT_MOST


def test_the_article_finds_its_numbers():
    """A claim or cell that is gone would raise."""
    made = runpy.run_path(str(ROOT / "docs/article/build.py"))["rendered"]()
    assert "{{" not in made and "nan" not in made


def test_the_codecheck_manifest_names_the_files_of_major_claims(claims):
    found = yaml.safe_load((ROOT / "codecheck.yml").read_text())
    named = {one["file"] for one in found["manifest"]}
    assert all((ROOT / one).is_file() for one in named)
    for name in NAMES:
        for row in texts.majors(claims[claims["paper"] == name]):
            assert {*texts.files(row)} <= named, row["name"]
    assert {"version", "paper", "codechecker", "report"} <= set(found)
