"""Printed cells against what is measured here: the p of each, two-sided.

A tuning run again would print another mean. Quantiles of what it prints are the law of
a cell (``dperm.kinds.law``), against which a printed mean is tested. A printed
deviation is tested against that of fresh runs by Fisher's F.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy.special import fdtr, fdtrc, ndtr, ndtri

from dperm.present.intervals import t_quantile

EXTREME = 40.0  # standard deviations; practically impossible


def of_means(
    laws: pd.DataFrame, printed: pd.Series, half: pd.Series, spread: pd.Series
) -> pd.DataFrame:
    """Test printed means against their laws.

    Parameters
    ----------
    laws : DataFrame (k,)
        Columns ``q0.5`` and other quantiles, and ``start``, the error of w = 0.
    printed, half : Series (k,)
        The printed means, and half a unit of their last digits.
    spread : Series (k,)
        Standard deviation, in logarithms, of differences that tuning does not explain,
        such as another machine's arithmetic, another optimum or another draw of data.

    Returns
    -------
    DataFrame (k,)
        ``p``; ``p_holm`` after Holm's correction over all; ``p_start``, that of a law
        where nothing is learnt, which a table should notice.
    """
    names = [name for name in laws if name.startswith("q0.")]
    scores = ndtri([float(name[1:]) for name in names])
    logs = np.log(laws[names].to_numpy(float))
    start = np.log(laws["start"].to_numpy(float))[:, np.newaxis]
    cells = list(zip(printed, half, spread, strict=True))

    def chances(tables: np.ndarray) -> list[float]:
        return [
            _two_sided(value, near, _wider(row, scores, apart), scores)
            for row, (value, near, apart) in zip(tables, cells, strict=True)
        ]

    found = pd.DataFrame({"p": chances(logs)}, index=laws.index)
    return found.assign(p_holm=holm(found["p"]), p_start=chances(start + 0 * logs))


def _wider(logs: np.ndarray, scores: np.ndarray, spread: float) -> np.ndarray:
    """A law with more spread; one without any width has that alone."""
    middle = logs[len(logs) // 2]
    low, high = np.interp(ndtri([0.025, 0.975]), scores, logs)
    own = (high - low) / (2 * ndtri(0.975))
    if own < spread / 100:
        return np.asarray(middle + spread * scores)
    return np.asarray(middle + math.hypot(1.0, spread / own) * (logs - middle))


def _two_sided(
    value: float, half: float, logs: np.ndarray, scores: np.ndarray
) -> float:
    above, below = (_score(end, logs, scores) for end in (value - half, value + half))
    return float(min(1.0, 2 * min(ndtr(below), ndtr(-above))))


def _score(value: float, logs: np.ndarray, scores: np.ndarray) -> float:
    """The normal score of a value in a law, with extrapolated tails."""
    log = math.log(max(value, 1e-300))
    if logs[0] <= log <= logs[-1]:
        return float(np.interp(log, logs, scores))
    inner = slice(0, 2) if log < logs[len(logs) // 2] else slice(-2, None)
    (a, b), (x, y) = logs[inner], scores[inner]
    end, at = (a, x) if inner.start == 0 else (b, y)
    slope = (y - x) / (b - a) if b > a else math.inf
    return float(np.clip(at + slope * (log - end), -EXTREME, EXTREME))


def holm(chances: pd.Series) -> pd.Series:
    """Probabilities of a table's cells after Holm's correction."""
    ordered = chances.sort_values(kind="stable")
    times = np.arange(len(ordered), 0, -1)
    return (ordered * times).cummax().clip(upper=1.0).reindex(chances.index)


def half_unit(value: float, digits: int | None = None, decimals: int = 0) -> float:
    """Half a unit of the last digit of a number, of ``digits`` or after the point.

    >>> half_unit(0.0145, decimals=4), half_unit(0.77, digits=2)
    (5e-05, 0.005)
    """
    if digits is not None:
        decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return float(f"{0.5 * 10.0**-decimals:.6g}")


def of_deviations(
    printed: pd.Series, fresh: pd.Series, runs: int, of: int
) -> pd.Series:
    """Test deviations of ``of`` runs, printed to one digit, against ``fresh`` of ours.

    They may be normalised by ``of`` or by ``of`` - 1. NaN where nothing varies here.
    """

    def chance(value: float, ours: float) -> float:
        half = half_unit(value, digits=1)
        low = ((value - half) / ours) ** 2
        high = ((value + half) / ours) ** 2 * of / (of - 1)
        free = (of - 1, runs - 1)
        return float(min(1.0, 2 * min(fdtr(*free, high), fdtrc(*free, low))))

    pairs = zip(printed, fresh, strict=True)
    found = [chance(a, b) if a > 0 and b > 0 else math.nan for a, b in pairs]
    return pd.Series(found, index=printed.index)


def deviation(low: pd.Series, high: pd.Series, runs: int) -> pd.Series:
    """The standard deviation of runs behind Student's interval of their mean."""
    return (high - low) / 2 * math.sqrt(runs) / t_quantile(runs - 1)
