r"""Objective perturbation: the minimiser of the objective with a random linear term.

    u = argmin sum_i log(1 + e^(-v_i . u)) + n psi(u) + (Lambda_0 / 2) ||u||^2 + b . u,
    b ~ N(0, sigma^2 I),   ||v_i|| <= R,   sigma = noise multiplier times 2 R,

with Lambda = R^2 / K in all; what the penalty has of it counts. The bound on its
privacy, under replacing a record and with any closed convex psi that does not depend on
the data, is proved in :mod:`dperm.accountants.perturbed_objective`; up to
K = 0.45 epsilon or so it is that of the Gaussian mechanism with sensitivity 2 R.

``exact`` minima are those to which the proof applies; what is published is computed
until a subgradient of norm tau = ``tolerance`` Lambda is known, which the ledger names
as an assumption. ``approximate`` minima are within tau / Lambda of them and hide what
is left by N(0, s^2 I) with s = 2 tau / (Lambda mu): both data sets' minima are off, so
that replacing a record moves what is left by 2 tau / Lambda, and the second release is
mu-GDP given the first (Iyengar et al. 2019, whose code has half of that shift).
"""

from __future__ import annotations

from dataclasses import dataclass

from dperm.accountants.perturbed_objective import PerturbedObjective
from dperm.core.privacy.ledger import EXACT_MINIMA, Gaussian, Ledger
from dperm.core.solvers.options import one_of, positive
from dperm.solvers.fits import Fit, Steps
from dperm.solvers.fits.scaled import Scaled

MINIMA = ("exact", "approximate")
BLOCKS = True  # whether records may be read in blocks
WIDE = 2000  # features beyond which a non-smooth minimiser takes minutes


@dataclass(frozen=True)
class Options:
    """Bound on a record, ridge, and what minima are taken for."""

    radius: float = 1.0  #: R as a multiple of sqrt(p)
    curvature: float = 0.45  #: K = R^2 / Lambda as a multiple of the target epsilon
    minima: str = "exact"  #: {"exact", "approximate"}
    tolerance: float = 1e-9  #: tau / Lambda
    digits: float = 1e-4  #: mu of hiding what is left

    def __post_init__(self) -> None:
        for key in ("radius", "curvature", "tolerance", "digits"):
            positive(key, getattr(self, key))
        one_of("minima", self.minima, MINIMA)


def refuses(options: Options, at: Scaled) -> str:
    """The proof is of the logistic loss."""
    if at.loss.name != "logistic":
        return (
            f"loss {at.loss.name}: the bound is proved for slopes of one sign, which "
            "are those of the logistic loss; least squares has none at all"
        )
    if at.p > WIDE and not at.is_smooth:
        return f"{at.p} features: exact minima with an L1 norm take too long"
    return ""


def constants(at: Scaled, options: Options) -> tuple[float, float, float]:
    """R, Lambda, and the ridge that has to be added for it."""
    R = options.radius * at.radius
    wanted = R**2 / (options.curvature * at.epsilon)
    own = at.n * float(at.l2.min())
    return R, max(wanted, own), max(wanted - own, 0.0)


def ledger(at: Scaled, noise_multiplier: float, options: Options) -> Ledger:
    """The tilted minimum, and the noise that hides its digits if it is approximate."""
    R, Lambda, _ = constants(at, options)
    tilt = PerturbedObjective(
        sensitivity=2 * R,
        scale=2 * R * noise_multiplier,
        count=1,
        unit="2 R, the shift of the linear term that undoes replacing a record",
        source="proved in dperm.accountants.perturbed_objective",
        curvature=R**2 / Lambda,
    )
    if options.minima == "exact":
        return Ledger((tilt,), given=(*at.given, EXACT_MINIMA))
    digits = Gaussian(
        sensitivity=2 * options.tolerance,
        scale=2 * options.tolerance / options.digits if noise_multiplier else 0.0,
        count=1,
        unit="2 tau / Lambda, the shift of the distance to the minimum",
        source="Iyengar et al. 2019, approximate minima perturbation",
    )
    return Ledger((tilt, digits), given=at.given)


class Run(Fit):
    """Minimisers of differently tilted objectives."""

    def steps(self) -> Steps:
        """The minimisers, with noise on their digits if they are approximate."""
        at, options = self.at, self.options
        R, Lambda, ridge = constants(at, options)
        off = options.tolerance if options.minima == "approximate" else 0.0
        tolerance = options.tolerance * Lambda
        self.u = yield at.tilted_minimum(R, ridge, tolerance, R**2 / Lambda, off)
