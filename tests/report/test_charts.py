"""Charts show what the data and the figure say, in colours of the registry."""

import re

import numpy as np
import pandas as pd
import pytest

from dperm.present import drawing, looks
from dperm.present.drawing import Panels, described
from dperm.report import figures as charts
from dperm.report.entries import Names

NO = {"cost": lambda *_: "", "setting": lambda *_: ""}


def rows(name, panel="a", count=5, spread=0.1, **changed):
    x = np.arange(1.0, count + 1)
    mean = 1 / x
    data = {"panel": panel, "algorithm": name, "x": x, "mean": mean,
            "min": mean * (1 - spread), "max": mean * (1 + spread),
            "ci_low": mean, "ci_high": mean}  # fmt: skip
    return pd.DataFrame(data | changed)


def made(data, figure=None, palette=None, known=None, **extra):
    palette, known = palette or charts.Palette(), known or Names({}, {})
    found = charts.figure_data(data, figure or {}, palette, known, **(NO | extra))
    return found["panels"]


@pytest.fixture(scope="module")
def figure():
    """What our drawing says of a figure."""
    panels = Panels(3)
    cd, k = looks.look("#cc79a7", "-", "o"), looks.look("#123456", "--")
    for name, at in zip("ab", panels.axes, strict=False):
        row = {"panel": name, "x": 1.0, "mean": 2.0, "min": 1.0, "max": 2.0}
        panels.band(at, [row | {"algorithm": "DP-CD"}], "ours", cd,
                    cost=r"true $\epsilon$ 0.84")  # fmt: skip
        panels.band(at, [row | {"algorithm": "K = 2"}], "two", k)
        at.set_xlabel(rf"$\epsilon$ of {name}")
    panels.axes[0].set_ylabel("relative\nerror")
    drawing.empty(panels.axes[2], drawing.UNAVAILABLE)
    drawing.plt.close(panels.figure)
    return described([*panels.rows, {"panel": "c", "algorithm": "undrawn"}])


def test_labels_looks_and_epsilons_come_with_the_rows(figure):
    assert list(figure) == ["a", "b"]
    assert [figure[each]["x"] for each in "ab"] == [
        r"$\epsilon$ of a",
        r"$\epsilon$ of b",
    ]
    assert {figure[each]["y"] for each in "ab"} == {"relative error"}
    assert figure["a"]["curves"] == {
        "DP-CD": {"color": "#cc79a7", "dash": "", "marker": "o",
                  "cost": r"true $\epsilon$ 0.84"},
        "K = 2": {"color": "#123456", "dash": "7 3", "marker": "", "cost": ""},
    }  # fmt: skip


def test_a_line_remembers_its_look_and_its_values():
    panels = Panels(1)
    (at,) = panels.axes
    rows = panels.line(at, "a", "bound", [1, 2], [3, 4], color="0.5", linestyle=":")
    drawing.plt.close(panels.figure)
    assert [(row["x"], row["mean"], row["max"]) for row in rows] == [
        (1, 3, 3),
        (2, 4, 4),
    ]
    curve = described(panels.rows)["a"]["curves"]["bound"]
    assert (curve["color"], curve["dash"]) == ("#808080", "2 3")


def test_both_axes_have_their_labels(figure):
    one, two = made(pd.concat([rows("K = 2"), rows("K = 2", "b")]), figure)
    assert (one["x"], two["x"], one["y"]) == ("ε of a", "ε of b", "relative error")
    (other,) = made(rows("K = 2", "a_b"), figure)
    assert (other["x"], other["y"]) == ("x", "a b")


def test_a_solver_that_stands_by_its_name_has_its_label(figure):
    known = Names({}, {"two": "K = 2"})
    styles = {"a": {**figure["a"], "curves": {"two": figure["a"]["curves"]["K = 2"]}}}
    palette = charts.Palette()
    (curve,) = made(rows("two"), styles, palette, known)[0]["curves"]
    assert curve["name"] == "K = 2" and "{color:#123456}" in palette.css()


def test_a_listed_method_has_its_own_colour_and_others_that_of_the_figure(figure):
    palette = charts.Palette()
    data = pd.concat([rows("DP-CD"), rows("K = 2"), rows("K = 2", "b")])
    cd, k = made(data, figure, palette)[0]["curves"]
    css = str(palette.css())
    assert f".{cd['look']}{{color:{looks.of(['DP-CD'])['DP-CD']['color']}" in css
    assert f".{k['look']}{{color:#123456}}" in css
    assert (cd["dash"], k["dash"], k["mark"]) == ("", "7 3", "")
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
    (curve,) = made(rows("a"))[0]["curves"]
    assert "range" in curve and "interval" not in curve  # whose ends are the mean
    bins = rows("a", min=[5.0] * 5, max=[6.0] * 5)  # of a histogram
    assert "range" not in made(bins)[0]["curves"][0]


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
    assert charts._title(panel, {"a_b": "Title"}) == expected


def test_every_marker_of_the_registry_is_drawn():
    for look in looks.of([*looks.METHODS, *(f"n{k}" for k in range(24))]).values():
        assert look["marker"] in charts.MARKERS
