"""Figures of the arena: which method, critical differences, guide, map."""

from __future__ import annotations

import math
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm

from dperm.experiments.inputs import Inputs, titles
from dperm.papers.arena import ranking
from dperm.papers.arena.ranking import BUDGETS, CONSTANT, LEFT_OUT, LOSSES
from dperm.papers.arena.tables import counted, fair, outcomes
from dperm.plotting import drawing, styles
from dperm.plotting.drawing import Drawing, Picture, Rows

TITLES = {"logistic": "two classes", "least_squares": "numbers"}
SEEN = 0.1  # share of draws below which nothing is shown
LINES = 3  # methods of the least mean in a panel of ``which``
ASKED = (
    "DP-SGD",
    "diffprivlib",
    "DP-EBM of interpret",
)  # drawn wherever they rank, as people look for them
APART = 0.04  # in x, so that intervals do not lie over one another
TOP = 1.45  # an excess that is drawn at most, so that the constant is not in the middle
# ends of colours: log10 of the excess
LOW = -2.0
HIGH = 1.0


def which(swept: pd.DataFrame, inputs: Inputs) -> Drawing:
    """Which method to take: what each loses, by loss and n epsilon / p.

    Defaults are those that the other data sets choose; intervals draw data sets again.
    """
    return drawn_which(pd.DataFrame(ranking.curves(fair(swept, inputs))))


def drawn_which(curves: pd.DataFrame) -> Drawing:
    """Draw a table of ``ranking.curves``: the methods of interest and the constant."""
    rows: Rows = []
    for loss in LOSSES:
        mine = curves[curves["loss"] == loss] if len(curves) else curves
        if mine.empty:
            continue
        for place, name in enumerate(_interesting(mine)):
            for point in mine[mine["algorithm"] == name].to_dict("records"):
                x = [low for low, _ in BUDGETS].index(point["from"])
                row = _row(loss, name, x + APART * place, point["mean"])
                ends = {key: point[key] for key in ("ci_low", "ci_high")}
                rows.append({**row, **ends, drawing.ROLE: "joined"})
        rows.append({**_row(loss, CONSTANT, 0, 1.0), drawing.ROLE: "level"})
    if not rows:
        return drawing.draw(drawing.missing("no method has run")), rows
    table = pd.DataFrame(rows)
    bounded = {
        key: table[key].clip(upper=TOP)
        for key in ("mean", "ci_low", "ci_high")
    }
    texts = [f"{low:,.0f} to\n{high:,.0f}" for low, high in BUDGETS[1:-1]]
    texts = [
        f"below\n{BUDGETS[0][1]:g}",
        *texts,
        f"above\n{BUDGETS[-1][0]:,.0f}",
    ]
    places = {"xticks": range(len(BUDGETS)), "xticklabels": texts}
    labels = {
        "xlabel": "records x epsilon / features",
        "ylim": (0, 1.05 * TOP),
    }
    left = {LOSSES[0]: {"ylabel": "lost of what can be learned"}}
    figure = drawing.draw(
        Picture(
            table.assign(**bounded),
            TITLES,
            {**labels, **places, "xlim": (-0.3, len(BUDGETS) - 0.7)},
            own=left,
            columns=2,
            size=(5.0, 3.9),
            styles={CONSTANT: styles.style("#595959", ":")},
            is_named=True,
        )
    )
    figure.suptitle(
        "Which method, untuned: the lowest line at your records x epsilon / features",
        fontweight="bold",
    )
    return figure, rows


def _interesting(curves: pd.DataFrame) -> list[str]:
    """The least of each range, those of the least mean over ranges, and those asked."""
    firsts = curves.loc[curves.groupby("from")["mean"].idxmin(), "algorithm"]
    means = (
        curves.groupby("algorithm")["mean"].mean().sort_values(kind="stable")
    )
    some = [*means.index[:LINES], *firsts, *ASKED]
    return [name for name in means.index if name in some]


def guide(swept: pd.DataFrame, inputs: Inputs) -> Drawing:
    """Which method to take, by loss and n epsilon / p, and how certain that is.

    Shades are the shares of resamples of the data sets in which a method is taken. The
    number in a column is the mean regret of the method that is taken most.
    """
    return drawn_guide(
        ranking.picks(ranking.cells(counted(swept, inputs), LEFT_OUT))
    )


