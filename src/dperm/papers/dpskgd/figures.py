"""Figures of Maranjyan et al. 2024 (DP-SkGD): the experiments it announces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from dperm.core.experiment import plan, results
from dperm.core.experiment.results import Result
from dperm.core.experiment.schema import Config, Product
from dperm.papers.dpskgd import measures
from dperm.pipeline import inputs
from dperm.present import drawing
from dperm.present.drawing import (
    COLUMNS,
    Drawing,
    Panels,
    Rows,
    against,
    log_axes,
    ticks,
)
from dperm.present.looks import Look, look

BLUE, RED, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
FAMILIES = {  # of samplings
    "uniform": look(BLUE, "-", "o"),
    "importance": look(RED, "--", "s"),
    "nice": look(GREEN, ":", "D"),
}
LEVELS = {
    "DP-SGD": look("#000000", "-."),
    "DP-SVRG": look(PINK, (0, (4, 1, 1, 1))),
    "DP-CD": look("#56B4E9", (0, (1, 1))),
}
TITLES = {  # of the regimes
    "flat": "One small $M_1$, the rest solved",
    "steep": "One large $M_1$, which matters",
}
BLOCKS = {
    "single": look(BLUE, "-", "o"),
    "single IS": look(BLUE, "--", "s"),
    "aligned": look(GREEN, "-", "D"),
    "aligned IS": look(GREEN, "--", "v"),
    "misaligned": look(RED, "-", "^"),
    "misaligned IS": look(RED, "--", "P"),
    "random": look(PINK, "-", "<"),
    "random IS": look(PINK, "--", ">"),
    "full": look("#000000", "-.", "x"),
}
SAMPLINGS = {  # of Theorem 4.2; of the random partitions one is drawn
    "single": look(BLUE, "-", "o"),
    "single IS": look(RED, "--", "s"),
    "4 blocks": look(GREEN, "-", "D"),
    "4 blocks IS": look("#E69F00", "--", "v"),
    "4 random blocks, 1": look(PINK, ":", "^"),
    "full": look("#000000", "-.", "x"),
}
INSTANCES = {"separable": BLUE, "ill-conditioned": RED, "moderate": GREEN}
AXES = {"n": "o", "epsilon": "s"}  # markers of the exponents
LENGTHS = {"theorem": "the theorem's $K$", "best": "the best $K$"}
WIDEST = 1.3  # that the band of the controls should be
MARKS = "osD^vP*X<>hp"


def _errorbars(axes: Axes, rows: Rows, style: Look, label: str) -> None:
    table = pd.DataFrame(rows)
    mean, low, high = (table[key].to_numpy() for key in ("mean", "ci_low", "ci_high"))
    down = np.minimum(mean - low, 0.95 * mean)  # a logarithmic axis has no zero
    ends = np.stack((down, high - mean))
    more: dict[str, Any] = {"markersize": 4, "capsize": 2, "label": label, **style}
    axes.errorbar(table["x"].to_numpy(), mean, yerr=ends, **more)


# --- (a), (b) -------------------------------------------------------------------------


def samplings(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Relative error against the number of blocks, one panel a problem.

    tau-nice sampling stands at p / tau; methods that are no sketches are levels.
    """
    ran, titles = results.load(config, problems), results.titles(config, problems)
    panels = Panels(len(problems), product.options.get("columns", 2))
    for name, axis in panels.over(problems):
        axis.set_title(titles[name].title)
        lost = [result.reason for result in ran[name] if not result.available]
        if lost:
            drawing.empty(axis, lost[0])
        else:
            p = len(inputs.load_optimum(plan.at_problem(config, name)).w)
            _samplings(panels, axis, ran[name], product.calibration, p)
    return panels.done(6 if len(problems) > 1 else 2)


def _samplings(
    panels: Panels, axes: Axes, ran: list[Result], calibration: str, p: int
) -> None:
    families: dict[str, Rows] = {family: [] for family in FAMILIES}
    for result in ran:
        values = result.final(calibration)["relative_error"].to_numpy()
        family, name = measures.family(result.solver), result.label
        x = measures.block_count(result.solver, p) if family else 0.0
        row = drawing.summary(result.problem, name, x, values)
        if family:
            families[family].append(row)
            continue
        style, label = LEVELS[name], {"DP-CD": "DP-CD, cyclic"}.get(name, name)
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
    table = measures.relative(results.load_sweep(config, "regimes"))
    fits = {(row["regime"], row["n"]): row for row in measures.fitted(table)}
    names = list(table["regime"].unique())
    panels = Panels(2 * len(names), 2)
    for regime, left, right in zip(
        names, panels.axes[::2], panels.axes[1::2], strict=True
    ):
        part = table[table["regime"] == regime]
        _excess_by_dimension(panels, left, regime, part)
        _gain(panels, right, regime, part, fits)
        for axis in (left, right):
            ticks(axis, part["d"].unique())
            low, high = axis.get_ylim()
            axis.set_ylim(low, high * (high / low) ** 0.45)  # room for the legend
            axis.legend(loc="upper left", fontsize=6.5, frameon=False)
    return panels.figure, panels.rows


