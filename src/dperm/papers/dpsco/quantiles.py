"""Quantiles of the excess risk, for what holds with probability 1 - beta."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import bdtr

LEAST_BEYOND = 2  # runs beyond a quantile; with fewer it is not shown
BETAS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)


def quantile(values: np.ndarray, beta: float) -> tuple[float, float, float]:
    """The 1 - beta quantile and its 95 % interval by order statistics."""
    ordered, size = np.sort(values), len(values)
    below = bdtr(np.arange(size + 1.0), size, 1 - beta)  # chance of so many, or fewer
    low, high = np.searchsorted(below, [0.025, 0.975])
    ends = ordered[max(low - 1, 0)], ordered[min(high, size - 1)]
    return float(np.quantile(ordered, 1 - beta)), float(ends[0]), float(ends[1])


def tail(
    values: np.ndarray, betas: Sequence[float] = BETAS
) -> Iterator[tuple[float, float, float, float]]:
    """(beta, quantile, low, high) of every beta that enough runs lie beyond."""
    for beta in betas:
        if len(values) * beta >= LEAST_BEYOND:
            yield beta, *quantile(values, beta)
