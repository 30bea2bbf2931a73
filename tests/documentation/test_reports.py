"""Reports, README and the artifact's files are what ``claims.csv`` gives."""

import doctest
import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import dperm
from dperm.config.config import compose
from dperm.config.schema import Output
from dperm.report import claims as judging
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
    return {paper.name: paper for paper in texts.papers(compose([]))}


def between(path, name):
    """What stands between the marks of a page."""
    text = (ROOT / path).read_text()
    found = re.search(
        rf"{name}: written by.*?\n(.*)\n.*end of {name}", text, re.S
    )
    return found[1].strip()


@pytest.mark.parametrize("name", NAMES)
def test_a_report_is_what_the_claims_give(name, of, claims):
    page = f"docs/reports/{name}.md"
    assert between(page, "claims") == texts.block(of[name], Output(), claims)
    text = (ROOT / page).read_text()
    words = re.findall(r"\S*\w\S*", re.sub(r"\]\(.*?\)|<!--.*?-->", "]", text))
    assert len(words) <= MOST
    links = re.findall(r"\]\((\.\./[^)#]+)\)", text)
    assert links and all(
        (ROOT / "docs/reports" / link).is_file() for link in links
    )
    cited = not texts.bottom(name, claims).startswith("Of its statements")
    assert cited, "the bottom line is outdated"


@pytest.mark.parametrize("name", NAMES)
def test_every_page_has_the_count_of_a_paper(name, of, claims):
    """Of statements; printed cells are counted apart."""
    rows = claims[claims["paper"] == name]
    verdicts = rows[rows["kind"].isin(["sentence", "proof", "privacy"])][
        "verdict"
    ]
    score = texts.score(rows)
    assert score.startswith(
        f"{(verdicts == 'reproduced').sum()} of {len(verdicts)} "
    )
    count = texts.parts(rows)
    (row,) = re.findall(
        rf"\| \[{of[name].label}\].*", between("README.md", "scorecard")
    )
    assert f" | {texts.marks(count)} | {texts.cells(rows)} | " in row
    for page in (f"docs/reports/{name}.md", "results/claims.md"):
        assert count in (ROOT / page).read_text()


def test_the_count_in_marks():
    count = "16 of 22 reproduced, 2 undecided, 3 contradicted, 1 not run"
    told = texts.marks(count).replace("\u00a0", " ")
    assert told == "✓ 16, ? 2, ✗ 3, … 1 of 22"


