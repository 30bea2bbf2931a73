r"""AdaSSP: noisy moments with a ridge that adapts to the smallest eigenvalue.

Wang 2018, arXiv:1803.02596, Algorithm 2, under replacing a record. With features
clipped to R and labels to Y three Gaussian releases of equal budget are made, of

- the smallest eigenvalue of sum x x^T, which moves by R^2: both data sets' lie in [l, l
  + R^2], l that of the records they share;
- sum x x^T, which moves by sqrt(2) R^2 in the Frobenius norm (:mod:`.moments`);
- sum x y, which moves by 2 R Y.

The paper's constants are for adding or removing a record, and compose three (epsilon /
3, delta / 3) releases; three Gaussian ones compose exactly. The ridge is lambda =
max(0, sigma sqrt(p log(2 p^2 / 0.05)) - smallest), where ``smallest`` is the first
release, lowered by what noise may have added, and sigma the noise of the second.
Penalties are added afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dperm.privacy.events import Gaussian, Ledger
from dperm.solvers.full_batch import Fit, Steps
from dperm.solvers.full_batch.moments import floored, minimised, refuses
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.options import positive

__all__ = ["Options", "Run", "ledger", "refuses"]

RIDGE_FAILURE = 0.05  # chance that the ridge is too small
_MARGIN = 1.645  # standard deviations that noise seldom exceeds
_SOURCE = "Wang 2018, Algorithm 2, with replace-one constants"
#: Values that a search tries, in their product; ``Options`` has the default.
GRID = {"radius": [0.5, 0.7, 1], "label": [0.7, 1, 2]}


@dataclass(frozen=True)
class Options:
    """Bounds on features and label."""

    radius: float = 1.0  #: R as a multiple of sqrt(p)
    label: float = 2.0  #: Y as a multiple of the label's scale

    def __post_init__(self) -> None:
        positive(self, "radius", "label")


def sensitivities(
    scaled: Scaled, options: Options
) -> tuple[float, float, float]:
    """Sensitivities of eigenvalue, matrix and vector; labels over their scale."""
    R = options.radius * scaled.radius
    return R**2, float(np.sqrt(2)) * R**2, 2 * R * options.label


def ledger(
    scaled: Scaled, noise_multiplier: float, options: Options
) -> Ledger:
    """Three Gaussian releases, each with sqrt(3) times the noise of one alone."""
    units = (
        "R^2, the replace-one change of the smallest eigenvalue",
        "sqrt(2) R^2, that of a sum of x x^T, Frobenius norm",
        "2 R Y, that of a sum of x y",
    )
    scale = float(np.sqrt(3)) * noise_multiplier
    events = tuple(
        Gaussian(moved, moved * scale, 1, unit, _SOURCE)
        for moved, unit in zip(
            sensitivities(scaled, options), units, strict=True
        )
    )
    return Ledger(events, given=scaled.given)


class Run(Fit):
    """Minimisers from moments with independent noise."""

    def steps(self) -> Steps:
        """The smallest eigenvalue, the matrix, the vector."""
        scaled = self.scaled
        p = self.scaled.p
        R = self.options.radius * scaled.radius
        Y = self.options.label
        scales = [event.scale for event in self.ledger.events]
        smallest = yield scaled.smallest_eigenvalue(R)
        Q = yield scaled.second_moments(R)
        q = yield scaled.label_products(R, Y)
        least_eigenvalue = np.maximum(smallest[0] - _MARGIN * scales[0], 0.0)
        target = scales[1] * np.sqrt(p * np.log(2 * p**2 / RIDGE_FAILURE))
        ridge = np.maximum(target - least_eigenvalue, 0.0)
        Q = floored(Q + ridge[:, None, None] * np.eye(p), 1e-9 * scaled.n)
        self.u = minimised(
            scaled, Q, scaled.label * q, scaled.n, np.zeros((p, len(ridge)))
        )
