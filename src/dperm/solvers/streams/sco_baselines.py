"""What the methods of the DP-SCO paper are compared with.

- ``dp_sgd``: projected SGD in one pass over disjoint batches of about sqrt(n) records,
  Gaussian noise on each batch's mean gradient, the average iterate.
- ``dp_fw``: full-batch Frank-Wolfe over the l_1 ball with report noisy max (Talwar,
  Thakurta and Zhang 2015, Algorithm 1), n^(2/3) iterations: time n^(5/3).
- ``mirror_descent``: full-batch noisy mirror descent, sqrt(n) iterations, Gaussian
  noise: time n^(3/2). The potential is ||w||_a^2 / (2 (a - 1)) with a = max(p, 1 + 1 /
  log d), in its lazy form; over the l_1 ball entropy on its 2d vertices.

All take the first n records of a source and run one target at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from dperm.erm.sets import norms
from dperm.privacy.calibration import calibrate
from dperm.privacy.ledger import Gaussian, Ledger
from dperm.privacy.mechanisms import Streams, gaussian, laplace_rows
from dperm.privacy.noisy_max import NoisyMax
from dperm.solvers.streams.gradients import gradient_sums
from dperm.solvers.streams.poly_sfw import concentrated_budget
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import Batch, Source, chunks

METHODS = ("dp_sgd", "dp_fw", "mirror_descent")


@dataclass(frozen=True)
class Options:
    """Which of the three."""

    method: str = "dp_sgd"

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(
                f"options.method: expected one of {', '.join(METHODS)}, "
                f"found {self.method!r}"
            )


@dataclass(frozen=True)
class Target:
    """A privacy target and how its noise is found."""

    epsilon: float
    delta: float
    calibration: str


def iterations(n: int, method: str) -> int:
    """Steps of a method on n records."""
    if method == "dp_fw":
        return math.ceil(n ** (2 / 3))
    return math.ceil(math.sqrt(n))


def gaussian_ledger(noise_multiplier: float, count: int) -> Ledger:
    """``count`` Gaussian releases on the same records."""
    return Ledger(
        (
            Gaussian(
                sensitivity=1.0,
                scale=noise_multiplier,
                count=count,
                unit="replace-one l_2 change of a mean gradient",
                source="Bassily, Smith and Thakurta 2014; Talwar et al. 2014",
            ),
        )
    )


@lru_cache(maxsize=4096)
def gaussian_multiplier(target: Target, count: int) -> float:
    """Least noise multiplier under the target's accountant."""
    if math.isinf(target.epsilon):
        return 0.0
    found = calibrate(
        lambda noise: gaussian_ledger(noise, count),
        target.epsilon,
        target.delta,
        target.calibration,
    )
    return found.noise_multiplier


def selection_scale(setup: Setup, n: int, target: Target, count: int) -> float:
    """Laplace scale of dp_fw's scores <v, gradient>.

    ``paper``: L0 R sqrt(8 T log(1/delta)) / (n epsilon) with the l_1 norm R of the
    vertices. ``strict``: a score moves by 2 L0 R / n, a selection costs twice that over
    the scale, T of them compose as zCDP.
    """
    if math.isinf(target.epsilon):
        return 0.0
    unit = setup.lipschitz * setup.radius / n
    if target.calibration == "paper":
        log = math.log(1 / target.delta)
        return unit * math.sqrt(8 * count * log) / target.epsilon
    budget = concentrated_budget(target.epsilon, target.delta)
    return 4 * unit * math.sqrt(count / (2 * budget))


def selection_ledger(setup: Setup, n: int, scale: float, count: int) -> Ledger:
    """T selections on all records."""
    moved = 2 * setup.lipschitz * setup.radius / n
    source = "Talwar, Thakurta and Zhang 2015, Algorithm 1"
    return Ledger((NoisyMax(moved, scale, count, "<v, gradient>", source),))


def euclidean_lipschitz(setup: Setup) -> float:
    """Largest l_2 norm of a gradient: L0 d^(1/2 - 1/q), or L0 below q = 2."""
    inverse = 0.0 if math.isinf(setup.q) else 1 / setup.q
    return setup.lipschitz * setup.d ** max(0.0, 0.5 - inverse)


def lane_bytes(setup: Setup, n: int) -> int:
    """The whole data set: full-batch methods read it again and again."""
    return n * setup.d


