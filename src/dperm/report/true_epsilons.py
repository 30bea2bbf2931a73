"""README's picture and sentences: true over published epsilons of the papers.

They show, for each method in a paper's table of published noise, the true epsilon (the
tight accountant's upper bound) over the published one. Where lower bounds exceed 1 in
all settings, they show them as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dperm.config import schema
from dperm.config.config import paper_label, read
from dperm.config.locate import available
from dperm.plotting import drawing

NOISE_TABLES = {  # paper to the table of its published noise
    "dpskgd": "noise",
    "dpcd": "noise",
    "dpgcd": "noise",
    "dpsco": "noise",
    "dpbcfw": "privacy",
}
TARGET = 1.0  # published epsilon that is shown
KEPT = "proved to cost at most 1"
OPEN = "open"
BROKEN = "proved to cost more than 1, at least this"
SHADES = {KEPT: "#0072b2", OPEN: "#c68900", BROKEN: "#d55e00"}
TEXT_SHADES = {KEPT: "#005a8d", OPEN: "#7a5200", BROKEN: "#a34700"}
TICKS = (0.01, 0.1, 1, 10, 100, 1000, 10_000)
LOW = 5e-3  # where the axis begins
FAR = 100.0  # a bar from there on has its words on its left
EPSILON_COLUMNS = [
    "paper",
    "method",
    "least",
    "most",
    "proved_least",
    "proved",
    "unbounded",
    "settings",
]


def true_epsilons(folder: Path) -> pd.DataFrame:
    """True over published epsilon of every method, over problems and settings.

    The ``folder`` of results has the tables of the papers.

    Returns
    -------
    DataFrame
        ``least`` and ``most`` of the finite upper bounds; ``proved_least`` and
        ``proved``, those of the lower bounds (NaN: none); ``unbounded``, the number of
        settings without an upper bound; ``settings``, the number of all.
        A paper without its table has no row, and variants with the same noise share
        one.
    """
    rows = chain.from_iterable(
        _epsilons(folder, paper) for paper in NOISE_TABLES
    )
    table = pd.DataFrame(rows, columns=EPSILON_COLUMNS)
    return table.drop_duplicates(["paper", "least", "most", "settings"])


def _epsilons(folder: Path, paper: str) -> Iterator[tuple[object, ...]]:
    path = folder / paper / f"{NOISE_TABLES[paper]}.csv"
    if not path.is_file():
        return
    table = pd.read_csv(path)
    table = table.rename(
        columns={"method": "algorithm", "target_epsilon": "epsilon"}
    )
    table = table[table["epsilon"] == TARGET]
    if "update" in table:  # DP-BCFW: as printed, not our corrected forms
        table = table[
            (table["update"] == "published") & (table["noise"] != "tight")
        ]
        # its noise is our own choice
        table = table[table["algorithm"] != "dp_fw"]
    if "algorithm" not in table:
        table = table.assign(algorithm="DP-SkGD")
    for name, group in table.groupby("algorithm", sort=False):
        known_solver = name in available("solver")
        method = read("solver", str(name)).label if known_solver else name
        bounded = group[np.isfinite(group["true_epsilon"])]
        ends = bounded["true_epsilon"].agg(["min", "max"]) / TARGET
        lower_bounds = group.get("epsilon_low", pd.Series(np.nan, group.index))
        lower = lower_bounds.replace(0.0, np.nan).agg(["min", "max"]) / TARGET
        yield (
            paper,
            method,
            *ends,
            *lower,
            len(group) - len(bounded),
            len(group),
        )


def answers(table: pd.DataFrame) -> pd.Series:
    """Which of the keys of ``SHADES`` each row of ``true_epsilons`` gives."""
    loose = (table["most"] > TARGET) | (table["unbounded"] > 0)
    answer_names = np.select(
        [table["proved_least"] > TARGET, loose], [BROKEN, OPEN], KEPT
    )
    return pd.Series(answer_names, table.index)


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``true_epsilons`` with their answers, from the least cost to the most."""
    answered = table.assign(answer=answers(table))
    order = list(SHADES)
    ranks = answered["answer"].map(order.index)
    return answered.assign(rank=ranks).sort_values(["rank", "most"])


