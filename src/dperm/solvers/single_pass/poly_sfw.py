"""Private polyhedral stochastic Frank-Wolfe (Bassily, Guzmán, Nandi 2021, Algorithm 2).

Each step reads one record, after a first batch of half of them. The estimate

    d_t = (1 - eta) (d_{t-1} + grad f(x^t, z_t) - grad f(x^{t-1}, z_t))
          + eta grad f(x^t, z_t)

carries no noise; the vertex with the least noisy inner product is taken (report noisy
max). Here the set is the l_1 ball, where a step is O(d) in time and memory: the 2d
vertices are never written out. They are centred, so that only their norm, M / 2, counts
in the sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dperm.numerics.compiled import (
    BLOCK,
    INLINE,
    KERNEL,
    clamp,
    dot,
    fused,
    lowest,
)
from dperm.numerics.kernels import njit
from dperm.privacy.accountants.tight import renyi_epsilon
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.events import Ledger, N
from dperm.privacy.mechanisms.noisy_max import NoisyMax
from dperm.privacy.noise import laplace_rows
from dperm.problems.losses import slope
from dperm.solvers.single_pass import (
    Options,
    Stream,
    Target,
    TargetNoise,
    silent,
)
from dperm.solvers.single_pass.gaussian_releases import concentrated_budget
from dperm.solvers.single_pass.gradients import gradient_sums
from dperm.solvers.single_pass.setup import Setup

# Ratio of Rényi epsilons below which true ones are compared
_BOUND_RATIO = 1.25
_BUCKETS = 48  # of steps, when a record's decaying cost is written as events
_DRAWS = 1 << 19  # Laplace numbers drawn at a time
_UNIT = "<v, d_t>, the score of a centred vertex"
_SOURCE = "Bassily, Guzmán, Nandi 2021, Algorithm 2, lines 5 and 12; Lemma 6.1"


def step(n: int, vertices: int) -> float:
    """Step size eta = log(n / log K) / n, with the natural logarithms of the proof."""
    return math.log(n / math.log(vertices)) / n


@dataclass(frozen=True)
class Scores:
    """How far a centred vertex's score moves when a record is replaced."""

    eta: float  #: step size
    first: float  #: at step 0, for a record of the first batch
    own: float  #: at its own step, for any other record
    steps: int  #: selections after step 0; floor(n/2) records make the first batch


def sensitivities(setup: Setup, n: int) -> Scores:
    """Exact sensitivities, decaying by 1 - eta a step (proof of Lemma 6.1).

    A record of the first batch of h moves d_0 by 2 L0 / h; one of a later step moves
    d_t by 2 (1 - eta) L1 eta M + 2 eta L0. A score moves by that times the radius, the
    norm of a vertex.
    """
    eta = step(n, 2 * setup.d)
    half = n // 2
    reach = setup.radius
    L0 = setup.lipschitz
    L1 = setup.smoothness
    M = setup.diameter
    later_sensitivity = 2 * eta * ((1 - eta) * L1 * M + L0) * reach
    return Scores(eta, 2 * L0 / half * reach, later_sensitivity, n - half)


def printed_sensitivity(setup: Setup, n: int, t: int) -> float:
    """s_t = max((1 - eta)^t 2 L0 M / n, 2 eta (L1 M^2 + L0 M)) of line 9.

    s_0 is the first term alone.
    """
    L0 = setup.lipschitz
    L1 = setup.smoothness
    M = setup.diameter
    eta = step(n, 2 * setup.d)
    first_sensitivity = (1 - eta) ** t * 2 * L0 * M / n
    return (
        first_sensitivity
        if t == 0
        else max(first_sensitivity, 2 * eta * (L1 * M**2 + L0 * M))
    )


