"""Clipping thresholds, and the replace-one sensitivities that follow from them."""

from __future__ import annotations

import numpy as np


def share(M: np.ndarray) -> np.ndarray:
    """C_j / C = sqrt(M_j / sum M), shape (p,) (Mangold et al. 2022, Section 5.1)."""
    return np.sqrt(M / M.sum())


def sum_sensitivity(clip: np.ndarray) -> np.ndarray:
    """Replace-one sensitivity 2 C of a sum of vectors of norm at most C."""
    return 2.0 * clip


def mean_sensitivity(clip: np.ndarray, n: int) -> np.ndarray:
    """Replace-one sensitivity 2 C / n of a mean of n vectors of norm at most C."""
    return sum_sensitivity(clip) / n