def test_the_readme_says_what_a_fit_says_and_is_short():
    """Its lines run, on data that a reader has; its words are counted without code."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (5000, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.normal(0, 1, 5000)
    text = (ROOT / "README.md").read_text()
    block = text.split("```python\n")[1].split("```")[0]
    names = {"dperm": dperm, "X": X, "y": y}
    example = doctest.DocTestParser().get_doctest(
        block, names, "README", None, 0
    )
    assert len(example.examples) == 2
    assert doctest.DocTestRunner().run(example).failed == 0
    prose = re.sub(
        r"```.*?```|<!--.*?-->|\]\([^)]*\)", " ", text, flags=re.DOTALL
    )
    assert len(re.findall(r"\w[\w.'-]*", prose)) <= 600


def test_the_pages_of_all_papers_are_what_the_claims_give(of, claims):
    front = texts.front(Output(), claims).split("\n\n")[0]
    assert front in between("README.md", "scorecard")
    assert between("docs/howto/artifact.md", "claims") == texts.appendix(
        claims
    )
    listed = (ROOT / "results/claims.md").read_text()
    assert listed == texts.markdown(claims)
    assert len(listed.encode()) <= TABLED
    words = claims["reason"].str.split().str.len()
    assert words.quantile(0.9) <= AT_MOST


def test_no_statement_of_a_paper_is_lost(of):
    """Each has a claim, or its line in the errata; printed is how many have neither."""
    listed = yaml.safe_load(
        Path(__file__).with_name("statements.yaml").read_text()
    )
    errata = " ".join((ROOT / "docs/papers/errata.md").read_text().split())
    lost = []
    for name, statements in listed.items():
        tables = judging.tables(of[name], Output())
        places = {claim.source for claim in judging.load(of[name], tables)}
        lost += [
            (name, statement)
            for statement, where in statements.items()
            if where not in places and where not in errata
        ]
    print(f"{len(lost)} lost")
    assert not lost


@pytest.mark.parametrize("name", NAMES)
def test_a_bottom_line_rests_on_claims_sentence_by_sentence(name):
    """Each sentence names its claims; a number in it is one that is looked up here."""
    text = (ROOT / f"docs/reports/{name}.md").read_text()
    line = " ".join(
        text.partition("**Bottom line.**")[2].split("\n\n")[0].split()
    )
    settings = r"(Table|Theorem|Figure) \d+|epsilon of 1|p = 2"
    words = re.sub(rf"\(C[^()]*\)|{settings}", "", line)
    for sentence in re.split(r"(?<=\.) (?=[A-Z])", line):
        assert re.search(r"\(C\d", sentence), sentence
    for stated, source in NUMBERS.get(name, {}).items():
        assert stated in words and source() == re.findall(r"\d+", stated)
        words = words.replace(stated, "")
    assert not re.findall(r"(?<![-\w])\d+(?![-\w])", words)


def wrong_runs():
    """Fresh runs of DP-GCD with a wrong coordinate, of all."""
    table = pd.read_csv(ROOT / "results/dpgcd/table3.csv")
    own = table[table["algorithm"] == "DP-GCD"]
    counts = own[["fresh_runs_with_a_wrong_one", "fresh_runs"]].sum()
    return [f"{count:.0f}" for count in counts]


NUMBERS = {"dpgcd": {"13 of 1000": wrong_runs}}  # of bottom lines


def test_the_conclusions_of_the_article_rest_on_verdicts():
    """A verdict that changed would raise; every finding on a paper names some."""
    text = (ROOT / "docs/article/article.md.j2").read_text()
    findings = text.partition("# Five findings")[2].partition("# Limits")[0]
    for finding in findings.split("\n## ")[1:5]:
        assert "{{ rests(" in finding, finding.splitlines()[0]
    assert "{{ rests(" in text.partition("# Question")[0], "the abstract"
    build = runpy.run_path(str(ROOT / "docs/article/build.py"))
    with pytest.raises(
        ValueError, match="expected contradicted, found reproduced"
    ):
        build["Numbers"]().rests("f6ad3e", "contradicted")


def test_the_article_finds_its_numbers():
    """A claim or cell that is gone would raise."""
    made = runpy.run_path(str(ROOT / "docs/article/build.py"))["rendered"]()
    assert "{{" not in made and "nan" not in made


def test_the_article_takes_a_vector_picture_where_there_is_one(tmp_path):
    vectors = runpy.run_path(str(ROOT / "docs/article/build.py"))[
        "with_vectors"
    ]
    (tmp_path / "figures/dpcd").mkdir(parents=True)
    (tmp_path / "figures/dpcd/figure1.svg").touch()
    pictures = (
        "![a](../../figures/worth.png) ![b](../../figures/dpcd/figure1.png)"
    )
    chosen = (
        "![a](../../figures/worth.png) ![b](../../figures/dpcd/figure1.svg)"
    )
    assert vectors(pictures, tmp_path) == chosen


def test_the_codecheck_manifest_names_the_files_of_major_claims(claims):
    found = yaml.safe_load((ROOT / "docs/codecheck.yml").read_text())
    named = {one["file"] for one in found["manifest"]}
    assert all((ROOT / one).is_file() for one in named)
    for name in NAMES:
        for row in texts.majors(claims[claims["paper"] == name]):
            assert {*texts.files(row)} <= named, row["name"]
    assert {"version", "paper", "codechecker", "report"} <= set(found)
