"""Figures of Lou and Cheung 2020 (DP-BCFW)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np
import pandas as pd

from dperm.config.schema import Product
from dperm.experiments import results
from dperm.experiments.inputs import Inputs, titles
from dperm.numerics.intervals import power
from dperm.papers.dpbcfw.tables import NUMBER, READING, last, relative
from dperm.plotting import drawing
from dperm.plotting.drawing import Picture, Rows
from dperm.plotting.styles import Style, style, styles_of
from dperm.plotting.tables import groups, where

LARGER = (
    "A private curve can end below FW, which has no noise: Algorithm 2 adds a vertex "
    "of size $\\eta$ for each of K nodes,\nso that $\\|x\\|_1$ reaches K $\\eta$, "
    "where FW keeps to $\\eta$."
)
FIRST_STEP = (
    "All are at 1 at iteration 0, which has no place on this axis. The first step has "
    "size 1: it leaves 0 for a vertex of the set."
)
_HUES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#C68900", "#4B9DCB")
NOISES = {
    "none": "no noise",
    "stated": "noise as printed",
    "scaled": "printed noise, scores $\\eta\\,\\nabla f$",
    "tight": "least sound noise",
}
UPDATES = {"published": "as published", "feasible": "feasible"}
SHARE = "$\\eta$ = {:g} $\\|x_{{true}}\\|_1$"
# key of a family: label of a curve
FAMILIES: dict[str, Callable[[Any], str]] = {
    "nodes": "K = {:g}".format,
    "epsilon": "$\\epsilon$ = {:g}".format,
    "split": lambda share: f"{10 * share:.0f} : {10 - 10 * share:.0f}",
    "sketch": "m = {:g}".format,
    "update": lambda update: f"DP-BCFW, {UPDATES[update]}",
}
FAMILY_MARKS = (
    "K = ",
    "epsilon$ = ",
    " : ",
    "m = ",
)  # in labels of ordered families
IN_WORDS = {
    "percent": "density",
    "updates": "update",
}  # fields of a panel's name
OF_ALL = (
    "d",
    "n",
    "density",
    "share",
    "problem",
)  # keys of panels that FW has too
SIZES = {2: (3.4, 1.9), 3: (2.3, 2.2)}  # of a panel, by the number in a row
Curve = tuple[str, pd.DataFrame]  # label, runs
# a panel: its name in the rows, title, curves
Panel = tuple[str, str, list[Curve]]


def losses(
    panels: Iterable[Panel], columns: int, size: tuple[float, float]
) -> Picture:
    """Losses over f(0) against iterations."""
    rows = Rows()
    titles = dict[str, str]()
    for panel, title, curves in panels:
        titles[panel] = title
        for label, runs in curves:
            rows += drawing.against(
                runs, "iteration", "relative", panel, label
            )
    points = drawing.frame(rows)
    axes = {
        "xlabel": "iteration",
        "ylabel": "loss / loss at 0",
        "yscale": "log",
    }
    layout = {"columns": columns, "size": size, "shared": "row"}
    return _picture(points, titles, axes, note=explained(points), **layout)


def _picture(
    points: pd.DataFrame,
    titles: dict[str, str],
    axes: dict[str, Any],
    **layout: Any,
) -> Picture:
    """A picture with a legend, whose families of curves go from dark to light."""
    styles = hues(points["algorithm"].unique())
    return Picture(points, titles, axes, styles=styles, **layout)


def explained(points: pd.DataFrame) -> str:
    """Why a private curve can end below FW, if one does."""
    ends = points.loc[points.groupby(["panel", "algorithm"])["x"].idxmax()]
    alone = where(ends, algorithm="FW").set_index("panel")["mean"]
    ours = ends[~ends["algorithm"].isin(["FW", "DP-FW"])]
    return LARGER if (ours["mean"] < ours["panel"].map(alone)).any() else ""


def hues(names: Iterable[str]) -> dict[str, Style]:
    """Styles of unordered names by hue, of ordered families from dark to light."""
    central = ("FW", "DP-FW")
    ours = [name for name in names if name not in central]
    styles = styles_of(central)
    for mark in FAMILY_MARKS:
        styles |= drawing.family([name for name in ours if mark in name])
    unordered = [name for name in ours if name not in styles]
    marks = zip(
        unordered,
        itertools.cycle(_HUES),
        itertools.cycle("os^DvP"),
        strict=False,
    )
    return styles | {name: style(hue, "-", mark) for name, hue, mark in marks}


def sweeps_of(folder: Path, product: Product) -> list[pd.DataFrame]:
    """The rows of each of a product's sweeps, as ``relative`` returns them."""
    return [
        relative(results.load_sweep(folder, name)) for name in product.sweeps
    ]


