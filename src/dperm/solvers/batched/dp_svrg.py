"""DP-SVRG: private stochastic variance reduced gradient descent (Wang et al. 2017).

Epochs of m steps. At the start of an epoch the full gradient at the snapshot x is
released; each step corrects it by one record's difference of gradients:

    v = clip(g_i(w) - g_i(x), C) + eta + mu,   mu = mean_i clip(g_i(x), C) + eta',
    w <- prox_{gamma psi}(w - gamma v),   gamma = step / beta,

and the next snapshot is the mean of the epoch's iterates. The paper leaves a constant
in its noise open. Here both releases are accounted for as they are made. eta has the
scale sigma 2 C on one of n records. eta' has the scale (n / sqrt(m)) sigma 2 C / n, so
that an epoch's single release disturbs w as much as its m small ones do together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dperm.numerics.compiled import KERNEL, clamp, fused
from dperm.numerics.kernels import njit
from dperm.privacy.accountants import PUBLISHED
from dperm.privacy.events import (
    GLOBAL_SMOOTHNESS,
    Gaussian,
    Ledger,
    SampledGaussian,
)
from dperm.problems.losses import derivative
from dperm.problems.penalties import prox
from dperm.problems.problem import Problem
from dperm.solvers.batched import BatchedSettings, dp_sgd, mean_sensitivity
from dperm.solvers.batched.dp_sgd import margin, margins
from dperm.solvers.options import positive

_SLOPES = 256  # derivatives of the loss that are computed at once
# A step reads a record or a few, and has one size for all weights
RECORDWISE = True


@dataclass(frozen=True)
class Options:
    """Length of an epoch: m = inner * n steps."""

    inner: float = 1.0

    def __post_init__(self) -> None:
        positive(self, "inner")


def epoch(problem: Problem, options: Options) -> int:
    """Number m of steps of an epoch."""
    return max(1, round(options.inner * problem.n))


def steps(problem: Problem, passes: float, options: Options) -> int:
    """Number of steps: an epoch of m steps reads n + m records."""
    m = epoch(problem, options)
    n = problem.n
    return max(1, round(passes * n * m / (n + m)))


def full_noise(problem: Problem, options: Options) -> float:
    """Noise multiplier of the full gradient over that of one record: n / sqrt(m)."""
    return problem.n / math.sqrt(epoch(problem, options))


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = PUBLISHED,
) -> Ledger:
    """One Gaussian release per epoch, and one on a random record per step."""
    full = Gaussian(
        sensitivity=1.0,
        scale=full_noise(problem, options) * noise_multiplier,
        count=-(-count // epoch(problem, options)),
        unit="2 C / n, the replace-one change of a mean of clipped gradients",
        source="Wang et al. 2017, DP-SVRG, full gradient of an epoch",
    )
    inner = SampledGaussian(
        sensitivity=1.0,
        scale=noise_multiplier,
        count=count,
        batch=1,
        population=problem.n,
        unit="2 C, the replace-one change of a clipped difference of gradients",
        source="Wang et al. 2017, DP-SVRG, inner step",
    )
    return Ledger((full, inner), given=(GLOBAL_SMOOTHNESS,))


def bytes_per_setting(problem: Problem) -> int:
    """Weights, snapshot, gradient and sums of a setting, twice while some drop."""
    return 64 * problem.p


@njit(**KERNEL)
def _begin(A, noise, offset, norms, shape, psi, constants, tiles):
    """Begin an epoch in every tile: take the snapshot and release its full gradient."""
    rows = A[0]
    n, p = shape
    settings = tiles.shape[2]
    # records whose slopes are computed at once
    size = max(1, _SLOPES // settings)
    pull = np.empty((size, settings))
    for t in range(tiles.shape[0]):
        step = constants[t, 0]
        clip = constants[t, 1]
        jump = constants[t, 5]
        snapshot = tiles[t, p : 2 * p]
        mu = tiles[t, 2 * p : 3 * p]
        snapshot[:] = tiles[t, :p]
        tiles[t, 2 * p :] = 0.0
        for low in range(0, n, size):
            high = min(low + size, n)
            for i in range(low, high):
                margins(rows[i], offset[i], snapshot, pull[i - low])
            slopes = pull[: high - low].reshape(-1)
            for k in range(slopes.shape[0]):
                slopes[k] = derivative(slopes[k])
            for i in range(low, high):
                bound = 1.0 / norms[i] if norms[i] > 0.0 else 0.0
                record_pulls = pull[i - low]
                for setting in range(settings):
                    record_pulls[setting] = clamp(
                        record_pulls[setting], clip[setting] * bound
                    )
                for j in range(p):
                    for setting in range(settings):
                        mu[j, setting] = fused(
                            rows[i, j], record_pulls[setting], mu[j, setting]
                        )
        for j in range(p):
            for setting in range(settings):
                mean = step[setting] * (mu[j, setting] / n)
                mu[j, setting] = mean + jump[setting] * noise[j]


@njit(**KERNEL)
def _single_steps(
    A, batches, noise, offset, norms, shape, psi, constants, tiles
):
    """``_steps`` of tiles of one setting each, to the same bits.

    The slopes at the snapshot, which no step changes, are computed for many steps at
    once, and coordinates take the place of settings in vectors.
    """
    rows = A[0]
    _, _, lower, upper = psi
    _, p = shape
    count = batches.shape[0]
    slopes = np.empty(_SLOPES)
    for t in range(tiles.shape[0]):
        setting_constants = constants[t, :, 0]
        tile = tiles[t].reshape(-1)
        step = setting_constants[0]
        clip = setting_constants[1]
        jump = setting_constants[2]
        threshold = setting_constants[3]
        shrink = setting_constants[4]
        W = tile[:p]
        snapshot = tile[p : 2 * p]
        mu = tile[2 * p : 3 * p]
        sums = tile[3 * p :]
        for low in range(0, count, _SLOPES):
            high = min(low + _SLOPES, count)
            for k in range(low, high):
                i = batches[k, 0]
                slopes[k - low] = margin(rows[i], offset[i], snapshot)
            for k in range(high - low):
                slopes[k] = derivative(slopes[k])
            for k in range(low, high):
                i = batches[k, 0]
                x = rows[i]
                z = noise[k]
                bound = 1.0 / norms[i] if norms[i] > 0 else 0.0
                change = derivative(margin(x, offset[i], W)) - slopes[k - low]
                pull = step * clamp(change, clip * bound)
                for j in range(p):
                    released = fused(x[j], pull, fused(z[j], jump, mu[j]))
                    W[j] = prox(
                        W[j] - released, threshold, shrink, lower, upper
                    )
                    sums[j] += W[j]


@njit(**KERNEL)
def _steps(A, batches, noise, offset, norms, shape, psi, constants, tiles):
    """Steps within an epoch in every tile."""
    rows = A[0]
    _, _, lower, upper = psi
    _, p = shape
    settings = tiles.shape[2]
    now = np.empty(settings)
    then = np.empty(settings)
    for t in range(tiles.shape[0]):
        setting_constants = constants[t]
        W = tiles[t, :p]
        snapshot = tiles[t, p : 2 * p]
        step = setting_constants[0]
        clip = setting_constants[1]
        jump = setting_constants[2]
        threshold = setting_constants[3]
        shrink = setting_constants[4]
        mu = tiles[t, 2 * p : 3 * p]
        sums = tiles[t, 3 * p :]
        for k in range(batches.shape[0]):
            i = batches[k, 0]
            x = rows[i]
            bound = 1.0 / norms[i] if norms[i] > 0.0 else 0.0
            margins(x, offset[i], W, now)
            margins(x, offset[i], snapshot, then)
            for setting in range(settings):
                change = derivative(now[setting]) - derivative(then[setting])
                now[setting] = step[setting] * clamp(
                    change, clip[setting] * bound
                )
            for j in range(p):
                w = W[j]
                z = noise[k, j]
                total = sums[j]
                for setting in range(settings):
                    released = fused(
                        x[j],
                        now[setting],
                        fused(z, jump[setting], mu[j, setting]),
                    )
                    forward = w[setting] - released
                    w[setting] = prox(
                        forward,
                        threshold[setting],
                        shrink[setting],
                        lower,
                        upper,
                    )
                    total[setting] += w[setting]


class Run(dp_sgd.Run):
    """A batch of DP-SVRG.

    Their rows (4 p): weights, snapshot, step times the noisy full gradient, and the sum
    of the epoch's iterates.
    """

    batch = 1  #: records of a step
    few = 1

    def set_up(self, settings: BatchedSettings) -> None:
        """Find the length of an epoch."""
        super().set_up(settings)
        self.epoch = epoch(self.problem, self.options)
        self.kernel = _single_steps if self.width == 1 else _steps

    def setting_constants(
        self, settings: BatchedSettings
    ) -> tuple[np.ndarray, ...]:
        """Those of DP-SGD, and step times the noise scale of the full gradient."""
        step = settings.step / self.problem.global_smoothness
        n = self.problem.n
        scale = settings.noise_scale(mean_sensitivity(settings.clip, n))
        full = full_noise(self.problem, self.options)
        return *super().setting_constants(settings), step * full * scale

    def start(self) -> np.ndarray:
        """Zeros."""
        return np.zeros(3 * self.problem.p)

    @property
    def released(self) -> np.ndarray:
        """Weights, snapshot and noisy full gradient, shape (L, 3 p)."""
        return self.rows(slice(3 * self.problem.p))

    def until_event(self) -> int:
        """Steps up to the end of the epoch."""
        return self.epoch - self.done % self.epoch

    def at_event(self) -> None:
        """Go on from the mean of the epoch's iterates."""
        p = self.problem.p
        self.tiles[:, :p] = self.tiles[:, 3 * p :] / self.epoch

    def take(self, count: int) -> None:
        """Begin an epoch where one is due, then take steps within it."""
        if self.done % self.epoch == 0:
            problem = self.problem
            noise = self.noise(problem.p)
            self.call(_begin, (noise, problem.offset, problem.row_norms))
        super().take(count)
