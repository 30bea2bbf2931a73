"""What the figures of Lou and Cheung 2020 say, judged under each reading.

A sentence is a list of margins, numbers that are negative where it holds, one for every
draw of the data; losses are those at the end over f(0). That something was learnt is a
margin as well: the best private curve must fall by ``learnt``. A figure holds under a
reading if the 95 % intervals of all its mean margins lie below 0, and fails if one lies
above.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dperm.papers.dpbcfw.outcomes import where
from dperm.present.intervals import student

LEARNT = 0.25  # of f(0)
FLAT = 0.1  # of the drop: "almost unaffected"
REASONABLE = 0.25  # of FW's drop: "within a reasonable range"
RATE = -0.47  # of the excess in n; Theorem 4's is -2/3, and has logarithms
READING = ("ball", "objective", "per", "iterations")
NODES = (2, 4, 8, 16)
PLAIN: dict[str, Any] = {"epsilon": 1.0, "split": 0.5, "sketch": 80, "nodes": 4}
FAMILIES: dict[str, tuple[str, tuple[float, ...]]] = {  # what a flat figure varies
    "6": ("epsilon", (0.001, 0.01, 0.1, 1.0, 10.0)),
    "7": ("split", (0.1, 0.3, 0.5, 0.7, 0.9)),
    "8": ("sketch", (8, 40, 80, 400, 800)),
}
SAYS = {  # in our words, for the sentences
    "1": "the smaller the smallest chance of a coordinate, the higher the loss",
    "2": "more nodes end lower, without noise",
    "3": "DP-BCFW ends above FW and below DP-FW, DP-FW above FW",
    "4": "the excess risk falls with n, and with the number of nodes",
    "4, rate": "the excess risk falls about like n^(-2/3) for every K",
    "5": "more nodes end lower",
    "6": "epsilon from 0.001 to 10 hardly matters",
    "7": "the split of the budget hardly matters",
    "8": "the length of a sketched feature hardly matters, down to 1 %",
    "9": "more nodes end lower on real data",
    "9, range": "DP-BCFW with K = 16 ends within a reasonable range of FW",
}
STATED = {  # chances in the step: the order that Figure 1 then ought to show
    "as printed": ("elementary", "tau-nice", "(K, tau), published"),
    "right": ("elementary", "(K, tau), corrected", "tau-nice"),
}
Margins = dict[str, np.ndarray]


@dataclass(frozen=True)
class Sentence:
    """Margins of a sentence, and how far its best private curve fell.

    Attributes
    ----------
    margins : dict of str to ndarray (replicates,)
        By what must hold.
    drop : ndarray, shape (replicates,)
        1 less the loss over f(0) of the lowest curve.
    """

    margins: Margins
    drop: np.ndarray

    def row(self, learnt: float = LEARNT) -> dict[str, Any]:
        """Whether it holds, its drop and the margin that is worst, with intervals."""
        every = {f"falls by {learnt:g} f(0)": learnt - self.drop, **self.margins}
        found = {name: _estimate(values) for name, values in every.items()}
        worst = max(found, key=lambda name: (found[name][1] > 0, found[name][0]))
        drop = _estimate(self.drop)
        others = [found[name] for name in self.margins]
        return {
            "holds": _holds(found.values(), len(self.drop)),
            "drop": drop[0], "drop_low": drop[1], "drop_high": drop[2],
            "without_learning": _holds(others, len(self.drop)), "worst": worst,
            "margin": found[worst][0], "margin_low": found[worst][1],
            "margin_high": found[worst][2], "replicates": len(self.drop),
        }  # fmt: skip


def _estimate(values: np.ndarray) -> tuple[float, float, float]:
    return float(values.mean()), *student(values)


def _holds(found: Iterable[tuple[float, float, float]], draws: int) -> str:
    """``yes``, ``no`` or ``undecided`` of margins with their intervals.

    A single draw has no interval, and decides nothing. Draws that are all alike speak
    against a sentence, but not for it.
    """
    ends = list(found)
    if draws > 1 and any(low > 0 for _, low, _ in ends):
        return "no"
    holds = all(low < high < 0 for _, low, high in ends)
    return "yes" if holds else "undecided"


def ends(runs: pd.DataFrame, **keys: Any) -> np.ndarray:
    """Final losses over f(0) of one curve, by replicate."""
    return where(runs, **keys).sort_values("replicate")["relative"].to_numpy()


def _of_nodes(runs: pd.DataFrame, method: str = "dp_bcfw") -> dict[int, np.ndarray]:
    plain = {**PLAIN, "method": method} if method == "dp_bcfw" else {"method": method}
    return {K: ends(runs, **{**plain, "nodes": K}) for K in NODES}


def ordered(curves: dict[Any, np.ndarray], name: str = "K = {}") -> Sentence:
    """Each curve ends below the one before it."""
    steps = {
        f"{name.format(b)} below {name.format(a)}": curves[b] - curves[a]
        for a, b in itertools.pairwise(curves)
    }
    return Sentence(steps, _drop(curves.values()))


def _drop(curves: Iterable[np.ndarray]) -> np.ndarray:
    """Of the curve that is lowest on average."""
    return 1.0 - min(curves, key=lambda values: values.mean())


def flat(curves: dict[Any, np.ndarray]) -> Sentence:
    """The spread between the curves is at most ``FLAT`` of the drop to the lowest."""
    drop = _drop(curves.values())
    highest = max(curves.values(), key=lambda values: values.mean())
    spread = highest - (1.0 - drop)
    return Sentence(
        {f"spread at most {FLAT:g} of the drop": spread - FLAT * drop}, drop
    )


def figure1(runs: pd.DataFrame, chances: str) -> Sentence:
    """The larger the smallest chance in the step, the lower the loss."""
    names = STATED[chances]
    curves = {name: ends(runs, sampling=name) for name in reversed(names)}
    return replace(ordered(curves, "{}"), drop=1.0 - curves[names[0]])


def figure2(runs: pd.DataFrame) -> Sentence:
    """More nodes end lower without noise, Algorithm 2 as published."""
    return ordered(_of_nodes(runs, "bcfw"))


def figure3(runs: pd.DataFrame, own: bool) -> Sentence:
    """DP-BCFW between FW and DP-FW; ``own``: DP-FW's noise is that of its own paper."""
    ours, alone = ends(runs, method="dp_bcfw"), ends(runs, method="fw")
    theirs = ends(runs, method="dp_fw", own=own)
    margins = {"above FW": alone - ours, "DP-FW above FW": alone - theirs,
               "below DP-FW": ours - theirs}  # fmt: skip
    return Sentence(margins, 1.0 - ours)


