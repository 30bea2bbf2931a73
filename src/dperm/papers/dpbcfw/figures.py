"""Figures of Lou and Cheung 2020 (DP-BCFW)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dperm.core.experiment import results
from dperm.core.experiment.schema import Config, Product
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
    explained,
    family,
    finish,
    hues,
    percent,
)
from dperm.papers.dpbcfw.outcomes import central, last, read, where
from dperm.present import drawing
from dperm.present.drawing import Drawing, Panels, log_axes, shades, ticks

SETS = {"ball": "l1 ball", "box": "box"}

# --- Algorithm 1 ----------------------------------------------------------------------


@drawing.styled
def samplings(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 1: samplings, one panel a pair of sparsities, laid out as printed.

    ``options``: constraint, the set; beside, another one, on the right.
    """
    table, options = read(config, product.sweeps[0]), product.options
    sets = [options[key] for key in ("constraint", "beside") if key in options]
    pairs = table[["active", "density"]].drop_duplicates().to_numpy().tolist()
    pairs.sort(reverse=True)
    wide = min(3, len(pairs))  # columns of one set
    panels = Panels(len(sets) * len(pairs), wide * len(sets))
    for column, constraint in enumerate(sets):
        for k, (active, density) in enumerate(pairs):
            line, place = divmod(k, wide)
            at = panels.axes[(line * len(sets) + column) * wide + place]
            keys = {"active": active, "density": density, "constraint": constraint}
            _samplings(panels, at, where(table, **keys), len(sets) > 1, **keys)
    return panels.done(4)


def _samplings(
    panels: Panels, at: Axes, table: pd.DataFrame, several: bool, active: float,
    density: float, constraint: str,
) -> None:  # fmt: skip
    """One panel; that of the ball is named after it where the box is beside it."""
    panel = f"features {percent(density)}, variable {percent(active)}"
    title = f"{panel}\n{SETS[constraint]}" if several else panel
    if several and constraint == "ball":
        panel = f"ball, {percent(density)} of A, {percent(active)} of x"
    names = list(table["sampling"].unique())
    for name, look in zip(names, hues(len(names)), strict=True):
        chosen = where(table, sampling=name)
        label = f"{name}: $p_{{min}}$ = {chosen['p_min'].iloc[0]:.2g}"
        curve(panels, at, panel, label, chosen, look)
    finish(at, title)


