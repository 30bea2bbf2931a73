"""What ``dperm try`` shows: a row for every method and tuning, words, a figure."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from tabulate import tabulate

from dperm.papers.arena import outcomes, own
from dperm.papers.arena.contest import Row
from dperm.present import drawing
from dperm.present.tables import number

COLUMNS = [
    *("algorithm", "tuning", "epsilon", "true_epsilon", "mean", "ci_low", "ci_high"),
    *("median", "runs", "seconds", "test_metric", "test_mean", "test_ci_low"),
    *("test_ci_high", "setting", "given", "solver", "status", "reason"),
]
LOOKS = {"default": ("o", "#0072B2"), "ten": ("s", "#E69F00"), "grid": ("D", "#D55E00"),
         "paid": ("^", "#009E73")}  # fmt: skip
NO_RELEASE = (
    "All of these numbers are read off your data, and no epsilon pays for that: they"
    "\nare for you alone and no release. Release what dperm.fit returns instead."
)
APART = 0.18  # rows between the tunings of a method
WIDE = 30.0  # span of an axis above which decades alone have numbers


def summary(rows: list[Row], epsilon: float) -> pd.DataFrame:
    """A row for every method and tuning: means with Student's 95 % intervals.

    Parameters
    ----------
    rows : list of dict
        One a run, or with the reason why there is none.
    epsilon : float
        The target.
    """
    found = []
    for (solver, tuning), group in pd.DataFrame(rows).groupby(
        ["solver", "tuning"], sort=False
    ):
        first = group.iloc[0]
        row = {"algorithm": first["algorithm"], "solver": solver, "tuning": tuning,
               "epsilon": epsilon, "status": first["status"],
               "reason": first["reason"]}  # fmt: skip
        found.append(row | (_numbers(group) if first["status"] == "ok" else {}))
    return pd.DataFrame(found).reindex(columns=COLUMNS)


def _numbers(group: pd.DataFrame) -> Row:
    first = group.iloc[0]
    chosen = first["setting"] if first["tuning"] != "paid" else "each run its own"
    return {**outcomes.numbers(group), "setting": chosen}


def told(
    table: pd.DataFrame, zero: float, tunings: tuple[str, ...], ceiling: str
) -> str:
    """The table for a terminal, who is ahead, and what epsilon takes as public."""
    shown = [_line(row) for row in table.to_dict("records")]
    words = tabulate(shown, headers="keys", disable_numparse=True)
    ran = table[table["given"].notna()].drop_duplicates("algorithm")
    public = [
        f"epsilon of {', '.join(some['algorithm'])} holds given: {given}"
        for given, some in ran.groupby("given", sort=False)
    ]
    said = own.sentences(table, zero, tunings)
    return "\n".join([words, "", *said, *filter(None, [ceiling]), *public, NO_RELEASE])


def _line(row: dict[Any, Any]) -> dict[str, str]:
    ran = row["status"] == "ok"
    ends = f"[{number(row['ci_low'])}, {number(row['ci_high'])}]"
    held = "" if pd.isna(row["test_mean"]) else f"{row['test_metric']} "
    return {
        "algorithm": row["algorithm"],
        "tuning": row["tuning"],
        "relative error": number(row["mean"]),
        "95 % interval": ends if ran else "",
        "true epsilon": number(row["true_epsilon"], 4),
        "held out": held + number(row["test_mean"]),
        "setting": row["setting"] if ran else row["reason"],
        "seconds a run": number(row["seconds"], 2),
    }


@drawing.styled
def drawn(table: pd.DataFrame, zero: float, title: str) -> tuple[Figure, drawing.Rows]:
    """Mean errors with intervals, the least above, a mark a tuning; w = 0 is a line.

    Parameters
    ----------
    table : DataFrame
        Of ``summary``.
    zero : float
        Relative error of w = 0.
    """
    some = table[(table["status"] == "ok") & np.isfinite(table["mean"].astype(float))]
    order = some.groupby("algorithm")["mean"].min().sort_values().index.tolist()
    tunings = list(dict.fromkeys(some["tuning"]))
    figure, axes = plt.subplots(figsize=(5.2, 1.25 + 0.36 * max(1, len(order))))
    for one in some.to_dict("records"):
        shift = tunings.index(one["tuning"]) - (len(tunings) - 1) / 2
        _mark(axes, one, order.index(one["algorithm"]) + APART * shift)
    if zero > 0:
        axes.axvline(zero, color="0.4", linestyle=":", label="w = 0")
    axes.set_yticks(range(len(order)), order)
    axes.set_ylim(max(1, len(order)) - 0.5, -0.5)
    axes.set_xlabel("relative error")
    axes.set_title(title)
    _logarithmic(axes)
    drawing.shared_legend(figure, columns=3)
    return figure, [_behind(one) for one in some.to_dict("records")]


def _mark(axes: Axes, one: dict[Any, Any], y: float) -> None:
    """A mean with its interval, cut where a logarithm ends."""
    marker, color = LOOKS[one["tuning"]]
    below = max(min(one["mean"] - one["ci_low"], 0.9 * one["mean"]), 0.0)
    above = one["ci_high"] - one["mean"]
    axes.errorbar(one["mean"], y, xerr=[[below], [above]],
                  fmt=marker, color=color, markersize=4.5, linewidth=1.2,
                  label=own.WORDS[one["tuning"]])  # fmt: skip


def _logarithmic(axes: Axes) -> None:
    """A logarithmic axis with numbers that can be read, however short it is."""
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    subs = (1.0,) if high > WIDE * low else (1.0, 2.0, 5.0)
    axes.xaxis.set_major_locator(LogLocator(subs=subs))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _behind(one: dict[Any, Any]) -> drawing.Row:
    return {"panel": one["tuning"], "algorithm": one["algorithm"], "x": one["epsilon"],
            "mean": one["mean"], "min": one["ci_low"], "max": one["ci_high"],
            "ci_low": one["ci_low"], "ci_high": one["ci_high"]}  # fmt: skip
