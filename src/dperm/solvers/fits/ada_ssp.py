r"""AdaSSP: noisy moments with a ridge that adapts to the smallest eigenvalue.

Wang 2018, arXiv:1803.02596, Algorithm 2, under replacing a record. With features
clipped to R and labels to Y three Gaussian releases of equal budget are made, of

- the smallest eigenvalue of sum x x^T: both data sets' lie in [l, l + R^2], l that of
  the records they share, so that it moves by R^2;
- sum x x^T: by sqrt(2) R^2 in the Frobenius norm (:mod:`.moments`);
- sum x y: by 2 R Y.

The paper's constants are for adding or removing a record, and compose three (epsilon /
3, delta / 3) releases; three Gaussian ones compose exactly. From the first, lowered by
what noise may have added, follows the ridge lambda = max(0, sigma sqrt(p log(2 p^2 /
0.05)) - smallest), sigma the noise of the second; penalties are added afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dperm.privacy.ledger import Gaussian, Ledger
from dperm.solvers.fits import Fit, too_wide
from dperm.solvers.fits.moments import isometric
from dperm.solvers.fits.quadratics import floored, minimised, symmetric_noise
from dperm.solvers.fits.scaled import Scaled, gram
from dperm.solvers.options import positive

DOUBT = 0.05  # chance that the ridge is too small
_MARGIN = 1.645  # standard deviations below which the smallest eigenvalue seldom is
_SOURCE = "Wang 2018, Algorithm 2, with replace-one constants"


@dataclass(frozen=True)
class Options:
    """Bounds on features and label.

    Attributes
    ----------
    radius : float
        R as a multiple of sqrt(p).
    label : float
        Y as a multiple of the label's scale.
    """

    radius: float = 1.0
    label: float = 2.0

    def __post_init__(self) -> None:
        positive("radius", self.radius)
        positive("label", self.label)


def refuses(options: Options, at: Scaled) -> str:
    """As for moments."""
    if not at.loss.quadratic:
        return f"loss {at.loss.name}: second moments determine no other than squares"
    return too_wide(at)


def sensitivities(at: Scaled, options: Options) -> tuple[float, float, float]:
    """Of the smallest eigenvalue, the matrix, the vector; labels over their scale."""
    R = options.radius * at.radius
    return R**2, float(np.sqrt(2)) * R**2, 2 * R * options.label


def ledger(at: Scaled, noise_multiplier: float, options: Options) -> Ledger:
    """Three Gaussian releases, each with sqrt(3) times the noise of one alone."""
    units = (
        "R^2, the replace-one change of the smallest eigenvalue",
        "sqrt(2) R^2, that of a sum of x x^T, Frobenius norm",
        "2 R Y, that of a sum of x y",
    )
    scale = float(np.sqrt(3)) * noise_multiplier
    events = tuple(
        Gaussian(moved, moved * scale, 1, unit, _SOURCE)
        for moved, unit in zip(sensitivities(at, options), units, strict=True)
    )
    return Ledger(events, given=at.given)


class Run(Fit):
    """Minimisers for differently noised moments."""

    def releases(self) -> Iterator[np.ndarray]:
        """The smallest eigenvalue, the matrix, the vector."""
        at, p = self.at, self.at.p
        moved = np.array(sensitivities(at, self.options))
        scales = np.sqrt(3) * self.noise_multiplier * moved
        R, Y = self.options.radius * at.radius, self.options.label
        XX, Xy, least = at.kept(("ada_ssp", R, Y), lambda: exact(at, R, Y))
        smallest = least + self.normal(scales[0], 1)
        yield smallest
        noise = symmetric_noise(self.normal(scales[1], p * (p + 1) // 2), p)
        Q = XX + noise
        yield isometric(Q)
        q = Xy[:, None] + self.normal(scales[2], p)
        yield q
        known = np.maximum(smallest[0] - _MARGIN * scales[0], 0.0)
        wanted = scales[1] * np.sqrt(p * np.log(2 * p**2 / DOUBT))
        ridge = np.maximum(wanted - known, 0.0)
        Q = floored(Q + ridge[:, None, None] * np.eye(p), 1e-9 * at.n)
        self.u = minimised(at, Q, at.label * q, at.n, np.zeros((p, len(ridge))))


def exact(at: Scaled, R: float, Y: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Moments of clipped records, labels over their scale, and what is smallest."""
    V = at.clipped(R)
    XX = gram(V)
    y = np.clip(-at.offset[:, 0] / at.label, -Y, Y)
    return XX, V.T @ y, float(np.linalg.eigvalsh(XX)[0])
