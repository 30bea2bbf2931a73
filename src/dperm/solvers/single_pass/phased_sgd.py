"""Phased stochastic gradient descent (Feldman, Koren, Talwar 2020, Algorithm 2).

Phase i = 1, 2, ... runs projected SGD with step eta / 4^i through n / 2^i fresh
records, from where phase i - 1 ended, and releases the average of its iterates with
Gaussian noise. Bassily, Guzmán and Nandi 2021, Proposition 7.1, use it for p > 2, in
Euclidean terms: ||.||_2 <= ||.||_q bounds gradients, d^(1/2 - 1/p) M the diameter. That
paper does not print it; the constants are those of Feldman et al. Below p = 2 the
Euclidean norm of a gradient may exceed its l_q norm, a case that neither paper covers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dperm.numerics.compiled import KERNEL, PASTED, clamp, dot, fused
from dperm.numerics.kernels import njit
from dperm.privacy.accountants import TIGHT
from dperm.privacy.noise import gaussian
from dperm.problems.losses import slope
from dperm.solvers.single_pass import (
    Options,
    Records,
    Stream,
    Target,
    TargetNoise,
    silent,
)
from dperm.solvers.single_pass.gaussian_releases import (
    gaussian_releases,
    least_multiplier,
)
from dperm.solvers.single_pass.setup import Setup

_L2 = 0
_BOX = 1
_OTHER = 2


def step(setup: Setup, n: int, epsilon: float, delta: float) -> float:
    """Eta = (D/L) min(4/sqrt(n), epsilon/(2 sqrt(d log(1/delta)))), at most 2/beta."""
    private = epsilon / (2 * math.sqrt(setup.d * math.log(1 / delta)))
    eta = (
        setup.euclidean_diameter
        / setup.lipschitz
        * min(4 / math.sqrt(n), private)
    )
    return min(eta, 2 / setup.smoothness) if setup.smoothness else eta


def phases(n: int) -> list[int]:
    """Records of each phase: floor(n / 2^i), while that is positive."""
    return [n >> i for i in range(1, n.bit_length()) if n >> i]


def sensitivity(setup: Setup, eta: float) -> float:
    """2 L eta: one record moves one step by that, and no later step enlarges it.

    Gradient steps of a convex function are nonexpansive up to eta = 2 / beta.
    """
    return 2 * setup.lipschitz * eta


def noise(
    setup: Setup, n: int, target: Target, options: Options
) -> TargetNoise:
    """Noise scale over sensitivity: 2 sqrt(log(1/delta)) / epsilon, or the least.

    Each record is in one phase. Raises ValueError for p below 2, where Euclidean
    constants would be too small.
    """
    if not setup.p >= 2:
        raise ValueError(f"p: phased SGD expects 2 or more, found {setup.p:g}")
    if math.isinf(target.epsilon):
        return silent()
    if target.calibration == "published":
        scale = 2 * math.sqrt(math.log(1 / target.delta)) / target.epsilon
    else:
        scale = least_multiplier(target.epsilon, target.delta, TIGHT, 1)
    unit = "2 L eta_i, the replace-one change of phase i's average"
    source = "Feldman, Koren and Talwar 2020, Algorithm 2"
    return TargetNoise(gaussian_releases(scale, 1, unit, source), (scale,))


class Run(Stream):
    """All targets on one stream of records."""

    noise_of = staticmethod(noise)

    def __post_init__(self) -> None:
        super().__post_init__()
        setup = self.setup
        n = self.n
        etas = [step(setup, n, to.epsilon, to.delta) for to in self.targets]
        self.eta = np.array(etas)
        moves = np.array([sensitivity(setup, eta) for eta in self.eta])
        # of phase 0, which is not run
        self.deviation = self.scales[:, 0] * moves
        self.totals = np.zeros_like(self.x)  # of a phase's iterates
        self.shape = {2.0: _L2, math.inf: _BOX}.get(setup.p, _OTHER)

    @property
    def weights(self) -> np.ndarray:
        """Released points of the targets, (L, d), inside the ball."""
        return self.setup.ball.project(self.x)

    def releases(self) -> Iterator[np.ndarray]:
        """Yield the noisy average of every phase."""
        for phase, size in enumerate(phases(self.n), start=1):
            self.totals[:] = 0.0
            for records in self.records(size):
                for setting, eta in enumerate(self.eta / 4**phase):
                    self._walk(setting, records, eta)
            drawn = gaussian(self.streams.noise, self.setup.d)
            scale = self.deviation / 4**phase
            self.x = self.totals / size + scale[:, None] * drawn
            yield self.x.flatten()

    def _walk(self, setting: int, records: Records, eta: float) -> None:
        """Take a step of one target for every record."""
        setup = self.setup
        k = 0
        x = self.x[setting]
        total = self.totals[setting]
        steps = setup.compiled(_steps)
        rules = (self.shape, setup.p, setup.radius)
        while k < len(records[0]):
            k = steps(*records, setup.lipschitz, *rules, eta, k, x, total)
            if k <= 0:  # left the ball at record -k
                x[:] = setup.ball.project(x)[0]
                total += x
                k = 1 - k


@njit(**KERNEL)
def _steps(
    rows, labels, factors, bound, shape, p, radius, eta, start, x, sums
):
    """Run projected SGD of a setting from record ``start``; return how many were read.

    Where the projection has no closed form, stop at the first point outside and return
    minus the record's index; the caller projects the point and adds it to the sum.
    Changes x and sums in place.
    """
    d = x.shape[0]
    for k in range(start, rows.shape[0]):
        z = rows[k]
        c = factors[k]
        g = eta * c * clamp(slope(c * dot(z, x), labels[k]), bound)
        if not descend(g, z, shape, p, radius, x):
            return -k
        for j in range(d):
            sums[j] += x[j]
    return rows.shape[0]


@njit(**PASTED)
def descend(g, z, shape, p, radius, x):
    """Subtract g z from x and project x; returns whether it is in the ball."""
    d = x.shape[0]
    for j in range(d):
        x[j] = fused(-g, z[j], x[j])
    if shape == _BOX:
        for j in range(d):
            x[j] = clamp(x[j], radius)
    elif shape == _L2:
        size = dot(x, x)
        if size > radius * radius:
            shrink = radius / np.sqrt(size)
            for j in range(d):
                x[j] *= shrink
    else:
        inside = 0.0
        for j in range(d):
            inside += np.abs(x[j] / radius) ** p
        return inside <= 1.0
    return True
