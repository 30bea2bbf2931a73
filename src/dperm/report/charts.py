"""A figure as the page draws it: panels of curves, with the looks of the picture."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from dperm.present import looks
from dperm.present.tables import number
from dperm.report.entries import Names

PUBLISHED = ", published"  # ends the names of rows that a paper printed
BANDS = {
    "range": "min to max of runs",
    "interval": "95 % interval",
}
ENDS = {"range": ("min", "max"), "interval": ("ci_low", "ci_high")}
LOST = 0.01  # of its height that thinning may move a curve by; the CSV file has all
DARK = "#14171a"  # the page's ground in dark mode
_LATEX = {
    r"\epsilon": "ε", r"\varepsilon": "ε", r"\eta": "η", r"\tau": "τ", r"\kappa": "κ",
    r"\alpha": "α", r"\beta": "β", r"\lambda": "λ", r"\nabla": "∇", r"\|": "‖",
    r"\,": " ", r"\ ": " ", r"\sqrt": "√", r"\mathdefault": "", r"\times": "×",
    r"\leq": "≤", r"\geq": "≥", r"\ast": "*",
}  # fmt: skip
# Of matplotlib's markers, about 6 units wide. The page has each once, by its place.
MARKERS = {
    "o": "M3 0A3 3 0 1 1-3 0A3 3 0 1 1 3 0Z", "s": "M-2.7-2.7H2.7V2.7H-2.7Z",
    "^": "M0-3.4L3.2 2.4H-3.2Z", "v": "M0 3.4L3.2-2.4H-3.2Z",
    "<": "M-3.4 0L2.4-3.2V3.2Z", ">": "M3.4 0L-2.4-3.2V3.2Z",
    "D": "M0-3.8L3.8 0L0 3.8L-3.8 0Z", "d": "M0-4L2.5 0L0 4L-2.5 0Z",
    "p": "M0-3.4L3.2-1L2 2.8H-2L-3.2-1Z", "h": "M0-3.4L3-1.7V1.7L0 3.4L-3 1.7V-1.7Z",
    "P": "M-1-3.2H1V-1H3.2V1H1V3.2H-1V1H-3.2V-1H-1Z",
    "X": "M-3.2-1.8L-1.8-3.2L0-1.4L1.8-3.2L3.2-1.8L1.4 0L3.2 1.8L1.8 3.2L0 1.4"
         "L-1.8 3.2L-3.2 1.8L-1.4 0Z",
    "x": "M-3-2.3L-2.3-3L0-.7L2.3-3L3-2.3L.7 0L3 2.3L2.3 3L0 .7L-2.3 3L-3 2.3L-.7 0Z",
    "+": "M-.5-3.4H.5V-.5H3.4V.5H.5V3.4H-.5V.5H-3.4V-.5H-.5Z",
    "*": "M0-5L1.2-1.6H4.8L1.9.6L3 4L0 2L-3 4L-1.9.6L-4.8-1.6H-1.2Z",
}  # fmt: skip


def plain(text: str) -> str:
    """A label without LaTeX."""
    for latex, letter in sorted(_LATEX.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(latex, letter)
    return re.sub(r"[${}]", "", text.replace("_{", "_"))


class Palette:
    """The colours of all charts, each a class with a twin for dark mode."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, colour: str) -> str:
        """The class of a colour."""
        return self._known.setdefault(colour, f"k{len(self._known)}")

    def css(self) -> Markup:
        """The rules of all classes; 3 : 1 against the ground in both modes."""
        light = [f".{name}{{color:{looks.readable(colour)}}}"
                 for colour, name in self._known.items()]  # fmt: skip
        dark = [f".{name}{{color:{looks.readable(colour, DARK)}}}"
                for colour, name in self._known.items()]  # fmt: skip
        return Markup(
            "\n".join(light)
            + "\n@media screen and (prefers-color-scheme:dark){"
            + "".join(dark)
            + "}"
        )


Extra = Callable[[str, str], str]  # of panel and algorithm, for legend or reading


def figure_data(
    data: pd.DataFrame,
    described: dict[str, Any],
    palette: Palette,
    known: Names,
    cost: Extra,
    setting: Extra,
) -> dict[str, Any]:
    """Panels with curves, in the order of the data.

    Parameters
    ----------
    data : DataFrame
        Behind the figure (``drawing.COLUMNS``).
    described : dict
        Labels, looks and true epsilons (``panels.described``); may be empty.
    palette : Palette
    known : Names
        Titles of problems, and labels of solvers that stand by their names.
    cost, setting : callable
        What the legend says of a curve besides its name, and what its reading does.
    """
    names = {each: known.methods.get(each, each) for each in data["algorithm"].unique()}
    spare = looks.of(_base(name.removesuffix(PUBLISHED)) for name in names.values())
    panels = []
    for panel, part in data.groupby("panel", sort=False):
        axes = described.get(str(panel), {"x": "", "y": "", "curves": {}})
        curves = []
        for algorithm, rows in part.groupby("algorithm", sort=False):
            name, style = names[algorithm], axes["curves"].get(algorithm, {})
            curve = _curve(name, rows, style, spare, palette)
            curve["cost"] = cost(str(panel), name) or plain(style.get("cost", ""))
            curves.append(curve | {"setting": setting(str(panel), name)})
        _share(curves)
        title = plain(_title(str(panel), known.problems))
        labels = {"x": plain(axes["x"]) or "x", "y": plain(axes["y"]) or title}
        panels.append({"name": title, **labels, "curves": curves})
    return {"panels": panels}