def energies(scores: Scores, at_first: float) -> tuple[float, float]:
    """Sums of (sensitivity / scale)^2 over a record's selections, scale 1 from step 1.

    Parameters
    ----------
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


def ledger(
    setup: Setup, n: int, scales: tuple[float, ...], delta: float
) -> Ledger:
    """The selections that the costliest record takes part in: of larger epsilon.

    It is a record of the first batch, or that of step 1. Energies do not decide: one
    costly selection has a smaller epsilon than many cheap ones of the same energy.
    """
    return costlier(
        of_batch(setup, n, scales), of_own(setup, n, scales), delta
    )


def of_batch(setup: Setup, n: int, scales: tuple[float, ...]) -> Ledger:
    """Ledger of a record of the first batch: step 0 and all later steps."""
    scores = sensitivities(setup, n)
    first_release = NoisyMax(scores.first, scales[0], 1, _UNIT, _SOURCE)
    later = _decaying(scores, scores.first * (1 - scores.eta), scales[1])
    return Ledger((first_release, *later), given=(N,))


def of_own(setup: Setup, n: int, scales: tuple[float, ...]) -> Ledger:
    """Ledger of the record of step 1, the costliest of the later records."""
    scores = sensitivities(setup, n)
    return Ledger(tuple(_decaying(scores, scores.own, scales[1])), given=(N,))


def _decaying(scores: Scores, size: float, scale: float) -> list[NoisyMax]:
    """Selections of decaying sensitivity, in buckets, each charged as its first."""
    edges = np.unique(np.linspace(0, scores.steps, _BUCKETS + 1).astype(int))
    return [
        NoisyMax(
            size * (1 - scores.eta) ** int(low),
            scale,
            int(high - low),
            _UNIT,
            _SOURCE,
        )
        for low, high in pairwise(edges)
    ]


@lru_cache
def costlier(one: Ledger, other: Ledger, delta: float) -> Ledger:
    """The ledger of larger epsilon, compared exactly only if Rényi bounds are close."""
    bounds = [renyi_epsilon(ledger, delta) for ledger in (one, other)]
    if max(bounds) < _BOUND_RATIO * min(bounds):
        bounds = [true_epsilon(ledger, delta) for ledger in (one, other)]
    return one if bounds[0] >= bounds[1] else other


def noise(
    setup: Setup, n: int, target: Target, options: Options
) -> TargetNoise:
    """Laplace scales of step 0 and of the later steps.

    ``published``: 2 s_t sqrt(n log(1/delta)) / epsilon. ``tight``: one scale for all,
    the least that keeps every record's cost within the target as zCDP, a selection at
    scale b being pure 2 s / b and so (2 s / b)^2 / 2-zCDP.
    """
    if math.isinf(target.epsilon):
        return silent(2)
    if target.calibration == "published":
        unit = 2 * math.sqrt(n * math.log(1 / target.delta)) / target.epsilon
        first_sensitivity, later_sensitivity = (
            printed_sensitivity(setup, n, t) for t in (0, 1)
        )
        scales = (unit * first_sensitivity, unit * later_sensitivity)
    else:
        energy = max(energies(sensitivities(setup, n), 1.0))
        budget = concentrated_budget(target.epsilon, target.delta)
        scales = (math.sqrt(2 * energy / budget),) * 2
    return TargetNoise(ledger(setup, n, scales, target.delta), scales)


class Run(Stream):
    """All targets over the l_1 ball, on one stream of n records.

    Attributes
    ----------
    d : ndarray, shape (L, d)
        The estimates of the gradient.
    at : ndarray, shape (L,)
        The vertices taken last: 2j for +radius e_j, 2j + 1 for -radius e_j.

    Raises
    ------
    ValueError
        If p is not 1.
    """

    noise_of = staticmethod(noise)

    def __post_init__(self) -> None:
        if self.setup.p != 1:
            raise ValueError(f"p: expected 1, found {self.setup.p:g}")
        super().__post_init__()
        self.eta = step(self.n, 2 * self.setup.d)
        self.d = np.zeros_like(self.x)
        self.vertex_index = np.zeros(len(self.x), dtype=np.int64)

    def releases(self) -> Iterator[np.ndarray]:
        """Yield every vertex taken; the kernel gets one record at a time."""
        for _ in self.blocks(1):
            yield self.vertices().ravel()

    def solve(self) -> np.ndarray:
        """Run all steps in blocks of records; return the last iterates."""
        for _ in self.blocks(max(1, _DRAWS // (2 * self.source.d))):
            pass
        return self.weights

    def blocks(self, size: int) -> Iterator[None]:
        """Take step 0, then blocks of ``size`` records; yield after each."""
        half = self.n // 2
        setup = self.setup
        self.d = self.sums(gradient_sums, self.records(half), self.x) / half
        scores = setup.radius * np.stack([self.d, -self.d], axis=2)
        scores += self.scales[:, :1, None] * self._noise(1).reshape(-1, 2)
        self.vertex_index = scores.reshape(len(scores), -1).argmin(axis=1)
        self.x *= 1 - self.eta
        self.x += self.eta * self.vertices()
        yield
        scale = np.ascontiguousarray(self.scales[:, 1])
        steps = setup.compiled(_steps)
        moving = (
            scale,
            self.eta,
            setup.radius,
            self.x,
            self.d,
            self.vertex_index,
        )
        for low in range(half, self.n, size):
            batch = self.source.take(min(size, self.n - low))
            factors = self.source.factors(batch, setup.q)
            drawn = self._noise(len(batch.labels))
            steps(*batch, factors, setup.lipschitz, drawn, *moving)
            yield

    def vertices(self) -> np.ndarray:
        """The vertices taken last, (L, d)."""
        signs = np.where(self.vertex_index % 2 == 0, 1.0, -1.0)
        return self.setup.vertices(self.vertex_index // 2, signs)

    def _noise(self, count: int) -> np.ndarray:
        shape = (count, 2 * self.setup.d)
        return laplace_rows(self.streams.noise, self.streams.sampling, shape)


@njit(**INLINE)
def _place(d, u, low, high, radius, b, best, vertex):
    """The first vertex of entries from low to high that scores below the best.

    ``vertex`` if none does. Of several the one with the least score is taken.
    """
    for j in range(low, high):
        up = fused(radius, d[j], b * u[2 * j])
        down = fused(-radius, d[j], b * u[2 * j + 1])
        if up < best:
            best = up
            vertex = 2 * j
        if down < best:
            best = down
            vertex = 2 * j + 1
    return vertex


@njit(**INLINE)
def _first(d, u, low, high, radius, b, least, vertex):
    """The first vertex of entries from low to high with that score.

    ``vertex`` if none has it. Comparisons with one number wait for nothing, while those
    of ``_place`` wait for the best score so far.
    """
    for j in range(low, high):
        if fused(radius, d[j], b * u[2 * j]) == least:
            return 2 * j
        if fused(-radius, d[j], b * u[2 * j + 1]) == least:
            return 2 * j + 1
    return vertex


@njit(**KERNEL)
def _steps(rows, labels, factors, bound, noise, scale, eta, radius, X, D, at):
    """Lines 8 to 14 for a block of records; X, D and at change in place.

    <x^{t-1}, z> follows from <x^t, z> and the vertex taken between them, and x is kept
    as a factor times a vector, so that a step reads x once and writes one entry. The
    least score is found block by block, in vectors; its place is searched for after.
    """
    p = X.shape[1]
    blocked = p // BLOCK * BLOCK
    for setting in range(X.shape[0]):
        x = X[setting]
        d = D[setting]
        b = scale[setting]
        vertex = at[setting]
        factor = 1.0
        for k in range(rows.shape[0]):
            z = rows[k]
            c = factors[k]
            y = labels[k]
            u = noise[k]
            v = c * factor * dot(z, x)
            gone = c * radius * z[vertex >> 1] * (1 - 2 * (vertex & 1))
            before = (v - eta * gone) / (1 - eta)
            old = clamp(slope(before, y), bound)
            new = clamp(slope(v, y), bound)
            pull = c * ((1 - eta) * (new - old) + eta * new)
            best = np.inf
            block = 0
            for low in range(0, blocked, BLOCK):
                for j in range(low, low + BLOCK):
                    d[j] = fused(pull, z[j], (1 - eta) * d[j])
                lowest_score = lowest(d, u, low, radius, b)
                if lowest_score < best:
                    best = lowest_score
                    block = low
            for j in range(blocked, p):
                d[j] = fused(pull, z[j], (1 - eta) * d[j])
            if best < np.inf:
                vertex = _first(
                    d, u, block, block + BLOCK, radius, b, best, vertex
                )
            vertex = _place(d, u, blocked, p, radius, b, best, vertex)
            factor *= 1 - eta
            x[vertex >> 1] += eta * radius * (1 - 2 * (vertex & 1)) / factor
        for j in range(x.shape[0]):
            x[j] *= factor
        at[setting] = vertex
