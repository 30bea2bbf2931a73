"""Tables of methods that were compared over data sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dperm.benchmark.race import REFERENCES
from dperm.config.config import read
from dperm.config.schema import Paper
from dperm.experiments import plan
from dperm.experiments.inputs import Inputs
from dperm.numerics.intervals import clopper_pearson, student
from dperm.plotting.tables import Rows, groups, named, where


def ran(swept: pd.DataFrame, only: str = "") -> pd.DataFrame:
    """Rows of sweeps that have ended, of those that ``only`` selects."""
    swept = where(swept, status="ok")
    return swept.query(only) if only else swept


def label(paper: Paper, inputs: Inputs, solver: str) -> str:
    """The name of a solver, or of one of the baselines, in figures and tables."""
    if solver in REFERENCES:
        return REFERENCES[solver]
    return plan.label(paper, read("solver", solver, inputs.overrides))


def among(table: pd.DataFrame, **keys: Any) -> pd.DataFrame:
    """The rows that have these values, or none, as baselines have no epsilon."""
    for name, key in keys.items():
        table = table[(table[name] == key) | table[name].isna()]
    return table


def wins(
    swept: pd.DataFrame,
    paper: Paper,
    inputs: Inputs,
    metric: str,
    method: str,
    others: Sequence[str],
    keys: Sequence[str] = ("epsilon",),
    over: str = "problem",
    is_larger_better: bool = False,
    only: str = "",
) -> pd.DataFrame:
    """On how many data sets a method is better than others, and by what factor.

    A data set is a value of ``over``; on each the means of ``metric`` over runs are
    compared. ``others`` are solvers, or the baselines ``constant`` and ``no privacy``.
    ``share`` of the data sets has Clopper and Pearson's interval, ``ratio``, the
    geometric mean of the method's metric over the other's, Student's in logarithms:
    both as if data sets were drawn. The ratio is missing where one is not positive.
    """
    table = ran(swept, only)
    rows: Rows = []
    for group_keys, runs in groups(where(table, solver=method), [*keys]):
        own = runs.groupby(over)[metric].mean()
        for other in others:
            other_runs = among(where(table, solver=other), **group_keys)
            pairs = pd.DataFrame(
                {"own": own, "other": other_runs.groupby(over)[metric].mean()}
            ).dropna()
            if pairs.empty:
                continue
            is_less = pairs["own"] < pairs["other"]
            is_more = pairs["own"] > pairs["other"]
            hits = int((is_more if is_larger_better else is_less).sum())
            count = len(pairs)
            row = group_keys | {"method": label(paper, inputs, method)}
            row |= {
                "other": label(paper, inputs, other),
                "sets": count,
                "won": hits,
            }
            row |= named(
                "share", (hits / count, *clopper_pearson(hits, count))
            )
            rows.append(row | named("ratio", _ratio(pairs)))
    return pd.DataFrame(rows)


def _ratio(pairs: pd.DataFrame) -> tuple[float, float, float]:
    """The geometric mean of own over other, with its interval; or not a number."""
    with np.errstate(all="ignore"):
        logs = np.log((pairs["own"] / pairs["other"]).to_numpy(float))
    if not np.isfinite(logs).all():
        return np.nan, np.nan, np.nan
    mean, low, high = np.exp((logs.mean(), *student(logs)))
    return float(mean), float(low), float(high)
