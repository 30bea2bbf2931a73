"""The results explorer as text, and what a reader does with it in Chromium."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import browser
from dperm.report import explorer

from .conftest import compose, write

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
    return pd.DataFrame(
        rows, columns=["panel", "algorithm", *explorer.NUMBERS]
    )


@pytest.fixture(scope="module")
def page(judged, tmp_path_factory):
    """The file of an explorer with one figure, 18 cells and all claims."""
    config = compose(tmp_path_factory.mktemp("explorer"))
    write(config, "figures/figure1", curves())
    for name, table in {"arena/arena": ARENA, "claims": judged}.items():
        path = Path(config.output.results, f"{name}.csv")
        path.parent.mkdir(exist_ok=True)
        table.to_csv(path, index=False)
    return explorer.explore(config)[0]


def test_every_figure_and_claim_is_there_and_the_page_asks_for_nothing(
    page, judged
):
    text = page.read_text()
    assert text.count('<details class="explore"') == 1
    assert 'id="dpcd-figure1"' in text
    own = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', own)
    assert all(place in text for place in judged["place"].head(20))


def test_a_thinned_curve_keeps_its_ends():
    thinned = explorer.thinned(curves())
    assert len(thinned) == 4 * explorer.POINTS_OF_CURVE
    for _, curve in thinned.groupby(["panel", "algorithm"]):
        assert [curve["x"].min(), curve["x"].max()] == [1, 199]


# --- what a reader does ---------------------------------------------------------------

in_chromium = pytest.mark.skipif(
    browser.PROGRAM is None, reason="no Chromium here"
)
FIGURE = 'document.getElementById("dpcd-figure1")'
LINES = f'{FIGURE}.querySelectorAll(".chart .mark-line path").length'
LABELS = (
    f'[...{FIGURE}.querySelectorAll(".chart .role-axis-label text")]'
    '.map((label) => label.textContent).join(" ")'
)
HASH = "location.hash"


def within(name):
    """An element of the figure."""
    return f"{FIGURE}.querySelector({json.dumps(name)})"


def rows_of(table):
    return f'document.querySelectorAll("#table-{table} tbody tr").length'


@pytest.fixture(scope="module")
def reader(page, tmp_path_factory):
    """A browser with the page at its figure, which is put back before each act."""
    with browser.Browser(tmp_path_factory.mktemp("profile")) as visitor:
        visitor.open(page.as_uri() + "#dpcd-figure1")
        visitor.wait(f"{LINES} === 2")
        yield visitor


def catch(reader):
    """Keep what the page would save."""
    reader.see("window.saved = null")
    reader.see(
        "URL.createObjectURL = (blob) => { window.saved = blob; return '#saved'; }"
    )


@pytest.fixture
def start(reader):
    reader.click(within(".start"))
    reader.wait(f"{LINES} === 2 && {HASH} === '#dpcd-figure1'")
    return reader


@in_chromium
def test_act_1_a_box_hides_a_curve(start):
    start.click(within("input[type=checkbox]"))
    start.wait(f"{LINES} === 1 && {HASH}.includes('curve0=false')")
    start.click(within("input[type=checkbox]"))
    start.wait(f"{LINES} === 2 && {HASH} === '#dpcd-figure1'")


@in_chromium
def test_act_2_a_click_on_a_name_isolates_its_curve(start):
    start.click(within(".role-legend-symbol path"))
    start.wait(f"{LINES} === 1 && {HASH}.includes('alone=')")


@in_chromium
def test_act_3_a_point_tells_its_numbers(start):
    start.point(within(".chart .mark-symbol path:nth-child(3)"))
    tip = 'document.querySelector("#vg-tooltip-element")'
    start.wait(f"{tip} && {tip}.classList.contains('visible')")
    words = " ".join(start.see(f"{tip}.innerText").split())
    point = explorer.thinned(curves()).iloc[2]
    assert f"mean {point['mean']:.4g} " in words
    assert (
        f"95 % from {point['ci_low']:.4g} 95 % to {point['ci_high']:.4g}"
        in words
    )
    assert "runs, at least 10 " in words
    assert "proved epsilon of noise for epsilon 1" in words
    assert re.search(r"decides (\w+ ?\w*): \w+", words), (
        "a claim and its verdict"
    )


@in_chromium
def test_act_4_scales_are_linear_or_logarithmic(start):
    before = start.see(LABELS)
    start.click(f'{FIGURE}.querySelectorAll(".chart input[type=radio]")[2]')
    start.wait(
        f"{LABELS} !== {json.dumps(before)} && {HASH}.includes('y_scale=')"
    )
    assert start.see(LINES) == 2


@in_chromium
def test_act_5_the_wheel_zooms(start):
    before = start.see(LABELS)
    start.turn(within(".chart .background"), -400)
    start.wait(
        f"{LABELS} !== {json.dumps(before)} && {HASH}.includes('zoom=')"
    )


@in_chromium
def test_act_6_the_view_is_saved_as_csv_and_svg(start):
    start.see(f"{within('.chart select')}.value = 'second'")
    start.see(f"{within('.chart select')}.dispatchEvent(new Event('input'))")
    start.see(f"{within('.chart select')}.dispatchEvent(new Event('change'))")
    start.wait(f"{HASH}.includes('panel=')")
    start.click(within(".chart input[type=checkbox]"))
    start.wait(f"{LINES} === 1")
    catch(start)
    start.click(within(".csv"))
    saved = pd.read_csv(io.StringIO(start.see("window.saved.text()")))
    expected = explorer.thinned(curves())
    expected = expected.query("panel == 'second' and algorithm == 'DP-SGD'")
    pd.testing.assert_frame_equal(
        saved.sort_values("x", ignore_index=True),
        expected.reset_index(drop=True),
        check_dtype=False,
    )
    start.see("window.saved = null")
    start.click(within(".svg"))
    start.wait("window.saved")
    svg = start.see("window.saved.text()")
    assert svg.startswith("<svg") and svg.count("mark-line") >= 1


@in_chromium
def test_act_7_the_address_brings_the_view_back(start, page):
    start.click(within(".chart input[type=checkbox]"))
    start.turn(within(".chart .background"), -400)
    start.wait(f"{HASH}.includes('zoom=') && {HASH}.includes('curve0=false')")
    address, labels = start.see(HASH), start.see(LABELS)
    start.open("about:blank")
    start.open(page.as_uri() + address)
    start.wait(f"{LINES} === 1 && {LABELS} === {json.dumps(labels)}")
    assert start.see(HASH) == address


@in_chromium
def test_act_8_tables_sort_filter_and_search(reader):
    def excesses():
        text = '[...document.querySelectorAll("#table-arena tbody tr")]'
        return reader.see(
            f"{text}.map((row) => Number(row.cells[3].textContent))"
        )

    assert reader.see(rows_of("arena")) == 15
    head = 'document.querySelectorAll("#table-arena thead th")[3]'
    for _ in range(2):
        reader.click(f'{head}.querySelector(".dt-column-order")')
    reader.wait(f"{head}.getAttribute('aria-sort') === 'descending'")
    expected = [float(f"{mean:.4g}") for mean in ARENA["mean"]]
    assert excesses() == sorted(expected, reverse=True)[:15]
    for place, words, count in (
        ("thead input", "airfoil", 1),
        (".dt-search input", "gd", 9),
    ):
        reader.click(f'document.querySelector("#methods {place}")')
        reader.type(words)
        reader.wait(f"{rows_of('arena')} === {count}")
        reader.see(f'document.querySelector("#methods {place}").select()')
        reader.press("Delete")
        reader.wait(f"{rows_of('arena')} === 15")


@in_chromium
def test_act_9_tables_are_exported(reader, page):
    catch(reader)
    reader.click('document.querySelector("#claims .buttons-csv")')
    reader.wait("window.saved")
    saved = pd.read_csv(io.StringIO(reader.see("window.saved.text()")))
    assert len(saved) == len(pd.read_csv(page.parents[1] / "claims.csv"))


@in_chromium
def test_act_10_keys_are_enough(start):
    start.see(f"{within('.chart input[type=checkbox]')}.focus()")
    start.press(" ")
    start.wait(f"{LINES} === 1")
    start.see(f"{within('summary')}.focus()")
    start.press("Enter")
    start.wait(f"!{FIGURE}.open")
    start.press("Enter")
    start.wait(f"{FIGURE}.open")
    start.see("document.activeElement.blur(); scrollTo(0, 0)")
    start.see("document.body.tabIndex = -1; document.body.focus()")
    start.press("Tab")
    assert (
        start.see("document.activeElement.textContent")
        == "Skip to the content"
    )


@in_chromium
def test_act_11_the_page_is_dark_where_its_reader_is_and_fits_a_telephone(
    page, tmp_path
):
    with browser.Browser(tmp_path, size=(400, 900), dark=True) as visitor:
        visitor.open(page.as_uri() + "#dpcd-figure1")
        visitor.wait(f"{LINES} === 2")
        paper = "getComputedStyle(document.body).backgroundColor"
        assert max(map(int, re.findall(r"\d+", visitor.see(paper)))) < 60
        under = f"getComputedStyle({within('.chart')}).backgroundColor"
        assert visitor.see(under) == "rgb(255, 255, 255)", (
            "curves are made for white"
        )
        assert visitor.see("document.documentElement.scrollWidth") <= 400


@in_chromium
def test_act_12_it_prints_the_scores_and_what_is_open(reader):
    reader("Emulation.setEmulatedMedia", media="print")
    assert reader.see(f"getComputedStyle({within('.csv')}).display") == "none"
    assert (
        reader.see(f"{within('.chart svg')}.getBoundingClientRect().height")
        > 100
    )
    card = (
        'document.getElementById("scorecard").getBoundingClientRect().height'
    )
    assert reader.see(card) > 100
    reader("Emulation.setEmulatedMedia", media="")


@in_chromium
def test_a_page_asks_the_network_for_nothing_and_has_no_fault(reader, page):
    asked = {request.partition(":")[0] for request in reader.requests}
    assert asked <= {"file", "data", "blob", "about"}
    files = {request.partition("#")[0] for request in reader.requests}
    assert {name for name in files if name.startswith("file:")} == {
        page.as_uri()
    }
    assert reader.errors == []
