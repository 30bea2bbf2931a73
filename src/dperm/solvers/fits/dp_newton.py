r"""DP-Newton with double noise (Ganesh et al. 2023, arXiv:2305.13209).

Each step releases a noisy gradient g, a noisy trace of the Hessian and a noisy Newton
direction:

    g = sum_i grad l_i(u) + N,             sensitivity 2 R,
    trace of the mean Hessian + N,         sup phi'' R^2 / n,
    u - (H + lambda I)^-1 g / n + N,   Delta = ||g / n|| h / (n lambda^2 + lambda h),

with h = sup phi'' R^2, H the mean Hessian, and records clipped to R. lambda balances
error and noise by the trace: it is R^2 (trace / (R^2 n^2 rho))^(1/3), at least R^2 / n,
with rho half the squared budget of the direction.

*The direction's sensitivity under replacing a record.* Let H_A be the Hessian of the
records that both data sets share, without the other's. Both Hessians are H_A plus a
positive semi-definite term of one record, of norm h / n at most. So both inverses lie
between (H_A + lambda)^-1 - D and (H_A + lambda)^-1, where by Sherman and Morrison
the loss D has norm (h / n) / (lambda (lambda + h / n)) at most. They differ by D at
most: as much as under adding a record. ∎ g and the trace, which determine Delta, are
known by then, so that every release is Gaussian given those before it and all of them
compose exactly. The paper's trace and gradient have constants for adding a record.

A ridge is public and enters gradient and Hessian; an L1 norm would need a scaled
proximal operator, for which no sensitivity is proved.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dperm.core.privacy.ledger import Gaussian, Ledger
from dperm.core.solvers.options import at_least, positive, share
from dperm.solvers.fits import Fit, Steps, too_wide
from dperm.solvers.fits.scaled import Scaled
from dperm.solvers.records import Records, gram

_UNITS = (
    "2 R, the replace-one change of a sum of gradients",
    "sup phi'' R^2, that of the trace of a sum of Hessians",
    "Delta, that of a Newton direction given the gradient",
)


@dataclass(frozen=True)
class Options:
    """Steps, bound on a record, and shares of the squared budget."""

    steps: int = 5  #: T
    radius: float = 1.0  #: R as a multiple of sqrt(p)
    share: float = 0.7  #: for the gradient
    trace: float = 0.1  #: of the rest, for the trace
    damping: float = 1.0  #: multiple of lambda

    def __post_init__(self) -> None:
        at_least("steps", self.steps, 1)
        positive("radius", self.radius)
        share("share", self.share)
        share("trace", self.trace)
        positive("damping", self.damping)


def refuses(options: Options, at: Scaled) -> str:
    """Refuse unbounded slopes, penalties that are not smooth, and many features."""
    if at.loss.lipschitz(np.inf) > 1:
        return f"loss {at.loss.name}: expected slopes within [-1, 1]"
    if not at.is_smooth:
        return "an L1 norm or a box: no sensitivity of a scaled proximal step is proved"
    return too_wide(at)


def constants(at: Scaled, options: Options) -> tuple[float, float, np.ndarray]:
    """R, h, and noise over sensitivity of the three releases, per multiplier."""
    R = options.radius * at.radius
    left = 1 - options.share
    shares = [options.share, left * options.trace, left * (1 - options.trace)]
    return R, at.loss.curvature * R**2, np.sqrt(options.steps / np.array(shares))


def ledger(at: Scaled, noise_multiplier: float, options: Options) -> Ledger:
    """Three Gaussian releases per step, in units of their sensitivities."""
    ratios = constants(at, options)[2] * noise_multiplier
    source = "Ganesh et al. 2023, double noise; replace-one constants proved here"
    events = tuple(
        Gaussian(1.0, float(ratio), options.steps, unit, source)
        for ratio, unit in zip(ratios, _UNITS, strict=True)
    )
    return Ledger(events, given=at.given)


class Run(Fit):
    """Newton's method with independent noise for each run."""

    def steps(self) -> Steps:
        """Gradient, trace and iterate of every step."""
        at, options, n = self.at, self.options, self.at.n
        R, h, _ = constants(at, options)
        rho = 0.5 / max(self.ledger.events[2].scale, 1e-12) ** 2
        for _ in range(options.steps):
            u = self.u
            g = yield at.statistic(R, partial(_gradient, u), 2 * R).in_its_unit()
            slope = g / n + at.l2 * u
            trace = yield at.statistic(R, partial(_trace, u, R), h).in_its_unit()
            mean = np.maximum(trace[0] / n, 0.0) / R**2  # in units of R, as published
            least = R**2 * (mean / (n**2 * rho)) ** (1 / 3)
            damping = options.damping * np.maximum(least, R**2 / n)
            strong = damping + float(at.l2.min())
            Delta = np.linalg.norm(slope, axis=0) * h / (n * strong**2 + strong * h)
            step = partial(_stepped, u, slope, damping, at.l2[:, 0])
            self.u = yield at.statistic(R, step, Delta).in_its_unit()


def _gradient(u: np.ndarray, V: Any, records: Records) -> np.ndarray:
    total: np.ndarray = V.T @ records.slopes(V @ u + records.offset)
    return total


def _trace(u: np.ndarray, R: float, V: Any, records: Records) -> np.ndarray:
    bent = records.second(V @ u + records.offset)
    squares = np.minimum(records.norms, R)[:, None] ** 2
    trace: np.ndarray = (bent * squares).sum(axis=0, keepdims=True)
    return trace


def _stepped(
    u: np.ndarray,
    slope: np.ndarray,
    damping: np.ndarray,
    l2: np.ndarray,
    V: Any,
    records: Records,
) -> np.ndarray:
    """The Newton step u - (H + lambda I)^-1 slope of each run, (p, L)."""
    bent, step = records.second(V @ u + records.offset), np.empty_like(slope)
    for k in range(slope.shape[1]):
        H = gram(V, bent[:, k]) / records.n + np.diag(l2 + damping[k])
        step[:, k] = np.linalg.solve(H, slope[:, k])
    return u - step
