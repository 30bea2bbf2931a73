"""What the sweeps left, as figures and tables read it; no solver is woken."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import results
from dperm.core.experiment.schema import Config
from dperm.present.intervals import power, student

OBJECTIVES = ("mean", "sum")  # equation 4
BUDGETS = ("total", "iteration")  # whose epsilon


def read(config: Config, name: str) -> pd.DataFrame:
    """A sweep's rows, with ``relative``, the loss over f(0), where there is a loss."""
    table = results.load_sweep(config, name)
    if "loss" in table:
        table = table.assign(relative=table["loss"] / table["start"])
    return table


def last(table: pd.DataFrame) -> pd.DataFrame:
    """The last row of every run."""
    return table[table["iteration"] == table["iterations"]]


def where(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The rows that have these values."""
    mask = np.ones(len(table), dtype=bool)
    for key, value in values.items():
        mask &= (table[key] == value).to_numpy()
    return table[mask]


def central(noise: str) -> str:
    """DP-FW's noise beside DP-BCFW's: its formula has no printed misfit of scores."""
    return "strict" if noise == "strict" else "scaled"


def with_interval(name: str, values: np.ndarray) -> dict[str, float]:
    """The mean of values by that name, with its 95 % interval, _low and _high."""
    low, high = student(values)
    return {name: float(values.mean()), f"{name}_low": low, f"{name}_high": high}


def exponent(x: pd.Series, y: pd.Series) -> float:
    """Exponent of y in x; NaN where a y is not positive."""
    return power(x.to_numpy(), y.to_numpy())[0] if (y > 0).all() else math.nan


# --- excess risk against n: Figure 4 and Theorem 4 ------------------------------------

THEORY = -2 / 3  # exponent of n, Theorem 4


def excess(config: Config, name: str, against: str, epsilon: float) -> pd.DataFrame:
    """Last rows of a sweep at one target, with ``excess``, the loss over another's.

    Parameters
    ----------
    against : {"truth", "minimum"}
        Column of the loss that the excess is over.
    """
    table = last(read(config, name))
    table = table.assign(excess=table["loss"] - table[against])
    return where(table, epsilon=epsilon)


def slope(runs: pd.DataFrame) -> tuple[float, float, float]:
    """Exponent of the excess in n with its 95 % interval; NaN if one is below 0."""
    if len(runs) < 3 or not (runs["excess"] > 0).all():
        return math.nan, math.nan, math.nan
    return power(runs["n"].to_numpy(), runs["excess"].to_numpy())


def theory_line(sizes: np.ndarray, runs: pd.DataFrame) -> np.ndarray:
    """Theorem 4's line at ``sizes`` (k,), through the mean excess at the least n."""
    height = runs.groupby("n")["excess"].mean().iloc[0]
    return height * (sizes / sizes[0]) ** THEORY


# --- bytes that runs send up, beside what they would without the savings --------------

NUMBER = 8  # bytes
HEAD = 16  # bytes of a message beside its numbers: their count and a signed index


def share_of_raw(table: pd.DataFrame) -> float:
    """Bytes of the tuned runs over those of sending n numbers a node and iteration."""
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
    """Bytes so far of the tuned runs at the largest n, and if all were sent each time.

    A feature is never sent twice; without that each iteration costs K features.
    """
    runs = where(table, rule="tuned", n=table["n"].max())
    runs = runs[runs["iteration"] > 0]
    K, m = runs["nodes"].iloc[0], runs["sketch"].iloc[0]
    return runs, runs.assign(bytes_up=runs["iteration"] * K * (HEAD + NUMBER * m))


# --- the epsilon from which the claims of Figures 3 to 7 hold -------------------------

CLOSE = 0.1  # "almost unaffected", "within a reasonable range": a tenth of f(0)
FALLS = 0.9  # of the excess that may be left with twice the records; theory: 0.63
# Kinds of noise and whether features are sketched, as the runs of the sweep have them.
KINDS = {
    "stated": ("stated", True),
    "scaled": ("scaled", True),
    "scaled, m = n": ("scaled", False),
    "strict": ("strict", True),
}
CLAIMS = {
    "Fig. 3": "Fig. 3: no worse than DP-FW,\nand below f(0)",
    "Fig. 4": "Fig. 4: a tenth less excess\nwith twice the n (feasible)",
    "Fig. 5": "Fig. 5: K = 16 below K = 2,\nand below f(0)",
    "Fig. 6": "Fig. 6: within 0.1 f(0) of no noise",
    "Fig. 7": "Fig. 7: splits 1:9 and 9:1 agree,\nand below f(0)",
}


def claim_margins(table: pd.DataFrame) -> pd.DataFrame:
    """Margins of every claim: claim, noise (of ``KINDS``), epsilon, replicate, margin.

    A margin is negative where the claim holds. Losses are final ones over f(0), on the
    same draws of the data.

    Parameters
    ----------
    table : DataFrame
        Last rows of the runs, with ``relative`` the loss over f(0).
    """
    ours, parts = table["method"] == "dp_bcfw", []
    for claim, of_claim in _MARGINS.items():
        for kind, (noise, sketched) in KINDS.items():
            kept = table[~ours | ((table["sketch"] > 0) == sketched)]
            part = of_claim(kept, noise).rename("margin").reset_index()
            parts.append(part.assign(claim=claim, noise=kind))
    return pd.concat(parts, ignore_index=True)


def claim_starts(margins: pd.DataFrame) -> pd.DataFrame:
    """The smallest epsilon from which each claim holds at all larger ones.

    A claim holds at an epsilon if its mean margin is below 0.
    """
    rows = []
    for (claim, noise), group in margins.groupby(["claim", "noise"], sort=False):
        means = group.groupby("epsilon")["margin"].mean()
        holds = (means < 0)[::-1].cumprod()[::-1].astype(bool)
        first = float(means.index[holds][0]) if holds.any() else math.nan
        rows.append({"claim": claim, "noise": noise, "epsilon": first})
    return pd.DataFrame(rows)


def _final(
    table: pd.DataFrame, noise: str, column: str = "relative", **keys: Any
) -> pd.Series:
    """Final values by (epsilon, replicate), at the largest n unless a key says so."""
    largest = int(table["n"].max())
    keys = {"method": "dp_bcfw", "noise": noise, "n": largest, "split": 0.5, **keys}
    if keys["method"] == "dp_bcfw":
        keys = {"update": "published", "nodes": 4, **keys}
    return where(table, **keys).set_index(["epsilon", "replicate"])[column]


def _below_start(margin: pd.Series, *losses: pd.Series) -> pd.Series:
    """The worse of a margin and of a loss above f(0): nothing was learnt there."""
    return pd.concat([margin, *(loss - 1.0 for loss in losses)], axis=1).max(axis=1)


def _figure3(table: pd.DataFrame, noise: str) -> pd.Series:
    ours = _final(table, noise)
    theirs = _final(table, central(noise), method="dp_fw")
    return _below_start(ours - theirs, ours)


def _figure4(table: pd.DataFrame, noise: str) -> pd.Series:
    table = table.assign(excess=table["loss"] - table["minimum"])
    small = _final(table, noise, "excess", update="feasible", n=int(table["n"].min()))
    return _final(table, noise, "excess", update="feasible") / small - FALLS


def _figure5(table: pd.DataFrame, noise: str) -> pd.Series:
    many, few = (_final(table, noise, nodes=K) for K in (16, 2))
    return _below_start(many - few, many)


def _figure6(table: pd.DataFrame, noise: str) -> pd.Series:
    ours = _final(table, noise)
    quiet = _final(table, "none").droplevel("epsilon")
    return (ours - quiet.reindex(ours.index, level="replicate")).abs() - CLOSE


def _figure7(table: pd.DataFrame, noise: str) -> pd.Series:
    few, many = (_final(table, noise, split=split) for split in (0.1, 0.9))
    return _below_start((few - many).abs() - CLOSE, few, many)


_MARGINS: dict[str, Callable[[pd.DataFrame, str], pd.Series]] = {
    "Fig. 3": _figure3,
    "Fig. 4": _figure4,
    "Fig. 5": _figure5,
    "Fig. 6": _figure6,
    "Fig. 7": _figure7,
}

# --- Theorems 1 and 2, and the sketch -------------------------------------------------

RELEASES = ("gradient", "oracle")  # that Assumption 2 allows errors
RUN = ["objective", "per", "epsilon", "length"]  # what the runs of Theorem 2 differ in
QUANTITIES = {  # of the sketch: what each is measured along, the paper's exponent
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
    """Table III's own column, (2 d) (s h_0 + C) / (s^2 t + 2 d s) with s = p_min d.

    Theorem 1 with the same p_min has d C in the place of C. The row of p_min = 1 is the
    theorem's.
    """
    if p_min == 1.0:
        return bound(t, p_min, start, curvature)
    s = p_min * d
    return 2 * d * (s * start + curvature) / (s * s * t + 2 * d * s)


def gap_exponents(swept: pd.DataFrame) -> pd.DataFrame:
    """Exponent of the gap in t over the last decade, a row a set and sampling.

    ``bound_exponent`` is that of Theorem 1's bound there, whatever the curvature;
    ``left`` the gap at the end over that of x = 0.
    """
    rows = []
    keys = ["panel", "sampling"]
    for values, part in swept.groupby(keys, sort=False):
        runs = [run for _, run in part.groupby("replicate")]
        fits = np.array([exponent(run["iteration"], run["gap"]) for run in runs])
        ends = np.array([run["gap"].iloc[-1] / run["start"].iloc[-1] for run in runs])
        t, p_min = runs[0]["iteration"].to_numpy(), float(part["p_min"].iloc[0])
        bounds = np.array([bound(int(each), p_min, 1.0, 0.0) for each in t])
        row = dict(zip(keys, values, strict=True)) | {"p_min": p_min}
        row |= with_interval("exponent", fits) | {"bound_exponent": power(t, bounds)[0]}
        rows.append(row | {"left": float(ends.mean()), "steps": int(t[-1])})
    return pd.DataFrame(rows)


def approximation_summary(swept: pd.DataFrame) -> pd.DataFrame:
    """Errors and what rho = 1 allows them, at the end; Theorem 2's bound.

    ``exponent`` is that of the error in t over the second half of the run, and
    ``step_exponent`` that of gamma_t, which Assumption 2 with constant rho asks for;
    none is fitted to an error of 0. ``rho`` is the largest of the run. The bound is
    that for p_min = 1, each node's part counted as one block.
    """
    keys, tables = [*RUN, "release"], []
    for _, of_run in swept.groupby(RUN, sort=False):
        rows = [
            dict(zip(keys, values, strict=True)) | _approximation(part)
            for values, part in of_run.groupby(keys, sort=False)
        ]
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
    """One release of all runs that differ in their draws alone."""
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

    ``ratio`` is the error at the largest size over what it would be without a sketch;
    one draw of the data is one point of the mean.
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
