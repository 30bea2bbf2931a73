"""Figures of Lou and Cheung 2020 (DP-BCFW)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from dperm.core.experiment import results
from dperm.core.experiment.schema import Config, Product
from dperm.papers.dpbcfw import outcomes
from dperm.papers.dpbcfw.outcomes import BUDGETS, OBJECTIVES, central, last, read, where
from dperm.present import drawing, looks
from dperm.present.drawing import (
    MARKERS,
    STROKES,
    Drawing,
    Panels,
    against,
    log_axes,
    shades,
    ticks,
)
from dperm.present.looks import Look

LARGER = (
    "Where a private curve ends below FW, which has no noise: line 12 adds a vertex of "
    "size $\\eta$ for each of K nodes,\nso that $\\|x\\|_1$ reaches K $\\eta$ where FW "
    "keeps to $\\eta$."
)
BASELINES = looks.of(["FW", "DP-FW"])
_HUES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SETS = {"ball": "l1 ball", "box": "box"}
NOISES = {
    "none": "no noise",
    "stated": "noise as printed",
    "scaled": "printed noise, scores $\\eta\\,\\nabla f$",
    "strict": "least sound noise",
    "scaled, m = n": "the same, no sketch",
}
UPDATES = {"published": "as published", "feasible": "feasible"}
SHARE = "$\\eta$ = {:g} $\\|x_{{true}}\\|_1$"
FAMILIES: dict[str, Callable[[float], str]] = {  # what a curve of a family is called
    "nodes": "K = {:g}".format,
    "epsilon": "$\\epsilon$ = {:g}".format,
    "split": lambda share: f"{10 * share:.0f} : {10 - 10 * share:.0f}",
    "sketch": "m = {:g}".format,
    "length": "m = {:g} n".format,
}
BESIDE = {  # what panels differ in beside their noise: in the data, and in the title
    "epsilon": (", epsilon {:g}", ",\n$\\epsilon$ = {:g}"),
    "share": (", eta {:g}", f", {SHARE}"),
}
TOP = 1.5  # losses over f(0) above it are not shown: nothing was learnt
WORDS = {
    "mean": "mean",
    "sum": "sum",
    "total": "$\\epsilon$ in total",
    "iteration": "$\\epsilon$ an iteration",
}
Curve = tuple[str, pd.DataFrame, Look]  # label, runs, look


class Curves(Panels):
    """Panels of losses, by default over f(0) and against the iteration."""

    def curve(
        self,
        axes: Axes,
        panel: str,
        label: str,
        table: pd.DataFrame,
        look: Look,
        x: str = "iteration",
        y: str = "relative",
    ) -> None:
        """Mean and range of y against x over the replicates."""
        self.mean(axes, table, x, y, panel, label, look, marks=6)

    def family(self, axes: Axes, panel: str, table: pd.DataFrame, key: str) -> None:
        """One curve for each value of a key, dark to light."""
        for label, runs, look in _family(table, key):
            self.curve(axes, panel, label, runs, look)

    def baselines(
        self, axes: Axes, panel: str, table: pd.DataFrame, noise: str
    ) -> None:
        """FW and DP-FW, as far as they were run; noise is that of DP-BCFW."""
        runs = {
            "FW": where(table, method="fw"),
            "DP-FW": where(table, method="dp_fw", noise=central(noise)),
        }
        for name, look in BASELINES.items():
            self.curve(axes, panel, name, runs[name], look)

    def explained(self, columns: int = 0) -> Drawing:
        """The figure with a legend of so many columns, if any.

        It says above the panels why private curves end below FW, if any does.
        """
        done = self.done(columns) if columns else (self.figure, self.rows)
        if not self.rows:
            return done
        table = pd.DataFrame(self.rows)
        ends = table.loc[table.groupby(["panel", "algorithm"])["x"].idxmax()]
        alone = where(ends, algorithm="FW").set_index("panel")["mean"]
        ours = ends[~ends["algorithm"].isin(["FW", "DP-FW"])]
        if (ours["mean"] < ours["panel"].map(alone)).any():
            self.figure.suptitle(LARGER, fontsize=8)
        return done


def hues(count: int) -> list[Look]:
    """Looks of unordered kinds."""
    kinds = zip(_HUES[:count], STROKES, MARKERS, strict=False)
    return [looks.look(*kind) for kind in kinds]


def finish(axes: Axes, title: str) -> None:
    """Title, logarithmic losses against iterations, and f(0) as a line."""
    axes.set(title=title, yscale="log", xlabel="iteration", ylabel="loss / loss at 0")
    axes.axhline(1.0, color="0.6", linewidth=0.7, zorder=0)


def percent(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:g} %"


def _family(table: pd.DataFrame, key: str) -> Iterator[Curve]:
    values = sorted(table[key].unique())
    for value, look in zip(values, shades(len(values)), strict=True):
        yield FAMILIES[key](value), where(table, **{key: value}), look


# --- Algorithm 1 ----------------------------------------------------------------------


@drawing.styled
def samplings(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 1: samplings, one panel a pair of sparsities, laid out as printed.

    ``options``: constraint, the set; beside, another one, below, whose panels stand in
    the data without the name of their set.
    """
    table, options = read(config, product.sweeps[0]), product.options
    sets = [options[key] for key in ("constraint", "beside") if key in options]
    pairs = table[["active", "density"]].drop_duplicates().to_numpy().tolist()
    pairs.sort(reverse=True)
    wide = min(3, len(pairs))  # columns of one set
    panels = Curves(len(sets) * len(pairs), wide)
    axes = iter(panels.axes)
    for constraint in sets:
        for active, density in pairs:
            axis = next(axes)
            runs = where(table, active=active, density=density, constraint=constraint)
            panel = title = f"features {percent(density)}, variable {percent(active)}"
            if len(sets) > 1:
                title = f"{SETS[constraint]}: {title}"
                if constraint == "ball":
                    panel = f"ball, {percent(density)} of A, {percent(active)} of x"
            names = list(runs["sampling"].unique())
            for name, look in zip(names, hues(len(names)), strict=True):
                chosen = where(runs, sampling=name)
                label = f"{name}: $p_{{min}}$ = {chosen['p_min'].iloc[0]:.2g}"
                panels.curve(axis, panel, label, chosen, look)
            finish(axis, title)
            axis.set_title(title, fontsize=8.5)
    panels.outer(1.75)
    return panels.done(4)


