"""Figures of Bassily, Guzmán and Nandi 2021 (DP-SCO); the paper itself has none."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dperm import schema
from dperm.papers.dpsco import hard_figures
from dperm.papers.dpsco.bounds import TERMS, privacy_terms
from dperm.papers.dpsco.exponents import interval, of_time
from dperm.papers.dpsco.labels import LABELS, NOISE, norm
from dperm.papers.dpsco.outcomes import chosen, instanced, together
from dperm.papers.dpsco.quantiles import tail
from dperm.pipeline import results
from dperm.present import curves, drawing, looks
from dperm.present.drawing import Row, Rows
from dperm.present.looks import Look

SLOPES = {-0.5: ":", -1.0: "--"}  # line styles of Table 1's exponents
SHARE = "excess / initial risk"


def rates(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Excess over initial risk against n, one panel a (solver, p), a line a dimension.

    ``options``: epsilon, panels as pairs of solver and p, columns.
    """
    table = chosen(config, product)
    shown = product.options["panels"]
    figure, axes = drawing.panels(len(shown), product.options.get("columns", 3))
    rows: Rows = []
    dimensions = sorted(table["d"].unique())
    shades = dict(zip(dimensions, curves.shades(len(dimensions), "-"), strict=True))
    for (solver, p), at in zip(shown, axes, strict=True):
        name = f"{solver}, p = {norm(p)}"
        part = table[(table["method"] == solver) & (table["p"] == float(p))]
        for d, group in part.groupby("d"):
            found = _against(group, "n", name, f"d = {d:g}")
            drawing.band(at, found, f"d = {d:g}", shades[d])
            rows += found
        _slopes(at, part, TERMS[solver])
        _log_axes(at, "records n", SHARE)
        at.set_title(f"{LABELS[solver]}, $p$ = {norm(p)}")
    _headed(figure, table, product.calibration)
    drawing.shared_legend(figure, 5)
    _share_limits(axes)
    return figure, rows


def _headed(figure: Figure, table: pd.DataFrame, calibration: str) -> None:
    """Say above the panels which target and noise they show, and of how many runs."""
    targets = sorted(set(table["epsilon"]) - {math.inf})
    noise = NOISE[calibration] if targets else NOISE["none"]
    shown = [rf"$\epsilon$ = {targets[0]:g}, "] if len(targets) == 1 else []
    each = table.groupby(["method", "p", "n", "d"])["replicate"].nunique()
    few, many = each.min(), each.max()
    runs = f"{many} runs" if few == many else f"{few} to {many} runs"
    about = f"mean and range of {runs}" if many > 1 else "one run, no interval"
    figure.suptitle("".join([*shown, noise, ": ", about]), fontsize=9)


def _measured(panel: str, algorithm: str, x: float, values: np.ndarray) -> Row:
    """``drawing.summary`` of runs, without an interval where there is one run only."""
    low, high = interval(values)
    row = drawing.summary(panel, algorithm, x, values)
    return row | {"ci_low": low, "ci_high": high}


def _against(
    group: pd.DataFrame, x: str, panel: str, algorithm: str, y: str = "share"
) -> Rows:
    return curves.against(group, x, y, panel, algorithm, _measured)


def _look(solver: str) -> Look:
    return looks.of([LABELS[solver]])[LABELS[solver]]


def _slopes(axes: Axes, part: pd.DataFrame, exponents: Sequence[float]) -> None:
    """Grey lines with Table 1's exponents through the panel's upper right."""
    if part.empty:
        return
    sizes = np.array([part["n"].min(), part["n"].max()], dtype=float)
    for exponent in sorted(set(exponents)):
        ends = 1.5 * (sizes / sizes[0]) ** exponent
        axes.plot(sizes, ends, color="0.6", linestyle=SLOPES[exponent], linewidth=0.9,
                  zorder=0)  # fmt: skip
        label, at = f"$n^{{{exponent:g}}}$", (sizes[1], ends[1])
        axes.annotate(label, at, (2, -3), textcoords="offset points", fontsize=6.5,
                      color="0.45")  # fmt: skip


