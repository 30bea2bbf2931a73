"""What is drawn: the rows behind it, and its axes."""

from dperm.experiments import results
from dperm.plotting import drawing


def rounds(config, product, problems):
    """Error against the number of releases, a curve for each rule."""
    rows = []
    for rule, part in results.load_sweep(config, "rounds").groupby("rule"):
        rows += drawing.against(part, "releases", "error", "rounds", rule)
    axes = {"xlabel": "releases", "ylabel": "error", "xscale": "log", "yscale": "log"}
    return drawing.Picture(drawing.frame(rows), {"rounds": "Two rules"}, axes)
