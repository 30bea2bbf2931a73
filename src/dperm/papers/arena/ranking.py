"""Ranking of methods: shares of rank, regrets, recommendations.

A cell is a problem at an epsilon, known with its loss and its range of n epsilon / p.
Methods that cannot do a problem have no rank in its cells: a gap is not a bad score. A
share of rank is 0 for the best of a cell and 1 for the worst. A *regret* is an excess
above the least of the cell, where excesses from 2 on count as 2. Intervals resample
data sets, because a user's data set is a further one, and problems that share their
records are not independent evidence.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from dperm.benchmark.race import REFERENCES, TUNINGS

RESAMPLES = 1000
DRAWS = 200
SEED = 7  # of resampling
WORST = 2.0  # larger excesses count as this: twice as far as the best constant
LEVEL = 0.95
LOSSES = ("logistic", "least_squares")
EDGES = (0.0, 30.0, 100.0, 300.0, 1000.0, math.inf)  # of n epsilon / p
BUDGETS = tuple(itertools.pairwise(EDGES))
LEADERS = 4  # methods of which a rule with a threshold may take two
LEFT_OUT = "left out"  # a tuning: the setting that other data sets choose
CONSTANT = REFERENCES["constant"]  # beside the methods, with an excess of 1
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
    mean_ranks = (
        errors.dropna(axis=1).rank(axis=1).groupby(level="data").mean()
    )
    n, k = mean_ranks.shape
    ranks = mean_ranks.mean().sort_values()
    if n < 2 or k < 2:
        return ranks, math.nan
    q = float(stats.studentized_range.ppf(LEVEL, k, math.inf)) / math.sqrt(2)
    return ranks, q * math.sqrt(k * (k + 1) / (6 * n))


# --- how much a choice changes --------------------------------------------------------


def changes(
    table: pd.DataFrame, tuning: str = LEFT_OUT
) -> Iterator[dict[str, Any]]:
    """Agreement of the ranking with that of every other choice, one changed at a time.

    The ranking uses defaults that other data sets choose, all epsilons and the excess
    of the fitted records.
    """
    base = cells(table, tuning)
    others = [name for name in (*TUNINGS, LEFT_OUT) if name != tuning]
    choices = [("tuning", name, cells(table, name)) for name in others]
    choices += [
        ("epsilon", f"{epsilon:g}", cells(table, tuning, epsilon))
        for epsilon in sorted(table["epsilon"].dropna().unique())
    ]
    metrics = table.assign(held_out=-table["test"])
    held_out_excesses = cells(metrics, tuning, value="held_out")
    choices.append(("metric", "held out", held_out_excesses))
    for choice, name, changed_cells in choices:
        if len(changed_cells):
            base_share, changed_share = (
                standing(excesses).set_index("algorithm")["share"]
                for excesses in (base, changed_cells)
            )
            methods = [
                name
                for name in base_share.index
                if name in changed_share.index
            ]
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


def groups(
    table: pd.DataFrame,
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield the cells of each loss and range of n epsilon / p."""
    losses, ranges = (
        table.index.get_level_values(key) for key in ("loss", "range")
    )
    for loss in LOSSES:
        for k, (low, high) in enumerate(BUDGETS):
            group = table[(losses == loss) & (ranges == k)]
            if len(group):
                yield {"loss": loss, "from": low, "to": high}, group


def advice(errors: pd.DataFrame) -> list[dict[str, Any]]:
    """Recommended method for each kind of problem, and the evidence for it."""
    rows = []
    for problem_class, group in groups(regrets(errors)):
        means = expected(group)
        row = {
            **problem_class,
            "take": means.index[0],
            "regret": means.iloc[0],
        }
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
    for problem_class, group in groups(regrets(errors)):
        group = group[expected(group).index]
        by_data = [*group.groupby(level="data", sort=False).indices.values()]
        drawn = rng.integers(len(by_data), size=(DRAWS, len(by_data)))
        winners = pd.Series([
            expected(group.iloc[np.concatenate([by_data[k] for k in draw])]).index[0]
            for draw in drawn
        ])  # fmt: skip
        rows += [
            {**problem_class, "algorithm": name, "share": share,
             "regret": group[name].mean(), "data_sets": len(by_data)}
            for name, share in winners.value_counts(normalize=True).items()
        ]  # fmt: skip
    return pd.DataFrame(rows)


