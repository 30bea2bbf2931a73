"""Tables of Bassily, Guzmán and Nandi 2021 (DP-SCO)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dperm.config.schema import Product
from dperm.papers.dpsco import rates
from dperm.papers.dpsco.rates import (
    EASY,
    METHOD_KEYS,
    METHOD_LABELS,
    instanced,
    together,
)
from dperm.plotting.tables import groups, interval, named, where, with_interval

SHARE = ("share", "ci_low", "ci_high")


def exponents(folder: Path, product: Product) -> pd.DataFrame:
    """Table 1 with measured exponents of n, for every instance and dimension."""
    rows = []
    for group_keys, group in groups(
        instanced(folder, product), [*METHOD_KEYS, "instance", "d"]
    ):
        instance = group_keys.pop("instance")
        method = group_keys["method"]
        names = ("statistical_exponent", "privacy_exponent")
        row = group_keys | dict(zip(names, rates.TERMS[method], strict=True))
        row |= {"bound": rates.RATES[method]} | rates.of_risk(group, "n")
        row |= {
            "bound_exponent": rates.bound_exponent(row, "n"),
            "instance": instance,
        }
        rows.append(row | {"worst_bias": _bias(group)})
    return _sorted(rows, "d")


def _bias(group: pd.DataFrame) -> float:
    """The worst bias at the largest size; NaN for an instance without a class."""
    if "bias" not in group:
        return math.nan
    return float(group.loc[group["n"] == group["n"].max(), "bias"].iloc[0])


def _sorted(rows: list[dict[str, Any]], *more_keys: str) -> pd.DataFrame:
    """Rows by method and target, those of the easy instance first."""
    table = pd.DataFrame(rows)
    order = table.assign(_hard=table["instance"] != EASY)
    order = order.sort_values(
        ["_hard", *METHOD_KEYS, *more_keys], ignore_index=True
    )
    return order.drop(columns="_hard")


def dimension_exponents(folder: Path, product: Product) -> pd.DataFrame:
    """Exponents of d, at the largest n where three dimensions have learnt."""
    rows = []
    for group_keys, group in groups(
        instanced(folder, product), [*METHOD_KEYS, "instance"]
    ):
        instance = group_keys.pop("instance")
        # the initial risk of the hard instances depends on d
        column = "share" if instance == EASY else "excess"
        row = group_keys | rates.of_dimension(group, column)
        row |= {
            "bound_exponent": rates.bound_exponent(row, "d"),
            "instance": instance,
        }
        rows.append(
            row
            | {"table1_exponent": rates.bound_exponent(row, "d", printed=True)}
        )
    return _sorted(rows)


def peers(swept: pd.DataFrame) -> pd.DataFrame:
    """Seconds, their exponent and the excess risk of every method."""
    table = together(swept)
    rows = []
    for group_keys, group in groups(
        table, ["method", "epsilon", "n"], sort=True
    ):
        power = rates.of_time(where(table, method=group_keys["method"]))
        row = {
            "algorithm": METHOD_LABELS[group_keys.pop("method")],
            "p": group["p"].iloc[0],
            **group_keys,
        }
        row["seconds"] = group["seconds"].median()
        row |= named("exponent", power)
        share = with_interval(group["share"], *SHARE, interval=rates.interval)
        rows.append(row | share)
    return pd.DataFrame(rows)


def corollary72_rates(folder: Path, product: Product) -> pd.DataFrame:
    """Exponents of n where Corollary 7.2 applies, with the optimal one, -1/2."""
    table = instanced(folder, product)
    table = table[(table["method"] == "phased_sgd") & (table["p"] > 2)]
    n = table["n"]  # delta is 1 / n^2
    inside = table[table["d"] * np.log(n**2) / table["epsilon"] ** 2 <= n]
    return pd.DataFrame(
        [
            group_keys | rates.of_risk(group, "n") | {"bound_exponent": -0.5}
            for group_keys, group in groups(
                inside, [*METHOD_KEYS, "d"], sort=True
            )
        ]
    )


def empirical(swept: pd.DataFrame, product: Product) -> pd.DataFrame:
    """Theorem A.2: exponents of the empirical excess, and those of the bound.

    Each size has the c with the largest mean excess, and ``over_bound`` is the least
    ratio of excess to bound there. At c = 1, ``share`` is the least excess over that of
    w = 0, and ``share_none`` the largest without noise.
    """
    table = together(swept)
    rows = []
    table = table.assign(
        over=table["excess"] / table["bound"], gap=table["p"] - 1
    )
    shares = (
        where(table, constant=1.0)
        .set_index(["method", "calibration"])["share"]
        .sort_index()
    )
    noisy = where(table, calibration=product.calibration)
    keys = ["method", "p", "d", "n", "epsilon"]
    means = noisy.groupby([*keys, "constant"])["excess"].mean()
    chosen = means.loc[means.groupby(level=keys).idxmax()].reset_index()
    at_worst_constant = noisy.merge(chosen[[*keys, "constant"]])
    for axis in ("n", "d", "epsilon", "gap"):
        fixed_columns = ["method"] if axis == "gap" else ["method", "p"]
        for group_keys, group in groups(
            at_worst_constant, fixed_columns, sort=True
        ):
            private = shares[group_keys["method"], product.calibration]
            row = {
                "method": group_keys["method"],
                "axis": axis,
                "p": group_keys.get("p", "all"),
            }
            row |= interval("exponent", _slopes(group, axis, "excess"))
            row |= {"bound_exponent": _slopes(group, axis, "bound").mean()}
            row |= {"over_bound": group["over"].min(), "share": private.min()}
            rows.append(
                row
                | {"share_none": shares[group_keys["method"], "none"].max()}
            )
    return pd.DataFrame(rows)


def _slopes(group: pd.DataFrame, axis: str, column: str) -> np.ndarray:
    """Exponent of each replicate, by geometric means over all other axes."""
    logs = (
        np.log(group[column]).groupby([group["replicate"], group[axis]]).mean()
    )
    means = np.exp(logs).unstack()
    along = np.log(means.columns.to_numpy(float))
    return np.polyfit(along, np.log(means.to_numpy()).T, 1)[0]


def estimator(swept: pd.DataFrame) -> pd.DataFrame:
    """Error and bound of the run with the largest ratio of error to the lemma's bound.

    ``start`` is the least error of an estimate of 0. The bound is informative if it is
    smaller, that is if ``start_over_bound`` is above 1.
    """
    rows = []
    keys = ["method", "instance", "p", "n", "epsilon"]
    for group_keys, group in groups(swept, keys, sort=True):
        largest = (group["error"] / group["bound"]).idxmax()
        error, bound = group.loc[largest, ["error", "bound"]]
        least_start = (group["start"] / group["bound"]).min()
        row = {
            "algorithm": METHOD_LABELS[group_keys.pop("method")],
            **group_keys,
            "runs": len(group),
        }
        row |= {"error": error, "bound": bound, "start": least_start * bound}
        rows.append(row | {"start_over_bound": least_start})
    return pd.DataFrame(rows)
