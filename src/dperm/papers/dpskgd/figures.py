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
from dperm.kinds.figures import panels_of, reason
from dperm.papers.dpskgd import measures
from dperm.pipeline import inputs
from dperm.present import drawing, looks
from dperm.present.drawing import COLUMNS, Drawing, Panels, Rows, log_axes, ticks
from dperm.present.looks import Look, look

_KINDS = ("single", "single IS", "4 blocks", "4 blocks IS", "2-nice", "full")
_SKETCHES = {name: looks.of([of])[of] for name in _KINDS for of in [f"DP-SkGD {name}"]}
FAMILIES = {  # of samplings
    "uniform": _SKETCHES["single"],
    "importance": _SKETCHES["single IS"],
    "nice": _SKETCHES["2-nice"],
}
LEVELS = {"DP-SGD": "DP-SGD", "DP-SVRG": "DP-SVRG", "DP-CD": "DP-CD-cyclic"}
TITLES = {  # of the regimes
    "flat": "One small $M_1$, the rest solved",
    "steep": "One large $M_1$, which matters",
}
# Samplings of Theorem 4.2; only one of the random partitions is shown.
SAMPLINGS = {**_SKETCHES, "4 random blocks, 1": look("#999933", ":", "^")}
INSTANCES = {
    "separable": "#332288",
    "ill-conditioned": "#CC6677",
    "moderate": "#117733",
}
AXES = {"n": "o", "epsilon": "s"}  # markers of the exponents
LENGTHS = {"theorem": "the theorem's $K$", "best": "the best $K$"}
GREEN, GREY = "#009E73", "0.5"


def _dots(
    panels: Panels, axes: Axes, rows: Rows, style: Look, label: str = "", **more: Any
) -> None:
    """Means with their intervals, and lines between them where the style has any."""
    table = pd.DataFrame(rows)
    mean, low, high = (table[key].to_numpy() for key in ("mean", "ci_low", "ci_high"))
    down = np.minimum(mean - low, 0.95 * abs(mean))  # a logarithmic axis has no zero
    bars: Any = {"yerr": np.stack((down, high - mean)), "capsize": 2, "markersize": 4}
    axes.errorbar(table["x"], mean, label=label or "_", **bars, **{**style, **more})
    panels.rows += rows


def _rows(panel: str, name: str, table: pd.DataFrame) -> Rows:
    """Rows of a table with x, mean and the ends of an interval."""
    known = table.assign(panel=panel, algorithm=name, min=table["mean"])
    return known.assign(max=table["mean"])[COLUMNS].to_dict("records")


# --- (a), (b) -------------------------------------------------------------------------


def samplings(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Relative error against the number of blocks, one panel per problem.

    tau-nice sampling is at p / tau; methods without a sketch are horizontal lines.
    """
    ran = results.load(config, problems)
    gone = {name: lost for name in problems if (lost := reason(ran[name]))}
    there, panels, absent = panels_of(config, product, problems, gone)
    for (name, problem), axis in zip(there.items(), panels.axes, strict=False):
        axis.set_title(problem.title)
        p = len(inputs.load_optimum(plan.at_problem(config, name)).w)
        _samplings(panels, axis, ran[name], product.calibration, p)
    return panels.done(6, title=absent)


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
        style = {**looks.of([LEVELS[name]])[LEVELS[name]], "marker": ""}
        label = {"DP-CD": "DP-CD, cyclic"}.get(name, name)
        axes.axhline(row["mean"], label=label, **style)
        band = {"color": style["color"], "alpha": 0.1, "linewidth": 0}
        axes.axhspan(row["ci_low"], row["ci_high"], **band)
        panels.rows.append(row)
    if families["importance"]:  # a single block is always drawn, as in uniform draws
        full = [{**row} for row in families["uniform"] if row["x"] == 1.0]
        families["importance"] += full
    for family, rows in families.items():
        if rows:
            by_x = sorted(rows, key=lambda row: row["x"])
            few = {"linestyle": "none"} if len(rows) < 3 else {}
            label = {"nice": r"$\tau$-nice"}.get(family, family)
            _dots(panels, axes, by_x, FAMILIES[family], label, **few)
    log_axes(axes, "blocks $b$ (1 full, $p$ single)", "relative error")
    low, high = axes.get_ylim()
    if high < 1.5 * low:
        axes.set_yscale("linear")
    ticks(axes, {row["x"] for rows in families.values() for row in rows})


# --- (c) ------------------------------------------------------------------------------


def regimes(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Section 4.3: excess against d, and the gain with its exponent."""
    table = measures.relative(results.load_sweep(config, "regimes"))
    fits = {(row["regime"], row["n"]): row for row in measures.fitted(table)}
    lines = dict(zip(sorted(table["n"].unique()), ("--", "-"), strict=False))
    panels = Panels(2 * table["regime"].nunique(), 2)
    pairs = zip(panels.axes[::2], panels.axes[1::2], strict=True)
    groups = table.groupby("regime", sort=False)
    for (regime, part), (left, right) in zip(groups, pairs, strict=True):
        _excess_by_dimension(panels, left, str(regime), part, lines)
        _gain(panels, right, str(regime), part, fits, lines)
        for axis in (left, right):
            ticks(axis, part["d"].unique())
            axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.27))
    return panels.figure, panels.rows


