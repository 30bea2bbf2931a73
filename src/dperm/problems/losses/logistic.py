"""The logistic loss, phi(v) = log(1 + e^-v)."""

import numpy as np

from dperm.numerics.compiled import exp, softplus
from dperm.problems.losses import Loss


def second(v: np.ndarray) -> np.ndarray:
    """-phi' (1 + phi')."""
    d = LOSS.derivatives(v)
    return -d * (1.0 + d)


def dual(theta: np.ndarray) -> np.ndarray:
    """The entropy q log q + (1 - q) log(1 - q) with q = -theta."""
    q = -theta
    r = 1.0 + theta
    entropy = np.where(q > 0, q * np.log(np.where(q > 0, q, 1.0)), 0.0)
    return entropy + np.where(r > 0, r * np.log(np.where(r > 0, r, 1.0)), 0.0)


LOSS = Loss(
    name="logistic",
    labels="sign",
    curvature=0.25,
    slopes=(-1.0, 0.0),
    value=lambda v: softplus(-v),
    derivative=lambda v: -1.0 / exp(v, 1.0),
    second=second,
    dual=dual,
    lipschitz=lambda reach: 1.0,  # for every reach, as in the papers
    attained=False,
)
