"""Ranking of methods: shares of rank, regrets, recommendations.

A cell is a problem at an epsilon, known with its loss and its range of n epsilon / p.
Methods that cannot do a problem have no rank in its cells: a gap is not a bad score. A
share of rank is 0 for the best of a cell and 1 for the worst. A *regret* is an excess
above the least of the cell, where excesses from 2 on count as 2. Intervals resample
data sets, because a user's data set is a further one, and problems that share their
records are not independent evidence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from dperm.compare.race import ENDS

RESAMPLES = 1000
DRAWS = 200
SEED = 7  # of resampling
WORST = 2.0  # larger excesses count as this: twice as far as the best constant
LEVEL = 0.95
LOSSES = ("logistic", "least_squares")
BUDGETS = ((0.0, 30.0), (30.0, 1000.0), (1000.0, math.inf))  # n epsilon / p
CONSTANT = ENDS["constant"]  # beside the methods, with an excess of 1
CELL = ["data", "problem", "epsilon", "loss", "range"]


def cells(
    table: pd.DataFrame,
    tuning: str = "default",
    epsilon: float | None = None,
    value: str = "mean",
) -> pd.DataFrame:
    """Excesses, one row per cell and one column per method.

    A method that cannot do a problem has nan there, a gap. One that meets the target at
    no setting has an infinite excess. The table is by ``tables.outcomes``.
    """
    runs = table[(table["tuning"] == tuning) & table["epsilon"].notna()]
    if epsilon is not None:
        runs = runs[runs["epsilon"] == epsilon]
    ends = [high for _, high in BUDGETS[:-1]]
    ranged = runs.assign(
        value=runs[value].where(runs["status"] == "ok").fillna(math.inf),
        range=np.digitize(runs["n"] * runs["epsilon"] / runs["p"], ends),
    )
    layout = {"columns": "algorithm", "values": "value", "sort": False}
    return ranged.pivot_table(index=CELL, aggfunc="first", **layout)


def shares(errors: pd.DataFrame) -> pd.DataFrame:
    """Share of rank of every method in every cell; 0 is the best, nan a gap."""
    count = errors.notna().sum(axis=1)
    ranks = errors.rank(axis=1, method="average")
    return (ranks - 1).div((count - 1).where(count > 1), axis=0)


def standing(errors: pd.DataFrame) -> pd.DataFrame:
    """Mean share of rank of every method, with its interval, best first.

    ``best`` counts the cells in which it is first, and ``learns`` is the share of those
    in which it beats the best constant.
    """
    rows = []
    for name, share in shares(errors).items():
        column = share.dropna()
        row = {"algorithm": name, **_mean("share", column)}
        row["problems"] = column.index.get_level_values("problem").nunique()
        row["best"] = int((column == 0).sum())
        row["learns"] = float((errors[name].dropna() < 1).mean())
        rows.append(row)
    return pd.DataFrame(rows).sort_values("share", ignore_index=True)


def _mean(name: str, column: pd.Series) -> dict[str, float]:
    """Mean of a column, under ``name``, its interval and the number of cells."""
    low, high = resampled(column)
    mean = float(column.mean())
    return {name: mean, "ci_low": low, "ci_high": high, "cells": len(column)}


def resampled(column: pd.Series) -> tuple[float, float]:
    """Percentile interval of a mean over cells, resampling whole data sets."""
    by_data = [group.to_numpy() for _, group in column.groupby(level="data")]
    sums = np.array([excesses.sum() for excesses in by_data])
    counts = np.array([len(excesses) for excesses in by_data])
    if len(sums) < 2:
        return math.nan, math.nan
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(len(sums), size=(RESAMPLES, len(sums)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


# --- critical differences -------------------------------------------------------------


def critical(errors: pd.DataFrame) -> tuple[pd.Series, float]:
    """Mean ranks of the methods that do all cells, and the critical difference.

    Nemenyi's critical difference at 5 % (Demsar 2006), where problems of one data set
    count as one; nan with fewer than two data sets or methods.
    """
    mean_ranks = errors.dropna(axis=1).rank(axis=1).groupby(level="data").mean()
    n, k = mean_ranks.shape
    ranks = mean_ranks.mean().sort_values()
    if n < 2 or k < 2:
        return ranks, math.nan
    q = float(stats.studentized_range.ppf(LEVEL, k, math.inf)) / math.sqrt(2)
    return ranks, q * math.sqrt(k * (k + 1) / (6 * n))


# --- how much a choice changes --------------------------------------------------------


def changes(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Agreement of the ranking with that of every other choice, one changed at a time.

    The ranking uses no tuning, all epsilons and the excess of the fitted records.
    """
    base = cells(table)
    choices = [("tuning", "grid", cells(table, "grid"))]
    choices += [
        ("epsilon", f"{epsilon:g}", cells(table, epsilon=epsilon))
        for epsilon in sorted(table["epsilon"].dropna().unique())
    ]
    held = cells(table.assign(held=-table["test"]), value="held")  # less is better
    for choice, name, changed_cells in (*choices, ("metric", "held out", held)):
        if len(changed_cells):
            base_share, changed_share = (
                standing(excesses).set_index("algorithm")["share"]
                for excesses in (base, changed_cells)
            )
            methods = [name for name in base_share.index if name in changed_share.index]
            tau = stats.kendalltau(
                base_share[methods], changed_share[methods]
            ).statistic
            row = {"kendall_tau": float(tau), "methods": len(methods)}
            yield {
                "choice": choice,
                "value": name,
                **row,
                "first": changed_share.index[0],
            }


