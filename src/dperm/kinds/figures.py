"""Figures of Mangold et al. 2022 (DP-CD)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dperm import schema
from dperm.pipeline import results
from dperm.present import drawing

Rows = list[dict[str, Any]]


def trajectories(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figures 1, 2 and 3: relative error along the chosen runs, one panel a problem.

    Each algorithm runs its best number of passes; mean, min and max over fresh seeds.
    ``options.x`` is ``passes`` or ``seconds``; ``options.leave_out`` names solvers.
    """
    axis = product.options.get("x", "passes")
    found = results.load(config, problems, product.options.get("leave_out", ()))
    titles = results.titles(config, problems)
    figure, axes = drawing.panels(len(problems), product.options.get("columns", 3))
    rows: Rows = []
    for name, at in zip(problems, axes, strict=True):
        at.set_title(_title(titles[name]))
        lost = [result.reason for result in found[name] if not result.available]
        if lost:
            drawing.empty(at, lost[0])
            continue
        for result in found[name]:
            rows += _curve(at, result, product.calibration, axis)
        _finish(at, axis)
    return figure, rows


def _title(problem: schema.Problem) -> str:
    return f"{problem.title}, $\\epsilon$ = {problem.privacy.epsilon:g}"


def _curve(axes: Axes, result: results.Result, calibration: str, axis: str) -> Rows:
    passes = result.best_passes(calibration)
    runs = result.trajectories(calibration, passes)
    rows = []
    for checkpoint, group in runs.groupby("checkpoint"):
        x = checkpoint if axis == "passes" else group["seconds"].mean()
        values = group["relative_error"].to_numpy()
        rows.append(drawing.summary(result.problem, result.label, float(x), values))
    true = runs["true_epsilon"].iloc[0]
    label = f"{result.label} (true $\\epsilon$ {true:#.2g})"
    drawing.curve(axes, pd.DataFrame(rows), result.label, label)
    return rows


def _finish(axes: Axes, axis: str) -> None:
    axes.set_yscale("log")
    axes.set_ylabel("relative error")
    if axis == "passes":
        axes.set_xlabel("passes on data")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:  # the start, at 0 seconds, has no place on a logarithmic axis
        axes.set_xlabel("seconds")
        axes.set_xscale("log", nonpositive="mask")
        start = float(np.asarray(axes.lines[0].get_ydata())[0])
        axes.axhline(start, color="0.6", linewidth=0.8, linestyle=":", label="w = 0")
        low, high = axes.get_ylim()  # room for the legend below the curves
        axes.set_ylim(bottom=low * (low / high) ** 0.4)
    axes.legend(loc="best" if axis == "passes" else "lower left")
