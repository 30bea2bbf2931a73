"""Figures of Bassily, Guzmán and Nandi 2021 (DP-SCO); the paper itself has none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

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


# --- what the figures share -----------------------------------------------------------


def _measured(panel: str, algorithm: str, x: float, values: np.ndarray) -> Row:
    """``drawing.summary`` of runs, without an interval where there is one run only."""
    low, high = interval(values)
    row = drawing.summary(panel, algorithm, x, values)
    return row | {"ci_low": low, "ci_high": high}


def _against(
    group: pd.DataFrame, x: str, panel: str, algorithm: str, y: str = "share"
) -> Rows:
    return against(group, x, y, panel, algorithm, _measured)


def _look(solver: str) -> Look:
    return looks.of([LABELS[solver]])[LABELS[solver]]


def _title(solver: str, p: float) -> str:
    return f"{LABELS[solver]}, $p$ = {norm(p)}"


def _headline(panels: Panels, table: pd.DataFrame, calibration: str) -> None:
    """Say above the panels which target and noise they show, and of how many runs."""
    targets = sorted(set(table["epsilon"]) - {math.inf})
    noise = NOISE[calibration] if targets else NOISE["none"]
    target = [rf"$\epsilon$ = {targets[0]:g}, "] if len(targets) == 1 else []
    each = table.groupby(["method", "p", "n", "d"])["replicate"].nunique()
    few, many = each.min(), each.max()
    runs = f"{many} runs" if few == many else f"{few} to {many} runs"
    about = f"mean and range of {runs}" if many > 1 else "one run, no interval"
    panels.figure.suptitle("".join([*target, noise, ": ", about]), fontsize=9)


def _share_limits(panels: Panels, low: float | None = None, high: float = 0.0) -> None:
    """The same limits of y for all panels, by default those that show everything."""
    ends = np.array([at.get_ylim() for at in panels.axes])
    low = max(ends[:, 0].min(), 1e-5) if low is None else low
    for at in panels.axes:
        at.set_ylim(low, high or ends[:, 1].max())


def _keys(axes: Axes, lines: dict[str, str], **style: Any) -> None:
    """Entries of the legend for line styles, which have no curve of their own."""
    for label, line in lines.items():
        axes.plot([], [], color="0.4", linestyle=line, label=label, **style)


# --- rates ----------------------------------------------------------------------------


def rates(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Excess over initial risk against n, one panel a (solver, p), a line a dimension.

    ``options``: epsilon, panels as pairs of solver and p, columns.
    """
    epsilon = float(product.options.get("epsilon", 1.0))
    kind = "none" if math.isinf(epsilon) else product.calibration
    table = where(together(config, product), epsilon=epsilon, calibration=kind)
    pairs = product.options["panels"]
    panels = Panels(len(pairs), product.options.get("columns", 3))
    dimensions = sorted(table["d"].unique())
    look = dict(zip(dimensions, shades(len(dimensions), "-"), strict=True))
    for (solver, p), at in panels.over(pairs):
        part = where(table, method=solver, p=float(p))
        for d, group in part.groupby("d"):
            curve = _against(group, "n", f"{solver}, p = {norm(p)}", f"d = {d:g}")
            panels.band(at, curve, f"d = {d:g}", look[d])
        _slopes(at, part, TERMS[solver])
        log_axes(at, "records n", SHARE, title=_title(solver, p))
    _headline(panels, table, product.calibration)
    _share_limits(panels)
    return panels.done(5)


def _slopes(axes: Axes, part: pd.DataFrame, exponents: Sequence[float]) -> None:
    """Grey lines with Table 1's exponents through the panel's upper right."""
    if part.empty:
        return
    sizes = np.array([part["n"].min(), part["n"].max()], dtype=float)
    for exponent in sorted(set(exponents)):
        ends = 1.5 * (sizes / sizes[0]) ** exponent
        style: Look = {"linestyle": SLOPES[exponent], "linewidth": 0.9, "zorder": 0}
        axes.plot(sizes, ends, color="0.6", **style)
        text: Look = {"textcoords": "offset points", "fontsize": 6.5, "color": "0.45"}
        axes.annotate(f"$n^{{{exponent:g}}}$", (sizes[1], ends[1]), (2, -3), **text)


