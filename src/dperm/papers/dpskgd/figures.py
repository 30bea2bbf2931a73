"""Figures of Maranjyan et al. 2024 (DP-SkGD): the experiments it announces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dperm.core.experiment import plan, results
from dperm.core.experiment.results import Result
from dperm.core.experiment.schema import Config, Product
from dperm.papers.dpskgd import exponents, partitions, rate_panels
from dperm.papers.dpskgd import rates as measures
from dperm.papers.dpskgd import samplings as draws
from dperm.pipeline import inputs
from dperm.present import drawing
from dperm.present.drawing import Drawing, Panels, Rows, against, log_axes, ticks
from dperm.present.looks import Look, look

FAMILIES = {  # of samplings
    "uniform": look("#0072B2", "-", "o"),
    "importance": look("#D55E00", "--", "s"),
    "nice": look("#009E73", ":", "D"),
}
LEVELS = {
    "DP-SGD": look("#000000", "-."),
    "DP-SVRG": look("#CC79A7", (0, (4, 1, 1, 1))),
    "DP-CD": look("#56B4E9", (0, (1, 1))),
}
SHADE: Any = {"color": "#009E73", "alpha": 0.08, "linewidth": 0}
MARKS = "osD^vP*X<>hp"


# --- (a), (b) -------------------------------------------------------------------------


def samplings(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Relative error against the number of blocks, one panel a problem.

    tau-nice sampling stands at p / tau; methods that are no sketches are levels.
    """
    found = results.load(config, problems)
    titles = results.titles(config, problems)
    panels = Panels(len(problems), product.options.get("columns", 2))
    for name, at in panels.over(problems):
        at.set_title(titles[name].title)
        lost = [result.reason for result in found[name] if not result.available]
        if lost:
            drawing.empty(at, lost[0])
        else:
            p = len(inputs.load_optimum(plan.at_problem(config, name)).w)
            _samplings(panels, at, found[name], product.calibration, p)
    return panels.done(6 if len(problems) > 1 else 2)


def _samplings(
    panels: Panels, axes: Axes, found: list[Result], calibration: str, p: int
) -> None:
    families: dict[str, Rows] = {family: [] for family in FAMILIES}
    for result in found:
        values = result.final(calibration)["relative_error"].to_numpy()
        family = draws.family(result.solver)
        x = draws.blocks(result.solver, p) if family else 0.0
        row = drawing.summary(result.problem, result.label, x, values)
        if family:
            families[family].append(row)
            continue
        style, name = LEVELS[result.label], result.label
        label = {"DP-CD": "DP-CD, cyclic"}.get(name, name)
        axes.axhline(row["mean"], label=label, **style)
        band = {"color": style["color"], "alpha": 0.1, "linewidth": 0}
        axes.axhspan(row["ci_low"], row["ci_high"], **band)
        panels.add(axes, [row], style)
    if families["importance"]:  # one block is drawn whatever its probability
        full = [{**row} for row in families["uniform"] if row["x"] == 1.0]
        families["importance"] += full
    for family, rows in families.items():
        if rows:
            label = {"nice": r"$\tau$-nice"}.get(family, family)
            by_x = sorted(rows, key=lambda row: row["x"])
            _errorbars(axes, by_x, FAMILIES[family], label)
        panels.add(axes, rows, FAMILIES[family])
    log_axes(axes, "blocks $b$ (1 full, $p$ single)", "relative error")
    ticks(axes, {row["x"] for rows in families.values() for row in rows})


# --- (c) ------------------------------------------------------------------------------


