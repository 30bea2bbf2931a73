"""phi(v) = max(0, 1 - v)^2 / 2, of Table V of Lou and Cheung 2020."""

import math

from dperm.problems.losses import Loss

LOSS = Loss(
    name="smoothed_hinge",
    labels="sign",
    curvature=1.0,
    slopes=(-math.inf, 0.0),
    value=lambda v: 0.5 * min(v - 1.0, 0.0) ** 2,
    derivative=lambda v: min(v - 1.0, 0.0),
    second=lambda v: (v < 1.0).astype(float),
    dual=lambda theta: 0.5 * theta**2 + theta,
    lipschitz=lambda reach: reach + 1.0,
)
