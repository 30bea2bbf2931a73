"""README's second picture: every number that the papers print, against ours.

Ours are read from the tables of results, which hold the printed number beside it. A
tuned error has the range in which 95 % of repeated tunings would print, from the table
``law``, under the reading of the paper's claim that is shown. Left out are sizes of
data sets, and zeros, which have no place on a log scale. The papers of DP-SkGD, DP-SCO
and DP-BCFW print curves and formulas alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dperm.config import schema
from dperm.plotting import drawing

COLUMNS = ["paper", "table", "what", "row", "printed", "ours", "low", "high", "p"]
ERRORS = "errors"
DEVIATIONS = "deviations of five runs"
COUNTS = "coordinates found"
TIMES = "seconds, on another machine"
LEVEL = 0.05  # of Holm's test over the errors of a table
READ_AS = "DP-GCD's errors are read as means of new runs: its paper does not say."
MARKS = {  # colour and marker
    ERRORS: ("#0072b2", "o"),
    COUNTS: ("#009e73", "s"),
    DEVIATIONS: ("#d55e00", "^"),
    TIMES: ("#8a6d00", "x"),
}
NAMES = ("problem", "algorithm", "passes")


class PrintedColumn(NamedTuple):
    """A pair of columns, printed and ours, of a table of results."""

    paper: str
    table: str
    what: str
    printed: str
    ours: str
    low: str = ""
    high: str = ""
    where: str = ""  # rows, as pandas' query
    label: str = ""  # the paper's table, if ours has another name


LAW = ("printed", "median", "q0.025", "q0.975")
SOURCES = (
    PrintedColumn("dpcd", "law", ERRORS, *LAW, "prints == 'least'", "table2"),
    PrintedColumn("dpcd", "table2", DEVIATIONS, "published_std", "std"),
    PrintedColumn("dpcd", "table3", TIMES, "published_mean", "mean"),
    PrintedColumn("dpgcd", "law", ERRORS, *LAW, "prints == 'fresh'", "table3"),
    PrintedColumn(
        "dpgcd", "table3", COUNTS, "published_true_positives", "true_positives"
    ),
    PrintedColumn(
        "dpgcd", "table3", COUNTS, "published_false_positives", "false_positives"
    ),
)


def numbers(folder: Path) -> pd.DataFrame:
    """Every printed number with ours, one a row; papers without tables have none.

    The ``folder`` of results has the tables of the papers.
    """
    frames = []
    for source in SOURCES:
        path = folder / source.paper / f"{source.table}.csv"
        if path.is_file():
            frames.append(_pairs(pd.read_csv(path), source))
    if not frames:
        return pd.DataFrame(columns=COLUMNS)
    return pd.concat(frames, ignore_index=True)


def _pairs(table: pd.DataFrame, source: PrintedColumn) -> pd.DataFrame:
    table = table.query(source.where) if source.where else table
    table = table[table[source.printed].notna()]
    names = [name for name in NAMES if name in table]
    nothing = pd.Series(np.nan, table.index)
    return pd.DataFrame(
        {
            "paper": source.paper,
            "table": source.label or source.table,
            "what": source.what,
            "row": table[names].astype(str).agg(", ".join, axis=1),
            "printed": table[source.printed].astype(float),
            "ours": table[source.ours].astype(float),
            "low": table.get(source.low, nothing),
            "high": table.get(source.high, nothing),
            "p": table.get("p_holm", nothing) if source.low else nothing,
        },
        columns=COLUMNS,
    )


def positive(table: pd.DataFrame) -> pd.DataFrame:
    """Pairs of which neither is 0, which a log scale can show."""
    return table[(table["printed"] > 0) & (table["ours"] > 0)]


def printed_picture(table: pd.DataFrame) -> plt.Figure:
    """Printed numbers on x, ours on y, and the diagonal where they are equal."""
    shown = positive(table)
    figure, axes = plt.subplots(figsize=(6.3, 4.6))
    ends = np.array(
        [
            shown[["printed", "ours"]].min().min() / 2,
            shown[["printed", "ours"]].max().max() * 2,
        ]
    )
    axes.plot(ends, ends, color="0.3", linewidth=1, zorder=1, label="found = printed")
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
        READ_AS, (0.99, 0.02), xycoords="axes fraction", ha="right", fontsize=7.5
    )
    figure.suptitle(message(table), fontweight="bold", fontsize=10)
    return figure


def message(table: pd.DataFrame) -> str:
    """What the picture says, in one line."""
    errors = table[table["what"] == ERRORS]
    fitting = (errors["p"] > LEVEL).sum()
    return f"{fitting} of {len(errors)} printed errors fit the spread of our tunings"


def draw_printed(output: schema.Output) -> list[Path]:
    """Write ``figures/printed.png`` and its numbers as CSV; nothing without tables."""
    table = numbers(Path(output.results))
    if table.empty:
        return []
    stem = Path(output.figures, "printed")
    return drawing.save(printed_picture(table), table, stem)
