"""DP-SGD: proximal stochastic gradient descent with clipped, noisy gradients.

Bassily et al. 2014, Abadi et al. 2016, as run by Mangold et al. 2022, Section 6:

    w <- prox_{gamma psi}(w - gamma ((1/b) sum_{i in batch} clip(g_i, C) + eta)),
    gamma = step / beta,   eta ~ N(0, (sigma 2 C / b)^2 I),

with a batch of b records drawn uniformly without replacement; b = 1 in the papers. The
gradient of one record is phi'(v_i) A_i, so clipping it clips phi' to C / ||A_i||.

Where A is sparse, a record's margin and gradient touch few coordinates, but the noise
moves all of them in every step. Between two records that touch a coordinate, it takes
only noisy proximal steps. They are made up for all at once when the coordinate is next
needed, while its settings lie in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dperm.numerics.compiled import INLINE, KERNEL, clamp, fused
from dperm.numerics.kernels import njit
from dperm.privacy.accountants import PUBLISHED
from dperm.privacy.events import GLOBAL_SMOOTHNESS, Ledger, SampledGaussian
from dperm.problems.losses import derivative
from dperm.problems.penalties import prox, prox_constants
from dperm.problems.problem import Problem
from dperm.solvers import batched as driver
from dperm.solvers.batched import BatchedSettings, sum_sensitivity
from dperm.solvers.options import at_least

SPARSE = True
_TILE = 256  # settings of a tile, at most
# weights of a tile, about, so that they stay in the cache
_TILE_SIZE = 1 << 17
# A step reads a record or a few, and has one size for all weights
RECORDWISE = True
DEFAULT = {"passes": 5, "step": 0.01, "clip": 1}  # without tuning
GRID = {"passes": [5], "step": [0.0001, 0.001, 0.01, 0.1], "clip": [0.5, 1]}


@dataclass(frozen=True)
class Options:
    """Size of a batch; the papers use 1."""

    batch: int = 1

    def __post_init__(self) -> None:
        at_least(self, 1, "batch")


def steps(problem: Problem, passes: float, options: Options) -> int:
    """Number of steps: a pass reads n records."""
    return max(1, round(passes * problem.n / options.batch))


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = PUBLISHED,
) -> Ledger:
    """One Gaussian release on a random batch per step."""
    event = SampledGaussian(
        sensitivity=1.0,
        scale=noise_multiplier,
        count=count,
        batch=options.batch,
        population=problem.n,
        unit="2 C, the replace-one change of a sum of clipped gradients",
        source="Mangold et al. 2022, Section 6; Mironov et al. 2019",
    )
    return Ledger((event,), given=(GLOBAL_SMOOTHNESS,))


def bytes_per_setting(problem: Problem) -> int:
    """Weights of one setting, held twice while settings are dropped."""
    return 16 * problem.p


@njit(**KERNEL)
def _steps(A, batches, noise, offset, norms, shape, psi, constants, tiles):
    """Record steps in every tile; batches are (steps, b), noise is (steps, p)."""
    rows = A[0]
    _, _, lower, upper = psi
    _, p = shape
    size = batches.shape[1]
    settings = tiles.shape[2]
    # step / b times the clipped derivative of a record
    pull = np.empty((size, settings))
    for t in range(tiles.shape[0]):
        setting_constants = constants[t]
        W = tiles[t]
        step = setting_constants[0]
        clip = setting_constants[1]
        jump = setting_constants[2]
        threshold = setting_constants[3]
        shrink = setting_constants[4]
        for k in range(batches.shape[0]):
            for b in range(size):
                i = batches[k, b]
                margins(rows[i], offset[i], W, pull[b])
                bound = 1.0 / norms[i] if norms[i] > 0.0 else 0.0
                for setting in range(settings):
                    slope = clamp(
                        derivative(pull[b, setting]), clip[setting] * bound
                    )
                    pull[b, setting] = step[setting] * slope
            for j in range(p):
                w = W[j]
                for b in range(1, size):
                    x = rows[batches[k, b], j]
                    for setting in range(settings):
                        w[setting] = fused(-x, pull[b, setting], w[setting])
                x = rows[batches[k, 0], j]
                z = noise[k, j]
                previous_pull = pull[0]
                for setting in range(settings):
                    forward = fused(
                        -z,
                        jump[setting],
                        fused(-x, previous_pull[setting], w[setting]),
                    )
                    w[setting] = prox(
                        forward,
                        threshold[setting],
                        shrink[setting],
                        lower,
                        upper,
                    )


@njit(**KERNEL)
def _single_steps(
    A, batches, noise, offset, norms, shape, psi, constants, tiles
):
    """``_steps`` of tiles of one setting each and batches of one, to the same bits.

    Coordinates take the place of settings in vectors.
    """
    rows = A[0]
    _, _, lower, upper = psi
    _, p = shape
    for t in range(tiles.shape[0]):
        setting_constants = constants[t, :, 0]
        step = setting_constants[0]
        clip = setting_constants[1]
        jump = setting_constants[2]
        threshold = setting_constants[3]
        shrink = setting_constants[4]
        w = tiles[t].reshape(-1)[:p]
        for k in range(batches.shape[0]):
            i = batches[k, 0]
            x = rows[i]
            z = noise[k]
            bound = 1.0 / norms[i] if norms[i] > 0.0 else 0.0
            pull = step * clamp(
                derivative(margin(x, offset[i], w)), clip * bound
            )
            for j in range(p):
                forward = fused(-z[j], jump, fused(-x[j], pull, w[j]))
                w[j] = prox(forward, threshold, shrink, lower, upper)


@njit(**INLINE)
def margin(x, offset, w):
    """The margin of record x, summed in the order of ``margins``."""
    total = offset
    for j in range(x.shape[0]):
        total = fused(x[j], w[j], total)
    return total


@njit(**INLINE)
def margins(x, offset, W, out):
    """Write the margin of record x in each setting to out."""
    out[:] = offset
    for j in range(x.shape[0]):
        w = W[j]
        xj = x[j]
        for setting in range(out.shape[0]):
            out[setting] = fused(xj, w[setting], out[setting])


@njit(**KERNEL)
def _sparse_steps(
    A, batches, noise, offset, norms, shape, psi, constants, tiles
):
    """``_steps`` on CSR rows; noise is (p, steps).

    A coordinate is brought up to date when a record touches it, and at the end.
    """
    stored, columns, starts = A
    _, _, lower, upper = psi
    steps, size = batches.shape
    tile_count, p, settings = tiles.shape
    pull = np.empty((size, settings))
    done = np.empty(p, dtype=np.int64)  # steps a coordinate has taken
    for t in range(tile_count):
        W = tiles[t]
        setting_constants = constants[t]
        step = setting_constants[0]
        clip = setting_constants[1]
        shrink = setting_constants[4]
        plain = lower == -np.inf and upper == np.inf
        # 0: idle settings
        plain = plain and ((shrink == 1.0) | (shrink == 0.0)).all()
        done[:] = 0
        for k in range(steps):
            for b in range(size):
                i = batches[k, b]
                pulls = pull[b]
                pulls[:] = offset[i]
                for e in range(starts[i], starts[i + 1]):
                    j = columns[e]
                    x = stored[e]
                    w = W[j]
                    if done[j] < k:
                        _walk(
                            plain,
                            w,
                            noise[j, done[j] : k],
                            setting_constants,
                            lower,
                            upper,
                        )
                        done[j] = k
                    for setting in range(settings):
                        pulls[setting] += x * w[setting]
                bound = 1.0 / norms[i] if norms[i] > 0.0 else 0.0
                for setting in range(settings):
                    slope = clamp(
                        derivative(pulls[setting]), clip[setting] * bound
                    )
                    pulls[setting] = step[setting] * slope
            for b in range(size):
                for e in range(
                    starts[batches[k, b]], starts[batches[k, b] + 1]
                ):
                    x = stored[e]
                    w = W[columns[e]]
                    previous_pull = pull[b]
                    for setting in range(settings):
                        w[setting] -= x * previous_pull[setting]
            for b in range(size):
                for e in range(
                    starts[batches[k, b]], starts[batches[k, b] + 1]
                ):
                    j = columns[e]
                    if done[j] == k:
                        _walk(
                            plain,
                            W[j],
                            noise[j, k : k + 1],
                            setting_constants,
                            lower,
                            upper,
                        )
                        done[j] = k + 1
        for j in range(p):
            if done[j] < steps:
                _walk(
                    plain,
                    W[j],
                    noise[j, done[j] : steps],
                    setting_constants,
                    lower,
                    upper,
                )


@njit(**INLINE)
def _walk(plain, w, noise, constants, lower, upper):
    """Proximal steps with noise and no gradient, one per number; w (settings) changes.

    ``plain`` means neither shrinkage nor a box: faster, with the same bits. Four steps
    are taken at a time, so that the weights stay in registers.
    """
    jump = constants[2]
    threshold = constants[3]
    shrink = constants[4]
    in_fours = noise.shape[0] // 4 * 4 if plain else 0
    for k in range(0, in_fours, 4):
        a = noise[k]
        b = noise[k + 1]
        c = noise[k + 2]
        d = noise[k + 3]
        for setting in range(w.shape[0]):
            z = jump[setting]
            t = threshold[setting]
            x = w[setting] - a * z
            x = x - clamp(x, t) - b * z
            x = x - clamp(x, t) - c * z
            x = x - clamp(x, t) - d * z
            w[setting] = x - clamp(x, t)
    for k in range(in_fours, noise.shape[0]):
        a = noise[k]
        for setting in range(w.shape[0]):
            x = w[setting] - a * jump[setting]
            w[setting] = prox(
                x, threshold[setting], shrink[setting], lower, upper
            )


class Run(driver.Run):
    """A batch of DP-SGD; its rows are the weights (p)."""

    by_rows = True
    few = 3  #: settings that are faster one after another than side by side, at most

    def set_up(self, settings: BatchedSettings) -> None:
        """Choose the kernel, and tiles that stay in the cache."""
        self.step_draws = self.problem.p
        self.kernel = _steps
        self.width = _TILE_SIZE // self.problem.p // 8 * 8
        self.width = min(_TILE, max(64, self.width))
        if len(settings.step) <= self.few and self.batch == 1:
            self.kernel = _single_steps
            self.width = 1
        if self.problem.is_sparse:
            # coordinates walk on for a multiple of four steps
            self.kernel = _sparse_steps
            self.width = 64
            self.draws = self.step_draws * max(
                12, (1 << 20) // self.step_draws // 4 * 4
            )

    @property
    def batch(self) -> int:
        """Records of a step."""
        size: int = self.options.batch
        return size

    def setting_constants(
        self, settings: BatchedSettings
    ) -> tuple[np.ndarray, ...]:
        """Step / b, clip, step times noise scale, threshold, shrinkage."""
        step = settings.step / self.problem.global_smoothness
        b = self.batch
        jump = step * (
            settings.noise_scale(sum_sensitivity(settings.clip)) / b
        )
        psi = prox_constants(self.problem.penalty, step)
        return step / b, settings.clip, jump, *psi

    def draw(self, count: int) -> tuple[Any, ...]:
        """Batches (count, b), noise, and the records' offsets and norms."""
        problem = self.problem
        size = self.batch
        rng = self.streams.sampling
        if size == 1:
            batches = rng.integers(0, problem.n, (count, 1))
        else:
            drawn = [
                rng.choice(problem.n, size, replace=False)
                for _ in range(count)
            ]
            batches = np.stack(drawn)
        noise = self.noise((count, problem.p))
        if problem.is_sparse:
            noise = np.ascontiguousarray(noise.T)
        return batches, noise, problem.offset, problem.row_norms
