r"""Noisy gradients in the metric of a noisy Gram matrix (boosted AdaSSP).

The Gram matrix of clipped records, which bounds the Hessian up to sup phi'', is
released once, with symmetric noise (sensitivity sqrt(2) R^2, :mod:`.moments`), and its
eigenvalues are floored at the edge of the noise. Then T times

    g = sum_i clip_C(grad l_i(u)) + noise,
    u <- argmin g.(z - u) + (z - u).P (z - u) / (2 step) + n psi(z),   P = sup phi'' Q.

All releases are Gaussian and compose exactly: a share of the squared budget is for the
matrix, the rest for the gradients. For least squares it is the boosting of Tang et al.
2023, arXiv:2303.03451; for other losses Q bounds the curvature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dperm.privacy.events import Gaussian, Ledger
from dperm.solvers.full_batch import Fit, Steps, too_wide
from dperm.solvers.full_batch.dp_gd import threshold
from dperm.solvers.full_batch.moments import floored, minimised
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.options import at_least, positive, share

#: Values that a search tries, in their product; ``Options`` has the default.
DEFAULT = {
    "steps": 10,
    "clip": 0.5,
    "step": 0.3,
}  # least excess over data sets
GRID = {"steps": [3, 10], "clip": [0.2, 0.5], "step": [0.3, 1]}


@dataclass(frozen=True)
class Options:
    """Steps, step size, clips and the matrix's share."""

    steps: int = 3  #: T
    step: float = 1.0  #: 1 takes the whole step of the metric
    clip: float = 1.0  #: C as in DP-GD
    radius: float = 1.0  #: R as a multiple of sqrt(p)
    share: float = 0.3  #: of the squared budget, for the matrix

    def __post_init__(self) -> None:
        at_least(self, 1, "steps")
        positive(self, "step", "clip", "radius")
        share(self, "share")


def refuses(options: Options, scaled: Scaled) -> str:
    """Accept every loss and penalty, but not many features."""
    return too_wide(scaled)


def scales(
    scaled: Scaled, options: Options
) -> tuple[float, float, float, float]:
    """Sensitivity of the matrix and of a gradient, and noise of each per multiplier."""
    matrix = float(np.sqrt(2)) * (options.radius * scaled.radius) ** 2
    gradient = 2 * threshold(scaled, options.clip)
    matrix_scale = matrix / float(np.sqrt(options.share))
    gradient_scale = gradient * float(
        np.sqrt(options.steps / (1 - options.share))
    )
    return matrix, gradient, matrix_scale, gradient_scale


def ledger(
    scaled: Scaled, noise_multiplier: float, options: Options
) -> Ledger:
    """The matrix, and T gradients."""
    matrix, gradient, matrix_scale, gradient_scale = scales(scaled, options)
    source = "Tang et al. 2023, with replace-one constants"
    events = (
        Gaussian(
            matrix,
            matrix_scale * noise_multiplier,
            1,
            "sqrt(2) R^2, the replace-one change of a sum of x x^T, Frobenius norm",
            source,
        ),
        Gaussian(
            gradient,
            gradient_scale * noise_multiplier,
            options.steps,
            "2 C, the replace-one change of a sum of clipped gradients",
            source,
        ),
    )
    return Ledger(events, given=scaled.given)


def metric_of(
    scaled: Scaled, ledger: Ledger, Q: np.ndarray, step: float
) -> np.ndarray:
    """The Hessian's bound by noisy matrices Q, over a step size; shape (L, p, p).

    Q is the first release; its eigenvalues are floored at the edge of its noise.
    """
    edge = max(ledger.events[0].scale * np.sqrt(2 * scaled.p), 1e-9 * scaled.n)
    metric: np.ndarray = scaled.loss.curvature * floored(Q, edge) / step
    return metric


class Run(Fit):
    """Descents, each in its own metric."""

    def steps(self) -> Steps:
        """The matrix, then noisy gradients."""
        scaled = self.scaled
        options = self.options
        R = options.radius * scaled.radius
        C = threshold(scaled, options.clip)
        Q = yield scaled.second_moments(R)
        metric = metric_of(scaled, self.ledger, Q, options.step)
        for _ in range(options.steps):
            g = yield scaled.gradient_sum(self.u, C)
            q = np.einsum("lij,jl->il", metric, self.u) - g
            self.u = minimised(scaled, metric, q, scaled.n, self.u)
