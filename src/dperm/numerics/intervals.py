"""Confidence intervals that figures, tables and claims share.

They only use ``scipy.special``, because ``scipy.stats`` would delay drawing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
import scipy

LEVEL = 0.95
SETTING = ["passes", "step", "clip"]


def t_quantile(freedom: float, level: float = LEVEL) -> float:
    """Half width of Student's interval of this level, in standard errors."""
    return float(scipy.special.stdtrit(freedom, (1 + level) / 2))


def student(sample: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Student's interval of a mean; a single value is both ends."""
    sample = np.asarray(sample, dtype=float)
    mean = sample.mean()
    size = len(sample)
    if size < 2:
        return mean, mean
    half = t_quantile(size - 1, level) * sample.std(ddof=1) / np.sqrt(size)
    return mean - half, mean + half


def skewed(values: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Student's interval of a mean, corrected for the skewness of the values.

    The t statistic is transformed so that its law loses the skewness of the sample; a
    single value is both ends, and values that do not vary have Student's interval.

    Notes
    -----
    Hall 1992, On the removal of skewness by transformation.
    """
    values = np.asarray(values, dtype=float)
    mean, size = values.mean(), len(values)
    spread = values.std() if size > 1 else 0.0
    if spread == 0.0:
        return student(values, level)
    skewness = float((((values - mean) / spread) ** 3).mean())
    half = t_quantile(size - 1, level) / np.sqrt(size)
    deviation = values.std(ddof=1)
    ends = (_unskewed(side, skewness, size) for side in (half, -half))
    low, high = (float(mean - deviation * end) for end in ends)
    return low, high


def _unskewed(at: float, skewness: float, size: int) -> float:
    """The inverse of Hall's cubic transformation of a mean over its deviation."""
    third = skewness / 3
    moved = at - skewness / (6 * size)
    if abs(third) < 1e-8:
        return moved
    return float((np.cbrt(1 + 3 * third * moved) - 1) / third)


def clopper_pearson(
    hits: int, runs: int, level: float = LEVEL
) -> tuple[float, float]:
    """Exact interval of a probability, from ``hits`` in ``runs``.

    >>> [round(end, 4) for end in clopper_pearson(0, 10)]
    [0.0, 0.3085]
    """
    low, high = binomial_bounds(np.array(hits), runs, (1 - level) / 2)
    return float(low), float(high)


def binomial_bounds(
    hits: np.ndarray, runs: int, tail: float
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on probabilities, each wrong with chance ``tail``.

    Notes
    -----
    Clopper and Pearson 1934.
    """
    hits = np.asarray(hits, dtype=float)
    low = scipy.special.betaincinv(np.maximum(hits, 1), runs - hits + 1, tail)
    high = scipy.special.betaincinv(
        hits + 1, np.maximum(runs - hits, 1), 1 - tail
    )
    return np.where(hits > 0, low, 0.0), np.where(hits < runs, high, 1.0)


def power(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Exponent of y in x by least squares in logarithms, with Student's interval.

    Parameters
    ----------
    x, y : ndarray (k,)
        Positive, k at least 3.
    """
    logs = np.log(np.asarray(x, float))
    log_y = np.log(np.asarray(y, float))
    apart = logs - logs.mean()
    spread = float(apart @ apart)
    slope = float(apart @ (log_y - log_y.mean())) / spread
    residuals = log_y - log_y.mean() - slope * apart
    freedom = len(logs) - 2
    half = t_quantile(freedom) * math.sqrt(
        float(residuals @ residuals) / freedom / spread
    )
    return slope, slope - half, slope + half


# --- ratios of two tuned methods ------------------------------------------------------
#
# Fresh runs measure the chosen setting, but other tuning seeds would have chosen a
# different one. A verdict on methods must account for both, and so does its interval.


@dataclass(frozen=True)
class Measured:
    """Mean log error of a tuned method, and the two variances of that mean."""

    mean: float  #: of the log relative error over the fresh runs
    #: spread, luck: variance of that mean due to the fresh runs, and due to the choice
    #: of the setting
    spread: float
    luck: float
    #: fresh, tuned: numbers of fresh runs and of tuning replicates
    fresh: int
    tuned: int


def measured(fresh: np.ndarray, tuned: pd.DataFrame) -> Measured:
    """Summarise fresh relative errors and the tuning rows of one calibration."""
    logs = np.log(fresh)
    spread = logs.var(ddof=1) / len(logs) if len(logs) > 1 else math.nan
    luck, replicates = tuning_luck(tuned)
    return Measured(
        float(logs.mean()), float(spread), luck, len(logs), replicates
    )


def tuning_luck(tuned: pd.DataFrame) -> tuple[float, int]:
    """Variance of the log error due to the choice of a setting, and replicate count.

    Every replicate chooses a setting separately. The difference of two choices is
    measured by the replicates that made neither. The product of the differences that
    two of them see is unbiased for the square, whatever their noise, and independent of
    the luck of the choosers. A choice by one replicate varies more than a choice by
    all, so this is an upper bound. NaN for fewer than four replicates.
    """
    usable = tuned.assign(ok=tuned["status"] == "ok")
    usable = usable[usable.groupby(SETTING)["ok"].transform("all")]
    objective, error = (
        usable.pivot(index=SETTING, columns="replicate", values=key).to_numpy()
        for key in ("objective", "relative_error")
    )
    count = objective.shape[1]
    if count < 4:
        return math.nan, count
    # choice by row, seen by column
    logs = np.log(error[objective.argmin(axis=0)])
    squares = []
    for row, column in combinations(range(count), 2):
        apart = np.delete(logs[row] - logs[column], [row, column])
        size = len(apart)
        squares.append(
            (apart.sum() ** 2 - (apart**2).sum()) / (size * (size - 1))
        )
    return max(0.0, float(np.mean(squares)) / 2), count


def compared(first: Measured, second: Measured) -> dict[str, float | int]:
    """Ratio of geometric means, with an interval that includes fresh runs and tuning.

    It is Student's interval, with Satterthwaite's degrees of freedom over the four
    variances. It is unbounded if a variance is not available.
    """
    terms = [(m.spread, m.fresh - 1) for m in (first, second)]
    terms += [(m.luck, m.tuned - 1) for m in (first, second)]
    variance = sum(term for term, _ in terms)
    ratio = first.mean - second.mean
    low = -math.inf
    high = math.inf
    if variance > 0:
        freedom = variance**2 / sum(term**2 / df for term, df in terms if df)
        half = t_quantile(freedom) * math.sqrt(variance)
        low = ratio - half
        high = ratio + half
    return {
        "ratio": math.exp(ratio),
        "ci_low": math.exp(low),
        "ci_high": math.exp(high),
        "runs": min(first.fresh, second.fresh),
        "luck": (first.luck + second.luck) / variance
        if variance > 0
        else math.nan,
    }
