"""What runs of Theorem 4.2 at its own parameters say: rates, orders, the control."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dperm.papers.dpskgd.directions import agrees
from dperm.present.intervals import Measured, compared, power, student, verdict, widest

Rows = list[dict[str, Any]]
BASE, AGAIN = "single", "single again"  # of theorem42, which wakes the solvers
CONTROL = "control: one law twice"
AXES = {"n": "epsilon", "epsilon": "n"}  # and what is held along it
PROBLEM = ["instance", "case", "n", "epsilon"]
KNOWN = [
    *("d", "true_epsilon", "inner", "periods", "epochs", "row", "bound", "proved"),
    *("start", "start_over_bound", "n_needed", "steps", "expected"),
]
FEWEST = 4  # points of a fit
RUNS = (3, 6, 10, 20, 30, 60)


def beside_bounds(swept: pd.DataFrame) -> Rows:
    """Excess at the theorem's parameters beside its bound, by problem and sampling.

    Where K or T is below 1 there is no excess: the theorem does not apply.
    """
    rows: Rows = []
    keys = ["instance", "case", "sampling", "n", "epsilon"]
    for key, group in swept.groupby(keys, sort=False):
        excess = group["excess"].dropna().to_numpy()
        mean, low, high = math.nan, math.nan, math.nan
        if len(excess):
            mean, (low, high) = excess.mean(), student(excess)
        rows.append({**dict(zip(keys, key, strict=True)),
                     **group[KNOWN].iloc[0].to_dict(), "excess": mean, "ci_low": low,
                     "ci_high": high, "runs": len(excess)})  # fmt: skip
    return rows


def exponents(swept: pd.DataFrame) -> Rows:
    """Exponents in n and in epsilon of what was measured, expected and bounded.

    Fitted where the bound is below the excess of w = 0, to the means over the
    transcripts, by least squares in logarithms: Student's interval holds their noise
    and the departure from a power law. ``theorem`` is the exponent without logarithms,
    ``bound`` that of the bound on the same points.
    """
    means = pd.DataFrame(beside_bounds(swept)).dropna(subset="excess")
    means = means[means["start_over_bound"] >= 1]
    rows: Rows = []
    for axis, held in AXES.items():
        keys = ["instance", "case", "sampling", held]
        for key, group in means.groupby(keys, sort=False):
            if len(group) < FEWEST:
                continue
            x = group[axis].to_numpy(float)
            slope, low, high = power(x, group["excess"].to_numpy())
            named = dict(zip(keys[:-1], key[:-1], strict=True))
            local = {name: power(x, group[name].to_numpy())[0]
                     for name in ("bound", "expected")}  # fmt: skip
            share = group["excess"] / group["start"]
            rows.append({"axis": axis, **named, "exponent": slope, "ci_low": low,
                         "ci_high": high, **local,
                         "theorem": -1 if named["case"] == "convex" else -2,
                         "points": len(group), "runs": int(group["runs"].min()),
                         "least_share": share.min(),
                         "largest_share": share.max()})  # fmt: skip
    return rows


def orders(swept: pd.DataFrame, keys: list[str]) -> Rows:
    """Every sampling against single uniform draws, and what Table 1's rows say of it.

    The control is the same law on other seeds. ``band`` is the widest ratio of the
    controls of the whole sweep; inside it nothing is decided. ``predicted`` is the
    ratio of the rows, ``predicted_tight`` that to DP-CD's row.

    Parameters
    ----------
    swept : DataFrame
        Rows of the sweep of the theorem; those without an excess are left out.
    keys : list of str
        Columns that make a problem.
    """
    found = swept.dropna(subset="excess")
    rows = [
        {**dict(zip(keys, key, strict=True)), **row}
        for key, group in found.groupby(keys, sort=False)
        for row in _against_base(group)
    ]
    band = widest([row["ratio"] for row in rows if row["question"] == CONTROL])
    for row in rows:
        row["band"] = 1.0 if row["question"] == CONTROL else band
        row["verdict"] = verdict(row, row["band"])
        row["right"] = agrees(row["predicted"], row["verdict"])
        row["right_tight"] = agrees(row["predicted_tight"], row["verdict"])
    return rows


def _against_base(group: pd.DataFrame) -> Rows:
    by = dict(list(group.groupby("sampling", sort=False)))
    if BASE not in by:
        return []
    base = by.pop(BASE)
    return [
        {"question": CONTROL if name == AGAIN else "against single uniform draws",
         "first": name, "second": BASE, **compared(_measured(part), _measured(base)),
         "expected": _first(part, "expected") / _first(base, "expected"),
         "predicted": _first(part, "row") / _first(base, "row"),
         "predicted_tight": _first(part, "tight") / _first(base, "tight"),
         "start_over_bound": min(_first(each, "start_over_bound")
                                 for each in (part, base))}
        for name, part in by.items()
    ]  # fmt: skip


def _first(part: pd.DataFrame, name: str) -> float:
    return float(part[name].iloc[0])


def _measured(part: pd.DataFrame) -> Measured:
    """No setting was tuned: the spread of the transcripts is all there is."""
    logs = np.log(part["excess"].to_numpy())
    size = len(logs)
    return Measured(float(logs.mean()), float(logs.var(ddof=1)) / size, 0.0, size, size)


def by_row(rows: Rows) -> Rows:
    """How often each row of Table 1 has the direction right, by case and instance.

    Where both bounds are below the excess of w = 0; a row that predicts no difference
    is neither right nor wrong.
    """
    asked = pd.DataFrame([
        row for row in rows
        if row["question"] != CONTROL and row["start_over_bound"] >= 1
    ])  # fmt: skip
    found: Rows = []
    if asked.empty:
        return found
    for key, group in asked.groupby(["case", "instance", "first"], sort=False):
        found.append(
            {"case": key[0], "instance": key[1], "first": key[2],
             "ratio": _mean(group["ratio"]), "predicted": _mean(group["predicted"]),
             "predicted_tight": _mean(group["predicted_tight"]),
             **{kind: int((group["verdict"] == kind).sum())
                for kind in ("helps", "hurts", "undecided")},
             **{name: _share(group[name]) for name in ("right", "right_tight")}}
        )  # fmt: skip
    return found


def _share(said: pd.Series) -> str:
    right, wrong = ((said == each).sum() for each in ("yes", "no"))
    return f"{right} of {right + wrong}"


def _mean(ratios: pd.Series) -> float:
    return float(np.exp(np.log(ratios).mean()))


def enough(swept: pd.DataFrame, keys: list[str]) -> Rows:
    """The band of the controls, and what stays undecided, with fewer transcripts.

    Each is a mean over the disjoint parts of so many transcripts that there are.
    """
    most = int(swept["draw"].max()) + 1
    rows: Rows = []
    for runs in (each for each in RUNS if each <= most):
        parts = [
            orders(swept[swept["draw"].between(low, low + runs - 1)], keys)
            for low in range(0, most - runs + 1, runs)
        ]
        bands = [max(row["band"] for row in part) for part in parts]
        undecided = [
            np.mean([row["verdict"] == "undecided" for row in part
                     if row["question"] != CONTROL]) for part in parts
        ]  # fmt: skip
        low, high = student(np.array(bands))
        rows.append({"transcripts": runs, "band": float(np.mean(bands)),
                     "ci_low": low, "ci_high": high,
                     "undecided": float(np.mean(undecided))})  # fmt: skip
    return rows
