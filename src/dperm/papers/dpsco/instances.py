"""Instances that the rates are measured on: an easy one, and the worst of a class.

The class holds linear losses of coins whose bias is 2^k times what so many records can
just tell, up to 1. What is measured is the largest mean excess risk in it, as a rate of
the worst case asks; w = 0 has the bias itself, and is never below the largest.
"""

from __future__ import annotations

import math

import pandas as pd

EASY = "well-specified least squares"
KEYS = ["method", "p", "epsilon", "calibration"]
KINDS = {  # of coins that are hard, and what such an instance is called
    "poly_sfw": ("one of them", "one informative coordinate"),
    "noisy_sfw": ("all", "linear loss, biased coins"),
    "noisy_sfw_all": ("all", "linear loss, biased coins"),
    "phased_sgd": ("one a record", "linear loss, one coin a record"),
}


def biases(kind: str, n: int, d: int) -> list[float]:
    """1/sqrt(n), or sqrt(d/n) where a record shows one column, doubled until 1."""
    shown = n / d if kind == "one a record" else n
    least = 1 / math.sqrt(max(1.0, shown))
    count = max(0, math.ceil(-math.log2(least) - 1e-9))
    return [*(least * 2.0**k for k in range(count)), 1.0]


def worst(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the bias with the largest mean excess, at every size.

    Parameters
    ----------
    table : DataFrame
        Of the sweep ``hard``: KEYS, instance, d, n, bias, excess and initial.

    Returns
    -------
    DataFrame
        With ``initial`` that of the largest bias: the worst case of w = 0.
    """
    keys = [*KEYS, "instance", "d", "n"]
    means = table.groupby([*keys, "bias"], as_index=False)["excess"].mean()
    chosen = means.loc[means.groupby(keys)["excess"].idxmax(), [*keys, "bias"]]
    found = table.merge(chosen, on=[*keys, "bias"])
    top = table.groupby(keys)["initial"].max().rename("top").reset_index()
    found = found.merge(top, on=keys)
    return found.assign(initial=found["top"]).drop(columns="top")
