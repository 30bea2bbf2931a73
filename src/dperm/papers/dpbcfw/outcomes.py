"""Results of the sweeps for figures and tables, without importing solvers.

A sentence about a figure of Lou and Cheung 2020 is a list of margins, which are
negative where it holds, with one value per draw of the data. Losses are final ones over
f(0). That something was learnt is a margin as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import results
from dperm.core.experiment.schema import Config
from dperm.present.intervals import power, student
from dperm.present.tables import Rows, groups, where

OBJECTIVES = ("mean", "sum")  # equation 4
BUDGETS = ("total", "iteration")  # epsilon of the run, or of each iteration


def read(config: Config, name: str) -> pd.DataFrame:
    """A sweep's rows, with ``relative``, the loss over f(0), where there is a loss."""
    table = results.load_sweep(config, name)
    if "loss" in table:
        table = table.assign(relative=table["loss"] / table["start"])
    return table


def last(table: pd.DataFrame) -> pd.DataFrame:
    """The last row of every run."""
    return table[table["iteration"] == table["iterations"]]


def central(noise: str) -> str:
    """DP-FW's noise for that of DP-BCFW: in its formula, noise and scores agree."""
    return "strict" if noise == "strict" else "scaled"


def with_interval(name: str, values: np.ndarray) -> dict[str, float]:
    """Mean of the values as ``name``, and its 95 % interval as _low and _high."""
    low, high = student(values)
    return {name: float(values.mean()), f"{name}_low": low, f"{name}_high": high}


def exponent(x: pd.Series, y: pd.Series) -> float:
    """Exponent of y in x; NaN if a y is not positive."""
    return power(x.to_numpy(), y.to_numpy())[0] if (y > 0).all() else math.nan


# --- excess risk against n: Figure 4 and Theorem 4 ------------------------------------

THEORY = -2 / 3  # exponent of n, Theorem 4


def excess(config: Config, name: str) -> pd.DataFrame:
    """Last rows of a sweep, with ``excess``, the loss less that of x_true."""
    table = last(read(config, name))
    return table.assign(excess=table["loss"] - table["truth"])


def slope(runs: pd.DataFrame) -> tuple[float, float, float]:
    """Exponent of the excess in n and its 95 % interval; NaN if an excess is <= 0."""
    if len(runs) < 3 or not (runs["excess"] > 0).all():
        return math.nan, math.nan, math.nan
    return power(runs["n"].to_numpy(), runs["excess"].to_numpy())


def theory_line(sizes: np.ndarray, runs: pd.DataFrame) -> np.ndarray:
    """Theorem 4's line at ``sizes`` (k,), through the mean excess at the least n."""
    height = runs.groupby("n")["excess"].mean().iloc[0]
    return height * (sizes / sizes[0]) ** THEORY


# --- bytes that runs send up, with and without the savings ----------------------------

NUMBER = 8  # bytes
HEAD = 16  # bytes of a message besides its numbers: their count and a signed index


def share_of_raw(table: pd.DataFrame) -> float:
    """Bytes of the tuned runs, over n numbers per node and iteration."""
    tuned = where(last(table), rule="tuned")
    raw = float(NUMBER) * tuned["n"] * tuned["nodes"] * tuned["iterations"]
    return float((tuned["bytes_up"] / raw).mean())


