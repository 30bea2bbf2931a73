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

``docs/accounting.md`` has the proof. Gaussian releases of :math:`\mu` made with it turn
every m into :math:`\sqrt{m^2 + \mu^2}`. No bound for all data is less than
:math:`G(\epsilon; 2M)`, the Gaussian mechanism of shift 2 R, which many records and two
features approach; the joint bound is hardly more up to K = 0.45 epsilon or so.

The slopes of the logistic loss have one sign, which is why the bound is about half of
that for general losses (Redberg, Koskela and Wang 2023, arXiv:2401.00583). Earlier
bounds are looser: Chaudhuri, Monteleoni and Sarwate 2011; Kifer, Smith and Thakurta
2012.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from dperm.core.privacy.ledger import Event, ScaleError
from dperm.core.privacy.pld import Profile
from dperm.core.privacy.strict import beside_gaussians, gaussian_delta, profile

Array = NDArray[np.float64]

POINTS = 20  # m of the grid; more of them hardly help


@dataclass(frozen=True)
class PerturbedObjective(Event):
    r"""Exact minimiser of a logistic objective with a Gaussian linear term.

    `sensitivity` is :math:`2R`, `scale` the :math:`\sigma` of the linear term.
    """

    sensitivity: float
    scale: float
    count: int
    unit: str
    source: str
    #: :math:`K = R^2/\Lambda`, with :math:`\Lambda` all of the ridge, in units of the
    #: sum over records
    curvature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._plain("curvature", float)
        if not (self.curvature > 0 and math.isfinite(self.curvature)):
            raise ScaleError(f"curvature must be positive, got {self.curvature}")

    @property
    def reach(self) -> float:
        """M = R / sigma."""
        return 0.5 / self.noise_multiplier


def parts(event: PerturbedObjective) -> tuple[Array, Array]:
    """Shifts m and constants J of the grid, each (2 POINTS + 2,)."""
    a = np.arange(POINTS + 1) / POINTS
    near = np.clip(0.5, np.maximum(a - 1 / POINTS, 0), np.minimum(a + 1 / POINTS, 1))
    J = np.log1p(event.curvature * near * (1 - near))
    return np.append(1 + a, a) * event.reach, np.append(J, J)


def tilted_delta(event: PerturbedObjective, mu: float, epsilon: float) -> float:
    """The bound at an epsilon, with Gaussian releases of that mu included."""
    shifts, J = parts(event)
    bound = _total(shifts, J, mu, epsilon)
    if event.curvature <= epsilon:
        joint = np.array([2.0, 1.0, 1.0]) * event.reach
        last = np.array([0.0, 0.0, event.curvature])
        none = _total(np.zeros(1), np.full(1, event.curvature), mu, epsilon)
        bound = min(bound, _total(joint, last, mu, epsilon) + none)
    return min(bound, 1.0)


def _total(shifts: Array, J: Array, mu: float, epsilon: float) -> float:
    """Sum of G(epsilon - J; sqrt(m^2 + mu^2))."""
    left, sizes = epsilon - J, np.hypot(shifts, mu)
    if (left <= 0).any():
        return 1.0
    moved = sizes > 0
    return float(gaussian_delta(left[moved], sizes[moved]).sum())  # type: ignore[arg-type]


@beside_gaussians.register
def _(event: PerturbedObjective, mu: float, delta: float) -> float | None:
    if event.count > 1:
        return None
    return crossing(lambda epsilon: tilted_delta(event, mu, epsilon), delta)


def crossing(bound: Callable[[float], float], delta: float) -> float:
    """The least epsilon at which a falling bound is at most delta, from above."""

    @cache
    def excess(epsilon: float) -> float:
        return math.log(max(bound(epsilon), 1e-300) / delta)

    low, high = 0.0, 1e-3
    if excess(low) <= 0:
        return 0.0
    while excess(high) > 0:
        low, high = high, 4 * high
    epsilon = float(brentq(excess, low, high, xtol=1e-13, rtol=1e-13)) * (1 + 1e-12)
    while excess(epsilon) > 0:
        epsilon *= 1 + 1e-12
    return epsilon


@profile.register
def _(event: PerturbedObjective) -> Profile:
    """The convex hull of the bound, for compositions with other than Gaussian releases.

    The true curve is below the bound and convex in e^epsilon, and so below the hull.
    """

    def delta(losses: Any) -> Any:
        points = np.atleast_1d(np.asarray(losses, dtype=float))
        top = max(float(points.max(initial=0.0)), 4.0)
        nodes = np.unique(np.append(np.linspace(0.0, min(top, 40.0), 800), points))
        raw = np.array([tilted_delta(event, 0.0, one) for one in nodes])
        kept = _hull(np.exp(np.minimum(nodes, 700.0)), raw)
        deltas = np.interp(np.exp(np.minimum(points, 700.0)), *kept)
        return deltas if np.ndim(losses) else float(deltas[0])

    return Profile(delta, event.count)


def _hull(x: Array, y: Array) -> tuple[Array, Array]:
    """The corners of the largest convex function below points of increasing x."""
    kept: list[int] = []
    for k in range(len(x)):
        while len(kept) > 1:
            i, j = kept[-2:]
            if (y[j] - y[i]) * (x[k] - x[i]) < (y[k] - y[i]) * (x[j] - x[i]):
                break
            kept.pop()
        kept.append(k)
    return x[kept], y[kept]
