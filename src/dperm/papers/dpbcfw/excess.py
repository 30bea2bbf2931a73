"""Excess risk against the number of records: Figure 4 and Theorem 4."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dperm.core.experiment import schema
from dperm.papers.dpbcfw.outcomes import last, read, where
from dperm.present.intervals import power

THEORY = -2 / 3  # exponent of n, Theorem 4


def excess(
    config: schema.Config, name: str, against: str, epsilon: float
) -> pd.DataFrame:
    """Last rows of a sweep at one target, with ``excess``, the loss over another's.

    Parameters
    ----------
    against : {"truth", "minimum"}
        Column of the loss that the excess is over.
    """
    table = last(read(config, name))
    table = table.assign(excess=table["loss"] - table[against])
    return where(table, epsilon=epsilon)


def exponent(runs: pd.DataFrame) -> tuple[float, float, float]:
    """Exponent of the excess in n with its 95 % interval; NaN if one is below 0."""
    if len(runs) < 3 or not (runs["excess"] > 0).all():
        return math.nan, math.nan, math.nan
    return power(runs["n"].to_numpy(), runs["excess"].to_numpy())


def theory(sizes: np.ndarray, runs: pd.DataFrame) -> np.ndarray:
    """Theorem 4's line at ``sizes`` (k,), through the mean excess at the least n."""
    height = runs.groupby("n")["excess"].mean().iloc[0]
    return height * (sizes / sizes[0]) ** THEORY
