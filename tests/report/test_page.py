"""The report as text, and as Chromium sees it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from dperm.report import stage

from .conftest import compose, write

CURVES = pd.DataFrame(
    {"panel": ["a"], "algorithm": ["DP-SGD"], "x": [1], "mean": [2]}
).assign(min=1, max=3, ci_low=1, ci_high=3)
ARENA = pd.DataFrame(
    [("X", 1.0, 0.3, 0.2, 0.4, "grid"), ("Y", 1.0, 0.5, 0.4, 0.6, "grid"),
     ("Z", 1.0, 0.7, 0.6, 0.8, "grid"), ("Z", 3.0, 0.1, 0.1, 0.1, "grid"),
     ("X", 1.0, 0.1, 0.1, 0.1, "default"), ("floor", 1.0, 0.1, None, None, "grid")],
    columns=["algorithm", "epsilon", "mean", "ci_low", "ci_high", "tuning"],
).assign(problem="electricity_raw")  # fmt: skip


@pytest.fixture(scope="module")
def report(judged, tmp_path_factory):
    """The file of a page with one figure, a leaderboard and an audit."""
    config = compose(tmp_path_factory.mktemp("report"))
    write(config, "figures/figure1", CURVES)
    stem = Path(config.output.figures, "dpcd", "figure1")
    Image.new("RGB", (30, 20)).save(stem.with_suffix(".png"))
    tables = {"arena/arena": ARENA, "claims": judged, "audit/controls": CURVES}
    for name, table in tables.items():
        path = Path(config.output.results, f"{name}.csv")
        path.parent.mkdir(exist_ok=True)
        table.to_csv(path, index=False)
    return stage.report(config)[0]


@pytest.fixture(scope="module")
def text(report):
    return report.read_text()


def attributes(text, name):
    """Every value of an attribute."""
    return re.findall(rf'<[a-z][^>]*\s{name}="([^"]*)"', text)


def test_the_page_loads_nothing_and_its_links_lead_somewhere(report, text):
    found = attributes(text, "id")
    assert len(found) == len(set(found))
    assert attributes(text, "src") == ["../../figures/dpcd/figure1.png"]
    assert re.findall(r"<link [^>]*>", text) == [
        '<link rel="icon" href="data:,">'
    ]
    assert not re.search(r"<script|@import|url\(", text)
    for link in {*attributes(text, "src"), *attributes(text, "href")} - {
        "data:,"
    }:
        if link.startswith("#"):
            assert link[1:] in found, link
        else:
            assert (report.parent / link).is_file(), link
            assert not link.endswith(".pdf"), "Git holds none"


def test_a_figure_is_its_file_with_its_data_and_its_command(text):
    (found,) = re.findall(r'<figure class="figure" .*?</figure>', text, re.S)
    assert attributes(found, "id") == ["dpcd-figure1"], (
        "no other figure was drawn"
    )
    assert "dperm figures/dpcd/figure1.png" in found
    assert attributes(found, "alt")[0]
    assert "../../figures/dpcd/figure1.csv" in attributes(found, "href")
    claim = re.search(
        r'id="c-dpcd-section-6-1-figure-1-.*?</details>', text, re.S
    )[0]
    assert '<a href="#dpcd-figure1">' in claim, "claims lead to figures"


def test_the_answers_come_first_and_say_what_is_missing(text):
    names = ("scorecard", "worth", "arena", "claims", "figures", "audits")
    places = [text.index(f'<section id="{name}"') for name in names]
    assert places == sorted(places)
    assert "The picture of the advice has not been drawn yet." in text
    assert "No paper’s noise has been priced yet." in text


def test_the_leaderboard_has_the_first_of_each_and_what_is_level(text):
    board = re.search(r'class="board".*?</table>', text, re.S)[0]
    first, second = (
        " ".join(re.sub(r"<[^>]*>", " ", row).split())
        for row in board.split("<tr>")[2:]
    )
    title = first.removesuffix(" 1 X of 3 0.300 [0.200, 0.400] Y")
    assert title and title != first and "_" not in title, (
        "a data set has its title"
    )
    assert second == f"{title} 3 Z of 1 0.100 [0.100, 0.100]"


def test_a_paper_has_its_count_its_bottom_line_and_at_most_ten_claims(
    text, judged
):
    told = re.findall(r'<article class="story" id="(\w+)"', text)
    assert told == ["dpbcfw", "dpcd", "dpgcd", "dpsco", "dpskgd"]
    (drawn,) = re.findall(
        r'<article class="story" id="dpcd".*?</article>', text, re.S
    )
    bars = re.findall(r'aria-label="(\w+): \d+ of (\d+) reproduced', drawn)
    assert [kind for kind, _ in bars] == ["experiments", "theorems", "privacy"]
    parts = re.findall(r'flex-grow:(\d+)"', drawn)
    assert sum(map(int, parts)) == sum(int(total) for _, total in bars)
    assert re.search(r"\b3 misprints\.", drawn), "and these apart"
    assert '<h3>DP-CD <span class="of">' in drawn, "one name on every page"
    assert re.search(r'href="[./\w-]+docs/reports/dpcd\.md"', drawn)
    for paper in told:
        claims = text.count(f'id="c-{paper}-')
        assert claims == judged[judged["paper"] == paper]["major"].sum() <= 10


def test_the_page_is_small_and_shows_no_trace(text):
    assert len(text.encode()) < 3e5
    assert "Traceback" not in text and "HTTPSConnection" not in text


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
CHECK = """
<script>
addEventListener("load", () => document.body.setAttribute("data-found", [
  document.documentElement.scrollWidth - innerWidth,
  Math.round(document.getElementById("scorecard").getBoundingClientRect().bottom)]));
</script>
"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.parametrize("width", [390, 820, 1400])
def test_in_chromium_the_page_fits(report, text, tmp_path, width):
    path = report.with_name("checked.html")
    path.write_text(text.replace("</body>", CHECK + "</body>"))
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu",
        "--disable-background-networking", "--enable-logging=stderr",
        "--virtual-time-budget=60000", f"--user-data-dir={tmp_path / 'profile'}",
        f"--window-size={width},900", "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    seen = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True
    )
    assert "CONSOLE" not in seen.stderr
    wide, bottom = re.search(
        r'data-found="(-?\d+),(\d+)"', seen.stdout
    ).groups()
    assert int(wide) <= 0, "the page scrolls sideways"
    assert int(bottom) < 2 * 850, "two screens"
