"""Rows of runs, put together: means with intervals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dperm import schema
from dperm.pipeline import digests
from dperm.pipeline.plan import at_problem
from dperm.pipeline.results import load_sweep
from dperm.present.intervals import student

DATA = "data"  # the data set of a problem: what is drawn again for intervals
KEYS = ["problem", "solver", "epsilon", "tuning", "public_scales"]
COLUMNS = [
    *("problem", "algorithm", "epsilon", "tuning", "public_scales", "mean", "ci_low"),
    *(
        "ci_high",
        "median",
        "seconds",
        "test_metric",
        "test_mean",
        "true_epsilon",
        "solver",
    ),
    *("test_ci_low", "test_ci_high", "runs", "settings", "given", "status", "reason"),
    DATA,
]


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for every problem, method, epsilon, tuning and kind of scales.

    Gaps have one row each, without numbers.
    """
    found = []
    if "epsilon" in rows:
        ran = rows[rows["epsilon"].notna()]
        for keys, group in ran.groupby(KEYS, sort=False):
            known = dict(zip(KEYS, keys, strict=True))  # type: ignore[call-overload]
            found.append({**known, **_mean(group)})
        rows = rows[rows["epsilon"].isna()]
    for row in rows.to_dict("records"):
        found.append({key: row.get(key) for key in (*KEYS, "status", "reason")})
    table = pd.DataFrame(found)
    labels = {name: label(name) for name in table["solver"].unique()}
    return table.assign(algorithm=table["solver"].map(labels)).reindex(columns=COLUMNS)


def _mean(group: pd.DataFrame) -> dict[str, Any]:
    status = group["status"].iloc[0]
    if status != "ok":
        return {"status": status, "reason": group["reason"].iloc[0]}
    known = group["setting"].dropna().unique()
    settings = "; ".join(sorted(known)[:1]) if group["tuning"].iloc[0] != "paid" else ""
    return {**numbers(group), "status": "ok", "settings": settings}


def numbers(group: pd.DataFrame) -> dict[str, Any]:
    """Means of the runs of a setting with 95 % intervals, and their true epsilon."""
    errors = group["relative_error"].dropna().to_numpy()
    mean, low, high = interval(errors)
    first = group.iloc[0]
    found: dict[str, Any] = {
        "mean": mean, "ci_low": low, "ci_high": high,
        "median": float(np.median(errors)),
        "runs": len(errors),
        "seconds": group["seconds"].mean(), "true_epsilon": first["true_epsilon"],
        "given": first["given"],
    }  # fmt: skip
    if "test" in group:
        tests = group[group["test_metric"].notna()]
        if len(tests):
            mean, low, high = interval(tests["test"].to_numpy())
            metric = tests["test_metric"].iloc[0]
            found |= {"test_metric": metric, "test_mean": mean, "test_ci_low": low,
                      "test_ci_high": high}  # fmt: skip
    return found


def label(solver: str) -> str:
    """What a solver's YAML calls it."""
    return digests.solver_of(solver).label


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean and Student's 95 % interval; infinite where a value is."""
    if not len(values) or not np.isfinite(values).all():
        return math.inf, math.inf, math.inf
    low, high = student(values)
    return float(values.mean()), float(low), float(high)


def contest(config: schema.Config) -> pd.DataFrame:
    """The means of the sweep ``contest``, with the data set of every problem."""
    table = means(load_sweep(config, "contest"))
    known = {name: at_problem(config, name).problem.dataset.name
             for name in table["problem"].unique()}  # fmt: skip
    return table.assign(**{DATA: table["problem"].map(known)})