def percent(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:g} %"


def _baselines(table: pd.DataFrame, noise: str) -> list[Curve]:
    """Curves of FW and DP-FW, if they were run; ``noise`` is that of DP-BCFW.

    In the formula of DP-FW noise and scores agree, as in ``scaled``.
    """
    central = "tight" if noise == "tight" else "scaled"
    alone = where(table, method="dp_fw", noise=central)
    return [("FW", where(table, method="fw")), ("DP-FW", alone)]


def _family(table: pd.DataFrame, key: str) -> list[Curve]:
    """One curve for each value of a key."""
    settings = table[key].unique()
    return [
        (FAMILIES[key](setting), where(table, **{key: setting}))
        for setting in settings
    ]


# --- losses against iterations: Figures 1 to 3 and 5 to 9 -----------------------------


def samplings(swept: pd.DataFrame) -> Picture:
    """Figure 1: samplings on the ball, one panel per pair of sparsities.

    The data also have the box, whose panels do not name the set.
    """
    table = relative(swept)
    panels = list[Panel]()
    titles = dict[str, str]()
    pairs = sorted(
        {*zip(table["active"], table["density"], strict=True)}, reverse=True
    )
    for constraint, (active, density) in itertools.product(
        ("ball", "box"), pairs
    ):
        runs = where(
            table, active=active, density=density, constraint=constraint
        )
        active_share = percent(active)
        density_share = percent(density)
        title = f"{density_share} of A, {active_share} of x"
        panel = f"features {density_share}, variable {active_share}"
        if constraint == "ball":
            panel = f"ball, {title}"
            titles[panel] = title
        curves = []
        for name, sampling_runs in runs.groupby("sampling", sort=False):
            p_min = sampling_runs["p_min"].iloc[0]
            curves.append(
                (f"{name}: $p_{{min}}$ = {p_min:.2g}", sampling_runs)
            )
        panels.append((panel, title, curves))
    picture = losses(panels, min(3, len(pairs)), (3.0, 1.9))
    marked = np.geomspace(1, table["iteration"].max(), 9).astype(int)
    # iterations crowd at the right
    even = {"markevery": [*np.unique(marked) - 1]}
    return replace(
        picture,
        titles=titles,
        axes={**picture.axes, "xscale": "log"},
        styles={name: old | even for name, old in picture.styles.items()},
        note=FIRST_STEP,
    )


def paths(
    folder: Path,
    inputs: Inputs,
    product: Product,
    along: str,
    panel: str,
    title: str,
    columns: int = 2,
) -> Picture:
    """Figures 2, 3 and 5 to 9: a family of DP-BCFW's runs, with FW and DP-FW.

    ``along`` is the key of ``FAMILIES`` in which curves differ. ``panel`` names a panel
    in the data and ``title`` says what it is; both are formats, of keys of the sweep,
    in which panels differ, and of the words of ``_words``. More sweeps have Algorithm 1
    on box and ball. Problems without data have no panel.
    """
    table, *sampled_tables = sweeps_of(folder, product)
    panels = list[Panel]()
    ours = table[table["method"].isin(["bcfw", "dp_bcfw"])]
    fields = [name for _, name, *_ in Formatter().parse(panel) if name]
    keys = [IN_WORDS.get(name, name) for name in fields]
    for panel_values, family in groups(ours, keys):
        central = where(
            table, **{key: panel_values[key] for key in keys if key in OF_ALL}
        )
        words = panel_values | _words(inputs, family)
        curves = _baselines(central, panel_values.get("noise", "scaled"))
        curves += _family(family, along)
        panels.append(
            (panel.format_map(words), title.format_map(words), curves)
        )
    for sampled in sampled_tables:
        for constraint, runs in sampled.groupby("constraint", sort=False):
            name = f"Algorithm 1, {constraint}"
            panels.append((name, name, _family(runs, along)))
    return losses(panels, columns, SIZES[columns])