def _records(n: int) -> str:
    return f"$n = 2^{{{int(np.log2(n))}}}$"


def _excess_by_dimension(
    panels: Panels, axes: Axes, regime: str, table: pd.DataFrame, lines: dict[int, str]
) -> None:
    colours = looks.of(table["algorithm"].unique())
    for (name, n), part in table.groupby(["algorithm", "n"], sort=False):
        colour = colours[name]["color"]
        expected = part.groupby("d")["expected_share"].first()
        style = look(colour, lines[n])
        axes.plot(expected.index, expected, label=f"{name}, {_records(n)}", **style)
        for source, mark in (("law", "o"), ("solver", "x")):
            runs = part[part["source"] == source]
            title = f"{name} ({source}, n = {n})"
            rows = drawing.against(runs, "d", "share", f"{regime}: excess", title)
            for row in rows:
                axes.plot(row["x"], row["mean"], mark, color=colour, markersize=4)
            panels.rows += rows
    axes.axhline(0.5, color="0.6", linewidth=0.8, linestyle=":")
    log_axes(axes, "$d$", "excess / start", title=TITLES[regime])


def _gain(
    panels: Panels,
    axes: Axes,
    regime: str,
    table: pd.DataFrame,
    fits: dict[Any, Any],
    lines: dict[int, str],
) -> None:
    worse, better = table["algorithm"].unique()
    panel = f"{regime}: gain"
    for n, gain in measures.gains(table).items():
        label = _records(n)
        if fit := fits.get((regime, n)):
            interval = f"[{fit['ci_low']:.2f}, {fit['ci_high']:.2f}]"
            label += rf": $d^{{\,{fit['exponent']:.2f}}}$ {interval}"
        name, style = f"{worse} / {better} (n = {n})", look("#882255", lines[n], "o")
        panels.line(axes, panel, name, gain.index, gain, label, markersize=4, **style)
    rows = {"convex": ("convex", ":"), "strong": ("strongly convex", "-.")}
    for key, (bound, slope) in measures.predicted_gains(table).items():
        name, line = rows[key]
        label, style = rf"Table 1, {name}: $d^{{\,{slope:.2f}}}$", look("0.35", line)
        panels.line(axes, panel, f"Table 1, {name}", bound.index, bound, label, **style)
    log_axes(axes, "$d$", f"{worse} / {better}", title="Gain")


# --- Theorem 4.2 at its own parameters ------------------------------------------------


