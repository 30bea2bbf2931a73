"""The report as text, and as Chromium sees it."""

from __future__ import annotations

import html.parser
import json
import re
import shutil
import struct
import subprocess

import pandas as pd
import pytest

from dperm.pipeline import plan
from dperm.report import page

from .conftest import compose, write

CURVES = pd.DataFrame(
    [
        ("a_b", name, x, top / (x + 1), top / (x + 2), top / (x + 0.5), top / (x + 1.2),
         top / (x + 0.9))
        for name, top in ((r"$\epsilon$ = 1", 1.0), ("DP-SGD", 2.0))
        for x in range(20)
    ],
    columns=["panel", "algorithm", "x", "mean", "min", "max", "ci_low", "ci_high"],
)  # fmt: skip


@pytest.fixture(scope="module")
def report(judged, tmp_path_factory):
    config = compose(tmp_path_factory.mktemp("report"))
    write(config, "figure1", CURVES, top="figures")
    path = plan.results_folder(config, "claims.csv")
    judged.to_csv(path, index=False)
    audit = plan.results_folder(config, "audit", "controls.csv")
    audit.parent.mkdir()
    audit.write_text("mechanism,caught by\nhalf the noise,KS test\n")
    return page.report(config)[1]


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
    assert parser.loaded == ["data:,"]
    for link in parser.links:
        if link.startswith("#"):
            assert link[1:] in parser.ids
        elif not link.endswith((".pdf", ".svg")):
            assert (report.parent / link).is_file(), link


def test_what_is_written_into_a_script_cannot_end_or_begin_one():
    title = "<!--<script></script>-->"
    written = page._json({"title": title})
    assert "<" not in written and json.loads(written)["title"] == title


def test_a_figure_says_where_it_comes_from(report):
    text = report.read_text()
    assert "snakemake -j 2 figures/dpcd/figure1.svg" in text
    assert "master seed 20220202" in text
    assert 'id="dpcd/figure1"' in text
    assert "Not available: electricity_raw, california_raw" in text


def test_tables_of_the_audit_are_shown_where_there_are_any(report):
    text = report.read_text()
    assert "half the noise" in text
    assert 'href="#audits"' in text


def test_the_data_are_the_csv(report):
    block = re.search(r'id="data">(.*?)</script>', report.read_text(), re.S)[1]
    (panel,) = json.loads(block)["dpcd/figure1"]["panels"]
    assert panel["name"] == "a b"
    assert [curve["name"] for curve in panel["curves"]] == ["ε = 1", "DP-SGD"]
    assert panel["curves"][1]["mean"][:3] == [2.0, 1.0, 0.6667]


def test_text_from_files_cannot_break_the_page():
    assert "<" not in page._json({"a": "</script>"})


def test_numbers_for_readers():
    assert [page.short(v) for v in (0.012345, 3.0, float("inf"), None, "x")] == [
        "0.0123", "3", "inf", "", "x",
    ]  # fmt: skip
    assert page.plain(r"$\eta$ = 1 $\|x_{true}\|_1$") == "η = 1 ‖x_true‖_1"


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
CHECK = """
<script>
addEventListener("error", e => document.title = "error: " + e.message);
addEventListener("load", () => setTimeout(() => {
  const chart = document.querySelector(".chart"), svg = chart.querySelector("svg");
  const press = key => svg.dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true }));
  const line = () => svg.querySelector("polyline").getAttribute("points");
  const tip = () => chart.querySelector(".tip").textContent;
  const found = { charts: document.querySelectorAll(".chart svg polyline").length,
    wide: document.documentElement.scrollWidth - innerWidth, focus: svg.tabIndex };
  press("ArrowRight"); found.first = tip();
  press("ArrowDown"); found.second = tip();
  const before = line(); press("+"); found.zoomed = line() !== before;
  press("0"); found.back = line() === before;
  [...chart.querySelectorAll("button")].find(b => b.textContent === "log y").click();
  found.switched = line() !== before;
  const filter = document.querySelector("#dpcd .filters .untested"); filter.click();
  found.hidden = document.querySelectorAll("#dpcd .claim.untested:not(.hidden)").length;
  document.body.setAttribute("data-found", JSON.stringify(found));
}, 300));
</script>
"""


def browse(path, width, tmp_path, *arguments):
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu",
        "--disable-background-networking", "--enable-logging=stderr",
        "--virtual-time-budget=5000", f"--user-data-dir={tmp_path / 'profile'}",
        f"--window-size={width},900", *arguments, path.as_uri() + "#draw-all",
    ]  # fmt: skip
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True
    )


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.parametrize("width", [390, 820, 1400])
def test_in_chromium_charts_are_drawn_and_work_by_keyboard(report, tmp_path, width):
    checked = report.with_name("checked.html")
    text = report.read_text()
    checked.write_text(text.replace("<script type", CHECK + "<script type", 1))
    seen = browse(checked, width, tmp_path, "--dump-dom")
    assert "CONSOLE" not in seen.stderr
    assert "<title>error" not in seen.stdout
    raw = re.search(r'data-found="([^"]*)"', seen.stdout)[1]
    found = json.loads(html.unescape(raw))
    assert found["charts"] == 2
    assert found["wide"] <= 0, "the page scrolls sideways"
    assert found["focus"] == 0
    assert found["first"].startswith("ε = 1: 0.5 [")
    assert found["second"].startswith("DP-SGD: 1 [")
    assert found["zoomed"] and found["back"] and found["switched"]
    assert found["hidden"] == 0


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
def test_a_picture_can_be_taken(report, tmp_path):
    picture = tmp_path / "report.png"
    browse(report, 800, tmp_path, f"--screenshot={picture}")
    assert struct.unpack(">II", picture.read_bytes()[16:24]) == (800, 900)
