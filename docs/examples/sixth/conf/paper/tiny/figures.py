"""What is drawn, and the rows behind it."""

from dperm.pipeline import results
from dperm.present import drawing, looks


def rounds(config, product, problems):
    """Error against the number of releases, a curve for each rule."""
    table = results.load_sweep(config, "rounds")
    figure, (axes,) = drawing.panels(1, 1)
    found = looks.of(table["rule"])
    rows = []
    for rule, part in table.groupby("rule", sort=False):
        curve = [
            drawing.summary("rounds", rule, float(count), group["error"].to_numpy())
            for count, group in part.groupby("releases")
        ]
        drawing.band(axes, curve, rule, found[rule])
        rows += curve
    axes.set(xscale="log", yscale="log", xlabel="releases", ylabel="error")
    drawing.shared_legend(figure, 2)
    return figure, rows
