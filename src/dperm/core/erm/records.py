"""What single records contribute to an objective."""

from __future__ import annotations

import numpy as np
from numba import njit

from dperm.core.compiled import KERNEL
from dperm.core.erm.losses import value
from dperm.core.erm.problem import Problem


def losses(problem: Problem, margins: np.ndarray) -> np.ndarray:
    """The loss of every record at its margin, shape (n,)."""
    found: np.ndarray = _losses(problem.loss.code, margins)
    return found


@njit(**KERNEL)
def _losses(loss, margins):
    """Phi of each margin; shape (n,)."""
    out = np.empty(margins.shape[0])
    for i in range(margins.shape[0]):
        out[i] = value(loss, margins[i])
    return out
