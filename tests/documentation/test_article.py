"""Every measured number of the article comes from results/."""

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

ARTICLE = Path(__file__).parents[2] / "docs/article"
SETTINGS = {"95", "1", "400", "6400"}  # of an interval, an epsilon and an instance


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("article", ARTICLE / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_template_holds_no_result():
    text = (ARTICLE / "article.md.j2").read_text(encoding="utf-8")
    text = re.sub(
        r"\{\{.*?\}\}|\{%.*?%\}|\]\(.*?\)|^## \d\.", "", text, flags=re.M | re.S
    )
    assert set(re.findall(r"\d+(?:\.\d+)?", text)) <= SETTINGS


def test_the_page_is_that_of_todays_results(build):
    page = (ARTICLE / "article.md").read_text(encoding="utf-8")
    assert page == build.rendered(), "run: python docs/article/build.py"


def test_other_results_give_another_page(build, tmp_path):
    shutil.copytree(build.RESULTS / "arena", tmp_path / "arena")
    claims = (build.RESULTS / "claims.csv").read_text(encoding="utf-8")
    number = build.Numbers()._row("56c846")["reproduced"]
    (tmp_path / "claims.csv").write_text(
        claims.replace(number, "3.25"), encoding="utf-8"
    )
    assert "\n3.2 times as far" in build.rendered(tmp_path)


def test_a_claim_that_is_not_there_is_named(build):
    with pytest.raises(ValueError, match=r"claim 000000: expected the end of one id"):
        build.Numbers().value("000000")


def test_numbers_have_two_digits(build):
    shown = [build.shown(x) for x in (74.147, 0.000463, 85114.6, 1.0)]
    assert shown == ["74", "0.00046", "85,000", "1"]
