"""One picture for README: what the papers' epsilons are worth.

Every paper's table of its published noise is read. For each method the picture shows
the true epsilon (the tight accountant's upper bound) over the published one. Where that
exceeds the published one, it also shows the largest lower bound that a table or a claim
proves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dperm.core.experiment import files as store
from dperm.core.experiment import plan, schema
from dperm.core.experiment.files import write_csv
from dperm.core.experiment.locate import available
from dperm.present.drawing import METADATA, styled, write_palette

TABLES = {  # by paper: the table of its published noise
    "dpskgd": "noise",
    "dpcd": "noise",
    "dpgcd": "noise",
    "dpsco": "noise",
    "dpbcfw": "privacy",
}
CLAIMED = {  # claims that prove a lower bound where the tables have none
    ("dpbcfw", "DP-BCFW"): "Theorem 3, printed noise"
}
TARGET = 1.0  # published epsilon that is shown
BLUE, ORANGE = "#0072b2", "#d55e00"  # at most the published epsilon, or not proved so
TICKS = (0.01, 0.1, 1, 10, 1e3, 1e5)
COLUMNS = ["paper", "method", "least", "most", "proved", "unbounded", "settings"]


def table(config: schema.Config) -> pd.DataFrame:
    """True over published epsilon of every method, over problems and settings.

    Returns
    -------
    DataFrame
        ``least`` and ``most`` of the upper bounds that are finite, ``proved``: the
        largest lower bound of a table or claim (NaN: none), ``unbounded``: settings
        without a bound, ``settings``.
        A paper whose table is not there has no row, and variants with the same noise
        share one.
    """
    rows = [row for paper in TABLES for row in _of(config, paper)]
    data = pd.DataFrame(rows, columns=COLUMNS)
    return data.drop_duplicates(["paper", "least", "most", "settings"])


def _of(config: schema.Config, paper: str) -> Iterator[tuple[object, ...]]:
    path = plan.results_folder(config, paper, f"{TABLES[paper]}.csv")
    if not path.is_file():
        return
    data = pd.read_csv(path)
    data = data.rename(columns={"method": "algorithm", "target_epsilon": "epsilon"})
    data = data[data["epsilon"] == TARGET]
    if "update" in data:  # DP-BCFW: as printed, not our corrected forms
        data = data[(data["update"] == "published") & (data["noise"] != "strict")]
    if "algorithm" not in data:
        data = data.assign(algorithm="DP-SkGD")
    for name, group in data.groupby("algorithm", sort=False):
        known_solver = name in available("solver")
        method = plan.label(config, str(name)) if known_solver else name
        known = group[np.isfinite(group["true_epsilon"])]
        ends = known["true_epsilon"].agg(["min", "max"]) / TARGET
        lower = group["epsilon_low"].max(), _claimed(config, paper, str(method))
        proved = np.nanmax([*lower, 0.0]) / TARGET or np.nan
        yield paper, method, *ends, proved, len(group) - len(known), len(group)


def _claimed(config: schema.Config, paper: str, method: str) -> float:
    """The lower bound that a claim of the paper proves for the method, or NaN."""
    path, place = (
        plan.results_folder(config, "claims.csv"),
        CLAIMED.get((paper, method)),
    )
    if place is None or not path.is_file():
        return np.nan
    claims = pd.read_csv(path)
    claims = claims[(claims["paper"] == paper) & (claims["place"] == place)]
    return float(claims["reproduced"].max())


@styled
def picture(data: pd.DataFrame, papers: dict[str, str]) -> plt.Figure:
    """A bar for every method, from the least to the largest upper bound.

    Where the noise is not proved to be private enough, the bar is orange and its label
    says what is proved instead.
    """
    figure, axes = plt.subplots(figsize=(8.0, 0.3 * len(data) + 0.8))
    rows: list[Any] = list(data.itertuples())
    for place, row in enumerate(rows):
        loose = row.most > TARGET or row.unbounded > 0
        colour = ORANGE if loose else BLUE
        ends = row.least / 1.08, row.most * 1.08  # wide enough to be seen
        axes.plot(ends, [place] * 2, color=colour, linewidth=8, solid_capstyle="butt")
        if row.proved > TARGET:
            axes.plot([row.proved, row.least], [place] * 2, color=colour, linewidth=1)
            axes.plot([row.proved], [place], color=colour, marker="|", markersize=10)
        axes.annotate(
            _label(row),
            (max(row.most, TARGET), place),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    axes.axvline(TARGET, color="0.3", linewidth=1)
    named = [f"{row.method}, {papers[row.paper]}" for row in rows]
    axes.set_yticks(range(len(data)), named)
    axes.set(xscale="log", xlim=(5e-3, 1e12), ylim=(len(data) - 0.4, -0.6))
    axes.set_xticks(*zip(*((t, f"{t:,g}") for t in TICKS), strict=True))
    axes.minorticks_off()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("true epsilon (upper bound) of noise published for epsilon = 1")
    return figure


def _label(row: Any) -> str:
    """The range of upper bounds, and what is proved where it passes the target."""
    text = f"{_rounded(row.least)} to {_rounded(row.most)}"
    if row.proved > TARGET:
        text += f"; proved: at least {_rounded(row.proved)}"
    elif np.isnan(row.proved):
        text += "; lower bound not computed"
    if row.unbounded:
        text += f"; no bound in {row.unbounded} of {row.settings} settings"
    return text


def in_words(data: pd.DataFrame, papers: dict[str, str]) -> list[str]:
    """The answer in sentences: whose noise costs less, and more, than it says."""

    def named(rows: pd.DataFrame) -> str:
        return ", ".join(
            f"{row.method} of {papers[row.paper]} ({_label(row)})"
            for row in rows.itertuples()
        )

    loose = data[(data["most"] > TARGET) | (data["unbounded"] > 0)]
    wasted = data[data["most"] < TARGET / 2]
    rest = len(data) - len(loose)
    sentences = [
        f"{rest} of {len(data)} methods publish noise that costs no more than the "
        "epsilon that they name."
    ]
    if len(wasted):
        sentences.append(
            "Some add more than twice the noise that they need; their epsilon of 1 "
            f"costs: {named(wasted)}."
        )
    if len(loose):
        sentences.append(
            f"For others we can only guarantee a larger epsilon: {named(loose)}."
        )
    return sentences if len(data) else []


def _rounded(end: float) -> str:
    return f"{float(f'{end:.2g}'):,g}"


def author(reference: str) -> str:
    """The first author and the year of a reference: "Mangold 2022"."""
    year = re.search(r"\b(?:19|20)\d\d\b", reference)
    return " ".join([re.split(r"[ ,]", reference)[0], year[0] if year else ""]).strip()


def draw(config: schema.Config, papers: Iterable[schema.Config]) -> list[Path]:
    """Write ``figures/worth.png`` and the numbers beside it; nothing without tables."""
    data = table(config)
    if data.empty:
        return []
    named = {each.paper.name: author(each.paper.reference) for each in papers}
    stem = plan.figures_folder(config, "worth")
    with store.whole(stem.with_suffix(".png")) as beside:
        picture(data, named).savefig(beside, format="png", metadata=METADATA["png"])
        write_palette(beside, beside)
    write_csv(stem.with_suffix(".csv"), data)
    return [stem.with_suffix(".png"), stem.with_suffix(".csv")]
