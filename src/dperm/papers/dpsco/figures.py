"""Figures of Bassily, Guzmán and Nandi 2021 (DP-SCO); the paper itself has none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb

from dperm.core.calibrations import PAPER, STRICT
from dperm.core.experiment import results
from dperm.core.experiment.schema import Config, Product
from dperm.papers.dpsco.rates import (
    BELOW,
    LABELS,
    NOISE,
    TERMS,
    bound,
    instanced,
    interval,
    norm,
    of_time,
    privacy_terms,
    tail,
    together,
)
from dperm.present import drawing, looks
from dperm.present.drawing import (
    MARKERS,
    Drawing,
    Panels,
    Row,
    Rows,
    against,
    log_axes,
    shades,
    ticks,
)
from dperm.present.looks import Look
from dperm.present.tables import where

SLOPES = {-0.5: ":", -1.0: "--"}  # line styles of Table 1's exponents
SHARE = "excess / initial risk"
NORMS = (1.0, 1.1, 1.25, 1.5, 1.75, 2.0, math.inf)
EPSILONS = {0.05: "#882255", 0.2: "#009E73", 1.0: "#D55E00", 8.0: "#0072B2"}
PRICES: list[tuple[float, str, str, Look]] = [
    (epsilon, kind, label, looks.look(*style))
    for epsilon, kind, label, *style in (
        (1.0, PAPER, r"$\epsilon$ = 1, published", EPSILONS[1.0], ":", "o"),
        (1.0, STRICT, r"$\epsilon$ = 1, strict", EPSILONS[1.0], "-", "o"),
        (8.0, PAPER, r"$\epsilon$ = 8, published", EPSILONS[8.0], ":", "s"),
        (8.0, STRICT, r"$\epsilon$ = 8, strict", EPSILONS[8.0], "-", "s"),
        (math.inf, "none", "no noise", "#000000", "--", "D"),
    )
]


# --- parts that figures share ---------------------------------------------------------


def _measured(panel: str, algorithm: str, x: float, values: np.ndarray) -> Row:
    """``drawing.summary`` of runs, without an interval for a single run."""
    low, high = interval(values)
    row = drawing.summary(panel, algorithm, x, values)
    return row | {"ci_low": low, "ci_high": high}


def _against(
    group: pd.DataFrame, x: str, panel: str, algorithm: str, y: str = "share"
) -> Rows:
    return against(group, x, y, panel, algorithm, _measured)


def _look(solver: str, p: float | None = None) -> Look:
    """The method's look; p sets the marker, and a darker colour off the usual p."""
    found = looks.of([LABELS[solver]])[LABELS[solver]]
    if p is None:
        return found
    away = abs(1 / p - (1.0 if solver == "poly_sfw" else 0.5))
    red, green, blue = ((1 - 1.2 * away) * part for part in to_rgb(found["color"]))
    colour = to_hex((red, green, blue))
    marker = MARKERS[NORMS.index(p) if p in NORMS else -1]
    return found | {"color": colour, "marker": marker}


def _title(solver: str, p: float) -> str:
    return f"{LABELS[solver]}, $p$ = {norm(p)}"


def _methods(
    panels: Panels, table: pd.DataFrame, pairs: Sequence[tuple[str, float]], y: str
) -> Iterator[tuple[str, Axes, str, pd.DataFrame]]:
    """One panel per (solver, p), against n: solver, axes, name in the data, runs."""
    for (solver, p), at in panels.over(pairs):
        log_axes(at, "records n", y, title=_title(solver, p))
        part = where(table, method=solver, p=float(p))
        yield solver, at, f"{solver}, p = {norm(p)}", part


def _priced(part: pd.DataFrame) -> Iterator[tuple[float, pd.DataFrame, str, str, Look]]:
    """For each kind of noise: epsilon, runs, name in the data, label, look."""
    for epsilon, kind, label, look in PRICES:
        runs = where(part, epsilon=epsilon, calibration=kind)
        yield epsilon, runs, f"epsilon = {epsilon:g}, {kind}", label, look


