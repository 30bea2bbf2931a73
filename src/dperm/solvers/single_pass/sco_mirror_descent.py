"""Full-batch noisy mirror descent, a baseline for the DP-SCO paper's methods.

sqrt(n) iterations on all records, Gaussian noise: time n^(3/2). Mirror descent is lazy.
The potential is ||w||_a^2 / (2 (a - 1)) with a = max(p, 1 + 1 / log d), or a = 2 for
p > 2; over the l_1 ball it is the entropy on its 2d vertices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import scipy  # its submodules load on first use

from dperm.privacy.noise import gaussian
from dperm.problems.sets import norms
from dperm.solvers.single_pass import Options, Target, TargetNoise
from dperm.solvers.single_pass.gaussian_releases import gaussian_noise
from dperm.solvers.single_pass.gradients import StoredRecords
from dperm.solvers.single_pass.setup import Setup


def iterations(n: int) -> int:
    """T = sqrt(n), rounded up."""
    return math.ceil(math.sqrt(n))


def noise(
    setup: Setup, n: int, target: Target, options: Options
) -> TargetNoise:
    """Least noise over sensitivity of T releases on the same records."""
    return gaussian_noise(target, iterations(n))


class Run(StoredRecords):
    """All iterations for all targets."""

    noise_of = staticmethod(noise)

    def releases(self) -> Iterator[np.ndarray]:
        """Yield the dual vectors that determine the points, except the first, 0."""
        setup = self.setup
        count = iterations(self.n)
        scale = self.scale * 2 * setup.euclidean_lipschitz / self.n
        mirror = _Entropy(setup) if setup.p == 1 else _Power(setup)
        size = setup.lipschitz + scale * _normal_norm(setup.d, mirror.dual)
        eta = mirror.reach * math.sqrt(2 / count) / size
        dual = np.zeros_like(self.x)
        total = np.zeros_like(self.x)
        for t in range(count):
            if t:
                yield dual.flatten()
            w = np.array([mirror.point(dual_point) for dual_point in dual])
            drawn = scale * gaussian(self.streams.noise, setup.d)
            dual -= eta * (self.gradient(w) + drawn)
            total += w
        self.x = total / count


def _normal_norm(d: int, q: float) -> float:
    """About E ||N(0, I)||_q."""
    if math.isinf(q):
        return math.sqrt(2 * math.log(2 * d))
    log = 0.5 * q * math.log(2) + scipy.special.gammaln((q + 1) / 2)
    return math.exp((math.log(d) + (log - 0.5 * math.log(math.pi))) / q)


class _Power:
    """Potential ||w||_a^2 / (2 (a - 1)) on the l_p ball; for a see the module."""

    def __init__(self, setup: Setup):
        low = 1 + 1 / math.log(max(setup.d, 3))
        self.p = setup.p
        self.a = 2.0 if setup.p > 2 else max(setup.p, low)
        self.ball = setup.ball
        self.dual = self.a / (self.a - 1)
        self.reach = setup.radius * setup.d ** max(
            0.0, 1 / self.a - 1 / setup.p
        )
        self.reach /= math.sqrt(self.a - 1)

    def point(self, dual: np.ndarray) -> np.ndarray:
        """Point where the potential's gradient is ``dual``, moved back to the ball."""
        size = norms(dual, self.dual)[0]
        if size == 0:
            return np.zeros_like(dual)
        powers = np.abs(dual / size) ** (self.dual - 1)
        w = (self.a - 1) * size * np.sign(dual) * powers
        if self.p > 2:
            return self.ball.project(w)[0]
        return w * min(1.0, self.ball.radius / float(norms(w, self.p)[0]))


class _Entropy:
    """Entropy of the weights of the 2d vertices of the l_1 ball."""

    def __init__(self, setup: Setup):
        self.radius = setup.radius
        self.dual = math.inf
        self.reach = setup.radius * math.sqrt(math.log(2 * setup.d))

    def point(self, dual: np.ndarray) -> np.ndarray:
        """Exponential weights, with dual steps in units of the radius."""
        scores = np.concatenate([dual, -dual]) / self.radius
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        up, down = np.split(weights, 2)
        return self.radius * (up - down)
