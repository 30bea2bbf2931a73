"""Private polyhedral stochastic Frank-Wolfe (Bassily, Guzmán, Nandi 2021, Algorithm 2).

One record a step after a first batch of half of them. The estimate

    d_t = (1 - eta) (d_{t-1} + grad f(x^t, z_t) - grad f(x^{t-1}, z_t))
          + eta grad f(x^t, z_t)

carries no noise; the vertex with the least noisy inner product is taken (report noisy
max). Over the l_1 ball a step is O(d) in time and memory: the 2d vertices are never
written out. Vertices are centred, so that only their reach, M / 2 for a symmetric set,
counts in the sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numba import njit
from scipy.optimize import brentq, minimize_scalar

from dperm.compiled import KERNEL, clamp
from dperm.erm.losses import slope
from dperm.erm.sets import Polytope, norms
from dperm.privacy.ledger import Ledger
from dperm.privacy.mechanisms import Streams, laplace_rows
from dperm.privacy.noisy_max import NoisyMax
from dperm.solvers.streams.gradients import gradient_sums
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import Source, chunks

_BUCKETS = 48  # of steps, when a record's decaying cost is written as events
_DRAWS = 1 << 19  # Laplace numbers drawn at a time
_UNIT = "<v, d_t>, the score of a centred vertex"
_SOURCE = "Bassily, Guzmán, Nandi 2021, Algorithm 2, lines 5 and 12; Lemma 6.1"


@dataclass(frozen=True)
class Options:
    """Algorithm 2 leaves nothing open."""


def step(n: int, vertices: int) -> float:
    """Eta = log(n / log K) / n, natural logarithms as the proof needs."""
    return math.log(n / math.log(vertices)) / n


def vertices_of(setup: Setup) -> int:
    """K = 2d for the l_1 ball."""
    return 2 * setup.d


@dataclass(frozen=True)
class Scores:
    """How far a centred vertex's score moves when a record is replaced.

    Attributes
    ----------
    eta : float
        Step size.
    first : float
        At step 0, for a record of the first batch.
    own : float
        At its own step, for any other record.
    steps : int
        Selections after step 0; floor(n/2) records make the first batch.
    """

    eta: float
    first: float
    own: float
    steps: int


def sensitivities(setup: Setup, n: int, reach: float, vertices: int) -> Scores:
    """Exact sensitivities, decaying by 1 - eta a step (proof of Lemma 6.1).

    A record of the first batch of h moves d_0 by 2 L0 / h, one of a later step moves
    d_t by 2 (1 - eta) L1 eta M + 2 eta L0; times ``reach``, the largest norm of a
    centred vertex.
    """
    eta, half = step(n, vertices), n // 2
    L0, L1, M = setup.lipschitz, setup.smoothness, setup.diameter
    own = 2 * eta * ((1 - eta) * L1 * M + L0) * reach
    return Scores(eta, 2 * L0 / half * reach, own, n - half)


def printed_sensitivity(setup: Setup, n: int, t: int, vertices: int) -> float:
    """s_t = max((1 - eta)^t 2 L0 M / n, 2 eta (L1 M^2 + L0 M)) of line 9; s_0 apart."""
    L0, L1, M = setup.lipschitz, setup.smoothness, setup.diameter
    eta = step(n, vertices)
    first = (1 - eta) ** t * 2 * L0 * M / n
    return first if t == 0 else max(first, 2 * eta * (L1 * M**2 + L0 * M))


def energies(scores: Scores, at_first: float) -> tuple[float, float]:
    """Sums of (sensitivity / scale)^2 over a record's selections, scale 1 from step 1.

    Parameters
    ----------
    scores : Scores
    at_first : float
        Noise scale of step 0.

    Returns
    -------
    (float, float)
        For a record of the first batch, and for that of step 1, which lasts longest.
    """
    keep = (1 - scores.eta) ** 2
    tail = keep * (1 - keep**scores.steps) / (1 - keep)
    batch = scores.first**2 * (1 / at_first**2 + tail)
    return batch, scores.own**2 * (1 - keep**scores.steps) / (1 - keep)


def concentrated_epsilon(rho: float, delta: float) -> float:
    """Epsilon of rho-zCDP (Canonne, Kamath and Steinke 2020, Proposition 12)."""

    def bound(log_excess: float) -> float:
        alpha = 1 + math.exp(log_excess)
        spent = rho * alpha + math.log1p(-1 / alpha)
        return spent - (math.log(delta) + math.log(alpha)) / (alpha - 1)

    start = 0.5 * math.log1p(math.log(1 / delta) / rho)
    found = minimize_scalar(bound, bounds=(start - 6, start + 6), method="bounded",
                            options={"xatol": 1e-10})  # fmt: skip
    return max(float(found.fun), 0.0)


@lru_cache(maxsize=4096)
def concentrated_budget(epsilon: float, delta: float) -> float:
    """The largest rho whose epsilon stays within the target."""

    def excess(log_rho: float) -> float:
        return concentrated_epsilon(math.exp(log_rho), delta) - epsilon

    rho = math.exp(brentq(excess, -40.0, 10.0, xtol=1e-12))
    while concentrated_epsilon(rho, delta) > epsilon:
        rho *= 1 - 1e-9
    return rho


def noise_scales(
    setup: Setup,
    n: int,
    epsilon: float,
    delta: float,
    calibration: str,
    reach: float,
    vertices: int,
) -> tuple[float, float]:
    """Laplace scales of step 0 and of the later steps.

    ``paper``: 2 s_t sqrt(n log(1/delta)) / epsilon. ``strict``: one scale for all, the
    least that keeps every record's cost within the target as zCDP, a selection at
    scale b being pure 2 s / b and so (2 s / b)^2 / 2-zCDP.
    """
    if math.isinf(epsilon):
        return 0.0, 0.0
    if calibration == "paper":
        unit = 2 * math.sqrt(n * math.log(1 / delta)) / epsilon
        first, later = (printed_sensitivity(setup, n, t, vertices) for t in (0, 1))
        return unit * first, unit * later
    scores = sensitivities(setup, n, reach, vertices)
    energy = max(energies(scores, 1.0))
    scale = math.sqrt(2 * energy / concentrated_budget(epsilon, delta))
    return scale, scale


def ledger(
    setup: Setup,
    n: int,
    scales: tuple[float, float],
    reach: float,
    vertices: int,
) -> Ledger:
    """The selections that the costliest record takes part in.

    Its sensitivity decays; steps are put into buckets, each charged as its first step.
    """
    scores = sensitivities(setup, n, reach, vertices)
    batch, own = energies(scores, scales[0] / scales[1])
    events, size = [], scores.own
    if batch > own:
        size = scores.first * (1 - scores.eta)
        events.append(NoisyMax(scores.first, scales[0], 1, _UNIT, _SOURCE))
    edges = np.unique(np.linspace(0, scores.steps, _BUCKETS + 1).astype(int))
    for low, high in pairwise(edges):
        moved = size * (1 - scores.eta) ** int(low)
        events.append(NoisyMax(moved, scales[1], int(high - low), _UNIT, _SOURCE))
    return Ledger(tuple(events))


def printed_ledger(n: int, epsilon: float, delta: float) -> Ledger:
    """The selections as Theorem 6.3 composes them, each at the printed ratio."""
    ratio = 2 * math.sqrt(n * math.log(1 / delta)) / epsilon
    return Ledger((NoisyMax(1.0, ratio, n - n // 2 + 1, _UNIT, _SOURCE),))


@dataclass(frozen=True)
class Lanes:
    """Targets that run side by side on one setup (p = 1) and share its noise."""

    setup: Setup
    epsilon: Sequence[float]
    calibration: Sequence[str]
    delta: float


def lane_bytes(setup: Setup, n: int) -> int:
    """Iterate and estimate of one lane."""
    return 16 * setup.d


class Run:
    """Lanes over the l_1 ball, on one stream of records.

    Parameters
    ----------
    lanes : Lanes
    source : Source
    n : int
        Size of the data set, all of which is read.
    streams : Streams
    options : Options
    """

    def __init__(
        self, lanes: Lanes, source: Source, n: int, streams: Streams, options: Options
    ):
        self.setup, self.source, self.n, self.streams = lanes.setup, source, n, streams
        self.eta = step(n, self._vertices())
        self.scales = np.array(
            [
                noise_scales(lanes.setup, n, epsilon, lanes.delta, kind,
                             self._reach(), self._vertices())
                for epsilon, kind in zip(lanes.epsilon, lanes.calibration, strict=True)
            ]
        )  # fmt: skip
        self.x = np.tile(self._start(), (len(self.scales), 1))
        self.d = np.zeros_like(self.x)

    def _vertices(self) -> int:
        return vertices_of(self.setup)

    def _reach(self) -> float:
        return self.setup.radius

    def _start(self) -> np.ndarray:
        return np.zeros(self.setup.d)

    @property
    def weights(self) -> np.ndarray:
        """Iterates, (L, d)."""
        return self.x

    def solve(self) -> np.ndarray:
        """Run all steps; the last iterates."""
        half = self.n // 2
        for size in chunks(half, self.source.d):
            batch = self.source.take(size)
            factors = self.source.factors(batch, self.setup.q)
            code, bound = self.setup.code, self.setup.lipschitz
            gradient_sums(*batch, factors, code, bound, self.x, self.d)
        self.d /= half
        self._first(self._noise(1))
        left = self.n - half
        while left > 0:
            count = min(left, max(1, _DRAWS // self._vertices()))
            batch = self.source.take(count)
            factors = self.source.factors(batch, self.setup.q)
            self._later(batch, factors, self._noise(count))
            left -= count
        return self.x

    def _noise(self, count: int) -> np.ndarray:
        shape = (count, self._vertices())
        return laplace_rows(self.streams.noise, self.streams.sampling, shape)

    def _first(self, noise: np.ndarray) -> None:
        """Step 0: choose a vertex by d_0 and move."""
        scale, radius = self.scales[:, 0], self.setup.radius
        self.at = np.empty(len(scale), dtype=np.int64)
        _choose(self.d, noise[0], scale, radius, self.at)
        self._move()

    def _move(self) -> None:
        self.x *= 1 - self.eta
        for lane, vertex in enumerate(self.at):
            sign = 1.0 if vertex % 2 == 0 else -1.0
            self.x[lane, vertex // 2] += self.eta * self.setup.radius * sign

    def _later(self, batch, factors: np.ndarray, noise: np.ndarray) -> None:
        code, bound = self.setup.code, self.setup.lipschitz
        given = (*batch, factors, code, bound, noise, self.scales[:, 1])
        _steps(*given, self.eta, self.setup.radius, self.x, self.d, self.at)


class PolytopeRun(Run):
    """The same over any polytope, with its K vertices written out; O(K d) a step."""

    def __init__(
        self,
        lanes: Lanes,
        source: Source,
        n: int,
        streams: Streams,
        options: Options,
        polytope: Polytope,
    ):
        self.polytope = polytope
        self.offsets = polytope.vertices - polytope.centre
        super().__init__(lanes, source, n, streams, options)

    def _vertices(self) -> int:
        return len(self.polytope.vertices)

    def _reach(self) -> float:
        return float(norms(self.offsets, self.polytope.p).max())

    def _start(self) -> np.ndarray:
        return self.polytope.centre

    def _first(self, noise: np.ndarray) -> None:
        self._select(noise[0], self.scales[:, 0])

    def _select(self, noise: np.ndarray, scale: np.ndarray) -> None:
        """Choose a vertex for each lane and move there."""
        scores = self.d @ self.offsets.T + scale[:, None] * noise
        self.before = self.x
        chosen = self.polytope.vertices[scores.argmin(axis=1)]
        self.x = (1 - self.eta) * self.x + self.eta * chosen

    def _later(self, batch, factors: np.ndarray, noise: np.ndarray) -> None:
        bound, code = self.setup.lipschitz, self.setup.code
        for k in range(len(noise)):
            one = (batch.rows[k : k + 1], batch.labels[k : k + 1], factors[k : k + 1])
            new, old = np.zeros_like(self.d), np.zeros_like(self.d)
            gradient_sums(*one, code, bound, self.x, new)
            gradient_sums(*one, code, bound, self.before, old)
            self.d = (1 - self.eta) * (self.d + new - old) + self.eta * new
            self._select(noise[k], self.scales[:, 1])


@njit(**KERNEL)
def _choose(D, noise, scale, radius, at):
    """Write each lane's vertex: 2j for +radius e_j, 2j + 1 for -radius e_j."""
    for lane in range(D.shape[0]):
        best, d = np.inf, D[lane]
        for j in range(d.shape[0]):
            up = radius * d[j] + scale[lane] * noise[2 * j]
            down = -radius * d[j] + scale[lane] * noise[2 * j + 1]
            if up < best:
                best, at[lane] = up, 2 * j
            if down < best:
                best, at[lane] = down, 2 * j + 1


