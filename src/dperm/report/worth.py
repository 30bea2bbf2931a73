"""One picture for README: what the papers' epsilons are worth.

Every paper's table of its published noise is read. For each method the picture shows
the true epsilon (the tight accountant's upper bound) over the published one.
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
from dperm.present import looks
from dperm.present.drawing import METADATA, styled, write_palette

TABLES = {  # by paper: the table of its published noise
    "dpskgd": "noise",
    "dpcd": "noise",
    "dpgcd": "noise",
    "dpsco": "noise",
    "dpbcfw": "privacy",
}
TARGET = 1.0  # published epsilon that is shown
TICKS = (0.01, 0.1, 1, 10, 1e3, 1e5)
COLUMNS = ["paper", "method", "least", "most", "proved", "unbounded", "settings"]


def table(config: schema.Config) -> pd.DataFrame:
    """True over published epsilon of every method, over problems and settings.

    Returns
    -------
    DataFrame
        ``least`` and ``most`` of the upper bounds that are finite, ``proved``: the
        largest lower bound, ``unbounded``: settings without a bound, ``settings``.
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
        proved = group["epsilon_low"].max() / TARGET
        yield paper, method, *ends, proved, len(group) - len(known), len(group)


@styled
def picture(data: pd.DataFrame, papers: dict[str, str]) -> plt.Figure:
    """A bar for every method, from the least to the largest upper bound."""
    figure, axes = plt.subplots(figsize=(8.0, 0.3 * len(data) + 0.8))
    look = looks.of(data["method"])
    rows: list[Any] = list(data.itertuples())
    for place, row in enumerate(rows):
        ends = row.least / 1.08, row.most * 1.08  # wide enough to be seen
        colour = look[row.method]["color"]
        axes.plot(ends, [place] * 2, color=colour, linewidth=8, solid_capstyle="butt")
        after = max(row.most, TARGET), place
        offset: Any = {"xytext": (7, 0), "textcoords": "offset points", "va": "center"}
        text = f"{_rounded(row.least)} to {_rounded(row.most)}"
        if row.unbounded:
            text += f"; no bound in {row.unbounded} of {row.settings} settings"
        axes.annotate(
            text if row.proved else f"{text}; no lower bound",
            after,
            fontsize=8,
            **offset,
        )
    axes.axvline(TARGET, color="0.3", linewidth=1)
    named = [f"{row.method}, {papers[row.paper]}" for row in rows]
    axes.set_yticks(range(len(data)), named)
    axes.set(xscale="log", xlim=(5e-3, 1e11), ylim=(len(data) - 0.4, -0.6))
    axes.set_xticks(*zip(*((t, f"{t:,g}") for t in TICKS), strict=True))
    axes.minorticks_off()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("true epsilon (upper bound) of noise published for epsilon = 1")
    return figure


def in_words(data: pd.DataFrame, papers: dict[str, str]) -> list[str]:
    """The answer in sentences: whose noise costs less, and more, than it says."""

    def named(rows: pd.DataFrame) -> str:
        return ", ".join(
            f"{row.method} of {papers[row.paper]} "
            f"({_rounded(row.least)} to {_rounded(row.most)})"
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
