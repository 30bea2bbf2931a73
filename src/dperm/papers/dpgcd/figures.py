"""Figures of Mangold et al. 2023 (DP-GCD)."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dperm import schema
from dperm.kinds.figures import TITLES
from dperm.papers.dpgcd import growing, optima
from dperm.pipeline import inputs, plan, results
from dperm.present import drawing, looks
from dperm.present.curves import against
from dperm.present.drawing import Rows


def histograms(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figure 2: histograms of the absolute values of w*, counts on a logarithmic axis.

    The line is at alpha, the largest value but five: w* is (alpha, 5)-quasi-sparse.
    In the data behind it a row is a bin: x its middle, min and max its edges.
    """
    titles = results.titles(config, problems)
    figure, axes = drawing.panels(len(problems), product.options.get("columns", 4))
    rows: Rows = []
    for name, at in zip(problems, axes, strict=True):
        at.set_title(TITLES["penalty"](titles[name]))
        composed = plan.at_problem(config, name)
        if inputs.load_optimum_record(composed, name).get("status") == "unavailable":
            drawing.empty(at, drawing.UNAVAILABLE)
            continue
        rows += _histogram(at, name, inputs.load_optimum(composed).w)
    return figure, rows


def _histogram(axes: Axes, name: str, w: np.ndarray) -> Rows:
    counts, edges = optima.histogram(w)
    alpha = optima.quasi_sparse(w)
    blue, purple = "#0072B2", "#882255"
    axes.bar(edges[:-1], counts, np.diff(edges), align="edge", color=blue, alpha=0.8)
    axes.axvline(alpha, color=purple, label=f"$\\alpha$ = {alpha:.3g}")
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.7)
    axes.set_xlabel("$|w^*_j|$")
    axes.set_ylabel("coordinates")
    title = f"{np.count_nonzero(w)} of {len(w)} not 0"
    axes.legend(loc="upper right", title=title, frameon=False)
    middles = (edges[1:] + edges[:-1]) / 2
    bins = zip(middles, counts, edges[:-1], edges[1:], strict=True)
    rows: Rows = [
        {"panel": name, "algorithm": "|w*|", "x": x, "mean": count, "min": low,
         "max": high}
        for x, count, low, high in bins
    ]  # fmt: skip
    return [*rows, {"panel": name, "algorithm": "alpha", "x": alpha}]


def noise(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """What equation 2 really costs against the rounds, and the noise epsilon = 1 needs.

    Left: true epsilon of the published noise if two epsilon' hold. Right: noise that
    the target needs, over the published, for two kinds of selection noise.
    """
    from dperm.papers.dpgcd.noise import ROUNDS, SIZES, against_rounds  # accountants

    figure, (left, right) = drawing.panels(2, 2)
    rows: Rows = []
    for colour, n in zip(("#0072B2", "#D55E00", "#009E73"), SIZES, strict=True):
        found, label = against_rounds(n), f"n = {n}"
        left.plot(ROUNDS, found["true"], "o-", color=colour, markersize=3, label=label)
        rows += _noise_rows("true epsilon", label, ROUNDS, found["true"])
        for look, kind in (("o-", "laplace"), ("s--", "gumbel")):
            name = f"{label}, {kind}"
            right.plot(ROUNDS, found[kind], look, color=colour, markersize=3,
                       label=name)  # fmt: skip
            rows += _noise_rows("noise ratio", name, ROUNDS, found[kind])
    left.set_title("True $\\epsilon$ of the published noise")
    right.set_title("Noise needed / published noise")
    for at in (left, right):
        at.axhline(1.0, color="0.3", linewidth=0.8)
        at.set_xlabel("rounds T")
        at.legend(fontsize=6.5, frameon=False)
    return figure, rows


def _noise_rows(
    panel: str, label: str, rounds: tuple[int, ...], values: list[float]
) -> Rows:
    return [
        {"panel": panel, "algorithm": label, "x": T, "mean": value}
        for T, value in zip(rounds, values, strict=True)
    ]


GROWTH = {
    "p": ("features $p$", "log"),
    "tau": ("coefficients that are not 0", "log"),
    "imbalance": ("spread of $\\log \\sqrt{M_j}$", "linear"),
}


LOWEST = 1e-6  # of what is shown: DP-FW is exact where w* is a corner of its ball


def growth(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Excess over that of w = 0 against p, for each n, and against the other knobs."""
    swept = results.load_sweep(config, product.sweeps[0])
    parts = [
        (knob, f"n = {n}", part)
        for knob in GROWTH
        for n, part in growing.along(swept, knob).groupby("n")
        if part[knob].nunique() > 1
    ]
    figure, axes = drawing.panels(max(1, len(parts)), 3)
    chosen = looks.of(swept["algorithm"].unique())
    rows: Rows = []
    for (knob, title, part), at in zip(parts, axes, strict=False):
        label, scale = GROWTH[knob]
        panel = f"{knob}, {title}"
        for name, group in part.groupby("algorithm", sort=False):
            curve = against(group.assign(algorithm=name), knob, "share", panel, name)
            drawing.band(at, curve, name, chosen[name])
            rows += curve
        at.axhline(1.0, color="0.6", linewidth=0.8, linestyle=":", label="w = 0")
        at.set(title=title, xlabel=label, xscale=scale, yscale="log",
               ylabel="excess over that of w = 0")  # fmt: skip
        at.set_ylim(bottom=max(at.get_ylim()[0], LOWEST))
    drawing.shared_legend(figure, 5)
    return figure, rows
