"""Figures of the hard instances: rates of the worst case, and what privacy hides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dperm.papers.dpsco import bounds
from dperm.papers.dpsco.exponents import BELOW
from dperm.papers.dpsco.labels import LABELS, norm
from dperm.present import curves, drawing
from dperm.present.drawing import Row, Rows
from dperm.present.looks import Look

Target = tuple[float, str, str, tuple[str, str, str]]  # as figures.PRICES


def _look(drawn: tuple[str, str, str]) -> Look:
    return dict(zip(("color", "linestyle", "marker"), drawn, strict=True))


def worst(
    table: pd.DataFrame,
    shown: Sequence[tuple[str, float]],
    targets: Sequence[Target],
) -> tuple[Figure, Rows]:
    """Worst excess over that of w = 0 against n, a panel a (solver, p), one dimension.

    The theorem's bound stands beside every line that has learnt, moved to meet its
    first such point: slopes can be compared, levels cannot.
    """
    figure, axes = drawing.panels(len(shown), 4)
    rows: Rows = []
    for (solver, p), at in zip(shown, axes, strict=True):
        part = table[(table["method"] == solver) & (table["p"] == float(p))]
        panel = f"{solver}, p = {norm(p)}"
        for epsilon, kind, label, drawn in targets:
            mask = (part["epsilon"] == epsilon) & (part["calibration"] == kind)
            name = f"epsilon = {epsilon:g}, {kind}"
            found = curves.against(part[mask], "n", "share", panel, name)
            drawing.band(at, found, label, _look(drawn))
            d = float(part["d"].iloc[0]) if len(part) else 1.0
            rows += found + _bound(at, found, (solver, float(p), epsilon, d), drawn[0])
        at.axhline(BELOW, color="0.6", linestyle=(0, (1, 3)), linewidth=1)
        at.set_xscale("log")
        at.set_yscale("log")
        at.set_title(f"{LABELS[solver]}, $p$ = {norm(p)}")
        at.set_xlabel("records n")
    for at in axes[::4]:
        at.set_ylabel("worst excess / that of $w$ = 0")
    axes[0].plot([], [], color="0.4", linestyle="-.", linewidth=0.8,
                 label="the theorem's bound, moved")  # fmt: skip
    low = min(at.get_ylim()[0] for at in axes)
    for at in axes:
        at.set_ylim(low, 1.5)
    drawing.shared_legend(figure, 3)
    return figure, rows


def _bound(
    axes: Axes, found: Rows, at: tuple[str, float, float, float], color: str
) -> Rows:
    """The bound from the first point below half on; nothing where there is none."""
    learnt = [row for row in found if row["mean"] < BELOW]
    if len(learnt) < 2:
        return []
    solver, p, epsilon, d = at
    x = np.geomspace(learnt[0]["x"], learnt[-1]["x"], 20)
    y = np.array([bounds.theorem(solver, p, epsilon, float(n), d) for n in x])
    y *= learnt[0]["mean"] / y[0]
    axes.plot(x, y, color=color, linestyle="-.", linewidth=0.8)
    name = f"{found[0]['algorithm']}, bound"
    return [
        drawing.summary(found[0]["panel"], name, float(a), np.array([b]))
        for a, b in zip(x, y, strict=True)
    ]


def hidden(table: pd.DataFrame, calibration: str) -> tuple[Figure, Rows]:
    """Excess over that of w = 0 against the bias, in units of what epsilon hides."""
    norms = sorted(table["p"].unique())
    targets = sorted(table["epsilon"].unique())
    figure, axes = drawing.panels(len(norms), 4)
    rows: Rows = []
    shades = curves.shades(len(targets), "-")
    for p, at in zip(norms, axes, strict=True):
        part = table[table["p"] == p]
        for epsilon, shade in zip(targets, shades, strict=True):
            for kind, style in ((calibration, "-"), ("none", ":")):
                mask = (part["epsilon"] == epsilon) & (part["calibration"] == kind)
                name = f"epsilon = {epsilon:g}, {kind}"
                found: list[Row] = curves.against(
                    part[mask], "constant", "share", f"p = {p:g}", name
                )
                shown = kind == calibration
                label = rf"$\epsilon$ = {epsilon:g}" if shown else "_"
                drawing.band(at, found, label, shade | {"linestyle": style})
                rows += found
        at.axhline(1.0, color="0.4", linestyle="--", linewidth=0.9)
        at.set_xscale("log")
        ticks = sorted(part["constant"].unique())
        at.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        at.minorticks_off()
        at.set_xlabel(r"$c$, the bias over what $\epsilon$ hides")
        at.set_title(f"$p$ = {p:g}")
    top = max(at.get_ylim()[1] for at in axes)
    for at in axes:
        at.set_ylim(0, top)
    axes[0].set_ylabel("excess / that of $w$ = 0")
    for label, style in ((f"{calibration} noise", "-"), ("no noise", ":"),
                         ("$w$ = 0", "--")):  # fmt: skip
        axes[0].plot([], [], color="0.4", linestyle=style, label=label)
    drawing.shared_legend(figure, 6)
    return figure, rows