def _words(inputs: Inputs, runs: pd.DataFrame) -> dict[str, Any]:
    """Words for the panel of some runs of DP-BCFW.

    They are ``noises`` and ``updates``, its noise and update in words; ``percent`` of
    non-zeros; ``reach``, the largest norm over eta; ``cost``, the true epsilon; and
    ``named``, the data set.
    """
    first_run = runs.iloc[0]
    words = {"reach": f"{runs['largest_norm'].max():.3g}"}
    words |= {
        "noises": NOISES[first_run["noise"]],
        "updates": UPDATES[first_run["update"]],
    }
    if "density" in first_run:
        words["percent"] = percent(first_run["density"])
    if runs.get("true_epsilon", pd.Series(dtype=float)).notna().any():
        mean_epsilon = runs["true_epsilon"].mean()
        words["cost"] = f"{mean_epsilon:.2g}"
        if mean_epsilon >= 1000:
            words["cost"] = f"about $10^{{{np.log10(mean_epsilon):.0f}}}$"
    if "problem" in first_run:
        name = first_run["problem"]
        words["named"] = titles(inputs, [name])[name].title
    return words


# --- Figure 4 -------------------------------------------------------------------------

THEORY = -2 / 3  # exponent of n, Theorem 4


def samples(swept: pd.DataFrame) -> Picture:
    """Figure 4: excess risk against n in log-log, with slopes and their intervals.

    Theorem 4's line goes through the mean excess at the least n.
    """
    table = last(relative(swept))
    table = table.assign(excess=table["loss"] - table["truth"])
    rows = Rows()
    titles = dict[str, str]()
    labels = dict[tuple[str, str], str]()
    shares, sizes = (np.sort(table[key].unique()) for key in ("share", "n"))
    for share, (update, update_words) in itertools.product(
        shares, UPDATES.items()
    ):
        runs = where(table, share=share)
        ours = where(runs, method="dp_bcfw", update=update)
        panel = f"{update_words}, {SHARE.format(share)}"
        titles[panel] = panel
        curves = [
            ("DP-FW", where(runs, method="dp_fw")),
            *_family(ours, "nodes"),
        ]
        for name, curve_runs in curves:
            curve = f"{name}: {slope(curve_runs)}"
            labels[panel, curve] = name
            rows += drawing.against(curve_runs, "n", "excess", panel, curve)
        height = ours.loc[ours["n"] == sizes[0], "excess"].mean()
        line = height * (sizes / sizes[0]) ** THEORY
        name = f"theory, slope {THEORY:.2f}"
        rows += drawing.values(panel, name, sizes, line, "line")
    axes = {"xlabel": "training records n", "ylabel": "excess empirical risk"}
    axes |= {"xscale": "log", "yscale": "log"}
    points = drawing.frame(rows)
    heads = {
        name: name.partition(":")[0] for name in points["algorithm"].unique()
    }
    styles = hues(dict.fromkeys(heads.values()))
    picture = _picture(
        points, titles, axes, labels=labels, columns=2, size=(3.4, 2.1)
    )
    return replace(
        picture,
        styles={name: styles[head] for name, head in heads.items()},
        ticks=sizes.tolist(),
        note="dotted: the slope of Theorem 4",
    )


def slope(runs: pd.DataFrame) -> str:
    """Exponent of the excess in n and its interval; none is fitted below 0."""
    if len(runs) < 3 or not (runs["excess"] > 0).all():
        return "no slope,\nsome excess below 0"
    fit = power(runs["n"].to_numpy(), runs["excess"].to_numpy())
    return "{:.2f} [{:.2f}, {:.2f}]".format(*fit)


