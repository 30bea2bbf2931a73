"""Parts of DP-CD's gain: what each choice of Algorithm 1 is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from dperm.present.intervals import student, t_quantile

KEYS = ["problem", "calibration", "order", "iterate", "thresholds"]
Rows = list[dict[str, Any]]

PRINTED = {
    "DP-CD, Algorithm 1": {
        "order": "uniform",
        "iterate": "ten averages",
        "thresholds": "scaled",
    },
    "DP-CD, Algorithm 1, one average": {
        "order": "uniform",
        "iterate": "one average",
        "thresholds": "scaled",
    },
    "DP-CD": {"order": "cyclic", "iterate": "last", "thresholds": "scaled"},
}
THRESHOLDS = {
    "DP-CD": PRINTED["DP-CD"],
    "DP-CD, one threshold": {**PRINTED["DP-CD"], "thresholds": "equal"},
}
# From Algorithm 1 with one threshold to what the experiments run, a part at a time.
START = {"order": "uniform", "iterate": "ten averages", "thresholds": "equal"}
STEPS = (
    ("a threshold for each coordinate", "thresholds", "scaled"),
    ("the last iterate", "iterate", "last"),
    ("a fixed cycle", "order", "cyclic"),
)


def of(swept: pd.DataFrame, problems: list[str]) -> pd.DataFrame:
    """The rows that have an error, of some problems."""
    table = swept[swept["problem"].isin(problems)]
    return table.dropna(subset="relative_error") if "relative_error" in table else table


def chosen(swept: pd.DataFrame, choice: Mapping[str, str]) -> pd.DataFrame:
    """The rows of one choice."""
    mask = np.all([swept[key] == value for key, value in choice.items()], axis=0)
    return swept[mask]


def mean(rows: pd.DataFrame) -> dict[str, float]:
    """Mean of the relative error, its 95 % interval and the number of runs."""
    values = rows["relative_error"].to_numpy()
    low, high = student(values) if np.isfinite(values).all() else (math.nan, math.inf)
    return {"mean": values.mean(), "ci_low": low, "ci_high": high, "runs": len(values)}


def ratio(before: np.ndarray, after: np.ndarray) -> tuple[float, float, float]:
    """Ratio of two means with its 95 % interval, by their logarithms (delta method).

    0 where a run after diverged.
    """
    if not np.isfinite(after).all():
        return 0.0, 0.0, math.nan
    logs, freedom = math.log(before.mean() / after.mean()), len(before) + len(after) - 2
    variance = sum(v.var(ddof=1) / len(v) / v.mean() ** 2 for v in (before, after))
    half = t_quantile(freedom) * math.sqrt(variance)
    return math.exp(logs), math.exp(logs - half), math.exp(logs + half)


def chain(sgd: np.ndarray, swept: pd.DataFrame) -> Rows:
    """From DP-SGD to DP-CD: the factor of each part, and of all.

    Parameters
    ----------
    sgd : ndarray
        Fresh errors of DP-SGD.
    swept : DataFrame
        Rows of the sweep, of one problem and calibration.
    """
    at, rows, before = dict(START), [], sgd
    for name, key, value in (("steps by coordinate", "order", "uniform"), *STEPS):
        at[key] = value
        after = chosen(swept, at)["relative_error"].to_numpy()
        if len(after) < 2:
            return []
        alone = math.nan if at == START else worth(swept, key, START[key], value)
        rows.append(_row(name, before, after) | {"alone": alone})
        before = after
    return [*rows, _row("all", sgd, before) | {"alone": math.nan}]


def _row(name: str, before: np.ndarray, after: np.ndarray) -> dict[str, Any]:
    factor, low, high = ratio(before, after)
    return {
        "part": name,
        "before": before.mean(),
        "after": after.mean(),
        "factor": factor,
        "ci_low": low,
        "ci_high": high,
    }


def worth(swept: pd.DataFrame, key: str, before: str, after: str) -> float:
    """Error of one value of a key over that of another, on average over all others."""
    others = [name for name in KEYS if name != key]
    means = swept.groupby([*others, key])["relative_error"].mean().unstack(key)
    return float(np.exp(np.log(means[before] / means[after]).mean()))
