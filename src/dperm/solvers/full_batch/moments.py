r"""Noisy moments, with any penalty afterwards: least squares from one release.

For t = (x / S, kappa y / S_y), clipped to C, the sum Q of t t^T is released with
symmetric noise of scale sigma in the isometric coordinates (q_ii, sqrt(2) q_ij).

*Sensitivity.* ||t t^T - s s^T||_F^2 = ||t||^4 + ||s||^4 - 2 (t.s)^2 <= 2 C^4, attained
at right angles. ∎ So sigma = sqrt(2) C^2 times the noise multiplier, and the release is
Gaussian. The rest is post-processing: the eigenvalues of the features' block are
floored at ``floor`` sigma sqrt(2 p), the edge of the noise's spectrum; q, whose p
entries have noise of scale s = sigma / sqrt(2), is shrunk by the factor 1 - ``shrink``
(p - 2) s^2 / |q|^2, or to 0 (James and Stein 1961, positive part); and

    u = argmin u.Q u / 2 - q.u + n psi(u)

is found with any penalty, including L1 norms and boxes (Vu and Slavkovic 2009; Foulds
et al. 2016; Wang 2018).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dperm.privacy.events import Gaussian, Ledger
from dperm.solvers.full_batch import Fit, Steps, too_wide
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.options import positive

#: Values that a search tries, in their product; ``Options`` has the default.
GRID = {"radius": [0.7, 1, 1.4], "weight": [0.5, 1, 2]}


@dataclass(frozen=True)
class Options:
    """Bound on a record, the label's weight in it, the floor and the shrinkage."""

    radius: float = 1.0  #: C as a multiple of sqrt(p + 1)
    weight: float = 1.0  #: kappa
    floor: float = 1.0  #: in units of the edge of the noise's spectrum
    #: 1 is James and Stein's; where features are correlated 0.7 was better (bench/fits)
    shrink: float = 0.7

    def __post_init__(self) -> None:
        positive(self, "radius", "weight", "floor", "shrink")


def refuses(options: Options, scaled: Scaled) -> str:
    """Refuse losses other than squares, which moments do not determine."""
    if not scaled.loss.quadratic:
        return (
            f"loss {scaled.loss.name}: second moments determine no other "
            "than squares"
        )
    return too_wide(scaled)


def bound(scaled: Scaled, options: Options) -> float:
    """C, the bound on t."""
    return options.radius * float(np.sqrt(scaled.p + 1))


def ledger(
    scaled: Scaled, noise_multiplier: float, options: Options
) -> Ledger:
    """One Gaussian release."""
    moved = float(np.sqrt(2)) * bound(scaled, options) ** 2
    event = Gaussian(
        sensitivity=moved,
        scale=moved * noise_multiplier,
        count=1,
        unit="sqrt(2) C^2, the replace-one change of a sum of t t^T, Frobenius norm",
        source="||t t' - s s'||^2 = |t|^4 + |s|^4 - 2 (t.s)^2",
    )
    return Ledger((event,), given=scaled.given)


class Run(Fit):
    """Minimisers from moments with independent noise."""

    def steps(self) -> Steps:
        """The noisy moments of features and label."""
        scaled = self.scaled
        options = self.options
        p = self.scaled.p
        moments = yield scaled.moments(bound(scaled, options), options.weight)
        scale = self.ledger.events[0].scale
        Q = floored(
            moments[:, :p, :p],
            max(options.floor * scale * np.sqrt(2 * p), 1e-9 * scaled.n),
        )
        q = shrunk(moments[:, :p, p].T, options.shrink * scale**2 / 2)
        q *= scaled.label / options.weight
        self.u = minimised(scaled, Q, q, scaled.n, np.zeros_like(q))


def shrunk(q: np.ndarray, variance: float) -> np.ndarray:
    """Vectors (p, L) with noise of that variance, by James and Stein's estimator."""
    squared = np.maximum((q**2).sum(axis=0), np.finfo(float).tiny)
    return q * np.maximum(0.0, 1 - max(len(q) - 2, 0) * variance / squared)


_STEPS = 2000
_STILL = 1e-9  # relative to the weights, a step that ends the search


def floored(Q: np.ndarray, floor: float) -> np.ndarray:
    """Raise the eigenvalues of symmetric matrices (L, p, p) to at least ``floor``.

    Without a positive floor a penalised quadratic may be unbounded below.
    """
    eigenvalues, vectors = np.linalg.eigh(Q)
    return (
        vectors * np.maximum(eigenvalues, floor)[:, None, :]
    ) @ vectors.swapaxes(-1, -2)


def minimised(
    scaled: Scaled, Q: np.ndarray, q: np.ndarray, records: float, u: np.ndarray
) -> np.ndarray:
    """Minimiser of u.Q u / 2 - q.u + records psi(u) for each run, starting at u.

    Q (L, p, p) is positive definite; q, u and the minimisers are (p, L). The penalty
    psi is that of ``scaled``.
    """
    if scaled.is_smooth:
        hessian = Q + records * np.diag(scaled.l2[:, 0])
        minimiser: np.ndarray = np.linalg.solve(hessian, q.T[:, :, None])[
            :, :, 0
        ].T
        return minimiser
    L = np.linalg.norm(Q, ord=2, axis=(1, 2))[None, :]
    y = u
    t = 1.0
    for _ in range(_STEPS):
        slope = np.einsum("lij,jl->il", Q, y) - q
        following = scaled.prox(y - slope / L, records / L)
        moved = following - u
        if np.abs(moved).max() <= _STILL * max(np.abs(following).max(), 1e-30):
            return following
        later = (1 + np.sqrt(1 + 4 * t * t)) / 2
        uphill = ((y - following) * moved).sum(axis=0) > 0
        y = following + np.where(uphill, 0.0, (t - 1) / later) * moved
        u = following
        t = later
    return u
