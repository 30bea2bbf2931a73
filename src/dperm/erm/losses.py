"""Losses of a linear model, as functions of one number per record.

With a margin v_i = A_i w + offset_i the losses need no label:

- least squares: A = X, offset = -y, phi(v) = v^2 / 2 (half the squared residual),
- logistic: A = diag(y) X, offset = 0, phi(v) = log(1 + e^-v), labels y in {-1, +1},
- smoothed hinge: A and offset as for logistic, phi(v) = max(0, 1 - v)^2 / 2.

The smooth part of every objective is f(w) = (1/n) sum_i phi(v_i).
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from dperm.compiled import INLINE, exp, softplus

LEAST_SQUARES = 0
LOGISTIC = 1
SMOOTHED_HINGE = 2


@dataclass(frozen=True)
class Loss:
    """A loss: its code inside kernels and the bound on its second derivative."""

    name: str
    code: int
    curvature: float  # sup of phi''


LOSSES = {
    "least_squares": Loss("least_squares", LEAST_SQUARES, 1.0),
    "logistic": Loss("logistic", LOGISTIC, 0.25),
    "smoothed_hinge": Loss("smoothed_hinge", SMOOTHED_HINGE, 1.0),
}


@njit(**INLINE)
def derivative(loss, v):
    """phi'(v) for one margin."""
    if loss == LEAST_SQUARES:
        return v
    if loss == SMOOTHED_HINGE:
        return min(v - 1.0, 0.0)
    return -1.0 / (1.0 + exp(v))


@njit(**INLINE)
def value(loss, v):
    """phi(v) for one margin."""
    if loss == LEAST_SQUARES:
        return 0.5 * v * v
    if loss == SMOOTHED_HINGE:
        return 0.5 * min(v - 1.0, 0.0) ** 2
    return softplus(-v)


def conjugate(loss: Loss, theta: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Conjugate of v -> phi(v), less the offset's share, for one dual vector.

    For margins v = z + offset the conjugate in z is phi*(theta) - theta * offset.

    Parameters
    ----------
    loss : Loss
    theta : ndarray, shape (n,)
        Derivatives phi'(v), possibly shrunk towards zero.
    offset : ndarray, shape (n,)

    Returns
    -------
    ndarray, shape (n,)
    """
    if loss.code == LEAST_SQUARES:
        return 0.5 * theta**2 - theta * offset
    if loss.code == SMOOTHED_HINGE:
        return 0.5 * theta**2 + theta * (1.0 - offset)
    q = np.clip(-theta, 0.0, 1.0)
    entropy = np.where(q > 0, q * np.log(np.where(q > 0, q, 1.0)), 0.0)
    r = 1.0 - q
    return entropy + np.where(r > 0, r * np.log(np.where(r > 0, r, 1.0)), 0.0)
