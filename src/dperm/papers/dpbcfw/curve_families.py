"""What the figures of Lou and Cheung 2020 share: names, looks, curves and families."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from matplotlib.axes import Axes

from dperm.papers.dpbcfw.outcomes import central, where
from dperm.present import looks
from dperm.present.drawing import MARKERS, STROKES, Drawing, Panels, shades
from dperm.present.looks import Look

LARGER = (
    "Where a private curve ends below FW, which has no noise: line 12 adds a vertex of "
    "size $\\eta$ for each of K nodes,\nso that $\\|x\\|_1$ reaches K $\\eta$ where FW "
    "keeps to $\\eta$."
)
BASELINES = looks.of(["FW", "DP-FW"])
_HUES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
NOISES = {
    "none": "no noise",
    "stated": "noise as printed",
    "scaled": "printed noise, scores $\\eta\\,\\nabla f$",
    "strict": "least sound noise",
    "scaled, m = n": "the same, no sketch",
}
UPDATES = {"published": "as published", "feasible": "feasible"}
SHARE = "$\\eta$ = {:g} $\\|x_{{true}}\\|_1$"
FAMILIES: dict[str, Callable[[float], str]] = {  # what a curve of a family is called
    "nodes": "K = {:g}".format,
    "epsilon": "$\\epsilon$ = {:g}".format,
    "split": lambda share: f"{10 * share:.0f} : {10 - 10 * share:.0f}",
    "sketch": "m = {:g}".format,
    "length": "m = {:g} n".format,
}
BESIDE = {  # what panels differ in beside their noise: in the data, and in the title
    "epsilon": (", epsilon {:g}", ",\n$\\epsilon$ = {:g}"),
    "share": (", eta {:g}", f", {SHARE}"),
}


def hues(count: int) -> list[Look]:
    """Looks of unordered kinds."""
    kinds = zip(_HUES[:count], STROKES, MARKERS, strict=False)
    return [looks.look(*kind) for kind in kinds]


def curve(
    panels: Panels, axes: Axes, panel: str, label: str, table: pd.DataFrame, look: Look,
    x: str = "iteration", y: str = "relative",
) -> None:  # fmt: skip
    """Mean and range of y against x over the replicates."""
    panels.mean(axes, table, x, y, panel, label, look, marks=6)


def family(
    panels: Panels, axes: Axes, panel: str, table: pd.DataFrame, key: str
) -> None:
    """One curve for each value of a key, dark to light."""
    values = sorted(table[key].unique())
    for value, look in zip(values, shades(len(values)), strict=True):
        runs = where(table, **{key: value})
        curve(panels, axes, panel, FAMILIES[key](value), runs, look)


def baselines(
    panels: Panels, axes: Axes, panel: str, table: pd.DataFrame, noise: str
) -> None:
    """FW and DP-FW, as far as they were run; noise is that of DP-BCFW."""
    runs = {
        "FW": where(table, method="fw"),
        "DP-FW": where(table, method="dp_fw", noise=central(noise)),
    }
    for name, look in BASELINES.items():
        curve(panels, axes, panel, name, runs[name], look)


def finish(axes: Axes, title: str) -> None:
    """Title, logarithmic losses against iterations, and f(0) as a line."""
    axes.set(title=title, yscale="log", xlabel="iteration", ylabel="loss / loss at 0")
    axes.axhline(1.0, color="0.6", linewidth=0.7, zorder=0)


def explained(panels: Panels, columns: int = 0) -> Drawing:
    """The figure with a legend of so many columns, if any.

    It says above the panels why private curves end below FW, if any does.
    """
    done = panels.done(columns) if columns else (panels.figure, panels.rows)
    if not panels.rows:
        return done
    table = pd.DataFrame(panels.rows)
    ends = table.loc[table.groupby(["panel", "algorithm"])["x"].idxmax()]
    alone = where(ends, algorithm="FW").set_index("panel")["mean"]
    ours = ends[~ends["algorithm"].isin(["FW", "DP-FW"])]
    if (ours["mean"] < ours["panel"].map(alone)).any():
        panels.figure.suptitle(LARGER, fontsize=8)
    return done


def percent(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:g} %"
