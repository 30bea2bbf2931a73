"""Figures of Lou and Cheung 2020 (DP-BCFW)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator

from dperm.core.experiment import results
from dperm.core.experiment.schema import Config, Product
from dperm.papers.dpbcfw import outcomes
from dperm.papers.dpbcfw.outcomes import BUDGETS, OBJECTIVES, central, read, where
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
    "A private curve can end below FW, which has no noise: Algorithm 2 adds a vertex "
    "of size $\\eta$ for each of K nodes,\nso that $\\|x\\|_1$ reaches K $\\eta$, "
    "where FW keeps to $\\eta$."
)
BASELINES = looks.of(["FW", "DP-FW"])
_HUES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SETS = {"ball": "l1 ball", "box": "box"}
NOISES = {
    "none": "no noise",
    "stated": "noise as printed",
    "scaled": "printed noise, scores $\\eta\\,\\nabla f$",
    "strict": "least sound noise",
}
UPDATES = {"published": "as published", "feasible": "feasible"}
SHARE = "$\\eta$ = {:g} $\\|x_{{true}}\\|_1$"
FAMILIES: dict[str, Callable[[float], str]] = {  # key of a family: label of a curve
    "nodes": "K = {:g}".format,
    "epsilon": "$\\epsilon$ = {:g}".format,
    "split": lambda share: f"{10 * share:.0f} : {10 - 10 * share:.0f}",
    "sketch": "m = {:g}".format,
}
BESIDE = {  # keys of panels, besides noise: their text in the data, and in the title
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


# Name in the rows behind the figure, title, and curves of a panel.
Cell = tuple[str, str, list[Curve]]


class Curves(Panels):
    """Panels of losses, with a note if private curves end below FW."""

    def explained(self, columns: int = 0) -> Drawing:
        """The figure, with a legend if ``columns`` is positive.

        If a private curve ends below FW, a note above the panels explains why.
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


def along(
    cells: Iterable[Cell], columns: int, legend: int, height: float = 2.1, **way: bool
) -> Drawing:
    """Losses against iterations, with a line at f(0); ``height`` is that of a row."""
    every = list(cells)
    panels = Curves(len(every), columns)
    for (panel, title, curves), axis in panels.over(every, **way):
        for label, runs, look in curves:
            axes = (axis, runs, "iteration", "relative")
            panels.mean(*axes, panel, label, look, marks=6)
        axis.set(xlabel="iteration", ylabel="loss / loss at 0", title=title)
        axis.set_yscale("log")
        axis.axhline(1.0, color="0.6", linewidth=0.7, zorder=0)
    panels.outer(height)
    return panels.explained(legend)


def hues(count: int) -> list[Look]:
    """Looks of unordered kinds."""
    kinds = zip(_HUES[:count], STROKES, MARKERS, strict=False)
    return [looks.look(*kind) for kind in kinds]


def percent(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:g} %"


def _baselines(table: pd.DataFrame, noise: str) -> list[Curve]:
    """Curves of FW and DP-FW, if they were run; ``noise`` is that of DP-BCFW."""
    alone = where(table, method="dp_fw", noise=central(noise))
    runs = {"FW": where(table, method="fw"), "DP-FW": alone}
    return [(name, runs[name], look) for name, look in BASELINES.items()]


def _family(table: pd.DataFrame, key: str) -> list[Curve]:
    """One curve for each value of a key, dark to light."""
    values = sorted(table[key].unique())
    return [
        (FAMILIES[key](value), where(table, **{key: value}), look)
        for value, look in zip(values, shades(len(values)), strict=True)
    ]


# --- Algorithm 1 ----------------------------------------------------------------------


