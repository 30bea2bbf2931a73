"""What is drawn: the rows behind it, and its axes."""

from dperm.plotting import drawing


def rounds(swept):
    """Error against the number of releases, a curve for each rule."""
    rows = []
    for rule, part in swept.groupby("rule"):
        rows += drawing.against(part, "releases", "error", "rounds", rule)
    axes = {"xlabel": "releases", "ylabel": "error", "xscale": "log", "yscale": "log"}
    return drawing.Picture(drawing.frame(rows), {"rounds": "Two rules"}, axes)