def curves(errors: pd.DataFrame) -> list[dict[str, Any]]:
    """What each method loses, by loss and range, with its interval over data sets.

    Of the methods that do at least half of a range's cells; excesses from ``WORST`` on
    count as that.
    """
    rows = []
    for problem_class, group in groups(errors.clip(upper=WORST)):
        for name, column in group.items():
            losses = column.dropna()
            if len(losses) >= len(group) / 2:
                row = {
                    **problem_class,
                    "algorithm": name,
                    **_mean("mean", losses),
                }
                row["data_sets"] = losses.index.get_level_values(
                    "data"
                ).nunique()
                rows.append(row)
    return rows


# --- rules ----------------------------------------------------------------------------

# methods in each range, of which the first that can
Rule = Sequence[Sequence[str]]


def model(
    errors: pd.DataFrame, shipped: Mapping[str, Sequence[str]] | None = None
) -> list[dict[str, Any]]:
    """Regret of every rule that takes a method, mostly on held-out data sets.

    One row for each loss and rule, with the mean over cells, its interval over data
    sets, the regret of the worst cell and the share of cells that end above the best
    constant although some method does not. The other data sets choose *by range* a
    method for each range, *by loss* one for all, and *by threshold* one below and one
    above an edge of the ranges. *constant* and *always ...* are fixed, and *dperm.fit*
    is the rule of ``shipped``: a method for each range, by loss.
    """
    table = regrets(errors)
    rows = []
    for loss in LOSSES:
        mine = table[table.index.get_level_values("loss") == loss]
        if mine.empty:
            continue
        ways = {
            "by range": by_range,
            "by loss": by_loss,
            "by threshold": by_threshold,
        }
        outcomes = {
            way: held_out(mine, choose) for way, choose in ways.items()
        }
        outcomes["constant"] = taken(mine, [[CONSTANT]] * len(BUDGETS))
        if shipped:
            fixed = [[name] for name in shipped[loss]]
            outcomes["dperm.fit"] = taken(mine, fixed)
        for name in mine.columns[mine.notna().mean() >= 0.5].drop(
            CONSTANT, "ignore"
        ):
            outcomes[f"always {name}"] = taken(mine, [[name]] * len(BUDGETS))
        for way, column in outcomes.items():
            if len(column):
                above = column > mine[CONSTANT].reindex(column.index)
                row = {"loss": loss, "choice": way, **_mean("regret", column)}
                row["data_sets"] = column.index.get_level_values(
                    "data"
                ).nunique()
                row["worst"] = column.max()
                rows.append({**row, "above_constant": float(above.mean())})
    return rows


def held_out(table: pd.DataFrame, choose: Any) -> pd.Series:
    """Regrets of the rule that the other data sets choose; empty if there are none."""
    data_sets = table.index.get_level_values("data")
    parts = []
    for name in dict.fromkeys(data_sets):
        training = table[data_sets != name]
        if len(training):
            parts.append(taken(table[data_sets == name], choose(training)))
    return pd.concat(parts) if parts else pd.Series(dtype=float)


def taken(table: pd.DataFrame, rule: Rule) -> pd.Series:
    """The regret of a rule in every cell; of the constant where none of its can."""
    chosen = {}
    for cell, row in table.iterrows():
        order = rule[dict(zip(CELL, cell, strict=True))["range"]]
        able = [name for name in order if pd.notna(row.get(name))]
        chosen[cell] = row[able[0] if able else CONSTANT]
    return pd.Series(chosen, dtype=float).rename_axis(CELL)


def by_loss(training: pd.DataFrame) -> Rule:
    """One order of methods for all ranges."""
    return [[*expected(training).index]] * len(BUDGETS)


def by_range(training: pd.DataFrame) -> Rule:
    """An order for each range, and that of all where it has no cells."""
    ranges = training.index.get_level_values("range")
    rule = by_loss(training)
    return [
        [*expected(training[ranges == k]).index]
        if (ranges == k).any()
        else rule[k]
        for k in range(len(BUDGETS))
    ]


def by_threshold(training: pd.DataFrame) -> Rule:
    """The best pair of methods, one below and one above an edge of the ranges."""
    leaders = expected(training).index[:LEADERS]
    filled = training[leaders].apply(
        lambda column: column.fillna(training[CONSTANT])
    )
    ranges = training.index.get_level_values("range").to_numpy()
    rest = [*expected(training).index]
    least = math.inf
    rule: Rule = []
    for low, high in itertools.product(leaders, repeat=2):
        for edge in range(1, len(BUDGETS)):
            regret = np.where(ranges < edge, filled[low], filled[high]).mean()
            if regret < least:
                least = regret
                below = [[low, *rest]] * edge
                rule = [*below, *[[high, *rest]] * (len(BUDGETS) - edge)]
    return rule
