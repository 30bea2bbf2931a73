"""Confidence intervals that figures, tables and claims share.

Of ``scipy.special`` alone, since drawing should not wait for ``scipy.stats``.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

LEVEL = 0.95


def t_quantile(freedom: float, level: float = LEVEL) -> float:
    """Half width, in standard errors, of Student's interval of this level."""
    return float(scipy.special.stdtrit(freedom, (1 + level) / 2))


def student(values: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Student's interval of a mean; the value itself, twice, for a single one."""
    values = np.asarray(values, dtype=float)
    mean, size = values.mean(), len(values)
    if size < 2:
        return mean, mean
    half = t_quantile(size - 1, level) * values.std(ddof=1) / np.sqrt(size)
    return mean - half, mean + half


def clopper_pearson(hits: int, runs: int, level: float = LEVEL) -> tuple[float, float]:
    """Exact interval of a probability, from so many hits in so many runs.

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
    high = scipy.special.betaincinv(hits + 1, np.maximum(runs - hits, 1), 1 - tail)
    return np.where(hits > 0, low, 0.0), np.where(hits < runs, high, 1.0)


def power(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Exponent of y in x by least squares in logarithms, with Student's interval.

    Parameters
    ----------
    x, y : ndarray (k,)
        Positive, k at least 3.
    """
    logs, values = np.log(np.asarray(x, float)), np.log(np.asarray(y, float))
    apart = logs - logs.mean()
    spread = float(apart @ apart)
    slope = float(apart @ (values - values.mean())) / spread
    rest = values - values.mean() - slope * apart
    freedom = len(logs) - 2
    half = t_quantile(freedom) * math.sqrt(float(rest @ rest) / freedom / spread)
    return slope, slope - half, slope + half