@drawing.styled
def nodes(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 2: K nodes without noise, by Algorithm 2 and by Algorithm 1."""
    table, sampled = read(config, "nodes"), read(config, "blocks")
    shares = sorted(table["share"].unique())
    panels = Panels(2 * (len(shares) + 1), len(shares) + 1)
    at = iter(panels.axes)
    for update, constraint in zip(UPDATES, ("box", "ball"), strict=True):
        for share in shares:
            panel = f"{UPDATES[update]}, {SHARE.format(share)}"
            shown = where(table, share=share, update=update)
            family(panels, next_ := next(at), panel, shown, "nodes")
            finish(next_, panel)
        panel = f"Algorithm 1, {constraint}"
        shown = where(sampled, constraint=constraint)
        family(panels, next_ := next(at), panel, shown, "nodes")
        finish(next_, panel)
    return panels.done(4)


# --- Algorithm 2 ----------------------------------------------------------------------


@drawing.styled
def private(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 3: DP-BCFW, DP-FW and FW, printed noise above, sound noise below."""
    table = read(config, "private")
    sizes = table[["d", "n", "density"]].drop_duplicates().to_numpy().tolist()
    panels = Panels(2 * len(sizes), len(sizes))
    at = iter(panels.axes)
    for noise in ("stated", "strict"):
        for d, n, density in sizes:
            axis, shown = next(at), where(table, d=d, n=n, density=density)
            title = f"d = {d:g}, n = {n:g}, {percent(density)}"
            panel = f"{title}, {noise}"
            baselines(panels, axis, panel, shown, noise)
            for update, look in zip(UPDATES, hues(2), strict=True):
                chosen = where(shown, method="dp_bcfw", noise=noise, update=update)
                label = f"DP-BCFW, {UPDATES[update]}"
                curve(panels, axis, panel, label, chosen, look)
            ours = where(shown, method="dp_bcfw", noise=noise)
            finish(axis, f"{title}\n{NOISES[noise]}, {_true(ours)}")
    return explained(panels, 4)


def _true(table: pd.DataFrame) -> str:
    """The true epsilon of runs, for a title."""
    value = table["true_epsilon"].mean()
    if value >= 1000:
        return f"true $\\epsilon$ about $10^{{{np.log10(value):.0f}}}$"
    return f"true $\\epsilon$ {value:.2g}"


@drawing.styled
def workers(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 5: K nodes with noise, as published and with equal feasible sets."""
    table = read(config, "workers")
    shares = sorted(table["share"].unique())
    panels = Panels(2 * len(shares), len(shares))
    at = iter(panels.axes)
    for update in UPDATES:
        for share in shares:
            axis, shown = next(at), where(table, share=share)
            panel = f"{UPDATES[update]}, {SHARE.format(share)}"
            baselines(panels, axis, panel, shown, "scaled")
            chosen = where(shown, method="dp_bcfw", update=update)
            family(panels, axis, panel, chosen, "nodes")
            reach = chosen["largest_norm"].max()
            finish(axis, f"{panel}\nlargest $\\|x\\|_1$ = {reach:.3g} $\\eta$")
    return explained(panels, 6)


@drawing.styled
def by_noise(config: Config, product: Product, problems: list[str]) -> Drawing:
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
    panels = Panels(len(kinds), 3)
    for kind, axis in panels.over(kinds):
        panel, title = kind["noise"], NOISES[kind["noise"]]
        if beside is not None:
            named, titled = BESIDE[beside]
            panel += named.format(kind[beside])
            title += titled.format(kind[beside])
        ball = {"share": kind["share"]} if "share" in kind else {}
        baselines(panels, axis, panel, where(table, **ball), kind["noise"])
        shown = where(private, **kind)
        family(panels, axis, panel, shown, product.options["along"])
        finish(axis, title)
    return explained(panels, product.options.get("columns", 4))


@drawing.styled
def real(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 9: real data, printed noise above, sound noise and feasible set below."""
    table = read(config, "real")
    names = [name for name in problems if name in set(table["problem"])]
    titles = results.titles(config, names)
    panels = Panels(2 * len(names), len(names))
    at = iter(panels.axes)
    for noise in ("stated", "strict"):
        for name in names:
            axis, shown = next(at), where(table, problem=name)
            if (shown["status"] == "unavailable").any():
                axis.set_title(titles[name].title)
                drawing.empty(axis, drawing.UNAVAILABLE)
                continue
            panel = f"{name}, {noise}"
            baselines(panels, axis, panel, shown, noise)
            chosen = where(shown, method="dp_bcfw", noise=noise)
            family(panels, axis, panel, chosen, "nodes")
            update = UPDATES[chosen["update"].iloc[0]]
            finish(axis, f"{titles[name].title}\n{NOISES[noise]}, {update}")
    return explained(panels, 6)


# --- excess risk against n ------------------------------------------------------------


@drawing.styled
def samples(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 4: excess risk against n in log-log, with slopes and their intervals.

    ``options``: noise, epsilon, and against, ``truth`` for f(x_true) or ``minimum``
    for the minimum over the ball.
    """
    options = product.options
    table = excess.excess(
        config, product.sweeps[0], options["against"], options["epsilon"]
    )
    shares = sorted(table["share"].unique())
    panels = Panels(2 * len(shares), 2)
    panels.figure.set_figwidth(
        1.6 * panels.figure.get_figwidth()
    )  # room for the legends
    at = iter(panels.axes)
    for share in shares:
        for update in UPDATES:
            axis, shown = next(at), where(table, share=share)
            panel = f"{UPDATES[update]}, {SHARE.format(share)}"
            _slopes(panels, axis, panel, shown, update, options["noise"])
            label = "excess empirical risk"
            log_axes(axis, "training records n", label, title=panel)
            ticks(axis, shown["n"].unique())
            axis.minorticks_off()
            axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=6.5)
    return panels.figure, panels.rows


def _slopes(
    panels: Panels,
    axes: Axes,
    panel: str,
    table: pd.DataFrame,
    update: str,
    noise: str,
) -> None:
    """Curves of DP-FW and of each K, their slopes in the legend; the theory's line."""
    alone = where(table, method="dp_fw", noise=central(noise))
    chosen = where(table, method="dp_bcfw", noise=noise, update=update)
    K = sorted(chosen["nodes"].unique())
    family = [("DP-FW", alone, BASELINES["DP-FW"])]
    family += [
        (FAMILIES["nodes"](k), where(chosen, nodes=k), look)
        for k, look in zip(K, shades(len(K)), strict=True)
    ]
    for name, runs, look in family:
        label = f"{name}: {_slope(runs)}"
        curve(panels, axes, panel, label, runs, look, "n", "excess")
    sizes = np.array(sorted(table["n"].unique()))
    label, bound = f"theory: {excess.THEORY:.2f}", excess.theory(sizes, chosen)
    axes.plot(sizes, bound, color="#D55E00", linewidth=0.9, label=label)


def _slope(runs: pd.DataFrame) -> str:
    """Slope and its interval in words; none is fitted to an excess below 0."""
    slope, low, high = excess.exponent(runs)
    if np.isnan(slope):
        return "no slope,\nsome excess below 0"
    return f"{slope:.2f} [{low:.2f}, {high:.2f}]"


# --- what the paper does not show -----------------------------------------------------


@drawing.styled
def claims(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figures of the claims against epsilon, and where each starts to hold."""
    found = margins.of_runs(last(read(config, product.sweeps[0])))
    panels = Panels(len(margins.CLAIMS) + 1, 3)
    noises = list(margins.KINDS)
    for claim, axis in zip(margins.CLAIMS, panels.axes, strict=False):
        for noise, look in zip(noises, hues(len(noises)), strict=True):
            shown = where(found, claim=claim, noise=noise)
            curve(panels, axis, claim, NOISES[noise], shown, look, "epsilon", "margin")
        axis.axhline(0.0, color="0.3", linewidth=0.9)
        axis.set(xscale="log", title=margins.CLAIMS[claim], xlabel="$\\epsilon$")
        axis.set_ylim(*np.clip(axis.get_ylim(), -1.0, 1.0))
        axis.set_ylabel("margin (holds below 0)")
    _starts(panels.axes[-1], margins.starts(found), noises)
    return panels.done(4)


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
def losses(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Table V as a figure: sketches of several lengths, one panel a loss."""
    table = read(config, "losses")
    names = list(table["loss_name"].unique())
    panels = Panels(len(names), 3)
    for name, axis in panels.over(names):
        shown = where(table, loss_name=name)
        family(panels, axis, name, shown, "length")
        finish(axis, name.replace("_", " "))
    return panels.done(4)


@drawing.styled
def communication(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Uplink bytes of a run against n, and along a run, one column a budget."""
    table = read(config, "communication")
    budgets = sorted(table["epsilon"].unique())
    panels = Panels(2 * len(budgets), len(budgets))
    for k, epsilon in enumerate(budgets):
        shown = where(table, epsilon=epsilon)
        above, below = panels.axes[k], panels.axes[len(budgets) + k]
        _against_n(panels, above, shown, f"epsilon {epsilon:g}")
        above.set_title(f"one run, $\\epsilon$ = {epsilon:g}")
        _along(panels, below, shown, f"along, epsilon {epsilon:g}")
    return panels.figure, panels.rows


def _against_n(panels: Panels, axes: Axes, table: pd.DataFrame, panel: str) -> None:
    for (label, runs), look in zip(
        uplink.by_records(table).items(), hues(4), strict=True
    ):
        curve(panels, axes, panel, label, runs, look, "n", "bytes_up")
    log_axes(axes, "n", "bytes up, all nodes")
    ticks(axes, table["n"].unique())
    axes.minorticks_off()
    axes.legend(loc="best")


def _along(panels: Panels, axes: Axes, table: pd.DataFrame, panel: str) -> None:
    """Bytes so far, up and down, at the largest n; a feature is never sent twice."""
    sent, every = uplink.along(table)
    up, down, _ = hues(3)
    for label, runs, look, y in (
        ("up, measured", sent, up, "bytes_up"),
        ("up, if each were sent", every, BASELINES["FW"], "bytes_up"),
        ("down, measured", sent, down, "bytes_down"),
    ):
        curve(panels, axes, panel, label, runs, look, y=y)
    axes.set(yscale="log", xlabel="iteration", ylabel="bytes so far, all nodes")
    axes.set_title(f"n = {table['n'].max():g}, T tuned")
    axes.legend(loc="best")


# --- readings -------------------------------------------------------------------------


@drawing.styled
def readings(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figures 3 and 5 to 8 against eta itself, one column a reading.

    ``options``: iterations, the T of the runs that are shown.
    """
    tables = [_by_radius(read(config, name)) for name in product.sweeps]
    several = (reading_figures.workers, reading_figures.private)
    lines = [
        line for of, table in zip(several, tables, strict=True) for line in of(table)
    ]
    count = product.options["iterations"]
    return reading_figures.grid(lines, "radius", "$\\eta$", count)


def _by_radius(table: pd.DataFrame) -> pd.DataFrame:
    """With ``radius``, eta; where that is ||x_true||_1, its mean over the draws."""
    means = table.groupby("ball")["eta"].mean()
    return table.assign(radius=table["ball"].map(means))


@drawing.styled
def radii(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 9 against eta; ``options``: iterations, as for ``readings``."""
    table = read(config, product.sweeps[0])
    titles = results.titles(config, table["problem"].unique())
    lines = list(reading_figures.real(where(table, status="ok"), titles))
    if not lines:
        panels = Panels(1)
        drawing.empty(panels.axes[0], drawing.UNAVAILABLE)
        return panels.figure, []
    count = product.options["iterations"]
    label = "$\\eta$ over $\\|w^*\\|_1$"
    return reading_figures.grid(lines, "share", label, count)
