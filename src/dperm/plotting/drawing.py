"""Drawing: the picture of a figure from the rows behind it.

A figure is a function that returns a ``Picture``: a tidy frame, one row per point, with
titles and axes of its panels. The ``role`` of a row says how it is drawn:

- ``curve``: a mean with its range from min to max;
- ``points``, ``joined``: means with their intervals, without and with a line;
- ``method``: a mean with its interval, in a line of its own, whose name is on the axis;
- ``dots``: means alone;
- ``thin``: a thin line that ends in a dot;
- ``line``: a dotted line, such as a bound;
- ``star``: a printed number;
- ``bar``: a bin of a histogram from min to max;
- ``level``, ``upright``: a line across the panel, at a mean or at an x.

Curves are named at their ends, to which a dotted line carries a shorter one, or in a
legend.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Literal

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import (
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)
from PIL import Image

from dperm.numerics import intervals
from dperm.plotting.styles import METHODS, Style, style, styles_of
from dperm.plotting.tables import number
from dperm.storage import files as store

Row = dict[str, Any]  # of the data behind a figure; keys are CURVE_COLUMNS
Rows = list[Row]
Drawing = tuple[Figure, Rows]  # what a figure's function may return instead
METADATA: dict[str, Any] = {  # left out of a file, by its format
    "pdf": dict.fromkeys(("CreationDate", "ModDate", "Producer", "Creator")),
    "svg": {"Date": None},
    "png": {"Software": None},
}
CURVE_COLUMNS = [
    "panel",
    "algorithm",
    "x",
    "mean",
    "min",
    "max",
    "ci_low",
    "ci_high",
]
ROLE = "role"
# Of a panel's height, between names at the ends of curves
LABEL_DISTANCE = 0.085
PANEL = (3.1, 2.7)  # inches
WIDTH = 6.9  # inches: two columns of a journal, where texts keep their size
LEAST_WIDTHS = {
    True: 3.4,
    False: 2.2,
}  # of a panel with names at its right, without
NAME_SIZE = 7.5  # points
NAME_LENGTH = 23  # a longer name is broken at its last comma
NOTE_LENGTH = 20  # letters of a note below all panels, an inch
BELOW = 4  # a logarithmic axis ends at this part of the least mean, whatever its band
UNAVAILABLE = "data not available when this was run"
mpl.use("Agg")
plt.style.use(Path(__file__).with_name("dperm.mplstyle"))


@dataclass(frozen=True)
class Picture:
    """The rows behind a figure, and the style of its panels."""

    #: columns ``CURVE_COLUMNS`` and ``ROLE``
    rows: pd.DataFrame
    titles: Mapping[
        str, str
    ]  #: of each panel by its name in the rows, in order
    axes: Mapping[str, Any]  #: keywords of ``Axes.set`` of all panels
    own: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict
    )  #: of one panel
    columns: int = 3  #: panels in a row
    size: tuple[float, float] = PANEL  #: of a panel, in inches
    styles: Mapping[str, Style] = field(default_factory=dict)  #: of curves
    #: text of a curve in a panel instead of its name, by panel and curve
    labels: Mapping[tuple[str, str], str] = field(default_factory=dict)
    #: whether curves are named at their ends, else in a legend
    is_named: bool = False
    #: panels that have the same scale of y; those of x are then the same in all
    shared: Literal["", "row", "all"] = ""
    ticks: Sequence[float] = ()  #: of x, with plain numbers
    note: str = ""  #: below all panels


def missing(reason: str = UNAVAILABLE) -> Picture:
    """A picture with one empty panel that says why there is nothing to show."""
    return Picture(
        pd.DataFrame(columns=[*CURVE_COLUMNS, ROLE]), {}, {}, note=reason
    )


# --- rows -----------------------------------------------------------------------------


def summary(panel: str, algorithm: str, x: float, values: np.ndarray) -> Row:
    """One row behind a figure: mean, range and 95 % interval of the mean."""
    low, high = intervals.student(values)
    numbers = (x, values.mean(), values.min(), values.max(), low, high)
    return dict(zip(CURVE_COLUMNS, (panel, algorithm, *numbers), strict=True))


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
        summary(panel, algorithm, float(place), group[y].to_numpy())
        | {ROLE: role}
        for place, group in table.groupby(x)
    ]


def values(
    panel: str,
    algorithm: str,
    x: Iterable[float],
    y: Iterable[float],
    role: str,
) -> Rows:
    """The rows behind a curve that has one value at each x."""
    return [
        summary(panel, algorithm, float(place), np.array([height], float))
        | {ROLE: role}
        for place, height in zip(x, y, strict=True)
    ]


def frame(rows: Sequence[Row] | pd.DataFrame) -> pd.DataFrame:
    """The data behind a figure, as in its CSV file."""
    table = pd.DataFrame(rows)
    extra_columns = [ROLE] if ROLE in table else []
    return table.reindex(columns=[*CURVE_COLUMNS, *extra_columns])


def family(names: Sequence[str]) -> dict[str, Style]:
    """Styles of an ordered family, dark to light; markers and strokes alternate.

    The lightest has a contrast of 3 : 1 with a white page, as all styles have.
    """
    shades = colormaps["plasma"](np.linspace(0.0, 0.63, len(names)))
    strokes: Any = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))
    return {
        name: style(to_hex(shade), strokes[k % 6], "os^DvPX*<>"[k % 10])
        for k, (name, shade) in enumerate(zip(names, shades, strict=True))
    }


# --- the picture ----------------------------------------------------------------------


def draw(picture: Picture) -> Figure:
    """Draw the panels of a picture, lettered, at most as wide as a page."""
    table = picture.rows
    panels = [
        name for name in picture.titles if (table["panel"] == name).any()
    ]
    roles = {*table.get(ROLE, ())}  # none if no problem has data
    is_labelled = picture.is_named and not roles <= {"bar", "upright"}
    fitting = int(WIDTH / LEAST_WIDTHS[is_labelled])
    wide = min(picture.columns, fitting, max(1, len(panels)))
    high = -(-max(1, len(panels)) // wide)
    width = min(picture.size[0], WIDTH / wide)
    height = picture.size[1] * min(1.0, 1.2 * width / picture.size[0])
    options: Any = {
        "figsize": (width * wide, height * high + 0.3),
        "squeeze": False,
    }
    options |= {
        "sharex": bool(picture.shared),
        "sharey": picture.shared or "none",
    }
    figure, all_axes = plt.subplots(high, wide, **options)
    if not panels:
        empty(all_axes[0, 0], picture.note)
        return figure
    styles = _styles(picture)
    for name, axes in zip(panels, all_axes.flat, strict=False):
        _panel(axes, picture, name, styles)
    for spare in all_axes.flat[len(panels) :]:
        spare.remove()
    if "ylim" not in picture.axes:
        _end_below(figure.axes, picture, panels)
    for axes in figure.axes:
        _number(axes, picture.ticks)
    _letter(figure.axes)
    _label_once(figure.axes, wide)
    note = picture.note
    if "\n" not in note:
        note = textwrap.fill(note, int(NOTE_LENGTH * width * wide))
    if not picture.is_named:
        shared_legend(figure, 5, title=note)
        return figure
    if note:
        figure.supxlabel(note, fontsize=NAME_SIZE)
    figure.draw_without_rendering()  # names need the heights of panels
    for axes in figure.axes:
        _name_ends(axes)
    return figure


def _panel(
    axes: Axes, picture: Picture, name: str, styles: Mapping[str, Style]
) -> None:
    rows = picture.rows[picture.rows["panel"] == name]
    axes.set_title(picture.titles[name], loc="left")
    axes.set(**{**picture.axes, **picture.own.get(name, {})})
    if axes.get_xscale() == "log":  # which has no place for the start, at 0
        rows = rows[~(rows["x"] <= 0) | (rows[ROLE] == "level")]
    for curve, curve_rows in rows.groupby("algorithm", sort=False):
        key = str(curve)
        role = str(curve_rows[ROLE].iloc[0])
        style = {"marker": ""} | styles[key] | LINES.get(role, {})
        ROLES[role](
            axes, curve_rows, picture.labels.get((name, key), key), style
        )


def _end_below(
    all_axes: Sequence[Axes], picture: Picture, panels: Sequence[str]
) -> None:
    """End logarithmic axes a little below the least mean, wherever bands go."""
    positive = picture.rows[picture.rows["mean"] > 0]
    floors = positive.groupby("panel")["mean"].min() / BELOW
    for axes in all_axes:
        together = axes.get_shared_y_axes().get_siblings(axes)
        names = [panels[all_axes.index(sibling)] for sibling in together]
        floor = floors.reindex(names).min()
        if axes.get_yscale() == "log" and floor > axes.get_ylim()[0]:
            axes.set_ylim(bottom=floor)


def _letter(panels: Sequence[Axes]) -> None:
    """Put a, b, c before the titles of several panels, as journals do."""
    for axes, letter in zip(panels, ascii_lowercase, strict=False):
        if len(panels) > 1:
            title = axes.get_title(loc="left")
            axes.set_title(f"$\\bf{{{letter}}}$  {title}", loc="left")


def _label_once(panels: Sequence[Axes], wide: int) -> None:
    """Keep what all panels say of an axis at the left and at the bottom alone."""
    if len({axes.get_ylabel() for axes in panels}) == 1:
        for place, axes in enumerate(panels):
            if place % wide:
                axes.set_ylabel("")
    if len({axes.get_xlabel() for axes in panels}) == 1:
        for axes in panels[:-wide]:
            axes.set_xlabel("")
    for axes in panels[-wide:]:  # one above a hole has numbers as well
        axes.xaxis.set_tick_params(labelbottom=True)


def _number(axes: Axes, ticks: Sequence[float]) -> None:
    """Number the axes of a panel, the logarithmic ones so that two numbers are read."""
    if axes.get_xscale() == "log":
        _number_x(axes)
    elif axes.get_xlim()[1] < 0.01:  # such numbers are long
        axes.xaxis.set_major_locator(MaxNLocator(2))
    if axes.get_yscale() == "log":
        _number_y(axes)
    if len(ticks):
        places = sorted(ticks)
        axes.set_xticks(places, [f"{place:g}" for place in places])
        axes.xaxis.set_minor_locator(NullLocator())


def _number_y(axes: Axes) -> None:
    """Number 2 and 5 as well where few decades are shown, and steps within one."""
    low, high = np.log10(axes.get_ylim())
    if high - low < 0.6:
        axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif high - low < 2.2:
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axes.yaxis.set_minor_formatter("{x:g}")


def _number_x(axes: Axes) -> None:
    """See that a logarithmic axis has two numbers at least, and that none overlap."""
    low, high = np.log10(axes.get_xlim())
    if high - low < 0.7:
        _number_ends(axes, low, high)
    elif math.floor(high) > math.ceil(low):
        axes.xaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.xaxis.set_minor_locator(LogLocator(subs=(3,)))
        axes.xaxis.set_minor_formatter("{x:g}")


def _number_ends(axes: Axes, low: float, high: float) -> None:
    """Number the first and the last round place of an axis shorter than a decade."""
    exponents = range(math.floor(low), math.ceil(high) + 1)
    round_places = [float(f"{m}e{k}") for k in exponents for m in range(1, 10)]
    inside = [
        place for place in round_places if low <= math.log10(place) <= high
    ]
    ends = (
        inside[:: len(inside) - 1] if len(inside) > 1 else [10**low, 10**high]
    )
    axes.set_xticks(ends, [f"{place:.2g}" for place in ends])
    axes.xaxis.set_minor_formatter(NullFormatter())


def _styles(picture: Picture) -> dict[str, Style]:
    """The style of each curve: its own, that before its last comma, or grey."""
    roles = picture.rows.groupby("algorithm", sort=False)[ROLE].first()
    main = roles[~roles.isin(["dots", "thin", "line", "star"])]
    style_of = styles_of([*main.index, *({*roles.index} & METHODS.keys())])
    style_of |= dict(picture.styles)
    grey = style("#595959", "--")
    heads = {name: name.rpartition(", ")[0] for name in roles.index}
    return {
        name: style_of.get(head, grey) for name, head in heads.items()
    } | style_of


# --- roles ----------------------------------------------------------------------------

BARE = {"linestyle": "none"}
DOTTED = {"linestyle": ":", "linewidth": 1.1, "marker": ""}
EDGE = {"markeredgecolor": "black", "markeredgewidth": 0.5, "clip_on": False}
# keywords of ``Axes.plot`` instead of a style's
LINES: dict[str, dict[str, Any]] = {
    "points": BARE,
    "method": BARE,
    "dots": BARE | {"markersize": 4},
    "thin": {"linestyle": "-", "linewidth": 0.7}
    | {"marker": "o", "markersize": 2.5, "markevery": [-1]},
    "line": DOTTED,
    "star": BARE | EDGE | {"marker": "*", "markersize": 9, "zorder": 5},
    "level": {"linewidth": 1.1, "marker": ""},
    "upright": {"linewidth": 1.1, "linestyle": "--", "marker": ""},
}


def _curve(axes: Axes, rows: pd.DataFrame, label: str, style: Style) -> None:
    marks: Any = {"markersize": 3.5, "markevery": max(1, len(rows) // 8)}
    axes.plot(rows["x"], rows["mean"], label=label, **marks | style)
    ends = rows["min"], rows["max"]
    axes.fill_between(
        rows["x"], *ends, color=style["color"], alpha=0.12, linewidth=0
    )


def _interval(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """How far the interval of each mean lies below and above it."""
    mean, low, high = rows[["mean", "ci_low", "ci_high"]].to_numpy(float).T
    # a logarithmic axis has no zero, and a single run no interval
    below = np.nan_to_num(np.minimum(mean - low, 0.95 * abs(mean)))
    return below, np.nan_to_num(high - mean)


def _joined(axes: Axes, rows: pd.DataFrame, label: str, style: Style) -> None:
    marks: Any = style | {
        "marker": style["marker"] or "o",
        "markersize": 4,
        "capsize": 2,
    }
    axes.errorbar(
        rows["x"], rows["mean"], _interval(rows), label=label, **marks
    )


def _method(axes: Axes, rows: pd.DataFrame, label: str, style: Style) -> None:
    marks: Any = style | {
        "marker": style["marker"] or "o",
        "markersize": 7,
        "capsize": 3,
    }
    axes.errorbar(rows["mean"], [label], xerr=_interval(rows), **marks)
    place: Any = {
        "y": label,
        "transform": axes.get_yaxis_transform(),
        "va": "center",
    }
    text = number(rows["mean"].iloc[0], 2)
    axes.text(x=1.02, s=text, color=style["color"], **place)
    # the first is at the top
    axes.set_ylim(len(axes.get_yticks()) - 0.5, -0.5)


def _line(axes: Axes, rows: pd.DataFrame, label: str, style: Style) -> None:
    axes.plot(rows["x"], rows["mean"], **style)


def _dots(axes: Axes, rows: pd.DataFrame, label: str, style: Style) -> None:
    _line(axes, rows, label, style | {"marker": style["marker"] or "o"})


def _bar(axes: Axes, rows: pd.DataFrame, label: str, style: Style) -> None:
    wide = rows["max"] - rows["min"]
    axes.bar(
        rows["min"], rows["mean"], wide, align="edge", color=style["color"]
    )


def _level(axes: Axes, rows: pd.DataFrame, label: str, style: Style) -> None:
    row = rows.iloc[0]
    axes.axhline(row["mean"], label=label, **style).set_in_layout(False)
    if row["ci_high"] > row["ci_low"]:
        ends = row["ci_low"], row["ci_high"]
        axes.axhspan(*ends, color=style["color"], alpha=0.1, linewidth=0)


def _upright(axes: Axes, rows: pd.DataFrame, label: str, style: Style) -> None:
    axes.axvline(rows["x"].iloc[0], **style)


ROLES = {
    "curve": _curve,
    "points": _joined,
    "joined": _joined,
    "method": _method,
    "dots": _dots,
    "thin": _line,
    "line": _line,
    "star": _line,
    "bar": _bar,
    "level": _level,
    "upright": _upright,
}


# --- names and legends ----------------------------------------------------------------


def _name_ends(axes: Axes) -> None:
    """Write the name of each curve right of the panel, at the height of its end.

    A dotted line carries a curve that ends before; no name lies over another.
    """
    right = axes.get_xlim()[1]
    curve_ends = []
    handles: Any
    handles, labels = axes.get_legend_handles_labels()
    for handle, label in zip(handles, labels, strict=True):
        line = handle if hasattr(handle, "get_xdata") else handle.lines[0]
        x = np.asarray(line.get_xdata(), float)
        y = np.asarray(line.get_ydata(), float)
        if len(x):
            color = line.get_color()
            curve_ends.append((float(y[-1]), label, color))
            # the x of a level is in units of the panel
            if line.get_transform() == axes.transData and x[-1] < right:
                segment = [x[-1], right], [y[-1], y[-1]]
                axes.plot(*segment, ":", color=color, linewidth=0.8)
                axes.plot(x[-1:], y[-1:], "o", color=color, markersize=4)
    axes.set_xlim(right=right)
    curve_ends.sort(key=lambda curve: curve[0])
    names = [_broken(label) for _, label, _ in curve_ends]
    lines = np.array([1 + name.count("\n") for name in names])
    points = axes.get_window_extent().height / axes.figure.dpi * 72
    line_height = max(LABEL_DISTANCE, 1.2 * NAME_SIZE / points)
    # names are centred: two of them are apart by half of their lines each
    steps = (
        line_height
        * np.cumsum([0, *(lines[1:] + lines[:-1]) / 2])[: len(lines)]
    )
    to_axes = axes.transData + axes.transAxes.inverted()
    heights = np.array(
        [to_axes.transform((right, end))[1] for end, *_ in curve_ends]
    )
    heights = np.maximum.accumulate(np.clip(heights, 0.0, 1.0) - steps) + steps
    # pushed down is what was pushed out, and what would lie on the title
    top = 1.0 - steps[-1:] - line_height * lines[-1:] / 2
    heights = np.minimum(heights, top + steps)
    for height, name, (_, _, color) in zip(
        heights, names, curve_ends, strict=True
    ):
        place: Any = {"transform": axes.transAxes, "va": "center"}
        axes.text(1.02, height, name, color=color, fontsize=NAME_SIZE, **place)


def _broken(name: str) -> str:
    """A name in two lines, broken at its last comma, if it is long."""
    # a command of mathematics is one letter, and its braces are none
    seen = re.sub(
        r"\\[a-z]+|[$^{}]", lambda mark: "x" * (len(mark[0]) > 1), name
    )
    head, _, tail = name.rpartition(", ")
    return f"{head},\n{tail}" if head and len(seen) > NAME_LENGTH else name


def shared_legend(figure: Figure, columns: int, title: str = "") -> None:
    """Draw one legend for all panels, each label once, below them and its title.

    It has at most ``columns`` columns, and fewer if the figure is too narrow.
    """
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(
            *axes.get_legend_handles_labels(), strict=True
        ):
            handles.setdefault(label, handle)
    style: Any = {"loc": "outside lower center", "title": title}
    style |= {"title_fontsize": NAME_SIZE}
    for count in range(columns, 0, -1):
        legend = figure.legend(
            handles.values(), handles.keys(), ncols=count, **style
        )
        if count == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def empty(axes: Axes, reason: str) -> None:
    """Make an empty panel that states why, for readers; a trace goes to the log."""
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    axes.spines[:].set_visible(False)
    text = textwrap.fill(reason, 30, max_lines=5, placeholder=" ...")
    place: Any = {"ha": "center", "va": "center", "transform": axes.transAxes}
    axes.text(0.5, 0.5, text, color="0.35", **place)


# --- files ----------------------------------------------------------------------------


def made(content: Picture | Drawing) -> tuple[Figure, pd.DataFrame]:
    """The figure and the data of what a figure's function returns."""
    if isinstance(content, Picture):
        return draw(content), frame(content.rows)
    figure, rows = content
    return figure, frame(rows)


