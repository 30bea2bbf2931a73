"""Figures of Lou and Cheung 2020 (DP-BCFW)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dperm import schema
from dperm.papers.dpbcfw import sentences as judging
from dperm.pipeline import results
from dperm.present import drawing

Rows = list[dict[str, Any]]
Look = dict[str, Any]

BLACK: Look = {"color": "#000000", "linestyle": (0, (5, 1.5)), "marker": "x"}
GREY: Look = {"color": "#8a8a8a", "linestyle": "-.", "marker": "+"}
_HUES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
_STROKES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))
NOISES = {
    "none": "no noise",
    "stated": "noise as printed",
    "scaled": "printed noise, scores $\\eta\\,\\nabla f$",
    "strict": "least sound noise",
    "scaled, m = n": "the same, no sketch",
}
UPDATES = {"published": "as published", "feasible": "feasible"}


def _looks(count: int) -> list[Look]:
    """Looks of an ordered family, dark to light, apart in greyscale too."""
    shades = mpl.colormaps["viridis"](np.linspace(0.0, 0.85, count))
    return [
        {
            "color": mpl.colors.to_hex(shade),
            "linestyle": _STROKES[k % len(_STROKES)],
            "marker": _MARKS[k % len(_MARKS)],
        }
        for k, shade in enumerate(shades)
    ]


def _kinds(count: int) -> list[Look]:
    """Looks of unordered kinds."""
    return [
        {"color": _HUES[k], "linestyle": _STROKES[k], "marker": _MARKS[k]}
        for k in range(count)
    ]


def _curve(
    axes: Axes, panel: str, label: str, table: pd.DataFrame, look: Look,
    x: str = "iteration", y: str = "relative",
) -> Rows:  # fmt: skip
    """Mean and range of y against x over the replicates."""
    rows = [
        drawing.summary(panel, label, float(value), group[y].to_numpy())
        for value, group in table.groupby(x)
    ]
    if rows:
        drawn = pd.DataFrame(rows)
        every = max(1, len(drawn) // 6)
        axes.plot(drawn["x"], drawn["mean"], label=label, markersize=3.5,
                  markevery=every, **look)  # fmt: skip
        axes.fill_between(drawn["x"], drawn["min"], drawn["max"], color=look["color"],
                          alpha=0.15, linewidth=0)  # fmt: skip
    return rows


def _read(config: schema.Config, name: str) -> pd.DataFrame:
    """A sweep's rows with the loss over f(0)."""
    table = results.load_sweep(config, name)
    if "loss" in table and "start" in table:
        table = table.assign(relative=table["loss"] / table["start"])
    return table


def _finish(axes: Axes, title: str, legend: bool = False) -> None:
    axes.set_title(title)
    axes.set_yscale("log")
    axes.set_xlabel("iteration")
    axes.set_ylabel("loss / loss at 0")
    axes.axhline(1.0, color="0.6", linewidth=0.7, zorder=0)
    if legend:
        axes.legend(loc="best")


