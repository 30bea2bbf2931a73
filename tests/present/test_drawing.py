"""What all figures share."""

import pytest

from dperm.present import drawing


@pytest.mark.parametrize(("panels", "rows"), [(1, 5), (4, 1)])
def test_a_shared_legend_fits_the_figure(panels, rows):
    figure, axes = drawing.panels(panels, panels)
    for number in range(5):
        axes[0].plot([0, 1], label=f"a method with a long name, number {number}")
    drawing.shared_legend(figure, 5)
    figure.canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.width <= figure.bbox.width
    assert legend._ncols == 5 // rows
