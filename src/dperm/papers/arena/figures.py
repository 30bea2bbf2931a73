"""Figures of the arena: guide, map, its summary, critical differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dperm.core.experiment.schema import Config, Product
from dperm.papers.arena import outcomes, ranking
from dperm.papers.arena.ranking import LOSSES
from dperm.papers.arena.tables import sizes
from dperm.present import drawing
from dperm.present.drawing import Drawing, Rows

TITLES = {"logistic": "classification", "least squares": "least squares"}
SEEN = 0.1  # share of draws below which nothing is shown
LOW, HIGH = -2.0, 2.0  # ends of colours: log10 of error over that of w = 0


def guide(
    config: Config,
    product: Product,
    problems: list[str],
    synthetic: Sequence[str] = (),
) -> Drawing:
    """Which method to take, by loss and n epsilon / p, and how certain that is.

    Shades are the shares of resamples of the data sets in which a method is taken. The
    number in a column is the expected regret of the method that is taken most.
    """
    known = sizes(config)
    errors = ranking.cells(outcomes.contest(config), "default")
    return drawn_guide(ranking.picks(errors, known, synthetic))


def drawn_guide(found: pd.DataFrame) -> Drawing:
    """Draw a table of ``ranking.picks``."""
    most = found.groupby(["loss", "algorithm"])["share"].transform("max")
    found = found[most >= SEEN]
    counts = [found[found["loss"] == loss]["algorithm"].nunique() for loss in LOSSES]
    figure, axes = plt.subplots(
        len(LOSSES),
        1,
        figsize=(7.5, 1.6 + 0.34 * sum(counts)),
        height_ratios=[max(count, 1) for count in counts],
        squeeze=False,
    )
    rows: Rows = []
    lows = [low for low, _ in ranking.BUDGETS]
    for at, loss in zip(axes.flat, LOSSES, strict=True):
        table = found[found["loss"] == loss].pivot_table(
            index="algorithm", columns="low", values="share", fill_value=0.0
        )
        if table.empty:
            drawing.empty(at, f"no data set: {loss}")
            continue
        table = _shades(at, table.reindex(columns=lows))
        at.set_xticks(
            np.arange(1, len(lows)) - 0.5, [f"{low:,.0f}" for low in lows[1:]]
        )
        at.set_title(TITLES[loss], loc="left", fontweight="bold")
        at.set_xlabel(r"$n \epsilon / p$")
        for one in found[found["loss"] == loss].to_dict("records"):
            x, y = lows.index(one["low"]), table.index.get_loc(one["algorithm"])
            rows.append(_row(f"{loss}", one["algorithm"], one["low"], one["share"]))
            if one["share"] >= SEEN:
                text = f"{one['share']:.0%}"
                best = one["share"] == table[one["low"]].max()
                text += f"\nerror {one['regret']:.2g} x least" if best else ""
                how = {"ha": "center", "va": "center", "fontsize": 7.5}
                how |= {"color": "w" if one["share"] > 0.6 else "k"}
                how |= {"fontweight": "bold" if best else "normal"}
                at.text(x, y, text, linespacing=1.1, **how)
    return figure, rows


def _shades(at: Axes, table: pd.DataFrame) -> pd.DataFrame:
    """Draw shares as shades of blue, largest first, and return the sorted table."""
    table = table.loc[table.sum(axis=1).sort_values(ascending=False).index]
    at.imshow(table, cmap="Blues", vmin=0, vmax=1.2, aspect="auto")
    at.set_facecolor("0.93")
    at.grid(False)
    at.set_yticks(range(len(table)), table.index)
    return table


def map(config: Config, product: Product, problems: list[str]) -> Drawing:
    """Error over that of w = 0 by problem and method, one panel per epsilon.

    A stroke marks a problem that a method cannot do, a cross an error above that of
    w = 0 or the labels' mean, and a dot the least error of a row.
    """
    table, known = outcomes.contest(config), sizes(config)
    every = ranking.cells(table)
    epsilons = sorted(every.index.get_level_values("epsilon").unique())
    names = [n for n in known.index if n in every.index.get_level_values("problem")]
    methods = ranking.standing(every)["algorithm"].tolist()
    wide = min(3, len(epsilons))
    high = -(-len(epsilons) // wide)
    size = (10.0 if wide > 1 else 5.0, high * (1.6 + 0.14 * len(names)) + 0.4)
    figure, axes = plt.subplots(high, wide, figsize=size, squeeze=False, sharey=True)
    rows: Rows = []
    for at, epsilon in zip(axes.flat, epsilons, strict=False):
        some = ranking.cells(table, epsilon=epsilon)
        some = some.droplevel(["data", "epsilon"]).reindex(index=names, columns=methods)
        shown = np.log10(some.div(known.loc[names, "zero"], axis=0))
        image = _heat(at, shown, names)
        worse = some.gt(known.loc[names, "floor"], axis=0)
        for k, j in zip(*np.nonzero(shown.isna()), strict=True):
            at.plot([j - 0.4, j + 0.4], [k + 0.4, k - 0.4], color="0.7", linewidth=0.7)
        for k, j in zip(*np.nonzero(worse), strict=True):
            at.plot(j, k, "kx", markersize=3, markeredgewidth=0.6)
        at.set_title(f"$\\epsilon$ = {epsilon:g}")
        for (name, method), value in some.stack().items():
            rows.append(_row(f"{name}, epsilon {epsilon:g}", method, epsilon, value))
    spare = list(axes.flat[len(epsilons) :])
    for at in spare:
        at.axis("off")
    label = "error over that of w = 0\n(blue is better)"
    _bar(image, label, ax=spare or axes, location="top", aspect=25)
    if spare:
        key = "dot: least error of the row\n\ncross: worse than w = 0\nor the mean"
        key += "\n\nstroke: the method cannot do it"
        spare[0].text(
            0.5, 0.97, key, transform=spare[0].transAxes, va="top", ha="center"
        )
    return figure, rows


def learnt(
    config: Config,
    product: Product,
    problems: list[str],
    synthetic: Sequence[str] = (),
) -> Drawing:
    """Share of problems on which a method beats w = 0 and the mean without tuning.

    By loss, with a shade and a percentage for each method at each epsilon.
    """
    known = sizes(config)
    errors = ranking.cells(outcomes.contest(config), "default")
    found = ranking.learnt(ranking.with_floor(errors, known, synthetic), known["loss"])
    figure, axes = plt.subplots(1, len(LOSSES), figsize=(9.0, 4.8), squeeze=False)
    for at, loss in zip(axes.flat, LOSSES, strict=True):
        own = found[found["panel"] == loss]
        if own.empty:
            drawing.empty(at, f"no data set: {loss}")
            continue
        table = own.pivot_table(index="algorithm", columns="x", values="mean")
        table = _shades(at, table)
        at.set_xticks(range(table.shape[1]), [f"{one:g}" for one in table])
        at.set(xlabel=r"true $\epsilon$", title=loss)
        for (k, j), share in np.ndenumerate(table):
            how: Any = {"ha": "center", "va": "center", "fontsize": 8}
            at.text(j, k, f"{share:.0%}", color="w" if share > 0.6 else "k", **how)
    return figure, found.to_dict("records")


def _row(panel: str, method: Any, x: float, value: float) -> dict[str, Any]:
    found = dict.fromkeys(drawing.COLUMNS[3:], value)
    return {"panel": panel, "algorithm": method, "x": x, **found}


def _heat(at: Axes, shown: pd.DataFrame, names: list[str]) -> Any:
    """Draw a table as colours, methods along x; a dot marks the least of a row."""
    at.grid(False)
    at.set_facecolor("0.93")
    values = np.clip(shown.to_numpy(dtype=float), LOW, HIGH)
    how: Any = {"aspect": "auto", "interpolation": "none"}
    image = at.imshow(values, cmap="RdYlBu_r", vmin=LOW, vmax=HIGH, **how)
    for k, row in enumerate(shown.to_numpy(dtype=float)):
        if np.isfinite(row).any():
            at.plot(np.nanargmin(row), k, "k.", markersize=4)
    at.set_xticks(range(shown.shape[1]), shown.columns, rotation=90, fontsize=8)
    at.set_yticks(range(len(names)), names, fontsize=8)
    return image


def _bar(image: Any, label: str, **place: Any) -> None:
    """Add a colour bar of logarithms, labelled with the numbers themselves."""
    every = np.arange(LOW, HIGH + 0.5)
    bar = image.figure.colorbar(image, ticks=every, extend="both", **place)
    bar.set_ticklabels([f"{10**one:g}" for one in every])
    bar.set_label(label)


def ranks(
    config: Config, product: Product, problems: list[str], epsilon: float = 1.0
) -> Drawing:
    """Critical differences of mean ranks over data sets, one panel per loss.

    Only methods that do all of a panel's problems are ranked. A bar joins those that do
    not differ at 5 % (Nemenyi).
    """
    table, known = outcomes.contest(config), sizes(config)
    errors = ranking.cells(table, epsilon=epsilon)
    losses = known["loss"].reindex(errors.index.get_level_values("problem")).to_numpy()
    figure, axes = plt.subplots(2, 1, figsize=(6.5, 5.0), squeeze=False)
    rows: Rows = []
    for at, loss in zip(axes.flat, ranking.LOSSES, strict=True):
        mine = errors[losses == loss].dropna(axis=1, how="all")
        found, least = ranking.critical(mine)
        sets = mine.index.get_level_values("data").nunique()
        at.set_title(
            f"{loss}, {len(mine)} problems of {sets} data sets, "
            f"$\\epsilon$ = {epsilon:g}"
        )
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
    level = 1.0
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
