"""README's picture and sentences: true over published epsilons of the papers.

They show, for each method in a paper's table of published noise, the true epsilon (the
tight accountant's upper bound) over the published one. Where lower bounds exceed 1 in
all settings, they show them as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import Patch

from dperm.core.experiment import plan, schema
from dperm.core.experiment.locate import available
from dperm.present import drawing

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
SHADES = {KEPT: "#0072b2", OPEN: "#e69f00", BROKEN: "#d55e00"}
TICKS = (0.01, 1, 100, 1e4, 1e6)
WORTH = [
    *("paper", "method", "least", "most", "proved_least", "proved"),
    *("unbounded", "settings"),
]


def true_epsilons(config: schema.Config) -> pd.DataFrame:
    """True over published epsilon of every method, over problems and settings.

    Returns
    -------
    DataFrame
        ``least`` and ``most`` of the finite upper bounds; ``proved_least`` and
        ``proved``, those of the lower bounds (NaN: none); ``unbounded``, the number of
        settings without an upper bound; ``settings``, the number of all.
        A paper without its table has no row, and variants with the same noise share
        one.
    """
    rows = [row for paper in NOISE_TABLES for row in _epsilons(config, paper)]
    data = pd.DataFrame(rows, columns=WORTH)
    return data.drop_duplicates(["paper", "least", "most", "settings"])


def _epsilons(config: schema.Config, paper: str) -> Iterator[tuple[object, ...]]:
    path = plan.results_folder(config, paper, f"{NOISE_TABLES[paper]}.csv")
    if not path.is_file():
        return
    data = pd.read_csv(path)
    data = data.rename(columns={"method": "algorithm", "target_epsilon": "epsilon"})
    data = data[data["epsilon"] == TARGET]
    if "update" in data:  # DP-BCFW: as printed, not our corrected forms
        data = data[(data["update"] == "published") & (data["noise"] != "strict")]
        data = data[data["algorithm"] != "dp_fw"]  # its noise is our own choice
    if "algorithm" not in data:
        data = data.assign(algorithm="DP-SkGD")
    for name, group in data.groupby("algorithm", sort=False):
        known_solver = name in available("solver")
        method = plan.label(config, str(name)) if known_solver else name
        known = group[np.isfinite(group["true_epsilon"])]
        ends = known["true_epsilon"].agg(["min", "max"]) / TARGET
        least = group.get("epsilon_low", pd.Series(np.nan, group.index))
        lower = least.replace(0.0, np.nan).agg(["min", "max"]) / TARGET
        yield paper, method, *ends, *lower, len(group) - len(known), len(group)


def answers(data: pd.DataFrame) -> pd.Series:
    """Which of the keys of ``SHADES`` each row of ``true_epsilons`` gives."""
    loose = (data["most"] > TARGET) | (data["unbounded"] > 0)
    found = np.select([data["proved_least"] > TARGET, loose], [BROKEN, OPEN], KEPT)
    return pd.Series(found, data.index)


def worth_picture(data: pd.DataFrame, papers: dict[str, str]) -> plt.Figure:
    """A bar for every method, from the least to the largest upper bound.

    The colour is the answer. Where all lower bounds exceed the target the bar spans
    these instead.
    """
    figure, axes = plt.subplots(figsize=(8.0, 0.3 * len(data) + 1.2))
    rows: list[Any] = list(data.assign(answer=answers(data)).itertuples())
    for place, row in enumerate(rows):
        least = row.least
        most = row.most
        if row.answer == BROKEN:
            least = row.proved_least
            most = row.proved
        left = min(least, most / 1.15)  # wide enough to be seen
        axes.barh(place, most - left, left=left, height=0.5, color=SHADES[row.answer])
        end = (max(most, TARGET), place)
        place_of: Any = {"xytext": (7, 0), "textcoords": "offset points"}
        axes.annotate(_label(row), end, va="center", fontsize=9, **place_of)
    axes.axvline(TARGET, color="0.3", linewidth=1)
    named = [f"{row.method}, {papers[row.paper]}" for row in rows]
    axes.set_yticks(range(len(data)), named)
    axes.set(xscale="log", xlim=(5e-3, 1e11), ylim=(len(data) - 0.4, -0.6))
    axes.set_xticks(TICKS, [f"{t:,.12g}" for t in TICKS])
    axes.minorticks_off()
    axes.grid(axis="y", visible=False)
    axes.spines["bottom"].set_bounds(5e-3, 10 * TICKS[-1])  # labels stand beyond it
    figure.suptitle(message(data), fontweight="bold", fontsize=11)
    keys = [Patch(color=shade, label=text) for text, shade in SHADES.items()]
    axes.legend(handles=keys, loc="upper right")
    axes.set_xlabel(
        "true epsilon of noise published for epsilon = 1 "
        "(upper bounds; lower ones where more)"
    )
    return figure


def message(data: pd.DataFrame) -> str:
    """What the picture says, in one line."""
    found = answers(data)
    text = f"{(found == KEPT).sum()} of {len(data)} methods keep the epsilon they name"
    broken = data.loc[found == BROKEN, "proved_least"]
    if len(broken):
        costs = "costs" if len(broken) == 1 else "cost"
        least = _rounded(broken.min())
        text += f"; {len(broken)} {costs} at least {least} times as much"
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


def worth_in_words(data: pd.DataFrame, papers: dict[str, str]) -> list[str]:
    """Sentences on the methods whose noise costs less or more than published."""
    found = answers(data)
    heads = {
        "Some add more than twice the noise that they need; their epsilon of 1 costs": (
            data["most"] < TARGET / 2
        ),
        "Others are open, with a bound above 1 or none": found == OPEN,
        "Proved to cost more": found == BROKEN,
    }
    told = [f"{message(data)}."] if len(data) else []
    for head, rows in heads.items():
        named = [
            f"{row.method} of {papers[row.paper]} ({_label(row)})"
            for row in data[rows].itertuples()
        ]
        told += [f"{head}: {', '.join(named)}."] if named else []
    return told


def _rounded(end: float) -> str:
    return f"{float(f'{end:.2g}'):,g}"


def author(reference: str) -> str:
    """The first author and the year of a reference: "Mangold 2022"."""
    year = re.search(r"\b(?:19|20)\d\d\b", reference)
    return " ".join([re.split(r"[ ,]", reference)[0], year[0] if year else ""]).strip()


def draw_worth(config: schema.Config, papers: Iterable[schema.Config]) -> list[Path]:
    """Write ``figures/worth.png`` and its numbers as CSV; nothing without tables."""
    data = true_epsilons(config)
    if data.empty:
        return []
    named = {each.paper.name: author(each.paper.reference) for each in papers}
    stem = plan.figures_folder(config, "worth")
    return drawing.save(worth_picture(data, named), data, stem)
