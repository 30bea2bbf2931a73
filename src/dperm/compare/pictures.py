"""The figure of a comparison."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from dperm.compare.results import WORDS
from dperm.present import drawing

LOOKS = {
    "default": ("o", "#0072B2"),
    "ten": ("s", "#E69F00"),
    "grid": ("D", "#D55E00"),
    "paid": ("^", "#009E73"),
}
APART = 0.18  # rows between neighbouring tunings of a method
WIDE = 30.0  # span of an axis above which only decades have numbers


def figure(table: pd.DataFrame, zero: float, title: str) -> tuple[Figure, drawing.Rows]:
    """Mean errors with intervals, best method on top; a line marks w = 0.

    Each tuning has its own mark.

    Parameters
    ----------
    table : DataFrame
        Of ``means``.
    zero : float
        Relative error of w = 0.
    """
    some = table[(table["status"] == "ok") & np.isfinite(table["mean"].astype(float))]
    order = some.groupby("algorithm")["mean"].min().sort_values().index.tolist()
    tunings = list(dict.fromkeys(some["tuning"]))
    sheet, axes = plt.subplots(figsize=(5.2, 1.25 + 0.36 * max(1, len(order))))
    for one in some.to_dict("records"):
        shift = tunings.index(one["tuning"]) - (len(tunings) - 1) / 2
        # a mean with its interval, cut where the logarithm ends
        y = order.index(one["algorithm"]) + APART * shift
        marker, color = LOOKS[one["tuning"]]
        below = max(min(one["mean"] - one["ci_low"], 0.9 * one["mean"]), 0.0)
        above = one["ci_high"] - one["mean"]
        axes.errorbar(
            one["mean"],
            y,
            xerr=[[below], [above]],
            fmt=marker,
            color=color,
            markersize=4.5,
            linewidth=1.2,
            label=WORDS[one["tuning"]],
        )
    if zero > 0:
        axes.axvline(zero, color="0.4", linestyle=":", label="w = 0")
    axes.set_yticks(range(len(order)), order)
    axes.set_ylim(max(1, len(order)) - 0.5, -0.5)
    axes.set_xlabel("relative error")
    axes.set_title(title)
    _logarithmic(axes)
    drawing.shared_legend(sheet, columns=3)
    ends = {"min": some["ci_low"], "max": some["ci_high"]}
    rows = some.assign(panel=some["tuning"], x=some["epsilon"], **ends)
    return sheet, rows[drawing.COLUMNS].to_dict("records")


def _logarithmic(axes: Axes) -> None:
    """Make the axis logarithmic, with readable numbers even if it is short."""
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    subs = (1.0,) if high > WIDE * low else (1.0, 2.0, 5.0)
    axes.xaxis.set_major_locator(LogLocator(subs=subs))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