def figure5(runs: pd.DataFrame) -> Sentence:
    """More nodes end lower."""
    return ordered(_of_nodes(runs))


def family(runs: pd.DataFrame, figure: str) -> dict[float, np.ndarray]:
    """The curves of Figure 6, 7 or 8, by the value that they differ in."""
    key, values = FAMILIES[figure]
    plain = {**PLAIN, "method": "dp_bcfw"}
    return {value: ends(runs, **{**plain, key: value}) for value in values}


def figure9(runs: pd.DataFrame) -> Sentence:
    """K = 16 falls short of FW by at most ``REASONABLE`` of FW's drop."""
    alone, ours = ends(runs, method="fw"), _of_nodes(runs)[max(NODES)]
    short = ours - alone - REASONABLE * (1.0 - alone)
    return Sentence({f"within {REASONABLE:g} of FW's drop": short}, 1.0 - ours)


# --- against n ------------------------------------------------------------------------


def _excess(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Excess over f(x_true), over f(0), by algorithm: a row a replicate, a column n."""
    over = ((runs["loss"] - runs["truth"]) / runs["start"]).rename("excess")
    table = runs.assign(excess=over)
    names = {"DP-FW": where(table, method="dp_fw")}
    ours = where(table, method="dp_bcfw")
    names |= {f"K = {K}": where(ours, nodes=K) for K in NODES}
    return {
        name: part.pivot(index="replicate", columns="n", values="excess")
        for name, part in names.items()
    }


def _learnt_at_most(runs: pd.DataFrame) -> np.ndarray:
    """The drop of the best K at the largest n."""
    most = where(runs, n=runs["n"].max(), method="dp_bcfw")
    return _drop(ends(most, nodes=K) for K in NODES)


def figure4(runs: pd.DataFrame) -> Sentence:
    """The excess falls with n for all, and with K at every n."""
    curves, margins = _excess(runs), dict[str, np.ndarray]()
    for name, table in curves.items():
        for a, b in itertools.pairwise(table.columns):
            step = table[b].to_numpy() - table[a].to_numpy()
            margins[f"{name}: n = {b} below n = {a}"] = step
    for a, b in itertools.pairwise(NODES):
        step = curves[f"K = {b}"] - curves[f"K = {a}"]
        for n in step:
            margins[f"n = {n}: K = {b} below K = {a}"] = step[n].to_numpy()
    return Sentence(margins, _learnt_at_most(runs))


def rate(runs: pd.DataFrame) -> Sentence:
    """The excess falls at least like n^``RATE`` for every K; an exponent a draw."""
    margins = {
        f"{name}: exponent at most {RATE:g}": _exponents(table) - RATE
        for name, table in _excess(runs).items()
        if name != "DP-FW"
    }
    return Sentence(margins, _learnt_at_most(runs))


def _exponents(table: pd.DataFrame) -> np.ndarray:
    """Of the excess in n, by draw; NaN where an excess is not positive."""
    logs = np.log(table.columns.to_numpy(float))
    apart = logs - logs.mean()
    with np.errstate(invalid="ignore", divide="ignore"):
        found: np.ndarray = np.log(table.to_numpy()) @ apart / (apart @ apart)
    return found


# --- rows -----------------------------------------------------------------------------

Judge = Callable[[pd.DataFrame], Sentence]


def rows_of(
    swept: pd.DataFrame, figure: str, judge: Judge, by: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """A row for every reading, and for every data set where ``by`` tells them apart."""
    keys = [*by, *(key for key in READING if key in swept)]
    rows = []
    for values, runs in swept.groupby(keys, sort=False):
        known = dict(zip(keys, values, strict=True))
        rows.append({"figure": f"Figure {figure}", **known, **judge(runs).row()})
    return rows
