"""Figures of Mangold et al. 2023 (DP-GCD)."""

from __future__ import annotations

import numpy as np

from dperm.core.experiment import plan, results
from dperm.core.experiment.schema import Config, Product
from dperm.kinds.figures import TITLES, panels_of
from dperm.papers.dpgcd import growing
from dperm.pipeline import inputs
from dperm.present import drawing, looks
from dperm.present.drawing import Drawing, Panels, Rows

SPARSITY = 5  # tau of Figure 2
BLUE, PURPLE = "#0072B2", "#882255"


def histograms(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 2: histograms of the absolute values of w*, counts on a logarithmic axis.

    The line is at alpha, the sixth largest value: w* is (alpha, 5)-quasi-sparse. In the
    figure's data a row is a bin: x its middle, min and max its edges. Problems without
    data are named in the figure.
    """
    at = {name: plan.at_problem(config, name) for name in problems}
    status = {name: inputs.load_optimum_record(at[name], name) for name in problems}
    lost = [name for name in problems if status[name].get("status") == "unavailable"]
    gone = dict.fromkeys(lost, drawing.UNAVAILABLE)
    there, panels, absent = panels_of(config, product, problems, gone)
    for (name, problem), axes in zip(there.items(), panels.axes, strict=False):
        w = inputs.load_optimum(at[name]).w
        counts, edges = np.histogram(np.abs(w), bins=30)
        alpha = quasi_sparse(w)
        words = f"{np.count_nonzero(w)} of {len(w)} not 0, $\\alpha$ = {alpha:.3g}"
        axes.set_title(f"{TITLES['penalty'](problem)}\n{words}")
        axes.bar(edges[:-1], counts, np.diff(edges), align="edge", color=BLUE)
        axes.axvline(
            alpha, color=PURPLE, label="$\\alpha$ of $(\\alpha, 5)$-quasi-sparse"
        )
        axes.set(yscale="log", xlabel="$|w^*_j|$", ylabel="coordinates")
        axes.set_ylim(bottom=0.7)
        rows: Rows = []
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
            row = {"panel": name, "algorithm": "|w*|", "x": (high + low) / 2}
            rows.append(row | {"mean": count, "min": low, "max": high})
        panels.rows += rows
        panels.rows.append({"panel": name, "algorithm": "alpha", "x": alpha})
    return panels.done(1, title=absent)


def quasi_sparse(w: np.ndarray, sparsity: int = SPARSITY) -> float:
    """The least alpha for which w (p,) is (alpha, sparsity)-quasi-sparse."""
    values = np.sort(np.abs(w))[::-1]
    return float(values[sparsity]) if len(values) > sparsity else 0.0


GROWTH = {
    "p": ("features $p$", "log"),
    "tau": ("coefficients that are not 0", "log"),
    "imbalance": ("spread of $\\log \\sqrt{M_j}$", "linear"),
}


LOWEST = 1e-6  # end of the axis: DP-FW is exact where w* is a corner of its ball


def growth(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Excess over that of w = 0 against p, for each n, and against the other knobs."""
    swept = results.load_sweep(config, product.sweeps[0])
    parts = [
        (knob, f"n = {n}", part)
        for knob in GROWTH
        for n, part in growing.along(swept, knob).groupby("n")
        if part[knob].nunique() > 1
    ]
    panels = Panels(len(parts))
    chosen = looks.of(swept["algorithm"].unique())
    for (knob, title, part), at in zip(parts, panels.axes, strict=False):
        label, scale = GROWTH[knob]
        panel = f"{knob}, {title}"
        for name, group in part.groupby("algorithm", sort=False):
            panels.mean(at, group, knob, "share", panel, name, chosen[name])
        at.axhline(1.0, color="0.6", linewidth=0.8, linestyle=":", label="w = 0")
        at.set(title=title, xlabel=label, ylabel="excess / that of $w$ = 0")
        at.set(xscale=scale, yscale="log")
        at.set_ylim(bottom=max(at.get_ylim()[0], LOWEST))
    return panels.done(5)
