"""One pass of projected DP-SGD, a baseline for the DP-SCO paper's methods.

Disjoint batches of about sqrt(n) records, Gaussian noise on each batch's mean gradient,
the average iterate (Bassily, Smith and Thakurta 2014).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dperm.privacy.noise import gaussian
from dperm.solvers.single_pass import Options, Target, TargetNoise
from dperm.solvers.single_pass.gaussian_releases import gaussian_noise
from dperm.solvers.single_pass.gradients import StoredRecords
from dperm.solvers.single_pass.setup import Setup


def noise(
    setup: Setup, n: int, target: Target, options: Options
) -> TargetNoise:
    """Least noise over sensitivity of one release: each record is in one batch."""
    return gaussian_noise(target, 1)


class Run(StoredRecords):
    """One pass for all targets."""

    noise_of = staticmethod(noise)

    def releases(self) -> Iterator[np.ndarray]:
        """Yield the iterates before projection.

        The step balances distance, gradient and noise.
        """
        setup = self.setup
        d = self.setup.d
        size = math.isqrt(self.n)
        starts = range(0, self.n - size + 1, size)
        L = setup.euclidean_lipschitz
        scale = self.scale * 2 * L / size
        reach = 0.5 * setup.euclidean_diameter
        eta = reach / np.sqrt(len(starts) * (L**2 + d * scale**2))
        w = np.zeros_like(self.x)
        total = np.zeros_like(self.x)
        for low in starts:
            released = self.gradient(w, low, size)
            released += scale * gaussian(self.streams.noise, d)
            moved = w - eta * released
            yield moved.flatten()
            w = setup.ball.project(moved)
            total += w
        self.x = total / len(starts)
