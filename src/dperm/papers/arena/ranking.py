"""Ranking of methods: shares of rank, regrets, recommendations.

A cell is a problem at an epsilon. Methods that cannot do a problem have no rank in its
cells: a gap is not a bad score. A share of rank is 0 for the best of a cell and 1 for
the worst. Intervals resample data sets, because a user's data set is a further one, and
problems that share their records are not independent evidence.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

RESAMPLES = 1000
SEED = 7  # of resampling
FLOOR = 1e-12  # smaller relative errors count as this
WORST = 1e6  # larger regrets count as this
LEVEL = 0.95
LEARNT = ["panel", "algorithm", "x", "mean", "min", "max", "ci_low", "ci_high", "cells"]


def cells(
    table: pd.DataFrame,
    tuning: str = "grid",
    public: bool = True,
    epsilon: float | None = None,
    value: str = "mean",
) -> pd.DataFrame:
    """Errors, one row per cell (data, problem, epsilon), one column per method.

    A method that cannot do a problem has nan there, a gap. A method that meets the
    target at no setting, or diverges, has an infinite error.
    """
    some = table[(table["tuning"] == tuning) & (table["public_scales"] == public)]
    if epsilon is not None:
        some = some[some["epsilon"] == epsilon]
    values = some[value].where(some["status"] == "ok", math.inf).fillna(math.inf)
    made = some.assign(value=values).pivot_table(
        index=["data", "problem", "epsilon"],
        columns="algorithm",
        values="value",
        sort=False,
        aggfunc="first",
        dropna=True,
    )
    return made.clip(lower=FLOOR)


def shares(errors: pd.DataFrame) -> pd.DataFrame:
    """Share of rank of every method in every cell; 0 is the best, nan a gap."""
    count = errors.notna().sum(axis=1)
    ranks = errors.rank(axis=1, method="average")
    return (ranks - 1).div((count - 1).where(count > 1), axis=0)


def standing(errors: pd.DataFrame) -> pd.DataFrame:
    """Mean share of rank of every method, with its interval, best first."""
    rows = []
    for name, share in shares(errors).items():
        column = share.dropna()
        problems = column.index.get_level_values("problem").nunique()
        row = {"algorithm": name, **_mean("share", column), "problems": problems}
        rows.append(row | {"best": int((column == 0).sum())})
    return pd.DataFrame(rows).sort_values("share", ignore_index=True)


def _mean(name: str, column: pd.Series) -> dict[str, float]:
    """Mean of a column, under ``name``, its interval and the number of cells."""
    low, high = resampled(column)
    mean = float(column.mean())
    return {name: mean, "ci_low": low, "ci_high": high, "cells": len(column)}


def resampled(column: pd.Series) -> tuple[float, float]:
    """Percentile interval of a mean over cells, resampling whole data sets."""
    by_data = [group.to_numpy() for _, group in column.groupby(level="data")]
    sums = np.array([one.sum() for one in by_data])
    counts = np.array([len(one) for one in by_data])
    if len(sums) < 2:
        return math.nan, math.nan
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(len(sums), size=(RESAMPLES, len(sums)))
    found = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(found, [tail, 1 - tail])
    return float(low), float(high)


def log_regrets(errors: pd.DataFrame) -> pd.DataFrame:
    """Log of each method's error over the least error of the cell, capped."""
    return np.log(errors.div(errors.min(axis=1), axis=0).clip(upper=WORST))


# --- critical differences -------------------------------------------------------------


def critical(errors: pd.DataFrame) -> tuple[pd.Series, float]:
    """Mean ranks of the methods that do all cells, and the critical difference.

    Nemenyi's critical difference at 5 % (Demsar 2006), where problems of one data set
    count as one; nan with fewer than two data sets or methods.
    """
    whole = errors.dropna(axis=1).rank(axis=1).groupby(level="data").mean()
    n, k = whole.shape
    ranks = whole.mean().sort_values()
    if n < 2 or k < 2:
        return ranks, math.nan
    q = float(stats.studentized_range.ppf(LEVEL, k, math.inf)) / math.sqrt(2)
    return ranks, q * math.sqrt(k * (k + 1) / (6 * n))


# --- how much a choice changes --------------------------------------------------------


def agreement(one: pd.DataFrame, other: pd.DataFrame) -> tuple[float, int]:
    """Kendall's tau between two standings, on the methods of both."""
    first, second = (
        standing(each).set_index("algorithm")["share"] for each in (one, other)
    )
    names = [name for name in first.index if name in second.index]
    if len(names) < 2:
        return math.nan, len(names)
    tau = stats.kendalltau(first[names], second[names]).statistic
    return float(tau), len(names)


