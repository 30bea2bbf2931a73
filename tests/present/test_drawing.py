"""What all figures share."""

import matplotlib.pyplot as plt
import pytest

from dperm.present import drawing


@pytest.mark.parametrize(("panels", "rows"), [(1, 5), (4, 1)])
def test_a_shared_legend_fits_the_figure(panels, rows):
    figure, axes = drawing.panels(panels, panels)
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
    figure, (axes,) = drawing.panels(1, 1)
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
