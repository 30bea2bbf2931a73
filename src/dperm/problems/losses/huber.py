"""phi(v) = v^2 / 2 where |v| <= 1, |v| - 1/2 beyond (Huber 1964, with delta 1)."""

import numpy as np

from dperm.numerics.compiled import clamp
from dperm.problems.losses import Loss


def value(v):
    """The loss u (v - u / 2), where u is v clipped to [-1, 1]."""
    u = clamp(v, 1.0)
    return u * (v - 0.5 * u)


LOSS = Loss(
    name="huber",
    labels="real",
    curvature=1.0,
    slopes=(-1.0, 1.0),
    value=value,
    derivative=lambda v: clamp(v, 1.0),
    second=lambda v: (np.abs(v) <= 1.0).astype(float),
    dual=lambda theta: 0.5 * theta**2,
    lipschitz=lambda reach: min(reach, 1.0),
)
