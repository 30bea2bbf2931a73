"""Figures of Bassily, Guzmán and Nandi 2021 (DP-SCO); the paper itself has none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dperm.core.calibrations import PAPER, STRICT
from dperm.core.experiment.schema import Config, Product
from dperm.papers.dpsco.rates import (
    BELOW,
    LABELS,
    TERMS,
    bound,
    instanced,
    interval,
    norm,
    together,
)
from dperm.present import drawing, looks
from dperm.present.drawing import (
    Drawing,
    Panels,
    Row,
    Rows,
    against,
    log_axes,
    shades,
)
from dperm.present.looks import Look
from dperm.present.tables import where

SLOPES = {-0.5: ":", -1.0: "--"}  # line styles of Table 1's exponents
SHARE = "excess / initial risk"
ONE, EIGHT = "#D55E00", "#0072B2"  # colours of the targets
PRICES: list[tuple[float, str, str, Look]] = [
    (epsilon, kind, label, looks.look(*style))
    for epsilon, kind, label, *style in (
        (1.0, PAPER, r"$\epsilon$ = 1, published", ONE, ":", "o"),
        (1.0, STRICT, r"$\epsilon$ = 1, strict", ONE, "-", "o"),
        (8.0, PAPER, r"$\epsilon$ = 8, published", EIGHT, ":", "s"),
        (8.0, STRICT, r"$\epsilon$ = 8, strict", EIGHT, "-", "s"),
        (math.inf, "none", "no noise", "#000000", "--", "D"),
    )
]


# --- parts that figures share ---------------------------------------------------------


def _measured(panel: str, algorithm: str, x: float, values: np.ndarray) -> Row:
    """``drawing.summary`` of runs, without an interval for a single run."""
    low, high = interval(values)
    row = drawing.summary(panel, algorithm, x, values)
    return row | {"ci_low": low, "ci_high": high}


def _against(
    group: pd.DataFrame, x: str, panel: str, algorithm: str, y: str = "share"
) -> Rows:
    return against(group, x, y, panel, algorithm, _measured)


def _methods(
    panels: Panels, table: pd.DataFrame, pairs: Sequence[tuple[str, float]], y: str
) -> Iterator[tuple[str, Axes, str, pd.DataFrame]]:
    """One panel per (solver, p), against n: solver, axes, name in the data, runs."""
    for (solver, p), at in panels.over(pairs):
        title = f"{LABELS[solver]}, $p$ = {norm(p)}"
        log_axes(at, "records n", y, title=title)
        part = where(table, method=solver, p=float(p))
        yield solver, at, f"{solver}, p = {norm(p)}", part


def _priced(part: pd.DataFrame) -> Iterator[tuple[float, pd.DataFrame, str, str, Look]]:
    """For each kind of noise: epsilon, runs, name in the data, label, look."""
    for epsilon, kind, label, look in PRICES:
        runs = where(part, epsilon=epsilon, calibration=kind)
        yield epsilon, runs, f"epsilon = {epsilon:g}, {kind}", label, look


def _headline(panels: Panels, table: pd.DataFrame, calibration: str) -> None:
    """Write the target, the noise and the number of runs above the panels."""
    noise = rf"$\epsilon$ = {table['epsilon'].min():g}, {calibration} noise"
    each = table.groupby(["method", "p", "n", "d"])["replicate"].nunique()
    runs = " to ".join(f"{count}" for count in sorted({each.min(), each.max()}))
    about = f"{noise}: mean and range, {runs} runs"
    panels.figure.suptitle(about, fontsize=9)


def _share_limits(panels: Panels, low: float | None = None, high: float = 0.0) -> None:
    """Set the same scales for all panels, by default wide enough for all of them."""
    ends = np.array([[*at.get_xlim(), *at.get_ylim()] for at in panels.axes])
    low = max(ends[:, 2].min(), 1e-6) if low is None else low
    for at in panels.axes:
        at.set_xlim(ends[:, 0].min(), ends[:, 1].max())
        at.set_ylim(low, high or ends[:, 3].max())


def _keys(axes: Axes, lines: dict[str, str]) -> None:
    """Add entries to the legend for line styles that have no curve."""
    for label, line in lines.items():
        axes.plot([], [], color="0.4", linestyle=line, linewidth=1, label=label)


# --- rates ----------------------------------------------------------------------------


def rates(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Excess over initial risk against n, one panel per (solver, p), one line per d.

    ``options``: epsilon, panels as pairs of solver and p, columns. Grey lines have
    Table 1's exponents.
    """
    options, kind = product.options, product.calibration
    runs = together(config, product)
    table = where(runs, epsilon=options["epsilon"], calibration=kind)
    panels = Panels(len(options["panels"]), options["columns"])
    dimensions = sorted(table["d"].unique())
    look = dict(zip(dimensions, shades(len(dimensions), "-"), strict=True))
    for solver, at, panel, part in _methods(panels, table, options["panels"], SHARE):
        for d, group in part.groupby("d"):
            curve = _against(group, "n", panel, f"d = {d:g}")
            panels.band(at, curve, f"d = {d:g}", look[d])
        sizes = np.array([part["n"].min(), part["n"].max()], dtype=float)
        for exponent in sorted(set(TERMS[solver])) if len(part) else ():
            grey: Look = {"color": "0.6", "linewidth": 0.9, "zorder": 0}
            grey |= {"linestyle": SLOPES[exponent], "label": f"$n^{{{exponent:g}}}$"}
            at.plot(sizes, 1.5 * (sizes / sizes[0]) ** exponent, **grey)
    _headline(panels, table, kind)
    _share_limits(panels)
    panels.outer(1.9, ticks=False)
    return panels.done(7)


