"""What is drawn, and the rows behind it."""

from dperm.core.experiment import results
from dperm.present import looks
from dperm.present.drawing import Panels, log_axes


def rounds(config, product, problems):
    """Error against the number of releases, a curve for each rule."""
    table = results.load_sweep(config, "rounds")
    look = looks.of(table["rule"])
    panels = Panels(1)
    (axes,) = panels.axes
    for rule, part in table.groupby("rule", sort=False):
        panels.mean(axes, part, "releases", "error", "rounds", rule, look[rule])
    log_axes(axes, "releases", "error")
    return panels.done(2)
