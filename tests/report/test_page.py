"""The report as text, and as Chromium sees it."""

from __future__ import annotations

import html.parser
import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

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
    assert parser.loaded[0] == "data:,"
    for link in parser.loaded[1:]:
        assert link.endswith("/figures/dpcd/figure1.png")
        assert (report.parent / link).is_file()
    for link in parser.links:
        if link.startswith("#"):
            assert link[1:].split("?")[0] in parser.ids, link
        else:
            assert (report.parent / link).is_file(), link
            assert not link.endswith(".pdf"), "Git holds none"


def test_a_figure_is_its_file_with_its_data_and_its_command(report):
    text = report.read_text()
    found = re.search(r'<figure class="figure" id="f-dpcd-figure1">.*?</figure>', text,
                      re.S)[0]  # fmt: skip
    assert "dperm figures/dpcd/figure1.png" in found
    assert re.search(r'<img src="[./]+figures/dpcd/figure1\.png" alt="\w', found)
    assert re.search(r'href="[./]+figures/dpcd/figure1\.csv"', found)
    assert text.count('class="figure"') == 1, "no other figure was drawn"


def test_the_answers_come_first_and_say_what_is_missing(report):
    text = report.read_text()
    places = [text.index(f'<section id="{name}"') for name in
              ("scorecard", "worth", "arena", "claims", "figures")]  # fmt: skip
    assert places == sorted(places)
    assert "The picture of the advice has not been drawn yet." in text
    assert "No paper’s noise has been priced yet." in text


def test_the_leaderboard_ranks_fresh_errors_within_data_set_and_epsilon(report):
    text = report.read_text()
    rows = re.search(r'id="board-list".*?</tbody>', text, re.S)[0].split("<tr")[1:]
    cells = [re.findall(r"<td>([^<]*)", row) for row in rows]
    assert [row[1:4] for row in cells] == [
        ["1", "1 of 3 •", "X"],
        ["1", "2 of 3 •", "Y"],
        ["1", "3 of 3", "Z"],
        ["3", "1 of 1 •", "Z"],
    ]
    assert {row[0] for row in cells} == {page._titled("electricity_raw")}
    printed = [' class="lead one"' in row.split("<td>")[0] for row in rows]
    assert printed == [True, False, False, False]  # the first method at epsilon 1


def test_the_audit_is_linked_where_there_is_one(report):
    text = report.read_text()
    assert 'audit/controls.csv">controls</a>' in text
    assert 'href="#audits"' in text


def test_every_id_is_there_once(report):
    parser = Links()
    parser.feed(report.read_text())
    found = [each for each in parser.ids if each]
    assert len(found) == len(set(found))
    assert sum(each.startswith("c-dpcd-") for each in found) > 20


class Filters(html.parser.HTMLParser):
    """Choices of the claims' filters, and what the claims say of themselves."""

    def __init__(self):
        super().__init__()
        self.inside, self.name, self.claims = False, "", []
        self.choices = {}

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "form":
            self.inside = given["data-of"] == "claim-list"
        elif tag == "select":
            self.name = given["name"]
        elif tag == "option" and self.inside and given["value"]:
            self.choices.setdefault(self.name, []).append(given["value"])
        elif "data-verdict" in given:
            self.claims.append(given)


def test_every_choice_of_a_filter_finds_claims_and_all_claims_are_listed(
    report, judged
):
    parser = Filters()
    parser.feed(report.read_text())
    assert len(parser.claims) == len(judged)
    for key in ("paper", "kind", "verdict"):
        held = {claim[f"data-{key}"] for claim in parser.claims}
        assert set(parser.choices[key]) == held
    papers = pd.Series([claim["data-paper"] for claim in parser.claims])
    assert papers.value_counts().to_dict() == judged["paper"].value_counts().to_dict()
    assert f"Mangold 2022 ({papers.eq('dpcd').sum()})" in report.read_text()


def test_claims_lead_to_figures_and_back(report):
    text = report.read_text()
    of_claim = re.search(r'<details class="claim[^>]*id="(c-dpcd-section-6-1-figure-1-'
                         r'\w+)".*?</details>', text, re.S)  # fmt: skip
    assert '<a href="#f-dpcd-figure1">' in of_claim[0]
    of_figure = re.search(r'<figure class="figure" id="f-dpcd-figure1">.*?</figure>',
                          text, re.S)  # fmt: skip
    assert f'<a href="#{of_claim[1]}"' in of_figure[0]


def test_each_paper_has_its_counts_its_bottom_line_and_its_report(report):
    told = re.findall(r'<article class="story" id="(\w+)".*?</article>',
                      report.read_text(), re.S)  # fmt: skip
    assert {"dpbcfw", "dpcd", "dpgcd", "dpsco", "dpskgd"} <= set(told)
    (drawn,) = re.findall(r'<article class="story" id="dpcd".*?</article>',
                          report.read_text(), re.S)  # fmt: skip
    assert re.search(r'aria-label="\d+ reproduced, 0 in part', drawn)
    assert re.search(r"Of \d+ major claims: .*\d not run", drawn)  # of runs
    assert re.search(r'href="[./\w-]+docs/reports/dpcd\.md"', drawn)


def test_the_page_is_small(report):
    assert len(report.read_bytes()) < 1e6


def test_no_trace_of_an_exception_is_shown(report):
    text = report.read_text()
    assert "Traceback" not in text and "HTTPSConnection" not in text