def bytes_by_records(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Rows with ``bytes_up`` of whole runs, measured and by the printed counts."""
    ends = last(table)
    return {
        "measured, T of Theorem 4": where(ends, rule="theorem 4"),
        "measured, T tuned": where(ends, rule="tuned"),
        "Corollary 1": ends.assign(bytes_up=NUMBER * ends["corollary"]),
        "one-shot sketch": ends.assign(bytes_up=ends["one_shot"]),
    }


def bytes_so_far(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Bytes so far of the tuned runs at the largest n, measured and with resending.

    A feature is never sent twice; with resending each iteration costs K features.
    """
    runs = where(table, rule="tuned", n=table["n"].max())
    runs = runs[runs["iteration"] > 0]
    K, m = runs["nodes"].iloc[0], runs["sketch"].iloc[0]
    return runs, runs.assign(bytes_up=runs["iteration"] * K * (HEAD + NUMBER * m))


# --- Theorems 1 and 2, and the sketch -------------------------------------------------

RELEASES = ("gradient", "oracle")  # those that may have errors by Assumption 2
RUN = ["objective", "per", "epsilon", "length"]  # keys of the runs of Theorem 2
QUANTITIES = {  # of the sketch: axis of measurement, exponent in the paper
    "distortion": ("m", -0.5),
    "sketched": ("n", -1.0),
    "sketched_noise": ("n", -1.0),
    "plain_noise": ("n", -0.5),
}


def bound(t: int, p_min: float, start: float, curvature: float) -> float:
    """Theorem 1: 2 (h_0 + C / p_min) / (p_min t + 2); h_0 is at most f(0)."""
    return 2 * (start + curvature / p_min) / (p_min * t + 2)


def printed_column(
    p_min: float, t: int, d: int, start: float, curvature: float
) -> float:
    """Printed column of Table III, (2 d) (s h_0 + C) / (s^2 t + 2 d s), s = p_min d.

    Theorem 1 with the same p_min has d C in place of C. The row of p_min = 1 is that of
    the theorem.
    """
    if p_min == 1.0:
        return bound(t, p_min, start, curvature)
    s = p_min * d
    return 2 * d * (s * start + curvature) / (s * s * t + 2 * d * s)


def gap_exponents(swept: pd.DataFrame) -> pd.DataFrame:
    """Exponent of the gap in t over the last decade, one row per set and sampling.

    ``bound_exponent`` is that of Theorem 1's bound there, the same for every curvature;
    ``left`` is the final gap over that of x = 0.
    """
    rows = []
    for row, part in groups(swept, ["panel", "sampling"]):
        runs = [run for _, run in part.groupby("replicate")]
        fits = np.array([exponent(run["iteration"], run["gap"]) for run in runs])
        ends = np.array([run["gap"].iloc[-1] / run["start"].iloc[-1] for run in runs])
        t, p_min = runs[0]["iteration"].to_numpy(), float(part["p_min"].iloc[0])
        bounds = np.array([bound(int(each), p_min, 1.0, 0.0) for each in t])
        row |= {"p_min": p_min}
        row |= with_interval("exponent", fits) | {"bound_exponent": power(t, bounds)[0]}
        rows.append(row | {"left": float(ends.mean()), "steps": int(t[-1])})
    return pd.DataFrame(rows)


def approximation_summary(swept: pd.DataFrame) -> pd.DataFrame:
    """Final errors, those allowed at rho = 1, and Theorem 2's bound.

    ``exponent`` is that of the error in t over the second half of the run, and
    ``step_exponent`` that of gamma_t, which Assumption 2 with constant rho requires;
    none is fitted to an error of 0. ``rho`` is the largest of the run. The bound is
    for p_min = 1, with each node's part as one block.
    """
    keys, tables = [*RUN, "release"], []
    for _, of_run in swept.groupby(RUN, sort=False):
        rows = [at | _approximation(part) for at, part in groups(of_run, keys)]
        rho_g, rho_l = (
            next(row["rho"] for row in rows if row["release"] == name)
            for name in RELEASES
        )
        at = rows[0]
        rho = (at["width"] + at["nodes"]) * rho_g + at["nodes"] * rho_l
        limit = bound(at["steps"], 1.0, at["start"], (1 + rho) * at["curvature"])
        tables.append(pd.DataFrame(rows).assign(bound=limit))
    return pd.concat(tables, ignore_index=True)


def _approximation(part: pd.DataFrame) -> dict[str, Any]:
    """Summary of one release over runs that differ only in their draws."""
    steps = int(part["iteration"].max())
    end, late = part[part["iteration"] == steps], part[part["iteration"] > steps / 2]
    ratio = (part["error"] / part["allowed"]).groupby(part["replicate"]).max()
    runs = [run for _, run in late.groupby("replicate")]
    fits = np.array([exponent(run["iteration"], run["error"]) for run in runs])
    step = exponent(runs[0]["iteration"], runs[0]["allowed"])
    means = {key: float(end[key].mean()) for key in ("gap", "start", "curvature")}
    return {
        **with_interval("error", end["error"].to_numpy()),
        "allowed": float(end["allowed"].mean()),
        "rho": float(np.mean(ratio.to_numpy())),
        **with_interval("exponent", fits),
        "step_exponent": step,
        **means,
        "width": float(end["width"].mean()),
        "nodes": int(end["nodes"].iloc[0]),
        "steps": steps,
    }


def sketch_exponents(swept: pd.DataFrame) -> pd.DataFrame:
    """Exponents in m at the largest n, and in n at Table IV's m, with intervals.

    ``ratio`` is the error at the largest size over that without a sketch. Means are
    over draws of the data.
    """
    rows = []
    largest = swept[swept["n"] == swept["n"].max()]
    for quantity, (along, paper) in QUANTITIES.items():
        part = largest[~largest["table"]] if along == "m" else swept[swept["table"]]
        fits = np.array(
            [
                power(run[along].to_numpy(), run[quantity].to_numpy())[0]
                for _, run in part.groupby("replicate")
            ]
        )
        end = part[part[along] == part[along].max()]
        ratios = (end[quantity] / end["plain_noise"]).to_numpy()
        row = {"quantity": quantity, "along": along, "paper": paper}
        rows.append(
            row | with_interval("exponent", fits) | with_interval("ratio", ratios)
        )
    return pd.DataFrame(rows)


# --- the figures under each reading: margins of their sentences -----------------------

LEARNT = 0.25  # of f(0): the least drop that counts as learning
FLAT = 0.1  # of the drop: "almost unaffected"
REASONABLE = 0.25  # of FW's drop: "within a reasonable range"
RATE = -0.47  # exponent of the excess in n; Theorem 4's is -2/3, with logarithms
NODES = (2, 4, 8, 16)
PLAIN: dict[str, Any] = {"epsilon": 1.0, "split": 0.5, "sketch": 80, "nodes": 4}
FAMILIES: dict[str, tuple[str, tuple[float, ...]]] = {  # what Figures 6 to 8 vary
    "6": ("epsilon", (0.001, 0.01, 0.1, 1.0, 10.0)),
    "7": ("split", (0.1, 0.3, 0.5, 0.7, 0.9)),
    "8": ("sketch", (8, 40, 80, 400, 800)),
}
STATED = {  # p_min in the step: the order of curves that Figure 1 should then show
    "as printed": ("elementary", "tau-nice", "(K, tau), published"),
    "right": ("elementary", "(K, tau), corrected", "tau-nice"),
}
READING = ["figure", "constraint", "chances", "dp_fw", "share", "ball", "objective"]
READING += ["per", "iterations"]

Margins = dict[str, np.ndarray]  # by condition, one per draw; negative where it holds
DROP = "drop"  # condition: the best private curve falls by ``LEARNT`` of f(0)


def ends(runs: pd.DataFrame, **keys: Any) -> np.ndarray:
    """Final losses over f(0) of one curve, by replicate."""
    return where(runs, **keys).sort_values("replicate")["relative"].to_numpy()


def of_nodes(runs: pd.DataFrame, method: str = "dp_bcfw") -> dict[int, np.ndarray]:
    """``ends`` by K; for Algorithm 2 all other keys are those of ``PLAIN``."""
    plain = {**PLAIN, "method": method} if method == "dp_bcfw" else {"method": method}
    return {K: ends(runs, **{**plain, "nodes": K}) for K in NODES}


def family(runs: pd.DataFrame, figure: str) -> dict[float, pd.DataFrame]:
    """The runs of Figure 6, 7 or 8, by the value that varies."""
    key, values = FAMILIES[figure]
    plain = {**PLAIN, "method": "dp_bcfw"}
    return {value: where(runs, **{**plain, key: value}) for value in values}


def _learnt(*curves: np.ndarray) -> Margins:
    """The curve that is lowest on average falls by ``LEARNT`` of f(0)."""
    lowest = min(curves, key=lambda values: values.mean())
    return {DROP: LEARNT - (1.0 - lowest)}


def ordered(curves: dict[Any, np.ndarray]) -> Margins:
    """Each curve ends below the one before it."""
    steps = {f"{b} below {a}": curves[b] - curves[a] for a, b in pairwise(curves)}
    return _learnt(*curves.values()) | steps


def flat(curves: dict[Any, np.ndarray]) -> Margins:
    """The spread between the curves is at most ``FLAT`` of the drop to the lowest."""
    lowest = min(curves.values(), key=lambda values: values.mean())
    highest = max(curves.values(), key=lambda values: values.mean())
    return _learnt(lowest) | {"spread": highest - lowest - FLAT * (1.0 - lowest)}


def figure1(runs: pd.DataFrame, chances: str) -> Margins:
    """The larger the p_min of the step, the lower the loss."""
    names = STATED[chances]
    curves = {name: ends(runs, sampling=name) for name in reversed(names)}
    return ordered(curves) | _learnt(curves[names[0]])


def figure3(runs: pd.DataFrame, as_itself: bool) -> Margins:
    """DP-BCFW lies between FW and DP-FW.

    With ``as_itself``, DP-FW has the noise of its own paper.
    """
    end, alone = ends(runs, method="dp_bcfw"), ends(runs, method="fw")
    theirs = ends(runs, method="dp_fw", own=as_itself)
    steps = {"above FW": alone - end, "DP-FW above FW": alone - theirs}
    return _learnt(end) | steps | {"below DP-FW": end - theirs}


def figure9(runs: pd.DataFrame) -> Margins:
    """K = 16 falls short of FW by at most ``REASONABLE`` of FW's drop."""
    alone, ours = ends(runs, method="fw"), of_nodes(runs)[max(NODES)]
    return _learnt(ours) | {"range": ours - alone - REASONABLE * (1.0 - alone)}


def _excess(runs: pd.DataFrame) -> tuple[dict[str, pd.DataFrame], Margins]:
    """Excess over f(x_true) by algorithm, divided by f(0), and what was learnt.

    Excesses have one row per replicate and one column per n; the drop is that of the
    best K at the largest n.
    """
    table = runs.assign(excess=(runs["loss"] - runs["truth"]) / runs["start"])
    ours = where(table, method="dp_bcfw")
    parts = {"DP-FW": where(table, method="dp_fw")}
    parts |= {f"K = {K}": where(ours, nodes=K) for K in NODES}
    curves = {
        name: part.pivot(index="replicate", columns="n", values="excess")
        for name, part in parts.items()
    }
    most = where(ours, n=runs["n"].max())
    return curves, _learnt(*(ends(most, nodes=K) for K in NODES))


def figure4(runs: pd.DataFrame) -> Margins:
    """The excess falls with n for all, and with K at every n."""
    curves, margins = _excess(runs)
    for name, table in curves.items():
        for a, b in pairwise(table.columns):
            step = table[b].to_numpy() - table[a].to_numpy()
            margins[f"{name}: n = {b} below n = {a}"] = step
    for a, b in pairwise(NODES):
        step = curves[f"K = {b}"] - curves[f"K = {a}"]
        for n in step:
            margins[f"n = {n}: K = {b} below K = {a}"] = step[n].to_numpy()
    return margins


def rate(runs: pd.DataFrame) -> Margins:
    """The excess falls at least like n^``RATE`` for every K.

    Each draw has one exponent, NaN if an excess is not positive.
    """
    curves, margins = _excess(runs)
    for K in NODES:
        table = curves[f"K = {K}"]
        logs = np.log(table.columns.to_numpy(float))
        apart = logs - logs.mean()
        with np.errstate(invalid="ignore", divide="ignore"):
            exponents = np.log(table.to_numpy()) @ apart / (apart @ apart)
        margins[f"K = {K}: exponent"] = exponents - RATE
    return margins


def margins(config: Config, sweeps: list[str]) -> pd.DataFrame:
    """Margins of the sentences of all figures, one row per condition.

    Parameters
    ----------
    sweeps : list of str
        Sweeps that were run, in any order; a figure without its sweep is left out.

    Returns
    -------
    DataFrame
        figure, the reading (``READING``), data, condition, and ``margin`` with its 95 %
        interval over the draws.
    """
    rows: Rows = []
    for name, figures in SOURCES.items():
        if name not in sweeps:
            continue
        table = read(config, name)
        table = where(table, status="ok") if "status" in table else table
        for figure, take, judge, more in figures:
            runs = take(table)
            keys = [key for key in (*READING, "data") if key in runs]
            rows += [
                {"figure": figure, **more, **known, "condition": condition}
                | with_interval("margin", found)
                for known, part in groups(runs, keys)
                for condition, found in judge(part).items()
            ]
    columns = ["margin", "margin_low", "margin_high", "condition", "data", *READING]
    return pd.DataFrame(rows).reindex(columns=columns)


def holding(table: pd.DataFrame) -> pd.DataFrame:
    """How many readings of each figure were tried, learn, and hold.

    A sentence holds under a reading if the 95 % intervals of all its margins lie below
    0 on all data, which identical draws do not show.
    """
    below = (table["margin_low"] < table["margin_high"]) & (table["margin_high"] < 0)
    learns = (table["margin"] <= 0) | (table["condition"] != DROP)
    each = table.assign(holding=below, learning=learns).groupby(
        READING, sort=False, dropna=False
    )
    counts = each[["learning", "holding"]].all().groupby("figure", sort=False)
    return counts.agg(["size", "sum"]).pipe(_counted)


def _counted(counts: pd.DataFrame) -> pd.DataFrame:
    found = {"tried": counts["learning", "size"]}
    found |= {key: counts[key, "sum"] for key in ("learning", "holding")}
    return pd.DataFrame(found).reset_index()


def _on_all_balls(table: pd.DataFrame) -> pd.DataFrame:
    """Figure 1, where eta is max |x_true| or ||x_true||_1."""
    shares = zip(table["density"], table["active"], strict=True)
    data = [f"features {100 * a:g} %, variable {100 * b:g} %" for a, b in shares]
    return last(table).assign(data=pd.Series(data, table.index), ball=math.inf)


def _quiet(table: pd.DataFrame) -> pd.DataFrame:
    """Figure 2 has no noise, and the same curves for a sum."""
    quiet = where(table, objective="mean", per="total")
    return quiet.drop(columns=["objective", "per"])


def _sized(table: pd.DataFrame) -> pd.DataFrame:
    """The size of the data in words."""
    sizes = zip(table["d"], table["density"], strict=True)
    return table.assign(data=[f"d = {d:g}, {100 * each:g} %" for d, each in sizes])


def _real(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(data=table["problem"])


def _same(table: pd.DataFrame) -> pd.DataFrame:
    return table


def _flat(runs: pd.DataFrame, figure: str) -> Margins:
    return flat({value: ends(part) for value, part in family(runs, figure).items()})


# sweep: figure, its runs, their margins, and keys of the reading
SOURCES: dict[str, list[tuple[str, Any, Callable[[pd.DataFrame], Margins], Any]]] = {
    "samplings": [
        ("Figure 1", _on_all_balls, partial(figure1, chances=one), {"chances": one})
        for one in STATED
    ],
    "readings": [
        ("Figure 2", _quiet, lambda runs: ordered(of_nodes(runs, "bcfw")), {}),
        ("Figure 5", _same, lambda runs: ordered(of_nodes(runs)), {}),
        *((f"Figure {one}", _same, partial(_flat, figure=one), {}) for one in FAMILIES),
    ],
    "readings_private": [
        ("Figure 3", _sized, partial(figure3, as_itself=own), {"dp_fw": noise})
        for own, noise in ((False, "as DP-BCFW's"), (True, "of its own paper"))
    ],
    "readings_samples": [
        ("Figure 4", _same, figure4, {}),
        ("Figure 4, rate", _same, rate, {}),
    ],
    "readings_real": [
        ("Figure 9", _real, lambda runs: ordered(of_nodes(runs)), {}),
        ("Figure 9, range", _real, figure9, {}),
    ],
}
