r"""DP-GD that publishes only its last iterate: shifted interpolation.

    y_t = u_{t-1} - eta (sum_i clip_C(grad l_i(u_{t-1})) + N(0, (sigma 2 C)^2 I)) / n,
    u_t = argmin_u ||u - y_t||^2 / (2 eta) + psi(u) + rho ||u||^2 / 2 in a ball,

and only y_T is released: the noise of earlier steps hides the records as well.

*Conditions.* Records are clipped to R and slopes to C / ||x||, so that every loss is
convex and (sup phi'' R^2)-smooth whatever the record; for eta <= 2 / (sup phi'' R^2)
the step does not expand. The map from y_t to u_t reads no record and is c-Lipschitz,
c = 1 / (1 + eta (rho + l2)), with values in the ball of diameter D. So the release is
priced by :mod:`dperm.accountants.chained`, with the proof (Bok, Su and Altschuler 2024,
arXiv:2403.00278, noisy gradient descent, strongly convex or projected). T steps cost no
more than about 2 / (1 - c), or 2 D n / (C eta), steps of DP-GD. The ridge rho and the
ball bias the solution; without both it is DP-GD without momentum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dperm.accountants.chained import LastIterate
from dperm.core.privacy.ledger import Ledger
from dperm.core.solvers.options import at_least, positive
from dperm.solvers.fits import Fit, Steps
from dperm.solvers.fits.dp_gd import refuses, threshold
from dperm.solvers.fits.scaled import Scaled

__all__ = ["Options", "Run", "ledger", "refuses"]


@dataclass(frozen=True)
class Options:
    """Steps, step size, clips, ridge and ball."""

    steps: int = 50  #: T
    step: float = 1.0  #: eta in units of 1 / (sup phi'' R^2), 2 at most
    clip: float = 1.0  #: C as in DP-GD
    radius: float = 1.0  #: R as a multiple of sqrt(p)
    ridge: float = 0.03  #: rho in units of sup phi''
    #: radius of the ball, in the label's scale; infinite for none
    ball: float = math.inf

    def __post_init__(self) -> None:
        at_least("steps", self.steps, 1)
        at_least("ridge", self.ridge, 0)
        for key in ("step", "clip", "radius", "ball"):
            positive(key, getattr(self, key))
        if self.step > 2:
            raise ValueError(f"options.step: expected 2 at most, found {self.step}")


def constants(at: Scaled, options: Options) -> tuple[float, float, float, float]:
    """R, eta, rho and the radius of the ball."""
    R = options.radius * at.radius
    eta = options.step / (at.loss.curvature * R**2)
    return R, eta, options.ridge * at.loss.curvature, options.ball * at.label


def ledger(at: Scaled, noise_multiplier: float, options: Options) -> Ledger:
    """One release, whose noise is drawn in T steps."""
    _, eta, rho, ball = constants(at, options)
    event = LastIterate(
        sensitivity=2 * threshold(at, options.clip),
        scale=0.0,
        count=1,
        unit="2 C, the replace-one change of a sum of clipped gradients in one step",
        source="Bok, Su and Altschuler 2024, shifted interpolation",
        steps=options.steps,
        contraction=1 / (1 + eta * (rho + float(at.l2.min()))),
        diameter=None if math.isinf(ball) else 2 * ball * at.n / eta,
    )
    return Ledger((event.louder(noise_multiplier),), given=at.given)


class Run(Fit):
    """Descents with independent noise."""

    def steps(self) -> Steps:
        """The last iterate, then the map that reads no record."""
        at, options = self.at, self.options
        R, eta, rho, ball = constants(at, options)
        C, T = threshold(at, options.clip), options.steps
        y = yield at.last_iterate(R, C, eta, T, rho, ball)
        self.u = at.inside(y, eta, rho, ball)