def test_numbers_for_readers():
    assert [page.short(v) for v in (0.012345, 3.0, float("inf"), None, "x")] == [
        "0.0123", "3", "inf", "", "x",
    ]  # fmt: skip
    assert page.without_latex(r"$\eta$ = 1 $\|x_{true}\|_1$") == "η = 1 ‖x_true‖_1"


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
CHECK = """
<script>
addEventListener("error", e => document.title = "error: " + e.message);
addEventListener("load", () => setTimeout(() => {
  const found = { wide: document.documentElement.scrollWidth - innerWidth,
    scorecard: document.getElementById("scorecard").getBoundingClientRect().bottom };
  const form = document.querySelector("form[data-of=claim-list]");
  const shown = () => document.querySelectorAll(".claim:not(.hidden)");
  form.elements.paper.value = "dpcd"; form.elements.q.value = "sparse lasso";
  form.dispatchEvent(new Event("input"));
  found.kept = shown().length;
  found.right = [...shown()].every(c => c.dataset.paper === "dpcd");
  found.said = form.parentNode.querySelector("[role=status]").textContent;
  found.address = location.hash;
  location.hash = "#claims?verdict=not+run&paper=dpgcd";
  dispatchEvent(new Event("hashchange"));
  found.sent = [...shown()].map(c => c.dataset.paper + c.dataset.verdict);
  scrollTo({ top: 3000, behavior: "instant" });
  found.bar = document.querySelector("nav").getBoundingClientRect().top;
  document.body.setAttribute("data-found", JSON.stringify(found));
}, 300));
</script>
"""


def browse(path, width, tmp_path, *arguments):
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu",
        "--disable-background-networking", "--enable-logging=stderr",
        "--virtual-time-budget=5000", f"--user-data-dir={tmp_path / 'profile'}",
        f"--window-size={width},900", *arguments, path.as_uri(),
    ]  # fmt: skip
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True
    )


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.parametrize("width", [390, 820, 1400])
def test_in_chromium_the_page_fits_and_its_filters_work(report, tmp_path, width):
    checked = report.with_name("checked.html")
    text = report.read_text()
    checked.write_text(text.replace("</body>", CHECK + "</body>"))
    seen = browse(checked, width, tmp_path, "--dump-dom")
    assert "CONSOLE" not in seen.stderr
    assert "<title>error" not in seen.stdout
    raw = re.search(r'data-found="([^"]*)"', seen.stdout)[1]
    found = json.loads(html.unescape(raw))
    assert found["wide"] <= 0, "the page scrolls sideways"
    assert found["scorecard"] < 2 * 850, "two screens"
    assert 0 < found["kept"] < 40 and found["right"]
    assert found["said"].startswith(f"{found['kept']} of ")
    assert found["address"] == "#claims?q=sparse+lasso&paper=dpcd"
    assert set(found["sent"]) == {"dpgcdnot run"}
    assert found["bar"] == 0, "the bar stays in view"


JUMP = """
<script>
addEventListener("load", () => setTimeout(() => {
  const target = document.getElementById("claims");
  const drawn = document.createElement("div");
  drawn.style.height = "4000px";
  location.hash = "#claims";
  setTimeout(() => target.before(drawn), 50);
  setTimeout(() => document.body.setAttribute("data-found",
    Math.round(target.getBoundingClientRect().top)), 2000);
}, 300));
</script>
"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
def test_a_link_ends_at_its_section_whatever_is_drawn_on_the_way(report, tmp_path):
    checked = report.with_name("jump.html")
    checked.write_text(report.read_text().replace("</body>", JUMP + "</body>"))
    seen = browse(checked, 1400, tmp_path, "--dump-dom")
    found = re.search(r'data-found="([^"]*)"', seen.stdout)
    assert 0 <= int(found[1]) < 100, "below the bar"


AXE = os.environ.get("DPERM_AXE")  # axe.min.js, of the npm package axe-core
CHECKED = """
<script>
addEventListener("load", () => axe.run(document, { resultTypes: ["violations"],
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }).then(seen =>
  document.body.setAttribute("data-found", JSON.stringify(seen.violations.map(
    each => each.id + ": " + each.nodes.slice(0, 3).map(node => node.html))))));
</script>
"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.skipif(AXE is None, reason="DPERM_AXE names no axe.min.js (axe-core)")
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_axe_finds_nothing_against_wcag_aa(report, tmp_path, mode):
    checked = report.with_name("axe.html")
    text = report.read_text()
    script = f"<script>{Path(AXE).read_text()}</script>{CHECKED}"
    checked.write_text(text.replace("</body>", f"{script}</body>"))
    scheme = (
        "--blink-settings=preferredColorScheme=" + {"dark": "0", "light": "1"}[mode]
    )
    budget = "--virtual-time-budget=60000"
    seen = browse(checked, 1400, tmp_path, "--dump-dom", scheme, budget)
    found = re.search(r'data-found="([^"]*)"', seen.stdout)
    assert found and json.loads(html.unescape(found[1])) == []


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
def test_a_picture_can_be_taken(report, tmp_path):
    picture = tmp_path / "report.png"
    browse(report, 800, tmp_path, f"--screenshot={picture}")
    assert struct.unpack(">II", picture.read_bytes()[16:24]) == (800, 900)
