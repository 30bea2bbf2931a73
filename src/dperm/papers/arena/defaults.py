"""Settings of grids: their means, and each method's default on data left out.

A default that a method's author, or this project, chose by hand is no property of the
method. So every setting that a solver's grid has, and the one that it is shipped with,
is judged by the same rule: the setting without tuning on a data set is that of the
least mean excess over all cells of its loss in the *other* data sets, where excesses
from ``WORST`` on count as that, as do refusals. Its runs have no say in the choice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dperm.benchmark import race
from dperm.benchmark.race import MEAN_KEYS, TRIED
from dperm.papers.arena.ranking import LEFT_OUT, WORST
from dperm.storage.files import digest, digest_rows

SHIPPED = ""  # the setting that a solver is shipped with, which names no value
CELLS = ["data", "problem", "epsilon"]


def means(
    runs: pd.DataFrame, labels: dict[str, str], keys: Sequence[str] = MEAN_KEYS
) -> pd.DataFrame:
    """Means of runs as the race has them, made once for all products.

    Products show other solvers, so that those of each solver are kept by themselves.
    """
    solvers = runs.drop_duplicates([*keys])["solver"].to_numpy()
    tables = []
    for solver, own in runs.groupby("solver", sort=False):
        label = {name: labels[name] for name in labels if name == solver}
        made_of = digest([digest_rows(own), label, *keys])
        if made_of not in _MEANS:
            _MEANS[made_of] = race.means(own, label, keys)
        tables.append(
            _MEANS[made_of].set_axis(np.flatnonzero(solvers == solver))
        )
    return (
        pd.concat(tables).sort_index()
        if tables
        else race.means(runs, labels, keys)
    )


_MEANS: dict[str, pd.DataFrame] = {}  # by the digest of what they are made of


def settings(runs: pd.DataFrame, labels: dict[str, str]) -> pd.DataFrame:
    """Means of every setting, one row for each problem, solver, epsilon and setting.

    ``runs`` are rows of the race. Those of the shipped setting are its fresh ones.
    """
    judged = runs[runs["tuning"].isin([TRIED, "default"])]
    is_shipped = judged["tuning"] == "default"
    judged = judged.assign(
        setting=judged["setting"].where(~is_shipped, SHIPPED)
    )
    return means(judged, labels, [*MEAN_KEYS, "setting"])


def costs(table: pd.DataFrame) -> pd.DataFrame:
    """What a setting costs in each cell, (cells, settings), of one solver and loss."""
    is_run = table["status"] == "ok"
    cost = table["mean"].where(is_run, WORST).fillna(WORST).clip(upper=WORST)
    layout = {
        "index": CELLS,
        "columns": "setting",
        "values": "cost",
        "sort": False,
    }
    cells = table.assign(cost=cost).pivot_table(aggfunc="first", **layout)
    return cells.fillna(WORST)


def chosen(cells: pd.DataFrame) -> dict[str, str]:
    """The setting of each data set that the others choose; the shipped one if none."""
    sums = cells.groupby(level="data", sort=False).sum()
    counts = cells.groupby(level="data", sort=False).size()
    choice = {}
    for name in sums.index:
        count = int(counts.sum() - counts[name])
        others = (sums.sum() - sums.loc[name]) / max(count, 1)
        choice[name] = str(others.idxmin()) if count else SHIPPED
    return choice


def left_out(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``settings`` with a column ``data``: on each data set what others choose.

    Their tuning is ``LEFT_OUT``. Gaps of methods that cannot do a problem have no row.
    """
    rows = []
    for _, group in table[table["epsilon"].notna()].groupby(
        ["solver", "loss"], sort=False
    ):
        choice = group["data"].map(chosen(costs(group)))
        rows.append(group[group["setting"] == choice])
    if not rows:
        return table.iloc[:0]
    return pd.concat(rows).assign(tuning=LEFT_OUT)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """One row for each solver, loss and setting: its mean cost, and who chooses it.

    ``chosen`` is the number of data sets on which the others choose it, of all
    ``data_sets``.
    """
    rows = []
    for (label, loss), group in table[table["epsilon"].notna()].groupby(
        ["algorithm", "loss"], sort=False
    ):
        cells = costs(group)
        choice = [*chosen(cells).values()]
        for setting, mean in cells.mean().sort_values(kind="stable").items():
            rows.append(
                {
                    "algorithm": label,
                    "loss": loss,
                    "setting": setting or "as shipped",
                    "mean": float(mean),
                    "chosen": choice.count(str(setting)),
                    "data_sets": len(choice),
                    "cells": len(cells),
                }
            )
    return pd.DataFrame(rows)


def by_epsilon(table: pd.DataFrame) -> pd.DataFrame:
    """Mean excess of every setting on every problem, a column for each epsilon."""
    ran = table[table["epsilon"].notna()]
    named = ran.assign(setting=ran["setting"].replace(SHIPPED, "as shipped"))
    layout = {
        "index": ["problem", "algorithm", "setting"],
        "columns": "epsilon",
    }
    wide = named.pivot_table(
        values="mean", aggfunc="first", sort=False, **layout
    )
    wide.columns = [f"epsilon {epsilon:g}" for epsilon in wide.columns]
    return wide.replace(np.inf, np.nan).reset_index()
