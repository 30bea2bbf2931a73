"""SSP: least squares from two noisy sums, by the recipe of the authors of AdaSSP."""

from dataclasses import dataclass

import numpy as np

from dperm.solver import Fit, Gaussian, Ledger, positive, too_wide

FAMILY = "full_batch"
GRID = {"radius": [0.7, 1.0, 1.4], "label": [1.0, 2.0]}  # what a search tries


@dataclass(frozen=True)
class Options:
    """Bounds on features and label, in units of their scales."""

    radius: float = 1.0
    label: float = 2.0

    def __post_init__(self):
        positive(self, "radius", "label")


def refuses(options, scaled):
    """Only squares follow from second moments."""
    return too_wide(scaled) if scaled.loss.quadratic else "it needs least squares"


def ledger(scaled, noise_multiplier, options):
    """Two Gaussian releases, each with sqrt(2) times the noise of one alone."""
    R = options.radius * scaled.radius
    sums = {"x x^T": np.sqrt(2) * R**2, "x y": 2 * R * options.label}
    events = []
    for name, moved in sums.items():
        scale = moved * np.sqrt(2) * noise_multiplier
        events.append(Gaussian(moved, scale, 1, f"change of the sum of {name}", "SSP"))
    return Ledger(tuple(events), given=scaled.given)


class Run(Fit):
    """Runs side by side: each has its own noise."""

    def steps(self):
        """The matrix, the vector; the rest follows from them."""
        R = self.options.radius * self.scaled.radius
        Q = yield self.scaled.second_moments(R)
        q = yield self.scaled.label_products(R, self.options.label)
        Q = Q + np.eye(self.scaled.p)
        self.u = np.linalg.solve(Q, self.scaled.label * q.T[..., None])[..., 0].T