@njit(**KERNEL)
def _steps(rows, labels, factors, loss, bound, noise, scale, eta, radius, X, D, at):
    """Lines 8 to 14 for a block of records; X, D and at change in place.

    <x^{t-1}, z> follows from <x^t, z> and the vertex taken between them, and x is kept
    as a factor times a vector, so that a step reads x once and writes one entry.
    """
    for lane in range(X.shape[0]):
        x, d, b, last, factor = X[lane], D[lane], scale[lane], at[lane], 1.0
        for k in range(rows.shape[0]):
            z, c, y, u = rows[k], factors[k], labels[k], noise[k]
            v = 0.0
            for j in range(x.shape[0]):
                v += z[j] * x[j]
            v *= c * factor
            gone = c * radius * z[last >> 1] * (1 - 2 * (last & 1))
            old = clamp(slope(loss, (v - eta * gone) / (1 - eta), y), bound)
            new = clamp(slope(loss, v, y), bound)
            pull = c * ((1 - eta) * (new - old) + eta * new)
            best = np.inf
            for j in range(x.shape[0]):
                d[j] = (1 - eta) * d[j] + pull * z[j]
                up = radius * d[j] + b * u[2 * j]
                down = b * u[2 * j + 1] - radius * d[j]
                if up < best:
                    best, last = up, 2 * j
                if down < best:
                    best, last = down, 2 * j + 1
            factor *= 1 - eta
            x[last >> 1] += eta * radius * (1 - 2 * (last & 1)) / factor
        for j in range(x.shape[0]):
            x[j] *= factor
        at[lane] = last
