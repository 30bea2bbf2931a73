"""What the sweeps left, as figures and tables read it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dperm.core.experiment import results, schema

OBJECTIVES = ("mean", "sum")  # equation 4
BUDGETS = ("total", "iteration")  # whose epsilon


def read(config: schema.Config, name: str) -> pd.DataFrame:
    """A sweep's rows, with ``relative``, the loss over f(0), where there is a loss."""
    table = results.load_sweep(config, name)
    if "loss" in table:
        table = table.assign(relative=table["loss"] / table["start"])
    return table


def last(table: pd.DataFrame) -> pd.DataFrame:
    """The last row of every run."""
    return table[table["iteration"] == table["iterations"]]


def where(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The rows that have these values."""
    mask = np.ones(len(table), dtype=bool)
    for key, value in values.items():
        mask &= (table[key] == value).to_numpy()
    return table[mask]


def central(noise: str) -> str:
    """DP-FW's noise beside DP-BCFW's: its formula has no printed misfit of scores."""
    return "strict" if noise == "strict" else "scaled"
