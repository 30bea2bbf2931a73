"""What all figures share."""

import matplotlib.pyplot as plt
import pytest

from dperm.present import drawing
from dperm.present.drawing import Panels


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


def test_a_line_adds_its_values_to_the_data():
    panels = Panels(1)
    (at,) = panels.axes
    rows = panels.line(at, "a", "bound", [1, 2], [3, 4], color="0.5", linestyle=":")
    drawing.plt.close(panels.figure)
    assert panels.rows == rows
    assert [(row["x"], row["mean"], row["max"]) for row in rows] == [
        (1, 3, 3),
        (2, 4, 4),
    ]