def _where(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    mask = np.ones(len(table), dtype=bool)
    for key, value in values.items():
        mask &= (table[key] == value).to_numpy()
    return table[mask]


def _baselines(axes: Axes, panel: str, table: pd.DataFrame, noise: str) -> Rows:
    """FW and DP-FW, as far as they were run."""
    rows = _curve(axes, panel, "FW", _where(table, method="fw"), BLACK)
    private = _where(table, method="dp_fw", noise=noise)
    return rows + _curve(axes, panel, "DP-FW", private, GREY)


def _central(noise: str) -> str:
    """DP-FW's noise beside DP-BCFW's: its formula has no printed misfit of scores."""
    return "strict" if noise == "strict" else "scaled"


def _percent(value: float) -> str:
    return f"{100 * value:g} %"


# --- Algorithm 1 ----------------------------------------------------------------------


@drawing.styled
def samplings(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figure 1: samplings, one panel a pair of sparsities, laid out as printed."""
    table = _where(_read(config, "samplings"), constraint=product.options["constraint"])
    pairs = table[["active", "density"]].drop_duplicates().to_numpy().tolist()
    pairs.sort(reverse=True)
    figure, axes = drawing.panels(len(pairs), 3)
    names = list(table["sampling"].unique())
    rows: Rows = []
    for (active, density), at in zip(pairs, axes, strict=True):
        panel = f"features {_percent(density)}, variable {_percent(active)}"
        shown = _where(table, active=active, density=density)
        for name, look in zip(names, _kinds(len(names)), strict=True):
            chosen = _where(shown, sampling=name)
            label = f"{name}: $p_{{min}}$ = {chosen['p_min'].iloc[0]:.2g}"
            rows += _curve(at, panel, label, chosen, look)
        _finish(at, panel)
    drawing.shared_legend(figure, 4)
    return figure, rows


@drawing.styled
def nodes(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figure 2: K nodes without noise, by Algorithm 2 and by Algorithm 1."""
    table, sampled = _read(config, "nodes"), _read(config, "blocks")
    shares = sorted(table["share"].unique())
    figure, axes = drawing.panels(2 * (len(shares) + 1), len(shares) + 1)
    rows: Rows = []
    at = iter(axes)
    for update, constraint in zip(UPDATES, ("box", "ball"), strict=True):
        for share in shares:
            panel = f"{UPDATES[update]}, $\\eta$ = {share:g} $\\|x_{{true}}\\|_1$"
            shown = _where(table, share=share, update=update)
            rows += _family(next_ := next(at), panel, shown, "nodes", "K = {:g}")
            _finish(next_, panel)
        panel = f"Algorithm 1, {constraint}"
        shown = _where(sampled, constraint=constraint)
        rows += _family(next_ := next(at), panel, shown, "nodes", "K = {:g}")
        _finish(next_, panel)
    drawing.shared_legend(figure, 4)
    return figure, rows


def _family(axes: Axes, panel: str, table: pd.DataFrame, key: str, label: str) -> Rows:
    """One curve for each value of a key, dark to light."""
    values = sorted(table[key].unique())
    return [
        row
        for value, look in zip(values, _looks(len(values)), strict=True)
        for row in _curve(
            axes, panel, label.format(value), _where(table, **{key: value}), look
        )
    ]


# --- Algorithm 2 ----------------------------------------------------------------------


@drawing.styled
def private(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figure 3: DP-BCFW, DP-FW and FW, printed noise above, sound noise below."""
    table = _read(config, "private")
    sizes = table[["d", "n", "density"]].drop_duplicates().to_numpy().tolist()
    figure, axes = drawing.panels(2 * len(sizes), len(sizes))
    rows: Rows = []
    at = iter(axes)
    for noise in ("stated", "strict"):
        for d, n, density in sizes:
            axis, shown = next(at), _where(table, d=d, n=n, density=density)
            title = f"d = {d:g}, n = {n:g}, {_percent(density)}"
            panel = f"{title}, {noise}"
            rows += _baselines(axis, panel, shown, _central(noise))
            for update, look in zip(UPDATES, _kinds(2), strict=True):
                chosen = _where(shown, method="dp_bcfw", noise=noise, update=update)
                label = f"DP-BCFW, {UPDATES[update]}"
                rows += _curve(axis, panel, label, chosen, look)
            ours = _where(shown, method="dp_bcfw", noise=noise)
            _finish(axis, f"{title}\n{NOISES[noise]}, {_true(ours)}")
    drawing.shared_legend(figure, 4)
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
    table = _read(config, "workers")
    shares = sorted(table["share"].unique())
    figure, axes = drawing.panels(2 * len(shares), len(shares))
    rows: Rows = []
    at = iter(axes)
    for update in UPDATES:
        for share in shares:
            axis, shown = next(at), _where(table, share=share)
            panel = f"{UPDATES[update]}, $\\eta$ = {share:g} $\\|x_{{true}}\\|_1$"
            rows += _baselines(axis, panel, shown, "scaled")
            chosen = _where(shown, method="dp_bcfw", update=update)
            rows += _family(axis, panel, chosen, "nodes", "K = {:g}")
            reach = chosen["largest_norm"].max()
            _finish(axis, f"{panel}\nlargest $\\|x\\|_1$ = {reach:.3g} $\\eta$")
    drawing.shared_legend(figure, 6)
    return figure, rows


@drawing.styled
def epsilons(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figure 6: privacy budgets, one panel a kind of noise."""
    table = _read(config, "epsilons")
    kinds = ["stated", "scaled", "strict"]
    figure, axes = drawing.panels(len(kinds), 3)
    rows: Rows = []
    for noise, axis in zip(kinds, axes, strict=True):
        rows += _baselines(axis, noise, table, _central(noise))
        chosen = _where(table, method="dp_bcfw", noise=noise)
        rows += _family(axis, noise, chosen, "epsilon", "$\\epsilon$ = {:g}")
        _finish(axis, NOISES[noise])
    drawing.shared_legend(figure, 5)
    return figure, rows


@drawing.styled
def splits(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figure 7: splits of the budget, one panel a kind of noise."""
    table = _read(config, "splits")
    private = _where(table, method="dp_bcfw")
    kinds = private[["noise", "epsilon"]].drop_duplicates().to_numpy().tolist()
    figure, axes = drawing.panels(len(kinds), 3)
    rows: Rows = []
    for (noise, epsilon), axis in zip(kinds, axes, strict=True):
        panel = f"{noise}, epsilon {epsilon:g}"
        rows += _baselines(axis, panel, table, _central(noise))
        chosen = _where(private, noise=noise, epsilon=epsilon)
        rows += _splits(axis, panel, chosen)
        _finish(axis, f"{NOISES[noise]},\n$\\epsilon$ = {epsilon:g}")
    drawing.shared_legend(figure, 4)
    return figure, rows


def _splits(axes: Axes, panel: str, table: pd.DataFrame) -> Rows:
    """One curve for each split, indices : features."""
    shares = sorted(table["split"].unique())
    return [
        row
        for share, look in zip(shares, _looks(len(shares)), strict=True)
        for row in _curve(
            axes, panel, f"{10 * share:.0f} : {10 - 10 * share:.0f}",
            _where(table, split=share), look,
        )
    ]  # fmt: skip


@drawing.styled
def lengths(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figure 8: lengths of a sketched feature, with and without noise."""
    table = _read(config, "lengths")
    private = _where(table, method="dp_bcfw")
    kinds = private[["noise", "share"]].drop_duplicates().to_numpy().tolist()
    figure, axes = drawing.panels(len(kinds), 3)
    rows: Rows = []
    for (noise, share), axis in zip(kinds, axes, strict=True):
        panel = f"{noise}, eta {share:g}"
        rows += _baselines(axis, panel, _where(table, share=share), "scaled")
        chosen = _where(private, noise=noise, share=share)
        rows += _family(axis, panel, chosen, "sketch", "m = {:g}")
        _finish(axis, f"{NOISES[noise]}, $\\eta$ = {share:g} $\\|x_{{true}}\\|_1$")
    drawing.shared_legend(figure, 4)
    return figure, rows


@drawing.styled
def real(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figure 9: real data, printed noise above, sound noise and feasible set below."""
    table = _read(config, "real")
    names = [name for name in problems if name in set(table["problem"])]
    titles = results.titles(config, names)
    figure, axes = drawing.panels(2 * len(names), len(names))
    rows: Rows = []
    at = iter(axes)
    for noise in ("stated", "strict"):
        for name in names:
            axis, shown = next(at), _where(table, problem=name)
            if (shown["status"] == "unavailable").any():
                axis.set_title(titles[name].title)
                drawing.empty(axis, str(shown["reason"].iloc[0]))
                continue
            panel = f"{name}, {noise}"
            rows += _baselines(axis, panel, shown, _central(noise))
            chosen = _where(shown, method="dp_bcfw", noise=noise)
            rows += _family(axis, panel, chosen, "nodes", "K = {:g}")
            update = UPDATES[chosen["update"].iloc[0]]
            _finish(axis, f"{titles[name].title}\n{NOISES[noise]}, {update}")
    drawing.shared_legend(figure, 6)
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
    table = _read(config, "samples")
    table = table[table["iteration"] == table["iterations"]]
    table = table.assign(excess=table["loss"] - table[options["against"]])
    table = _where(table, epsilon=options["epsilon"])
    shares = sorted(table["share"].unique())
    figure, axes = drawing.panels(2 * len(shares), 2)
    figure.set_figwidth(1.6 * figure.get_figwidth())  # room for the legends
    rows: Rows = []
    at = iter(axes)
    for share in shares:
        for update in UPDATES:
            axis, shown = next(at), _where(table, share=share)
            panel = f"{UPDATES[update]}, $\\eta$ = {share:g} $\\|x_{{true}}\\|_1$"
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
    central = _central(noise)
    curves = [("DP-FW", _where(table, method="dp_fw", noise=central), GREY)]
    chosen = _where(table, method="dp_bcfw", noise=noise, update=update)
    K = sorted(chosen["nodes"].unique())
    curves += [
        (f"K = {k:g}", _where(chosen, nodes=k), look)
        for k, look in zip(K, _looks(len(K)), strict=True)
    ]
    rows: Rows = []
    for name, runs, look in curves:
        label = f"{name}: {_slope(runs)}"
        rows += _curve(axes, panel, label, runs, look, "n", "excess")
    sizes = np.array(sorted(table["n"].unique()))
    height = chosen.groupby("n")["excess"].mean().iloc[0]
    line = height * (sizes / sizes[0]) ** (-2 / 3)
    axes.plot(sizes, line, color="#D55E00", linewidth=0.9, label="theory: -0.67")
    return rows


def _slope(runs: pd.DataFrame) -> str:
    """Slope and its interval in words; none is fitted to an excess below 0."""
    slope, low, high = judging.slope(runs["n"], runs["excess"])
    if np.isnan(slope):
        return "no slope,\nsome excess below 0"
    return f"{slope:.2f} [{low:.2f}, {high:.2f}]"


# --- what the paper does not show -----------------------------------------------------


@drawing.styled
def claims(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Figures of the claims against epsilon, and where each starts to hold."""
    table = _read(config, "claims")
    table = table[table["iteration"] == table["iterations"]]
    found = judging.judge(table)
    figure, axes = drawing.panels(len(judging.CLAIMS) + 1, 3)
    rows: Rows = []
    noises = list(judging.KINDS)
    for claim, axis in zip(judging.CLAIMS, axes, strict=False):
        for noise, look in zip(noises, _kinds(len(noises)), strict=True):
            shown = _where(found, claim=claim, noise=noise)
            rows += _curve(axis, claim, NOISES[noise], shown, look, "epsilon", "margin")
        axis.axhline(0.0, color="0.3", linewidth=0.9)
        axis.set(xscale="log", title=judging.CLAIMS[claim], xlabel="$\\epsilon$")
        axis.set_ylim(*np.clip(axis.get_ylim(), -1.0, 1.0))
        axis.set_ylabel("margin (holds below 0)")
    _starts(axes[-1], judging.starts(found), noises)
    drawing.shared_legend(figure, 4)
    return figure, rows


def _starts(axes: Axes, starts: pd.DataFrame, noises: Iterable[str]) -> None:
    """A dot where each claim starts to hold; none where it never does."""
    names = list(judging.CLAIMS)
    kinds = list(noises)
    for noise, look in zip(kinds, _kinds(len(kinds)), strict=True):
        shown = _where(starts, noise=noise)
        places = [names.index(claim) for claim in shown["claim"]]
        shift = 0.18 * (kinds.index(noise) - 1.5)
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
    table = _read(config, "losses")
    names = list(table["loss_name"].unique())
    figure, axes = drawing.panels(len(names), 3)
    rows: Rows = []
    for name, axis in zip(names, axes, strict=True):
        shown = _where(table, loss_name=name)
        rows += _family(axis, name, shown, "length", "m = {:g} n")
        _finish(axis, name.replace("_", " "))
    drawing.shared_legend(figure, 4)
    return figure, rows


@drawing.styled
def communication(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Uplink bytes of a run against n, and along a run, one column a budget."""
    table = _read(config, "communication")
    budgets = sorted(table["epsilon"].unique())
    figure, axes = drawing.panels(2 * len(budgets), len(budgets))
    rows: Rows = []
    looks = _kinds(4)
    for k, epsilon in enumerate(budgets):
        shown = _where(table, epsilon=epsilon)
        rows += _against_n(axes[k], shown, f"epsilon {epsilon:g}", looks)
        axes[k].set_title(f"one run, $\\epsilon$ = {epsilon:g}")
        rows += _along(axes[len(budgets) + k], shown, f"along, epsilon {epsilon:g}")
    return figure, rows


def _against_n(axes: Axes, table: pd.DataFrame, panel: str, looks: list[Look]) -> Rows:
    last = table[table["iteration"] == table["iterations"]]
    curves = {
        "measured, T of Theorem 4": _where(last, rule="theorem 4"),
        "measured, T tuned": _where(last, rule="tuned"),
        "Corollary 1": last.assign(bytes_up=8 * last["corollary"]),
        "one-shot sketch": last.assign(bytes_up=last["one_shot"]),
    }
    rows: Rows = []
    for (label, shown), look in zip(curves.items(), looks, strict=True):
        rows += _curve(axes, panel, label, shown, look, "n", "bytes_up")
    axes.set(xscale="log", yscale="log", xlabel="n", ylabel="bytes up, all nodes")
    ticks = sorted(table["n"].unique())
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.legend(loc="best")
    return rows


def _along(axes: Axes, table: pd.DataFrame, panel: str) -> Rows:
    """Bytes so far, up and down, at the largest n; a feature is never sent twice."""
    shown = _where(table, rule="tuned", n=table["n"].max())
    shown = shown[shown["iteration"] > 0]
    K, m = shown["nodes"].iloc[0], shown["sketch"].iloc[0]
    every = shown.assign(bytes_up=shown["iteration"] * K * (16 + 8 * m))
    rows = _curve(axes, panel, "up, measured", shown, _kinds(3)[0], y="bytes_up")
    rows += _curve(axes, panel, "up, if each were sent", every, BLACK, y="bytes_up")
    rows += _curve(axes, panel, "down, measured", shown, _kinds(3)[1], y="bytes_down")
    axes.set(yscale="log", xlabel="iteration", ylabel="bytes so far, all nodes")
    axes.set_title(f"n = {table['n'].max():g}, T tuned")
    axes.legend(loc="best")
    return rows
