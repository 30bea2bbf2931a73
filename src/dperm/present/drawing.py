"""Shared drawing: one look for all figures, and the data behind each of them.

Colours are Okabe and Ito's, told apart by the colour-blind; line styles and markers
tell the curves apart in greyscale.
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
from PIL import Image

from dperm.pipeline import results
from dperm.store import files as store

FORMATS = ("pdf", "svg", "png")
COLUMNS = ["panel", "algorithm", "x", "mean", "min", "max", "ci_low", "ci_high"]
PANEL = (3.1, 2.7)  # inches
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

# algorithm: colour, line style, marker
CURVES: dict[str, tuple[str, Any, str]] = {
    "DP-CD": ("#0072B2", "-", "o"),
    "DP-CD-priv-cst": ("#009E73", "--", "s"),
    "DP-SGD": ("#D55E00", "-.", "^"),
    "DP-CD-uniform": ("#56B4E9", ":", "D"),
    "DP-GCD": ("#CC79A7", (0, (5, 1)), "v"),
    "DP-GCD, GS-s": ("#882255", "--", "P"),
    "DP-GCD, GS-q": ("#999933", ":", "X"),
    "DP-GCD, Gumbel": ("#882255", "--", "P"),
    "DP-GCD, permute-and-flip": ("#999933", ":", "X"),
    "DP-SVRG": ("#CC79A7", (0, (4, 1, 1, 1)), "v"),
    "DP-SkGD single": ("#0072B2", "-", "o"),
    "DP-SkGD single IS": ("#E69F00", "--", "s"),
    "DP-SkGD single IS (composite)": ("#E69F00", "--", "s"),
    "DP-SkGD full": ("#009E73", (0, (5, 1)), "D"),
    "DP-SkGD 4 blocks": ("#56B4E9", ":", "P"),
}
_OTHERS = ("#E69F00", "#000000", "#F0E442")


def styled(make: Callable[..., Any]) -> Callable[..., Any]:
    """A figure's function with the house's sizes for legends and titles too."""

    @functools.wraps(make)
    def inside(*arguments: Any, **keys: Any) -> Any:
        with mpl.rc_context(_STYLE):
            return make(*arguments, **keys)

    return inside


def shared_legend(figure: Figure, columns: int) -> None:
    """One legend below all panels, each label once."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        found.values(), found.keys(), loc="outside lower center", ncols=columns
    )


def style(algorithm: str) -> dict[str, Any]:
    """Line properties of an algorithm."""
    known = CURVES.get(algorithm)
    if known is None:
        colour = _OTHERS[sum(map(ord, algorithm)) % len(_OTHERS)]
        known = (colour, (0, (3, 1, 1, 1)), "x")
    return {"color": known[0], "linestyle": known[1], "marker": known[2]}


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


def summary(panel: str, algorithm: str, x: float, values: np.ndarray) -> dict[str, Any]:
    """One row behind a figure: mean, range and 95 % interval of the mean."""
    low, high = results.interval(values)
    found = (values.mean(), values.min(), values.max(), low, high)
    return dict(zip(COLUMNS, (panel, algorithm, x, *found), strict=True))


def curve(axes: Axes, table: pd.DataFrame, algorithm: str, label: str) -> None:
    """Draw a mean with its min-max band; the table has the columns of ``COLUMNS``."""
    look = style(algorithm)
    x = table["x"].to_numpy()
    every = max(1, len(x) // 8)
    axes.plot(x, table["mean"], label=label, markersize=3.5, markevery=every, **look)
    low, high = table["min"].to_numpy(), table["max"].to_numpy()
    axes.fill_between(x, low, high, color=look["color"], alpha=0.18, linewidth=0)


def empty(axes: Axes, reason: str) -> None:
    """An empty panel that says why."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    axes.spines[:].set_visible(False)
    reason = f"Not available: {reason}"
    text = textwrap.fill(reason, 44, max_lines=14, placeholder=" ...")
    axes.text(0.5, 0.5, text, ha="center", va="center", fontsize=6.5, color="0.35",
              transform=axes.transAxes)  # fmt: skip


def save(figure: Figure, rows: Sequence[dict[str, Any]], stem: Path) -> list[Path]:
    """Write the figure and the data behind it, each file whole or not at all.

    The bytes depend on the data alone: no dates, no random identifiers.
    """
    written = []
    for kind in FORMATS:
        path = stem.with_suffix(f".{kind}")
        with store.whole(path) as beside:
            figure.savefig(beside, format=kind, metadata=_metadata(kind))
            if kind == "png":
                _use_palette(beside)
        written.append(path)
    plt.close(figure)
    table = pd.DataFrame(rows, columns=COLUMNS)
    text = table.to_csv(index=False, float_format="%.10g")
    store.write_text(stem.with_suffix(".csv"), text)
    return [*written, stem.with_suffix(".csv")]


def _use_palette(path: Path) -> None:
    """Keep 256 colours of a PNG: a third of its size, and no eye tells."""
    with Image.open(path) as image:
        few = image.convert("RGB").quantize(
            256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
        )
    few.save(path, format="PNG", optimize=True)


def _metadata(kind: str) -> dict[str, Any]:
    if kind == "pdf":
        return {
            "CreationDate": None,
            "ModDate": None,
            "Producer": None,
            "Creator": None,
        }
    return {"Date": None} if kind == "svg" else {"Software": None}
