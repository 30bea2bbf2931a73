r"""Output perturbation: the minimiser of a ridged objective, plus Gaussian noise.

The objective, a mean over records, is (Lambda / n)-strongly convex, and a record of
norm at most R changes its gradient by 2 R / n when it is replaced, so that the
minimiser moves by at most 2 R / Lambda.

*Proof.* Strong monotonicity of the first objective's subdifferential gives, at the two
minimisers u and u', (Lambda / n) ||u - u'||^2 <= (u - u') . h with h the difference of
the gradients at u', ||h|| <= 2 R / n. ∎ (Chaudhuri, Monteleoni and Sarwate 2011,
Corollary 8, for smooth penalties.) The sensitivity includes the computed minimiser's
error of at most 1e-9 on either side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dperm.core.privacy.ledger import Gaussian, Ledger
from dperm.core.solvers.options import positive
from dperm.solvers.fits import Fit, Steps
from dperm.solvers.fits.objective_perturbation import WIDE
from dperm.solvers.fits.scaled import Scaled

TOLERANCE = 1e-9  # on the distance to the minimiser


@dataclass(frozen=True)
class Options:
    """Bound on a record, and ridge."""

    radius: float = 1.0  #: R as a multiple of sqrt(p)
    #: Lambda / (n R); replacing a record moves the minimiser by at most 2 / (n ridge)
    ridge: float = 0.03

    def __post_init__(self) -> None:
        positive("radius", self.radius)
        positive("ridge", self.ridge)


def refuses(options: Options, at: Scaled) -> str:
    """Refuse slopes that are not bounded by 1, and minima that take too long."""
    if at.loss.lipschitz(np.inf) > 1:
        return f"loss {at.loss.name}: expected slopes within [-1, 1]"
    if at.p > WIDE:
        return f"{at.p} features: exact minima take too long"
    return ""


def constants(at: Scaled, options: Options) -> tuple[float, float, float, float]:
    """R, Lambda, the ridge to be added for it, and the sensitivity."""
    R = options.radius * at.radius
    wanted = options.ridge * at.n * R
    own = at.n * float(at.l2.min())
    Lambda = max(wanted, own)
    return R, Lambda, max(wanted - own, 0.0), 2 * R / Lambda + 2 * TOLERANCE


def ledger(at: Scaled, noise_multiplier: float, options: Options) -> Ledger:
    """One Gaussian release."""
    moved = constants(at, options)[-1]
    event = Gaussian(
        sensitivity=moved,
        scale=moved * noise_multiplier,
        count=1,
        unit="2 R / Lambda, the replace-one change of the minimiser",
        source="Chaudhuri et al. 2011, output perturbation; strong monotonicity",
    )
    return Ledger((event,), given=at.given)


class Run(Fit):
    """One minimiser, with independent noise for every run."""

    def steps(self) -> Steps:
        """The minimiser with noise."""
        R, Lambda, ridge, moved = constants(self.at, self.options)
        self.u = yield self.at.minimum(R, ridge, TOLERANCE * Lambda, moved)