# --- Corollary 1 and Remark 4 ---------------------------------------------------------

TRAFFIC = {  # styles; up and down along a run nearly coincide
    "measured, T of Theorem 4": style("#0072B2", "-", "o"),
    "measured, T tuned": style("#D55E00", "-", "s"),
    "Corollary 1": style("#009E73", "--", "^"),
    "one-shot sketch": style("#595959", "-.", "D"),
    "up, measured": style("#D55E00", "-", "v"),
    "up, if each were sent": style("#CC79A7", "--", "P"),
    "down, measured": style("#332288", ":", "x"),
}
HEAD = 16  # bytes of a message besides its numbers: their count and a signed index


def communication(swept: pd.DataFrame) -> Picture:
    """Uplink bytes of a run against n, and along a run, one column per budget.

    The lower panels show the bytes so far, up and down, of the tuned runs at the
    largest n. A feature is never sent twice; if each were sent, an iteration would cost
    K features.
    """
    table = relative(swept)
    rows = Rows()
    titles = dict[str, str]()
    budgets = sorted(table["epsilon"].unique())
    panel_axes = dict[str, dict[str, Any]]()
    for epsilon in budgets:
        panel = f"epsilon {epsilon:g}"
        runs = where(table, epsilon=epsilon)
        titles[panel] = f"whole runs, $\\epsilon$ = {epsilon:g}"
        ends = last(runs)
        for label, curve_runs in {
            "measured, T of Theorem 4": where(ends, rule="theorem 4"),
            "measured, T tuned": where(ends, rule="tuned"),
            "Corollary 1": ends.assign(bytes_up=NUMBER * ends["corollary"]),
            "one-shot sketch": ends.assign(bytes_up=ends["one_shot"]),
        }.items():
            rows += drawing.against(curve_runs, "n", "bytes_up", panel, label)
        along = f"along, {panel}"
        sent = where(runs, rule="tuned", n=runs["n"].max())
        sent = sent[sent["iteration"] > 0]
        bytes_if_sent = (
            sent["iteration"]
            * sent["nodes"]
            * (HEAD + NUMBER * sent["sketch"])
        )
        for label, numbers in {
            "up, measured": sent["bytes_up"],
            "up, if each were sent": bytes_if_sent,
            "down, measured": sent["bytes_down"],
        }.items():
            curve_runs = sent.assign(bytes=numbers)
            rows += drawing.against(
                curve_runs, "iteration", "bytes", along, label
            )
        panel_axes[along] = {"xlabel": "iteration", "ylabel": "bytes so far"}
        panel_axes[along] |= {"xscale": "linear"}
    titles |= dict.fromkeys(
        panel_axes, f"along a run, n = {table['n'].max():g}, T tuned"
    )
    axes = {"xlabel": "training records n", "ylabel": "bytes up, all nodes"}
    axes |= {"xscale": "log", "yscale": "log"}
    layout: dict[str, Any] = {"columns": len(budgets), "size": (3.4, 2.2)}
    layout |= {"own": panel_axes, "styles": TRAFFIC}
    return Picture(drawing.frame(rows), titles, axes, **layout)


# --- Figures 3 and 5 to 9 against eta, one column per reading -------------------------

SHOWN = ("figure 5", "figure 6")  # in the picture
TOP = 1.5  # losses over f(0) above it are not shown: nothing was learnt
PLAIN: dict[str, Any] = {
    "epsilon": 1.0,
    "split": 0.5,
    "sketch": 80,
    "nodes": 4,
}
# what Figures 5 to 8 vary
VARIED: dict[str, tuple[str, tuple[float, ...]]] = {
    "figure 5": ("nodes", (2, 4, 8, 16)),
    "figure 6": ("epsilon", (0.001, 0.01, 0.1, 1.0, 10.0)),
    "figure 7": ("split", (0.1, 0.3, 0.5, 0.7, 0.9)),
    "figure 8": ("sketch", (8, 40, 80, 400, 800)),
}
READINGS = {  # equation 4 and whose epsilon it is, in the data and in titles
    ("mean", "total"): "mean, $\\epsilon$ in total",
    ("mean", "iteration"): "mean, $\\epsilon$ an iteration",
    ("sum", "total"): "sum, $\\epsilon$ in total",
    ("sum", "iteration"): "sum, $\\epsilon$ an iteration",
}


