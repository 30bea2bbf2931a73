"""phi(v) = -v, of the lower bounds of Bassily, Guzmán and Nandi 2021."""

import numpy as np

from dperm.problems.losses import Loss

LOSS = Loss(
    name="linear",
    labels="none",
    curvature=0.0,
    slopes=(-1.0, -1.0),
    value=lambda v: -v,
    derivative=lambda v: -1.0,
    second=np.zeros_like,
    dual=np.zeros_like,  # at theta = -1, the only one
    lipschitz=lambda reach: 1.0,
    bounded=False,
)
