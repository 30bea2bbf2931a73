"""Drawing: the picture of a figure from the rows behind it.

A figure is a function that returns a ``Picture``: a tidy frame, one row per point, with
titles and axes of its panels. The ``role`` of a row says how it is drawn:

- ``curve``: a mean with its range from min to max;
- ``points``, ``joined``: means with their intervals, without and with a line;
- ``dots``: means alone;
- ``thin``: a thin line that ends in a dot;
- ``line``: a dotted line, such as a bound;
- ``band``: the range between two dotted lines;
- ``star``: a printed number;
- ``bar``: a bin of a histogram from min to max;
- ``level``, ``upright``: a line across the panel, at a mean or at an x;
- ``data``: not drawn, in the CSV file alone.

Curves are named at their ends where they are few, else in a legend.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
from matplotlib.ticker import (
    EngFormatter,
    LogFormatterSciNotation,
    LogLocator,
    NullFormatter,
    NullLocator,
)
from PIL import Image

from dperm.core.experiment import files as store
from dperm.core.experiment.files import write_csv
from dperm.present import intervals, looks
from dperm.present.looks import Look

Row = dict[str, Any]  # of the data behind a figure; keys are COLUMNS
Rows = list[Row]
Drawing = tuple[Figure, Rows]  # what a figure's function may return instead
METADATA: dict[str, Any] = {  # left out of a file, by its format
    "pdf": dict.fromkeys(("CreationDate", "ModDate", "Producer", "Creator")),
    "svg": {"Date": None},
    "png": {"Software": None},
}
COLUMNS = ["panel", "algorithm", "x", "mean", "min", "max", "ci_low", "ci_high"]
ROLE = "role"
FEW = 6  # most curves that are named at their ends
APART = 0.085  # of a panel's height, between names at the ends of curves
PANEL = (3.1, 2.7)  # inches
SHORT = 100.0  # a logarithmic axis up to this ratio of its ends is short
NEAR = (1e-3, 1e3)  # range in which numbers are as short as powers of ten
UNAVAILABLE = "data not available when this was run"
mpl.use("Agg")
plt.style.use(Path(__file__).with_name("dperm.mplstyle"))


@dataclass(frozen=True)
class Picture:
    """The rows behind a figure, and the look of its panels."""

    #: columns ``COLUMNS`` and ``ROLE``
    rows: pd.DataFrame
    titles: Mapping[str, str]  #: of each panel by its name in the rows, in order
    axes: Mapping[str, Any]  #: keywords of ``Axes.set`` of all panels
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  #: of one panel
    columns: int = 3  #: panels in a row
    size: tuple[float, float] = PANEL  #: of a panel, in inches
    looks: Mapping[str, Look] = field(default_factory=dict)  #: of curves; see ``looks``
    #: text of a curve in a panel instead of its name, by panel and curve
    labels: Mapping[tuple[str, str], str] = field(default_factory=dict)
    is_named: bool | None = (
        None  #: whether curves are named at their ends; None: if few
    )
    is_carried: bool = (
        False  #: whether a dotted line carries a curve's end to the right
    )
    is_shared: bool = False  #: whether panels have the same scales, labelled once
    ticks: Sequence[float] = ()  #: of x, with plain numbers
    unit: str = ""  #: of x, on a logarithmic axis: ticks have its prefixes
    note: str = ""  #: below all panels


def missing(reason: str = UNAVAILABLE) -> Picture:
    """A picture with one empty panel that says why there is nothing to show."""
    return Picture(pd.DataFrame(columns=[*COLUMNS, ROLE]), {}, {}, note=reason)


# --- rows -----------------------------------------------------------------------------


def summary(panel: str, algorithm: str, x: float, values: np.ndarray) -> Row:
    """One row behind a figure: mean, range and 95 % interval of the mean."""
    low, high = intervals.student(values)
    numbers = (x, values.mean(), values.min(), values.max(), low, high)
    return dict(zip(COLUMNS, (panel, algorithm, *numbers), strict=True))


def against(
    table: pd.DataFrame,
    x: str,
    y: str,
    panel: str,
    algorithm: str,
    role: str = "curve",
) -> Rows:
    """The rows behind a curve: ``summary`` of y at each value of x."""
    return [
        summary(panel, algorithm, float(value), group[y].to_numpy()) | {ROLE: role}
        for value, group in table.groupby(x)
    ]


def values(
    panel: str, algorithm: str, x: Iterable[float], y: Iterable[float], role: str
) -> Rows:
    """The rows behind a curve that has one value at each x."""
    points = zip(np.asarray(x, float), np.asarray(y, float), strict=True)
    return [
        summary(panel, algorithm, float(a), np.array([b])) | {ROLE: role}
        for a, b in points
    ]


def frame(rows: Sequence[Row] | pd.DataFrame) -> pd.DataFrame:
    """The data behind a figure, as in its CSV file."""
    data = pd.DataFrame(rows)
    more = [ROLE] if ROLE in data else []
    return data.reindex(columns=[*COLUMNS, *more])


def family(names: Sequence[str]) -> dict[str, Look]:
    """Looks of an ordered family, dark to light; markers and strokes alternate."""
    shades = colormaps["viridis"](np.linspace(0.0, 0.85, len(names)))
    strokes: Any = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))
    return {
        name: looks.look(to_hex(shade), strokes[k % 6], "os^DvPX*<>"[k % 10])
        for k, (name, shade) in enumerate(zip(names, shades, strict=True))
    }


# --- the picture ----------------------------------------------------------------------


def draw(picture: Picture) -> Figure:
    """Draw the panels of a picture."""
    data = picture.rows
    shown = [name for name in picture.titles if (data["panel"] == name).any()]
    wide = min(picture.columns, max(1, len(shown)))
    high = -(-max(1, len(shown)) // wide)
    size = (picture.size[0] * wide, picture.size[1] * high + 0.3)
    given: Any = {"figsize": size, "squeeze": False}
    given |= {"sharex": picture.is_shared, "sharey": picture.is_shared}
    figure, every = plt.subplots(high, wide, **given)
    if not shown:
        empty(every[0, 0], picture.note)
        return figure
    styles = _styles(picture)
    for name, axes in zip(shown, every.flat, strict=False):
        part = data[data["panel"] == name]
        axes.set(title=picture.titles[name], **picture.axes)
        axes.set(**picture.own.get(name, {}))
        if axes.get_xscale() == "log":  # which has no place for the start, at 0
            part = part[~(part["x"] <= 0) | (part[ROLE] == "level")]
        for label, rows in part.groupby("algorithm", sort=False):
            key = str(label)
            text = picture.labels.get((name, key), key)
            ROLES[str(rows[ROLE].iloc[0])](axes, rows, text, styles[_base(key, styles)])
        if len(picture.ticks):
            ticks(axes, picture.ticks)
        if picture.unit:
            _prefixed(axes, picture.unit)
    for spare in every.flat[len(shown) :]:
        spare.remove()
    if picture.is_shared:
        for axes in figure.axes:
            axes.label_outer()
    if picture.is_carried:
        for axes in figure.axes:
            _carry(axes)
    is_named = picture.is_named
    if is_named is None:
        counts = (len(axes.get_legend_handles_labels()[1]) for axes in figure.axes)
        is_named = max(counts) <= FEW and not picture.is_shared
    if is_named:
        for axes in figure.axes:
            _name_ends(axes)
    else:
        shared_legend(figure, 5, title=picture.note)
    if is_named and picture.note:
        figure.supxlabel(picture.note, fontsize=8)
    return figure


def _styles(picture: Picture) -> dict[str, Look]:
    """The look of each curve that has one of its own."""
    roles = picture.rows.groupby("algorithm", sort=False)[ROLE].first()
    main = roles[roles.isin(["curve", "points", "joined", "level", "bar", "upright"])]
    known = looks.of([*main.index, *({*roles.index} & looks.METHODS.keys())])
    grey = {name: looks.look("#595959", "--") for name in roles.index.difference(main)}
    heads = {name: _base(name, known | dict(picture.looks)) for name in grey}
    both = known | dict(picture.looks)
    return {**{name: both.get(heads[name], grey[name]) for name in grey}, **both}


def _base(name: str, styles: Mapping[str, Look]) -> str:
    """The curve whose look a curve has: itself, or that before its last comma."""
    head = name.rpartition(", ")[0]
    return head if name not in styles and head in styles else name


def _curve(at: Axes, rows: pd.DataFrame, label: str, look: Look) -> None:
    every = max(1, len(rows) // 8)
    at.plot(rows["x"], rows["mean"], label=label, ms=3.5, markevery=every, **look)
    ends = rows["min"], rows["max"]
    at.fill_between(rows["x"], *ends, color=look["color"], alpha=0.12, linewidth=0)


def _points(at: Axes, rows: pd.DataFrame, label: str, look: Look) -> None:
    _joined(at, rows, label, {**look, "linestyle": "none"})


def _joined(at: Axes, rows: pd.DataFrame, label: str, look: Look) -> None:
    x, mean, low, high = rows[["x", "mean", "ci_low", "ci_high"]].to_numpy(float).T
    # a logarithmic axis has no zero, and a single run no interval
    below = np.nan_to_num(np.minimum(mean - low, 0.95 * abs(mean)))
    bars: Any = {"yerr": np.stack((below, np.nan_to_num(high - mean))), "capsize": 2}
    bars |= {"marker": "o", "markersize": 4, "label": label} | look
    at.errorbar(x, mean, **bars)


def _dots(at: Axes, rows: pd.DataFrame, label: str, look: Look) -> None:
    marker = look.get("marker", "o")
    at.plot(rows["x"], rows["mean"], marker, color=look["color"], markersize=4)


def _thin(at: Axes, rows: pd.DataFrame, label: str, look: Look) -> None:
    at.plot(rows["x"], rows["mean"], color=look["color"], linewidth=0.7, alpha=0.8)
    at.plot(
        rows["x"].iloc[-1:], rows["mean"].iloc[-1:], "o", color=look["color"], ms=2.5
    )


def _line(at: Axes, rows: pd.DataFrame, label: str, look: Look) -> None:
    style: Any = {"color": look["color"], "linestyle": ":", "linewidth": 1.1}
    at.plot(rows["x"], rows["mean"], **style)


def _band(at: Axes, rows: pd.DataFrame, label: str, look: Look) -> None:
    for end in ("min", "max"):
        at.plot(rows["x"], rows[end], color=look["color"], linestyle=":", linewidth=1.1)


def _star(at: Axes, rows: pd.DataFrame, label: str, look: Look) -> None:
    edge: Any = {"markeredgecolor": "black", "markeredgewidth": 0.5, "clip_on": False}
    star: Any = {"color": look["color"], "markersize": 9, "zorder": 5, **edge}
    at.plot(rows["x"], rows["mean"], "*", **star)


def _bar(at: Axes, rows: pd.DataFrame, label: str, look: Look) -> None:
    wide = rows["max"] - rows["min"]
    at.bar(rows["min"], rows["mean"], wide, align="edge", color=look["color"])


def _level(at: Axes, rows: pd.DataFrame, label: str, look: Look) -> None:
    row = rows.iloc[0]
    style = {key: look[key] for key in ("color", "linestyle")}
    line = at.axhline(row["mean"], label=label, linewidth=1.1, **style)
    line.set_in_layout(False)
    if row["ci_high"] > row["ci_low"]:
        at.axhspan(
            row["ci_low"], row["ci_high"], color=look["color"], alpha=0.1, linewidth=0
        )


def _upright(at: Axes, rows: pd.DataFrame, label: str, look: Look) -> None:
    at.axvline(rows["x"].iloc[0], color=look["color"], linestyle="--", linewidth=1.1)


def _data(at: Axes, rows: pd.DataFrame, label: str, look: Look) -> None:
    """Draw nothing."""


ROLES = {
    "curve": _curve,
    "points": _points,
    "joined": _joined,
    "dots": _dots,
    "thin": _thin,
    "line": _line,
    "band": _band,
    "star": _star,
    "bar": _bar,
    "level": _level,
    "upright": _upright,
    "data": _data,
}


def _ends(axes: Axes) -> list[tuple[str, str, float, float]]:
    """Label, colour and last point of each named curve."""
    found = []
    handles: Any
    handles, labels = axes.get_legend_handles_labels()
    for handle, label in zip(handles, labels, strict=True):
        line = handle if hasattr(handle, "get_xdata") else handle.lines[0]
        x, y = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
        if len(x):
            # a level has no end: its x is in units of the panel
            end = float(x[-1]) if line.get_transform() == axes.transData else np.inf
            found.append((label, line.get_color(), end, float(y[-1])))
    return found


def _carry(axes: Axes) -> None:
    """Carry the end of each curve to the right by a dotted line."""
    right = axes.get_xlim()[1]
    for _, color, x, y in _ends(axes):
        if x >= right:
            continue
        axes.plot([x, right], [y, y], ":", color=color, linewidth=0.8)
        axes.plot([x], [y], "o", color=color, markersize=4)
    axes.set_xlim(right=right)


def _name_ends(axes: Axes) -> None:
    """Write the name of each curve to the right of its end, none over another."""
    to_axes = axes.transData + axes.transAxes.inverted()
    found = [
        (float(to_axes.transform((axes.get_xlim()[1], y))[1]), label, color)
        for label, color, _, y in _ends(axes)
    ]
    found.sort(key=lambda one: one[0])
    heights = np.clip([height for height, *_ in found], 0.0, 1.0)
    for k in range(1, len(heights)):
        heights[k] = max(heights[k], heights[k - 1] + APART)
    over = max(0.0, heights[-1] - 1.0) if len(heights) else 0.0
    for k in reversed(range(len(heights))):  # push down what was pushed out
        limit = 1.0 if k == len(heights) - 1 else heights[k + 1] - APART
        heights[k] = min(heights[k], limit) if over else heights[k]
    for height, (_, label, color) in zip(heights, found, strict=True):
        place: Any = {"transform": axes.transAxes, "va": "center", "fontsize": 8}
        axes.text(1.02, height, label, color=color, **place)


def shared_legend(
    figure: Figure, columns: int = 1, place: str = "lower center", title: str = ""
) -> None:
    """Draw one legend for all panels, each label once, outside of them.

    It has at most ``columns`` columns, and fewer if the figure is too narrow. ``place``
    is, for example, ``lower center`` or ``right center``; ``title`` stands above it.
    """
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    entries: Any = (handles.values(), handles.keys())
    style: Any = {"loc": f"outside {place}", "title": title, "title_fontsize": 8}
    legend = figure.legend(*entries, ncols=columns, **style)
    while columns > 1 and legend.get_window_extent().width > figure.bbox.width:
        legend.remove()
        columns -= 1
        legend = figure.legend(*entries, ncols=columns, **style)


def empty(axes: Axes, reason: str) -> None:
    """Make an empty panel that states why, for readers; a trace goes to the log."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    axes.spines[:].set_visible(False)
    text = textwrap.fill(reason, 30, max_lines=5, placeholder=" ...")
    place: Any = {"ha": "center", "va": "center", "transform": axes.transAxes}
    axes.text(0.5, 0.5, text, fontsize=8, color="0.35", **place)


def ticks(axes: Axes, values: Iterable[float]) -> None:
    """Set ticks of x at these values only, with plain numbers."""
    places = sorted(values)
    axes.set_xticks(places, [f"{value:g}" for value in places])
    axes.xaxis.set_minor_locator(NullLocator())


def _prefixed(axes: Axes, unit: str) -> None:
    """Write ticks of a logarithmic x as "3 ms"; few, as they are long."""
    low, high = axes.get_xlim()
    subs = (1.0, 3.0) if high < SHORT * low else (1.0,)
    axes.xaxis.set_major_locator(LogLocator(subs=subs))
    axes.xaxis.set_major_formatter(EngFormatter(unit))
    axes.xaxis.set_minor_formatter(NullFormatter())


# --- files ----------------------------------------------------------------------------


def made(content: Picture | Drawing) -> tuple[Figure, pd.DataFrame]:
    """The figure and the data of what a figure's function returns."""
    if isinstance(content, Picture):
        return draw(content), frame(content.rows)
    figure, rows = content
    return figure, frame(rows)


def save(figure: Figure, rows: Sequence[Row] | pd.DataFrame, stem: Path) -> list[Path]:
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