def save(
    figure: Figure, data: pd.DataFrame, stem: Path, formats: Iterable[str] = ()
) -> list[Path]:
    """Write the figure as PNG and the data behind it, each file whole or not at all.

    ``formats`` are others, pdf and svg. The bytes depend on the data alone: no dates,
    no random identifiers.
    """
    written = []
    for ending in ("png", *formats):
        path = stem.with_suffix(f".{ending}")
        with store.whole(path) as beside:
            figure.savefig(beside, format=ending, metadata=METADATA[ending])
            if ending == "png":
                _write_palette(beside)
        written.append(path)
    plt.close(figure)
    store.write_csv(stem.with_suffix(".csv"), data)
    return [*written, stem.with_suffix(".csv")]


def inline(figure: Figure, label: str) -> str:
    """A figure as SVG to stand in a page of HTML, as wide as there is room."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata=METADATA["svg"])
    plt.close(figure)
    drawn = text.getvalue()
    picture = drawn[drawn.index("<svg") :]
    picture = re.sub(r' (?:width|height)="[\d.]+pt"', "", picture, count=2)
    return picture.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def _write_palette(path: Path) -> None:
    """Reduce a PNG to 256 colours: a third of the size, looking alike."""
    few: Any = {
        "method": Image.Quantize.MEDIANCUT,
        "dither": Image.Dither.NONE,
    }
    with Image.open(path) as image:
        reduced = image.convert("RGB").quantize(256, **few)
    reduced.save(path, format="PNG", optimize=True)
