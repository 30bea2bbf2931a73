"""Full-batch DP-FW, a baseline for the DP-SCO paper's methods.

Frank-Wolfe over the l_1 ball with report noisy max (Talwar, Thakurta and Zhang 2015),
n^(2/3) iterations on all records: time n^(5/3).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dperm.privacy.events import Ledger, N
from dperm.privacy.noise import laplace_rows
from dperm.solvers.frank_wolfe.dp_fw import published_root, selections
from dperm.solvers.single_pass import Options, Target, TargetNoise, silent
from dperm.solvers.single_pass.gaussian_releases import concentrated_budget
from dperm.solvers.single_pass.gradients import StoredRecords
from dperm.solvers.single_pass.setup import Setup


def iterations(n: int) -> int:
    """T = n^(2/3), rounded up."""
    return math.ceil(n ** (2 / 3))


def noise(
    setup: Setup, n: int, target: Target, options: Options
) -> TargetNoise:
    """Laplace scale of the scores <v, gradient>.

    ``published``: L0 R sqrt(8 T log(1/delta)) / (n epsilon) with the l_1 norm R of the
    vertices. ``tight``: a score moves by 2 L0 R / n, a selection costs twice that over
    the scale, and T selections compose as zCDP.
    """
    if math.isinf(target.epsilon):
        return silent()
    count = iterations(n)
    unit = setup.lipschitz * setup.radius / n
    if target.calibration == "published":
        scale = unit * published_root(count, target.delta) / target.epsilon
    else:
        budget = concentrated_budget(target.epsilon, target.delta)
        scale = 4 * unit * math.sqrt(count / (2 * budget))
    moved = 2 * setup.lipschitz * setup.radius / n
    return TargetNoise(
        Ledger((selections(moved, scale, count),), given=(N,)), (scale,)
    )


class Run(StoredRecords):
    """All iterations for all targets; p = 1."""

    noise_of = staticmethod(noise)

    def releases(self) -> Iterator[np.ndarray]:
        """Yield the vertices taken."""
        setup = self.setup
        for t in range(iterations(self.n)):
            gradient = setup.radius * self.gradient(self.x)
            shape = (1, 2 * setup.d)
            drawn = laplace_rows(
                self.streams.noise, self.streams.sampling, shape
            )[0]
            scores = (
                np.concatenate([gradient, -gradient], axis=1)
                + self.scale * drawn
            )
            index = scores.argmin(axis=1)
            vertices = setup.vertices(
                index % setup.d, np.where(index < setup.d, 1.0, -1.0)
            )
            self.x *= 1 - 2 / (t + 2)
            self.x += 2 / (t + 2) * vertices
            yield vertices.ravel()
