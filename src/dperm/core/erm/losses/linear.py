"""phi(v) = -v, of the lower bounds of Bassily, Guzmán and Nandi 2021."""

import numpy as np
from numba import njit

from dperm.core.compiled import INLINE
from dperm.core.erm.losses import Loss


@njit(**INLINE)
def value(v):
    """-v."""
    return -v


@njit(**INLINE)
def derivative(v):
    """-1."""
    return -1.0


LOSS = Loss(
    name="linear",
    labels="none",
    curvature=0.0,
    slopes=(-1.0, -1.0),
    value=value,
    derivative=derivative,
    second=np.zeros_like,
    dual=np.zeros_like,  # at theta = -1, the only one
    lipschitz=lambda reach: 1.0,
    bounded=False,
)
