"""README's second picture: every number that the papers print, against ours.

A paper's YAML names the tables of results that hold a printed number beside ours
(``printed_numbers``). A tuned error has the range in which 95 % of repeated tunings
would print. Zeros have no place on a log scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dperm.config import schema
from dperm.config.locate import group_file
from dperm.config.validation import one_of
from dperm.plotting import drawing
from dperm.plotting.tables import where

PRINTED_COLUMNS = [
    "paper",
    "table",
    "what",
    "row",
    "printed",
    "ours",
    "low",
    "high",
    "p",
]
ERRORS = "errors"
DEVIATIONS = "deviations of five runs"
COUNTS = "coordinates found"
TIMES = "seconds, on another machine"
LEVEL = 0.05  # of Holm's test over the errors of a table
QUANTITIES = {  # label, by the word of the YAML
    "errors": ERRORS,
    "counts": COUNTS,
    "deviations": DEVIATIONS,
    "seconds": TIMES,
}
MARKS = {  # colour and marker
    ERRORS: ("#0072b2", "o"),
    COUNTS: ("#009e73", "s"),
    DEVIATIONS: ("#d55e00", "^"),
    TIMES: ("#8a6d00", "x"),
}
NAMES = ("problem", "algorithm", "passes")


def numbers(papers: Iterable[schema.Paper], folder: Path) -> pd.DataFrame:
    """Every printed number with ours, one a row; papers without tables have none.

    The ``folder`` of results has the tables of the papers.
    """
    frames = []
    for paper in papers:
        for source in paper.printed_numbers:
            path = folder / paper.name / f"{source.table}.csv"
            if path.is_file():
                frames.append(pairs(pd.read_csv(path), paper.name, source))
    if not frames:
        return pd.DataFrame(columns=PRINTED_COLUMNS)
    return pd.concat(frames, ignore_index=True)


def pairs(
    table: pd.DataFrame, paper: str, source: schema.PrintedNumbers
) -> pd.DataFrame:
    """The rows of a table that hold a printed number, with ours.

    Raises ConfigError if the table lacks a column that the paper's YAML names.
    """
    key = (
        f"conf/{group_file('paper', paper)}: printed_numbers of {source.table}"
    )
    columns = (
        source.printed,
        source.ours,
        source.low,
        source.high,
        *source.rows,
    )
    for column in filter(None, columns):
        one_of(key, column, table.columns)
    table = where(table, **source.rows)
    table = table[table[source.printed].notna()]
    names = [name for name in NAMES if name in table]
    nothing = pd.Series(np.nan, table.index)
    return pd.DataFrame(
        {
            "paper": paper,
            "table": source.paper_table or source.table,
            "what": QUANTITIES[source.quantity],
            "row": table[names].astype(str).agg(", ".join, axis=1),
            "printed": table[source.printed].astype(float),
            "ours": table[source.ours].astype(float),
            "low": table.get(source.low, nothing),
            "high": table.get(source.high, nothing),
            "p": table.get("p_holm", nothing) if source.low else nothing,
        },
        columns=PRINTED_COLUMNS,
    )


def readings(papers: Iterable[schema.Paper]) -> str:
    """How numbers are read of which a paper does not say what they are."""
    sources = chain.from_iterable(paper.printed_numbers for paper in papers)
    return " ".join(source.reading for source in sources if source.reading)


def positive(table: pd.DataFrame) -> pd.DataFrame:
    """Pairs of which neither is 0, which a log scale can show."""
    return table[(table["printed"] > 0) & (table["ours"] > 0)]


def printed_picture(table: pd.DataFrame, note: str = "") -> plt.Figure:
    """Printed numbers on x, ours on y, and the diagonal where they are equal."""
    shown = positive(table)
    figure, axes = plt.subplots(figsize=(6.3, 4.6))
    ends = np.array(
        [
            shown[["printed", "ours"]].min().min() / 2,
            shown[["printed", "ours"]].max().max() * 2,
        ]
    )
    axes.plot(
        ends, ends, color="0.3", linewidth=1, zorder=1, label="found = printed"
    )
    for what, (colour, marker) in MARKS.items():
        rows = shown[shown["what"] == what]
        if rows.empty:
            continue
        low = (rows["ours"] - rows["low"]).clip(lower=0).fillna(0.0)
        high = (rows["high"] - rows["ours"]).clip(lower=0).fillna(0.0)
        axes.errorbar(
            rows["printed"],
            rows["ours"],
            yerr=[low, high],
            fmt=marker,
            color=colour,
            markersize=4,
            elinewidth=0.9,
            linewidth=0,
            label=f"{what} ({len(rows)})",
        )
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    axes.set_xlabel("printed in a paper")
    axes.set_ylabel("found here")
    axes.legend(loc="upper left")
    axes.annotate(
        note, (0.99, 0.02), xycoords="axes fraction", ha="right", fontsize=7.5
    )
    figure.suptitle(message(table), fontweight="bold", fontsize=10)
    return figure


def message(table: pd.DataFrame) -> str:
    """What the picture says, in one line."""
    errors = table[table["what"] == ERRORS]
    fitting = (errors["p"] > LEVEL).sum()
    return f"{fitting} of {len(errors)} printed errors fit the spread of our tunings"


def draw_printed(
    papers: Sequence[schema.Paper],
    output: schema.Output,
    formats: Sequence[str],
) -> list[Path]:
    """Write ``figures/printed.png`` and its numbers as CSV; nothing without tables."""
    table = numbers(papers, Path(output.results))
    if table.empty:
        return []
    stem = Path(output.figures, "printed")
    return drawing.save(
        printed_picture(table, readings(papers)), table, stem, formats
    )
