"""The panels of a figure, the rows behind them, and how each curve looks.

Rows remember the axes and the look they are drawn with; ``described`` writes that down
for whoever draws the same curves elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from dperm.present import drawing
from dperm.present.drawing import Row, Rows, summary
from dperm.present.looks import Look, dashes, look

Drawing = tuple[Figure, Rows]  # what the function of a figure returns
MARKERS = "os^DvPX*<>"
STROKES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))


class Panels:
    """Equal panels in rows of so many columns, at least one, and the rows behind them.

    Attributes
    ----------
    figure : Figure
    axes : list of Axes
    rows : list of dict
        Of all curves so far, in the order they were drawn.
    """

    def __init__(
        self, count: int, columns: int = 3, size: tuple[float, float] | None = None
    ) -> None:
        self.figure, self.axes = drawing.panels(max(1, count), columns)
        self.rows: Rows = []
        if size:
            self.figure.set_size_inches(*size)  # in inches, of the whole figure

    def over(self, keys: Iterable[Any]) -> Iterator[tuple[Any, Axes]]:
        """Each key with its panel; there are as many."""
        return zip(keys, self.axes, strict=True)

    def add(self, axes: Axes, rows: Rows, style: Look, cost: str = "") -> Rows:
        """Rows that are drawn in other ways; ``cost``, their true epsilon in words."""
        self.rows += drawing.annotated(axes, rows, style, cost)
        return rows

    def band(
        self, axes: Axes, rows: Rows, label: str, look: Look, **style: Any
    ) -> Rows:
        """Draw rows by ``drawing.band``."""
        drawing.band(axes, rows, label, look, **style)
        self.rows += rows
        return rows

    def mean(
        self, axes: Axes, table: pd.DataFrame, x: str, y: str, panel: str, name: str,
        look: Look, label: str | None = None, **style: Any,
    ) -> Rows:  # fmt: skip
        """Draw the mean of column y at each x, with its range; the label is a name."""
        rows = against(table, x, y, panel, name)
        return self.band(axes, rows, name if label is None else label, look, **style)

    def line(
        self, axes: Axes, panel: str, name: str, x: Iterable[float],
        y: Iterable[float], label: str | None = None, **look: Any,
    ) -> Rows:  # fmt: skip
        """Draw a curve that has one value at each x."""
        x, y = np.asarray(x, dtype=float), np.asarray(y)
        axes.plot(x, y, label=label, **look)
        points = zip(x, y, strict=True)
        rows = [summary(panel, name, float(a), np.array([b])) for a, b in points]
        return self.add(axes, rows, look)

    def done(self, columns: int = 1, **style: Any) -> Drawing:
        """The figure with a legend of all panels (``shared_legend``), and its rows."""
        drawing.shared_legend(self.figure, columns, **style)
        return self.figure, self.rows


def described(rows: Iterable[Row]) -> dict[str, Any]:
    """Labels of the axes by panel; colour, dashes, marker and true epsilon by curve.

    Returns
    -------
    dict
        By panel: ``x``, ``y``, and ``curves``, which has by algorithm ``color``
        (``#rrggbb``), ``dash`` (as in SVG), ``marker`` (matplotlib's) and ``cost``.
    """
    panels: dict[str, Any] = {}
    for row in rows:
        if "axes" not in row:
            continue
        if row["panel"] not in panels:
            panels[row["panel"]] = _labels(row["axes"]) | {"curves": {}}
        curves, style = panels[row["panel"]]["curves"], row["look"]
        if row["algorithm"] not in curves:
            curves[row["algorithm"]] = {
                "color": to_hex(style["color"]),
                "dash": dashes(style.get("linestyle", "-")),
                "marker": style.get("marker", ""),
                "cost": row["cost"],
            }
    return panels


def _labels(axes: Axes) -> dict[str, str]:
    """Labels of both axes; where a panel has none, those of another of the figure."""
    found = {}
    for key in ("x", "y"):
        every = [getattr(at, f"get_{key}label")() for at in (axes, *axes.figure.axes)]
        found[key] = " ".join(next(filter(None, every), "").split())
    return found


def against(
    table: pd.DataFrame,
    x: str,
    y: str,
    panel: str,
    algorithm: str,
    summed: Callable[[str, str, float, np.ndarray], Row] = summary,
) -> Rows:
    """The rows behind a curve: what ``summed`` makes of y at each value of x."""
    return [
        summed(panel, algorithm, float(value), group[y].to_numpy())
        for value, group in table.groupby(x)
    ]


def log_axes(axes: Axes, x: str, y: str, **more: Any) -> None:
    """Logarithmic axes with their labels; more of ``Axes.set``."""
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y, **more)


def ticks(axes: Axes, values: Iterable[float], labels: Sequence[str] = ()) -> None:
    """Ticks of x at these values alone, with plain numbers unless labels are there."""
    places = sorted(values)
    axes.set_xticks(places, labels or [f"{value:g}" for value in places])
    axes.xaxis.set_minor_locator(NullLocator())


def shades(count: int, strokes: Sequence[Any] = STROKES) -> list[Look]:
    """Looks of an ordered family, dark to light; line styles and markers in turn."""
    return [
        look(to_hex(shade), strokes[k % len(strokes)], MARKERS[k % len(MARKERS)])
        for k, shade in enumerate(colormaps["viridis"](np.linspace(0.0, 0.85, count)))
    ]
