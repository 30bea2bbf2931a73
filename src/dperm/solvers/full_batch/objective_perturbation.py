r"""Objective perturbation: the minimiser of the objective with a random linear term.

    u = argmin sum_i log(1 + e^(-v_i . u)) + n psi(u) + (Lambda_0 / 2) ||u||^2 + b . u,
    b ~ N(0, sigma^2 I),   ||v_i|| <= R,   sigma = noise multiplier times 2 R,

with Lambda = R^2 / K in total, including the penalty's share. The privacy bound, under
replacing a record and with any closed convex psi that does not depend on the data, is
that of :mod:`dperm.privacy.mechanisms.perturbed_objective`. Up to about K = 0.45
epsilon it is that of the Gaussian mechanism with sensitivity 2 R.

The proof applies to ``exact`` minima. The published ones are computed up to a
subgradient of norm tau = ``tolerance`` Lambda; the ledger names exactness as an
assumption. ``approximate`` minima are within tau / Lambda of exact ones, and N(0, s^2
I) with s = 2 tau / (Lambda mu) hides the error. Both data sets' minima have an error,
which replacing a record moves by at most 2 tau / Lambda, and the second release is
mu-GDP given the first (Iyengar et al. 2019, whose code has half of that shift).
"""

from __future__ import annotations

from dataclasses import dataclass

from dperm.privacy.events import EXACT_MINIMA, Gaussian, Ledger
from dperm.privacy.mechanisms.perturbed_objective import PerturbedObjective
from dperm.solvers.full_batch import Fit, Steps
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.options import one_of, positive

MINIMA = ("exact", "approximate")
MAX_NONSMOOTH_FEATURES = 2000  # beyond, a non-smooth minimiser takes minutes
MAX_HESSIAN_FEATURES = 5000  # beyond, a Hessian takes more than 200 MB
#: Values that a search tries, in their product; ``Options`` has the default.
DEFAULT = {"curvature": 0.3}  # least excess over data sets
GRID = {"curvature": [0.1, 0.3, 1], "radius": [0.7, 1]}


@dataclass(frozen=True)
class Options:
    """Bound on a record, ridge, and treatment of minima."""

    radius: float = 1.0  #: R as a multiple of sqrt(p)
    #: K = R^2 / Lambda as a multiple of the target epsilon
    curvature: float = 0.45
    minima: str = "exact"  #: {"exact", "approximate"}
    tolerance: float = 1e-9  #: tau / Lambda
    digits: float = 1e-4  #: mu of the release that hides the error

    def __post_init__(self) -> None:
        positive(self, "radius", "curvature", "tolerance", "digits")
        one_of("minima", self.minima, MINIMA)


def refuses(options: Options, scaled: Scaled) -> str:
    """Refuse losses for which nothing is proved, and minima that take too long."""
    if scaled.loss.name != "logistic":
        return (
            f"loss {scaled.loss.name}: the bound is proved for slopes of one sign, "
            "which are those of the logistic loss; least squares has none at all"
        )
    if scaled.p > MAX_NONSMOOTH_FEATURES and not scaled.is_smooth:
        return (
            f"{scaled.p} features: exact minima with an L1 norm take too long"
        )
    if scaled.p > MAX_HESSIAN_FEATURES:
        return (
            f"its minima need a {scaled.p} x {scaled.p} matrix: "
            f"{MAX_HESSIAN_FEATURES} features at most; dp_gd needs none"
        )
    if not constants(scaled, options)[1] > 0:
        return "epsilon=inf needs l2 above 0: without a ridge there may be no minimum"
    return ""


def constants(scaled: Scaled, options: Options) -> tuple[float, float, float]:
    """R, Lambda, and the ridge to be added for it."""
    R = options.radius * scaled.radius
    needed_curvature = R**2 / (options.curvature * scaled.epsilon)
    penalty_curvature = scaled.n * float(scaled.l2.min())
    return (
        R,
        max(needed_curvature, penalty_curvature),
        max(needed_curvature - penalty_curvature, 0.0),
    )


def ledger(
    scaled: Scaled, noise_multiplier: float, options: Options
) -> Ledger:
    """The tilted minimum, and the noise that hides its error if it is approximate."""
    R, Lambda, _ = constants(scaled, options)
    tilt = PerturbedObjective(
        sensitivity=2 * R,
        scale=2 * R * noise_multiplier,
        count=1,
        unit="2 R, the shift of the linear term that undoes replacing a record",
        source="proved in dperm.privacy.mechanisms.perturbed_objective",
        curvature=R**2 / Lambda,
    )
    if options.minima == "exact":
        return Ledger((tilt,), given=(*scaled.given, EXACT_MINIMA))
    digits = Gaussian(
        sensitivity=2 * options.tolerance,
        scale=2 * options.tolerance / options.digits
        if noise_multiplier
        else 0.0,
        count=1,
        unit="2 tau / Lambda, the shift of the distance to the minimum",
        source="Iyengar et al. 2019, approximate minima perturbation",
    )
    return Ledger((tilt, digits), given=scaled.given)


class Run(Fit):
    """Minimisers of objectives with independent linear terms."""

    def steps(self) -> Steps:
        """The minimisers, with noise on their error if they are approximate."""
        scaled = self.scaled
        options = self.options
        R, Lambda, ridge = constants(scaled, options)
        off = options.tolerance if options.minima == "approximate" else 0.0
        tolerance = options.tolerance * Lambda
        scaled.hold_clipped(R)
        self.u = yield scaled.tilted_minimum(
            R, ridge, tolerance, R**2 / Lambda, off
        )
