"""Shared drawing: layout and style of all figures, and the data behind them.

``Panels`` are the axes of a figure and the rows behind its curves. The data of a figure
are computed elsewhere.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterSciNotation, NullFormatter, NullLocator
from PIL import Image

from dperm.core.experiment import files as store
from dperm.core.experiment.files import write_csv
from dperm.present import intervals
from dperm.present.looks import Look, look

Row = dict[str, Any]  # of the data behind a figure; keys are COLUMNS
Rows = list[Row]
Drawing = tuple[Figure, Rows]  # return value of a figure's function
MARKERS = "os^DvPX*<>"
STROKES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))
METADATA: dict[str, Any] = {  # left out of a file, by its format
    "pdf": dict.fromkeys(("CreationDate", "ModDate", "Producer", "Creator")),
    "svg": {"Date": None},
    "png": {"Software": None},
}
COLUMNS = ["panel", "algorithm", "x", "mean", "min", "max", "ci_low", "ci_high"]
TIED = "tied"  # optional column: the curve that a row ties with
PANEL = (3.1, 2.7)  # inches
SHORT = 100.0  # a logarithmic axis up to this ratio of its ends is short
NEAR = (1e-3, 1e3)  # range in which numbers are as short as powers of ten
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
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "savefig.dpi": 150,
    "svg.hashsalt": "dperm",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "figure.constrained_layout.use": True,
}
mpl.use("Agg")
mpl.rcParams.update(_STYLE)


def shared_legend(
    figure: Figure, columns: int = 1, place: str = "lower center", **style: Any
) -> None:
    """Draw one legend for all panels, each label once, outside of them.

    It has at most ``columns`` columns, and fewer if the figure is too narrow. ``place``
    is, for example, ``lower center`` or ``right center``; ``style`` goes to
    Figure.legend.
    """
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    entries: Any = (handles.values(), handles.keys())
    style["loc"] = f"outside {place}"
    legend = figure.legend(*entries, ncols=columns, **style)
    while columns > 1 and legend.get_window_extent().width > figure.bbox.width:
        legend.remove()
        columns -= 1
        legend = figure.legend(*entries, ncols=columns, **style)


def summary(panel: str, algorithm: str, x: float, values: np.ndarray) -> Row:
    """One row behind a figure: mean, range and 95 % interval of the mean."""
    low, high = intervals.student(values)
    numbers = (x, values.mean(), values.min(), values.max(), low, high)
    return dict(zip(COLUMNS, (panel, algorithm, *numbers), strict=True))


def empty(axes: Axes, reason: str) -> None:
    """Make an empty panel that states why, for readers; a trace goes to the log."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    axes.spines[:].set_visible(False)
    text = textwrap.fill(reason, 30, max_lines=5, placeholder=" ...")
    place: Any = {"ha": "center", "va": "center", "transform": axes.transAxes}
    axes.text(0.5, 0.5, text, fontsize=8, color="0.35", **place)


def nothing(reason: str = UNAVAILABLE) -> Drawing:
    """A figure with one empty panel, and no rows."""
    panels = Panels(1)
    empty(panels.axes[0], reason)
    return panels.figure, []


