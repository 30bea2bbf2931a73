"""Deciding between two tuned methods, the luck of tuning included.

Fresh runs say how well the CHOSEN setting does; another five tuning seeds would have
chosen another one. The verdict has to hold for the method, so its interval holds both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from dperm.present.intervals import t_quantile

_POINT = ["passes", "step", "clip"]


@dataclass(frozen=True)
class Measured:
    """Mean log error of a tuned method, and the two variances of that mean.

    Attributes
    ----------
    mean : float
        Of the log relative error over the fresh runs.
    spread, luck : float
        Variance of that mean by the fresh runs, and by the choice of the setting.
    fresh, tuned : int
        Numbers of fresh runs and of tuning replicates.
    """

    mean: float
    spread: float
    luck: float
    fresh: int
    tuned: int


def measured(fresh: np.ndarray, tuned: pd.DataFrame) -> Measured:
    """Fresh relative errors and the tuning rows of one calibration, as one number."""
    logs = np.log(fresh)
    spread = logs.var(ddof=1) / len(logs) if len(logs) > 1 else math.nan
    luck, replicates = tuning_luck(tuned)
    return Measured(float(logs.mean()), float(spread), luck, len(logs), replicates)


def retuned(errors: pd.DataFrame) -> Measured:
    """The same where every replicate was tuned anew: columns replicate and error.

    Between replicates the luck of tuning shows by itself.
    """
    logs = np.log(errors["relative_error"]).groupby(errors["replicate"]).mean()
    spread = float(logs.var(ddof=1)) / len(logs)  # NaN for one replicate
    return Measured(float(logs.mean()), spread, 0.0, len(logs), len(logs))


def tuning_luck(tuned: pd.DataFrame) -> tuple[float, int]:
    """Variance of the log error that the choice of a setting adds; replicates.

    Every replicate chooses a setting on its own. How far two choices are apart, the
    replicates that made neither say: the product of what two of them see is unbiased
    for the square, whatever their noise, and has no share in the luck of the choosers.
    A choice by one replicate varies more than a choice by all: this is an upper bound.
    NaN for fewer than four replicates.
    """
    usable = tuned.assign(ok=tuned["status"] == "ok")
    usable = usable[usable.groupby(_POINT)["ok"].transform("all")]
    objective, error = (
        usable.pivot(index=_POINT, columns="replicate", values=key).to_numpy()
        for key in ("objective", "relative_error")
    )
    count = objective.shape[1]
    if count < 4:
        return math.nan, count
    logs = np.log(error[objective.argmin(axis=0)])  # choice by row, seen by column
    squares = []
    for first, second in combinations(range(count), 2):
        apart = np.delete(logs[first] - logs[second], [first, second])
        size = len(apart)
        squares.append((apart.sum() ** 2 - (apart**2).sum()) / (size * (size - 1)))
    return max(0.0, float(np.mean(squares)) / 2), count


def compared(first: Measured, second: Measured) -> dict[str, float | int]:
    """Ratio of geometric means, with an interval that holds fresh runs and tuning.

    Student's, with Satterthwaite's degrees of freedom over the four variances; the
    interval is everything where a variance is not to be had.
    """
    parts = [(m.spread, m.fresh - 1) for m in (first, second)]
    parts += [(m.luck, m.tuned - 1) for m in (first, second)]
    variance = sum(part for part, _ in parts)
    ratio = first.mean - second.mean
    low, high = -math.inf, math.inf
    if variance > 0:
        freedom = variance**2 / sum(part**2 / df for part, df in parts if df)
        half = t_quantile(freedom) * math.sqrt(variance)
        low, high = ratio - half, ratio + half
    luck = first.luck + second.luck
    return {"ratio": math.exp(ratio), "ci_low": math.exp(low),
            "ci_high": math.exp(high), "runs": min(first.fresh, second.fresh),
            "luck": luck / variance if variance > 0 else math.nan}  # fmt: skip


def verdict(found: dict[str, float | int], band: float = 1.0) -> str:
    """``helps`` or ``hurts`` where the interval excludes 1 and the ratio the band.

    Parameters
    ----------
    found : dict
        Of ``compared``.
    band : float
        Ratios from 1 / band to band are no larger than what controls show.
    """
    if found["ci_high"] < 1 and found["ratio"] < 1 / band:
        return "helps"
    if found["ci_low"] > 1 and found["ratio"] > band:
        return "hurts"
    return "undecided"


def widest(ratios: list[float]) -> float:
    """The band of the controls: the largest ratio or inverse of one; 1 for none."""
    return math.exp(max((abs(math.log(ratio)) for ratio in ratios), default=0.0))
