"""The results explorer as text, and what a reader does with it in Chromium."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from dperm.core.experiment import plan
from dperm.report import explorer

from .conftest import compose, write

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
ARENA = pd.DataFrame(
    {
        "problem": ["concrete"] * 17 + ["airfoil"],
        "algorithm": ["DP-GD", "AdaSSP"] * 9,
        "epsilon": [1.0, 1.0, 3.0] * 6,
        "mean": np.arange(18) / 32,
    }
)


def curves():
    """Two methods in two panels, over two decades, one value without an interval."""
    rows = []
    for panel in ("first", "second"):
        for rate, method in ((1.0, "DP-CD"), (0.5, "DP-SGD")):
            for x in range(1, 200):
                mean = float(np.exp(-rate * x / 20))
                ends = (0.9 * mean, 1.1 * mean) if x > 1 else (np.nan, np.nan)
                rows.append((panel, method, x, mean, mean, mean, *ends))
    return pd.DataFrame(rows, columns=["panel", "algorithm", *explorer.NUMBERS])


@pytest.fixture(scope="module")
def page(judged, tmp_path_factory):
    """The file of an explorer with one figure, 18 cells and all claims."""
    config = compose(tmp_path_factory.mktemp("explorer"))
    write(config, "figures/figure1", curves())
    for name, table in {"arena/arena": ARENA, "claims": judged}.items():
        path = plan.results_folder(config, f"{name}.csv")
        path.parent.mkdir(exist_ok=True)
        table.to_csv(path, index=False)
    return explorer.explore(config)[0]


def test_every_figure_and_claim_is_there_and_the_page_asks_for_nothing(page, judged):
    text = page.read_text()
    assert text.count('<details class="explore"') == 1
    assert 'id="dpcd-figure1"' in text
    own = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', own)
    assert all(place in text for place in judged["place"].head(20))
    assert "<h2>DP-CD</h2>" in text and '"DP-SkGD"' in text, "papers by their labels"


def test_a_thinned_curve_keeps_its_ends():
    thinned = explorer.thinned(curves())
    assert len(thinned) == 4 * explorer.POINTS_OF_CURVE
    for _, curve in thinned.groupby(["panel", "algorithm"]):
        assert [curve["x"].min(), curve["x"].max()] == [1, 199]


# Each act leaves what a reader would then see.
ACTS = """
<script>
const seen = {};
const pause = (time) => new Promise((go) => setTimeout(go, time));
const names = () => [...document.querySelectorAll(".chart .mark-line path")].length;
const labels = (axis) => [...document.querySelectorAll(".chart .role-axis-label text")]
  .map((label) => label.textContent).join(" ");
const click = (element, more) => {
  for (const type of ["pointerdown", "mousedown", "pointerup", "mouseup", "click"])
    element.dispatchEvent(new MouseEvent(type, { bubbles: true, ...more }));
};
const legend = () => document.querySelector(".chart .role-legend-symbol path");
const rows = (table) => document.querySelectorAll("#" + table + " tbody tr");
async function act() {
  await pause(1500);
  seen.drawn = names();
  seen.address = location.hash;
  click(legend()); await pause(400);
  seen.isolated = names();
  click(legend(), { shiftKey: true }); await pause(400);
  seen.all = names();
  seen.logarithmic = labels();
  const radio = document.querySelectorAll(".chart input[type=radio]")[2];
  radio.click(); await pause(400);
  seen.linear = labels();
  const panel = document.querySelector(".chart select");
  seen.panels = panel.options.length;
  panel.value = "second"; panel.dispatchEvent(new Event("input", { bubbles: true }));
  panel.dispatchEvent(new Event("change", { bubbles: true })); await pause(400);
  let saved = null;
  URL.createObjectURL = (blob) => { saved = blob; return "#dpcd-figure1"; };
  document.querySelector(".csv").click();
  seen.csv = (await saved.text()).split("\\n").length;
  seen.second = (await saved.text()).includes("second");
  seen.svg = [...document.querySelectorAll(".vega-actions a")]
    .map((link) => link.textContent).join(" ");
  seen.cells = rows("table-arena").length;
  const search = document.querySelector("#methods .dt-search input");
  search.value = "airfoil"; search.dispatchEvent(new Event("input", { bubbles: true }));
  search.dispatchEvent(new Event("keyup", { bubbles: true })); await pause(900);
  seen.found = rows("table-arena").length;
  seen.buttons = document.querySelectorAll("#methods .dt-button").length;
  seen.filters = document.querySelectorAll("#methods thead input").length;
  seen.sideways = document.documentElement.scrollWidth - innerWidth;
  document.body.setAttribute("data-seen", JSON.stringify(seen));
}
addEventListener("load", act);
</script>
"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
def test_in_chromium_a_reader_explores(page, tmp_path):
    path = page.with_name("checked.html")
    before, _, after = page.read_text().rpartition("</body>")
    path.write_text(f"{before}{ACTS}</body>{after}")
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu",
        "--disable-background-networking", "--enable-logging=stderr",
        "--virtual-time-budget=600000", f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=400,900", "--dump-dom", path.as_uri() + "#dpcd-figure1",
    ]  # fmt: skip
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True
    )
    assert "CONSOLE" not in run.stderr
    report = re.search(r'data-seen="([^"]*)"', run.stdout).group(1)
    seen = json.loads(report.replace("&quot;", '"'))
    assert seen["address"] == "#dpcd-figure1"
    assert (seen["drawn"], seen["isolated"], seen["all"]) == (2, 1, 2)
    assert seen["logarithmic"] != seen["linear"]
    assert seen["panels"] == 2
    assert seen["second"] and seen["csv"] > explorer.POINTS_OF_CURVE
    assert "SVG" in seen["svg"]
    assert (seen["cells"], seen["found"]) == (15, 1)
    assert seen["buttons"] == 2 and seen["filters"] == len(ARENA.columns)
    assert seen["sideways"] <= 0