def drawn_guide(picks: pd.DataFrame) -> Drawing:
    """Draw a table of ``ranking.picks``."""
    largest_share = picks.groupby(["loss", "algorithm"])["share"].transform(
        "max"
    )
    picks = picks[largest_share >= SEEN]
    counts = [
        max(1, picks[picks["loss"] == loss]["algorithm"].nunique())
        for loss in LOSSES
    ]
    size = (drawing.WIDTH, 1.4 + 0.34 * sum(counts))
    layout: dict[str, Any] = {"squeeze": False, "height_ratios": counts}
    figure, axes = plt.subplots(len(LOSSES), 1, figsize=size, **layout)
    rows: Rows = []
    lows = [low for low, _ in BUDGETS]
    for axis, loss in zip(axes.flat, LOSSES, strict=True):
        picks_of_loss = picks[picks["loss"] == loss]
        if picks_of_loss.empty:
            drawing.empty(axis, f"no data set: {TITLES[loss]}")
            continue
        table = picks_of_loss.pivot_table(
            index="algorithm", columns="from", values="share"
        ).reindex(columns=lows)
        table = table.loc[table.sum(axis=1).sort_values(ascending=False).index]
        shades = table.where(table >= SEEN)  # what is not shown has no shade
        axis.imshow(shades, cmap="Blues", vmin=0, vmax=1.2, aspect="auto")
        axis.set_facecolor("w")
        axis.grid(False)
        axis.set_yticks(range(len(table)), table.index)
        ends = [f"{low:,.0f}" for low in lows[1:]]
        axis.set_xticks(np.arange(1, len(lows)) - 0.5, ends)
        axis.set_title(TITLES[loss], loc="left", fontweight="bold")
        axis.set_xlabel(r"$n \epsilon / p$")
        for pick in picks_of_loss.to_dict("records"):
            rows.append(
                _row(loss, pick["algorithm"], pick["from"], pick["share"])
            )
            if pick["share"] >= SEEN:
                is_best = pick["share"] == table[pick["from"]].max()
                text = f"{pick['share']:.0%}"
                text += f"\n+ {pick['regret']:.2f}" if is_best else ""
                place = (
                    lows.index(pick["from"]),
                    table.index.get_loc(pick["algorithm"]),
                )
                _written(axis, *place, text, pick["share"], is_best)
    figure.suptitle(
        f"Share of {ranking.DRAWS} draws of the data sets in which a method has the "
        "least mean excess;\nbelow it, of the first, its mean above the least of a "
        "cell",
        fontsize=8.5,
    )
    return figure, rows


def _written(
    axis: Axes, x: float, y: float, text: str, shade: float, bold: bool
) -> None:
    color = "w" if shade > 0.6 else "k"
    weight = "bold" if bold else "normal"
    font: Any = {
        "ha": "center",
        "va": "center",
        "fontsize": 7.5,
        "linespacing": 1.1,
    }
    axis.text(x, y, text, color=color, fontweight=weight, **font)


def map(swept: pd.DataFrame, inputs: Inputs) -> Drawing:
    """Excess by problem and method without tuning, one panel per epsilon.

    Hatching marks a problem that a method cannot do, a cross an excess of 1 or more,
    which is no better than the best constant, and a dot the least of a row.
    """
    table = outcomes(swept, inputs)
    is_peer = (table["tuning"] == "default") & ~table["algorithm"].isin(
        table.loc[table["tuning"] == LEFT_OUT, "algorithm"]
    )
    table = table.assign(tuning=table["tuning"].where(~is_peer, LEFT_OUT))
    excesses = ranking.cells(table, LEFT_OUT)
    methods = ranking.standing(excesses)["algorithm"].tolist()
    epsilons = sorted(excesses.index.get_level_values("epsilon").unique())
    names = [
        *table.sort_values(["loss", "n"], kind="stable")["problem"].unique()
    ]
    sections = titles(inputs, names)
    size = (drawing.WIDTH, 2.4 + 0.145 * len(names))
    figure, axes = plt.subplots(1, len(epsilons), figsize=size, squeeze=False,
                                sharey=True)  # fmt: skip
    rows: Rows = []
    for axis, epsilon in zip(axes.flat, epsilons, strict=True):
        panel_excesses = ranking.cells(table, LEFT_OUT, epsilon)
        panel_excesses = panel_excesses.droplevel(
            ["data", "epsilon", "loss", "range"]
        )
        panel_excesses = panel_excesses.reindex(index=names, columns=methods)
        numbers = panel_excesses.to_numpy(dtype=float)
        image = _heat(axis, np.log10(np.clip(numbers, 10**LOW, 10**HIGH)))
        axis.set_xticks(range(len(methods)), methods, rotation=90)
        axis.set_yticks(
            range(len(names)), [sections[name].title for name in names]
        )
        for k, j in zip(*np.nonzero(np.isnan(numbers)), strict=True):
            axis.plot(
                [j - 0.4, j + 0.4],
                [k + 0.4, k - 0.4],
                color="0.5",
                linewidth=0.7,
            )
        for k, j in zip(*np.nonzero(numbers >= 1), strict=True):
            axis.plot(j, k, "kx", markersize=2.5, markeredgewidth=0.5)
        for k, row in enumerate(numbers):
            if np.isfinite(row).any():
                axis.plot(np.nanargmin(row), k, "k.", markersize=3)
        axis.set_title(f"$\\epsilon$ = {epsilon:g}")
        rows += [
            _row(f"epsilon {epsilon:g}", f"{name}: {method}", epsilon, excess)
            for (name, method), excess in panel_excesses.stack().items()
        ]
    ticks = np.arange(LOW, HIGH + 0.5)
    bar_style: Any = {
        "location": "top",
        "aspect": 40,
        "ticks": ticks,
        "extend": "both",
    }
    bar = figure.colorbar(image, ax=axes, **bar_style)
    bar.set_ticklabels([f"{10**tick:g}" for tick in ticks])
    bar.set_label(
        "excess: 0 is as good as without privacy, 1 is the best constant\n"
        "dot: least of a row; cross: no better than the constant; "
        "hatched: cannot do it"
    )
    return figure, rows


