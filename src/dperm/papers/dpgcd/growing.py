"""How errors grow: exponents in p, in the sparsity, in the imbalance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dperm.present.intervals import power

KNOBS = ("p", "n", "tau", "imbalance")
PLAIN = {"p": 1000, "n": 1600, "tau": 4, "imbalance": 0.0}
LEARNT = 0.9  # of the excess of w = 0; above it nothing was learnt
Rows = list[dict[str, Any]]


def along(swept: pd.DataFrame, knob: str) -> pd.DataFrame:
    """The rows of instances that differ from the plain one in a knob (and in n).

    Parameters
    ----------
    swept : DataFrame
        Rows of the sweep ``growth``.
    knob : {"p", "tau", "imbalance"}
    """
    free = {knob, "n"} if knob == "p" else {knob}
    fixed = [swept[key] == value for key, value in PLAIN.items() if key not in free]
    return swept[np.all(fixed, axis=0)]


def exponents(swept: pd.DataFrame, knob: str, by: list[str]) -> Rows:
    """Exponent of the excess in a knob, with its 95 % interval, for every algorithm.

    ``least`` and ``most`` are the shares of the excess of w = 0 at the knob's ends. In
    p there is the exponent in log p too. Points are means over the fresh runs of a
    draw; there must be three.
    """
    rows: Rows = []
    table = along(swept, knob)
    for key, group in table.groupby([*by, "algorithm"], sort=False):
        means = group.groupby([knob, "draw"])["share"].mean().reset_index()
        x, y = means[knob].to_numpy(float), means["share"].to_numpy(float)
        if len(np.unique(x)) < 3 or not ((x > 0).all() and (y > 0).all()):
            continue
        ends = means.groupby(knob)["share"].mean()
        found = dict(zip([*by, "algorithm"], key, strict=True))
        found |= _named("exponent", power(x, y))
        if knob == "p":
            found |= _named("log_exponent", power(np.log(x), y))
        least, most = float(ends.iloc[0]), float(ends.iloc[-1])
        rows.append(found | {"least": least, "most": most,
                             "learnt": min(ends) < LEARNT})  # fmt: skip
    return rows


def _named(name: str, found: tuple[float, float, float]) -> dict[str, float]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), found, strict=True))