def rates(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Excess against n with the bound, the exponents, and the band of the controls."""
    swept = results.load_sweep(config, product.sweeps[0])
    means = pd.DataFrame(measures.beside_bounds(swept))
    whole = means[means["epsilon"] == means["epsilon"].max()]
    groups = list(whole.groupby(["case", "instance"], sort=False))
    panels = Panels(len(groups) + 2)
    for axis, ((case, instance), part) in zip(panels.axes, groups, strict=False):
        _excess_by_records(panels, axis, f"{case}, {instance}", part)
    panels.done(7)  # before the last two panels, which have their own legends
    *_, fits, control = panels.axes
    _exponents(panels, fits, measures.exponents(swept))
    _band(panels, control, measures.enough(swept, product.options["keys"]))
    return panels.figure, panels.rows


def _excess_by_records(
    panels: Panels, axes: Axes, panel: str, table: pd.DataFrame
) -> None:
    """Excess over that of w = 0 against n, of each sampling, and a bound."""
    for name, style in SAMPLINGS.items():
        part = table[(table["sampling"] == name)].dropna(subset="excess")
        if part.empty:
            continue
        kept = ["excess", "ci_low", "ci_high", "expected"]
        share = part[kept].div(part["start"], axis=0).assign(x=part["n"])
        rows = _rows(panel, name, share.rename(columns={"excess": "mean"}))
        _dots(panels, axes, rows, {**style, "linestyle": "none"})
        line = {"color": style["color"], "linestyle": style["linestyle"]}
        axes.plot(part["n"], share["expected"], linewidth=1.2, **line)
        axes.plot([], [], markersize=4, label=name.partition(",")[0], **style)
    bound = table[table["sampling"] == measures.BASE]
    label, dots = "bound, single", {"color": "0.4", "linestyle": ":"}
    share = bound["bound"] / bound["start"]
    panels.line(axes, panel, label, bound["n"], share, label, **dots)
    axes.axhline(1.0, color="0.6", linewidth=0.8)
    title = panel[0].upper() + panel[1:]
    log_axes(axes, "$n$", "excess over that of $w = 0$", title=title)
    powers = sorted(np.log2(table["n"]).round().astype(int).unique())[::2]
    names = [f"$2^{{{power}}}$" for power in powers]
    ticks(axes, [2.0**power for power in powers], names)


def _exponents(panels: Panels, axes: Axes, fits: Rows) -> None:
    """Measured exponents against those of the bound on the same points."""
    for fit in fits:
        style = look(INSTANCES[fit["instance"]], "none", AXES[fit["axis"]])
        name = f"{fit['case']}, {fit['instance']}: {fit['sampling']}"
        point = pd.DataFrame([{**fit, "x": fit["bound"], "mean": fit["exponent"]}])
        rows = _rows(f"exponent in {fit['axis']}", name, point)
        _dots(panels, axes, rows, style, alpha=0.7, elinewidth=0.8)
    for name, colour in INSTANCES.items():
        axes.plot([], [], "-", color=colour, linewidth=4, label=name)
    for name, mark in AXES.items():
        axes.plot([], [], mark, color="0.35", label=f"in {name}")
    axes.axline((-1, -1), slope=1, color=GREY, linewidth=0.8)
    axes.set(xlabel="exponent of the bound", ylabel="exponent measured")
    axes.set_title("Exponents of the excess")
    axes.legend(loc="upper left")


def _band(panels: Panels, axes: Axes, controls: Rows) -> None:
    """Band of the controls and share undecided, by the number of transcripts."""
    table = pd.DataFrame(controls).rename(columns={"transcripts": "x"})
    share = table["undecided"]
    kinds = {
        "band": (table.assign(mean=table["band"]), "#000000"),
        "undecided": (table.assign(mean=share, ci_low=share, ci_high=share), "#882255"),
    }
    texts = {"band": "widest ratio", "undecided": "share of comparisons undecided"}
    for name, (part, colour) in kinds.items():
        style = look(colour, "-", "o")
        axes.plot(part["x"], part["mean"], **style)
        panels.rows += _rows("controls", name, part)
        top = part.iloc[0]
        axes.annotate(
            texts[name],
            (top["x"], top["mean"]),
            xytext=(12, -2),
            textcoords="offset points",
            color=colour,
        )
    axes.set(
        xscale="log", xlabel="transcripts", ylabel="ratio, or share", ylim=(0, None)
    )
    axes.set_title("Control: one sampling twice")
    ticks(axes, table["x"])


def placement(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Excess of importance over uniform draws, by the placement of the optimum."""
    swept = results.load_sweep(config, product.sweeps[0])
    table = pd.DataFrame(measures.orders(swept, product.options["keys"]))
    orders = table[table["question"] != measures.CONTROL]
    panels = Panels(orders["length"].nunique(), 2)
    for (length, part), axis in panels.over(orders.groupby("length", sort=False)):
        for name, runs in part.groupby("instance", sort=False):
            style = look(INSTANCES[str(name)], "none", "o")
            points = runs.rename(columns={"placement": "x", "ratio": "mean"})
            label = f"{name}: measured"
            _dots(panels, axis, _rows(str(length), str(name), points), style, label)
            line: Any = {"color": style["color"], "lw": 1.2}
            label = f"{name}: expected"
            axis.plot(runs["placement"], runs["expected"], label=label, **line)
        _regime(axis, part, float(table["band"].max()))
        axis.set_title(LENGTHS[str(length)])
    return panels.done(4)


def _regime(axes: Axes, part: pd.DataFrame, band: float) -> None:
    """Draw Table 1's ratio, the band of the controls, and Section 4.3.2's regime."""
    bound = part.groupby("placement")["predicted"].first()
    dashed: Look = {"color": "0.35", "linestyle": "--", "label": "Table 1, convex row"}
    axes.plot(bound.index, bound, **dashed)
    grey: Look = {"color": GREY, "alpha": 0.15, "linewidth": 0}
    axes.axhspan(1 / band, band, label="band of controls", **grey)
    green: Look = {"color": GREEN, "alpha": 0.08, "linewidth": 0}
    most = part["placement"].max()
    axes.axvspan(0.0, most, label="regime of Section 4.3.2", **green)
    axes.set(yscale="log", xlabel="placement $a$: $|w^*_j| = M_j^a$")
    axes.set_ylabel("importance / uniform")
    places = [0.3, 1.0, 3.0, 10.0]
    axes.set_yticks(places, [f"{place:g}" for place in places])
    axes.yaxis.set_minor_locator(NullLocator())