def regimes(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Section 4.3: excess against d, and the gain with its exponent."""
    table = exponents.relative(results.load_sweep(config, "regimes"))
    fits = {(row["regime"], row["n"]): row for row in exponents.fitted(table)}
    names = list(table["regime"].unique())
    panels = Panels(2 * len(names), 2)
    axes = panels.axes
    for regime, left, right in zip(names, axes[::2], axes[1::2], strict=True):
        part = table[table["regime"] == regime]
        _excess(panels, left, regime, part)
        _gain(panels, right, regime, part, fits)
        for at in (left, right):
            ticks(at, part["d"].unique())
            _headroom(at)
            at.legend(loc="upper left", fontsize=6.5, frameon=False)
    return panels.figure, panels.rows


TITLES = {
    "flat": "One small $M_1$, the rest solved",
    "steep": "One large $M_1$, which matters",
}


def _excess(panels: Panels, axes: Axes, regime: str, table: pd.DataFrame) -> None:
    colours = ("#D55E00", "#0072B2")
    lines = dict(zip(sorted(table["n"].unique()), ("--", "-"), strict=False))
    for colour, name in zip(colours, table["algorithm"].unique(), strict=True):
        for n, line in lines.items():
            part = table[(table["algorithm"] == name) & (table["n"] == n)]
            expected = part.groupby("d")["expected_share"].first()
            label = f"{name}, $n = 2^{{{int(np.log2(n))}}}$"
            axes.plot(expected.index, expected, label=label, **look(colour, line))
            for source, mark in (("law", "o"), ("solver", "x")):
                seen = part[part["source"] == source]
                panel, title = f"{regime}: excess", f"{name} ({source}, n = {n})"
                rows = against(seen, "d", "share", panel, title)
                for row in rows:
                    axes.plot(row["x"], row["mean"], mark, color=colour, markersize=4)
                panels.add(axes, rows, look(colour, line, mark))
    axes.axhline(0.5, color="0.6", linewidth=0.8, linestyle=":")
    log_axes(axes, "$d$", "excess / start", title=TITLES[regime])


def _gain(
    panels: Panels, axes: Axes, regime: str, table: pd.DataFrame, fits: dict
) -> None:
    worse, better = table["algorithm"].unique()
    gains = exponents.gains(table).items()
    panel = f"{regime}: gain"
    for colour, (n, gain) in zip(("#56B4E9", "#0072B2"), gains, strict=False):
        label = f"$n = 2^{{{int(np.log2(n))}}}$"
        if fit := fits.get((regime, n)):
            label += (rf": $d^{{\,{fit['exponent']:.2f}}}$ "
                      f"[{fit['ci_low']:.2f}, {fit['ci_high']:.2f}]")  # fmt: skip
        name, style = f"{worse} / {better} (n = {n})", look(colour, "-", "o")
        panels.line(axes, panel, name, gain.index, gain, label, markersize=4, **style)
    bounds = exponents.predicted(table)
    for key, name, line in (
        ("convex", "convex", ":"), ("strong", "strongly convex", "-."),
    ):  # fmt: skip
        bound, slope = bounds[key]
        label = rf"Table 1, {name}: $d^{{\,{slope:.2f}}}$"
        style = look("0.35", line)
        panels.line(axes, panel, f"Table 1, {name}", bound.index, bound, label, **style)
    log_axes(axes, "$d$", f"{worse} / {better}", title="Gain")


def _headroom(axes: Axes, share: float = 0.45) -> None:
    """Room for a legend above the curves of a logarithmic panel."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** share)


# --- (d) ------------------------------------------------------------------------------


BLOCKS = {
    "single": look("#0072B2", "-", "o"),
    "single IS": look("#0072B2", "--", "s"),
    "aligned": look("#009E73", "-", "D"),
    "aligned IS": look("#009E73", "--", "v"),
    "misaligned": look("#D55E00", "-", "^"),
    "misaligned IS": look("#D55E00", "--", "P"),
    "random": look("#CC79A7", "-", "<"),
    "random IS": look("#CC79A7", "--", ">"),
    "full": look("#000000", "-.", "x"),
}


def blocks(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Relative error against the spread of smoothness between groups."""
    table = results.load_sweep(config, "blocks")
    correlations = sorted(table["correlation"].unique())
    panels = Panels(len(correlations), len(correlations))
    for correlation, at in panels.over(correlations):
        part = table[table["correlation"] == correlation]
        panel = f"correlation {correlation:g} within groups"
        for method, group in part.groupby("method", sort=False):
            rows = [
                drawing.summary(panel, method, float(ratio), partitions.errors(seen))
                for ratio, seen in group.groupby("ratio")
            ]
            _errorbars(at, rows, BLOCKS[method], method)
            panels.add(at, rows, BLOCKS[method])
        x = "largest / smallest smoothness of a group"
        log_axes(at, x, "relative error", title=panel)
        ticks(at, table["ratio"].unique())
    return panels.done(5)


def _errorbars(axes: Axes, rows: Rows, style: Look, label: str) -> None:
    table = pd.DataFrame(rows)
    mean, low, high = (table[key].to_numpy() for key in ("mean", "ci_low", "ci_high"))
    down = np.minimum(mean - low, 0.95 * mean)  # a logarithmic axis has no zero
    ends = np.stack((down, high - mean))
    more: dict[str, Any] = {"markersize": 4, "capsize": 2, "label": label, **style}
    axes.errorbar(table["x"].to_numpy(), mean, yerr=ends, **more)


# --- (e) ------------------------------------------------------------------------------


def theory(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Bounds of Table 1 against errors, both over those of single uniform sampling."""
    from dperm.papers.dpskgd.bounds import over_single_uniform  # wakes the solvers

    found = results.load(config, problems)
    titles = results.titles(config, problems)
    panels = Panels(2, 2)
    for mark, name in zip(MARKS, problems, strict=False):
        ratios = over_single_uniform(config, name, found[name], product.calibration)
        for points, at in panels.over(ratios.values()):
            if any(ratios.values()):
                _points(panels, at, mark, titles[name].title, points)
    for key, at in panels.over(("convex", "strongly convex")):
        _quadrants(at, f"{key} row of Table 1")
    colours = {family: style["color"] for family, style in FAMILIES.items()}
    for family, colour in (colours | {"no sketch": "#000000"}).items():
        panels.axes[0].plot([], [], "s", color=colour, markersize=5, label=family)
    return panels.done(3)


def _points(panels: Panels, axes: Axes, mark: str, title: str, points: Rows) -> None:
    for row in points:
        family = draws.family(row["algorithm"])
        style = look(FAMILIES[family]["color"] if family else "#000000", "none", mark)
        axes.plot(row["x"], row["mean"], markersize=5, alpha=0.8, **style)
        panels.add(axes, [row], style)
    axes.plot([], [], mark, color="0.4", markersize=5, label=title)


def _quadrants(axes: Axes, title: str) -> None:
    x, y = "bound / bound of single uniform", "error / error of single uniform"
    log_axes(axes, x, y, title=title)
    left, right = min(axes.get_xlim()[0], 0.3), max(axes.get_xlim()[1], 3.0)
    low, high = min(axes.get_ylim()[0], 0.3), max(axes.get_ylim()[1], 3.0)
    axes.fill_between([left, 1.0], low, 1.0, **SHADE)
    axes.fill_between([1.0, right], 1.0, high, **SHADE)
    axes.axhline(1.0, color="0.5", linewidth=0.8)
    axes.axvline(1.0, color="0.5", linewidth=0.8)
    axes.set(xlim=(left, right), ylim=(low, high))


# --- Theorem 4.2 at its own parameters ------------------------------------------------


def rates(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Excess against n beside the bound, the exponents, the band of the controls."""
    swept = results.load_sweep(config, product.sweeps[0])
    beside = pd.DataFrame(measures.beside_bounds(swept))
    whole = beside[beside["epsilon"] == beside["epsilon"].max()]
    groups = list(whole.groupby(["case", "instance"], sort=False))
    panels = Panels(len(groups) + 2)
    for at, ((case, instance), part) in zip(panels.axes, groups, strict=False):
        rate_panels.excess(panels, at, f"{case}, {instance}", part)
    panels.done(7)  # the others have legends of their own
    *_, fits, control = panels.axes
    rate_panels.exponents(panels, fits, measures.exponents(swept))
    controls = measures.enough(swept, product.options["keys"])
    rate_panels.band(panels, control, controls)
    return panels.figure, panels.rows


LENGTHS = {"theorem": "the theorem's $K$", "best": "the best $K$"}


def placement(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Importance over uniform draws, by where the optimum sits among the M_j."""
    swept = results.load_sweep(config, product.sweeps[0])
    table = pd.DataFrame(measures.orders(swept, product.options["keys"]))
    orders = table[table["question"] != measures.CONTROL]
    panels = Panels(orders["length"].nunique(), 2)
    for (length, part), at in panels.over(orders.groupby("length", sort=False)):
        for instance, seen in part.groupby("instance", sort=False):
            rate_panels.ratios(panels, at, str(length), str(instance), seen)
        rate_panels.regime(at, part, float(table["band"].max()))
        at.set_title(LENGTHS[str(length)])
    return panels.done(4)
