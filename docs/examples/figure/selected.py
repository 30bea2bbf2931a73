"""A figure of my own, of rows of DP-GCD's paper."""

from dperm.plotting import drawing


def selected(swept):
    """Mean and range of the excess at each number of features."""
    rows = drawing.against(swept, "p", "share", "law", "exact law")
    axes = {"xlabel": "features", "ylabel": "excess / that of w = 0", "xscale": "log"}
    return drawing.Picture(drawing.frame(rows), {"law": "Selection"}, axes)
