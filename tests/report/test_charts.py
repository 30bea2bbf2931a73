"""Charts show what the data and the picture say, in colours of the registry."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from dperm.present import drawing, looks
from dperm.report import charts, drawn, stills

NO = {"cost": lambda *_: "", "setting": lambda *_: ""}


def rows(name, panel="a", count=5, spread=0.1, **changed):
    x = np.arange(1.0, count + 1)
    mean = 1 / x
    data = {"panel": panel, "algorithm": name, "x": x, "mean": mean,
            "min": mean * (1 - spread), "max": mean * (1 + spread),
            "ci_low": mean, "ci_high": mean}  # fmt: skip
    return pd.DataFrame(data | changed)


def made(data, picture=None, **extra):
    picture = picture or drawn.Drawn()
    return charts.figure_data(
        data, picture, extra.pop("palette", charts.Palette()), {}, **(NO | extra)
    )["panels"]


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    """A figure as our drawing writes it."""
    figure, axes = drawing.panels(3, 3)
    for at, name in zip(axes, ("one", "two"), strict=False):
        at.plot([1, 2], [1, 2], color="#cc79a7", label=r"DP-CD (true $\epsilon$ 0.84)")
        at.plot([1, 2], [2, 1], color="#123456", ls="--", label="K = 2")
        at.set(xlabel=r"$\epsilon$ of " + name, ylabel="relative error")
        at.legend()
    drawing.empty(axes[2], drawing.UNAVAILABLE)
    stem = tmp_path_factory.mktemp("drawn") / "figure"
    drawing.save(figure, [], stem)
    return drawn.read(stem.with_suffix(".svg"))


def test_labels_and_legends_are_read_off_the_picture(picture):
    assert [panel.x for panel in picture.panels] == [
        r"$\epsilon$ of one", r"$\epsilon$ of two",
    ]  # fmt: skip
    assert {panel.y for panel in picture.panels} == {"relative error"}
    assert picture.panels[0].legend == {
        r"DP-CD (true $\epsilon$ 0.84)": ("#cc79a7", ""),
        "K = 2": ("#123456", "5.92 2.56"),
    }  # fmt: skip


def test_with_other_panels_only_what_all_share_is_known(picture):
    other = picture.panel(0, 5)
    assert (other.x, other.y) == ("", "relative error")
    assert drawn.read(drawn.Path("nowhere.svg")) == drawn.Drawn()


def test_both_axes_have_their_labels(picture):
    one, two = made(pd.concat([rows("K = 2"), rows("K = 2", "b")]), picture)
    assert (one["x"], two["x"], one["y"]) == ("ε of one", "ε of two", "relative error")
    for panel in (one, two):
        text = stills.still(panel)
        assert panel["x"] in text and panel["y"] in text


def test_a_listed_method_has_its_own_colour_and_others_that_of_the_picture(picture):
    palette = charts.Palette()
    data = pd.concat([rows("DP-CD"), rows("K = 2"), rows("K = 2", "b")])
    cd, k = made(data, picture, palette=palette)[0]["curves"]
    css = str(palette.css())
    assert f".{cd['look']}{{color:{looks.of(['DP-CD'])['DP-CD']['color']}" in css
    assert f".{k['look']}{{color:#123456}}" in css
    assert (cd["dash"], k["dash"]) == ("", "5.92 2.56")
    assert cd["cost"] == "true ε 0.84" and k["cost"] == ""


def test_the_same_method_looks_the_same_in_every_figure():
    palette = charts.Palette()
    looked = [
        {c["name"]: (c["look"], c["mark"], c["dash"]) for c in panel["curves"]}[
            "DP-SGD"
        ]
        for names in (["DP-SGD", "DP-CD"], ["DP-GCD", "x", "DP-SGD"])
        for panel in made(pd.concat([rows(n) for n in names]), palette=palette)
    ]
    assert looked[0] == looked[1]


def test_colours_can_be_seen_in_both_modes():
    palette = charts.Palette()
    for look in looks.of(looks.METHODS).values():
        palette.of(look["color"])
    light, dark = str(palette.css()).split("@media")
    for text, ground in ((light, "#ffffff"), (dark, charts.DARK)):
        found = re.findall(r"color:(#\w{6})", text)
        assert len(found) >= 10
        assert min(looks.contrast(colour, ground) for colour in found) >= 3


def test_a_band_is_one_only_around_the_mean():
    (panel,) = made(rows("a"))
    (curve,) = panel["curves"]
    assert "range" in curve and "interval" not in curve  # whose ends are the mean
    assert charts.span(panel) == "min to max of runs"
    bins = rows("a", min=[5.0] * 5, max=[6.0] * 5)  # of a histogram
    assert "range" not in made(bins)[0]["curves"][0]
    assert charts.span(made(bins)[0]) == ""


def test_what_a_paper_printed_is_a_star_in_the_colour_of_its_method():
    data = pd.concat([rows("DP-CD"), rows("DP-CD, published", count=1)])
    ours, printed = made(data)[0]["curves"]
    assert printed["star"] and not ours["star"]
    assert printed["look"] == ours["look"]
    assert printed["mark"] == charts._mark("*") != ours["mark"]


def test_long_curves_are_thinned_where_nobody_sees_it():
    (curve,) = made(rows("a", count=101))[0]["curves"]
    assert len(curve["x"]) == len(curve["range"][0]) < 30
    assert (curve["x"][0], curve["x"][-1]) == (1.0, 101.0)
    x = np.arange(1.0, 102)
    drawn = np.interp(x, curve["x"], np.log(curve["mean"]))
    assert np.abs(drawn + np.log(x)).max() < 1.1 * charts.LOST * np.log(101)


def test_a_zigzag_keeps_all_its_corners():
    mean = np.where(np.arange(101) % 2, 1.0, 2.0)
    (curve,) = made(rows("a", count=101, mean=mean))[0]["curves"]
    assert len(curve["x"]) == 101


def test_labels_that_end_in_numbers_look_like_their_method():
    names = ["DP-FW: -0.03 [-0.07, 0.00]", "K = 2: 0.01", "K = 4: 0.02"]
    others = ["DP-FW: -0.25 [-0.29, -0.21]", "K = 2: 0.02", "K = 4: 0.01"]
    data = pd.concat([rows(n) for n in names] + [rows(n, "b") for n in others])
    one, two = (
        [(c["look"], c["mark"], c["dash"]) for c in panel["curves"]]
        for panel in made(data)
    )
    assert one == two and len(set(one)) == 3


@pytest.mark.parametrize(
    ("panel", "expected"),
    [("a_b", "Title"), ("a_b: convex", "Title: convex"), ("x_y", "x y"),
     ("d = 4, stated", "d = 4, stated")],
)  # fmt: skip
def test_panels_carry_titles_and_no_identifiers(panel, expected):
    assert charts._named(panel, {"a_b": "Title"}) == expected


def test_every_marker_of_the_registry_is_drawn():
    for look in looks.of([*looks.METHODS, *(f"n{k}" for k in range(24))]).values():
        assert look["marker"] in charts.MARKERS


def test_a_still_picture_stays_inside_of_its_frame():
    (panel,) = made(pd.concat([rows("a", count=60), rows("b", spread=0.0)]))
    root = ET.fromstring(stills.still(panel))
    for path in root.iter("path"):
        numbers = [float(v) for v in re.findall(r"-?\d+\.?\d*", path.get("d"))]
        assert all(0 <= v <= stills.WIDTH for v in numbers)
    assert root.get("role") == "img" and "against" in root.get("aria-label")


def test_the_start_of_a_run_keeps_its_place_on_the_axis():
    panel = made(rows("a", x=[0.0, 1.0, 10.0, 50.0, 100.0]))[0]
    first = re.search(r'd="M(\d+) \d+L', str(stills.still(panel)))[1]
    assert int(first) < stills.LEFT + 20
    drawn = ET.fromstring(stills.still(panel | {"x": "seconds"}))
    texts = [text.text for text in drawn.iter("text")]
    assert "10" in texts and "20" not in texts  # logarithmic, as in the picture


@pytest.mark.parametrize("values", [[], [None], [0.0], [3.0, 3.0], [-1.0, 2.0]])
def test_an_axis_of_any_values_has_ticks(values):
    scale = stills._Scale(values, 0, 100, 8)
    assert scale.ticks() and all(0 <= scale(v) <= 100 for v in scale.ticks())


def test_a_wide_axis_is_logarithmic_and_has_powers_of_ten():
    scale = stills._Scale([1e-3, 1.0], 0, 100, 8)
    assert scale.log and scale.ticks() == pytest.approx([1e-3, 1e-2, 0.1, 1])
    assert scale(0.0) is None
    assert not stills._Scale([-1e-3, 1.0], 0, 100, 8).log