def _share(curves: list[dict[str, Any]]) -> None:
    """Drop the x of a curve that has that of the one before: they are many."""
    for before, curve in reversed(list(itertools.pairwise(curves))):
        if curve["x"] == before["x"]:
            curve["x"] = None


def subject(panel: str) -> str:
    """What a panel is of, before what is added to it: "a_b: convex" is of "a_b"."""
    return re.split(r"[:,]", panel)[0]


def _title(panel: str, titles: dict[str, str]) -> str:
    """A panel for a reader: the title of a problem it begins with, no identifiers."""
    first = subject(panel)
    name = titles.get(first, first.replace("_", " ") if first.isidentifier() else first)
    return name + panel[len(first) :]


def _curve(
    algorithm: str,
    rows: pd.DataFrame,
    style: dict[str, str],
    spare: dict[str, looks.Look],
    palette: Palette,
) -> dict[str, Any]:
    """Numbers and look of one curve; long ones are thinned."""
    name = algorithm.removesuffix(PUBLISHED)
    star = name != algorithm
    rows = rows.iloc[_telling(rows["x"].to_numpy(float), rows["mean"].to_numpy(float))]
    base = _base(name)
    if base in looks.METHODS or not style:  # a method looks the same in every figure
        look = spare[base]
        style = {"color": look["color"], "dash": looks.dashes(look["linestyle"]),
                 "marker": look["marker"]}  # fmt: skip
    return {
        "name": plain(algorithm), "x": _numbers(rows, "x"),
        "mean": _numbers(rows, "mean"), **_bands(rows),
        "look": palette.of(style["color"]), "star": star, "dash": style["dash"],
        "mark": _mark("*" if star else style["marker"]),
    }  # fmt: skip


def _base(name: str) -> str:
    """The method of a label that goes on with a number: "DP-FW: -0.03"."""
    return name.split(": ")[0]


def _telling(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Places of the points that a curve is drawn by, in order.

    The others lie within ``LOST`` of its height from the line, on a logarithmic axis
    where that is what the curve spans.
    """
    if len(x) < 3 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return np.arange(len(x))
    if y.min() > 0 and y.max() > 8 * y.min():
        y = np.log(y)
    if (np.diff(x) < 0).any():
        return np.arange(len(x))
    return np.array(outline(x, y, LOST * float(np.ptp(y))))


def outline(x: np.ndarray, y: np.ndarray, within: float) -> list[int]:
    """Places that keep a line within a distance in y (Ramer, Douglas and Peucker)."""
    kept, parts = {0, len(x) - 1}, [(0, len(x) - 1)]
    while parts:
        first, last = parts.pop()
        if last - first < 2:
            continue
        between = slice(first + 1, last)
        line = np.interp(x[between], x[[first, last]], y[[first, last]])
        off = np.abs(y[between] - line)
        if off.max() > within:
            far = first + 1 + int(off.argmax())
            kept.add(far)
            parts += [(first, far), (far, last)]
    return sorted(kept)


def _numbers(rows: pd.DataFrame, key: str, digits: int = 4) -> list[float | None]:
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in rows[key]]


def _bands(rows: pd.DataFrame) -> dict[str, list[list[float | None]]]:
    """The lower and upper ends of each band that there is."""
    return {
        name: [_numbers(rows, low, 3), _numbers(rows, high, 3)]
        for name, (low, high) in ENDS.items()
        if _is_band(rows, low, high)
    }


def _mark(marker: str) -> str:
    """The address of a marker in the page; empty for none."""
    return f"mk{list(MARKERS).index(marker)}" if marker in MARKERS else ""


def _is_band(rows: pd.DataFrame, low: str, high: str) -> bool:
    """Whether two columns are ends of a band around the mean, and not all on it."""
    ends = rows[[low, "mean", high]].dropna()
    inside = (ends[low] <= ends["mean"]) & (ends["mean"] <= ends[high])
    return bool(len(ends) and inside.all() and (ends[low] < ends[high]).any())


def short(value: Any) -> str:
    """A value for a reader: three significant digits, whole numbers as they are."""
    if isinstance(value, bool | str):
        return str(value)
    if value is None or pd.isna(value):
        return ""
    if math.isinf(value) or (value == int(value) and abs(value) < 1e6):
        return f"{value:g}"
    return number(value)