PRICES: list[tuple[float, str, str, Look]] = [
    (epsilon, kind, label, looks.look(*style))
    for epsilon, kind, label, *style in (
        (1.0, PAPER, r"$\epsilon$ = 1, published", "#D55E00", ":", "o"),
        (1.0, STRICT, r"$\epsilon$ = 1, strict", "#D55E00", "-", "o"),
        (8.0, PAPER, r"$\epsilon$ = 8, published", "#0072B2", ":", "s"),
        (8.0, STRICT, r"$\epsilon$ = 8, strict", "#0072B2", "-", "s"),
        (math.inf, "none", "no noise", "#000000", "--", "D"),
    )
]


def price(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Published, strict and no noise against n at one dimension."""
    table = where(together(config, product), d=product.options["d"])
    panels = Panels(len(product.options["panels"]))
    for (solver, p), at in panels.over(product.options["panels"]):
        part = where(table, method=solver, p=float(p))
        for epsilon, kind, label, look in PRICES:
            some = where(part, epsilon=epsilon, calibration=kind)
            panel, name = f"{solver}, p = {norm(p)}", f"epsilon = {epsilon:g}, {kind}"
            panels.band(at, _against(some, "n", panel, name), label, look)
        at.axhline(0.5, color="0.6", linewidth=0.8, zorder=0)
        log_axes(at, "records n", SHARE, title=_title(solver, p))
    panels.figure.suptitle(f"$d$ = {product.options['d']}", fontsize=9)
    _share_limits(panels)
    return panels.done(5)


def dimension(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Excess against d at one n; two panels, private and without noise."""
    table = together(config, product)
    n = product.options["n"]
    n = n if n in set(table["n"]) else product.options["small"]
    table = table[(table["n"] == n) & (table["method"] != "noisy_sfw_all")]
    panels = Panels(2, 2, size=(8.4, 3.0))
    private = (float(product.options["epsilon"]), product.calibration)
    for (epsilon, kind), at in panels.over((private, (math.inf, "none"))):
        part = where(table, epsilon=epsilon, calibration=kind)
        keys = part.groupby(["p", "method"], sort=True)
        for ((p, solver), group), shade in zip(keys, shades(len(keys)), strict=True):
            label = f"{LABELS[solver]}, p = {norm(p)}"
            look = shade | {"linestyle": _look(solver)["linestyle"]}
            curve = _against(group, "d", f"epsilon = {epsilon:g}", label)
            panels.band(at, curve, label, look)
        privacy = rf"$\epsilon$ = {epsilon:g}, strict"
        privacy = "no noise" if math.isinf(epsilon) else privacy
        log_axes(at, "dimension d", SHARE, title=f"{privacy}, $n$ = {n:,}")
        ticks(at, part["d"].unique())
    return panels.done(place="right upper", fontsize=7)


def transition(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Excess against p near 1, beside the privacy terms of both theorems."""
    table = together(config, product)
    private = where(table, epsilon=1.0, calibration=product.calibration)
    free = where(table, calibration="none")
    dimensions = sorted(table["d"].unique())
    panels = Panels(len(dimensions), 2)
    strict = r"NoisySFW, $\epsilon$ = 1"
    dot = {"color": "#CC79A7", "linestyle": "none", "marker": "D"}
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
        log_axes(at, "$p - 1$", SHARE)
        noise = NOISE[product.calibration]
        at.set_title(f"$d$ = {d:g}, $n$ = {table['n'].max():,}, {noise}")
        ticks(at, [NEAREST, 0.01, 0.1, 1.0], ["0", "0.01", "0.1", "1"])
        at.set_ylim(bottom=max(at.get_ylim()[0], 1e-4))
    panels.figure.set_size_inches(4.0 * len(dimensions) + 2.2, 3.2)
    return panels.done(place="right center", fontsize=7)


NEAREST = 2e-3  # where p = 1 stands on a logarithmic axis of p - 1


def _terms(panels: Panels, axes: Axes, last: float, d: float) -> None:
    """Privacy terms kappa sqrt(d) and (p - 1) sqrt(d), scaled to ``last`` at p = 2."""
    x = np.geomspace(NEAREST, 1.0, 60)
    upper, lower = privacy_terms(x, int(d))
    for label, curve, line in (
        (r"upper, $\kappa\sqrt{d}/(\epsilon n)$ (5.2)", upper, "--"),
        (r"lower, $(p-1)\sqrt{d}/(\epsilon n)$ (5.4)", lower, ":"),
    ):
        look: Look = {"color": "0.5", "linestyle": line, "linewidth": 1}
        panels.line(axes, f"d = {d:g}", label, x, curve * last, label, **look)


def quantiles(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Quantiles against log(1/beta): a straight line grows like the logarithm."""
    table = together(config, product)
    panels = Panels(2, 2)
    for epsilon, at in panels.over(sorted(table["epsilon"].unique())):
        part = where(table, epsilon=epsilon)
        keys = part.groupby(["method", "p"])
        family = shades(max(3, len(keys)), "-")
        for ((solver, p), group), look in zip(keys, family, strict=False):
            panel, label = f"epsilon = {epsilon:g}", _title(solver, p)
            rows: Rows = []
            for beta, middle, low, high in tail(group["share"].to_numpy()):
                known = (panel, label, math.log(1 / beta), np.array([middle]))
                ends = {"ci_low": low, "ci_high": high, "min": low, "max": high}
                rows.append(drawing.summary(*known) | ends)
            panels.band(at, rows, label, look)
        kind = NOISE["none"]
        if math.isfinite(epsilon):
            kind = rf"$\epsilon$ = {epsilon:g}, {NOISE[product.calibration]}"
        runs = group["run"].nunique() * group["replicate"].nunique()
        labels = {
            "xlabel": r"$\log(1/\beta)$",
            "ylabel": r"excess / initial, $1-\beta$",
        }
        at.set(title=f"{kind}, {runs:,} runs", **labels)
        at.set_ylim(bottom=0)
    return panels.done(3)


def runtime(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Seconds against n."""
    table = together(config, product)
    panels = Panels(1, size=(7.6, 3.6))
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
    return panels.done(place="right center", fontsize=7)


def bought(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Excess risk against the seconds spent; the size of n grows along a line."""
    table = together(config, product)
    epsilons = sorted(table["epsilon"].unique())
    panels = Panels(len(epsilons), 2, size=(3.7 * len(epsilons), 3.4))
    for epsilon, at in panels.over(epsilons):
        for solver, name in LABELS.items():
            curve, panel = [], f"epsilon = {epsilon:g}"
            for _, group in where(table, method=solver, epsilon=epsilon).groupby("n"):
                seconds = float(group["seconds"].median())
                curve.append(_measured(panel, name, seconds, group["share"].to_numpy()))
            panels.band(at, curve, name, _look(solver))
        at.set_title(rf"$\epsilon$ = {epsilon:g}, strict")
        log_axes(at, "seconds, one core", SHARE)
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
        at.set_title(f"$d$ = {d:g}")
        _keys(at, {"shape of the lower bound": ":"})
        log_axes(at, "records n", "excess risk")
    _headline(panels, table, product.calibration)
    return panels.done(5)


def hard(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Rates on the worst of a class of instances; ``options``: d, panels."""
    table = where(instanced(config, product), d=product.options["d"])
    return worst(table, product.options["panels"])


def worst(table: pd.DataFrame, pairs: Sequence[tuple[str, float]]) -> Drawing:
    """Worst excess over that of w = 0 against n, a panel a (solver, p), one dimension.

    The theorem's bound stands beside every line that has learnt, moved to meet its
    first such point: slopes can be compared, levels cannot.
    """
    panels = Panels(len(pairs), 4)
    for (solver, p), at in panels.over(pairs):
        part = where(table, method=solver, p=float(p))
        panel = f"{solver}, p = {norm(p)}"
        for epsilon, kind, label, look in PRICES:
            some = where(part, epsilon=epsilon, calibration=kind)
            name = f"epsilon = {epsilon:g}, {kind}"
            rows = panels.mean(at, some, "n", "share", panel, name, look, label)
            learnt = [row for row in rows if row["mean"] < BELOW]
            if len(learnt) > 1:
                x = np.geomspace(learnt[0]["x"], learnt[-1]["x"], 20)
                d = float(part["d"].iloc[0])
                y = [bound(solver, float(p), epsilon, float(n), d) for n in x]
                y = np.array(y) * (learnt[0]["mean"] / y[0])
                style: Look = {"linestyle": "-.", "linewidth": 0.8}
                style["color"] = look["color"]
                panels.line(at, panel, f"{name}, bound", x, y, **style)
        at.axhline(BELOW, color="0.6", linestyle=(0, (1, 3)), linewidth=1)
        at.set(xscale="log", yscale="log", title=_title(solver, p), xlabel="records n")
    for at in panels.axes[::4]:
        at.set_ylabel("worst excess / that of $w$ = 0")
    _keys(panels.axes[0], {"the theorem's bound, moved": "-."}, linewidth=0.8)
    _share_limits(panels, min(at.get_ylim()[0] for at in panels.axes), 1.5)
    return panels.done(3)


def unlearnable(config: Config, product: Product, problems: list[str]) -> Drawing:
    """What privacy hides (Theorem 5.4); ``options``: n and d, else the largest."""
    table = together(config, product)
    for key in ("n", "d"):
        value = product.options[key]
        at = value if value in set(table[key]) else table[key].max()
        table = where(table, **{key: at})
    return hidden(table, product.calibration)


def hidden(table: pd.DataFrame, calibration: str) -> Drawing:
    """Excess over that of w = 0 against the bias, in units of what epsilon hides."""
    norms, targets = sorted(table["p"].unique()), sorted(table["epsilon"].unique())
    panels = Panels(len(norms), 4)
    for p, at in panels.over(norms):
        part = where(table, p=p)
        for epsilon, look in zip(targets, shades(len(targets), "-"), strict=True):
            for kind, line in ((calibration, "-"), ("none", ":")):
                some = where(part, epsilon=epsilon, calibration=kind)
                known = (
                    "constant",
                    "share",
                    f"p = {p:g}",
                    f"epsilon = {epsilon:g}, {kind}",
                )
                label = rf"$\epsilon$ = {epsilon:g}" if kind == calibration else "_"
                panels.mean(at, some, *known, look | {"linestyle": line}, label)
        at.axhline(1.0, color="0.4", linestyle="--", linewidth=0.9)
        at.set_xscale("log")
        ticks(at, part["constant"].unique())
        at.set(xlabel=r"$c$, the bias over what $\epsilon$ hides", title=f"$p$ = {p:g}")
    _share_limits(panels, 0)
    panels.axes[0].set_ylabel("excess / that of $w$ = 0")
    keys = {f"{calibration} noise": "-", "no noise": ":", "$w$ = 0": "--"}
    _keys(panels.axes[0], keys)
    return panels.done(6)


# --- real data ------------------------------------------------------------------------


def real(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Test loss against epsilon; no noise stands at the right."""
    table = results.load_sweep(config, product.sweeps[0])
    names = list(dict.fromkeys(table["problem"]))
    panels = Panels(len(names), 2, size=(4.2 * len(names), 3.4))
    titles = results.titles(config, names)
    for name, at in panels.over(names):
        part = where(table, problem=name)
        at.set_title(titles[name].title)
        lost = part[part["status"] == "unavailable"]
        if len(lost):
            drawing.empty(at, str(lost["reason"].iloc[0]))
            continue
        _losses(panels, at, part, name)
    keys = {"strict noise": "-", "published noise": ":", "$w$ = 0": "--"}
    _keys(panels.axes[0], keys)
    return panels.done(4)


def _losses(panels: Panels, axes: Axes, part: pd.DataFrame, panel: str) -> None:
    finite = part.loc[np.isfinite(part["epsilon"]), "epsilon"]
    right = 4 * float(finite.max())
    keys = part.groupby(["p", "method"])
    for ((p, solver), group), look in zip(keys, shades(len(keys)), strict=True):
        label = _title(solver, p)
        for kind, line in ((STRICT, "-"), (PAPER, ":")):
            some = group[group["calibration"].isin([kind, "none"])]
            some = some.assign(epsilon=some["epsilon"].clip(upper=right))
            curve = _against(some, "epsilon", panel, f"{label}, {kind}", "excess")
            shown = label if kind == STRICT else "_"
            panels.band(axes, curve, shown, look | {"linestyle": line})
    axes.axhline(math.log(2), color="0.4", linestyle="--", linewidth=0.9)
    axes.set_xscale("log")
    every = [*sorted(finite.unique()), right]
    ticks(axes, every, [f"{tick:g}" for tick in every[:-1]] + ["no\nnoise"])
    axes.minorticks_off()
    axes.set_ylim(top=min(axes.get_ylim()[1], 2.0))
    axes.set(xlabel=r"$\epsilon$", ylabel="test loss")