def _log_axes(axes: Axes, x: str, y: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def _share_limits(axes: Sequence[Axes]) -> None:
    low = min(at.get_ylim()[0] for at in axes)
    high = max(at.get_ylim()[1] for at in axes)
    for at in axes:
        at.set_ylim(max(low, 1e-5), high)


PRICES = [  # epsilon, calibration, label, look
    (1.0, "paper", r"$\epsilon$ = 1, published", ("#D55E00", ":", "o")),
    (1.0, "strict", r"$\epsilon$ = 1, strict", ("#D55E00", "-", "o")),
    (8.0, "paper", r"$\epsilon$ = 8, published", ("#0072B2", ":", "s")),
    (8.0, "strict", r"$\epsilon$ = 8, strict", ("#0072B2", "-", "s")),
    (math.inf, "none", "no noise", ("#000000", "--", "D")),
]


def price(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Published, strict and no noise against n at one dimension."""
    table = together(config, product)
    table = table[table["d"] == product.options["d"]]
    shown = product.options["panels"]
    figure, axes = drawing.panels(len(shown), 3)
    rows: Rows = []
    for (solver, p), at in zip(shown, axes, strict=True):
        part = table[(table["method"] == solver) & (table["p"] == float(p))]
        for epsilon, kind, label, (colour, style, marker) in PRICES:
            mask = (part["epsilon"] == epsilon) & (part["calibration"] == kind)
            found = _against(part[mask], "n", f"{solver}, p = {norm(p)}",
                             f"epsilon = {epsilon:g}, {kind}")  # fmt: skip
            look = {"color": colour, "linestyle": style, "marker": marker}
            drawing.band(at, found, label, look)
            rows += found
        at.axhline(0.5, color="0.6", linewidth=0.8, zorder=0)
        _log_axes(at, "records n", SHARE)
        at.set_title(f"{LABELS[solver]}, $p$ = {norm(p)}")
    figure.suptitle(f"$d$ = {product.options['d']}", fontsize=9)
    drawing.shared_legend(figure, 5)
    _share_limits(axes)
    return figure, rows


def dimension(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Excess against d at one n; two panels, private and without noise."""
    table = together(config, product)
    sizes = set(table["n"])
    wanted = product.options["n"]
    n = wanted if wanted in sizes else product.options["small"]
    table = table[(table["n"] == n) & (table["method"] != "noisy_sfw_all")]
    epsilon = float(product.options["epsilon"])
    figure, axes = drawing.panels(2, 2)
    figure.set_size_inches(8.4, 3.0)
    rows: Rows = []
    for at, value, kind in zip(
        axes, (epsilon, math.inf), (product.calibration, "none"), strict=True
    ):
        part = table[(table["epsilon"] == value) & (table["calibration"] == kind)]
        keys = part.groupby(["p", "method"], sort=True)
        for ((p, solver), group), shade in zip(
            keys, curves.shades(len(keys)), strict=True
        ):
            label = f"{LABELS[solver]}, p = {norm(p)}"
            found = _against(group, "d", f"epsilon = {value:g}", label)
            look = shade | {"linestyle": _look(solver)["linestyle"]}
            drawing.band(at, found, label, look)
            rows += found
        shown = "no noise" if math.isinf(value) else rf"$\epsilon$ = {value:g}, strict"
        at.set_title(f"{shown}, $n$ = {n:,}")
        _log_axes(at, "dimension d", SHARE)
        ticks = sorted(part["d"].unique())
        at.set_xticks(ticks, [f"{d:g}" for d in ticks])
        at.xaxis.minorticks_off()
    drawing.shared_legend(figure, place="right upper", fontsize=7)
    return figure, rows


def transition(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Excess against p near 1, beside the privacy terms of both theorems."""
    table = together(config, product)
    private = table[
        (table["epsilon"] == 1.0) & (table["calibration"] == product.calibration)
    ]
    free = table[table["calibration"] == "none"]
    dimensions = sorted(table["d"].unique())
    figure, axes = drawing.panels(len(dimensions), 2)
    rows: Rows = []
    for d, at in zip(dimensions, axes, strict=True):
        panel = f"d = {d:g}"
        for source, label, look in (
            (private, r"NoisySFW, $\epsilon$ = 1", _look("noisy_sfw")),
            (free, "NoisySFW, no noise", _look("noisy_sfw_all")),
        ):
            mask = (source["d"] == d) & (source["method"] == "noisy_sfw")
            found = _shifted(_against(source[mask], "p", panel, label))
            drawing.band(at, found, label, look)
            rows += found
            if source is private:
                rows += _terms(at, found, d, panel)
        mask = (private["d"] == d) & (private["method"] == "poly_sfw")
        found = _shifted(_against(private[mask], "p", panel, "PolySFW"))
        dot = {"color": "#CC79A7", "marker": "D", "linestyle": "none"}
        drawing.band(at, found, r"PolySFW, $\epsilon$ = 1", dot)
        rows += found
        _log_axes(at, "$p - 1$", SHARE)
        noise = NOISE[product.calibration]
        at.set_title(f"$d$ = {d:g}, $n$ = {table['n'].max():,}, {noise}")
        ticks = [NEAREST, 0.01, 0.1, 1.0]
        at.set_xticks(ticks, ["0", "0.01", "0.1", "1"])
        at.xaxis.minorticks_off()
        at.set_ylim(bottom=max(at.get_ylim()[0], 1e-4))
    figure.set_size_inches(4.0 * len(axes) + 2.2, 3.2)
    drawing.shared_legend(figure, place="right center", fontsize=7)
    return figure, rows


NEAREST = 2e-3  # where p = 1 stands on a logarithmic axis of p - 1


def _shifted(rows: Rows) -> Rows:
    return [row | {"x": max(row["x"] - 1, NEAREST)} for row in rows]


def _terms(axes: Axes, measured: Rows, d: float, panel: str) -> Rows:
    """Privacy terms kappa sqrt(d) and (p - 1) sqrt(d), scaled to the value at p = 2."""
    x = np.geomspace(NEAREST, 1.0, 60)
    upper, lower = privacy_terms(x, int(d))
    rows: Rows = []
    for label, curve, style in (
        (r"upper, $\kappa\sqrt{d}/(\epsilon n)$ (5.2)", upper, "--"),
        (r"lower, $(p-1)\sqrt{d}/(\epsilon n)$ (5.4)", lower, ":"),
    ):
        values = curve * measured[-1]["mean"]
        axes.plot(x, values, color="0.5", linestyle=style, linewidth=1, label=label)
        rows += [
            drawing.summary(panel, label, float(a), np.array([b]))
            for a, b in zip(x, values, strict=True)
        ]
    return rows


def quantiles(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Quantiles against log(1/beta): a straight line grows like the logarithm."""
    table = together(config, product)
    figure, axes = drawing.panels(2, 2)
    rows: Rows = []
    for at, epsilon in zip(axes, sorted(table["epsilon"].unique()), strict=True):
        part = table[table["epsilon"] == epsilon]
        keys = part.groupby(["method", "p"])
        shades = curves.shades(max(3, len(keys)), "-")
        for ((solver, p), group), shade in zip(keys, shades, strict=False):
            label = f"{LABELS[solver]}, $p$ = {norm(p)}"
            values = group["share"].to_numpy()
            rows += _tail(at, values, f"epsilon = {epsilon:g}", label, shade)
        kind = NOISE["none"]
        if math.isfinite(epsilon):
            kind = rf"$\epsilon$ = {epsilon:g}, {NOISE[product.calibration]}"
        at.set_title(
            f"{kind}, {group['run'].nunique() * group['replicate'].nunique():,} runs"
        )
        at.set_xlabel(r"$\log(1/\beta)$")
        at.set_ylabel(r"excess / initial, $1-\beta$")
        at.set_ylim(bottom=0)
    drawing.shared_legend(figure, 3)
    return figure, rows


def _tail(axes: Axes, values: np.ndarray, panel: str, label: str, look: Look) -> Rows:
    rows: Rows = []
    for beta, middle, low, high in tail(values):
        row = drawing.summary(panel, label, math.log(1 / beta), np.array([middle]))
        rows.append(row | {"ci_low": low, "ci_high": high, "min": low, "max": high})
    drawing.band(axes, rows, label, look)
    return rows


def runtime(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Seconds against n."""
    table = together(config, product)
    figure, (at,) = drawing.panels(1, 1)
    figure.set_size_inches(7.6, 3.6)
    rows: Rows = []
    for solver in LABELS:
        part = table[table["method"] == solver]
        if part.empty:
            continue
        found = _against(part, "n", "runtime", LABELS[solver], "seconds")
        power, low, high = of_time(part)
        label = f"{LABELS[solver]}: $n^{{{power:.2f}}}$"
        label += "" if math.isnan(low) else f" [{low:.2f}, {high:.2f}]"
        drawing.band(at, found, label, _look(solver))
        rows += found
    _log_axes(at, "records n", "seconds, one core")
    d = config.paper.sweeps[product.sweeps[0]].options["d"]
    at.set_title(f"$d$ = {d}, {NOISE[product.calibration]}")
    drawing.shared_legend(figure, place="right center", fontsize=7)
    return figure, rows


def bought(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Excess risk against the seconds spent; the size of n grows along a line."""
    table = together(config, product)
    epsilons = sorted(table["epsilon"].unique())
    figure, axes = drawing.panels(len(epsilons), 2)
    figure.set_size_inches(3.7 * len(epsilons), 3.4)
    rows: Rows = []
    for at, epsilon in zip(axes, epsilons, strict=True):
        for solver in LABELS:
            mask = (table["method"] == solver) & (table["epsilon"] == epsilon)
            found = []
            for _, group in table[mask].groupby("n"):
                x = float(group["seconds"].median())
                found.append(_measured(f"epsilon = {epsilon:g}", LABELS[solver],
                                       x, group["share"].to_numpy()))  # fmt: skip
            if found:
                drawing.band(at, found, LABELS[solver], _look(solver))
                rows += found
        at.set_title(rf"$\epsilon$ = {epsilon:g}, strict")
        _log_axes(at, "seconds, one core", SHARE)
    drawing.shared_legend(figure, 4)
    return figure, rows


def lower_bound(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Measured excess on the fingerprinting instance, and the bound's shape."""
    table = together(config, product)
    table = table[table["calibration"] == product.calibration]
    sizes = sorted(table["d"].unique())
    figure, axes = drawing.panels(len(sizes), 3)
    rows: Rows = []
    norms = sorted(table["p"].unique())
    for at, d in zip(axes, sizes, strict=True):
        for p, look in zip(norms, curves.shades(len(norms), "-"), strict=True):
            part = table[(table["d"] == d) & (table["p"] == p)]
            found = _against(part, "n", f"d = {d:g}", f"p = {p:g}", "excess")
            drawing.band(at, found, f"$p$ = {p:g}", look)
            bound = part.groupby("n")["bound"].first()
            at.plot(bound.index, bound, color=look["color"], linestyle=":", linewidth=1)
            rows += found
            rows += [
                drawing.summary(f"d = {d:g}", f"p = {p:g}, shape of the bound",
                                float(n), np.array([value]))
                for n, value in bound.items()
            ]  # fmt: skip
        at.set_title(f"$d$ = {d:g}")
        at.plot([], [], color="0.4", linestyle=":", label="shape of the lower bound")
        _log_axes(at, "records n", "excess risk")
    _headed(figure, table, product.calibration)
    drawing.shared_legend(figure, 5)
    return figure, rows


def hard(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Rates on the worst of a class of instances; ``options``: d, panels."""
    table = instanced(config, product)
    table = table[table["d"] == product.options["d"]]
    return hard_figures.worst(table, product.options["panels"], PRICES)


def unlearnable(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """What privacy hides (Theorem 5.4); ``options``: n and d, else the largest."""
    table = together(config, product)
    for key in ("n", "d"):
        wanted = product.options[key]
        at = wanted if wanted in set(table[key]) else table[key].max()
        table = table[table[key] == at]
    return hard_figures.hidden(table, product.calibration)


def real(
    config: schema.Config, product: schema.Product, problems: list[str]
) -> tuple[Figure, Rows]:
    """Test loss against epsilon; no noise stands at the right."""
    table = results.load_sweep(config, product.sweeps[0])
    names = list(dict.fromkeys(table["problem"]))
    figure, axes = drawing.panels(len(names), 2)
    figure.set_size_inches(4.2 * len(names), 3.4)
    titles = results.titles(config, names)
    rows: Rows = []
    for name, at in zip(names, axes, strict=True):
        part = table[table["problem"] == name]
        at.set_title(titles[name].title)
        lost = part[part["status"] == "unavailable"]
        if len(lost):
            drawing.empty(at, str(lost["reason"].iloc[0]))
            continue
        rows += _losses(at, part, name)
    for label, line in (
        ("strict noise", "-"), ("published noise", ":"), ("$w$ = 0", "--"),
    ):  # fmt: skip
        axes[0].plot([], [], color="0.4", linestyle=line, label=label)
    drawing.shared_legend(figure, 4)
    return figure, rows


def _losses(axes: Axes, part: pd.DataFrame, panel: str) -> Rows:
    rows: Rows = []
    finite = part.loc[np.isfinite(part["epsilon"]), "epsilon"]
    right = 4 * float(finite.max())
    keys = part.groupby(["p", "method"])
    shades = curves.shades(len(keys))
    for ((p, solver), group), look in zip(keys, shades, strict=True):
        label = f"{LABELS[solver]}, $p$ = {norm(p)}"
        for kind, style in (("strict", "-"), ("paper", ":")):
            shown = group[group["calibration"].isin([kind, "none"])]
            shown = shown.assign(epsilon=shown["epsilon"].clip(upper=right))
            found = _against(shown, "epsilon", panel, f"{label}, {kind}", "excess")
            rows += found
            drawing.band(axes, found, label if kind == "strict" else "_",
                  look | {"linestyle": style})  # fmt: skip
    axes.axhline(math.log(2), color="0.4", linestyle="--", linewidth=0.9)
    axes.set_xscale("log")
    ticks = [*sorted(finite.unique()), right]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks[:-1]] + ["no\nnoise"])
    axes.minorticks_off()
    axes.set_ylim(top=min(axes.get_ylim()[1], 2.0))
    axes.set_xlabel(r"$\epsilon$")
    axes.set_ylabel("test loss")
    return rows
