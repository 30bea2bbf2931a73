r"""DP-Newton with double noise (Ganesh et al. 2023, arXiv:2305.13209).

Each step releases a noisy gradient g, a noisy trace of the Hessian and a noisy Newton
direction, of records clipped to R:

    g = sum_i grad l_i(u) + N,                  sensitivity 2 R,
    trace of the sum of Hessians + N,           sup phi'' R^2,
    d = (H + lambda I)^-1 (g / n + grad psi) + N,   Delta (``Scaled.newton_direction``),

with H the mean Hessian and that of the ridge psi; then u <- u - d. lambda balances
error and noise by the trace: it is R^2 (trace / (R^2 n^2 rho))^(1/3), at least R^2 / n,
with rho half the squared budget of a direction.

g and the trace, which determine Delta, are known by then. So every release is Gaussian
given those before it, and all of them compose exactly. The paper's gradient and trace
have constants for adding a record. A ridge is public and enters slope and Hessian. An
L1 norm would need a scaled proximal operator, for which no sensitivity is proved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dperm.privacy.events import Gaussian, Ledger
from dperm.solvers.full_batch import Fit, Steps, too_wide
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.options import at_least, positive, share

_SOURCE = "Ganesh et al. 2023, double noise; replace-one constants proved here"
#: Values that a search tries, in their product; ``Options`` has the default.
GRID = {"steps": [2, 5], "radius": [0.7, 1], "damping": [1, 3]}


@dataclass(frozen=True)
class Options:
    """Steps, bound on a record, and shares of the squared budget."""

    steps: int = 5  #: T
    radius: float = 1.0  #: R as a multiple of sqrt(p)
    share: float = 0.7  #: for the gradients
    trace: float = 0.1  #: of the rest, for the traces
    damping: float = 1.0  #: multiple of lambda

    def __post_init__(self) -> None:
        at_least(self, 1, "steps")
        positive(self, "radius", "damping")
        share(self, "share", "trace")


def refuses(options: Options, scaled: Scaled) -> str:
    """Refuse unbounded slopes, penalties that are not smooth, and many features."""
    if scaled.loss.lipschitz(np.inf) > 1:
        return f"loss {scaled.loss.name}: its slopes have no bound, or one above 1"
    if not scaled.is_smooth:
        return "an L1 norm or a box: no sensitivity of a scaled proximal step is proved"
    return too_wide(scaled)


def ledger(
    scaled: Scaled, noise_multiplier: float, options: Options
) -> Ledger:
    """Three Gaussian releases per step; the direction is in units of Delta."""
    R = options.radius * scaled.radius
    rest = 1 - options.share
    sensitivities = (2 * R, scaled.loss.curvature * R**2, 1.0)
    shares = (options.share, rest * options.trace, rest * (1 - options.trace))
    units = (
        "2 R, the replace-one change of a sum of gradients",
        "sup phi'' R^2, that of the trace of a sum of Hessians",
        "1, that of a Newton direction over Delta, given gradient and trace",
    )
    events = tuple(
        Gaussian(
            sensitivity=moved,
            scale=moved
            * noise_multiplier
            * float(np.sqrt(options.steps / part)),
            count=options.steps,
            unit=unit,
            source=_SOURCE,
        )
        for moved, part, unit in zip(sensitivities, shares, units, strict=True)
    )
    return Ledger(events, given=scaled.given)


class Run(Fit):
    """Newton's method with independent noise for each run."""

    def steps(self) -> Steps:
        """Gradient, trace and direction of every step."""
        scaled = self.scaled
        options = self.options
        n = scaled.n
        R = options.radius * scaled.radius
        noise = max(self.ledger.events[2].scale, 1e-12)
        rho = 0.5 / noise**2
        for _ in range(options.steps):
            g = yield scaled.clipped_gradient_sum(self.u, R)
            trace = yield scaled.curvature_sum(self.u, R)
            # in units of R, as published
            mean = np.maximum(trace[0] / n, 0.0) / R**2
            balance = R**2 * (mean / (n**2 * rho)) ** (1 / 3)
            damping = options.damping * np.clip(balance, R**2 / n, R**2 * n)
            slope = g / n + scaled.l2 * self.u
            direction = yield scaled.newton_direction(
                self.u, slope, damping, R
            )
            self.u = (
                self.u - scaled.newton_change(slope, damping, R) * direction
            )