def epsilons_picture(table: pd.DataFrame) -> plt.Figure:
    """A bar for every method, from the least to the largest upper bound.

    The colour is the answer, and a line says what was promised. Where all lower bounds
    exceed the target the bar spans these instead.
    """
    figure, axes = plt.subplots(figsize=(6.3, 0.27 * len(table) + 1.3))
    rows: list[Any] = list(in_order(table).itertuples())
    ends = (LOW, 2 * max(FAR, _highest(rows)))
    axes.axvspan(TARGET, ends[1], color="#fcf2ec", zorder=0)
    axes.axvline(TARGET, color="0.3", linewidth=1)
    for place, row in enumerate(rows):
        low = row.least
        high = row.most
        if row.answer == BROKEN:
            low = row.proved_least
            high = row.proved
        bar_start = min(low, high / 1.15)  # wide enough to be seen
        shade = SHADES[row.answer]
        axes.barh(
            place, high - bar_start, left=bar_start, height=0.5, color=shade
        )
        is_far = low > FAR
        axes.annotate(
            _end(row),
            (low if is_far else max(high, TARGET), place),
            xytext=(-6 if is_far else 6, 0),
            textcoords="offset points",
            ha="right" if is_far else "left",
            va="center",
            color=TEXT_SHADES[row.answer],
        )
    axes.set_yticks(range(len(table)), [_method(row) for row in rows])
    axes.set(xscale="log", xlim=ends, ylim=(len(table) - 0.4, -1.6))
    axes.set_xticks(TICKS, [f"{t:,.12g}" for t in TICKS])
    axes.minorticks_off()
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    for side, text, horizontal in (
        (-5, "keeps it", "right"),
        (5, "costs more", "left"),
    ):
        axes.annotate(
            text,
            (TARGET, -1.05),
            xytext=(side, 0),
            textcoords="offset points",
            ha=horizontal,
            va="center",
        )
    axes.set_title("promised: 1", x=_place_of_target(ends), fontsize=8.5)
    figure.suptitle(message(table), fontweight="bold", fontsize=9.5)
    axes.set_xlabel(
        "proved epsilon of noise published for epsilon = 1 (bar: over all settings)"
    )
    return figure


def _method(row: Any) -> str:
    """A method, and the paper whose noise it has if that has another name."""
    paper = paper_label(row.paper)
    return paper if row.method == paper else f"{row.method} in {paper}"


def _highest(rows: Iterable[Any]) -> float:
    """The end of the longest bar."""
    return max(
        row.proved if row.answer == BROKEN else row.most for row in rows
    )


def _place_of_target(ends: tuple[float, float]) -> float:
    """Where the promise stands between the ends of the axis, from 0 to 1."""
    low, high = np.log10(ends)
    return float((np.log10(TARGET) - low) / (high - low))


def _end(row: Any) -> str:
    """The end of a bar in words: what it costs at most, or at least."""
    if row.answer == BROKEN:
        return (
            f"at least {_rounded(row.proved_least)} to {_rounded(row.proved)}"
        )
    if row.unbounded:
        return (
            f"at most {_rounded(row.most)}; "
            f"no bound in {row.unbounded} of {row.settings} settings"
        )
    return f"at most {_rounded(row.most)}"


def message(table: pd.DataFrame) -> str:
    """What the picture says, in one line."""
    names = answers(table)
    text = f"{(names == KEPT).sum()} of {len(table)} methods keep the epsilon they name"
    broken = table.loc[names == BROKEN, "proved_least"]
    if len(broken):
        costs = "costs" if len(broken) == 1 else "cost"
        least_cost = _rounded(broken.min())
        text += f"; {len(broken)} {costs} at least {least_cost} times as much"
    return text


def _label(row: Any) -> str:
    """Range of upper bounds, and of lower bounds if all exceed the target."""
    text = f"{_rounded(row.least)} to {_rounded(row.most)}"
    if row.proved_least > TARGET:
        ends = f"{_rounded(row.proved_least)} to {_rounded(row.proved)}"
        text += f"; at least {ends}"
    if row.unbounded:
        text += f"; no bound in {row.unbounded} of {row.settings} settings"
    return text


def epsilons_in_words(table: pd.DataFrame) -> list[str]:
    """Sentences on the methods whose noise costs less or more than published."""
    names = answers(table)
    heads = {
        "Some add more than twice the noise that they need; their epsilon of 1 costs": (
            table["most"] < TARGET / 2
        ),
        "Others are open, with a bound above 1 or none": names == OPEN,
        "Proved to cost more": names == BROKEN,
    }
    sentences = [f"{message(table)}."] if len(table) else []
    for head, rows in heads.items():
        methods = [
            f"{_method(row)} ({_label(row)})"
            for row in table[rows].itertuples()
        ]
        sentences += [f"{head}: {', '.join(methods)}."] if methods else []
    return sentences


def _rounded(end: float) -> str:
    return f"{float(f'{end:.2g}'):,g}"


def draw_epsilons(output: schema.Output, formats: Sequence[str]) -> list[Path]:
    """Write ``figures/worth.png`` and its numbers as CSV; nothing without tables."""
    table = true_epsilons(Path(output.results))
    if table.empty:
        return []
    stem = Path(output.figures, "worth")
    return drawing.save(epsilons_picture(table), table, stem, formats)