def _excess_by_dimension(
    panels: Panels, axes: Axes, regime: str, table: pd.DataFrame
) -> None:
    lines = dict(zip(sorted(table["n"].unique()), ("--", "-"), strict=False))
    for colour, name in zip((RED, BLUE), table["algorithm"].unique(), strict=True):
        for n, line in lines.items():
            part = table[(table["algorithm"] == name) & (table["n"] == n)]
            expected = part.groupby("d")["expected_share"].first()
            label = f"{name}, $n = 2^{{{int(np.log2(n))}}}$"
            axes.plot(expected.index, expected, label=label, **look(colour, line))
            for source, mark in (("law", "o"), ("solver", "x")):
                runs = part[part["source"] == source]
                panel, title = f"{regime}: excess", f"{name} ({source}, n = {n})"
                rows = against(runs, "d", "share", panel, title)
                for row in rows:
                    axes.plot(row["x"], row["mean"], mark, color=colour, markersize=4)
                panels.add(axes, rows, look(colour, line, mark))
    axes.axhline(0.5, color="0.6", linewidth=0.8, linestyle=":")
    log_axes(axes, "$d$", "excess / start", title=TITLES[regime])


def _gain(
    panels: Panels, axes: Axes, regime: str, table: pd.DataFrame, fits: dict
) -> None:
    worse, better = table["algorithm"].unique()
    panel, gains = f"{regime}: gain", measures.gains(table).items()
    for colour, (n, gain) in zip(("#56B4E9", BLUE), gains, strict=False):
        label = f"$n = 2^{{{int(np.log2(n))}}}$"
        if fit := fits.get((regime, n)):
            interval = f"[{fit['ci_low']:.2f}, {fit['ci_high']:.2f}]"
            label += rf": $d^{{\,{fit['exponent']:.2f}}}$ {interval}"
        name, style = f"{worse} / {better} (n = {n})", look(colour, "-", "o")
        panels.line(axes, panel, name, gain.index, gain, label, markersize=4, **style)
    rows = {"convex": ("convex", ":"), "strong": ("strongly convex", "-.")}
    for key, (bound, slope) in measures.predicted_gains(table).items():
        name, line = rows[key]
        label, style = rf"Table 1, {name}: $d^{{\,{slope:.2f}}}$", look("0.35", line)
        panels.line(axes, panel, f"Table 1, {name}", bound.index, bound, label, **style)
    log_axes(axes, "$d$", f"{worse} / {better}", title="Gain")


# --- (d) ------------------------------------------------------------------------------


