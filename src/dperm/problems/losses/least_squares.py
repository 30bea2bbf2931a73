"""Least squares: half the squared residual, phi(v) = v^2 / 2."""

import math

import numpy as np

from dperm.problems.losses import Loss

LOSS = Loss(
    name="least_squares",
    labels="real",
    curvature=1.0,
    slopes=(-math.inf, math.inf),
    value=lambda v: 0.5 * v * v,
    derivative=lambda v: v,
    second=np.ones_like,
    dual=lambda theta: 0.5 * theta**2,
    lipschitz=lambda reach: reach,
    quadratic=True,
)
