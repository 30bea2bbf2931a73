"""Figures of Mangold et al. 2023 (DP-GCD)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dperm import schema
from dperm.pipeline import inputs, results
from dperm.present import drawing
from dperm.privacy.calibration import calibrate
from dperm.solvers.lanes import dp_gcd

Rows = list[dict[str, Any]]

_SPARSITY = 5  # tau of Figure 2
_BINS = 30


def trajectories(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figures 1, 3 and 4: relative error along the chosen runs, one panel a problem.

    Each algorithm runs its best number of passes; mean, min and max over fresh seeds.
    A dotted line goes on from the end of a run that is shorter than the others.
    ``options.x`` is ``passes`` or ``seconds``, ``options.solvers`` names solvers,
    ``options.names`` gives them other labels.
    """
    options = product.options
    axis, wanted = options.get("x", "passes"), options["solvers"]
    found = results.load(config, problems)
    titles = results.titles(config, problems)
    figure, axes = drawing.panels(len(problems), options.get("columns", 4))
    if len(wanted) > 3:
        figure.set_figwidth(1.6 * figure.get_figwidth())  # legends beside the panels
    rows: Rows = []
    for name, at in zip(problems, axes, strict=True):
        at.set_title(_title(titles[name]))
        lost = [result.reason for result in found[name] if not result.available]
        if lost:
            drawing.empty(at, lost[0])
            continue
        curves = [
            _curve(result, product.calibration, axis, options.get("names", {}))
            for result in found[name]
            if result.solver in wanted and len(result.chosen(product.calibration))
        ]
        _draw(at, curves, axis)
        rows += [row for curve in curves for row in curve[1]]
    return figure, rows


def _title(problem: schema.Problem) -> str:
    kind = f"{problem.loss} + {'L1' if problem.penalty.l1 else 'L2'}".replace("_", " ")
    kind = {"least squares + L1": "LASSO"}.get(kind, kind)
    strength = problem.penalty.l1 or problem.penalty.l2
    return f"{problem.title}\n{kind}, $\\lambda$ = {strength:g}"


def _curve(
    result: results.Result, calibration: str, axis: str, names: dict[str, str]
) -> tuple[str, Rows]:
    """Label for the legend and the points of one algorithm."""
    passes = result.best_passes(calibration)
    runs = result.trajectories(calibration, passes)
    label = names.get(result.solver, result.label)
    rows = []
    for checkpoint, group in runs.groupby("checkpoint"):
        x = checkpoint if axis == "passes" else group["seconds"].mean()
        values = group["relative_error"].to_numpy()
        rows.append(drawing.summary(result.problem, label, float(x), values))
    true = runs["true_epsilon"].iloc[0]
    cost = (
        f"true $\\epsilon$ {true:.2g}" if np.isfinite(true) else "no sound $\\epsilon$"
    )
    return f"{label} ({cost})", rows


def _draw(axes: Axes, curves: list[tuple[str, Rows]], axis: str) -> None:
    last = max(row["x"] for _, rows in curves for row in rows)
    for label, rows in curves:
        name, end = rows[0]["algorithm"], rows[-1]
        drawing.curve(axes, pd.DataFrame(rows), name, label)
        colour = drawing.style(name)["color"]
        axes.plot([end["x"]], [end["mean"]], "o", color=colour, markersize=4)
        if axis == "passes" and end["x"] < last:
            axes.plot([end["x"], last], [end["mean"]] * 2, ":", color=colour, lw=0.9)
    axes.set_yscale("log")
    axes.set_ylabel("relative error")
    axes.set_xlabel("passes on data" if axis == "passes" else "seconds")
    if axis == "seconds":
        times = [row["x"] for _, rows in curves for row in rows if row["x"] > 0]
        axes.set_xscale("symlog", linthresh=min(times))
        axes.set_xlim(left=0.0)
    if len(curves) > 3:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=6.5)
        return
    low, high = axes.get_ylim()  # room for the legend below the curves
    axes.set_ylim(bottom=low * (low / high) ** 0.35)
    axes.legend(loc="lower left", fontsize=6.5)


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
        at.set_title(_title(titles[name]))
        composed = inputs.at_problem(config, name)
        if inputs.load_optimum_record(composed, name).get("status") == "unavailable":
            drawing.empty(at, inputs.unavailable_reason(composed))
            continue
        rows += _histogram(at, name, np.abs(inputs.load_optimum(composed).w))
    return figure, rows


def quasi_sparse(w: np.ndarray, sparsity: int = _SPARSITY) -> float:
    """The least alpha for which w (p,) is (alpha, sparsity)-quasi-sparse."""
    values = np.sort(np.abs(w))[::-1]
    return float(values[sparsity]) if len(values) > sparsity else 0.0


def _histogram(axes: Axes, name: str, values: np.ndarray) -> Rows:
    counts, edges = np.histogram(values, bins=_BINS)
    alpha = quasi_sparse(values)
    blue, purple = "#0072B2", "#882255"
    axes.bar(edges[:-1], counts, np.diff(edges), align="edge", color=blue, alpha=0.8)
    axes.axvline(alpha, color=purple, label=f"$\\alpha$ = {alpha:.3g}")
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.7)
    axes.set_xlabel("$|w^*_j|$")
    axes.set_ylabel("coordinates")
    title = f"{(values > 0).sum()} of {len(values)} not 0"
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
    the target needs, over the published, for three kinds of selection noise.
    """
    sizes = {800: "n = 800", 2600: "n = 2600", 20640: "n = 20640"}
    figure, (left, right) = drawing.panels(2, 2)
    rounds = np.array([1, 2, 3, 4, 5, 7, 10, 15, 20, 30])
    rows: Rows = []
    for colour, (n, label) in zip(("#0072B2", "#D55E00", "#009E73"), sizes.items(),
                                  strict=True):  # fmt: skip
        paper = [_calibrated(n, int(T), "laplace", "paper") for T in rounds]
        true = [found.true_epsilon for found in paper]
        left.plot(rounds, true, "o-", color=colour, markersize=3, label=label)
        rows += _noise_rows("true epsilon", label, rounds, true)
        for look, kind in (("o-", "laplace"), ("s--", "gumbel")):
            strict = [_calibrated(n, int(T), kind, "strict") for T in rounds]
            ratio = [s.noise_multiplier / p.noise_multiplier
                     for s, p in zip(strict, paper, strict=True)]  # fmt: skip
            right.plot(rounds, ratio, look, color=colour, markersize=3,
                       label=f"{label}, {kind}")  # fmt: skip
            rows += _noise_rows("noise ratio", f"{label}, {kind}", rounds, ratio)
    left.set_title("True $\\epsilon$ of the published noise")
    right.set_title("Noise needed / published noise")
    for at in (left, right):
        at.axhline(1.0, color="0.3", linewidth=0.8)
        at.set_xlabel("rounds T")
        at.legend(fontsize=6.5, frameon=False)
    return figure, rows


def _calibrated(n: int, rounds: int, kind: str, calibration: str) -> Any:
    def ledger(multiplier: float) -> Any:
        found = dp_gcd.releases(rounds, multiplier, kind, "", True)
        return found

    return calibrate(ledger, 1.0, n**-2.0, calibration)


def _noise_rows(panel: str, label: str, rounds: np.ndarray, values: list) -> Rows:
    return [
        {"panel": panel, "algorithm": label, "x": int(T), "mean": value}
        for T, value in zip(rounds, values, strict=True)
    ]
