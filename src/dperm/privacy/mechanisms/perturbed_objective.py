r"""Objective perturbation: the price of the minimiser of a randomly tilted objective.

The release is the minimiser *u* of

.. math:: \sum_i \log(1 + e^{-u \cdot v_i}) + r(u) + \tfrac\Lambda2 \|u\|^2
          + b \cdot u,\qquad b \sim N(0, \sigma^2 I),

for records :math:`\|v_i\| \le R` and any closed convex *r* that does not depend on the
data (weighted L1 norms, boxes, ridges). Let :math:`M = R/\sigma`, :math:`K =
R^2/\Lambda`, and let :math:`G(e; m)` be the curve of N(0, 1) against N(m, 1), and 1
where :math:`e \le 0`. Each of these bounds :math:`\delta(\epsilon)` under replacing a
record:

- *joint*, if :math:`K \le \epsilon`: :math:`G(\epsilon; 2M) + G(\epsilon; M) +
  G(\epsilon - K; M)`;
- *grid*, for any *m*, :math:`a_i = i/m` and :math:`J_i` the largest
  :math:`\log(1 + K a (1 - a))` over the intervals that touch :math:`a_i`:
  :math:`\sum_i G(\epsilon - J_i; (1 + a_i) M) + G(\epsilon - J_i; a_i M)`.

Gaussian releases of :math:`\mu` made with it turn every m into :math:`\sqrt{m^2 +
\mu^2}`. ``docs/accounting.md`` has the proof, and compares it with earlier ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from dperm.privacy.accountants.pld import NODES, Profile, chorded
from dperm.privacy.accountants.tight import (
    beside_gaussians,
    gaussian_delta,
    profile,
)
from dperm.privacy.events import Event, require_positive

Array = NDArray[np.float64]

POINTS = 20  # m of the grid; more of them hardly help


@dataclass(frozen=True)
class PerturbedObjective(Event):
    r"""Exact minimiser of a logistic objective with a Gaussian linear term.

    `sensitivity` is :math:`2R`, `scale` the :math:`\sigma` of the linear term.
    """

    #: :math:`K = R^2/\Lambda`, with :math:`\Lambda` all of the ridge, in units of the
    #: sum over records
    curvature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("curvature", self.curvature)

    @property
    def reach(self) -> float:
        """M = R / sigma."""
        return 0.5 / self.noise_multiplier


def tilted_delta(
    event: PerturbedObjective, mu: float, epsilon: Array | float
) -> Array | float:
    """The bound at each epsilon, with Gaussian releases of that mu included."""
    losses = np.asarray(epsilon, dtype=float)[..., None]
    K = event.curvature
    a = np.arange(POINTS + 1) / POINTS
    near = np.clip(
        0.5, np.maximum(a - 1 / POINTS, 0), np.minimum(a + 1 / POINTS, 1)
    )
    J = np.log1p(K * near * (1 - near))
    shifts = np.append(1 + a, a) * event.reach
    joint = np.array([2.0, 1.0, 1.0, 0.0]) * event.reach
    bounds = (
        _total(losses - np.append(J, J), np.hypot(shifts, mu)),
        _total(losses - [0.0, 0.0, K, K], np.hypot(joint, mu)),
    )
    return np.minimum(np.minimum(*bounds), 1.0)


def _total(losses: Array, sizes: Array) -> Array:
    """Sum over the last axis of G(left; sizes)."""
    moved = sizes > 0
    curve = gaussian_delta(losses, np.where(moved, sizes, 1.0))  # type: ignore[arg-type]
    return np.where(losses <= 0, 1.0, np.where(moved, curve, 0.0)).sum(axis=-1)


@beside_gaussians.register
def _(event: PerturbedObjective, mu: float, delta: float) -> float | None:
    if event.count > 1:
        return None
    return crossing(
        lambda epsilon: float(tilted_delta(event, mu, epsilon)), delta
    )


def crossing(bound: Callable[[float], float], delta: float) -> float:
    """The least epsilon at which a falling bound is at most delta, from above."""

    @cache
    def excess(epsilon: float) -> float:
        """Logarithm of the bound on delta over delta; it falls in epsilon."""
        return math.log(max(bound(epsilon), 1e-300) / delta)

    low = 0.0
    high = 1e-3
    if excess(low) <= 0:
        return 0.0
    while excess(high) > 0:
        low = high
        high = 4 * high
    epsilon = float(brentq(excess, low, high, xtol=1e-13, rtol=1e-13)) * (
        1 + 1e-12
    )
    while excess(epsilon) > 0:
        epsilon *= 1 + 1e-12
    return epsilon


@profile.register
def _(event: PerturbedObjective) -> Profile:
    return chorded(tilted_delta(event, 0.0, NODES), event.count)
