r"""Iterative Hessian mixing: Newton-like steps, each in the metric of a fresh sketch.

Lev et al. 2026, arXiv:2601.07545. The smallest eigenvalue of sum x x^T is
released first: both data sets' lie in [l, l + R^2], l that of the records they share.
Lowered by R^2 and by a margin that its noise exceeds with probability delta / 10, which
is charged to delta, it is a lower bound on l, and eta what the sketch's floor lacks.
Then T times

    H = mean of y y^T over k normal rows y ~ N(0, sum x x^T + eta I),
    g = sum_i clip_C(grad l_i(u)) + noise,
    u <- argmin g.(z - u) + (z - u).H (z - u) / 2 + n psi(z).

A sketch's noise affects only the metric, and the gradients decide where the descent
ends. So the ridge that hides records does not bias the solution, unlike in Gaussian
mixing. The authors' constants are T = 3 and k = 6 max(p, log(4 T / rho)). They spend
epsilon / 2 on sketches, by a Rényi bound under adding or removing a record, and epsilon
/ 2 on gradients. Here sketches and Gaussian releases compose exactly under replacing a
record (:mod:`dperm.privacy.mechanisms.sketch`). They clip residuals, we clip gradients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from dperm.privacy.events import Event, Gaussian, Ledger
from dperm.privacy.mechanisms.sketch import GaussianSketch
from dperm.solvers.full_batch import Fit, Steps
from dperm.solvers.full_batch.dp_gd import threshold
from dperm.solvers.full_batch.moments import floored, minimised, refuses
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.options import at_least, positive, share

__all__ = ["Options", "Run", "ledger", "refuses"]

DELTA_SHARE = 0.1  # share of delta
_SOURCE = "Lev et al. 2026, with the exact law under replacing a record"
#: Values that a search tries, in their product; ``Options`` has the default.
GRID = {"steps": [2, 6], "clip": [0.3, 1], "share": [0.3, 0.5]}


@dataclass(frozen=True)
class Options:
    """Steps, rows, clips and shares of the squared budget."""

    steps: int = 3  #: T
    #: k as a multiple of p, or of log(20 T / delta) if that is more
    rows: float = 6.0
    clip: float = 1.0  #: C as in DP-GD
    radius: float = 1.0  #: R as a multiple of sqrt(p)
    share: float = 0.5  #: for the sketches
    eigenvalue: float = 0.1  #: of that, for the smallest eigenvalue

    def __post_init__(self) -> None:
        at_least(self, 1, "steps")
        positive(self, "rows", "clip", "radius")
        share(self, "share", "eigenvalue")


def known(
    scaled: Scaled, R: float, eigenvalue: np.ndarray, event: Event
) -> np.ndarray:
    """Lower bound on the shared records' smallest eigenvalue, shape (L,).

    It fails with probability at most ``DELTA_SHARE`` delta.
    """
    margin = R**2 - float(ndtri(DELTA_SHARE * scaled.delta)) * event.scale
    return np.maximum(eigenvalue[0] - margin, 0.0)


def ledger(
    scaled: Scaled, noise_multiplier: float, options: Options
) -> Ledger:
    """The smallest eigenvalue, T sketches and T gradients."""
    R = options.radius * scaled.radius
    T = options.steps
    noise = noise_multiplier
    eigenvalue_share = options.share * options.eigenvalue
    # above p rows, so that the sketch is regular
    k = max(
        int(options.rows * max(scaled.p, np.log(20 * T / scaled.delta))),
        scaled.p + 2,
    )
    eigenvalue = Gaussian(
        R**2,
        R**2 * noise / float(np.sqrt(eigenvalue_share)),
        1,
        "R^2, the replace-one change of the smallest eigenvalue of a sum of x x^T",
        _SOURCE,
    )
    sketch = GaussianSketch(
        sensitivity=R,
        # the loss of kT rows has deviation s^2 sqrt(kT), like mu of a Gaussian release
        scale=R
        * float(
            (noise * np.sqrt(k * T / (options.share - eigenvalue_share)))
            ** 0.5
        ),
        count=T,
        unit="R, the bound on a record; the scale is the root of the least covariance",
        source=_SOURCE,
        rows=k,
        doubt=DELTA_SHARE * scaled.delta,
    )
    moved = 2 * threshold(scaled, options.clip)
    gradient = Gaussian(
        moved,
        moved * noise * float(np.sqrt(T / (1 - options.share))),
        T,
        "2 C, the replace-one change of a sum of clipped gradients",
        "Lev et al. 2026, Algorithm 1, with replace-one constants",
    )
    return Ledger((eigenvalue, sketch, gradient), given=scaled.given)


class Run(Fit):
    """Descents, each step in its own metric."""

    def steps(self) -> Steps:
        """The smallest eigenvalue, then a sketch and a gradient per step."""
        scaled = self.scaled
        options = self.options
        R = options.radius * scaled.radius
        C = threshold(scaled, options.clip)
        eigenvalue, sketch, _ = self.ledger.events
        smallest = yield scaled.smallest_eigenvalue(R)
        below = known(scaled, R, smallest, eigenvalue)
        for _ in range(options.steps):
            rows = sketch.rows  # type: ignore[attr-defined]
            H = floored((yield scaled.sketch(R, rows, below)), 1e-9 * scaled.n)
            g = yield scaled.gradient_sum(self.u, C)
            q = np.einsum("lij,jl->il", H, self.u) - g
            self.u = minimised(scaled, H, q, scaled.n, self.u)
