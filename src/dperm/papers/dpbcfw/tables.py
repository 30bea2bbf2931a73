"""Tables of Lou and Cheung 2020 (DP-BCFW). Losses are final ones over f(0)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from dperm.config.schema import Paper
from dperm.experiments import results
from dperm.numerics.intervals import power, student
from dperm.papers.dpbcfw import theory
from dperm.papers.shared.tables import slopes
from dperm.plotting.tables import Rows, groups, interval, where

# --- rows of the sweeps ---------------------------------------------------------------


def relative(table: pd.DataFrame) -> pd.DataFrame:
    """A sweep's rows, with ``relative``, the loss over f(0), where there is a loss."""
    if "loss" in table:
        table = table.assign(relative=table["loss"] / table["start"])
    return table


def last(table: pd.DataFrame) -> pd.DataFrame:
    """The last row of every run."""
    return table[table["iteration"] == table["iterations"]]


# --- Tables II, III and V -------------------------------------------------------------

NUMBER = 8  # bytes


def related(swept: pd.DataFrame, paper: Paper) -> pd.DataFrame:
    """Table II with our solver for each row, and the measured bytes of DP-BCFW.

    They are over those of n raw numbers per node and iteration.
    """
    table = results.published(paper, "table2")
    tuned = where(last(swept), rule="tuned")
    raw = float(NUMBER) * tuned["n"] * tuned["nodes"] * tuned["iterations"]
    ours = table["solver"] == "dp_bcfw"
    table["uplink_share"] = pd.NA
    table.loc[ours, "uplink_share"] = float((tuned["bytes_up"] / raw).mean())
    return table


# --- Figure 4 under every reading -----------------------------------------------------

LEARNT = 0.25  # of f(0): the least drop that counts as learning
READING = ["ball", "objective", "per", "iterations"]


def reading_sentences(swept: pd.DataFrame) -> pd.DataFrame:
    """How many readings of Figure 4 were tried, learn, and hold.

    The excess falls with n for every algorithm, and with K at every n, if the 95 %
    intervals of all steps over the draws lie below 0, which identical draws do not
    show. It is learnt if the best K falls by ``LEARNT`` of f(0) at the largest n.
    """
    table = relative(swept)
    table = table.assign(
        excess=(table["loss"] - table["truth"]) / table["start"]
    )
    outcomes = [
        _figure4(reading_runs) for _, reading_runs in groups(table, READING)
    ]
    learning, falling = np.array(outcomes).T
    counts = {"tried": len(outcomes), "learning": int(learning.sum())}
    counts["holding"] = int((learning & falling).sum())
    return pd.DataFrame([{"figure": "Figure 4", **counts}])


def _figure4(runs: pd.DataFrame) -> tuple[bool, bool]:
    """Whether something is learnt under a reading, and whether its steps all fall."""
    excess = runs.pivot(
        index="replicate", columns=["method", "nodes", "n"], values="excess"
    ).sort_index(axis=1)
    ours = excess["dp_bcfw"]
    central = excess["dp_fw"]
    by_nodes = [ours.xs(n, axis=1, level="n") for n in runs["n"].unique()]
    by_size = [ours[K] for K in ours.columns.unique(0)]
    by_size += [central[K] for K in central.columns.unique(0)]
    steps = []
    for series in (*by_nodes, *by_size):
        for a, b in pairwise(series.columns):
            steps.append(student((series[b] - series[a]).to_numpy()))
    largest_runs = where(runs, method="dp_bcfw", n=runs["n"].max())
    lowest = largest_runs.groupby("nodes")["relative"].mean().min()
    falls = all(low < high < 0 for low, high in steps)
    return bool(lowest <= 1 - LEARNT), falls


# --- Theorems 1 and 2, Proposition 1, and the sketch ----------------------------------

RUN = [
    "objective",
    "per",
    "epsilon",
    "length",
]  # keys of the runs of Theorem 2
QUANTITIES = {  # of the sketch: axis of measurement, exponent in the paper
    "distortion": ("m", -0.5),
    "sketched": ("n", -1.0),
    "sketched_noise": ("n", -1.0),
    "plain_noise": ("n", -0.5),
}


