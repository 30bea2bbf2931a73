"""Panels of Theorem 4.2 at its own parameters, and of Section 4.3.2's regime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from dperm.papers.dpskgd.rates import BASE
from dperm.present import drawing
from dperm.present.drawing import Rows

# sampling: colour, line style, marker; of the random partitions one is drawn
SAMPLINGS: dict[str, tuple[str, Any, str]] = {
    "single": ("#0072B2", "-", "o"),
    "single IS": ("#D55E00", "--", "s"),
    "4 blocks": ("#009E73", "-", "D"),
    "4 blocks IS": ("#E69F00", "--", "v"),
    "4 random blocks, 1": ("#CC79A7", ":", "^"),
    "full": ("#000000", "-.", "x"),
}
INSTANCES = {
    "separable": "#0072B2",
    "ill-conditioned": "#D55E00",
    "moderate": "#009E73",
}
AXES = {"n": "o", "epsilon": "s"}
WANTED = 1.3  # of the band of the controls


def excess(axes: Axes, panel: str, table: pd.DataFrame) -> Rows:
    """Share of the excess of w = 0 against n, of each sampling; and a bound."""
    rows: Rows = []
    for name, (colour, line, mark) in SAMPLINGS.items():
        part = table[(table["sampling"] == name)].dropna(subset="excess")
        if part.empty:
            continue
        share = part[["excess", "ci_low", "ci_high", "expected"]].div(
            part["start"], axis=0
        )
        ends = np.stack((share["excess"] - share["ci_low"],
                         share["ci_high"] - share["excess"]))  # fmt: skip
        axes.errorbar(part["n"], share["excess"], yerr=ends, color=colour, marker=mark,
                      linestyle="none", markersize=3.5, capsize=2)  # fmt: skip
        axes.plot(part["n"], share["expected"], color=colour, linestyle=line, lw=1.2)
        axes.plot([], [], color=colour, linestyle=line, marker=mark, markersize=3.5,
                  label=name.partition(",")[0])  # fmt: skip
        rows += [_row(panel, name, *each) for each in
                 zip(part["n"], share["excess"], share["ci_low"], share["ci_high"],
                     strict=True)]  # fmt: skip
    bound = table[table["sampling"] == BASE]
    share = bound["bound"] / bound["start"]
    axes.plot(bound["n"], share, color="0.4", linestyle=":", label="bound, single")
    axes.axhline(1.0, color="0.6", linewidth=0.8)
    rows += [_row(panel, "bound, single", n, value, value, value)
             for n, value in zip(bound["n"], share, strict=True)]  # fmt: skip
    axes.set(xscale="log", yscale="log", title=panel, xlabel="$n$",
             ylabel="excess over that of $w = 0$")  # fmt: skip
    _powers_of_two(axes, table["n"])
    return rows


def _powers_of_two(axes: Axes, values: pd.Series) -> None:
    powers = sorted(np.log2(values).round().astype(int).unique())[::2]
    axes.set_xticks([2.0**power for power in powers],
                    [f"$2^{{{power}}}$" for power in powers])  # fmt: skip
    axes.xaxis.set_minor_locator(NullLocator())


def exponents(axes: Axes, found: Rows) -> Rows:
    """Measured exponents against those of the bound on the same points."""
    rows: Rows = []
    for each in found:
        ends = [[each["exponent"] - each["ci_low"]],
                [each["ci_high"] - each["exponent"]]]  # fmt: skip
        axes.errorbar(each["bound"], each["exponent"], yerr=ends, capsize=1.5,
                      color=INSTANCES[each["instance"]], marker=AXES[each["axis"]],
                      markersize=3, linewidth=0.8, alpha=0.7)  # fmt: skip
        named = f"{each['case']}, {each['instance']}: {each['sampling']}"
        measured = (each[key] for key in ("bound", "exponent", "ci_low", "ci_high"))
        rows.append(_row(f"exponent in {each['axis']}", named, *measured))
    for name, colour in INSTANCES.items():
        axes.plot([], [], "o", color=colour, markersize=4, label=name)
    axes.axline((-1, -1), slope=1, color="0.5", linewidth=0.8)
    axes.set(title="exponents ($n$ round, $\\varepsilon$ square)",
             xlabel="of the bound", ylabel="measured")  # fmt: skip
    axes.legend(fontsize=6.5)
    return rows


def band(axes: Axes, found: Rows) -> Rows:
    """The band of the controls, and what is undecided, by the number of transcripts."""
    table = pd.DataFrame(found)
    axes.plot(table["transcripts"], table["band"], "o-", color="#0072B2",
              label="band of the controls")  # fmt: skip
    axes.plot(table["transcripts"], 1 + table["undecided"], "s--", color="#D55E00",
              label="1 + share undecided")  # fmt: skip
    axes.axhline(WANTED, color="0.5", linewidth=0.8)
    axes.set(xscale="log", title="control: one law twice", xlabel="transcripts",
             ylabel="widest ratio; 1 + share")  # fmt: skip
    axes.set_xticks(
        table["transcripts"], [f"{each:g}" for each in table["transcripts"]]
    )
    axes.xaxis.set_minor_locator(NullLocator())
    axes.legend(fontsize=6.5)
    return [
        _row("controls", name, each["transcripts"], each[name], *ends)
        for each in found
        for name, ends in (("band", (each["ci_low"], each["ci_high"])),
                           ("undecided", (each["undecided"],) * 2))
    ]  # fmt: skip


def _row(
    panel: str, algorithm: str, x: float, mean: float, low: float, high: float
) -> drawing.Row:
    return {"panel": panel, "algorithm": algorithm, "x": x, "mean": mean, "min": mean,
            "max": mean, "ci_low": low, "ci_high": high}  # fmt: skip


def ratios(axes: Axes, panel: str, instance: str, seen: pd.DataFrame) -> Rows:
    """Importance over uniform draws on one instance, by where its optimum sits."""
    colour = INSTANCES[instance]
    ends = np.stack((seen["ratio"] - seen["ci_low"], seen["ci_high"] - seen["ratio"]))
    axes.errorbar(seen["placement"], seen["ratio"], yerr=ends, color=colour, marker="o",
                  linestyle="none", markersize=3.5, capsize=2)  # fmt: skip
    axes.plot(seen["placement"], seen["expected"], color=colour, lw=1.2)
    axes.plot([], [], "o-", color=colour, markersize=3.5,
              label=f"{instance}: measured, expected")  # fmt: skip
    columns = ("placement", "ratio", "ci_low", "ci_high")
    return [_row(panel, instance, *each)
            for each in seen[list(columns)].itertuples(index=False)]  # fmt: skip


def regime(axes: Axes, part: pd.DataFrame, band: float) -> None:
    """What Table 1 says, the band of the controls, and Section 4.3.2's regime."""
    told = part.groupby("placement")["predicted"].first()
    axes.plot(told.index, told, color="0.35", linestyle="--",
              label="Table 1, convex row")  # fmt: skip
    axes.axhspan(
        1 / band, band, color="0.5", alpha=0.15, lw=0, label="band of controls"
    )
    axes.axvspan(0.0, part["placement"].max(), color="#009E73", alpha=0.08, lw=0)
    axes.set(yscale="log", xlabel="placement $a$: $|w^*_j| = M_j^a$",
             ylabel="importance / uniform")  # fmt: skip
    ticks = [0.3, 1.0, 3.0, 10.0]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
