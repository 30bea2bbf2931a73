"""Figures of Lou and Cheung 2020 (DP-BCFW)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dperm import schema
from dperm.papers.dpbcfw import excess, margins, reading_figures, uplink
from dperm.papers.dpbcfw.curve_families import (
    BASELINES,
    BESIDE,
    FAMILIES,
    NOISES,
    SHARE,
    UPDATES,
    baselines,
    curve,
    explain,
    family,
    finish,
    hues,
    percent,
)
from dperm.papers.dpbcfw.outcomes import central, last, read, where
from dperm.pipeline import results
from dperm.present import curves, drawing
from dperm.present.drawing import Rows
from dperm.present.looks import Look

SETS = {"ball": "l1 ball", "box": "box"}

# --- Algorithm 1 ----------------------------------------------------------------------


@drawing.styled
def samplings(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figure 1: samplings, one panel a pair of sparsities, laid out as printed.

    ``options``: constraint, the set; beside, another one, on the right.
    """
    table, options = read(config, product.sweeps[0]), product.options
    sets = [options[key] for key in ("constraint", "beside") if key in options]
    pairs = table[["active", "density"]].drop_duplicates().to_numpy().tolist()
    pairs.sort(reverse=True)
    wide = min(3, len(pairs))  # columns of one set
    figure, axes = drawing.panels(len(sets) * len(pairs), wide * len(sets))
    rows: Rows = []
    for column, constraint in enumerate(sets):
        for k, (active, density) in enumerate(pairs):
            line, place = divmod(k, wide)
            at = axes[(line * len(sets) + column) * wide + place]
            found = _sampled(at, table, active, density, constraint, len(sets) > 1)
            rows += found
    drawing.shared_legend(figure, 4)
    return figure, rows


def _sampled(
    at: Axes, table: pd.DataFrame, active: float, density: float, constraint: str,
    several: bool,
) -> Rows:  # fmt: skip
    """One panel; that of the ball is named after it where the box is beside it."""
    panel = f"features {percent(density)}, variable {percent(active)}"
    title = f"{panel}\n{SETS[constraint]}" if several else panel
    if several and constraint == "ball":
        panel = f"ball, {percent(density)} of A, {percent(active)} of x"
    shown = where(table, active=active, density=density, constraint=constraint)
    rows: Rows = []
    names = list(shown["sampling"].unique())
    for name, look in zip(names, hues(len(names)), strict=True):
        chosen = where(shown, sampling=name)
        label = f"{name}: $p_{{min}}$ = {chosen['p_min'].iloc[0]:.2g}"
        rows += curve(at, panel, label, chosen, look)
    finish(at, title)
    return rows


