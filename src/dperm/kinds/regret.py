"""How many transcripts a tuning needs: what is lost by choosing on few.

Drawn from the transcripts of the settings near the best (``kinds.sweeps.tuning_law``):
some choose, and all of them say how good the choice is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dperm.kinds.law import arrays

DRAWS = 2000
SEED = 20261121
RUNS = (1, 2, 3, 5, 10, 25)
SHARES = (1.0, 0.25)  # of the settings that compete: the grid, and a coarser one

Row = dict[str, Any]
Pooled = tuple[list[np.ndarray], np.ndarray]


def curve(rows: pd.DataFrame, share: float = 1.0) -> list[Row]:
    """Regret and optimism of a choice on so many transcripts.

    Parameters
    ----------
    rows : DataFrame
        As the sweep leaves them, of one solver, problem and noise factor.
    share : float
        Of the settings, drawn anew each time.

    Returns
    -------
    list of dict
        ``regret``: mean error of the chosen setting over that of the best of all, with
        the range of 95 % of the draws; ``printed``: the mean that a table would print,
        over the mean error of what it chose.
    """
    rng = np.random.default_rng(SEED)
    tables, means = _pooled(rows)
    size = min(table.shape[1] for table in tables)
    best, found = means.min(), []
    for runs in (each for each in RUNS if each <= size):
        drawn = [_chosen(rng, tables, means, runs, share) for _ in range(DRAWS)]
        truth, shown = np.array(drawn).T
        regret = truth / best
        low, high = np.quantile(regret, [0.025, 0.975])
        found.append(
            {"transcripts": runs, "settings": _size(len(means), share),
             "regret": regret.mean(), "regret_low": low, "regret_high": high,
             "printed": (shown / truth).mean()}
        )  # fmt: skip
    return found


def printed(rows: pd.DataFrame, runs: int) -> dict[str, float]:
    """What a table prints that was tuned on so many transcripts, and what it chose.

    Returns
    -------
    dict
        ``printed``, the median over draws of the least mean, with 90 % of them between
        ``printed_low`` and ``printed_high``; ``worth``, the mean error that the chosen
        setting really has, on average.
    """
    rng = np.random.default_rng(SEED)
    tables, means = _pooled(rows)
    drawn = [_chosen(rng, tables, means, runs, 1.0) for _ in range(DRAWS)]
    truth, shown = np.array(drawn).T
    low, middle, high = np.quantile(shown, [0.05, 0.5, 0.95])
    return {"printed": middle, "printed_low": low, "printed_high": high,
            "worth": truth.mean()}  # fmt: skip


def _pooled(rows: pd.DataFrame) -> Pooled:
    """Errors (settings, transcripts) for each number of passes, and all means."""
    tables = [arrays(part)[0] for _, part in rows.groupby("passes", sort=True)]
    return tables, np.concatenate([table.mean(axis=1) for table in tables])


def _size(count: int, share: float) -> int:
    return max(1, math.ceil(share * count))


def _chosen(
    rng: np.random.Generator,
    tables: list[np.ndarray],
    means: np.ndarray,
    runs: int,
    share: float,
) -> tuple[float, float]:
    """Mean error of the setting that some transcripts choose, and what they show."""
    seen = np.concatenate([
        table[:, rng.choice(table.shape[1], runs, replace=False)].mean(axis=1)
        for table in tables
    ])  # fmt: skip
    kept = rng.choice(len(seen), _size(len(seen), share), replace=False)
    at = kept[seen[kept].argmin()]
    return float(means[at]), float(seen[at])


def agreement(one: pd.DataFrame, other: pd.DataFrame) -> list[Row]:
    """How often so many transcripts rank two methods as all of them do.

    Returns
    -------
    list of dict
        ``agree``: share of the draws in which the printed means have the order that the
        best settings have by all transcripts.
    """
    rng = np.random.default_rng(SEED)
    both = [_pooled(one), _pooled(other)]
    size = min(table.shape[1] for tables, _ in both for table in tables)
    ahead = both[0][1].min() < both[1][1].min()
    return [
        {"transcripts": runs,
         "agree": float(np.mean([_ahead(rng, both, runs) == ahead
                                 for _ in range(DRAWS)]))}
        for runs in RUNS if runs <= size
    ]  # fmt: skip


def _ahead(rng: np.random.Generator, both: list[Pooled], runs: int) -> bool:
    first, second = (_chosen(rng, *pooled, runs, 1.0)[1] for pooled in both)
    return first < second