class Run:
    """One method, one target, on the next n records of a source."""

    def __init__(
        self,
        setup: Setup,
        target: Target,
        source: Source,
        n: int,
        streams: Streams,
        options: Options,
    ):
        self.setup, self.target, self.n = setup, target, n
        self.streams, self.method = streams, options.method
        self.count = iterations(n, options.method)
        self.batches = []
        for size in chunks(n, source.d):
            batch = source.take(size)
            self.batches.append((batch, source.factors(batch, setup.q)))

    def solve(self) -> np.ndarray:
        """Run it; the released point, (d,)."""
        return {
            "dp_sgd": self._sgd,
            "dp_fw": self._frank_wolfe,
            "mirror_descent": self._mirror_descent,
        }[self.method]()

    def _gradient(self, w: np.ndarray) -> np.ndarray:
        return self._mean(self.batches, w)

    def _mean(self, batches: list, w: np.ndarray) -> np.ndarray:
        total, count = np.zeros((1, self.setup.d)), 0
        code, bound = self.setup.code, self.setup.lipschitz
        for batch, factors in batches:
            gradient_sums(*batch, factors, code, bound, w[None, :], total)
            count += len(factors)
        return total[0] / count

    def _sgd(self) -> np.ndarray:
        """One pass; the step balances distance, gradient and noise."""
        setup, d = self.setup, self.setup.d
        groups = self._groups(math.isqrt(self.n))
        L = euclidean_lipschitz(setup)
        scale = gaussian_multiplier(self.target, 1) * 2 * L / math.isqrt(self.n)
        inverse = 0.0 if math.isinf(setup.p) else 1 / setup.p
        reach = setup.radius * d ** max(0.0, 0.5 - inverse)
        eta = reach / math.sqrt(len(groups) * (L**2 + d * scale**2))
        w, total = np.zeros(d), np.zeros(d)
        for group in groups:
            released = self._mean([group], w) + scale * gaussian(self.streams.noise, d)
            w = setup.ball.project(w - eta * released)[0]
            total += w
        return total / len(groups)

    def _groups(self, size: int) -> list:
        """Disjoint batches of ``size`` records; what is left over is not read."""
        rows = np.concatenate([batch.rows for batch, _ in self.batches])
        labels = np.concatenate([batch.labels for batch, _ in self.batches])
        factors = np.concatenate([factors for _, factors in self.batches])
        return [
            (Batch(rows[low : low + size], labels[low : low + size]),
             factors[low : low + size])
            for low in range(0, self.n - size + 1, size)
        ]  # fmt: skip

    def _frank_wolfe(self) -> np.ndarray:
        setup, w = self.setup, np.zeros(self.setup.d)
        scale = selection_scale(setup, self.n, self.target, self.count)
        for t in range(self.count):
            gradient = setup.radius * self._gradient(w)
            shape = (1, 2 * setup.d)
            drawn = laplace_rows(self.streams.noise, self.streams.sampling, shape)[0]
            scores = np.concatenate([gradient, -gradient]) + scale * drawn
            at = int(scores.argmin())
            w *= 1 - 2 / (t + 2)
            w[at % setup.d] += 2 / (t + 2) * setup.radius * (1 if at < setup.d else -1)
        return w

    def _mirror_descent(self) -> np.ndarray:
        setup, count = self.setup, self.count
        multiplier = gaussian_multiplier(self.target, count)
        scale = multiplier * 2 * euclidean_lipschitz(setup) / self.n
        mirror = _Entropy(setup) if setup.p == 1 else _Power(setup)
        size = setup.lipschitz + scale * _normal_norm(setup.d, mirror.dual)
        eta = mirror.reach * math.sqrt(2 / count) / size
        dual, total = np.zeros(setup.d), np.zeros(setup.d)
        for _ in range(count):
            w = mirror.point(dual)
            noise = scale * gaussian(self.streams.noise, setup.d)
            dual -= eta * (self._gradient(w) + noise)
            total += w
        return total / count


def _normal_norm(d: int, q: float) -> float:
    """About E ||N(0, I)||_q."""
    if math.isinf(q):
        return math.sqrt(2 * math.log(2 * d))
    log = 0.5 * q * math.log(2) + gammaln((q + 1) / 2) - 0.5 * math.log(math.pi)
    return math.exp((math.log(d) + log) / q)


class _Power:
    """Potential ||w||_a^2 / (2 (a - 1)) on the l_p ball; a = p but near 1."""

    def __init__(self, setup: Setup):
        low = 1 + 1 / math.log(max(setup.d, 3))
        self.a = 2.0 if setup.p > 2 else max(setup.p, low)
        self.ball, self.dual = setup.ball, self.a / (self.a - 1)
        inverse = 0.0 if math.isinf(setup.p) else 1 / setup.p
        self.reach = setup.radius * setup.d ** max(0.0, 1 / self.a - inverse)
        self.reach /= math.sqrt(self.a - 1)
        self.p = setup.p

    def point(self, dual: np.ndarray) -> np.ndarray:
        """Where the potential's gradient is ``dual``, drawn back to the ball."""
        size = norms(dual, self.dual)[0]
        if size == 0:
            return np.zeros_like(dual)
        powers = np.abs(dual / size) ** (self.dual - 1)
        w = (self.a - 1) * size * np.sign(dual) * powers
        if self.a != self.p and self.p > 2:
            return self.ball.project(w)[0]
        return w * min(1.0, self.ball.radius / float(norms(w, self.p)[0]))


class _Entropy:
    """Entropy of the weights of the 2d vertices of the l_1 ball."""

    def __init__(self, setup: Setup):
        self.radius, self.dual = setup.radius, math.inf
        self.reach = setup.radius * math.sqrt(math.log(2 * setup.d))

    def point(self, dual: np.ndarray) -> np.ndarray:
        """Exponential weights, with dual steps in units of the radius."""
        scores = np.concatenate([dual, -dual]) / self.radius
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        up, down = np.split(weights, 2)
        return self.radius * (up - down)