# --- recommendations ------------------------------------------------------------------


def regrets(errors: pd.DataFrame) -> pd.DataFrame:
    """Excess of each method above the least of its cell, the best constant included."""
    capped = errors.assign(**{CONSTANT: 1.0}).clip(upper=WORST)
    return capped.sub(capped.min(axis=1), axis=0)


def expected(regret_cells: pd.DataFrame) -> pd.Series:
    """Mean regret of the methods that do at least half of the cells, least first."""
    enough = regret_cells.notna().mean() >= 0.5
    return regret_cells.loc[:, enough].mean().sort_values(kind="stable")


def groups(table: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield the cells of each loss and range of n epsilon / p."""
    losses, ranges = (table.index.get_level_values(key) for key in ("loss", "range"))
    for loss in LOSSES:
        for k, (low, high) in enumerate(BUDGETS):
            group = table[(losses == loss) & (ranges == k)]
            if len(group):
                yield {"loss": loss, "from": low, "to": high}, group


def advice(errors: pd.DataFrame) -> list[dict[str, Any]]:
    """Recommended method for each kind of problem, and the evidence for it."""
    rows = []
    for kind, group in groups(regrets(errors)):
        means = expected(group)
        row = {**kind, "take": means.index[0], "regret": means.iloc[0]}
        row |= {"second": means.index[1], "second_regret": means.iloc[1]}
        row["learns"] = float((errors.loc[group.index].min(axis=1) < 1).mean())
        problems = group.index.get_level_values("problem").nunique()
        rows.append({**row, "cells": len(group), "problems": problems})
    return rows


def picks(errors: pd.DataFrame) -> pd.DataFrame:
    """How often each method is taken when the data sets are resampled.

    One row for each loss, range of n epsilon / p (``from``, ``to``) and method that is
    taken in some draw. It has the ``share`` of draws, the method's mean regret and the
    number of the range's ``data_sets``.
    """
    rng = np.random.default_rng(SEED)
    rows = []
    for kind, group in groups(regrets(errors)):
        group = group[expected(group).index]
        by_data = [*group.groupby(level="data", sort=False).indices.values()]
        drawn = rng.integers(len(by_data), size=(DRAWS, len(by_data)))
        winners = pd.Series([
            expected(group.iloc[np.concatenate([by_data[k] for k in draw])]).index[0]
            for draw in drawn
        ])  # fmt: skip
        rows += [
            {**kind, "algorithm": name, "share": share, "regret": group[name].mean(),
             "data_sets": len(by_data)}
            for name, share in winners.value_counts(normalize=True).items()
        ]  # fmt: skip
    return pd.DataFrame(rows)


def model(errors: pd.DataFrame) -> list[dict[str, Any]]:
    """Regret of the choice by loss and range on held-out data sets, and of two others.

    One row for each loss and way to choose, with the mean over data sets, its interval,
    the regret of the worst cell and the share of cells that end above the best constant
    although some method does not. *by loss* takes one method for all ranges.
    """
    table = regrets(errors)
    rows = []
    data_sets = table.index.get_level_values("data")
    ways = {"by range": ["loss", "range"], "by loss": ["loss"], "constant": []}
    for way, keys in ways.items():
        chosen_regret = {}
        for name in dict.fromkeys(data_sets):
            mine = table[data_sets == name]
            training = table[data_sets != name]
            for cell, row in mine.iterrows():
                order = _order(training, dict(zip(CELL, cell, strict=True)), keys)
                able = [method for method in order if pd.notna(row[method])]
                if able:
                    chosen_regret[cell] = row[able[0]]
        if not chosen_regret:  # each loss has a single data set
            continue
        column = pd.Series(chosen_regret).rename_axis(CELL)
        above = column > table[CONSTANT].reindex(column.index)
        for loss in LOSSES:
            regret_of_loss = column[column.index.get_level_values("loss") == loss]
            if len(regret_of_loss):
                row = {"loss": loss, "choice": way, **_mean("regret", regret_of_loss)}
                worse = float(above[regret_of_loss.index].mean())
                rows.append(
                    {**row, "worst": regret_of_loss.max(), "above_constant": worse}
                )
    return rows


def _order(training: pd.DataFrame, cell: dict[str, Any], keys: list[str]) -> list[str]:
    """Methods by expected regret where these keys are the same, or the loss alone.

    Without keys it is the constant.
    """
    if not keys:
        return [CONSTANT]
    levels = training.index.to_frame()
    for level_names in (keys, ["loss"]):
        same = (
            (levels[level_names] == pd.Series(cell)[level_names]).all(axis=1).to_numpy()
        )
        if same.any():
            return [*expected(training[same]).index]
    return []
