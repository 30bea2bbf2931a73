"""How sparse an optimum is."""

from __future__ import annotations

import numpy as np

SPARSITY = 5  # tau of Figure 2
_BINS = 30


def quasi_sparse(w: np.ndarray, sparsity: int = SPARSITY) -> float:
    """The least alpha for which w (p,) is (alpha, sparsity)-quasi-sparse."""
    values = np.sort(np.abs(w))[::-1]
    return float(values[sparsity]) if len(values) > sparsity else 0.0


def histogram(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of w (p,) by their absolute values: counts (b,), edges (b + 1,)."""
    return np.histogram(np.abs(w), bins=_BINS)
