"""The report as text, and as Chromium sees it."""

from __future__ import annotations

import html.parser
import re
import shutil
import subprocess

import pandas as pd
import pytest
from PIL import Image

from dperm.core.experiment import plan
from dperm.report import page

from .conftest import compose, write

CURVES = pd.DataFrame({"panel": ["a"], "algorithm": ["DP-SGD"], "x": [1], "mean": [2]})
ARENA = pd.DataFrame(
    [("electricity_raw", "X", 1.0, 0.3, 0.2, 0.4, "grid"),
     ("electricity_raw", "Y", 1.0, 0.5, 0.4, 0.6, "grid"),
     ("electricity_raw", "Z", 1.0, 0.7, 0.6, 0.8, "grid"),
     ("electricity_raw", "Z", 3.0, 0.1, 0.1, 0.1, "grid"),
     ("electricity_raw", "X", 1.0, 0.1, 0.1, 0.1, "default"),
     ("electricity_raw", "floor", 1.0, 0.1, None, None, "grid")],
    columns=["problem", "algorithm", "epsilon", "mean", "ci_low", "ci_high",
             "tuning"],
)  # fmt: skip


@pytest.fixture(scope="module")
def report(judged, tmp_path_factory):
    config = compose(tmp_path_factory.mktemp("report"))
    write(config, "figures/figure1", CURVES)
    stem = plan.figures_folder(config, "dpcd", "figure1")
    Image.new("RGB", (30, 20)).save(stem.with_suffix(".png"))
    arena = plan.results_folder(config, "arena", "arena.csv")
    arena.parent.mkdir()
    ARENA.to_csv(arena, index=False)
    path = plan.results_folder(config, "claims.csv")
    judged.to_csv(path, index=False)
    audit = plan.results_folder(config, "audit", "controls.csv")
    audit.parent.mkdir()
    audit.write_text("half the noise")
    return page.report(config)[0]


class Links(html.parser.HTMLParser):
    """Every address the page would load or lead to, and every id."""

    def __init__(self):
        super().__init__()
        self.loaded, self.links, self.ids = [], [], []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids.append(given.get("id"))
        if "src" in given or tag == "link":
            self.loaded.append(given.get("src") or given.get("href"))
        elif "href" in given:
            self.links.append(given["href"])


def test_the_page_loads_nothing_and_its_links_lead_somewhere(report):
    parser = Links()
    parser.feed(report.read_text())
    found = [each for each in parser.ids if each]
    assert len(found) == len(set(found))
    assert parser.loaded[0] == "data:,"
    for link in parser.loaded[1:]:
        assert link.endswith("/figures/dpcd/figure1.png")
        assert (report.parent / link).is_file()
    for link in parser.links:
        if link.startswith("#"):
            assert link[1:] in found, link
        else:
            assert (report.parent / link).is_file(), link
            assert not link.endswith(".pdf"), "Git holds none"


def test_a_figure_is_its_file_with_its_data_and_its_command(report):
    text = report.read_text()
    found = re.search(r'<figure class="figure" id="dpcd-figure1">.*?</figure>', text,
                      re.S)[0]  # fmt: skip
    assert "dperm figures/dpcd/figure1.png" in found
    assert re.search(r'<img src="[./]+figures/dpcd/figure1\.png" alt="\w', found)
    assert re.search(r'href="[./]+figures/dpcd/figure1\.csv"', found)
    assert text.count('class="figure"') == 1, "no other figure was drawn"


def test_the_answers_come_first_and_say_what_is_missing(report):
    text = report.read_text()
    names = ("scorecard", "worth", "arena", "claims", "figures", "audits")
    places = [text.index(f'<section id="{name}"') for name in names]
    assert places == sorted(places)
    assert "The picture of the advice has not been drawn yet." in text
    assert "No paper’s noise has been priced yet." in text


def test_the_leaderboard_has_the_first_of_each_and_what_is_level(report):
    board = re.search(r'class="board".*?</table>', report.read_text(), re.S)[0]
    rows = [re.sub(r"<[^>]*>", " ", row).split() for row in board.split("<tr>")[2:]]
    title = " ".join(rows[0]).partition(" 1 X of 3")[0]
    assert title and "_" not in title, "a data set has its title"
    assert " ".join(rows[0]).endswith("1 X of 3 0.300 [0.200, 0.400] Y")
    assert " ".join(rows[1]).endswith("3 Z of 1 0.100 [0.100, 0.100]")


def test_a_paper_has_its_count_its_bottom_line_and_at_most_ten_claims(report, judged):
    text = report.read_text()
    told = re.findall(r'<article class="story" id="(\w+)"', text)
    assert told == ["dpbcfw", "dpcd", "dpgcd", "dpsco", "dpskgd"]
    (drawn,) = re.findall(r'<article class="story" id="dpcd".*?</article>', text, re.S)
    count = re.search(r'aria-label="(\d+ of \d+ reproduced, [^"]*)"', drawn)[1]
    assert drawn.count(count) == 3, "bar, bottom line and link have one count"
    bar = re.findall(r'flex-grow:(\d+)"', drawn)
    assert f" of {sum(map(int, bar))} reproduced" in count
    assert re.search(r'href="[./\w-]+docs/reports/dpcd\.md"', drawn)
    for paper in told:
        claims = text.count(f'id="c-{paper}-')
        assert claims == judged[judged["paper"] == paper]["major"].sum() <= 10


def test_claims_lead_to_figures(report):
    of_claim = re.search(r'<details class="claim[^>]*id="c-dpcd-section-6-1-figure-1-'
                         r'\w+".*?</details>', report.read_text(), re.S)  # fmt: skip
    assert '<a href="#dpcd-figure1">' in of_claim[0]


def test_the_page_is_small_and_shows_no_trace(report):
    assert len(report.read_bytes()) < 3e5
    text = report.read_text()
    assert "Traceback" not in text and "HTTPSConnection" not in text


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
CHECK = """
<script>
addEventListener("load", () => document.body.setAttribute("data-found", [
  document.documentElement.scrollWidth - innerWidth,
  Math.round(document.getElementById("scorecard").getBoundingClientRect().bottom)]));
</script>
"""


def browsed(report, width, tmp_path, script):
    """What a script that is added to the page finds in Chromium."""
    path = report.with_name("checked.html")
    path.write_text(report.read_text().replace("</body>", script + "</body>"))
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
    return html.unescape(re.search(r'data-found="([^"]*)"', seen.stdout)[1])


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.parametrize("width", [390, 820, 1400])
def test_in_chromium_the_page_fits(report, tmp_path, width):
    wide, bottom = map(int, browsed(report, width, tmp_path, CHECK).split(","))
    assert wide <= 0, "the page scrolls sideways"
    assert bottom < 2 * 850, "two screens"