def samplings(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 1: samplings, one panel per pair of sparsities, laid out as printed.

    The ball is above and the box below; the data name the set for the ball alone.
    """
    table = read(config, product.sweeps[0])
    pairs = table[["active", "density"]].drop_duplicates().to_numpy().tolist()
    pairs.sort(reverse=True)
    cells: list[Cell] = []
    for constraint, (active, density) in itertools.product(SETS, pairs):
        runs = where(table, active=active, density=density, constraint=constraint)
        part, whole = percent(active), percent(density)
        panel = f"features {whole}, variable {part}"
        if constraint == "ball":
            panel = f"ball, {whole} of A, {part} of x"
        names = list(runs["sampling"].unique())
        curves: list[Curve] = []
        for name, look in zip(names, hues(len(names)), strict=True):
            own = where(runs, sampling=name)
            label = f"{name}: $p_{{min}}$ = {own['p_min'].iloc[0]:.2g}"
            curves.append((label, own, look))
        cells.append((panel, f"{SETS[constraint]}: {whole} of A, {part} of x", curves))
    return along(cells, min(3, len(pairs)), 4, 1.75)


def nodes(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 2: K nodes without noise, by Algorithm 2 and by Algorithm 1."""
    table, sampled = read(config, "nodes"), read(config, "blocks")
    keys = [*sorted(table["share"].unique()), None]
    kinds = zip(UPDATES, ("box", "ball"), strict=True)
    cells: list[Cell] = []
    for (update, constraint), share in itertools.product(kinds, keys):
        panel = f"Algorithm 1, {constraint}"
        runs = where(sampled, constraint=constraint)
        if share is not None:
            panel = f"{UPDATES[update]}, {SHARE.format(share)}"
            runs = where(table, share=share, update=update)
        cells.append((panel, panel, _family(runs, "nodes")))
    return along(cells, 2, 4, 1.8, down=True)


# --- Algorithm 2 ----------------------------------------------------------------------


def private(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 3: DP-BCFW, DP-FW and FW, with printed noise and with sound noise."""
    table = read(config, "private")
    sizes = table[["d", "n", "density"]].drop_duplicates().to_numpy().tolist()
    cells: list[Cell] = []
    for noise, (d, n, density) in itertools.product(("stated", "strict"), sizes):
        runs = where(table, d=d, n=n, density=density)
        ours = where(runs, method="dp_bcfw", noise=noise)
        size = f"d = {d:g}, n = {n:g}, {percent(density)}"
        curves = _baselines(runs, noise)
        for update, look in zip(UPDATES, hues(2), strict=True):
            own = where(ours, update=update)
            curves.append((f"DP-BCFW, {UPDATES[update]}", own, look))
        value = ours["true_epsilon"].mean()
        about = f"about $10^{{{np.log10(value):.0f}}}$" if value >= 1000 else None
        cost = f"true $\\epsilon$ {about or f'{value:.2g}'}"
        cells.append((f"{size}, {noise}", f"{size}\n{NOISES[noise]}, {cost}", curves))
    return along(cells, 2, 4, down=True)


def workers(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 5: K nodes with noise, as published and with equal feasible sets."""
    table = read(config, "workers")
    cells: list[Cell] = []
    for update, share in itertools.product(UPDATES, sorted(table["share"].unique())):
        runs = where(table, share=share)
        ours = where(runs, method="dp_bcfw", update=update)
        panel = f"{UPDATES[update]}, {SHARE.format(share)}"
        reach = f"largest $\\|x\\|_1$ = {ours['largest_norm'].max():.3g} $\\eta$"
        curves = _baselines(runs, "scaled") + _family(ours, "nodes")
        cells.append((panel, f"{panel}\n{reach}", curves))
    return along(cells, 2, 6, down=True)


def by_noise(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figures 6 to 8: a family of runs, one panel per kind of noise.

    ``options``: along, the key of ``FAMILIES`` in which curves differ; beside, the key
    of ``BESIDE`` in which panels differ, besides noise; columns, those of the legend.
    """
    table, apart = read(config, product.sweeps[0]), product.options.get("beside")
    ours = where(table, method="dp_bcfw")
    keys = ["noise"] if apart is None else ["noise", apart]
    cells: list[Cell] = []
    for kind in ours[keys].drop_duplicates().to_dict("records"):
        panel, title = kind["noise"], NOISES[kind["noise"]]
        if apart is not None:
            named, titled = BESIDE[apart]
            panel += named.format(kind[apart])
            title += titled.format(kind[apart])
        ball = {"share": kind["share"]} if "share" in kind else {}
        family = _family(where(ours, **kind), product.options["along"])
        curves = _baselines(where(table, **ball), kind["noise"]) + family
        cells.append((panel, title, curves))
    return along(cells, 3, product.options.get("columns", 4), 2.7)


def real(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 9: real data, with printed noise, and with sound noise and a feasible set.

    Problems without data have no panel; if all lack data, one panel states this.
    """
    table = read(config, "real")
    gone = set(table.loc[table["status"] == "unavailable", "problem"])
    names = [name for name in problems if name in set(table["problem"]) - gone]
    if not names:
        return drawing.nothing()
    titles, cells = results.titles(config, names), list[Cell]()
    for noise, name in itertools.product(("stated", "strict"), names):
        runs = where(table, problem=name)
        ours = where(runs, method="dp_bcfw", noise=noise)
        update = UPDATES[ours["update"].iloc[0]]
        title = f"{titles[name].title}\n{NOISES[noise]}, {update}"
        curves = _baselines(runs, noise) + _family(ours, "nodes")
        cells.append((f"{name}, {noise}", title, curves))
    return along(cells, 2, 6, down=True)


def samples(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 4: excess risk against n in log-log, with slopes and their intervals."""
    table = outcomes.excess(config, product.sweeps[0])
    shares = sorted(table["share"].unique())
    panels = Curves(2 * len(shares), 2)
    for (share, update), axis in panels.over(itertools.product(shares, UPDATES)):
        runs = where(table, share=share)
        alone = where(runs, method="dp_fw")
        ours = where(runs, method="dp_bcfw", update=update)
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
    """Slope of DP-FW and range of the slopes of DP-BCFW, in words."""
    alone, *ours = (round(outcomes.slope(part)[0], 2) + 0.0 for part in parts)
    if np.isnan(ours).any():
        return "no slope for DP-BCFW: an excess is below 0"
    ends = " to ".join(f"{end:.2f}" for end in sorted({min(ours), max(ours)}))
    theirs = "" if np.isnan(alone) else f", DP-FW {alone:.2f}"
    return f"slope: DP-BCFW {ends}{theirs}"


def _slope(runs: pd.DataFrame) -> str:
    """Slope and its interval in words; none is fitted to an excess below 0."""
    slope, low, high = outcomes.slope(runs)
    if np.isnan(slope):
        return "no slope,\nsome excess below 0"
    return f"{slope:.2f} [{low:.2f}, {high:.2f}]"


# --- what the paper does not show -----------------------------------------------------


def communication(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Uplink bytes of a run against n, and along a run, one column per budget.

    The lower panels show the bytes so far, up and down, at the largest n. A feature is
    never sent twice.
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
            panels.mean(above, part, "n", "bytes_up", name, label, look, marks=6)
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
            name = f"along, epsilon {epsilon:g}"
            panels.mean(below, part, "iteration", y, name, label, look, marks=6)
        below.set(yscale="log", xlabel="iteration", ylabel="bytes so far, all nodes")
        below.set_title(f"along a run, n = {runs['n'].max():g}, T tuned")
    panels.figure.set_size_inches(9.0, 6.4)
    return panels.done(4)


# --- Figures 3 and 5 to 9 against eta, one column per reading -------------------------

# A row of panels: its name in the rows behind the figure, its title, its runs, and a
# function from runs to curves.
Line = tuple[str, str, pd.DataFrame, Callable[[pd.DataFrame], list[Curve]]]


def readings(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figures 3 and 5 to 8 against eta itself, one column per reading.

    Where eta is ||x_true||_1 the panels show its mean over the draws. ``options``:
    iterations, the T of the runs that are shown.
    """
    lines: list[Line] = []
    for name, of in zip(product.sweeps, (of_workers, of_private), strict=True):
        table = read(config, name)
        means = table.groupby("ball")["eta"].mean()
        lines += of(table.assign(radius=table["ball"].map(means)))
    return by_reading(lines, "radius", "$\\eta$", product.options["iterations"])


def radii(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Figure 9 against eta; ``options``: iterations, as for ``readings``."""
    table = read(config, product.sweeps[0])
    titles = results.titles(config, table["problem"].unique())
    groups = where(table, status="ok").groupby("problem", sort=False)
    lines: list[Line] = [
        (str(name), titles[str(name)].title, runs, _of_nodes) for name, runs in groups
    ]
    if not lines:
        return drawing.nothing()
    label = "$\\eta$ over $\\|w^*\\|_1$"
    return by_reading(lines, "share", label, product.options["iterations"])


def by_reading(lines: list[Line], x: str, label: str, count: int) -> Drawing:
    """One panel per line and reading: final losses against column ``x``, T = count.

    Grey lines are at f(0) and at the largest loss that counts as learnt. ``label`` is
    that of x.
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
    panels.outer(1.4, ticks=False)
    panels.figure.supylabel("final loss / loss at 0", fontsize=9)
    return panels.explained()


def of_workers(table: pd.DataFrame) -> list[Line]:
    """Lines of Figures 5 to 8."""
    lines: list[Line] = [("figure 5", "Figure 5", table, _of_nodes)]
    for figure in outcomes.FAMILIES:
        curves = partial(_of_family, figure=figure)
        lines.append((f"figure {figure}", f"Figure {figure}", table, curves))
    return lines


def of_private(table: pd.DataFrame) -> list[Line]:
    """Lines of Figure 3, one per sparsity."""
    lines: list[Line] = []
    for density, runs in table.groupby("density", sort=False):
        name = f"figure 3, {percent(density)}"
        lines.append((name, name.capitalize(), runs, _of_three))
    return lines


def _of_nodes(runs: pd.DataFrame) -> list[Curve]:
    """Curves of FW, DP-FW and each K."""
    plain = {key: value for key, value in outcomes.PLAIN.items() if key != "nodes"}
    ours = where(runs, method="dp_bcfw", **plain)
    family = zip(outcomes.NODES, shades(len(outcomes.NODES)), strict=True)
    return [
        ("FW", where(runs, method="fw"), BASELINES["FW"]),
        ("DP-FW", where(runs, method="dp_fw", own=False), BASELINES["DP-FW"]),
        *((FAMILIES["nodes"](K), where(ours, nodes=K), look) for K, look in family),
    ]


def _of_family(runs: pd.DataFrame, figure: str) -> list[Curve]:
    """Curves of Figure 6, 7 or 8."""
    parts, name = outcomes.family(runs, figure), FAMILIES[outcomes.FAMILIES[figure][0]]
    pairs = zip(parts.items(), shades(len(parts)), strict=True)
    return [(name(value), part, look) for (value, part), look in pairs]


def _of_three(runs: pd.DataFrame) -> list[Curve]:
    """Curves of Figure 3."""
    theirs = where(runs, method="dp_fw")
    one, other = hues(2)
    return [
        ("FW", where(runs, method="fw"), BASELINES["FW"]),
        ("DP-FW", where(theirs, own=False), BASELINES["DP-FW"]),
        ("DP-FW, its own noise", where(theirs, own=True), other),
        ("DP-BCFW, as published", where(runs, method="dp_bcfw"), one),
    ]
