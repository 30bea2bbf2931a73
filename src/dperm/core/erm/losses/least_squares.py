"""Least squares: half the squared residual, phi(v) = v^2 / 2."""

import math

import numpy as np
from numba import njit

from dperm.core.compiled import INLINE
from dperm.core.erm.losses import Loss


@njit(**INLINE)
def value(v):
    """v^2 / 2."""
    return 0.5 * v * v


@njit(**INLINE)
def derivative(v):
    """The margin v."""
    return v


LOSS = Loss(
    name="least_squares",
    labels="real",
    curvature=1.0,
    slopes=(-math.inf, math.inf),
    value=value,
    derivative=derivative,
    second=np.ones_like,
    dual=lambda theta: 0.5 * theta**2,
    lipschitz=lambda reach: reach,
    quadratic=True,
)
