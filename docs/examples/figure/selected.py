"""A figure of my own, of rows of DP-GCD's paper."""

from dperm.experiments import results
from dperm.plotting import drawing


def selected(config, product, problems):
    """Mean and range of the excess at each number of features."""
    swept = results.load_sweep(config, product.sweeps[0])
    rows = drawing.against(swept, "p", "share", "law", "exact law")
    axes = {"xlabel": "features", "ylabel": "excess / that of w = 0", "xscale": "log"}
    return drawing.Picture(drawing.frame(rows), {"law": "Selection"}, axes)
