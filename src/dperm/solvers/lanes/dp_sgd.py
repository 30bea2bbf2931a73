"""DP-SGD: proximal stochastic gradient descent with clipped, noisy gradients.

Bassily et al. 2014, Abadi et al. 2016, as run by Mangold et al. 2022, Section 6:

    w <- prox_{gamma psi}(w - gamma ((1/b) sum_{i in batch} clip(g_i, C) + eta)),
    gamma = step / beta,   eta ~ N(0, (sigma 2 C / b)^2 I),

with a batch of b records drawn uniformly without replacement; b = 1 in the papers. The
gradient of one record is phi'(v_i) A_i, so clipping it clips phi' to C / ||A_i||.

Where A is sparse, a record's margin and gradient touch few coordinates, but the noise
moves all of them in every step. Between two records that touch a coordinate, it takes
only noisy proximal steps. They are made up for all at once when the coordinate is next
needed, while its lanes lie in the cache.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numba import njit

from dperm.core.calibrations import PAPER
from dperm.core.compiled import INLINE, KERNEL, clamp, fused
from dperm.core.erm.losses import derivative
from dperm.core.erm.penalties import prox, prox_constants
from dperm.core.erm.problem import Problem
from dperm.core.lanes import Block, Lanes
from dperm.core.lanes.clipping import sum_sensitivity
from dperm.core.parallel import spread
from dperm.core.privacy.ledger import GLOBAL_SMOOTHNESS, Ledger, SampledGaussian
from dperm.core.privacy.mechanisms import Streams, gaussian
from dperm.core.solvers.options import at_least

SPARSE = True

# Rows of a tile's constants: step / b, C, step times noise scale, threshold, shrinkage.
_TILE = 256  # lanes of a tile, at most
_TILE_SIZE = 1 << 17  # weights of a tile, about, so that they stay in the cache
_SPARSE_TILE = 64  # lanes of a tile, at most, where A is sparse
_VECTOR = 8  # lanes one instruction advances
_DRAWS = 1 << 19  # normals drawn at a time
_SPARSE_DRAWS = 1 << 21  # the same where A is sparse: memory that is used again


@dataclass(frozen=True)
class Options:
    """Size of a batch; the papers use 1."""

    batch: int = 1

    def __post_init__(self) -> None:
        at_least("batch", self.batch, 1)


def steps(problem: Problem, passes: float, options: Options) -> int:
    """Number of steps: a pass reads n records."""
    return max(1, round(passes * problem.n / options.batch))


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = PAPER,
) -> Ledger:
    """One Gaussian release on a random batch per step."""
    return Ledger(
        (
            SampledGaussian(
                sensitivity=1.0,
                scale=noise_multiplier,
                count=count,
                batch=options.batch,
                population=problem.n,
                unit="2 C, the replace-one change of a sum of clipped gradients",
                source="Mangold et al. 2022, Section 6; Mironov et al. 2019",
            ),
        ),
        given=(GLOBAL_SMOOTHNESS,),
    )


def lane_bytes(problem: Problem) -> int:
    """Weights of one lane, held twice while lanes are dropped."""
    return 16 * problem.p


class Run(Block):
    """A block of DP-SGD lanes under way.

    Weights lie in tiles (tile, feature, lane): one record, read once, and one noise
    vector, drawn once, advance a whole tile. Tiles are padded with idle lanes.
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
        self.problem, self.options, self.workers = problem, options, workers
        self.streams = streams
        step = lanes.step / problem.global_smoothness
        scale = lanes.noise_scale(sum_sensitivity(lanes.clip)) / options.batch
        constants = np.stack(
            (
                step / options.batch,
                lanes.clip,
                step * scale,
                *prox_constants(problem.penalty, step),
            ),
            axis=1,
        )
        self._lay_out(constants)
        self.tiles = np.zeros((len(self.constants), problem.p, self._width))

    def _lay_out(self, constants: np.ndarray) -> None:
        """Put the lanes' constants (L, 5) into tiles."""
        self.size = len(constants)
        fitting = _TILE_SIZE // self.problem.p // _VECTOR * _VECTOR
        most = _SPARSE_TILE if self.problem.is_sparse else min(_TILE, max(64, fitting))
        self.constants = _tiled(constants, most)

    @property
    def _width(self) -> int:
        return self.constants.shape[2]

    @property
    def weights(self) -> np.ndarray:  # type: ignore[override]
        """Weights of the lanes, shape (L, p)."""
        return _untiled(self.tiles, self.size)

    def keep(self, mask: np.ndarray) -> None:
        """Drop the lanes outside the mask."""
        self._lay_out(_untiled(self.constants, self.size)[mask])
        self.tiles = _regrouped(self.tiles, np.flatnonzero(mask), self._width)

    def advance(self, count: int) -> None:
        """Take ``count`` more record steps in every lane."""
        draws = _SPARSE_DRAWS if self.problem.is_sparse else _DRAWS
        chunk = max(1, draws // self.problem.p)
        sizes = [min(chunk, count - low) for low in range(0, count, chunk)]
        if not (self.problem.is_sparse and self.workers > 1 and sizes):
            for size in sizes:
                self._steps(size)
            return
        with ThreadPoolExecutor(1) as ahead:  # draws one chunk while the lanes run
            drawn = ahead.submit(self._noise, sizes[0])
            for size, following in itertools.zip_longest(sizes, sizes[1:]):
                noise = drawn.result()
                if following:
                    drawn = ahead.submit(self._noise, following)
                self._steps(size, noise)

    def _batches(self, count: int) -> np.ndarray:
        n, size = self.problem.n, self.options.batch
        rng = self.streams.sampling
        if size == 1:
            return rng.integers(0, n, (count, 1))
        return np.stack([rng.choice(n, size, replace=False) for _ in range(count)])

    def _noise(self, count: int) -> np.ndarray:
        """Noise of ``count`` steps: (count, p), or (p, count) where A is sparse."""
        noise = gaussian(self.streams.noise, (count, self.problem.p))
        return np.ascontiguousarray(noise.T) if self.problem.is_sparse else noise

    def _steps(self, count: int, noise: np.ndarray | None = None) -> None:
        problem, penalty = self.problem, self.problem.penalty
        batches = self._batches(count)
        noise = self._noise(count) if noise is None else noise
        rows, kernel = problem.rows, _record_steps
        matrix: tuple[np.ndarray, ...] = (rows,)
        if problem.is_sparse:
            kernel = _sparse_record_steps
            matrix = (rows.data, rows.indices, rows.indptr)
        shared = (problem.offset, problem.row_norms)
        box = (penalty.lower, penalty.upper)

        compiled = problem.loss.compiled(kernel)

        def run(*tiles: np.ndarray) -> None:
            compiled(*matrix, *shared, batches, noise, *box, *tiles)

        spread(run, self.constants, self.tiles, workers=self.workers)


def _tiled(values: np.ndarray, most: int) -> np.ndarray:
    """Lay values (L, m) out as (tile, m, lane), padded with idle lanes."""
    size = len(values)
    tiles = -(-size // most)
    width = -(-size // max(tiles, 1) // _VECTOR) * _VECTOR  # of even tiles
    padded = np.pad(values, ((0, tiles * width - size), (0, 0)))
    padded = padded.reshape(tiles, width, values.shape[1])
    return np.ascontiguousarray(padded.transpose(0, 2, 1))


@njit(**KERNEL)
def _untiled(tiles, size):
    """The values (L, m) that ``_tiled`` laid out, in blocks that fit the cache."""
    _, m, width = tiles.shape
    out, side = np.empty((size, m)), 32
    for low in range(0, m, side):
        high = min(low + side, m)
        for lane in range(size):
            t, k = lane // width, lane % width
            for j in range(low, high):
                out[lane, j] = tiles[t, j, k]
    return out


@njit(**KERNEL)
def _regrouped(tiles, lanes, width):
    """Copy some lanes of the tiles into new tiles of ``width`` lanes each."""
    _, m, before = tiles.shape
    out = np.zeros((-(-len(lanes) // width) if width else 0, m, width))
    for t in range(out.shape[0]):
        chosen = lanes[t * width : (t + 1) * width]
        tile, place = chosen // before, chosen % before
        for j in range(m):
            for k in range(len(chosen)):
                out[t, j, k] = tiles[tile[k], j, place[k]]
    return out


@njit(**KERNEL)
def _record_steps(rows, offset, norms, batches, noise, lower, upper, constants, tiles):
    """Take the steps in every tile; changes the tiles' weights in place."""
    for t in range(tiles.shape[0]):
        _one_tile(
            rows, offset, norms, batches, noise, lower, upper,
            constants[t], tiles[t],
        )  # fmt: skip


@njit(**INLINE)
def _one_tile(rows, offset, norms, batches, noise, lower, upper, constants, W):
    """Advance the lanes of one tile; W (p, lanes) changes in place."""
    step, clip, jump = constants[0], constants[1], constants[2]
    threshold, shrink = constants[3], constants[4]
    p, lanes = W.shape
    size = batches.shape[1]
    pull = np.empty((size, lanes))  # step / b times the clipped derivative of a record
    for k in range(batches.shape[0]):
        for b in range(size):
            i = batches[k, b]
            _clipped_pull(rows[i], offset[i], norms[i], W, step, clip, pull[b])
        for j in range(p):
            w = W[j]
            for b in range(1, size):
                x = rows[batches[k, b], j]
                for lane in range(lanes):
                    w[lane] = fused(-x, pull[b, lane], w[lane])
            x, z, last = rows[batches[k, 0], j], noise[k, j], pull[0]
            for lane in range(lanes):
                forward = fused(-z, jump[lane], fused(-x, last[lane], w[lane]))
                w[lane] = prox(forward, threshold[lane], shrink[lane], lower, upper)


@njit(**INLINE)
def _clipped_pull(x, offset, norm, W, step, clip, out):
    """Write step times the clipped derivative at record x to out, for each lane."""
    out[:] = offset
    for j in range(W.shape[0]):
        w, xj = W[j], x[j]
        for lane in range(out.shape[0]):
            out[lane] = fused(xj, w[lane], out[lane])
    if norm == 0.0:
        out[:] = 0.0
        return
    inverse = 1.0 / norm
    for lane in range(out.shape[0]):
        out[lane] = step[lane] * clamp(derivative(out[lane]), clip[lane] * inverse)


@njit(**KERNEL)
def _sparse_record_steps(
    data, columns, starts, offset, norms, batches, noise, lower, upper,
    constants, tiles,
):  # fmt: skip
    """``_record_steps`` on CSR rows; noise is (p, steps).

    A coordinate is brought up to date when a record touches it, and at the end.
    """
    steps, size = batches.shape
    tile_count, p, lanes = tiles.shape
    pull = np.empty((size, lanes))
    done = np.empty(p, dtype=np.int64)  # steps a coordinate has taken
    for t in range(tile_count):
        W = tiles[t]
        own = constants[t]
        step, clip, shrink = own[0], own[1], own[4]
        plain = lower == -np.inf and upper == np.inf
        plain = plain and ((shrink == 1.0) | (shrink == 0.0)).all()  # 0: idle lanes
        done[:] = 0
        for k in range(steps):
            for b in range(size):
                i = batches[k, b]
                out = pull[b]
                out[:] = offset[i]
                for e in range(starts[i], starts[i + 1]):
                    j, x = columns[e], data[e]
                    w = W[j]
                    if done[j] < k:
                        _walk(plain, w, noise[j, done[j] : k], own, lower, upper)
                        done[j] = k
                    for lane in range(lanes):
                        out[lane] += x * w[lane]
                bound = 1.0 / norms[i] if norms[i] > 0.0 else 0.0
                for lane in range(lanes):
                    slope = clamp(derivative(out[lane]), clip[lane] * bound)
                    out[lane] = step[lane] * slope
            for b in range(size):
                for e in range(starts[batches[k, b]], starts[batches[k, b] + 1]):
                    x, w, last = data[e], W[columns[e]], pull[b]
                    for lane in range(lanes):
                        w[lane] -= x * last[lane]
            for b in range(size):
                for e in range(starts[batches[k, b]], starts[batches[k, b] + 1]):
                    j = columns[e]
                    if done[j] == k:
                        _walk(plain, W[j], noise[j, k : k + 1], own, lower, upper)
                        done[j] = k + 1
        for j in range(p):
            if done[j] < steps:
                _walk(plain, W[j], noise[j, done[j] : steps], own, lower, upper)


@njit(**INLINE)
def _walk(plain, w, noise, constants, lower, upper):
    """Proximal steps with noise and no gradient, one per number; w (lanes) changes.

    ``plain`` means neither shrinkage nor a box: faster, with the same bits. Four steps
    are taken at a time, so that the weights stay in registers.
    """
    jump, threshold, shrink = constants[2], constants[3], constants[4]
    whole = noise.shape[0] // 4 * 4 if plain else 0
    for k in range(0, whole, 4):
        a, b, c, d = noise[k], noise[k + 1], noise[k + 2], noise[k + 3]
        for lane in range(w.shape[0]):
            z, t = jump[lane], threshold[lane]
            x = w[lane] - a * z
            x = x - clamp(x, t) - b * z
            x = x - clamp(x, t) - c * z
            x = x - clamp(x, t) - d * z
            w[lane] = x - clamp(x, t)
    for k in range(whole, noise.shape[0]):
        a = noise[k]
        for lane in range(w.shape[0]):
            x = w[lane] - a * jump[lane]
            w[lane] = prox(x, threshold[lane], shrink[lane], lower, upper)
