"""Shared drawing: layout and style of all figures, and the data behind each of them.

``looks`` says what a method looks like, ``band`` draws a mean with its range, and
``shared_legend`` is the legend of all panels. What a figure shows is computed before.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterSciNotation, NullFormatter

from dperm.core.experiment import files as store
from dperm.present import intervals
from dperm.present.looks import Look
from dperm.present.raster import write_palette

Row = dict[str, Any]  # of the data behind a figure; keys of COLUMNS
Rows = list[Row]
FORMATS = ("pdf", "svg", "png")
COLUMNS = ["panel", "algorithm", "x", "mean", "min", "max", "ci_low", "ci_high"]
PANEL = (3.1, 2.7)  # inches
SHORT = 100.0  # a logarithmic axis up to that ratio of its ends is short
NEAR = (1e-3, 1e3)  # where numbers are as short as powers of ten
UNAVAILABLE = "data not available when this was run"
_STYLE: Any = {
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "lines.linewidth": 1.6,
    "savefig.dpi": 150,
    "svg.hashsalt": "dperm",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "figure.constrained_layout.use": True,
}
mpl.use("Agg")
mpl.rcParams.update(_STYLE)


def styled(make: Callable[..., Any]) -> Callable[..., Any]:
    """A figure's function with the house's sizes for legends and titles too."""

    @functools.wraps(make)
    def inside(*arguments: Any, **keys: Any) -> Any:
        with mpl.rc_context(_STYLE):
            return make(*arguments, **keys)

    return inside


def shared_legend(
    figure: Figure, columns: int = 1, place: str = "lower center", **style: Any
) -> None:
    """One legend for all panels, each label once, outside of them.

    Parameters
    ----------
    figure : Figure
    columns : int
        At most; fewer where the figure is not as wide.
    place : str
        Such as ``lower center`` or ``right center``.
    **style
        More of ``Figure.legend``.
    """
    found: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    given: Any = (found.values(), found.keys())
    style["loc"] = f"outside {place}"
    legend = figure.legend(*given, ncols=columns, **style)
    while columns > 1 and legend.get_window_extent().width > figure.bbox.width:
        legend.remove()
        columns -= 1
        legend = figure.legend(*given, ncols=columns, **style)


def panels(count: int, columns: int) -> tuple[Figure, list[Axes]]:
    """A figure of equal panels; spare ones of the last row are absent."""
    columns = min(columns, count)
    rows = -(-count // columns)
    size = (PANEL[0] * columns, PANEL[1] * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
    flat = list(axes.flat)
    for spare in flat[count:]:
        spare.remove()
    return figure, flat[:count]


def summary(panel: str, algorithm: str, x: float, values: np.ndarray) -> Row:
    """One row behind a figure: mean, range and 95 % interval of the mean."""
    low, high = intervals.student(values)
    found = (values.mean(), values.min(), values.max(), low, high)
    return dict(zip(COLUMNS, (panel, algorithm, x, *found), strict=True))


def band(
    axes: Axes,
    rows: Rows,
    label: str,
    look: Look,
    marks: int | None = None,
    shade: float = 0.15,
    cost: str = "",
) -> None:
    """Draw a mean with the band from min to max.

    Parameters
    ----------
    axes : Axes
    rows : list of dict
        Of ``summary``, in the order of x; nothing is drawn of none. They are annotated.
    label : str
        For the legend.
    look : dict
        Of ``looks``.
    marks : int, optional
        Keep about so many markers along the line; all of them by default.
    shade : float
        Opacity of the band.
    cost : str
        The true epsilon of the runs, in words.
    """
    if not rows:
        return
    table = pd.DataFrame(rows)
    x, every = table["x"], max(1, len(table) // marks) if marks else 1
    axes.plot(x, table["mean"], label=label, markersize=3.5, markevery=every, **look)
    ends = table["min"], table["max"]
    axes.fill_between(x, *ends, color=look["color"], alpha=shade, linewidth=0)
    annotated(axes, rows, look, cost)


def annotated(axes: Axes, rows: Rows, look: Look, cost: str = "") -> Rows:
    """The rows, which remember where and how they are drawn, and at what epsilon."""
    for row in rows:
        row.update(axes=axes, look=look, cost=cost)
    return rows


def empty(axes: Axes, reason: str) -> None:
    """An empty panel that says why, in words for a reader; a trace goes to the log."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    axes.spines[:].set_visible(False)
    text = textwrap.fill(reason, 30, max_lines=5, placeholder=" ...")
    axes.text(0.5, 0.5, text, ha="center", va="center", fontsize=8, color="0.35",
              transform=axes.transAxes)  # fmt: skip


def save(figure: Figure, rows: Sequence[Row], stem: Path) -> list[Path]:
    """Write the figure and the data behind it, each file whole or not at all.

    The bytes depend on the data alone: no dates, no random identifiers.
    """
    written = []
    plain_ticks(figure)
    for kind in FORMATS:
        path = stem.with_suffix(f".{kind}")
        with store.whole(path) as beside:
            figure.savefig(beside, format=kind, metadata=_metadata(kind))
            if kind == "png":
                write_palette(beside, beside)
        written.append(path)
    plt.close(figure)
    table = pd.DataFrame(rows, columns=COLUMNS)
    store.write_csv(stem.with_suffix(".csv"), table)
    return [*written, stem.with_suffix(".csv")]


class PlainFormatter(LogFormatterSciNotation):
    """Ticks of a short logarithmic axis as numbers: 0.6, not 6 times a power of ten."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The tick's number, or nothing where it has no label."""
        return f"{x:g}" if super().__call__(x, pos) else ""


def plain_ticks(figure: Figure) -> None:
    """Write plain numbers where a logarithmic axis is short and near 1."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            known = isinstance(axis.get_major_formatter(), LogFormatterSciNotation)
            if known and low >= NEAR[0] and high <= NEAR[1] and high < SHORT * low:
                axis.set_major_formatter(PlainFormatter())
                if not isinstance(axis.get_minor_formatter(), NullFormatter):
                    axis.set_minor_formatter(PlainFormatter())


def _metadata(kind: str) -> dict[str, Any]:
    if kind == "pdf":
        return {
            "CreationDate": None,
            "ModDate": None,
            "Producer": None,
            "Creator": None,
        }
    return {"Date": None} if kind == "svg" else {"Software": None}
