"""What all figures share."""

import matplotlib.pyplot as plt
import pytest

from dperm.present import drawing, looks
from dperm.present.drawing import Panels, described


@pytest.mark.parametrize(("panels", "rows"), [(1, 5), (4, 1)])
def test_a_shared_legend_fits_the_figure(panels, rows):
    shown = Panels(panels, panels)
    figure, axes = shown.figure, shown.axes
    for number in range(5):
        axes[0].plot([0, 1], label=f"a method with a long name, no. {number}")
    drawing.shared_legend(figure, 5)
    figure.canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.width <= figure.bbox.width
    assert legend._ncols == 5 // rows


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((0.4, 2.0), {"0.4", "0.6", "1", "2"}),
        ((0.015, 0.9), {"0.1"}),
        ((1e-6, 2e-6), None),
        ((0.1, 90), None),
    ],
)
def test_short_logarithmic_axes_have_plain_numbers(ends, expected):
    panels = Panels(1)
    figure, (axes,) = panels.figure, panels.axes
    axes.set(yscale="log", ylim=ends)
    drawing.plain_ticks(figure)
    figure.canvas.draw()
    both = [*axes.get_yticklabels(), *axes.get_yticklabels(minor=True)]
    found = {label.get_text() for label in both} - {""}
    if expected is None:
        assert all("10^" in text for text in found)
    else:
        assert expected <= found and not any("$" in text for text in found)
    plt.close(figure)


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
