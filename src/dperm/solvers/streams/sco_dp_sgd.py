"""One pass of projected DP-SGD, a baseline for the DP-SCO paper's methods.

Disjoint batches of about sqrt(n) records, Gaussian noise on each batch's mean gradient,
the average iterate (Bassily, Smith and Thakurta 2014).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dperm.core.privacy.ledger import Ledger
from dperm.core.privacy.mechanisms import gaussian
from dperm.solvers.streams import Noise, Target
from dperm.solvers.streams.gaussian_releases import (
    euclidean_lipschitz,
    gaussian_noise,
    gaussian_releases,
)
from dperm.solvers.streams.gradients import Kept
from dperm.solvers.streams.setup import Setup


@dataclass(frozen=True)
class Options:
    """No options: the method leaves nothing open."""


def ledger(setup: Setup, n: int, scales: tuple[float, ...], options: Options) -> Ledger:
    """One release: each record is in one batch."""
    return gaussian_releases(scales[0], 1)


def noise(setup: Setup, n: int, target: Target, options: Options) -> Noise:
    """Least noise over sensitivity under the target's accountant."""
    return gaussian_noise(target, 1)


class Run(Kept):
    """One pass for all targets."""

    noise_of = staticmethod(noise)

    def releases(self) -> Iterator[np.ndarray]:
        """Yield the iterates before projection.

        The step balances distance, gradient and noise.
        """
        setup, d = self.setup, self.setup.d
        groups = self.groups(math.isqrt(self.n))
        L = euclidean_lipschitz(setup)
        scale = self.scale * 2 * L / math.isqrt(self.n)
        inverse = 0.0 if math.isinf(setup.p) else 1 / setup.p
        reach = setup.radius * d ** max(0.0, 0.5 - inverse)
        eta = reach / np.sqrt(len(groups) * (L**2 + d * scale**2))
        w, total = np.zeros_like(self.x), np.zeros_like(self.x)
        for group in groups:
            released = self.gradient(w, [group])
            released += scale * gaussian(self.streams.noise, d)
            moved = w - eta * released
            yield moved.flatten()
            w = setup.ball.project(moved)
            total += w
        self.x = total / len(groups)