def _headline(panels: Panels, table: pd.DataFrame, calibration: str) -> None:
    """Write the target, the noise and the number of runs above the panels."""
    targets = sorted(set(table["epsilon"]) - {math.inf})
    noise = rf"$\epsilon$ = {targets[0]:g}, {NOISE[calibration]}" if targets else ""
    each = table.groupby(["method", "p", "n", "d"])["replicate"].nunique()
    runs = " to ".join(f"{count}" for count in sorted({each.min(), each.max()}))
    about = f"{noise or NOISE['none']}: mean and range, {runs} runs"
    panels.figure.suptitle(about, fontsize=9)


def _share_limits(panels: Panels, low: float | None = None, high: float = 0.0) -> None:
    """Set the same scales for all panels, by default wide enough for all of them."""
    ends = np.array([[*at.get_xlim(), *at.get_ylim()] for at in panels.axes])
    low = max(ends[:, 2].min(), 1e-6) if low is None else low
    for at in panels.axes:
        at.set_xlim(ends[:, 0].min(), ends[:, 1].max())
        at.set_ylim(low, high or ends[:, 3].max())


def _keys(axes: Axes, lines: dict[str, str]) -> None:
    """Add entries to the legend for line styles that have no curve."""
    for label, line in lines.items():
        axes.plot([], [], color="0.4", linestyle=line, linewidth=1, label=label)


# --- rates ----------------------------------------------------------------------------


