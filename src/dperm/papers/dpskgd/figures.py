"""Figures of Maranjyan et al. 2024 (DP-SkGD): the experiments it announces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from dperm import schema
from dperm.papers.dpskgd import exponents, partitions, rate_panels
from dperm.papers.dpskgd import rates as measures
from dperm.papers.dpskgd import samplings as draws
from dperm.pipeline import inputs, plan, results
from dperm.pipeline.results import Result
from dperm.present import drawing
from dperm.present.drawing import Rows

# family of samplings: colour, line style, marker
FAMILIES: dict[str, tuple[str, Any, str]] = {
    "uniform": ("#0072B2", "-", "o"),
    "importance": ("#D55E00", "--", "s"),
    "nice": ("#009E73", ":", "D"),
}
LEVELS: dict[str, tuple[str, Any]] = {
    "DP-SGD": ("#000000", "-."),
    "DP-SVRG": ("#CC79A7", (0, (4, 1, 1, 1))),
    "DP-CD": ("#56B4E9", (0, (1, 1))),
}
SHADE: Any = {"color": "#009E73", "alpha": 0.08, "linewidth": 0}
MARKS = "osD^vP*X<>hp"


# --- (a), (b) -------------------------------------------------------------------------


def samplings(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Relative error against the number of blocks, one panel a problem.

    tau-nice sampling stands at p / tau; methods that are no sketches are levels.
    """
    found = results.load(config, problems)
    titles = results.titles(config, problems)
    figure, axes = drawing.panels(len(problems), product.options.get("columns", 2))
    rows: Rows = []
    for name, at in zip(problems, axes, strict=True):
        at.set_title(titles[name].title)
        lost = [result.reason for result in found[name] if not result.available]
        if lost:
            drawing.empty(at, lost[0])
        else:
            p = len(inputs.load_optimum(plan.at_problem(config, name)).w)
            rows += _sampled(at, name, found[name], product.calibration, p)
    drawing.shared_legend(figure, 6 if len(problems) > 1 else 2)
    return figure, rows


def _sampled(
    axes: Axes, name: str, found: list[Result], calibration: str, p: int
) -> Rows:
    families: dict[str, Rows] = {family: [] for family in FAMILIES}
    levels: Rows = []
    for result in found:
        values = result.final(calibration)["relative_error"].to_numpy()
        family = draws.family(result.solver)
        x = draws.blocks(result.solver, p) if family else 0.0
        row = drawing.summary(name, result.label, x, values)
        (families[family] if family else levels).append(row)
    for row in levels:
        colour, line = LEVELS[row["algorithm"]]
        label = {"DP-CD": "DP-CD, cyclic"}.get(row["algorithm"], row["algorithm"])
        axes.axhline(row["mean"], color=colour, linestyle=line, label=label)
        axes.axhspan(row["ci_low"], row["ci_high"], color=colour, alpha=0.1, lw=0)
    _join_full(families)
    for family, drawn in families.items():
        _family(axes, family, pd.DataFrame(sorted(drawn, key=lambda row: row["x"])))
    axes.set(xscale="log", yscale="log", ylabel="relative error",
             xlabel="blocks $b$ (1 full, $p$ single)")  # fmt: skip
    ticks = sorted({row["x"] for drawn in families.values() for row in drawn})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    return levels + [row for drawn in families.values() for row in drawn]


def _join_full(families: dict[str, Rows]) -> None:
    """One block is drawn whatever its probability: importance starts there too."""
    full = [row for row in families["uniform"] if row["x"] == 1.0]
    if families["importance"]:
        families["importance"] += full


def _family(axes: Axes, family: str, table: pd.DataFrame) -> None:
    if not len(table):
        return
    label = {"nice": r"$\tau$-nice"}.get(family, family)
    _errorbars(axes, table, *FAMILIES[family], label)


# --- (c) ------------------------------------------------------------------------------


