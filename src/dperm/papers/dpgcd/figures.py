"""Figures of Mangold et al. 2023 (DP-GCD)."""

from __future__ import annotations

import numpy as np

from dperm.core.experiment import plan, results
from dperm.core.experiment.schema import Config, Product
from dperm.kinds.figures import TITLES
from dperm.papers.dpgcd import growing
from dperm.pipeline import inputs
from dperm.present import drawing, looks
from dperm.present.drawing import Drawing, Panels, Rows

SPARSITY = 5  # tau of Figure 2


def histograms(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 2: histograms of the absolute values of w*, counts on a logarithmic axis.

    The line is at alpha, the largest value but five: w* is (alpha, 5)-quasi-sparse.
    In the data behind it a row is a bin: x its middle, min and max its edges.
    """
    titles = results.titles(config, problems)
    panels = Panels(len(problems), product.options.get("columns", 4))
    for name, at in panels.over(problems):
        at.set_title(TITLES["penalty"](titles[name]))
        composed = plan.at_problem(config, name)
        if inputs.load_optimum_record(composed, name).get("status") == "unavailable":
            drawing.empty(at, drawing.UNAVAILABLE)
            continue
        w = inputs.load_optimum(composed).w
        counts, edges = np.histogram(np.abs(w), bins=30)
        alpha = quasi_sparse(w)
        blue, purple = "#0072B2", "#882255"
        at.bar(edges[:-1], counts, np.diff(edges), align="edge", color=blue, alpha=0.8)
        at.axvline(alpha, color=purple, label=f"$\\alpha$ = {alpha:.3g}")
        at.set(yscale="log", xlabel="$|w^*_j|$", ylabel="coordinates")
        at.set_ylim(bottom=0.7)
        title = f"{np.count_nonzero(w)} of {len(w)} not 0"
        at.legend(loc="upper right", title=title, frameon=False)
        rows: Rows = []
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
            row = {"panel": name, "algorithm": "|w*|", "x": (high + low) / 2}
            rows.append(row | {"mean": count, "min": low, "max": high})
        panels.add(at, rows, {"color": blue})
        line = {"panel": name, "algorithm": "alpha", "x": alpha}
        panels.add(at, [line], {"color": purple})
    return panels.figure, panels.rows


def quasi_sparse(w: np.ndarray, sparsity: int = SPARSITY) -> float:
    """The least alpha for which w (p,) is (alpha, sparsity)-quasi-sparse."""
    values = np.sort(np.abs(w))[::-1]
    return float(values[sparsity]) if len(values) > sparsity else 0.0


def noise(config: Config, product: Product, problems: list[str]) -> Drawing:
    """What equation 2 really costs against the rounds, and the noise epsilon = 1 needs.

    Left: true epsilon of the published noise if two epsilon' hold. Right: noise that
    the target needs, over the published, for two kinds of selection noise.
    """
    from dperm.papers.dpgcd.proofs import ROUNDS, SIZES, against_rounds  # accountants

    panels = Panels(2, 2)
    left, right = panels.axes
    for colour, n in zip(("#0072B2", "#D55E00", "#009E73"), SIZES, strict=True):
        costs, label = against_rounds(n), f"n = {n}"
        dots, squares = looks.look(colour, "-", "o"), looks.look(colour, "--", "s")
        for at, panel, name, key, look in (
            (left, "true epsilon", label, "true", dots),
            (right, "noise ratio", f"{label}, laplace", "laplace", dots),
            (right, "noise ratio", f"{label}, gumbel", "gumbel", squares),
        ):
            at.plot(ROUNDS, costs[key], markersize=3, label=name, **look)
            rows: Rows = [
                {"panel": panel, "algorithm": name, "x": T, "mean": value}
                for T, value in zip(ROUNDS, costs[key], strict=True)
            ]
            panels.add(at, rows, look)
    left.set_title("True $\\epsilon$ of the published noise")
    right.set_title("Noise needed / published noise")
    for at in panels.axes:
        at.axhline(1.0, color="0.3", linewidth=0.8)
        at.set_xlabel("rounds T")
        at.legend(fontsize=6.5, frameon=False)
    return panels.figure, panels.rows


GROWTH = {
    "p": ("features $p$", "log"),
    "tau": ("coefficients that are not 0", "log"),
    "imbalance": ("spread of $\\log \\sqrt{M_j}$", "linear"),
}


LOWEST = 1e-6  # of what is shown: DP-FW is exact where w* is a corner of its ball


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
        at.set(title=title, xlabel=label, ylabel="excess over that of w = 0")
        at.set(xscale=scale, yscale="log")
        at.set_ylim(bottom=max(at.get_ylim()[0], LOWEST))
    return panels.done(5)