def changes(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Agreement of the ranking with that of every other choice, one changed at a time.

    The ranking uses the grid, public scales, all epsilons and mean errors. For declared
    scales it uses only the epsilons at which these were run.
    """
    base = cells(table)
    others: list[tuple[str, str, dict[str, Any]]] = [
        ("tuning", name, {"tuning": name}) for name in ("default", "ten", "paid")
    ]
    others.append(("scales", "declared", {"public": False}))
    others += [
        ("epsilon", f"{epsilon:g}", {"epsilon": epsilon})
        for epsilon in sorted(table["epsilon"].dropna().unique())
    ]
    others.append(("summary", "median", {"value": "median"}))
    for choice, name, changed in others:
        other = cells(table, **changed)
        if len(other):
            mine = _at(base, other) if choice == "scales" else base
            yield {"choice": choice, "value": name, **_agreeing(mine, other)}
    if table["test_mean"].notna().any():
        other = _tested(table)
        yield {"choice": "metric", "value": "held out", **_agreeing(base, other)}


def _agreeing(mine: pd.DataFrame, other: pd.DataFrame) -> dict[str, Any]:
    """Agreement with the standing of another choice, and the method first in it."""
    tau, count = agreement(mine, other)
    first = standing(other)["algorithm"].iloc[0]
    return {"kendall_tau": tau, "methods": count, "first": first}


def _at(errors: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """The cells at another table's epsilons."""
    known = other.index.get_level_values("epsilon")
    return errors[errors.index.get_level_values("epsilon").isin(known)]


def _tested(table: pd.DataFrame) -> pd.DataFrame:
    """Cells of held-out metrics, smaller is better: 2 - AUC or 2 + RMSE."""
    sign = np.where(table["test_metric"] == "auc", -1.0, 1.0)
    turned = table.assign(tested=2.0 + sign * table["test_mean"])
    turned = turned[turned["tested"].notna() | (turned["status"] != "ok")]
    return cells(turned, value="tested")


# --- recommendations ------------------------------------------------------------------

LOSSES = ("logistic", "least squares")
BUDGETS = ((0.0, 30.0), (30.0, 1000.0), (1000.0, math.inf))  # n epsilon / p


def groups(
    errors: pd.DataFrame, sizes: pd.DataFrame
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield the cells of each loss and range of n epsilon / p.

    Parameters
    ----------
    errors : DataFrame
        From ``cells``.
    sizes : DataFrame
        n, p, loss of each problem.
    """
    losses, ranges = _kinds(errors, sizes)
    for loss, (k, (low, high)) in itertools.product(LOSSES, enumerate(BUDGETS)):
        mask = (losses == loss) & (ranges == k)
        if mask.any():
            yield {"loss": loss, "from": low, "to": high}, errors[mask]


def _kinds(errors: pd.DataFrame, sizes: pd.DataFrame) -> tuple[Any, Any]:
    """Loss of every cell, and the index of its n epsilon / p in ``BUDGETS``."""
    known = sizes.loc[errors.index.get_level_values("problem")]
    epsilon = errors.index.get_level_values("epsilon").to_numpy(dtype=float)
    n, p = (known[key].to_numpy(dtype=float) for key in ("n", "p"))
    ends = [high for _, high in BUDGETS[:-1]]
    return known["loss"].to_numpy(), np.digitize(n * epsilon / p, ends)


def recommendation(errors: pd.DataFrame) -> tuple[str, pd.Series]:
    """The method with the least geometric mean of regrets, and the means of all.

    Only methods that do at least half of the cells count.
    """
    found = log_regrets(errors)
    enough = found.notna().sum() >= len(found) / 2
    means = np.exp(found.loc[:, enough].mean()).sort_values()
    return str(means.index[0]), means


def advice(errors: pd.DataFrame, sizes: pd.DataFrame) -> list[dict[str, Any]]:
    """Recommended method for each kind of problem, and the evidence for it."""
    rows = []
    for kind, some in groups(errors, sizes):
        name, means = recommendation(some)
        names, values = [*means.index, ""], [*means, math.nan]
        row = {**kind, "take": name, "regret": values[0]}
        row |= {"second": names[1], "second_regret": values[1]}
        row |= {"best": int((some.rank(axis=1)[name] == 1).sum()), "cells": len(some)}
        row["problems"] = some.index.get_level_values("problem").nunique()
        rows.append(row)
    return rows


OVERTAKEN = ["tuning", "algorithm", "against", "ahead", "ci_low", "ci_high", "cells"]


def overtaken(table: pd.DataFrame, of: str, by: Sequence[str]) -> list[dict[str, Any]]:
    """Share of cells in which a method is behind each other one, by tuning."""
    rows = []
    for tuning in ("default", "grid", "paid"):
        errors = cells(table, tuning=tuning)
        for other in by if of in errors else ():
            both = errors.reindex(columns=[of, other]).dropna()
            if len(both):
                behind = (both[other] < both[of]).astype(float)
                row = {"tuning": tuning, "algorithm": other, "against": of}
                rows.append(row | _mean("ahead", behind))
    return rows


# --- the choice, with w = 0 and the labels' mean as a method --------------------------

FLOOR_METHOD = "w = 0 or the mean"
NAMES = ["data", "problem", "epsilon"]  # index of a cell
DRAWS = 200


def expected(
    errors: pd.DataFrame, sizes: pd.DataFrame, near: pd.DataFrame
) -> pd.DataFrame:
    """Expected log regret of each method in the cells of ``near``.

    The mean over the cells of ``errors`` of the same loss and range of n epsilon / p,
    or of the loss where there are none; nan for a method that does less than half.

    Parameters
    ----------
    errors, near : DataFrame
        From ``with_floor``; of ``near`` only the index is used.
    sizes : DataFrame
        n, p, loss of each problem.
    """
    logs = log_regrets(errors)
    losses, ranges = _kinds(errors, sizes)
    rows = []
    for loss, place in zip(*_kinds(near, sizes), strict=True):
        same = (losses == loss) & (ranges == place)
        rows.append(_means(logs[same] if same.any() else logs[losses == loss]))
    return pd.DataFrame(rows).set_axis(near.index)


def _means(logs: pd.DataFrame) -> pd.Series:
    """Mean log regret of each method; nan for one that does less than half."""
    return logs.mean().where(logs.notna().mean() >= 0.5)


def model(
    errors: pd.DataFrame, sizes: pd.DataFrame, synthetic: Sequence[str] = ()
) -> pd.DataFrame:
    """Cost of the choice by loss and range on held-out data, and of two other choices.

    One row for each loss and way to choose. It has the regret (geometric mean over data
    sets, 95 % interval over them), that of the worst cell and the share of cells within
    1.2 times the least. ``above_floor`` counts the cells that end above w = 0 and the
    labels' mean although some method does not. *fixed* is one method for a loss. The
    control is the choice by range, learned on cells whose n, p and epsilon were
    shuffled.

    Parameters
    ----------
    errors : DataFrame
        From ``cells``.
    sizes : DataFrame
        n, p, loss of each problem, with ``floor`` and ``zero``.
    synthetic : sequence of str
        Problems to leave out.
    """
    some, rng = with_floor(errors, sizes, synthetic), np.random.default_rng(SEED)

    def shuffled(others: pd.DataFrame, *more: Any) -> pd.DataFrame:
        wrong = others.index[rng.permutation(len(others))]
        return expected(others.set_axis(wrong), *more)

    ways: dict[str, Callable[..., pd.DataFrame]] = {
        "by range": expected,
        "fixed": _constant,
        "control": shuffled,
    }
    rows = [
        {"loss": loss, "choice": way, **_cost(logs, some, sizes, loss)}
        for way, expect in ways.items()
        for logs in [chosen_apart(some, sizes, expect)]
        for loss in LOSSES
        if (_kinds(logs.to_frame(), sizes)[0] == loss).any()
    ]
    return pd.DataFrame(rows)


def chosen_apart(
    errors: pd.DataFrame, sizes: pd.DataFrame, expect: Callable[..., pd.DataFrame]
) -> pd.Series:
    """Log regret of the method of least expected regret, learned on other data sets.

    ``expect`` is ``expected`` or a function of the same arguments. A data set is left
    out if no other has its loss.
    """
    data, found = errors.index.get_level_values("data"), []
    for name in dict.fromkeys(data):
        mine, others = errors[data == name], errors[data != name]
        losses = [{*_kinds(part, sizes)[0]} for part in (mine, others)]
        if losses[0] <= losses[1]:
            found.append(_chosen(mine, expect(others, sizes, mine)))
    return pd.concat(found) if found else errors.iloc[:0].mean(axis=1)


def picks(
    errors: pd.DataFrame, sizes: pd.DataFrame, synthetic: Sequence[str] = ()
) -> pd.DataFrame:
    """How often each method is taken when the data sets are resampled.

    One row for each loss, range of n epsilon / p (``low``, ``high``) and method that is
    taken in some draw. It has the ``share`` of draws, the method's expected regret and
    the number of the range's ``data_sets``. A range without a cell has no row.

    Parameters
    ----------
    errors, sizes, synthetic
        As for ``model``.
    """
    rng, rows = np.random.default_rng(SEED), []
    for kind, some in groups(with_floor(errors, sizes, synthetic), sizes):
        logs = log_regrets(some)
        logs = logs[_means(logs).dropna().index]
        by_data = [*logs.groupby(level="data", sort=False).indices.values()]
        drawn = rng.integers(len(by_data), size=(DRAWS, len(by_data)))
        taken = pd.Series([
            _means(logs.iloc[np.concatenate([by_data[k] for k in one])]).idxmin()
            for one in drawn
        ])  # fmt: skip
        rows += [
            {
                "loss": kind["loss"],
                "low": kind["from"],
                "high": kind["to"],
                "algorithm": name,
                "share": share,
                "regret": math.exp(logs[name].mean()),
                "data_sets": len(by_data),
            }
            for name, share in taken.value_counts(normalize=True).items()
        ]
    return pd.DataFrame(rows)


def with_floor(
    errors: pd.DataFrame, sizes: pd.DataFrame, synthetic: Sequence[str]
) -> pd.DataFrame:
    """Cells of real data, with the better of w = 0 and the labels' mean as a column."""
    some = errors[~errors.index.get_level_values("problem").isin(synthetic)]
    ends = sizes.loc[some.index.get_level_values("problem"), ["floor", "zero"]]
    floor, zero = ends.to_numpy(dtype=float).T
    # without an intercept no w may predict the mean, whose loss may be below F*
    return some.assign(**{FLOOR_METHOD: np.where(floor > 0, floor, zero)})


def learnt(errors: pd.DataFrame, loss: pd.Series) -> pd.DataFrame:
    """Share of cells in which each method is below the floor, by loss and epsilon.

    Columns are ``LEARNT``: ``panel`` is the loss, ``x`` is epsilon, and the interval is
    over data sets. ``errors`` comes from ``with_floor``; ``loss`` is by problem.
    """
    names = errors.index.get_level_values("problem")
    keys = [loss.reindex(names).to_numpy(), errors.index.get_level_values("epsilon")]
    rows = []
    for method, column in errors.drop(columns=FLOOR_METHOD).items():
        below = column.lt(errors[FLOOR_METHOD]).where(column.notna()).astype(float)
        for (panel, epsilon), some in below.groupby(keys, sort=False):
            if some.notna().any():
                row = {"panel": panel, "algorithm": method, "x": epsilon}
                found = _mean("mean", some.dropna())
                rows.append(row | found | dict.fromkeys(("min", "max"), found["mean"]))
    return pd.DataFrame(rows, columns=LEARNT)


def _constant(
    others: pd.DataFrame, sizes: pd.DataFrame, mine: pd.DataFrame
) -> pd.DataFrame:
    """Mean log regret of each method over all cells of ``others`` with the loss."""
    logs = log_regrets(others)
    losses = _kinds(others, sizes)[0]
    rows = [_means(logs[losses == loss]) for loss in _kinds(mine, sizes)[0]]
    return pd.DataFrame(rows).set_axis(mine.index)


def _chosen(mine: pd.DataFrame, expected: pd.DataFrame) -> pd.Series:
    """Log regret in each cell of the able method of least expected regret."""
    able = expected.where(mine.notna()).fillna(math.inf)
    logs = log_regrets(mine).to_numpy()
    return pd.Series(logs[range(len(mine)), able.to_numpy().argmin(1)], mine.index)


def _cost(
    logs: pd.Series, errors: pd.DataFrame, sizes: pd.DataFrame, loss: str
) -> dict[str, float]:
    """Cost of choices with these log regrets on the cells of a loss."""
    own = logs[_kinds(logs.to_frame(), sizes)[0] == loss]
    by_data = own.groupby(level="data").mean()
    table = errors.loc[own.index]
    taken = table.min(axis=1) * np.exp(own)
    floor = table[FLOOR_METHOD]
    above = (taken > floor * (1 + 1e-9)) & (table.min(axis=1) < floor)
    low, high = resampled(by_data)
    return {
        "regret": math.exp(by_data.mean()),
        "ci_low": math.exp(low),
        "ci_high": math.exp(high),
        "worst": math.exp(own.max()),
        "within": float((own <= math.log(1.2)).mean()),
        "above_floor": int(above.sum()),
        "cells": len(own),
        "data_sets": len(by_data),
    }