def blocks(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Relative error against the spread of smoothness between groups."""
    table = results.load_sweep(config, "blocks")
    correlations = sorted(table["correlation"].unique())
    panels = Panels(len(correlations), len(correlations))
    for correlation, axis in panels.over(correlations):
        part = table[table["correlation"] == correlation]
        panel = f"correlation {correlation:g} within groups"
        for method, group in part.groupby("method", sort=False):
            rows = []
            for ratio, runs in group.groupby("ratio"):
                errors = measures.partition_errors(runs)
                rows.append(drawing.summary(panel, method, float(ratio), errors))
            _errorbars(axis, rows, BLOCKS[method], method)
            panels.add(axis, rows, BLOCKS[method])
        x = "largest / smallest smoothness of a group"
        log_axes(axis, x, "relative error", title=panel)
        ticks(axis, table["ratio"].unique())
    return panels.done(5)


# --- (e) ------------------------------------------------------------------------------


def theory(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Bounds of Table 1 against errors, both over those of single uniform sampling."""
    from dperm.papers.dpskgd.theory import over_single_uniform  # wakes the solvers

    ran, titles = results.load(config, problems), results.titles(config, problems)
    panels = Panels(2, 2)
    for mark, name in zip(MARKS, problems, strict=False):
        ratios = over_single_uniform(config, name, ran[name], product.calibration)
        if not any(ratios.values()):
            continue
        for points, axis in panels.over(ratios.values()):
            for row in points:
                family = measures.family(row["algorithm"])
                colour = FAMILIES[family]["color"] if family else "#000000"
                style = look(colour, "none", mark)
                axis.plot(row["x"], row["mean"], markersize=5, alpha=0.8, **style)
                panels.add(axis, [row], style)
            label = titles[name].title
            axis.plot([], [], mark, color="0.4", markersize=5, label=label)
    for key, axis in panels.over(("convex", "strongly convex")):
        _quadrants(axis, f"{key} row of Table 1")
    colours = {family: style["color"] for family, style in FAMILIES.items()}
    for family, colour in (colours | {"no sketch": "#000000"}).items():
        panels.axes[0].plot([], [], "s", color=colour, markersize=5, label=family)
    return panels.done(3)


def _quadrants(axes: Axes, title: str) -> None:
    x, y = "bound / bound of single uniform", "error / error of single uniform"
    log_axes(axes, x, y, title=title)
    left, right = min(axes.get_xlim()[0], 0.3), max(axes.get_xlim()[1], 3.0)
    low, high = min(axes.get_ylim()[0], 0.3), max(axes.get_ylim()[1], 3.0)
    shade: Any = {"color": GREEN, "alpha": 0.08, "linewidth": 0}
    axes.fill_between([left, 1.0], low, 1.0, **shade)
    axes.fill_between([1.0, right], 1.0, high, **shade)
    axes.axhline(1.0, color="0.5", linewidth=0.8)
    axes.axvline(1.0, color="0.5", linewidth=0.8)
    axes.set(xlim=(left, right), ylim=(low, high))


# --- Theorem 4.2 at its own parameters ------------------------------------------------


def rates(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Excess against n beside the bound, the exponents, the band of the controls."""
    swept = results.load_sweep(config, product.sweeps[0])
    means = pd.DataFrame(measures.beside_bounds(swept))
    whole = means[means["epsilon"] == means["epsilon"].max()]
    groups = list(whole.groupby(["case", "instance"], sort=False))
    panels = Panels(len(groups) + 2)
    for axis, ((case, instance), part) in zip(panels.axes, groups, strict=False):
        _excess_by_records(panels, axis, f"{case}, {instance}", part)
    panels.done(7)  # the others have legends of their own
    *_, fits, control = panels.axes
    _exponents(panels, fits, measures.exponents(swept))
    _band(panels, control, measures.enough(swept, product.options["keys"]))
    return panels.figure, panels.rows


def _points(
    panels: Panels, axes: Axes, panel: str, name: str, table: pd.DataFrame, style: Look
) -> None:
    """Rows with intervals, of a table with x, mean and the ends of both columns."""
    columns = ["x", "mean", "mean", "mean", "ci_low", "ci_high"]
    rows = [
        dict(zip(COLUMNS, (panel, name, *values), strict=True))
        for values in table[columns].itertuples(index=False)
    ]
    panels.add(axes, rows, style)


def _dots(axes: Axes, table: pd.DataFrame, style: Look) -> None:
    mean, low, high = (table[key] for key in ("mean", "ci_low", "ci_high"))
    more: Any = {"color": style["color"], "marker": style["marker"]}
    more |= {"linestyle": "none", "markersize": 3.5, "capsize": 2}
    axes.errorbar(table["x"], mean, yerr=np.stack((mean - low, high - mean)), **more)


def _excess_by_records(
    panels: Panels, axes: Axes, panel: str, table: pd.DataFrame
) -> None:
    """Share of the excess of w = 0 against n, of each sampling; and a bound."""
    for name, style in SAMPLINGS.items():
        part = table[(table["sampling"] == name)].dropna(subset="excess")
        if part.empty:
            continue
        kept = ["excess", "ci_low", "ci_high", "expected"]
        share = part[kept].div(part["start"], axis=0).assign(x=part["n"])
        share = share.rename(columns={"excess": "mean"})
        _dots(axes, share, style)
        _points(panels, axes, panel, name, share, style)
        line = {"color": style["color"], "linestyle": style["linestyle"]}
        axes.plot(part["n"], share["expected"], linewidth=1.2, **line)
        axes.plot([], [], markersize=3.5, label=name.partition(",")[0], **style)
    bound = table[table["sampling"] == measures.BASE]
    label, dots = "bound, single", {"color": "0.4", "linestyle": ":"}
    share = bound["bound"] / bound["start"]
    panels.line(axes, panel, label, bound["n"], share, label, **dots)
    axes.axhline(1.0, color="0.6", linewidth=0.8)
    log_axes(axes, "$n$", "excess over that of $w = 0$", title=panel)
    powers = sorted(np.log2(table["n"]).round().astype(int).unique())[::2]
    names = [f"$2^{{{power}}}$" for power in powers]
    ticks(axes, [2.0**power for power in powers], names)


def _exponents(panels: Panels, axes: Axes, fits: Rows) -> None:
    """Measured exponents against those of the bound on the same points."""
    for fit in fits:
        mean, x = fit["exponent"], fit["bound"]
        ends = [[mean - fit["ci_low"]], [fit["ci_high"] - mean]]
        style = look(INSTANCES[fit["instance"]], "none", AXES[fit["axis"]])
        more: Any = {"color": style["color"], "marker": style["marker"], "alpha": 0.7}
        more |= {"capsize": 1.5, "markersize": 3, "linewidth": 0.8}
        axes.errorbar(x, mean, yerr=ends, **more)
        name = f"{fit['case']}, {fit['instance']}: {fit['sampling']}"
        point = pd.DataFrame([{**fit, "x": x, "mean": mean}])
        _points(panels, axes, f"exponent in {fit['axis']}", name, point, style)
    for name, colour in INSTANCES.items():
        axes.plot([], [], "o", color=colour, markersize=4, label=name)
    axes.axline((-1, -1), slope=1, color="0.5", linewidth=0.8)
    axes.set(xlabel="of the bound", ylabel="measured")
    axes.set_title("exponents ($n$ round, $\\varepsilon$ square)")
    axes.legend(fontsize=6.5)


def _band(panels: Panels, axes: Axes, controls: Rows) -> None:
    """The band of the controls, and what is undecided, by the number of transcripts."""
    table = pd.DataFrame(controls).rename(columns={"transcripts": "x"})
    solid, dashed = look(BLUE, "-", "o"), look(RED, "--", "s")
    axes.plot(table["x"], table["band"], label="band of the controls", **solid)
    share = 1 + table["undecided"]
    axes.plot(table["x"], share, label="1 + share undecided", **dashed)
    axes.axhline(WIDEST, color="0.5", linewidth=0.8)
    axes.set(xscale="log", xlabel="transcripts", ylabel="widest ratio; 1 + share")
    axes.set_title("control: one law twice")
    ticks(axes, table["x"])
    axes.legend(fontsize=6.5)
    band, undecided = table.assign(mean=table["band"]), table["undecided"]
    bare = table.assign(mean=undecided, ci_low=undecided, ci_high=undecided)
    for k in range(len(table)):
        _points(panels, axes, "controls", "band", band[k : k + 1], solid)
        _points(panels, axes, "controls", "undecided", bare[k : k + 1], dashed)


def placement(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Importance over uniform draws, by where the optimum sits among the M_j."""
    swept = results.load_sweep(config, product.sweeps[0])
    table = pd.DataFrame(measures.orders(swept, product.options["keys"]))
    orders = table[table["question"] != measures.CONTROL]
    panels = Panels(orders["length"].nunique(), 2)
    for (length, part), axis in panels.over(orders.groupby("length", sort=False)):
        for name, runs in part.groupby("instance", sort=False):
            style = look(INSTANCES[str(name)], "-", "o")
            points = runs.rename(columns={"placement": "x", "ratio": "mean"})
            _dots(axis, points, style)
            _points(panels, axis, str(length), str(name), points, style)
            line: Any = {"color": style["color"], "lw": 1.2}
            axis.plot(runs["placement"], runs["expected"], **line)
            label = f"{name}: measured, expected"
            axis.plot([], [], markersize=3.5, label=label, **style)
        _regime(axis, part, float(table["band"].max()))
        axis.set_title(LENGTHS[str(length)])
    return panels.done(4)


def _regime(axes: Axes, part: pd.DataFrame, band: float) -> None:
    """What Table 1 says, the band of the controls, and Section 4.3.2's regime."""
    bound = part.groupby("placement")["predicted"].first()
    dashed: Look = {"color": "0.35", "linestyle": "--", "label": "Table 1, convex row"}
    axes.plot(bound.index, bound, **dashed)
    grey: Look = {"color": "0.5", "alpha": 0.15, "linewidth": 0}
    axes.axhspan(1 / band, band, label="band of controls", **grey)
    axes.axvspan(0.0, part["placement"].max(), color=GREEN, alpha=0.08, lw=0)
    axes.set(yscale="log", xlabel="placement $a$: $|w^*_j| = M_j^a$")
    axes.set_ylabel("importance / uniform")
    places = [0.3, 1.0, 3.0, 10.0]
    axes.set_yticks(places, [f"{place:g}" for place in places])
    axes.yaxis.set_minor_locator(NullLocator())