# --- hard instances -------------------------------------------------------------------


def lower_bound(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Measured excess on the fingerprinting instance, and the bound's shape."""
    table = where(together(config, product), calibration=product.calibration)
    sizes, norms = sorted(table["d"].unique()), sorted(table["p"].unique())
    panels = Panels(len(sizes))
    for d, at in panels.over(sizes):
        panel = f"d = {d:g}"
        for p, look in zip(norms, shades(len(norms), "-"), strict=True):
            part = where(table, d=d, p=p)
            curve = _against(part, "n", panel, f"p = {p:g}", "excess")
            panels.band(at, curve, f"$p$ = {p:g}", look)
            shape = part.groupby("n")["bound"].first()
            style: Look = {"color": look["color"], "linestyle": ":", "linewidth": 1}
            name = f"p = {p:g}, shape of the bound"
            panels.line(at, panel, name, shape.index, shape, **style)
        log_axes(at, "records n", "excess risk", title=f"$d$ = {d:g}")
    _keys(panels.axes[0], {"shape of the lower bound, same colours": ":"})
    _headline(panels, table, product.calibration)
    _share_limits(panels)
    panels.outer(2.6, ticks=False)
    return panels.done(5)


def hard(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Rates on the worst of a class of instances; ``options``: d, panels."""
    table = where(instanced(config, product), d=product.options["d"])
    return worst(table, product.options["panels"])


def worst(table: pd.DataFrame, pairs: Sequence[tuple[str, float]]) -> Drawing:
    """Worst excess over that of w = 0 against n, one panel per (solver, p), at one d.

    Lines with points below ``BELOW`` also have the theorem's bound, scaled to meet the
    first such point: slopes can be compared, levels cannot.
    """
    panels, norms = Panels(len(pairs), 2), [float(p) for _, p in pairs]
    every = _methods(panels, table, pairs, "excess / that of $w$ = 0")
    for p, (solver, at, panel, part) in zip(norms, every, strict=True):
        for epsilon, some, name, label, look in _priced(part):
            rows = panels.mean(at, some, "n", "share", panel, name, look, label)
            learnt = [row for row in rows if row["mean"] < BELOW]
            if len(learnt) > 1:
                x = np.geomspace(learnt[0]["x"], learnt[-1]["x"], 20)
                d = float(part["d"].iloc[0])
                y = np.array([bound(solver, p, epsilon, float(n), d) for n in x])
                y *= learnt[0]["mean"] / y[0]
                style: Look = {"linestyle": "-.", "linewidth": 0.8}
                style["color"] = look["color"]
                panels.line(at, panel, f"{name}, bound", x, y, **style)
        at.axhline(BELOW, color="0.6", linestyle=(0, (1, 3)), linewidth=1)
    _keys(panels.axes[0], {"the theorem's bound, moved to the first point": "-."})
    _share_limits(panels, min(at.get_ylim()[0] for at in panels.axes), 1.5)
    panels.outer(1.8, ticks=False)
    return panels.done(3)
