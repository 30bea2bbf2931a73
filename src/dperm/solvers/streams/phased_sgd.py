"""Phased stochastic gradient descent (Feldman, Koren, Talwar 2020, Algorithm 2).

Phase i = 1, 2, ... runs projected SGD with step eta / 4^i through n / 2^i fresh
records, from where phase i - 1 ended, and releases the average of its iterates with
Gaussian noise. Bassily, Guzmán and Nandi 2021, Proposition 7.1, use it for p > 2, in
Euclidean terms: ||.||_2 <= ||.||_q bounds gradients, d^(1/2 - 1/p) M the diameter. That
paper does not print it; the constants are those of Feldman et al.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit

from dperm.compiled import KERNEL, clamp
from dperm.erm.losses import slope
from dperm.privacy.calibration import calibrate
from dperm.privacy.ledger import Gaussian, Ledger
from dperm.privacy.mechanisms import Streams, gaussian
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import Source, chunks

_L2, _BOX, _OTHER = 0, 1, 2


@dataclass(frozen=True)
class Options:
    """The algorithm leaves nothing open."""


def euclidean_diameter(setup: Setup) -> float:
    """Largest l_2 distance in the ball: d^(1/2 - 1/p) M for p above 2."""
    inverse = 0.0 if math.isinf(setup.p) else 1 / setup.p
    return setup.d ** max(0.0, 0.5 - inverse) * setup.diameter


def step(setup: Setup, n: int, epsilon: float, delta: float) -> float:
    """Eta = (D/L) min(4/sqrt(n), epsilon/(2 sqrt(d log(1/delta)))), at most 2/beta."""
    private = epsilon / (2 * math.sqrt(setup.d * math.log(1 / delta)))
    eta = euclidean_diameter(setup) / setup.lipschitz * min(4 / math.sqrt(n), private)
    return min(eta, 2 / setup.smoothness) if setup.smoothness else eta


def phases(n: int) -> list[int]:
    """Records of each phase: floor(n / 2^i), as long as there is one."""
    return [n >> i for i in range(1, n.bit_length()) if n >> i]


def sensitivity(setup: Setup, eta: float) -> float:
    """2 L eta: one record moves one step by that, and no later step drives it apart.

    Gradient steps of a convex function are nonexpansive up to eta = 2 / beta.
    """
    return 2 * setup.lipschitz * eta


def ledger(noise_multiplier: float) -> Ledger:
    """One event: each record is in one phase."""
    return Ledger(
        (
            Gaussian(
                sensitivity=1.0,
                scale=noise_multiplier,
                count=1,
                unit="2 L eta_i, the replace-one change of phase i's average",
                source="Feldman, Koren and Talwar 2020, Algorithm 2",
            ),
        )
    )


@lru_cache(maxsize=4096)
def noise_multiplier(epsilon: float, delta: float, calibration: str) -> float:
    """Noise scale over sensitivity: 2 sqrt(log(1/delta)) / epsilon, or the least."""
    if math.isinf(epsilon):
        return 0.0
    if calibration == "paper":
        return 2 * math.sqrt(math.log(1 / delta)) / epsilon
    return calibrate(ledger, epsilon, delta, "strict").noise_multiplier


@dataclass(frozen=True)
class Lanes:
    """Targets that run side by side on one setup and share its noise."""

    setup: Setup
    epsilon: Sequence[float]
    calibration: Sequence[str]
    delta: float


def lane_bytes(setup: Setup, n: int) -> int:
    """Iterate and sum of one lane."""
    return 16 * setup.d


class Run:
    """Lanes of several setups on one stream of records; see ``noisy_sfw.Run``."""

    def __init__(
        self,
        lanes: Sequence[Lanes],
        source: Source,
        n: int,
        streams: Sequence[Streams],
        options: Options,
    ):
        self.source, self.sizes = source, phases(n)
        self.parts = [
            _Part(one, n, own) for one, own in zip(lanes, streams, strict=True)
        ]

    @property
    def weights(self) -> list[np.ndarray]:
        """Released points of the lanes of each setup, (L, d), inside the ball."""
        return [part.setup.ball.project(part.x) for part in self.parts]

    def solve(self) -> list[np.ndarray]:
        """Run all phases; the released points."""
        for phase, size in enumerate(self.sizes, start=1):
            for part in self.parts:
                part.sums[:] = 0.0
            for count in chunks(size, self.source.d):
                batch = self.source.take(count)
                for part in self.parts:
                    part.read(batch, self.source, phase)
            for part in self.parts:
                part.release(phase, size)
        return self.weights


class _Part:
    """The lanes of one setup."""

    def __init__(self, lanes: Lanes, n: int, streams: Streams):
        self.setup, self.noise = lanes.setup, streams.noise
        self.eta = np.array(
            [step(lanes.setup, n, epsilon, lanes.delta) for epsilon in lanes.epsilon]
        )
        self.scale = np.array(
            [
                noise_multiplier(epsilon, lanes.delta, kind)
                * sensitivity(lanes.setup, eta)
                for epsilon, kind, eta in zip(
                    lanes.epsilon, lanes.calibration, self.eta, strict=True
                )
            ]
        )
        self.x = np.zeros((len(self.eta), lanes.setup.d))
        self.sums = np.zeros_like(self.x)
        known = {2.0: _L2, math.inf: _BOX}
        self.shape = known.get(lanes.setup.p, _OTHER)

    def read(self, batch, source: Source, phase: int) -> None:
        """Take a step for every record of the batch, in every lane."""
        setup, eta = self.setup, self.eta / 4**phase
        given = (*batch, source.factors(batch, setup.q), setup.code)
        rules = (setup.lipschitz, self.shape, setup.p, setup.radius)
        for lane in range(len(eta)):
            k, x = 0, self.x[lane]
            while k < len(batch.labels):
                k = _steps(*given, *rules, eta[lane], k, x, self.sums[lane])
                if k <= 0:  # left the ball at record -k
                    x[:] = setup.ball.project(x)[0]
                    self.sums[lane] += x
                    k = 1 - k

    def release(self, phase: int, size: int) -> None:
        """End the phase at the noisy average of its iterates."""
        noise = gaussian(self.noise, self.setup.d)
        self.x = self.sums / size + (self.scale / 4**phase)[:, None] * noise


@njit(**KERNEL)
def _steps(rows, labels, factors, loss, bound, shape, p, radius, eta, start, x, sums):
    """Projected SGD of one lane from record ``start``; the number of records.

    Where the projection has no closed form it stops at the first point outside, with
    minus the record's index; the caller projects it and adds it to the sum. Changes x
    and sums in place.
    """
    d = x.shape[0]
    for k in range(start, rows.shape[0]):
        z, c = rows[k], factors[k]
        v = 0.0
        for j in range(d):
            v += z[j] * x[j]
        g = eta * c * clamp(slope(loss, c * v, labels[k]), bound)
        size = 0.0
        for j in range(d):
            x[j] -= g * z[j]
            size += x[j] * x[j]
        if shape == _BOX:
            for j in range(d):
                x[j] = clamp(x[j], radius)
        elif shape == _L2 and size > radius * radius:
            shrink = radius / np.sqrt(size)
            for j in range(d):
                x[j] *= shrink
        elif shape == _OTHER:
            inside = 0.0
            for j in range(d):
                inside += np.abs(x[j] / radius) ** p
            if inside > 1.0:
                return -k
        for j in range(d):
            sums[j] += x[j]
    return rows.shape[0]
