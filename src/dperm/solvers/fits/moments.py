r"""Noisy moments, with any penalty afterwards: least squares from one release.

Of t = (x / S, kappa y / S_y), clipped to C, the sum Q of t t^T is released with
symmetric noise of scale sigma in the isometric coordinates (q_ii, sqrt(2) q_ij).

*Sensitivity.* ||t t^T - s s^T||_F^2 = ||t||^4 + ||s||^4 - 2 (t.s)^2 <= 2 C^4, attained
at right angles. ∎ So sigma = sqrt(2) C^2 times the noise multiplier, and the release is
Gaussian. All that follows is post-processing: the features' block gets its eigenvalues
floored at ``floor`` sigma sqrt(2 p), the edge of the noise's spectrum, and

    u = argmin u.Q u / 2 - q.u + n psi(u)

is found with whatever penalty, L1 norms and boxes included (Vu and Slavkovic 2009;
Foulds et al. 2016; Wang 2018).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dperm.privacy.ledger import Gaussian, Ledger
from dperm.solvers.fits import Fit, too_wide
from dperm.solvers.fits.quadratics import floored, minimised, symmetric_noise
from dperm.solvers.fits.scaled import Scaled, gram
from dperm.solvers.options import positive


@dataclass(frozen=True)
class Options:
    """Bound on a record, the label's weight in it, and the floor.

    Attributes
    ----------
    radius : float
        C as a multiple of sqrt(p + 1).
    weight : float
        kappa.
    floor : float
        In units of the edge of the noise's spectrum.
    """

    radius: float = 1.0
    weight: float = 1.0
    floor: float = 1.0

    def __post_init__(self) -> None:
        for key in ("radius", "weight", "floor"):
            positive(key, getattr(self, key))


def refuses(options: Options, at: Scaled) -> str:
    """Moments determine a quadratic loss alone."""
    if not at.loss.quadratic:
        return f"loss {at.loss.name}: second moments determine no other than squares"
    return too_wide(at)


def bound(at: Scaled, options: Options) -> float:
    """C."""
    return options.radius * float(np.sqrt(at.p + 1))


def ledger(at: Scaled, noise_multiplier: float, options: Options) -> Ledger:
    """One Gaussian release."""
    moved = float(np.sqrt(2)) * bound(at, options) ** 2
    event = Gaussian(
        sensitivity=moved,
        scale=moved * noise_multiplier,
        count=1,
        unit="sqrt(2) C^2, the replace-one change of a sum of t t^T, Frobenius norm",
        source="||t t' - s s'||^2 = |t|^4 + |s|^4 - 2 (t.s)^2",
    )
    return Ledger((event,), given=at.given)


class Run(Fit):
    """Minimisers for differently noised moments."""

    def releases(self) -> Iterator[np.ndarray]:
        """The noisy moments of features and label, upper triangle."""
        at, options, p = self.at, self.options, self.at.p
        C = bound(at, options)
        sigma = np.sqrt(2) * C**2 * self.noise_multiplier
        noise = self.normal(sigma, (p + 1) * (p + 2) // 2)
        key = ("moments", C, options.weight)
        exact = at.kept(key, lambda: moments(at, C, options.weight))
        whole = exact + symmetric_noise(noise, p + 1)
        yield isometric(whole)
        edge = options.floor * sigma * np.sqrt(2 * p)
        Q = floored(whole[:, :p, :p], max(edge, 1e-9 * at.n))
        q = whole[:, :p, p].T * (at.label / options.weight)
        self.u = minimised(at, Q, q, at.n, np.zeros_like(q))


def isometric(whole: np.ndarray) -> np.ndarray:
    """Coordinates of symmetric matrices (L, p, p) whose norm is Frobenius'; (k, L)."""
    rows, columns = np.triu_indices(whole.shape[1])
    factors = np.where(rows == columns, 1.0, np.sqrt(2.0))
    return factors[:, None] * whole[:, rows, columns].T


def moments(at: Scaled, C: float, weight: float) -> np.ndarray:
    """Sum of t t^T over the records clipped to C; shape (p + 1, p + 1)."""
    y = -weight * at.offset[:, 0] / at.label
    inside = np.minimum(1.0, C / np.maximum(np.hypot(at.norms, y), 1e-300))
    squares, p = inside**2, at.p
    found = np.empty((p + 1, p + 1))
    found[:p, :p] = gram(at.rows, squares)
    found[:p, p] = found[p, :p] = at.rows.T @ (squares * y)
    found[p, p] = squares @ y**2
    return found