def rates(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Excess over initial risk against n, one panel per (solver, p), one line per d.

    ``options``: epsilon, panels as pairs of solver and p, columns. Grey lines have
    Table 1's exponents.
    """
    epsilon, pairs = float(product.options.get("epsilon", 1.0)), product.options
    kind = "none" if math.isinf(epsilon) else product.calibration
    table = where(together(config, product), epsilon=epsilon, calibration=kind)
    panels = Panels(len(pairs["panels"]), product.options.get("columns", 3))
    dimensions = sorted(table["d"].unique())
    look = dict(zip(dimensions, shades(len(dimensions), "-"), strict=True))
    for solver, at, panel, part in _methods(panels, table, pairs["panels"], SHARE):
        for d, group in part.groupby("d"):
            curve = _against(group, "n", panel, f"d = {d:g}")
            panels.band(at, curve, f"d = {d:g}", look[d])
        sizes = np.array([part["n"].min(), part["n"].max()], dtype=float)
        for exponent in sorted(set(TERMS[solver])) if len(part) else ():
            grey: Look = {"color": "0.6", "linewidth": 0.9, "zorder": 0}
            grey |= {"linestyle": SLOPES[exponent], "label": f"$n^{{{exponent:g}}}$"}
            at.plot(sizes, 1.5 * (sizes / sizes[0]) ** exponent, **grey)
    _headline(panels, table, product.calibration)
    _share_limits(panels)
    panels.outer(1.9, ticks=False)
    return panels.done(7)


def price(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Excess against n at one dimension, with published, strict and no noise."""
    table = where(together(config, product), d=product.options["d"])
    pairs = product.options["panels"]
    panels = Panels(len(pairs))
    for _, at, panel, part in _methods(panels, table, pairs, SHARE):
        for _, some, name, label, look in _priced(part):
            panels.band(at, _against(some, "n", panel, name), label, look)
        at.axhline(BELOW, color="0.6", linewidth=0.8, zorder=0)
    _share_limits(panels)
    panels.outer(2.2, ticks=False)
    return panels.done(5)


def dimension(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Excess against d at one n; two panels, private and without noise."""
    table = together(config, product)
    n = product.options["n"]
    n = n if n in set(table["n"]) else product.options["small"]
    table = table[(table["n"] == n) & (table["method"] != "noisy_sfw_all")]
    panels = Panels(2, 2)
    private = (float(product.options["epsilon"]), product.calibration)
    for (epsilon, kind), at in panels.over((private, (math.inf, "none"))):
        part = where(table, epsilon=epsilon, calibration=kind)
        for (p, solver), group in part.groupby(["p", "method"], sort=True):
            name, label = f"{LABELS[solver]}, p = {norm(p)}", _title(solver, p)
            curve = _against(group, "d", f"epsilon = {epsilon:g}", name)
            panels.band(at, curve, label, _look(solver, p), shade=0.08)
        privacy = "" if math.isinf(epsilon) else rf"$\epsilon$ = {epsilon:g}, "
        title = f"{privacy}{NOISE[kind]}, $n$ = {n:,}"
        log_axes(at, "dimension d", SHARE, title=title)
        ticks(at, part["d"].unique())
    _share_limits(panels)
    panels.outer(3.4, ticks=False)
    return panels.done(5)


def transition(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Excess against p near 1, with the privacy terms of Theorems 5.2 and 5.4."""
    table = together(config, product)
    private = where(table, epsilon=1.0, calibration=product.calibration)
    free = where(table, calibration="none")
    dimensions = sorted(table["d"].unique())
    panels = Panels(len(dimensions), 2)
    strict = r"NoisySFW, $\epsilon$ = 1"
    dot = _look("poly_sfw") | {"linestyle": "none"}
    for d, at in panels.over(dimensions):
        for runs, solver, name, label, look in (
            (private, "noisy_sfw", strict, strict, _look("noisy_sfw")),
            (free, "noisy_sfw", *["NoisySFW, no noise"] * 2, _look("noisy_sfw_all")),
            (private, "poly_sfw", "PolySFW", r"PolySFW, $\epsilon$ = 1", dot),
        ):
            part = where(runs, d=d, method=solver)
            curve = [
                row | {"x": max(row["x"] - 1, NEAREST)}
                for row in _against(part, "p", f"d = {d:g}", name)
            ]
            panels.band(at, curve, label, look)
            if name == strict:
                _terms(panels, at, curve[-1]["mean"], d)
        log_axes(at, "$p - 1$", SHARE, title=f"$d$ = {d:g}")
        ticks(at, [NEAREST, 0.01, 0.1, 1.0], ["0", "0.01", "0.1", "1"])
    n, noise = table["n"].max(), NOISE[product.calibration]
    panels.figure.suptitle(f"$n$ = {n:,}, {noise}", fontsize=9)
    _share_limits(panels)
    panels.outer(3.2, ticks=False)
    return panels.done(3)


NEAREST = 2e-3  # place of p = 1 on a logarithmic axis of p - 1


def _terms(panels: Panels, axes: Axes, last: float, d: float) -> None:
    """Privacy terms kappa sqrt(d) and (p - 1) sqrt(d), scaled to ``last`` at p = 2."""
    x = np.geomspace(NEAREST, 1.0, 60)
    upper, lower = privacy_terms(x, int(d))
    for name, curve, line, label in (
        (r"upper, $\kappa\sqrt{d}/(\epsilon n)$ (5.2)", upper, "--", "upper, 5.2"),
        (r"lower, $(p-1)\sqrt{d}/(\epsilon n)$ (5.4)", lower, ":", "lower, 5.4"),
    ):
        look: Look = {"color": "0.5", "linestyle": line, "linewidth": 1}
        look["label"] = "{} bound of Theorem {}, scaled".format(*label.split(", "))
        panels.line(axes, f"d = {d:g}", name, x, curve * last, **look)


def quantiles(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Quantiles against log(1/beta), where logarithmic growth is a straight line."""
    table = together(config, product)
    panels = Panels(2, 2)
    for epsilon, at in panels.over(sorted(table["epsilon"].unique())):
        part = where(table, epsilon=epsilon)
        for (solver, p), group in part.groupby(["method", "p"]):
            panel, label = f"epsilon = {epsilon:g}", _title(solver, p)
            rows: Rows = []
            for beta, middle, low, high in tail(group["share"].to_numpy()):
                known = (panel, label, math.log(1 / beta), np.array([middle]))
                ends = {"ci_low": low, "ci_high": high, "min": low, "max": high}
                rows.append(drawing.summary(*known) | ends)
            panels.band(at, rows, label, _look(solver, p))
        kind = NOISE["none"]
        if math.isfinite(epsilon):
            kind = rf"$\epsilon$ = {epsilon:g}, {NOISE[product.calibration]}"
        runs = group["run"].nunique() * group["replicate"].nunique()
        at.set(title=f"{kind}, {runs:,} runs", xlabel=r"$\log(1/\beta)$")
        at.set(ylabel=rf"$1-\beta$ quantile of {SHARE}")
        at.set_ylim(bottom=0)
    panels.outer(2.8, width=8.0)
    return panels.done(3)


def runtime(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Seconds against n."""
    table = together(config, product)
    panels = Panels(1, size=(7.6, 4.6))
    (at,) = panels.axes
    for solver in LABELS:
        part = where(table, method=solver)
        if part.empty:
            continue
        power, low, high = of_time(part)
        label = f"{LABELS[solver]}: $n^{{{power:.2f}}}$"
        label += "" if math.isnan(low) else f" [{low:.2f}, {high:.2f}]"
        curve = _against(part, "n", "runtime", LABELS[solver], "seconds")
        panels.band(at, curve, label, _look(solver))
    d = config.paper.sweeps[product.sweeps[0]].options["d"]
    log_axes(at, "records n", "seconds, one core")
    at.set_title(f"$d$ = {d}, {NOISE[product.calibration]}")
    return panels.done(2)


def bought(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Excess risk against the seconds spent; n grows along a line."""
    table = together(config, product)
    epsilons = sorted(table["epsilon"].unique())
    panels = Panels(len(epsilons), 2)
    for epsilon, at in panels.over(epsilons):
        for solver, name in LABELS.items():
            curve, panel = [], f"epsilon = {epsilon:g}"
            for _, group in where(table, method=solver, epsilon=epsilon).groupby("n"):
                seconds = float(group["seconds"].median())
                curve.append(_measured(panel, name, seconds, group["share"].to_numpy()))
            panels.band(at, curve, name, _look(solver))
        title = rf"$\epsilon$ = {epsilon:g}, {NOISE[product.calibration]}"
        log_axes(at, "seconds, one core", SHARE, title=title)
    _share_limits(panels)
    panels.outer(3.2, ticks=False, width=8.0)
    return panels.done(4)


# --- hard instances -------------------------------------------------------------------


def lower_bound(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Measured excess on the fingerprinting instance, and the bound's shape."""
    table = where(together(config, product), calibration=product.calibration)
    sizes, norms = sorted(table["d"].unique()), sorted(table["p"].unique())
    panels = Panels(len(sizes))
    for d, at in panels.over(sizes):
        panel = f"d = {d:g}"
        for p, look in zip(norms, shades(len(norms), "-"), strict=True):
            part = where(table, d=d, p=p)
            curve = _against(part, "n", panel, f"p = {p:g}", "excess")
            panels.band(at, curve, f"$p$ = {p:g}", look)
            shape = part.groupby("n")["bound"].first()
            style: Look = {"color": look["color"], "linestyle": ":", "linewidth": 1}
            name = f"p = {p:g}, shape of the bound"
            panels.line(at, panel, name, shape.index, shape, **style)
        log_axes(at, "records n", "excess risk", title=f"$d$ = {d:g}")
    _keys(panels.axes[0], {"shape of the lower bound, same colours": ":"})
    _headline(panels, table, product.calibration)
    _share_limits(panels)
    panels.outer(2.6, ticks=False)
    return panels.done(5)


def hard(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Rates on the worst of a class of instances; ``options``: d, panels."""
    table = where(instanced(config, product), d=product.options["d"])
    return worst(table, product.options["panels"])


def worst(table: pd.DataFrame, pairs: Sequence[tuple[str, float]]) -> Drawing:
    """Worst excess over that of w = 0 against n, one panel per (solver, p), at one d.

    Lines with points below ``BELOW`` also have the theorem's bound, scaled to meet the
    first such point: slopes can be compared, levels cannot.
    """
    panels, norms = Panels(len(pairs), 2), [float(p) for _, p in pairs]
    every = _methods(panels, table, pairs, "excess / that of $w$ = 0")
    for p, (solver, at, panel, part) in zip(norms, every, strict=True):
        for epsilon, some, name, label, look in _priced(part):
            rows = panels.mean(at, some, "n", "share", panel, name, look, label)
            learnt = [row for row in rows if row["mean"] < BELOW]
            if len(learnt) > 1:
                x = np.geomspace(learnt[0]["x"], learnt[-1]["x"], 20)
                d = float(part["d"].iloc[0])
                y = np.array([bound(solver, p, epsilon, float(n), d) for n in x])
                y *= learnt[0]["mean"] / y[0]
                style: Look = {"linestyle": "-.", "linewidth": 0.8}
                style["color"] = look["color"]
                panels.line(at, panel, f"{name}, bound", x, y, **style)
        at.axhline(BELOW, color="0.6", linestyle=(0, (1, 3)), linewidth=1)
    _keys(panels.axes[0], {"the theorem's bound, moved to the first point": "-."})
    _share_limits(panels, min(at.get_ylim()[0] for at in panels.axes), 1.5)
    panels.outer(1.8, ticks=False)
    return panels.done(3)


def unlearnable(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Biases that privacy hides (Theorem 5.4); ``options``: n and d, else largest."""
    table = together(config, product)
    for key in ("n", "d"):
        value = product.options[key]
        at = value if value in set(table[key]) else table[key].max()
        table = where(table, **{key: at})
    return hidden(table, product.calibration)


def hidden(table: pd.DataFrame, calibration: str) -> Drawing:
    """Excess over that of w = 0 against the bias, over the bias that epsilon hides."""
    norms, targets = sorted(table["p"].unique()), sorted(table["epsilon"].unique())
    panels = Panels(len(norms), 2)
    for p, at in panels.over(norms):
        part = where(table, p=p)
        for epsilon, marker in zip(targets, MARKERS, strict=False):
            colour = EPSILONS.get(epsilon, "#000000")
            for kind, line in ((calibration, "-"), ("none", ":")):
                some = where(part, epsilon=epsilon, calibration=kind)
                panel, name = f"p = {p:g}", f"epsilon = {epsilon:g}, {kind}"
                known = ("constant", "share", panel, name)
                label = rf"$\epsilon$ = {epsilon:g}" if kind == calibration else "_"
                panels.mean(at, some, *known, looks.look(colour, line, marker), label)
        at.axhline(1.0, color="0.4", linestyle="--", linewidth=0.9)
        at.set(xscale="log", title=f"$p$ = {p:g}", ylabel="excess / that of $w$ = 0")
        at.set_xlabel(r"bias over $\sqrt{d\,\log(1/\delta)} \, / \, (\epsilon n)$")
        ticks(at, part["constant"].unique())
    _share_limits(panels, 0)
    keys = {NOISE[calibration]: "-", NOISE["none"]: ":", "$w$ = 0": "--"}
    _keys(panels.axes[0], keys)
    panels.outer(2.3, ticks=False)
    return panels.done(6)


# --- real data ------------------------------------------------------------------------


def real(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Test loss against epsilon; runs without noise are at the right."""
    table = results.load_sweep(config, product.sweeps[0])
    names = list(dict.fromkeys(table["problem"]))
    panels, titles = Panels(len(names), 2), results.titles(config, names)
    for name, at in panels.over(names):
        part = where(table, problem=name)
        at.set_title(titles[name].title)
        lost = part[part["status"] == "unavailable"]
        if len(lost):
            drawing.empty(at, str(lost["reason"].iloc[0]))
            continue
        _losses(panels, at, part, name)
    _keys(panels.axes[0], {NOISE[STRICT]: "-", NOISE[PAPER]: ":", "$w$ = 0": "--"})
    panels.outer(3.2)
    return panels.done(4)


def _losses(panels: Panels, axes: Axes, part: pd.DataFrame, panel: str) -> None:
    finite = part.loc[np.isfinite(part["epsilon"]), "epsilon"]
    right = 4 * float(finite.max())
    for (p, solver), group in part.groupby(["p", "method"]):
        label, look = _title(solver, p), _look(solver, p)
        for kind, line in ((STRICT, "-"), (PAPER, ":")):
            some = group[group["calibration"].isin([kind, "none"])]
            some = some.assign(epsilon=some["epsilon"].clip(upper=right))
            curve = _against(some, "epsilon", panel, f"{label}, {kind}", "excess")
            shown, style = label if kind == STRICT else "_", look | {"linestyle": line}
            panels.band(axes, curve, shown, style, shade=0.06)
    axes.axhline(math.log(2), color="0.4", linestyle="--", linewidth=0.9)
    axes.set_xscale("log")
    every = [*sorted(finite.unique()), right]
    ticks(axes, every, [f"{tick:g}" for tick in every[:-1]] + ["no\nnoise"])
    axes.minorticks_off()
    axes.set_ylim(top=min(axes.get_ylim()[1], 2.0))
    axes.set(xlabel=r"$\epsilon$", ylabel="test loss")
