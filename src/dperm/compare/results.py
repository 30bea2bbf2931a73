"""The results of a race: means with intervals, and text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from dperm.compare.race import COLUMNS
from dperm.present.tables import number, with_interval

KEYS = ["problem", "solver", "epsilon", "tuning"]
OF_TRY = [  # columns of try.csv
    *("algorithm", "tuning", "epsilon", "true_epsilon", "mean", "ci_low", "ci_high"),
    *("metric", "test", "seconds", "setting", "given", "solver", "status", "reason"),
]
ENDS = {"constant": "the best constant", "no privacy": "without privacy"}


def means(runs: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """A row for each problem, method, epsilon and tuning, and for each gap.

    ``mean`` is that of the excess, with Student's interval; ``test`` is the mean of the
    held-out metric; ``algorithm`` is the method's label, or its name if it has none.
    Both ends have one row a problem, and no epsilon.
    """
    table, known = [], {**labels, **ENDS}
    runs = runs.reindex(columns=COLUMNS)
    for _, some in runs.groupby(KEYS, sort=False, dropna=False):
        first = some.iloc[0].drop(["excess", "run_seed"]).to_dict()
        row = {"algorithm": known.get(first["solver"], first["solver"]), **first}
        if row["status"] == "ok":
            row |= {key: some[key].mean() for key in ("seconds", "test")}
            row |= _interval(some["excess"].to_numpy(dtype=float))
        table.append(row)
    return pd.DataFrame(table)


def _interval(values: np.ndarray) -> dict[str, float]:
    """Mean and Student's 95 % interval; infinite if any value is not finite."""
    if np.isfinite(values).all():
        return with_interval(values)
    return dict.fromkeys(("mean", "ci_low", "ci_high"), np.inf)


def recommended(table: pd.DataFrame) -> Iterator[str]:
    """For each epsilon and tuning the method to take, or that none beats a constant.

    Parameters
    ----------
    table : DataFrame
        Of ``means``, for one problem.
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


# --- text -----------------------------------------------------------------------------


def words(table: pd.DataFrame) -> str:
    """Text of a table of ``means``, and what is recommended."""
    shown = pd.DataFrame([_line(row) for row in table.to_dict("records")]).fillna("")
    shown = shown.apply(lambda column: column.str.ljust(column.str.len().max()))
    given = table[table["given"].notna()].drop_duplicates("algorithm")
    public = [
        f"epsilon of {', '.join(some['algorithm'])} holds given: {what}"
        for what, some in given.groupby("given", sort=False)
    ]
    return "\n".join(
        [shown.to_string(index=False, justify="left"), "", *recommended(table), *public]
    )


def _line(row: dict[Any, Any]) -> dict[str, str]:
    ran, has_epsilon = row["status"] == "ok", pd.notna(row["epsilon"])
    ends = f"[{number(row['ci_low'])}, {number(row['ci_high'])}]" if ran else ""
    return {
        "method": row["algorithm"],
        "tuning": row["tuning"] if has_epsilon else "",
        "epsilon": number(row["epsilon"]),
        "excess": number(row["mean"]) if ran else "",
        "95 % interval": ends if has_epsilon else "",
        "true epsilon": number(row["true_epsilon"], 4),
        "held out": f"{row['metric']} {number(row['test'])}" if ran else "",
        "setting": row["setting"] if ran else row["reason"],
        "seconds a fit": number(row["seconds"], 2),
    }