def regimes(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Section 4.3: excess against d, and the gain with its exponent."""
    table = exponents.relative(results.load_sweep(config, "regimes"))
    fits = {(row["regime"], row["n"]): row for row in exponents.fitted(table)}
    names = list(table["regime"].unique())
    figure, axes = drawing.panels(2 * len(names), 2)
    rows: Rows = []
    for regime, left, right in zip(names, axes[::2], axes[1::2], strict=True):
        part = table[table["regime"] == regime]
        rows += _excess(left, regime, part)
        rows += _gain(right, regime, part, fits)
        for at in (left, right):
            _powers(at, sorted(part["d"].unique()))
            _headroom(at)
            at.legend(loc="upper left", fontsize=6.5, frameon=False)
    return figure, rows


TITLES = {
    "flat": "One small $M_1$, the rest solved",
    "steep": "One large $M_1$, which matters",
}


def _excess(axes: Axes, regime: str, table: pd.DataFrame) -> Rows:
    rows: Rows = []
    colours = ("#D55E00", "#0072B2")
    lines = dict(zip(sorted(table["n"].unique()), ("--", "-"), strict=False))
    for colour, name in zip(colours, table["algorithm"].unique(), strict=True):
        for n, line in lines.items():
            part = table[(table["algorithm"] == name) & (table["n"] == n)]
            expected = part.groupby("d")["expected_share"].first()
            label = f"{name}, $n = 2^{{{int(np.log2(n))}}}$"
            axes.plot(expected.index, expected, color=colour, linestyle=line,
                      label=label)  # fmt: skip
            for source, mark in (("law", "o"), ("solver", "x")):
                seen = part[part["source"] == source]
                named = f"{name} ({source}, n = {n})"
                for d, group in seen.groupby("d"):
                    values = group["share"].to_numpy()
                    row = drawing.summary(f"{regime}: excess", named, float(d), values)
                    axes.plot(d, row["mean"], mark, color=colour, markersize=4)
                    rows.append(row)
    axes.axhline(0.5, color="0.6", linewidth=0.8, linestyle=":")
    axes.set(xscale="log", yscale="log", xlabel="$d$", ylabel="excess / start",
             title=TITLES[regime])  # fmt: skip
    return rows


def _gain(axes: Axes, regime: str, table: pd.DataFrame, fits: dict) -> Rows:
    rows: Rows = []
    worse, better = table["algorithm"].unique()
    gains = exponents.gains(table).items()
    for colour, (n, gain) in zip(("#56B4E9", "#0072B2"), gains, strict=False):
        label = f"$n = 2^{{{int(np.log2(n))}}}$"
        if fit := fits.get((regime, n)):
            label += (rf": $d^{{\,{fit['exponent']:.2f}}}$ "
                      f"[{fit['ci_low']:.2f}, {fit['ci_high']:.2f}]")  # fmt: skip
        axes.plot(gain.index, gain, "o-", color=colour, markersize=4, label=label)
        rows += _single(f"{regime}: gain", f"{worse} / {better} (n = {n})", gain)
    told = exponents.predicted(table)
    for key, line in (("convex", ":"), ("strong", "-.")):
        bound, slope = told[key]
        name = {"convex": "convex", "strong": "strongly convex"}[key]
        axes.plot(bound.index, bound, color="0.35", linestyle=line,
                  label=rf"Table 1, {name}: $d^{{\,{slope:.2f}}}$")  # fmt: skip
        rows += _single(f"{regime}: gain", f"Table 1, {name}", bound)
    axes.set(xscale="log", yscale="log", xlabel="$d$",
             ylabel=f"{worse} / {better}", title="Gain")  # fmt: skip
    return rows


def _single(panel: str, algorithm: str, values: pd.Series) -> Rows:
    """Rows of a curve that has one value at each x."""
    return [
        drawing.summary(panel, algorithm, float(x), np.array([value]))
        for x, value in values.items()
    ]


def _headroom(axes: Axes, share: float = 0.45) -> None:
    """Room for a legend above the curves of a logarithmic panel."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** share)


def _powers(axes: Axes, values: list[float]) -> None:
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.xaxis.set_minor_locator(NullLocator())


# --- (d) ------------------------------------------------------------------------------


BLOCKS: dict[str, tuple[str, Any, str]] = {
    "single": ("#0072B2", "-", "o"),
    "single IS": ("#0072B2", "--", "s"),
    "aligned": ("#009E73", "-", "D"),
    "aligned IS": ("#009E73", "--", "v"),
    "misaligned": ("#D55E00", "-", "^"),
    "misaligned IS": ("#D55E00", "--", "P"),
    "random": ("#CC79A7", "-", "<"),
    "random IS": ("#CC79A7", "--", ">"),
    "full": ("#000000", "-.", "x"),
}


def blocks(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Relative error against the spread of smoothness between groups."""
    table = results.load_sweep(config, "blocks")
    correlations = sorted(table["correlation"].unique())
    figure, axes = drawing.panels(len(correlations), len(correlations))
    rows: Rows = []
    for correlation, at in zip(correlations, axes, strict=True):
        part = table[table["correlation"] == correlation]
        panel = f"correlation {correlation:g} within groups"
        for method, group in part.groupby("method", sort=False):
            drawn = [
                drawing.summary(panel, method, float(ratio), partitions.errors(seen))
                for ratio, seen in group.groupby("ratio")
            ]  # fmt: skip
            _errorbars(at, pd.DataFrame(drawn), *BLOCKS[method], method)
            rows += drawn
        at.set(xscale="log", yscale="log", ylabel="relative error", title=panel,
               xlabel="largest / smallest smoothness of a group")  # fmt: skip
        _powers(at, sorted(table["ratio"].unique()))
    drawing.shared_legend(figure, 5)
    return figure, rows


def _errorbars(
    axes: Axes, table: pd.DataFrame, colour: str, line: Any, marker: str, label: str
) -> None:
    mean, low, high = (table[key].to_numpy() for key in ("mean", "ci_low", "ci_high"))
    down = np.minimum(mean - low, 0.95 * mean)  # a logarithmic axis has no zero
    axes.errorbar(table["x"].to_numpy(), mean, yerr=np.stack((down, high - mean)),
                  color=colour, linestyle=line, marker=marker, markersize=4, capsize=2,
                  label=label)  # fmt: skip


# --- (e) ------------------------------------------------------------------------------


def theory(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Bounds of Table 1 against errors, both over those of single uniform sampling."""
    from dperm.papers.dpskgd.bounds import over_single_uniform  # wakes the solvers

    found = results.load(config, problems)
    titles = results.titles(config, problems)
    figure, axes = drawing.panels(2, 2)
    rows: Rows = []
    for mark, name in zip(MARKS, problems, strict=False):
        ratios = over_single_uniform(config, name, found[name], product.calibration)
        for at, points in zip(axes, ratios.values(), strict=True):
            if any(ratios.values()):
                _points(at, mark, titles[name].title, points)
            rows += points
    for at, key in zip(axes, ("convex", "strongly convex"), strict=True):
        _quadrants(at, f"{key} row of Table 1")
    for family, (colour, _, _) in FAMILIES.items():
        axes[0].plot([], [], "s", color=colour, markersize=5, label=family)
    axes[0].plot([], [], "s", color="#000000", markersize=5, label="no sketch")
    drawing.shared_legend(figure, 3)
    return figure, rows


def _points(axes: Axes, mark: str, title: str, points: Rows) -> None:
    for row in points:
        family = draws.family(row["algorithm"])
        colour = FAMILIES[family][0] if family else "#000000"
        axes.plot(row["x"], row["mean"], mark, color=colour, markersize=5, alpha=0.8)
    axes.plot([], [], mark, color="0.4", markersize=5, label=title)


def _quadrants(axes: Axes, title: str) -> None:
    axes.set(xscale="log", yscale="log", title=title,
             xlabel="bound / bound of single uniform",
             ylabel="error / error of single uniform")  # fmt: skip
    left, right = min(axes.get_xlim()[0], 0.3), max(axes.get_xlim()[1], 3.0)
    low, high = min(axes.get_ylim()[0], 0.3), max(axes.get_ylim()[1], 3.0)
    axes.fill_between([left, 1.0], low, 1.0, **SHADE)
    axes.fill_between([1.0, right], 1.0, high, **SHADE)
    axes.axhline(1.0, color="0.5", linewidth=0.8)
    axes.axvline(1.0, color="0.5", linewidth=0.8)
    axes.set(xlim=(left, right), ylim=(low, high))


# --- Theorem 4.2 at its own parameters ------------------------------------------------


def rates(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Excess against n beside the bound, the exponents, the band of the controls."""
    swept = results.load_sweep(config, product.sweeps[0])
    beside = pd.DataFrame(measures.beside_bounds(swept))
    whole = beside[beside["epsilon"] == beside["epsilon"].max()]
    groups = list(whole.groupby(["case", "instance"], sort=False))
    figure, axes = drawing.panels(len(groups) + 2, 3)
    rows: Rows = []
    for at, ((case, instance), part) in zip(axes, groups, strict=False):
        rows += rate_panels.excess(at, f"{case}, {instance}", part)
    drawing.shared_legend(figure, 7)  # the others have legends of their own
    rows += rate_panels.exponents(axes[-2], measures.exponents(swept))
    rows += rate_panels.band(axes[-1], measures.enough(swept, product.options["keys"]))
    return figure, rows


LENGTHS = {"theorem": "the theorem's $K$", "best": "the best $K$"}


def placement(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Importance over uniform draws, by where the optimum sits among the M_j."""
    swept = results.load_sweep(config, product.sweeps[0])
    table = pd.DataFrame(measures.orders(swept, product.options["keys"]))
    asked = table[table["question"] != measures.CONTROL]
    figure, axes = drawing.panels(asked["length"].nunique(), 2)
    rows: Rows = []
    for at, (length, part) in zip(
        axes, asked.groupby("length", sort=False), strict=True
    ):
        for instance, seen in part.groupby("instance", sort=False):
            rows += rate_panels.ratios(at, str(length), str(instance), seen)
        rate_panels.regime(at, part, float(table["band"].max()))
        at.set_title(LENGTHS[str(length)])
    drawing.shared_legend(figure, 4)
    return figure, rows