def readings(folder: Path, inputs: Inputs, product: Product) -> Picture:
    """Figures 3 and 5 to 9 against eta, one row a figure, one column a reading.

    Where eta is ||x_true||_1 the panels show its mean over the draws; that of Figure 9
    is a share of ||w*||_1. The picture is of ``SHOWN`` at the largest T; the data have
    every figure and every T.
    """
    shared, private, on_data, finer = sweeps_of(folder, product)
    # name, title, runs, varied
    lines: list[tuple[str, str, pd.DataFrame, str]] = []
    for name in VARIED:
        runs = _with_eta(
            _with_more(shared, finer) if name == "figure 8" else shared
        )
        lines.append((name, name.capitalize(), runs, name))
    for density, runs in _with_eta(private).groupby("density", sort=False):
        name = f"figure 3, {percent(density)}"
        lines.append((name, name.capitalize(), runs, "figure 3"))
    evaluated = where(on_data, status="ok") if "status" in on_data else on_data
    sections = titles(inputs, evaluated["problem"].unique())
    for name, runs in evaluated.groupby("problem", sort=False):
        rescaled = runs.assign(radius=runs["share"])
        lines.append(
            (str(name), sections[str(name)].title, rescaled, "figure 5")
        )
    rows = Rows()
    panel_titles = dict[str, str]()
    for name, title, runs, varied in lines:
        for (objective, per), words in READINGS.items():
            reading_runs = where(runs, objective=objective, per=per)
            for T, group in reading_runs.groupby("iterations", sort=False):
                panel = f"{name}, {objective}, {per}, T {T:g}"
                for label, curve_runs in _varied(group, varied):
                    rows += drawing.against(
                        curve_runs, "radius", "relative", panel, label
                    )
                if name in SHOWN and runs["iterations"].max() == T:
                    panel_titles[panel] = f"{title}: {words}"
    points = drawing.frame(rows)
    seen = points[points["panel"].isin(panel_titles)]
    axes: dict[str, Any] = {
        "xlabel": "$\\eta$",
        "ylabel": "final loss / loss at 0",
    }
    axes |= {"xscale": "log", "ylim": (0.0, TOP)}
    layout = {
        "columns": 2,
        "size": (3.4, 1.7),
        "shared": "all",
        "note": explained(seen),
    }
    return _picture(points, panel_titles, axes, **layout)


def _with_more(few: pd.DataFrame, many: pd.DataFrame) -> pd.DataFrame:
    """Rows of both sweeps; a reading that the second has comes from there alone."""
    readings_of_many = pd.MultiIndex.from_frame(many[READING])
    unrepeated = few[
        ~pd.MultiIndex.from_frame(few[READING]).isin(readings_of_many)
    ]
    return pd.concat([unrepeated, many], ignore_index=True)


def _with_eta(table: pd.DataFrame) -> pd.DataFrame:
    """Rows with ``radius``, the mean eta of a ball over the draws."""
    return table.assign(
        radius=table["ball"].map(table.groupby("ball")["eta"].mean())
    )


def _varied(runs: pd.DataFrame, figure: str) -> list[Curve]:
    """The curves of Figure 3, or of one of ``VARIED``; Figure 5 has FW and DP-FW."""
    ours, theirs = (
        where(runs, method=method) for method in ("dp_bcfw", "dp_fw")
    )
    central = [
        ("FW", where(runs, method="fw")),
        ("DP-FW", where(theirs, own=False)),
    ]
    if figure == "figure 3":
        own_noise = ("DP-FW, mean, epsilon in total", where(theirs, own=True))
        return [*central, own_noise, ("DP-BCFW, as published", ours)]
    key, levels = VARIED[figure]
    curves = [
        (FAMILIES[key](level), where(ours, **{**PLAIN, key: level}))
        for level in levels
    ]
    return [*central, *curves] if figure == "figure 5" else curves