class Panels:
    """Equal panels, at least one, in rows of ``columns``, with their data rows.

    Attributes
    ----------
    figure : Figure
    axes : list of Axes
    rows : list of dict
        Of all curves so far, in the order of drawing.
    columns : int
        Number of panels in a row.
    """

    def __init__(
        self, count: int, columns: int = 3, size: tuple[float, float] | None = None
    ) -> None:
        count = max(1, count)
        self.columns = min(columns, count)
        high = -(-count // self.columns)
        size = size or (PANEL[0] * self.columns, PANEL[1] * high)  # of the figure
        shape: Any = {"figsize": size, "squeeze": False}
        self.figure, axes = plt.subplots(high, self.columns, **shape)
        self.axes: list[Axes] = list(axes.flat[:count])
        self.rows: Rows = []
        for spare in axes.flat[count:]:
            spare.remove()

    def over(
        self, keys: Iterable[Any], down: bool = False
    ) -> Iterator[tuple[Any, Axes]]:
        """Pair each key with its panel, row by row or ``down``; their numbers agree."""
        wide = self.columns if down else 1
        turned = (axes for k in range(wide) for axes in self.axes[k::wide])
        return zip(keys, turned, strict=True)

    def band(
        self,
        axes: Axes,
        rows: Rows,
        label: str,
        look: Look,
        marks: int | None = None,
        shade: float = 0.15,
    ) -> Rows:
        """Draw a mean with the band from min to max, and add the rows to the data.

        Rows are those of ``summary``, in the order of x; without rows nothing is drawn.
        ``marks`` limits the number of markers along the line, all by default. ``shade``
        is the opacity of the band.
        """
        if not rows:
            return rows
        table = pd.DataFrame(rows)
        x, every = table["x"], max(1, len(table) // marks) if marks else 1
        axes.plot(x, table["mean"], label=label, ms=3.5, markevery=every, **look)
        ends = table["min"], table["max"]
        axes.fill_between(x, *ends, color=look["color"], alpha=shade, linewidth=0)
        self.rows += rows
        return rows

    def mean(
        self,
        axes: Axes,
        table: pd.DataFrame,
        x: str,
        y: str,
        panel: str,
        name: str,
        look: Look,
        label: str | None = None,
        **style: Any,
    ) -> Rows:
        """Draw the mean of column y at each x, with its range; the label is a name."""
        rows = against(table, x, y, panel, name)
        return self.band(axes, rows, name if label is None else label, look, **style)

    def line(
        self,
        axes: Axes,
        panel: str,
        name: str,
        x: Iterable[float],
        y: Iterable[float],
        label: str | None = None,
        **look: Any,
    ) -> Rows:
        """Draw a curve that has one value at each x."""
        x, y = np.asarray(x, dtype=float), np.asarray(y)
        axes.plot(x, y, label=label, **look)
        points = zip(x, y, strict=True)
        rows = [summary(panel, name, float(a), np.array([b])) for a, b in points]
        self.rows += rows
        return rows

    def outer(self, height: float, ticks: bool = True, width: float = 9.0) -> None:
        """Label the outer panels only; ``height`` of a row and ``width`` in inches.

        Without ``ticks`` inner panels have no numbers either, since all panels share
        their scales.
        """
        for k, axes in enumerate(self.axes):
            if k % self.columns:
                axes.set_ylabel("")
                axes.tick_params(axis="y", which="both", labelleft=ticks)
            if k + self.columns < len(self.axes):
                axes.set_xlabel("")
                axes.tick_params(axis="x", which="both", labelbottom=ticks)
        high = -(-len(self.axes) // self.columns)
        self.figure.set_size_inches(width, height * high + 0.6)

    def done(self, columns: int = 1, **style: Any) -> Drawing:
        """The figure with a legend of all panels (``shared_legend``), and its rows."""
        shared_legend(self.figure, columns, **style)
        return self.figure, self.rows


def against(
    table: pd.DataFrame,
    x: str,
    y: str,
    panel: str,
    algorithm: str,
    summed: Callable[[str, str, float, np.ndarray], Row] = summary,
) -> Rows:
    """The rows behind a curve: ``summed`` of y at each value of x."""
    return [
        summed(panel, algorithm, float(value), group[y].to_numpy())
        for value, group in table.groupby(x)
    ]


def log_axes(axes: Axes, x: str, y: str, **more: Any) -> None:
    """Set logarithmic axes with their labels; ``more`` goes to ``Axes.set``."""
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y, **more)


def ticks(axes: Axes, values: Iterable[float], labels: Sequence[str] = ()) -> None:
    """Set ticks of x at these values only, by default with plain numbers."""
    places = sorted(values)
    axes.set_xticks(places, labels or [f"{value:g}" for value in places])
    axes.xaxis.set_minor_locator(NullLocator())


def shades(count: int, strokes: Sequence[Any] = STROKES) -> list[Look]:
    """Looks of an ordered family, dark to light; line styles and markers alternate."""
    return [
        look(to_hex(shade), strokes[k % len(strokes)], MARKERS[k % len(MARKERS)])
        for k, shade in enumerate(colormaps["viridis"](np.linspace(0.0, 0.85, count)))
    ]


def save(figure: Figure, rows: Sequence[Row], stem: Path) -> list[Path]:
    """Write the figure and the data behind it, each file whole or not at all.

    The bytes depend on the data alone: no dates, no random identifiers.
    """
    written = []
    plain_ticks(figure)
    for kind in METADATA:
        path = stem.with_suffix(f".{kind}")
        with store.whole(path) as beside:
            figure.savefig(beside, format=kind, metadata=METADATA[kind])
            if kind == "png":
                write_palette(beside, beside)
        written.append(path)
    plt.close(figure)
    write_csv(stem.with_suffix(".csv"), frame(rows))
    return [*written, stem.with_suffix(".csv")]


def frame(rows: Sequence[Row]) -> pd.DataFrame:
    """The data behind a figure, as in its CSV file."""
    more = [TIED] if any(TIED in row for row in rows) else []
    return pd.DataFrame(rows, columns=[*COLUMNS, *more])


class PlainFormatter(LogFormatterSciNotation):
    """Ticks of a short logarithmic axis as plain numbers, without powers of ten."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The tick's number, or empty if it has no label."""
        return f"{x:g}" if super().__call__(x, pos) else ""


def plain_ticks(figure: Figure) -> None:
    """Write plain numbers on logarithmic axes that are short and near 1."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            known = isinstance(axis.get_major_formatter(), LogFormatterSciNotation)
            if known and low >= NEAR[0] and high <= NEAR[1] and high < SHORT * low:
                axis.set_major_formatter(PlainFormatter())
                if not isinstance(axis.get_minor_formatter(), NullFormatter):
                    axis.set_minor_formatter(PlainFormatter())


def write_palette(path: Path, into: Path | IO[bytes], colours: int = 256) -> None:
    """Write a PNG with few colours; 256 give a third of the size, looking alike."""
    with Image.open(path) as image:
        few = image.convert("RGB").quantize(
            colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
        )
    few.save(into, format="PNG", optimize=True)
