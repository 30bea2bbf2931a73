"""Exponents of the excess risk and of time, and from where on there is one to fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dperm.present.intervals import student

BELOW = 0.5  # of the initial excess: above it nothing has been learnt
LEAST_POINTS = 3
FITTED = ("exponent", "ci_low", "ci_high", "from", "to", "runs")


def interval(values: np.ndarray) -> tuple[float, float]:
    """Student's 95 % interval of a mean; not a number where one run gives none."""
    return student(values) if len(values) > 1 else (math.nan, math.nan)


def by_replicate(table: pd.DataFrame, axis: str, column: str) -> np.ndarray:
    """Slope in logarithms of each replicate that was run at every value of the axis.

    Parameters
    ----------
    table : DataFrame
        Columns replicate, ``axis`` and ``column``; several rows of a replicate at one
        value are averaged.

    Returns
    -------
    ndarray (replicates,)
    """
    wide = table.pivot_table(index="replicate", columns=axis, values=column).dropna()
    logs = np.log(np.maximum(wide.to_numpy(), 1e-300))
    return np.polyfit(np.log(wide.columns.to_numpy(float)), logs.T, 1)[0]


def of_risk(table: pd.DataFrame, axis: str, value: str = "share") -> dict[str, Any]:
    """Exponent of the excess risk in an axis, where it is below half the initial one.

    Each replicate gives a slope of its own; the interval is Student's. Without three
    values of the axis, or two replicates that have them all, ``reason`` says so and
    nothing is fitted. ``value`` is what is fitted, ``share`` or ``excess``.
    """
    means = table.groupby(axis)["share"].mean()
    kept = means.index[means < BELOW]
    nothing = dict.fromkeys(FITTED)
    if len(kept) < LEAST_POINTS:
        return nothing | {"reason": f"{len(kept)} of {len(means)} below half"}
    slopes = by_replicate(table[table[axis].isin(kept)], axis, value)
    if len(slopes) < 2:
        return nothing | {"reason": f"{len(slopes)} run"}
    low, high = interval(slopes)
    ends = float(min(kept)), float(max(kept))
    found = (float(slopes.mean()), low, high, *ends, len(slopes))
    return dict(zip(FITTED, found, strict=True)) | {"reason": ""}


def of_dimension(table: pd.DataFrame, value: str = "share") -> dict[str, Any]:
    """Exponent of d at the largest n that gives one; else what the largest n lacks."""
    sizes = sorted(table["n"].unique(), reverse=True)
    found = [of_risk(table[table["n"] == n], "d", value) for n in sizes]
    fitted = [k for k in range(len(sizes)) if not found[k]["reason"]]
    at = fitted[0] if fitted else 0
    return {"n": sizes[at]} | found[at]


def of_time(table: pd.DataFrame, start: float = 1e4) -> tuple[float, float, float]:
    """Exponent of time in n, from ``start`` on (or everywhere), with its interval."""
    late = table[table["n"] >= start]
    slopes = by_replicate(late if late["n"].nunique() > 1 else table, "n", "seconds")
    return (float(slopes.mean()), *interval(slopes))


def start(means: pd.Series) -> dict[str, float | None]:
    """Smallest n from which the mean share stays below half; else an extrapolation.

    Parameters
    ----------
    means : Series
        Mean share of the initial risk, by n.
    """
    above = means.index[means >= BELOW]
    later = means.index[means.index > (above.max() if len(above) else 0)]
    if len(later):
        return {"starts": float(later.min()), "extrapolated": None}
    if len(means) < 2:
        return {"starts": None, "extrapolated": None}
    (n0, n1), (y0, y1) = means.index[-2:], np.log(means.iloc[-2:])
    if y1 >= y0 - 0.05:
        return {"starts": None, "extrapolated": None}
    rate = (y1 - y0) / math.log(n1 / n0)
    reached = n1 * math.exp((math.log(BELOW) - y1) / rate)
    return {"starts": None, "extrapolated": float(reached)}
