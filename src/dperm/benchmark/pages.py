"""What ``dperm try`` found, as a picture and as one self-contained page."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dperm.benchmark.race import answers, recommended
from dperm.plotting import drawing
from dperm.plotting.tables import number
from dperm.storage import files

TOP = 1.3  # the largest excess that is drawn where it is
SPREAD = 0.5  # of a line's height, over which its epsilons are spread
SHADES = ("#0072b2", "#d55e00", "#009e73", "#8a8a8a", "#cc79a7")
HEADINGS = {
    "algorithm": "method",
    "tuning": "tuning",
    "epsilon": "epsilon",
    "mean": "lost",
    "ci_low": "from",
    "ci_high": "to",
    "test": "held out",
    "accuracy": "accuracy",
    "setting": "setting",
    "reason": "why not",
}
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
    "padding:0 1rem;color:#111;background:#fff}h1{font-size:1.4rem}"
    "img{max-width:100%}table{border-collapse:collapse;font-size:.85rem}"
    "td,th{padding:.2rem .6rem;border-bottom:1px solid #ddd;text-align:left}"
)


def draw(table: pd.DataFrame, path: Path) -> None:
    """Write the picture of a table of ``race.means``: what each method loses.

    A line for each method, the best on top; filled marks have no tuning, hollow ones
    the best of a grid. The best constant is at 1.
    """
    ran = table[table["epsilon"].notna() & (table["status"] == "ok")]
    order = ran.groupby("algorithm")["mean"].min().sort_values().index.tolist()
    epsilons = [*dict.fromkeys(ran["epsilon"])]
    size = (7.5, 1.6 + 0.5 * max(1, len(order)))
    figure, axes = plt.subplots(figsize=size)
    if not order:
        drawing.empty(axes, "no method could run")
    count = len(epsilons)
    for k, epsilon in enumerate(epsilons):
        rows = ran[ran["epsilon"] == epsilon]
        middle = (count - 1) / 2
        places = (
            rows["algorithm"].map(order.index) + SPREAD * (k - middle) / count
        )
        _points(axes, rows, places.to_numpy(float), SHADES[k % len(SHADES)])
        axes.plot(
            [],
            [],
            "o",
            color=SHADES[k % len(SHADES)],
            label=f"epsilon {epsilon:g}",
        )
    axes.plot(
        [], [], "o", color="0.3", markerfacecolor="w", label="best of its grid"
    )
    axes.axvline(1.0, color="0.3", linestyle=":")
    axes.text(
        1.0, -0.75, "the best constant", ha="center", fontsize=8, color="0.3"
    )
    axes.set_yticks(range(len(order)), order)
    axes.set(xlim=(-0.03, TOP + 0.05), ylim=(len(order) - 0.4, -0.6))
    axes.set_xlabel(
        "lost of what can be learned (0 is as good as without privacy)"
    )
    axes.legend(
        fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1)
    )
    with files.whole(path) as beside:
        figure.savefig(beside, format="png", metadata=drawing.METADATA["png"])
    plt.close(figure)


def _points(
    axes: Any, rows: pd.DataFrame, places: np.ndarray, shade: str
) -> None:
    """Means with their intervals; those beyond the picture's end as arrows there."""
    for row, place in zip(rows.to_dict("records"), places, strict=True):
        is_free = row["tuning"] != "default"
        mean = min(row["mean"], TOP)
        ends = np.clip([row["ci_low"], row["ci_high"]], 0.0, TOP)
        marker = "o" if row["mean"] <= TOP else ">"
        face = "w" if is_free else shade
        axes.plot(ends, [place, place], color=shade, linewidth=1.2)
        axes.plot(
            mean,
            place,
            marker,
            color=shade,
            markerfacecolor=face,
            markersize=6,
        )


def write(
    table: pd.DataFrame, picture: Path, path: Path, warning: str
) -> None:
    """Write a page that needs no other file: answers, picture, table and a warning."""
    encoded = base64.b64encode(picture.read_bytes()).decode("ascii")
    columns = [
        key for key in HEADINGS if key in table and table[key].notna().any()
    ]
    rows = [
        "".join(f"<td>{escape(_cell(row[key]))}</td>" for key in columns)
        for row in table.to_dict("records")
    ]
    heads = "".join(f"<th>{HEADINGS[key]}</th>" for key in columns)
    title = str(table["problem"].iloc[0])
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>'
        f"{escape(title)}: which private method</title><style>{STYLE}</style></head>",
        f"<body><h1>{escape(title)}: which private method</h1>",
        *(
            f"<p><strong>{escape(sentence)}</strong></p>"
            for sentence in answers(table)
        ),
        f'<p><img alt="What each method loses of what can be learned" '
        f'src="data:image/png;base64,{encoded}"></p>',
        f"<table><tr>{heads}</tr>",
        *(f"<tr>{row}</tr>" for row in rows),
        "</table>",
        *(f"<p>{escape(sentence)}</p>" for sentence in recommended(table)),
        f"<p>{escape(' '.join(warning.split()))}</p></body></html>",
    ]
    with files.whole(path) as beside:
        beside.write_text("\n".join(parts), encoding="utf-8")


def _cell(cell: Any) -> str:
    """A number with three digits, or text; empty if missing."""
    is_text = isinstance(cell, str)
    return cell if is_text else number(cell)