def _heat(axis: Axes, shades: np.ndarray) -> Any:
    axis.grid(False)
    axis.set_facecolor("0.93")
    image_style: Any = {
        "aspect": "auto",
        "interpolation": "none",
        # its middle is the best constant
        "norm": TwoSlopeNorm(0.0, LOW, HIGH),
    }
    return axis.imshow(shades, cmap="RdYlBu_r", **image_style)


def _row(panel: str, method: Any, x: float, value: float) -> dict[str, Any]:
    row = {"panel": panel, "algorithm": method, "x": x}
    return row | dict.fromkeys(drawing.CURVE_COLUMNS[3:], value)


def ranks(
    swept: pd.DataFrame, inputs: Inputs, epsilon: float = 1.0
) -> Drawing:
    """Critical differences of mean ranks over data sets, one panel per loss.

    Only methods that do all of a panel's problems are ranked. A bar joins those that do
    not differ at 5 % (Nemenyi).
    """
    errors = ranking.cells(counted(swept, inputs), LEFT_OUT, epsilon)
    losses = errors.index.get_level_values("loss")
    figure, axes = plt.subplots(2, 1, figsize=(6.5, 4.6), squeeze=False)
    rows: Rows = []
    for axis, loss in zip(axes.flat, LOSSES, strict=True):
        mine = errors[losses == loss].dropna(axis=1, how="all")
        mean_ranks, critical_difference = ranking.critical(mine)
        sets = mine.index.get_level_values("data").nunique()
        title = f"{TITLES[loss]}, {len(mine)} problems of {sets} data sets"
        axis.set_title(f"{title}, $\\epsilon$ = {epsilon:g}")
        _differences(axis, mean_ranks, critical_difference)
        rows += [
            _row(loss, name, float(rank), critical_difference)
            for name, rank in mean_ranks.items()
        ]
    return figure, rows


def _differences(
    axis: Axes, mean_ranks: pd.Series, critical_difference: float
) -> None:
    """Methods along their mean ranks, with bars over those that do not differ."""
    if mean_ranks.empty:
        drawing.empty(axis, "no method does all of these problems")
        return
    count = len(mean_ranks)
    positions = mean_ranks.to_numpy()
    for k, (name, rank) in enumerate(mean_ranks.items()):
        is_left = k < count / 2
        height, side = (-1 - k, 0.5) if is_left else (k - count, count + 0.5)
        axis.plot(
            [rank, rank, side], [0, height, height], color="0.4", linewidth=0.8
        )
        text: Any = {
            "ha": "right" if is_left else "left",
            "va": "center",
        }
        axis.text(side, height, f" {name} ", **text)
    ends = (
        np.searchsorted(
            positions, positions + critical_difference, side="right"
        )
        - 1
    )
    level = 1.4  # above the labels of the ranks
    for k, end in enumerate(
        ends if math.isfinite(critical_difference) else ()
    ):
        if end > k and (k == 0 or end > ends[k - 1]):
            axis.plot(
                [positions[k], positions[end]],
                [level, level],
                color="k",
                linewidth=2.5,
            )
            level += 0.35
    axis.set(
        xlim=(-0.2, count + 1.2),
        ylim=(-count / 2 - 1.5, level + 0.5),
        yticks=[],
    )
    axis.grid(False)
    axis.spines[:].set_visible(False)
    axis.spines["top"].set(
        visible=True, position=("data", 0), bounds=(1, count)
    )
    axis.xaxis.set_ticks_position("top")
    axis.set_xticks(range(1, count + 1))
    axis.tick_params(pad=1)
    if math.isfinite(critical_difference):
        below = (
            "mean rank, the best on the left; a bar joins methods that do not "
        )
        below += f"differ at 5 % (by less than {critical_difference:.2f})"
        axis.set_title(f"{axis.get_title()}\n{below}")