@drawing.styled
def nodes(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figure 2: K nodes without noise, by Algorithm 2 and by Algorithm 1."""
    table, sampled = read(config, "nodes"), read(config, "blocks")
    shares = sorted(table["share"].unique())
    figure, axes = drawing.panels(2 * (len(shares) + 1), len(shares) + 1)
    rows: Rows = []
    at = iter(axes)
    for update, constraint in zip(UPDATES, ("box", "ball"), strict=True):
        for share in shares:
            panel = f"{UPDATES[update]}, {SHARE.format(share)}"
            shown = where(table, share=share, update=update)
            rows += family(next_ := next(at), panel, shown, "nodes")
            finish(next_, panel)
        panel = f"Algorithm 1, {constraint}"
        shown = where(sampled, constraint=constraint)
        rows += family(next_ := next(at), panel, shown, "nodes")
        finish(next_, panel)
    drawing.shared_legend(figure, 4)
    return figure, rows


# --- Algorithm 2 ----------------------------------------------------------------------


@drawing.styled
def private(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figure 3: DP-BCFW, DP-FW and FW, printed noise above, sound noise below."""
    table = read(config, "private")
    sizes = table[["d", "n", "density"]].drop_duplicates().to_numpy().tolist()
    figure, axes = drawing.panels(2 * len(sizes), len(sizes))
    rows: Rows = []
    at = iter(axes)
    for noise in ("stated", "strict"):
        for d, n, density in sizes:
            axis, shown = next(at), where(table, d=d, n=n, density=density)
            title = f"d = {d:g}, n = {n:g}, {percent(density)}"
            panel = f"{title}, {noise}"
            rows += baselines(axis, panel, shown, noise)
            for update, look in zip(UPDATES, hues(2), strict=True):
                chosen = where(shown, method="dp_bcfw", noise=noise, update=update)
                label = f"DP-BCFW, {UPDATES[update]}"
                rows += curve(axis, panel, label, chosen, look)
            ours = where(shown, method="dp_bcfw", noise=noise)
            finish(axis, f"{title}\n{NOISES[noise]}, {_true(ours)}")
    drawing.shared_legend(figure, 4)
    explain(figure, rows)
    return figure, rows


def _true(table: pd.DataFrame) -> str:
    """The true epsilon of runs, for a title."""
    value = table["true_epsilon"].mean()
    if value >= 1000:
        return f"true $\\epsilon$ about $10^{{{np.log10(value):.0f}}}$"
    return f"true $\\epsilon$ {value:.2g}"


@drawing.styled
def workers(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figure 5: K nodes with noise, as published and with equal feasible sets."""
    table = read(config, "workers")
    shares = sorted(table["share"].unique())
    figure, axes = drawing.panels(2 * len(shares), len(shares))
    rows: Rows = []
    at = iter(axes)
    for update in UPDATES:
        for share in shares:
            axis, shown = next(at), where(table, share=share)
            panel = f"{UPDATES[update]}, {SHARE.format(share)}"
            rows += baselines(axis, panel, shown, "scaled")
            chosen = where(shown, method="dp_bcfw", update=update)
            rows += family(axis, panel, chosen, "nodes")
            reach = chosen["largest_norm"].max()
            finish(axis, f"{panel}\nlargest $\\|x\\|_1$ = {reach:.3g} $\\eta$")
    drawing.shared_legend(figure, 6)
    explain(figure, rows)
    return figure, rows


@drawing.styled
def by_noise(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figures 6 to 8: a family of runs, one panel a kind of noise.

    ``options``: along, the key that the curves of a family differ in, of ``FAMILIES``;
    beside, what panels differ in beside their noise, of ``BESIDE``; columns, those of
    the legend.
    """
    table = read(config, product.sweeps[0])
    private = where(table, method="dp_bcfw")
    beside = product.options.get("beside")
    keys = ["noise"] if beside is None else ["noise", beside]
    kinds = private[keys].drop_duplicates().to_dict("records")
    figure, axes = drawing.panels(len(kinds), 3)
    rows: Rows = []
    for kind, axis in zip(kinds, axes, strict=True):
        panel, title = kind["noise"], NOISES[kind["noise"]]
        if beside is not None:
            named, titled = BESIDE[beside]
            panel += named.format(kind[beside])
            title += titled.format(kind[beside])
        ball = {"share": kind["share"]} if "share" in kind else {}
        rows += baselines(axis, panel, where(table, **ball), kind["noise"])
        shown = where(private, **kind)
        rows += family(axis, panel, shown, product.options["along"])
        finish(axis, title)
    drawing.shared_legend(figure, product.options.get("columns", 4))
    explain(figure, rows)
    return figure, rows


@drawing.styled
def real(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figure 9: real data, printed noise above, sound noise and feasible set below."""
    table = read(config, "real")
    names = [name for name in problems if name in set(table["problem"])]
    titles = results.titles(config, names)
    figure, axes = drawing.panels(2 * len(names), len(names))
    rows: Rows = []
    at = iter(axes)
    for noise in ("stated", "strict"):
        for name in names:
            axis, shown = next(at), where(table, problem=name)
            if (shown["status"] == "unavailable").any():
                axis.set_title(titles[name].title)
                drawing.empty(axis, drawing.UNAVAILABLE)
                continue
            panel = f"{name}, {noise}"
            rows += baselines(axis, panel, shown, noise)
            chosen = where(shown, method="dp_bcfw", noise=noise)
            rows += family(axis, panel, chosen, "nodes")
            update = UPDATES[chosen["update"].iloc[0]]
            finish(axis, f"{titles[name].title}\n{NOISES[noise]}, {update}")
    drawing.shared_legend(figure, 6)
    explain(figure, rows)
    return figure, rows


# --- excess risk against n ------------------------------------------------------------


@drawing.styled
def samples(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figure 4: excess risk against n in log-log, with slopes and their intervals.

    ``options``: noise, epsilon, and against, ``truth`` for f(x_true) or ``minimum``
    for the minimum over the ball.
    """
    options = product.options
    table = excess.excess(
        config, product.sweeps[0], options["against"], options["epsilon"]
    )
    shares = sorted(table["share"].unique())
    figure, axes = drawing.panels(2 * len(shares), 2)
    figure.set_figwidth(1.6 * figure.get_figwidth())  # room for the legends
    rows: Rows = []
    at = iter(axes)
    for share in shares:
        for update in UPDATES:
            axis, shown = next(at), where(table, share=share)
            panel = f"{UPDATES[update]}, {SHARE.format(share)}"
            rows += _slopes(axis, panel, shown, update, options["noise"])
            axis.set(xscale="log", yscale="log", title=panel)
            axis.set(xlabel="training records n", ylabel="excess empirical risk")
            ticks = sorted(shown["n"].unique())
            axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axis.minorticks_off()
            axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=6.5)
    return figure, rows


def _slopes(
    axes: Axes, panel: str, table: pd.DataFrame, update: str, noise: str
) -> Rows:
    """Curves of DP-FW and of each K, their slopes in the legend; the theory's line."""
    alone = where(table, method="dp_fw", noise=central(noise))
    chosen = where(table, method="dp_bcfw", noise=noise, update=update)
    K = sorted(chosen["nodes"].unique())
    family = [("DP-FW", alone, BASELINES["DP-FW"])]
    family += [
        (FAMILIES["nodes"](k), where(chosen, nodes=k), look)
        for k, look in zip(K, curves.shades(len(K)), strict=True)
    ]
    rows: Rows = []
    for name, runs, look in family:
        label = f"{name}: {_slope(runs)}"
        rows += curve(axes, panel, label, runs, look, "n", "excess")
    sizes = np.array(sorted(table["n"].unique()))
    axes.plot(sizes, excess.theory(sizes, chosen), color="#D55E00", linewidth=0.9,
              label=f"theory: {excess.THEORY:.2f}")  # fmt: skip
    return rows


def _slope(runs: pd.DataFrame) -> str:
    """Slope and its interval in words; none is fitted to an excess below 0."""
    slope, low, high = excess.exponent(runs)
    if np.isnan(slope):
        return "no slope,\nsome excess below 0"
    return f"{slope:.2f} [{low:.2f}, {high:.2f}]"


# --- what the paper does not show -----------------------------------------------------


@drawing.styled
def claims(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figures of the claims against epsilon, and where each starts to hold."""
    found = margins.of_runs(last(read(config, product.sweeps[0])))
    figure, axes = drawing.panels(len(margins.CLAIMS) + 1, 3)
    rows: Rows = []
    noises = list(margins.KINDS)
    for claim, axis in zip(margins.CLAIMS, axes, strict=False):
        for noise, look in zip(noises, hues(len(noises)), strict=True):
            shown = where(found, claim=claim, noise=noise)
            rows += curve(axis, claim, NOISES[noise], shown, look, "epsilon", "margin")
        axis.axhline(0.0, color="0.3", linewidth=0.9)
        axis.set(xscale="log", title=margins.CLAIMS[claim], xlabel="$\\epsilon$")
        axis.set_ylim(*np.clip(axis.get_ylim(), -1.0, 1.0))
        axis.set_ylabel("margin (holds below 0)")
    _starts(axes[-1], margins.starts(found), noises)
    drawing.shared_legend(figure, 4)
    return figure, rows


def _starts(axes: Axes, starts: pd.DataFrame, noises: Iterable[str]) -> None:
    """A dot where each claim starts to hold; none where it never does."""
    names = list(margins.CLAIMS)
    every = list(noises)
    for noise, look in zip(every, hues(len(every)), strict=True):
        shown = where(starts, noise=noise)
        places = [names.index(claim) for claim in shown["claim"]]
        shift = 0.18 * (every.index(noise) - 1.5)
        axes.plot(shown["epsilon"], np.array(places) + shift, linestyle="none",
                  marker=look["marker"], color=look["color"], markersize=6)  # fmt: skip
    axes.set_yticks(range(len(names)), names)
    axes.set(xscale="log", xlabel="$\\epsilon$", ylim=(len(names) - 0.5, -0.5))
    axes.set_title("where it starts to hold")


@drawing.styled
def losses(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Table V as a figure: sketches of several lengths, one panel a loss."""
    table = read(config, "losses")
    names = list(table["loss_name"].unique())
    figure, axes = drawing.panels(len(names), 3)
    rows: Rows = []
    for name, axis in zip(names, axes, strict=True):
        shown = where(table, loss_name=name)
        rows += family(axis, name, shown, "length")
        finish(axis, name.replace("_", " "))
    drawing.shared_legend(figure, 4)
    return figure, rows


@drawing.styled
def communication(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Uplink bytes of a run against n, and along a run, one column a budget."""
    table = read(config, "communication")
    budgets = sorted(table["epsilon"].unique())
    figure, axes = drawing.panels(2 * len(budgets), len(budgets))
    rows: Rows = []
    looks = hues(4)
    for k, epsilon in enumerate(budgets):
        shown = where(table, epsilon=epsilon)
        rows += _against_n(axes[k], shown, f"epsilon {epsilon:g}", looks)
        axes[k].set_title(f"one run, $\\epsilon$ = {epsilon:g}")
        rows += _along(axes[len(budgets) + k], shown, f"along, epsilon {epsilon:g}")
    return figure, rows


def _against_n(axes: Axes, table: pd.DataFrame, panel: str, looks: list[Look]) -> Rows:
    shown = uplink.by_records(table)
    rows: Rows = []
    for (label, runs), look in zip(shown.items(), looks, strict=True):
        rows += curve(axes, panel, label, runs, look, "n", "bytes_up")
    axes.set(xscale="log", yscale="log", xlabel="n", ylabel="bytes up, all nodes")
    ticks = sorted(table["n"].unique())
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.legend(loc="best")
    return rows


def _along(axes: Axes, table: pd.DataFrame, panel: str) -> Rows:
    """Bytes so far, up and down, at the largest n; a feature is never sent twice."""
    shown, every = uplink.along(table)
    up, down, _ = hues(3)
    rows = curve(axes, panel, "up, measured", shown, up, y="bytes_up")
    rows += curve(axes, panel, "up, if each were sent", every, BASELINES["FW"],
                   y="bytes_up")  # fmt: skip
    rows += curve(axes, panel, "down, measured", shown, down, y="bytes_down")
    axes.set(yscale="log", xlabel="iteration", ylabel="bytes so far, all nodes")
    axes.set_title(f"n = {table['n'].max():g}, T tuned")
    axes.legend(loc="best")
    return rows


# --- readings -------------------------------------------------------------------------


@drawing.styled
def readings(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figures 3 and 5 to 8 against eta itself, one column a reading.

    ``options``: iterations, the T of the runs that are shown.
    """
    tables = [_by_radius(read(config, name)) for name in product.sweeps]
    several = (reading_figures.workers, reading_figures.private)
    lines = [
        line for of, table in zip(several, tables, strict=True) for line in of(table)
    ]
    count = product.options["iterations"]
    figure, rows = reading_figures.grid(lines, "radius", "$\\eta$", count)
    explain(figure, rows)
    return figure, rows


def _by_radius(table: pd.DataFrame) -> pd.DataFrame:
    """With ``radius``, eta; where that is ||x_true||_1, its mean over the draws."""
    means = table.groupby("ball")["eta"].mean()
    return table.assign(radius=table["ball"].map(means))


@drawing.styled
def radii(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figure 9 against eta; ``options``: iterations, as for ``readings``."""
    table = read(config, product.sweeps[0])
    titles = results.titles(config, table["problem"].unique())
    lines = list(reading_figures.real(where(table, status="ok"), titles))
    if not lines:
        figure, (alone,) = drawing.panels(1, 1)
        drawing.empty(alone, drawing.UNAVAILABLE)
        return figure, []
    count = product.options["iterations"]
    label = "$\\eta$ over $\\|w^*\\|_1$"
    figure, rows = reading_figures.grid(lines, "share", label, count)
    explain(figure, rows)
    return figure, rows