@drawing.styled
def nodes(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 2: K nodes without noise, by Algorithm 2 and by Algorithm 1."""
    table, sampled = read(config, "nodes"), read(config, "blocks")
    keys = [*sorted(table["share"].unique()), None]
    panels = Curves(2 * len(keys), len(keys))
    rows = itertools.product(zip(UPDATES, ("box", "ball"), strict=True), keys)
    for ((update, constraint), share), axis in panels.over(rows):
        if share is None:
            panel = f"Algorithm 1, {constraint}"
            runs = where(sampled, constraint=constraint)
        else:
            panel = f"{UPDATES[update]}, {SHARE.format(share)}"
            runs = where(table, share=share, update=update)
        panels.family(axis, panel, runs, "nodes")
        finish(axis, panel)
    return panels.done(4)


# --- Algorithm 2 ----------------------------------------------------------------------


@drawing.styled
def private(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 3: DP-BCFW, DP-FW and FW, printed noise above, sound noise below."""
    table = read(config, "private")
    sizes = table[["d", "n", "density"]].drop_duplicates().to_numpy().tolist()
    panels = Curves(2 * len(sizes), len(sizes))
    for (noise, (d, n, density)), axis in panels.over(
        itertools.product(("stated", "strict"), sizes)
    ):
        runs = where(table, d=d, n=n, density=density)
        ours = where(runs, method="dp_bcfw", noise=noise)
        title = f"d = {d:g}, n = {n:g}, {percent(density)}"
        panel = f"{title}, {noise}"
        panels.baselines(axis, panel, runs, noise)
        for update, look in zip(UPDATES, hues(2), strict=True):
            label = f"DP-BCFW, {UPDATES[update]}"
            panels.curve(axis, panel, label, where(ours, update=update), look)
        value = ours["true_epsilon"].mean()
        size = f"about $10^{{{np.log10(value):.0f}}}$" if value >= 1000 else None
        cost = f"true $\\epsilon$ {size or f'{value:.2g}'}"
        finish(axis, f"{title}\n{NOISES[noise]}, {cost}")
    return panels.explained(4)


@drawing.styled
def workers(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 5: K nodes with noise, as published and with equal feasible sets."""
    table = read(config, "workers")
    shares = sorted(table["share"].unique())
    panels = Curves(2 * len(shares), len(shares))
    for (update, share), axis in panels.over(itertools.product(UPDATES, shares)):
        runs = where(table, share=share)
        ours = where(runs, method="dp_bcfw", update=update)
        panel = f"{UPDATES[update]}, {SHARE.format(share)}"
        panels.baselines(axis, panel, runs, "scaled")
        panels.family(axis, panel, ours, "nodes")
        reach = ours["largest_norm"].max()
        finish(axis, f"{panel}\nlargest $\\|x\\|_1$ = {reach:.3g} $\\eta$")
    return panels.explained(6)


@drawing.styled
def by_noise(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figures 6 to 8: a family of runs, one panel a kind of noise.

    ``options``: along, the key that the curves of a family differ in, of ``FAMILIES``;
    beside, what panels differ in beside their noise, of ``BESIDE``; columns, those of
    the legend.
    """
    table, apart = read(config, product.sweeps[0]), product.options.get("beside")
    ours = where(table, method="dp_bcfw")
    keys = ["noise"] if apart is None else ["noise", apart]
    kinds = ours[keys].drop_duplicates().to_dict("records")
    panels = Curves(len(kinds), 3)
    for kind, axis in panels.over(kinds):
        panel, title = kind["noise"], NOISES[kind["noise"]]
        if apart is not None:
            named, titled = BESIDE[apart]
            panel += named.format(kind[apart])
            title += titled.format(kind[apart])
        ball = {"share": kind["share"]} if "share" in kind else {}
        panels.baselines(axis, panel, where(table, **ball), kind["noise"])
        panels.family(axis, panel, where(ours, **kind), product.options["along"])
        finish(axis, title)
    return panels.explained(product.options.get("columns", 4))


@drawing.styled
def real(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 9: real data, printed noise above, sound noise and feasible set below."""
    table = read(config, "real")
    names = [name for name in problems if name in set(table["problem"])]
    titles = results.titles(config, names)
    panels = Curves(2 * len(names), len(names))
    for (noise, name), axis in panels.over(
        itertools.product(("stated", "strict"), names)
    ):
        runs = where(table, problem=name)
        if (runs["status"] == "unavailable").any():
            axis.set_title(titles[name].title)
            drawing.empty(axis, drawing.UNAVAILABLE)
            continue
        panel = f"{name}, {noise}"
        ours = where(runs, method="dp_bcfw", noise=noise)
        panels.baselines(axis, panel, runs, noise)
        panels.family(axis, panel, ours, "nodes")
        update = UPDATES[ours["update"].iloc[0]]
        finish(axis, f"{titles[name].title}\n{NOISES[noise]}, {update}")
    return panels.explained(6)


@drawing.styled
def samples(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 4: excess risk against n in log-log, with slopes and their intervals.

    ``options``: noise, epsilon, and against, ``truth`` for f(x_true) or ``minimum``
    for the minimum over the ball.
    """
    options, sweep = product.options, product.sweeps[0]
    table = outcomes.excess(config, sweep, options["against"], options["epsilon"])
    shares = sorted(table["share"].unique())
    panels, noise = Curves(2 * len(shares), 2), options["noise"]
    for (share, update), axis in panels.over(itertools.product(shares, UPDATES)):
        runs = where(table, share=share)
        alone = where(runs, method="dp_fw", noise=central(noise))
        ours = where(runs, method="dp_bcfw", noise=noise, update=update)
        panel = f"{UPDATES[update]}, {SHARE.format(share)}"
        curves = [("DP-FW", alone, BASELINES["DP-FW"]), *_family(ours, "nodes")]
        for name, part, look in curves:
            rows = against(part, "n", "excess", panel, f"{name}: {_slope(part)}")
            panels.band(axis, rows, name, look, shade=0.08)
        sizes = np.array(sorted(runs["n"].unique()))
        bound = outcomes.theory_line(sizes, ours)
        label = f"theory, slope {outcomes.THEORY:.2f}"
        axis.plot(sizes, bound, color="#D55E00", linewidth=0.9, label=label)
        title = f"{panel}\n{_slopes([part for _, part, _ in curves])}"
        log_axes(axis, "training records n", "excess empirical risk", title=title)
        ticks(axis, runs["n"].unique())
        axis.minorticks_off()
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_major_formatter("{x:g}")
    panels.outer(2.6)
    return panels.done(6)


def _slopes(parts: list[pd.DataFrame]) -> str:
    """The slope of DP-FW, and the range of those of DP-BCFW."""
    alone, *ours = (round(outcomes.slope(part)[0], 2) + 0.0 for part in parts)
    if np.isnan(ours).any():
        return "no slope for DP-BCFW: an excess is below 0"
    ends = f"{min(ours):.2f} to {max(ours):.2f}"
    theirs = "" if np.isnan(alone) else f", DP-FW {alone:.2f}"
    return f"slope: DP-BCFW {ends}{theirs}"


def _slope(runs: pd.DataFrame) -> str:
    """Slope and its interval in words; none is fitted to an excess below 0."""
    slope, low, high = outcomes.slope(runs)
    if np.isnan(slope):
        return "no slope,\nsome excess below 0"
    return f"{slope:.2f} [{low:.2f}, {high:.2f}]"


# --- what the paper does not show -----------------------------------------------------


@drawing.styled
def claims(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figures of the claims against epsilon, and where each starts to hold.

    In the last panel a claim that never holds has no dot.
    """
    margins = outcomes.claim_margins(last(read(config, product.sweeps[0])))
    starts, names = outcomes.claim_starts(margins), list(outcomes.CLAIMS)
    panels = Curves(len(names) + 1, 3)
    noises = dict(zip(outcomes.KINDS, hues(len(outcomes.KINDS)), strict=True))
    for claim, axis in zip(names, panels.axes, strict=False):
        for noise, look in noises.items():
            rows = where(margins, claim=claim, noise=noise)
            panels.curve(axis, claim, NOISES[noise], rows, look, "epsilon", "margin")
        axis.axhline(0.0, color="0.3", linewidth=0.9)
        axis.set(xscale="log", title=outcomes.CLAIMS[claim], xlabel="$\\epsilon$")
        axis.set_ylim(*np.clip(axis.get_ylim(), -1.0, 1.0))
        axis.set_ylabel("margin (holds below 0)")
    axis = panels.axes[-1]
    for k, (noise, look) in enumerate(noises.items()):
        rows = where(starts, noise=noise)
        places = np.array([names.index(claim) for claim in rows["claim"]])
        dots = {"color": look["color"], "marker": look["marker"], "linestyle": "none"}
        axis.plot(rows["epsilon"], places + 0.18 * (k - 1.5), markersize=6, **dots)
    axis.set_yticks(range(len(names)), names)
    axis.set(xscale="log", xlabel="$\\epsilon$", ylim=(len(names) - 0.5, -0.5))
    axis.set_title("where it starts to hold")
    return panels.done(4)


@drawing.styled
def losses(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Table V as a figure: sketches of several lengths, one panel a loss."""
    table = read(config, "losses")
    names = list(table["loss_name"].unique())
    panels = Curves(len(names), 3)
    for name, axis in panels.over(names):
        panels.family(axis, name, where(table, loss_name=name), "length")
        finish(axis, name.replace("_", " "))
    return panels.done(4)


@drawing.styled
def communication(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Uplink bytes of a run against n, and along a run, one column a budget.

    Below are the bytes so far, up and down, at the largest n; a feature is never sent
    twice.
    """
    table = read(config, "communication")
    budgets = sorted(table["epsilon"].unique())
    *whole, up, down = hues(6)
    panels = Curves(2 * len(budgets), len(budgets))
    for epsilon, above, below in zip(
        budgets, panels.axes, panels.axes[len(budgets) :], strict=False
    ):
        runs = where(table, epsilon=epsilon)
        counts = outcomes.bytes_by_records(runs).items()
        for (label, part), look in zip(counts, whole, strict=True):
            name = f"epsilon {epsilon:g}"
            panels.curve(above, name, label, part, look, "n", "bytes_up")
        log_axes(above, "training records n", "bytes up, all nodes")
        ticks(above, runs["n"].unique())
        above.minorticks_off()
        above.set_title(f"whole runs, $\\epsilon$ = {epsilon:g}")
        sent, every = outcomes.bytes_so_far(runs)
        for label, part, look, y in (
            ("up, measured", sent, up, "bytes_up"),
            ("up, if each were sent", every, BASELINES["FW"], "bytes_up"),
            ("down, measured", sent, down, "bytes_down"),
        ):
            panels.curve(below, f"along, epsilon {epsilon:g}", label, part, look, y=y)
        below.set(yscale="log", xlabel="iteration", ylabel="bytes so far, all nodes")
        below.set_title(f"along a run, n = {runs['n'].max():g}, T tuned")
    panels.figure.set_size_inches(9.0, 6.4)
    return panels.done(4)


# --- Figures 3 and 5 to 9 against eta, one column a reading ---------------------------

# A row of panels: its name in the rows behind the figure, its title, its runs, and the
# curves that it shows of them.
Line = tuple[str, str, pd.DataFrame, Callable[[pd.DataFrame], list[Curve]]]


@drawing.styled
def readings(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figures 3 and 5 to 8 against eta itself, one column a reading.

    Where eta is ||x_true||_1 the panels show its mean over the draws. ``options``:
    iterations, the T of the runs that are shown.
    """
    lines: list[Line] = []
    for name, of in zip(product.sweeps, (of_workers, of_private), strict=True):
        table = read(config, name)
        means = table.groupby("ball")["eta"].mean()
        lines += of(table.assign(radius=table["ball"].map(means)))
    return by_reading(lines, "radius", "$\\eta$", product.options["iterations"])


@drawing.styled
def radii(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 9 against eta; ``options``: iterations, as for ``readings``."""
    table = read(config, product.sweeps[0])
    titles = results.titles(config, table["problem"].unique())
    groups = where(table, status="ok").groupby("problem", sort=False)
    lines: list[Line] = [
        (str(name), titles[str(name)].title, runs, _of_nodes) for name, runs in groups
    ]
    if not lines:
        panels = Panels(1)
        drawing.empty(panels.axes[0], drawing.UNAVAILABLE)
        return panels.figure, []
    label = "$\\eta$ over $\\|w^*\\|_1$"
    return by_reading(lines, "share", label, product.options["iterations"])


def by_reading(lines: list[Line], x: str, label: str, count: int) -> Drawing:
    """A panel for each line and reading, losses at the end against ``x``.

    Grey lines stand at f(0) and at what counts as learnt.

    Parameters
    ----------
    x : str
        Column, positive.
    label : str
        Of the horizontal axis.
    count : int
        T, of the panels' names and the runs.
    """
    panels = Curves(4 * len(lines), 4)
    for (line, objective, per), axis in panels.over(
        itertools.product(lines, OBJECTIVES, BUDGETS)
    ):
        name, title, runs, curves = line
        panel = f"{name}, {objective}, {per}, T {count:g}"
        runs = where(runs, objective=objective, per=per, iterations=count)
        for algorithm, part, look in curves(runs):
            rows = against(part, x, "relative", panel, algorithm)
            panels.band(axis, rows, algorithm, look, shade=0.0)
        for height in (1.0, 1.0 - outcomes.LEARNT):
            axis.axhline(height, color="0.6", linewidth=0.7, zorder=0)
        axis.set(xscale="log", ylim=(0.0, TOP), xlabel=label, ylabel=title)
        axis.set_title(f"{WORDS[objective]}, {WORDS[per]}", fontsize=9)
    left, right = zip(*(axis.get_xlim() for axis in panels.axes), strict=True)
    for k, axis in enumerate(panels.axes):
        axis.set_xlim(min(left), max(right))
        if k >= 4:
            axis.set_title("")
        if axis.get_legend_handles_labels()[0] and k % 4 == 3:
            axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    panels.outer(1.6)
    panels.figure.supylabel("final loss / loss at 0", fontsize=9)
    return panels.explained()


def of_workers(table: pd.DataFrame) -> list[Line]:
    """Figures 5 to 8."""
    lines: list[Line] = [("figure 5", "Figure 5", table, _of_nodes)]
    for figure in outcomes.FAMILIES:
        curves = partial(_of_family, figure=figure)
        lines.append((f"figure {figure}", f"Figure {figure}", table, curves))
    return lines


def of_private(table: pd.DataFrame) -> list[Line]:
    """Figure 3, a line for each sparsity."""
    lines: list[Line] = []
    for density, runs in table.groupby("density", sort=False):
        name = f"figure 3, {percent(density)}"
        lines.append((name, name.capitalize(), runs, _of_three))
    return lines


def _of_nodes(runs: pd.DataFrame) -> list[Curve]:
    """FW, DP-FW and each K."""
    plain = {key: value for key, value in outcomes.PLAIN.items() if key != "nodes"}
    ours = where(runs, method="dp_bcfw", **plain)
    family = zip(outcomes.NODES, shades(len(outcomes.NODES)), strict=True)
    return [
        ("FW", where(runs, method="fw"), BASELINES["FW"]),
        ("DP-FW", where(runs, method="dp_fw", own=False), BASELINES["DP-FW"]),
        *((FAMILIES["nodes"](K), where(ours, nodes=K), look) for K, look in family),
    ]


def _of_family(runs: pd.DataFrame, figure: str) -> list[Curve]:
    """The curves of Figure 6, 7 or 8."""
    parts, name = outcomes.family(runs, figure), FAMILIES[outcomes.FAMILIES[figure][0]]
    pairs = zip(parts.items(), shades(len(parts)), strict=True)
    return [(name(value), part, look) for (value, part), look in pairs]


def _of_three(runs: pd.DataFrame) -> list[Curve]:
    """The curves of Figure 3."""
    theirs = where(runs, method="dp_fw")
    one, other = hues(2)
    return [
        ("FW", where(runs, method="fw"), BASELINES["FW"]),
        ("DP-FW", where(theirs, own=False), BASELINES["DP-FW"]),
        ("DP-FW, its own noise", where(theirs, own=True), other),
        ("DP-BCFW, as published", where(runs, method="dp_bcfw"), one),
    ]
