"""Figures of Mangold et al. 2023 (DP-GCD)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.config.schema import Product
from dperm.experiments import results
from dperm.experiments.inputs import (
    Inputs,
    load_optimum,
    optimum_record,
    titles,
)
from dperm.papers.dpgcd import growing
from dperm.papers.shared.figures import TITLES, told
from dperm.plotting import drawing
from dperm.plotting.drawing import Picture, Rows
from dperm.plotting.styles import style
from dperm.plotting.tables import where

SPARSITY = 5  # tau of Figure 2


def histograms(inputs: Inputs, problems: list[str]) -> Picture:
    """Figure 2: histograms of the absolute values of w*, counts on a logarithmic axis.

    The line is at alpha, the sixth largest value: w* is (alpha, 5)-quasi-sparse. In the
    figure's data a row is a bin: x its middle, min and max its edges. Problems without
    data are named in the figure.
    """
    rows = Rows()
    gone = dict[str, str]()
    panel_titles = dict[str, str]()
    sections = titles(inputs, problems)
    for name, section in sections.items():
        if optimum_record(section, inputs.data).get("status") == "unavailable":
            gone[name] = drawing.UNAVAILABLE
            continue
        sizes = np.abs(load_optimum(section, inputs.data).w)
        alpha = quasi_sparse(sizes)
        bar = {"panel": name, "algorithm": "|w*|"}
        support = f"{np.count_nonzero(sizes)} of {len(sizes)} not 0"
        head = TITLES["penalty"](section)
        panel_titles[name] = f"{head}\n{support}, $\\alpha$ = {alpha:.3g}"
        counts, edges = np.histogram(sizes, bins=30)
        for low, high, count in zip(
            edges[:-1], edges[1:], counts, strict=True
        ):
            row = {
                "x": (high + low) / 2,
                "mean": count,
                "min": low,
                "max": high,
            }
            rows.append(bar | row | {"role": "bar"})
        rows.append(
            bar | {"algorithm": "alpha", "x": alpha, "role": "upright"}
        )
    axes = {"xlabel": "$|w^*_j|$", "ylabel": "coordinates", "yscale": "log"}
    bars = drawing.frame(
        pd.DataFrame(rows, columns=[*drawing.CURVE_COLUMNS, "role"])
    )
    note = told(gone, sections)
    return Picture(
        bars, panel_titles, axes, size=(2.3, 1.8), is_named=True, note=note
    )


def quasi_sparse(sizes: np.ndarray) -> float:
    """The least alpha for which weights of these sizes (p,) are quasi-sparse."""
    return (
        float(np.sort(sizes)[-1 - SPARSITY]) if len(sizes) > SPARSITY else 0.0
    )


GROWTH = {"p": "features $p$", "tau": "coefficients that are not 0"}


def growth(swept: pd.DataFrame) -> Picture:
    """Excess over that of w = 0 against p, for each n, and against the other knobs."""
    panels = {}
    for knob in GROWTH:
        for n, runs in growing.along(swept, knob).groupby("n"):
            if runs[knob].nunique() > 1:
                panels[f"{knob}, n = {n}"] = (knob, f"n = {n}", runs)
    rows = Rows()
    panel_axes = dict[str, dict[str, Any]]()
    for panel, (knob, _, runs) in panels.items():
        panel_axes[panel] = {"xlabel": GROWTH[knob], "xscale": "log"}
        for name, group in runs.groupby("algorithm", sort=False):
            rows += drawing.against(group, knob, "share", panel, str(name))
        rows += drawing.values(panel, "w = 0", [np.nan], [1.0], "level")
    titles = {panel: title for panel, (_, title, _) in panels.items()}
    axes = {"ylabel": "excess / that of $w$ = 0", "yscale": "log"}
    points = drawing.frame(rows)
    return Picture(
        points, titles, axes, panel_axes, size=(3.4, 2.1), is_named=True
    )


def selection(folder: Path, product: Product) -> Picture:
    """Excess against p at one number of iterations: the exact law, and runs.

    Dotted lines are what grows like the logarithm of p, and like a power of p, between
    the ends of the law.
    """
    law, runs = (results.load_sweep(folder, name) for name in product.sweeps)
    count = law["iterations"].iloc[0]
    law = where(law, iterations=count)
    runs = where(runs, iterations=count)
    rows: Rows = []
    panels = {
        "log": "$p$ on a logarithmic axis",
        "both": "both axes logarithmic",
    }
    means = law.groupby("p")["share"].mean()
    numbers = np.geomspace(means.index[0], means.index[-1], 40)
    fraction = (np.log(numbers / numbers[0])) / np.log(
        numbers[-1] / numbers[0]
    )
    start = means.iloc[0]
    end = means.iloc[-1]
    for panel in panels:
        for p, group in law.groupby("p"):
            row = drawing.summary(
                panel, "exact law", float(p), group["share"].to_numpy()
            )
            rows.append(row | {"role": "joined"})
        for p, group in runs.groupby("p"):
            row = drawing.summary(
                panel, "runs", float(p), group["share"].to_numpy()
            )
            rows.append(row | {"role": "points"})
        line = start + fraction * (end - start)
        power = start * (end / start) ** fraction
        rows += drawing.values(panel, "log p", numbers, line, "line")
        rows += drawing.values(panel, "power of p", numbers, power, "line")
    axes = {"xlabel": "features $p$", "xscale": "log"}
    axes["ylabel"] = "excess / that of $w$ = 0"
    styles = {
        "exact law": style("#0072B2", "-", "o"),
        "runs": style("#D55E00", "", "s"),
        "log p": style("#0072B2", ":"),
        "power of p": style("#757575", ":"),
    }
    return Picture(
        drawing.frame(rows),
        panels,
        axes,
        {"both": {"yscale": "log"}},
        columns=2,
        size=(3.4, 2.6),
        styles=styles,
        note="dotted: like log p (blue) and like a power of p (grey), through the ends",
    )
