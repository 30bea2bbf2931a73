"""The results of a race: means with intervals, text and figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dperm.compare.race import COLUMNS
from dperm.present.intervals import student

if TYPE_CHECKING:
    pass

KEYS = ["problem", "solver", "epsilon", "tuning"]
OF_TRY = [  # columns of try.csv
    *("algorithm", "tuning", "epsilon", "true_epsilon", "mean", "ci_low", "ci_high"),
    *("metric", "test", "seconds", "setting", "given", "solver", "status", "reason"),
]
LOOKS = {"default": ("o", "#0072B2"), "grid": ("D", "#D55E00")}
LEAST = 1e-3  # smaller excesses are drawn as this


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """A row for each problem, method, epsilon and tuning, and for each gap.

    ``mean`` is that of the excess, with Student's interval; ``test`` is the mean of the
    held-out metric. Both ends have one row a problem, and no epsilon.
    """
    table = []
    runs = runs.reindex(columns=COLUMNS)
    for _, some in runs.groupby(KEYS, sort=False, dropna=False):
        row = some.iloc[0].drop(["excess", "run_seed"], errors="ignore").to_dict()
        if row["status"] == "ok":
            row["seconds"], row["test"] = some["seconds"].mean(), some["test"].mean()
            row |= dict(zip(("mean", "ci_low", "ci_high"), interval(some["excess"]),
                            strict=True))  # fmt: skip
        table.append(row)
    return pd.DataFrame(table)


def interval(values: Any) -> tuple[float, float, float]:
    """Mean and Student's 95 % interval; infinite if any value is not finite."""
    values = np.asarray(values, dtype=float)
    if not np.isfinite(values).all():
        return np.inf, np.inf, np.inf
    low, high = student(values)
    return float(values.mean()), float(low), float(high)


def recommended(table: pd.DataFrame) -> Iterator[str]:
    """For each epsilon and tuning the method to take, or that none beats a constant.

    Parameters
    ----------
    table : DataFrame
        Of ``means``, for one problem, with the column ``algorithm``.
    """
    table = table[table["epsilon"].notna() & (table["status"] == "ok")]
    for (epsilon, tuning), some in table.groupby(["epsilon", "tuning"], sort=False):
        some = some.sort_values("mean")
        first = some.iloc[0]
        level = (
            f"{first['algorithm']}, excess {first['mean']:.3g} "
            f"[{first['ci_low']:.3g}, {first['ci_high']:.3g}]"
        )
        near = some["algorithm"][some["ci_low"] <= first["ci_high"]].tolist()[1:]
        equal = f"; not significantly worse: {', '.join(near)}" if near else ""
        what = f"take {level}{equal}"
        if not first["ci_high"] < 1:
            what = f"none beats the best constant; least is {level}"
        yield f"epsilon {epsilon:g}, {tuning}: {what}"
