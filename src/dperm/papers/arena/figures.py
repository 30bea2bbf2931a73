"""Figures of the arena: guide, map, critical differences."""

from __future__ import annotations

import math
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dperm.core.experiment.schema import Config, Product
from dperm.papers.arena import ranking
from dperm.papers.arena.ranking import BUDGETS, LOSSES
from dperm.papers.arena.tables import outcomes
from dperm.present import drawing
from dperm.present.drawing import Drawing, Rows

TITLES = {"logistic": "classification", "least_squares": "least squares"}
SEEN = 0.1  # share of draws below which nothing is shown
LOW, HIGH = -2.0, 1.0  # ends of colours: log10 of the excess


def guide(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Which method to take, by loss and n epsilon / p, and how certain that is.

    Shades are the shares of resamples of the data sets in which a method is taken. The
    number in a column is the mean regret of the method that is taken most.
    """
    return drawn_guide(ranking.picks(ranking.cells(outcomes(config))))


def drawn_guide(found: pd.DataFrame) -> Drawing:
    """Draw a table of ``ranking.picks``."""
    most = found.groupby(["loss", "algorithm"])["share"].transform("max")
    found = found[most >= SEEN]
    counts = [max(1, found[found["loss"] == one]["algorithm"].nunique())
              for one in LOSSES]  # fmt: skip
    size = (7.5, 1.6 + 0.34 * sum(counts))
    how: dict[str, Any] = {"squeeze": False, "height_ratios": counts}
    figure, axes = plt.subplots(len(LOSSES), 1, figsize=size, **how)
    rows: Rows = []
    lows = [low for low, _ in BUDGETS]
    for at, loss in zip(axes.flat, LOSSES, strict=True):
        own = found[found["loss"] == loss]
        if own.empty:
            drawing.empty(at, f"no data set: {TITLES[loss]}")
            continue
        table = own.pivot_table(
            index="algorithm", columns="from", values="share", fill_value=0.0
        ).reindex(columns=lows)
        table = table.loc[table.sum(axis=1).sort_values(ascending=False).index]
        at.imshow(table, cmap="Blues", vmin=0, vmax=1.2, aspect="auto")
        at.set_facecolor("0.93")
        at.grid(False)
        at.set_yticks(range(len(table)), table.index)
        ends = [f"{low:,.0f}" for low in lows[1:]]
        at.set_xticks(np.arange(1, len(lows)) - 0.5, ends)
        at.set_title(TITLES[loss], loc="left", fontweight="bold")
        at.set_xlabel(r"$n \epsilon / p$")
        for one in own.to_dict("records"):
            rows.append(_row(loss, one["algorithm"], one["from"], one["share"]))
            if one["share"] >= SEEN:
                is_best = one["share"] == table[one["from"]].max()
                text = f"{one['share']:.0%}"
                text += f"\nexcess {one['regret']:.2f} above least" if is_best else ""
                place = lows.index(one["from"]), table.index.get_loc(one["algorithm"])
                _written(at, *place, text, one["share"], is_best)
    figure.suptitle(
        f"Share of {ranking.DRAWS} draws of the data sets in which a method has the "
        "least mean excess"
    )
    return figure, rows


def _written(at: Axes, x: float, y: float, text: str, shade: float, bold: bool) -> None:
    color, weight = "w" if shade > 0.6 else "k", "bold" if bold else "normal"
    how: Any = {"ha": "center", "va": "center", "fontsize": 7.5, "linespacing": 1.1}
    at.text(x, y, text, color=color, fontweight=weight, **how)


def map(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Excess by problem and method without tuning, one panel per epsilon.

    A stroke marks a problem that a method cannot do, a cross an excess of 1 or more,
    which is no better than the best constant, and a dot the least of a row.
    """
    table = outcomes(config, *product.sweeps)
    every = ranking.cells(table)
    methods = ranking.standing(every)["algorithm"].tolist()
    epsilons = sorted(every.index.get_level_values("epsilon").unique())
    names = [*table.sort_values(["loss", "n"], kind="stable")["problem"].unique()]
    size = (3.4 * len(epsilons) + 1.5, 2.4 + 0.16 * len(names))
    figure, axes = plt.subplots(1, len(epsilons), figsize=size, squeeze=False,
                                sharey=True)  # fmt: skip
    rows: Rows = []
    for at, epsilon in zip(axes.flat, epsilons, strict=True):
        some = ranking.cells(table, epsilon=epsilon)
        some = some.droplevel(["data", "epsilon", "loss", "range"])
        some = some.reindex(index=names, columns=methods)
        values = some.to_numpy(dtype=float)
        image = _heat(at, np.log10(np.clip(values, 10**LOW, 10**HIGH)))
        at.set_xticks(range(len(methods)), methods, rotation=90, fontsize=8)
        at.set_yticks(range(len(names)), names, fontsize=8)
        for k, j in zip(*np.nonzero(np.isnan(values)), strict=True):
            at.plot([j - 0.4, j + 0.4], [k + 0.4, k - 0.4], color="0.7", linewidth=0.7)
        for k, j in zip(*np.nonzero(values >= 1), strict=True):
            at.plot(j, k, "kx", markersize=3, markeredgewidth=0.6)
        for k, row in enumerate(values):
            if np.isfinite(row).any():
                at.plot(np.nanargmin(row), k, "k.", markersize=4)
        at.set_title(f"$\\epsilon$ = {epsilon:g}")
        rows += [
            _row(f"epsilon {epsilon:g}", f"{name}: {method}", epsilon, value)
            for (name, method), value in some.stack().items()
        ]
    ticks = np.arange(LOW, HIGH + 0.5)
    how: Any = {"location": "top", "aspect": 40, "ticks": ticks, "extend": "both"}
    bar = figure.colorbar(image, ax=axes, **how)
    bar.set_ticklabels([f"{10**one:g}" for one in ticks])
    bar.set_label(
        "excess: 0 is as good as without privacy, 1 is the best constant\n"
        "dot: least of a row; cross: no better than the constant; stroke: cannot do it"
    )
    return figure, rows


def _heat(at: Axes, shown: np.ndarray) -> Any:
    at.grid(False)
    at.set_facecolor("0.93")
    how: Any = {"aspect": "auto", "interpolation": "none", "vmin": LOW, "vmax": HIGH}
    return at.imshow(shown, cmap="RdYlBu_r", **how)


def _row(panel: str, method: Any, x: float, value: float) -> dict[str, Any]:
    found = dict.fromkeys(drawing.COLUMNS[3:], value)
    return {"panel": panel, "algorithm": method, "x": x, **found}


def ranks(
    config: Config, product: Product, problems: list[str], epsilon: float = 1.0
) -> Drawing:
    """Critical differences of mean ranks over data sets, one panel per loss.

    Only methods that do all of a panel's problems are ranked. A bar joins those that do
    not differ at 5 % (Nemenyi).
    """
    errors = ranking.cells(outcomes(config), epsilon=epsilon)
    losses = errors.index.get_level_values("loss")
    figure, axes = plt.subplots(2, 1, figsize=(6.5, 5.0), squeeze=False)
    rows: Rows = []
    for at, loss in zip(axes.flat, LOSSES, strict=True):
        mine = errors[losses == loss].dropna(axis=1, how="all")
        found, least = ranking.critical(mine)
        sets = mine.index.get_level_values("data").nunique()
        title = f"{TITLES[loss]}, {len(mine)} problems of {sets} data sets"
        at.set_title(f"{title}, $\\epsilon$ = {epsilon:g}")
        _differences(at, found, least)
        rows += [_row(loss, name, float(rank), least) for name, rank in found.items()]
    return figure, rows


def _differences(at: Axes, found: pd.Series, least: float) -> None:
    """Methods along their mean ranks, with bars over those that do not differ."""
    if found.empty:
        drawing.empty(at, "no method does all of these problems")
        return
    count, values = len(found), found.to_numpy()
    for k, (name, rank) in enumerate(found.items()):
        left = k < count / 2
        height, side = (-1 - k, 0.5) if left else (k - count, count + 0.5)
        at.plot([rank, rank, side], [0, height, height], color="0.4", linewidth=0.8)
        text: Any = {"ha": "right" if left else "left", "va": "center", "fontsize": 8}
        at.text(side, height, f" {name} ", **text)
    ends = np.searchsorted(values, values + least, side="right") - 1
    level = 1.4  # above the labels of the ranks
    for k, last in enumerate(ends if math.isfinite(least) else ()):
        if last > k and (k == 0 or last > ends[k - 1]):
            at.plot([values[k], values[last]], [level, level], color="k", linewidth=2.5)
            level += 0.35
    at.set(xlim=(-0.2, count + 1.2), ylim=(-count / 2 - 1.5, level + 0.5), yticks=[])
    at.grid(False)
    at.spines[:].set_visible(False)
    at.spines["top"].set(visible=True, position=("data", 0), bounds=(1, count))
    at.xaxis.set_ticks_position("top")
    at.set_xticks(range(1, count + 1))
    at.tick_params(labelsize=8, pad=1)
    if math.isfinite(least):
        below = f"mean rank, the best on the left; critical difference {least:.2f}"
        at.set_title(f"{at.get_title()}\n{below}")
