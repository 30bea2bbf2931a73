r"""Noisy gradients in a private metric, clipped where the gradients are.

As DP-GD in a private metric (:mod:`.dp_gram`), but before each step a histogram of the
gradients' norms is released, and the step's clip C is the smallest of its edges below
which the noisy share of records is ``quantile``, the largest edge if there is none:

    h_k = number of records with e_(k-1) < ||grad l_i(u)|| <= e_k, + noise,
    C = min {e_k : h_1 + ... + h_k >= quantile n},
    g = sum_i clip_C(grad l_i(u)) + C noise.

The edges are public: ``clip`` as in DP-GD, and fractions of it by powers of sqrt(1/2).
Replacing a record moves h by sqrt(2), and g / C by 2 whatever C is. All releases are
Gaussian, and compose exactly. A clip that follows the gradients by a private quantile
is Andrew et al.'s (2021, arXiv:1905.03871); Varshney, Thakurta and Jain (2022,
arXiv:2207.04686) show that it reaches the least error for least squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dperm.privacy.events import Gaussian, Ledger
from dperm.solvers.full_batch import Fit, Steps
from dperm.solvers.full_batch.dp_gd import threshold
from dperm.solvers.full_batch.dp_gram import metric_of, refuses
from dperm.solvers.full_batch.moments import minimised
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.options import at_least, positive, share

__all__ = ["Options", "Run", "ledger", "refuses"]

EDGES = 2.0 ** (-0.5 * np.arange(6, -1, -1))  # fractions of the largest clip
_SOURCE = (
    "Andrew et al. 2021; Varshney et al. 2022, with replace-one constants"
)
#: Values that a search tries, in their product; ``Options`` has the default.
GRID = {"steps": [3, 10], "quantile": [0.3, 0.6], "step": [0.3, 1]}


@dataclass(frozen=True)
class Options:
    """Steps, step size, clips and shares of the squared budget."""

    steps: int = 3  #: T
    step: float = 1.0  #: 1 takes the whole step of the metric
    clip: float = 1.0  #: the largest C, as in DP-GD
    quantile: float = 0.5  #: share of the gradients that are to be within C
    radius: float = 1.0  #: R as a multiple of sqrt(p)
    share: float = 0.3  #: for the matrix
    sizes: float = 0.1  #: of the rest, for the histograms

    def __post_init__(self) -> None:
        at_least(self, 1, "steps")
        positive(self, "step", "clip", "radius")
        share(self, "quantile", "share", "sizes")


def ledger(
    scaled: Scaled, noise_multiplier: float, options: Options
) -> Ledger:
    """The matrix; a histogram and a gradient per step."""
    T = options.steps
    rest = 1 - options.share
    matrix = float(np.sqrt(2)) * (options.radius * scaled.radius) ** 2
    histogram = float(np.sqrt(2))
    units = (
        "sqrt(2) R^2, the replace-one change of a sum of x x^T, Frobenius norm",
        "sqrt(2), that of a histogram of gradients' norms",
        "2, that of a sum of gradients clipped to C, over C",
    )
    sensitivities = (matrix, histogram, 2.0)
    counts = (1, T, T)
    shares = (options.share, rest * options.sizes, rest * (1 - options.sizes))
    rows = zip(sensitivities, counts, shares, units, strict=True)
    events = tuple(
        Gaussian(
            sensitivity=moved,
            scale=moved * noise_multiplier * float(np.sqrt(count / part)),
            count=count,
            unit=unit,
            source=_SOURCE,
        )
        for moved, count, part, unit in rows
    )
    return Ledger(events, given=scaled.given)


class Run(Fit):
    """Descents, each in its own metric and with clips of its own."""

    def steps(self) -> Steps:
        """The matrix, then a histogram and a noisy gradient per step."""
        scaled = self.scaled
        options = self.options
        R = options.radius * scaled.radius
        edges = threshold(scaled, options.clip) * EDGES
        Q = yield scaled.second_moments(R)
        metric = metric_of(scaled, self.ledger, Q, options.step)
        for _ in range(options.steps):
            histogram = yield scaled.gradient_sizes(self.u, edges)
            C = clips(histogram, edges, options.quantile * scaled.n)
            g = C * (yield scaled.unit_gradient_sum(self.u, C))
            q = np.einsum("lij,jl->il", metric, self.u) - g
            self.u = minimised(scaled, metric, q, scaled.n, self.u)


def clips(
    histogram: np.ndarray, edges: np.ndarray, least: float
) -> np.ndarray:
    """The first edge of each run with ``least`` records below, or the last; (L,).

    Histograms (k + 1, L) count what is below the first of k edges, between them, and
    above the last.
    """
    is_enough = np.cumsum(histogram[:-1], axis=0) >= least
    is_enough[-1] = True
    return edges[is_enough.argmax(axis=0)]
