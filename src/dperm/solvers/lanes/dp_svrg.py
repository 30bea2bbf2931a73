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
from numba import njit

from dperm.core.calibrations import PAPER
from dperm.core.compiled import INLINE, KERNEL, clamp, fused
from dperm.core.erm.losses import derivative
from dperm.core.erm.penalties import prox
from dperm.core.erm.problem import Problem
from dperm.core.lanes import Lanes
from dperm.core.lanes.clipping import mean_sensitivity
from dperm.core.parallel import spread
from dperm.core.privacy.ledger import (
    GLOBAL_SMOOTHNESS,
    Gaussian,
    Ledger,
    SampledGaussian,
)
from dperm.core.privacy.mechanisms import Streams, gaussian
from dperm.core.solvers.options import positive
from dperm.solvers.lanes import dp_sgd

_DRAWS = 1 << 19  # normals drawn at a time


@dataclass(frozen=True)
class Options:
    """Length of an epoch: m = inner * n steps."""

    inner: float = 1.0

    def __post_init__(self) -> None:
        positive("inner", self.inner)


def epoch(problem: Problem, options: Options) -> int:
    """Number m of steps of an epoch."""
    return max(1, round(options.inner * problem.n))


def steps(problem: Problem, passes: float, options: Options) -> int:
    """Number of steps: an epoch of m steps reads n + m records."""
    m, n = epoch(problem, options), problem.n
    return max(1, round(passes * n * m / (n + m)))


