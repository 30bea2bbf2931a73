"""Panels of Theorem 4.2 at its own parameters, and of Section 4.3.2's regime."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from dperm.papers.dpskgd.rates import BASE
from dperm.present.drawing import Panels, Row, Rows, log_axes, ticks
from dperm.present.looks import Look, look

# of the random partitions one is drawn
SAMPLINGS = {
    "single": look("#0072B2", "-", "o"),
    "single IS": look("#D55E00", "--", "s"),
    "4 blocks": look("#009E73", "-", "D"),
    "4 blocks IS": look("#E69F00", "--", "v"),
    "4 random blocks, 1": look("#CC79A7", ":", "^"),
    "full": look("#000000", "-.", "x"),
}
INSTANCES = {
    "separable": "#0072B2",
    "ill-conditioned": "#D55E00",
    "moderate": "#009E73",
}
AXES = {"n": "o", "epsilon": "s"}
WIDEST = 1.3  # that the band of the controls should be


def _row(
    panel: str, algorithm: str, x: float, mean: float, low: float, high: float
) -> Row:
    return {"panel": panel, "algorithm": algorithm, "x": x, "mean": mean, "min": mean,
            "max": mean, "ci_low": low, "ci_high": high}  # fmt: skip


def _points(
    panels: Panels, axes: Axes, panel: str, name: str, table: pd.DataFrame, style: Look
) -> None:
    """Points with intervals, of a table with x, mean and the ends of both columns."""
    mean, low, high = (table[key] for key in ("mean", "ci_low", "ci_high"))
    axes.errorbar(table["x"], mean, yerr=np.stack((mean - low, high - mean)),
                  color=style["color"], marker=style["marker"], linestyle="none",
                  markersize=3.5, capsize=2)  # fmt: skip
    each = zip(table["x"], mean, low, high, strict=True)
    panels.add(axes, [_row(panel, name, *values) for values in each], style)


def excess(panels: Panels, axes: Axes, panel: str, table: pd.DataFrame) -> None:
    """Share of the excess of w = 0 against n, of each sampling; and a bound."""
    for name, style in SAMPLINGS.items():
        part = table[(table["sampling"] == name)].dropna(subset="excess")
        if part.empty:
            continue
        kept = ["excess", "ci_low", "ci_high", "expected"]
        share = part[kept].div(part["start"], axis=0).assign(x=part["n"])
        share = share.rename(columns={"excess": "mean"})
        _points(panels, axes, panel, name, share, style)
        line = {"color": style["color"], "linestyle": style["linestyle"]}
        axes.plot(part["n"], share["expected"], linewidth=1.2, **line)
        axes.plot([], [], markersize=3.5, label=name.partition(",")[0], **style)
    bound = table[table["sampling"] == BASE]
    label, dots = "bound, single", {"color": "0.4", "linestyle": ":"}
    share = bound["bound"] / bound["start"]
    panels.line(axes, panel, label, bound["n"], share, label, **dots)
    axes.axhline(1.0, color="0.6", linewidth=0.8)
    log_axes(axes, "$n$", "excess over that of $w = 0$", title=panel)
    powers = sorted(np.log2(table["n"]).round().astype(int).unique())[::2]
    names = [f"$2^{{{power}}}$" for power in powers]
    ticks(axes, [2.0**power for power in powers], names)


def exponents(panels: Panels, axes: Axes, fits: Rows) -> None:
    """Measured exponents against those of the bound on the same points."""
    for each in fits:
        low, high = (
            each["exponent"] - each["ci_low"],
            each["ci_high"] - each["exponent"],
        )
        style = look(INSTANCES[each["instance"]], "none", AXES[each["axis"]])
        axes.errorbar(each["bound"], each["exponent"], yerr=[[low], [high]],
                      capsize=1.5, color=style["color"], marker=style["marker"],
                      markersize=3, linewidth=0.8, alpha=0.7)  # fmt: skip
        name = f"{each['case']}, {each['instance']}: {each['sampling']}"
        measured = (each[key] for key in ("bound", "exponent", "ci_low", "ci_high"))
        panels.add(axes, [_row(f"exponent in {each['axis']}", name, *measured)], style)
    for name, colour in INSTANCES.items():
        axes.plot([], [], "o", color=colour, markersize=4, label=name)
    axes.axline((-1, -1), slope=1, color="0.5", linewidth=0.8)
    axes.set(title="exponents ($n$ round, $\\varepsilon$ square)",
             xlabel="of the bound", ylabel="measured")  # fmt: skip
    axes.legend(fontsize=6.5)


def band(panels: Panels, axes: Axes, controls: Rows) -> None:
    """The band of the controls, and what is undecided, by the number of transcripts."""
    table = pd.DataFrame(controls)
    x = table["transcripts"]
    solid, dashed = look("#0072B2", "-", "o"), look("#D55E00", "--", "s")
    axes.plot(x, table["band"], label="band of the controls", **solid)
    axes.plot(x, 1 + table["undecided"], label="1 + share undecided", **dashed)
    axes.axhline(WIDEST, color="0.5", linewidth=0.8)
    axes.set(xscale="log", title="control: one law twice", xlabel="transcripts",
             ylabel="widest ratio; 1 + share")  # fmt: skip
    ticks(axes, x)
    axes.legend(fontsize=6.5)
    for each in controls:
        for name, style, low, high in (
            ("band", solid, each["ci_low"], each["ci_high"]),
            ("undecided", dashed, each["undecided"], each["undecided"]),
        ):
            row = _row("controls", name, each["transcripts"], each[name], low, high)
            panels.add(axes, [row], style)


def ratios(
    panels: Panels, axes: Axes, panel: str, instance: str, seen: pd.DataFrame
) -> None:
    """Importance over uniform draws on one instance, by where its optimum sits."""
    style = look(INSTANCES[instance], "-", "o")
    points = seen.rename(columns={"placement": "x", "ratio": "mean"})
    _points(panels, axes, panel, instance, points, style)
    axes.plot(seen["placement"], seen["expected"], color=style["color"], lw=1.2)
    label = f"{instance}: measured, expected"
    axes.plot([], [], markersize=3.5, label=label, **style)


def regime(axes: Axes, part: pd.DataFrame, band: float) -> None:
    """What Table 1 says, the band of the controls, and Section 4.3.2's regime."""
    bound = part.groupby("placement")["predicted"].first()
    dashed: Look = {"color": "0.35", "linestyle": "--", "label": "Table 1, convex row"}
    axes.plot(bound.index, bound, **dashed)
    grey: Look = {"color": "0.5", "alpha": 0.15, "linewidth": 0}
    axes.axhspan(1 / band, band, label="band of controls", **grey)
    axes.axvspan(0.0, part["placement"].max(), color="#009E73", alpha=0.08, lw=0)
    axes.set(yscale="log", xlabel="placement $a$: $|w^*_j| = M_j^a$",
             ylabel="importance / uniform")  # fmt: skip
    places = [0.3, 1.0, 3.0, 10.0]
    axes.set_yticks(places, [f"{place:g}" for place in places])
    axes.yaxis.set_minor_locator(NullLocator())
