"""Figures of Maranjyan et al. 2024 (DP-SkGD): the experiments it announces."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dperm.papers.dpskgd import tables
from dperm.plotting import drawing
from dperm.plotting.drawing import Picture, Rows
from dperm.plotting.styles import Style, style, styles_of

TITLES = {  # of the regimes
    "flat": "One small $M_1$, the rest solved",
    "steep": "One large $M_1$, which matters",
}
ROWS = {  # of Table 1, by their column: name and stroke
    "convex": ("Table 1, convex", ":"),
    "strong": ("Table 1, strongly convex", "-."),
}
SMALL = 2**20  # records


def regimes(swept: pd.DataFrame) -> Picture:
    """Section 4.3: excess against d, and the gain with its exponent."""
    table = swept.assign(n=swept["n"].astype(int))
    fits = {(row["regime"], row["n"]): row for row in tables.fitted(table)}
    rows = Rows()
    titles = dict[str, str]()
    labels = dict[tuple[str, str], str]()
    styles = dict[str, Style]()
    panel_axes = dict[str, dict[str, Any]]()
    for regime, regime_rows in table.groupby("regime", sort=False):
        excess_panel = f"{regime}: excess"
        gain_panel = f"{regime}: gain"
        rows += _excess(excess_panel, regime_rows, styles, labels)
        law = tables.of_law(regime_rows)
        worse, better = regime_rows["algorithm"].unique()
        panel_axes[gain_panel] = {"ylabel": f"{worse} /\n{better}"}
        titles |= {
            excess_panel: TITLES[str(regime)],
            gain_panel: f"Gain of {better}",
        }
        means = law.groupby(["n", "algorithm", "d"])["excess"].mean()
        for n in sorted(law["n"].unique()):
            name = f"{worse} / {better} (n = {n})"
            gain = means[n, worse] / means[n, better]
            rows += drawing.values(
                gain_panel, name, gain.index, gain, "joined"
            )
            styles[name] = style("#882255", _stroke(n), "o")
            fit = fits.get((regime, n))
            power = f": $d^{{\\,{fit['exponent']:.2f}}}$" if fit else ""
            labels[gain_panel, name] = f"{_power_of_two(n)}{power}"
        for key, ratio in tables.row_ratios(law).items():
            name, stroke = ROWS[key]
            rows += drawing.values(
                gain_panel, name, ratio.index, ratio, "curve"
            )
            styles[name] = style("#595959", stroke)
            power = f"$d^{{\\,{tables.slope(list(ratio.index), ratio):.2f}}}$"
            labels[gain_panel, name] = f"{name}, {power}"
    axes = {"xlabel": "$d$", "ylabel": "excess / start"}
    axes |= {"xscale": "log", "yscale": "log"}
    return Picture(
        drawing.frame(rows),
        titles,
        axes,
        panel_axes,
        columns=2,
        size=(3.4, 2.4),
        styles=styles,
        labels=labels,
        is_named=True,
        ticks=sorted(table["d"].unique()),
        note="line: expectation; dot: draws of the law; cross: runs of the solver",
    )


def _stroke(n: int) -> str:
    return "-" if n > SMALL else "--"


def _power_of_two(n: int) -> str:
    return f"$n = 2^{{{int(np.log2(n))}}}$"


def _excess(
    panel: str,
    table: pd.DataFrame,
    style_of: dict[str, Style],
    labels: dict[tuple[str, str], str],
) -> Rows:
    """Excess over its start: expected, drawn from the law, and run by the solver."""
    rows = Rows()
    colours = styles_of(table["algorithm"].unique())
    table = table.assign(share=table["excess"] / table["start"])
    for (name, n), runs in table.groupby(["algorithm", "n"], sort=False):
        first_rows = runs.groupby("d")[["expected", "start"]].first()
        expected = first_rows["expected"] / first_rows["start"]
        line = f"{name} (n = {n})"
        labels[panel, line] = f"{name}, {_power_of_two(n)}"
        rows += drawing.values(panel, line, expected.index, expected, "curve")
        style_of[line] = style(colours[name]["color"], _stroke(n))
        for source, mark in (("law", "o"), ("solver", "x")):
            dots = f"{name} ({source}, n = {n})"
            drawn = runs[runs["source"] == source]
            rows += drawing.against(drawn, "d", "share", panel, dots, "dots")
            style_of[dots] = style(colours[name]["color"], "none", mark)
    return rows


INSTANCES = {"separable": "#332288", "ill-conditioned": "#CC6677"}
LENGTHS = {"theorem": "the theorem's $K$", "best": "the best $K$"}
CONVEX = "Table 1, convex row"


def placement(swept: pd.DataFrame) -> Picture:
    """Excess of importance over uniform draws, by the placement of the optimum."""
    table = tables.placement(swept)
    orders = table[table["question"] != tables.CONTROL]
    orders = orders.rename(columns={"placement": "x", "ratio": "mean"})
    band = float(table["band"].max())
    rows = Rows()
    styles = dict[str, Style]()
    for length, length_rows in orders.groupby("length", sort=False):
        panel = str(length)
        for name, runs in length_rows.groupby("instance", sort=False):
            points = runs.assign(panel=panel, algorithm=name, role="points")
            points = points.assign(min=runs["mean"], max=runs["mean"])
            rows += points[[*drawing.CURVE_COLUMNS, drawing.ROLE]].to_dict(
                "records"
            )
            curve = f"{name}, expected"
            rows += drawing.values(
                panel, curve, runs["x"], runs["expected"], "line"
            )
            styles[str(name)] = style(INSTANCES[str(name)], "none", "o")
        bound = length_rows.groupby("x")["predicted"].first()
        rows += drawing.values(panel, CONVEX, bound.index, bound, "curve")
        level = {"panel": panel, "algorithm": "band of controls", "mean": 1.0}
        ends = {"ci_low": 1 / band, "ci_high": band, "x": math.nan}
        rows.append(level | ends | {"role": "level"})
    axes = {
        "xlabel": "placement $a$: $|w^*_j| = M_j^a$ (the regime is $a > 0$)"
    }
    axes |= {"ylabel": "importance / uniform", "yscale": "log"}
    styles |= {
        CONVEX: style("#595959", "--"),
        "band of controls": style("#595959", "-"),
    }
    panel_titles = {
        name: title
        for name, title in LENGTHS.items()
        if name in {*table["length"]}
    }
    return Picture(
        drawing.frame(rows),
        panel_titles,
        axes,
        columns=2,
        size=(3.1, 2.7),
        styles=styles,
        shared="all",
        ticks=(-1, -0.5, 0, 0.5, 1),
        note="dotted: exact expectation",
    )