def rates(swept: pd.DataFrame) -> pd.DataFrame:
    """Exponents of the gap in t over the last decade, and those of Theorem 1's bound.

    The exponent of the bound is the same for every curvature; ``left`` is the final gap
    over that of x = 0.
    """
    rows: Rows = []
    for row, group in groups(swept, ["panel", "sampling"]):
        t = group["iteration"].unique()
        p_min = float(group["p_min"].iloc[0])
        ends = group[group["iteration"] == t.max()]
        bounds = np.array(
            [theory.bound(int(steps), p_min, 1.0, 0.0) for steps in t]
        )
        row |= {"p_min": p_min}
        row |= interval("exponent", slopes(group, "iteration", "gap"))
        row |= {"bound_exponent": power(t, bounds)[0]}
        row["left"] = float((ends["gap"] / ends["start"]).mean())
        rows.append(row | {"steps": int(t.max())})
    return pd.DataFrame(rows)


def approximation(swept: pd.DataFrame) -> pd.DataFrame:
    """Errors of partial gradient and oracle, those that rho = 1 allows, and the bound.

    ``exponent`` is that of the error in t over the second half of the run, and
    ``step_exponent`` that of gamma_t, which Assumption 2 with constant rho requires;
    none is fitted to an error of 0. ``rho`` is the largest of the run. The bound is
    Theorem 2's for p_min = 1, with each node's part as one block.
    """
    rows = Rows()
    for _, of_run in swept.groupby(RUN, sort=False):
        keys = [*RUN, "release"]
        release_rows = [
            first_row | _of_release(errors)
            for first_row, errors in groups(of_run, keys)
        ]
        rho = {row["release"]: row["rho"] for row in release_rows}
        first_row = release_rows[0]
        total = (first_row["width"] + first_row["nodes"]) * rho["gradient"]
        total += first_row["nodes"] * rho["oracle"]
        size = (1 + total) * first_row["curvature"]
        limit = theory.bound(first_row["steps"], 1.0, first_row["start"], size)
        rows += [row | {"bound": limit} for row in release_rows]
    return pd.DataFrame(rows)


def _of_release(errors: pd.DataFrame) -> dict[str, Any]:
    """Summary of one release over runs that differ only in their draws."""
    steps = int(errors["iteration"].max())
    end = errors[errors["iteration"] == steps]
    late = errors[errors["iteration"] > steps / 2]
    ratio = (
        (errors["error"] / errors["allowed"])
        .groupby(errors["replicate"])
        .max()
    )
    means = {
        key: float(end[key].mean()) for key in ("gap", "start", "curvature")
    }
    return {
        **interval("error", end["error"]),
        "allowed": float(end["allowed"].mean()),
        "rho": float(ratio.mean()),
        **interval("exponent", slopes(late, "iteration", "error")),
        "step_exponent": slopes(late, "iteration", "allowed")[0],
        **means,
        "width": float(end["width"].mean()),
        "nodes": int(end["nodes"].iloc[0]),
        "steps": steps,
    }


def sketch(swept: pd.DataFrame) -> pd.DataFrame:
    """Exponents in m at the largest n, and in n at Table IV's m, of errors by a sketch.

    ``ratio`` is the error at the largest size over that without a sketch. Means are
    over draws of the data.
    """
    rows = Rows()
    largest = swept[swept["n"] == swept["n"].max()]
    for quantity, (along, paper) in QUANTITIES.items():
        errors = (
            largest[~largest["table"]]
            if along == "m"
            else swept[swept["table"]]
        )
        end = errors[errors[along] == errors[along].max()]
        row = {"quantity": quantity, "along": along, "paper": paper}
        row |= interval("exponent", slopes(errors, along, quantity))
        rows.append(
            row | interval("ratio", end[quantity] / end["plain_noise"])
        )
    return pd.DataFrame(rows)