def full_noise(problem: Problem, options: Options) -> float:
    """Noise multiplier of the full gradient over that of one record: n / sqrt(m)."""
    return problem.n / math.sqrt(epoch(problem, options))


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = PAPER,
) -> Ledger:
    """One Gaussian release per epoch, and one on a random record per step."""
    return Ledger(
        (
            Gaussian(
                sensitivity=1.0,
                scale=full_noise(problem, options) * noise_multiplier,
                count=-(-count // epoch(problem, options)),
                unit="2 C / n, the replace-one change of a mean of clipped gradients",
                source="Wang et al. 2017, DP-SVRG, full gradient of an epoch",
            ),
            SampledGaussian(
                sensitivity=1.0,
                scale=noise_multiplier,
                count=count,
                batch=1,
                population=problem.n,
                unit="2 C, the replace-one change of a clipped difference of gradients",
                source="Wang et al. 2017, DP-SVRG, inner step",
            ),
        ),
        given=(GLOBAL_SMOOTHNESS,),
    )


def lane_bytes(problem: Problem) -> int:
    """Weights, snapshot, gradient and sums of a lane, held twice while lanes drop."""
    return 64 * problem.p


class Run(dp_sgd.Run):
    """A block of DP-SVRG lanes under way.

    A lane's state lies in its tile as (4 p, lane): weights, snapshot, step times the
    noisy full gradient, and the sum of the epoch's iterates.
    """

    def __init__(
        self,
        problem: Problem,
        lanes: Lanes,
        streams: Streams,
        options: Options,
        workers: int = 1,
        total: int = 0,
    ):
        super().__init__(problem, lanes, streams, dp_sgd.Options(), workers)
        self.epoch, self.done = epoch(problem, options), 0
        step = lanes.step / problem.global_smoothness
        full = lanes.noise_scale(mean_sensitivity(lanes.clip, problem.n))
        jump = step * full_noise(problem, options) * full
        constants = dp_sgd._untiled(self.constants, self.size)
        constants = np.concatenate((constants, jump[:, None]), axis=1)
        self._lay_out(constants)
        self.tiles = np.zeros((len(self.constants), 4 * problem.p, self._width))

    @property
    def weights(self) -> np.ndarray:  # type: ignore[override]
        """Weights of the lanes, shape (L, p)."""
        return dp_sgd._untiled(self.tiles, self.size)[:, : self.problem.p]

    @property
    def released(self) -> np.ndarray:
        """Weights, snapshot and noisy full gradient, shape (L, 3 p)."""
        return dp_sgd._untiled(self.tiles, self.size)[:, : 3 * self.problem.p]

    def advance(self, count: int) -> None:
        """Take ``count`` more record steps in every lane."""
        most = max(1, _DRAWS // self.problem.p)
        while count > 0:
            since = self.done % self.epoch
            if since == 0:
                self._begin_epoch()
            chunk = min(most, count, self.epoch - since)
            self._inner(chunk)
            self.done += chunk
            count -= chunk
            if self.done % self.epoch == 0:
                p = self.problem.p
                self.tiles[:, :p] = self.tiles[:, 3 * p :] / self.epoch

    def _records(self) -> tuple[np.ndarray, ...]:
        problem = self.problem
        return problem.rows, problem.offset, problem.row_norms

    def _begin_epoch(self) -> None:
        """Take the snapshot and release its full gradient."""
        shared = self._records()
        noise = gaussian(self.streams.noise, self.problem.p)

        kernel = self.problem.loss.compiled(_full_gradients)

        def run(*tiles: np.ndarray) -> None:
            kernel(*shared, noise, *tiles)

        spread(run, self.constants, self.tiles, workers=self.workers)

    def _inner(self, count: int) -> None:
        problem, penalty = self.problem, self.problem.penalty
        records = self._batches(count)[:, 0]
        noise = gaussian(self.streams.noise, (count, problem.p))
        shared = (*self._records(), records, noise, penalty.lower, penalty.upper)

        kernel = problem.loss.compiled(_inner_steps)

        def run(*tiles: np.ndarray) -> None:
            kernel(*shared, *tiles)

        spread(run, self.constants, self.tiles, workers=self.workers)


@njit(**KERNEL)
def _full_gradients(rows, offset, norms, noise, constants, tiles):
    """Begin an epoch in every tile; changes the tiles in place."""
    n, p = rows.shape
    pull = np.empty(tiles.shape[2])
    for t in range(tiles.shape[0]):
        step, clip, jump = constants[t, 0], constants[t, 1], constants[t, 5]
        snapshot, mu = tiles[t, p : 2 * p], tiles[t, 2 * p : 3 * p]
        snapshot[:] = tiles[t, :p]
        mu[:] = 0.0
        tiles[t, 3 * p :] = 0.0
        for i in range(n):
            if norms[i] == 0.0:
                continue
            _margins(rows[i], offset[i], snapshot, pull)
            inverse = 1.0 / norms[i]
            for lane in range(pull.shape[0]):
                pull[lane] = clamp(derivative(pull[lane]), clip[lane] * inverse)
            for j in range(p):
                x = rows[i, j]
                for lane in range(pull.shape[0]):
                    mu[j, lane] = fused(x, pull[lane], mu[j, lane])
        for j in range(p):
            for lane in range(pull.shape[0]):
                mean = step[lane] * (mu[j, lane] / n)
                mu[j, lane] = mean + jump[lane] * noise[j]


@njit(**KERNEL)
def _inner_steps(rows, offset, norms, records, noise, lower, upper, constants, tiles):
    """Take the steps in every tile; changes the tiles in place."""
    lanes = tiles.shape[2]
    now, then = np.empty(lanes), np.empty(lanes)
    for t in range(tiles.shape[0]):
        _one_tile(
            rows, offset, norms, records, noise, lower, upper,
            constants[t], tiles[t], now, then,
        )  # fmt: skip


@njit(**INLINE)
def _one_tile(
    rows, offset, norms, records, noise, lower, upper, constants, tile, now, then
):
    """Advance the lanes of one tile; the tile (4 p, lanes) changes in place."""
    step, clip, jump = constants[0], constants[1], constants[2]
    threshold, shrink = constants[3], constants[4]
    p, lanes = rows.shape[1], tile.shape[1]
    W, snapshot = tile[:p], tile[p : 2 * p]
    mu, sums = tile[2 * p : 3 * p], tile[3 * p :]
    for k in range(records.shape[0]):
        i = records[k]
        x = rows[i]
        _margins(x, offset[i], W, now)
        _margins(x, offset[i], snapshot, then)
        inverse = 1.0 / norms[i] if norms[i] > 0.0 else 0.0
        for lane in range(lanes):
            change = derivative(now[lane]) - derivative(then[lane])
            now[lane] = step[lane] * clamp(change, clip[lane] * inverse)
        for j in range(p):
            w, z, total = W[j], noise[k, j], sums[j]
            for lane in range(lanes):
                released = fused(x[j], now[lane], fused(z, jump[lane], mu[j, lane]))
                forward = w[lane] - released
                w[lane] = prox(forward, threshold[lane], shrink[lane], lower, upper)
                total[lane] += w[lane]


@njit(**INLINE)
def _margins(x, offset, W, out):
    """Write the margin of record x in each lane to out."""
    out[:] = offset
    for j in range(W.shape[0]):
        w, xj = W[j], x[j]
        for lane in range(out.shape[0]):
            out[lane] = fused(xj, w[lane], out[lane])
