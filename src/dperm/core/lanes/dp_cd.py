"""DP-CD: differentially private proximal coordinate descent (Mangold et al. 2022).

Algorithm 1. Each step releases one coordinate of the gradient of f, a mean of
per-record derivatives clipped to [-C_j, C_j], with Gaussian noise, and takes a proximal
step:

    w_j <- prox_{gamma_j psi_j}(w_j - gamma_j (g_j + eta_j)),   gamma_j = step / M_j,
    C_j = sqrt(M_j / sum M) C  (Section 5.1),   eta_j ~ N(0, (sigma 2 C_j / n)^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from dperm.core.calibrations import PAPER
from dperm.core.compiled import FEW, KERNEL, PASTED, WIDE, clamp, fold, fused, running
from dperm.core.erm.losses import derivative
from dperm.core.erm.penalties import prox, prox_constants
from dperm.core.erm.problem import Problem
from dperm.core.lanes import Block, Lanes
from dperm.core.lanes.clipping import mean_sensitivity, share
from dperm.core.parallel import spread
from dperm.core.privacy.ledger import SMOOTHNESS, Gaussian, Ledger
from dperm.core.privacy.mechanisms import Streams, gaussian
from dperm.core.solvers.capabilities import Asked, require
from dperm.core.solvers.options import at_least, one_of

SPARSE = True
SAMPLINGS = ("cyclic", "reshuffled", "uniform")
THRESHOLDS = ("scaled", "equal")
_LANE_ARRAYS = (
    *("step", "clip", "scale", "threshold", "shrink"),
    *("weights", "sums", "since", "places"),
)
_SPARSE_CHUNK = 1 << 14  # steps of one call, whose coordinates are gathered
_SPARSE_ARRAYS = ("step", "clip", "scale", "weights", "margins")


@dataclass(frozen=True)
class Options:
    """Choices that Algorithm 1 leaves open."""

    #: {"cyclic", "reshuffled", "uniform"}; The algorithm draws uniformly; its published
    #: numbers come from a cycle. A reshuffled cycle takes the coordinates in another
    #: random order each time.
    sampling: str = "cyclic"
    first: int = 1  #: first coordinate of the cycle, counted from 0
    #: T of Algorithm 1, the number of periods whose iterates are averaged, of nearly
    #: equal lengths; 0 returns the last iterate, as the experiments do
    periods: int = 0
    #: {"scaled", "equal"}; C_j = sqrt(M_j / sum M) C, or C / sqrt(p) for every
    #: coordinate, which Section 5.1 warns of
    thresholds: str = "scaled"

    def __post_init__(self) -> None:
        one_of("sampling", self.sampling, SAMPLINGS)
        one_of("thresholds", self.thresholds, THRESHOLDS)
        at_least("first", self.first, 0)
        at_least("periods", self.periods, 0)


def refuses(options: Options, asked: Asked) -> str:
    """Refuse averages of periods where A is sparse."""
    if options.periods and asked.sparse:
        return "options.periods: not available where A is sparse"
    return ""


def steps(problem: Problem, passes: float, options: Options) -> int:
    """Coordinate steps in a number of passes: a pass is p steps."""
    return max(1, round(passes * problem.p))


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = PAPER,
) -> Ledger:
    """One Gaussian release per step (Appendix B); the order is public."""
    return Ledger(
        (
            Gaussian(
                sensitivity=1.0,
                scale=noise_multiplier,
                count=count,
                unit="2 C_j / n, the replace-one change of a clipped mean derivative",
                source="Mangold et al. 2022, Algorithm 1, line 7; Lemma B.7",
            ),
        ),
        given=(SMOOTHNESS,),
    )


def lane_bytes(problem: Problem) -> int:
    """Bytes of margins (n), weights and constants of coordinates (p) of one lane."""
    if problem.is_sparse:
        return 16 * (problem.n + problem.p)
    return 8 * (problem.n + 6 * problem.p)


class Run(Block):
    """State of a block of DP-CD lanes.

    Where A is sparse, step, clip and noise scale are stored as one number per lane, and
    averages of periods are not available.
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
        require(refuses, options, problem)
        M = self.smoothness(problem, lanes, streams, options)
        self.problem, self.options, self.workers = problem, options, workers
        self.streams, self.done, self.began = streams, 0, 0
        ends = {
            total * number // options.periods
            for number in range(1, options.periods + 1)
        }
        self.ends = sorted(ends - {0})
        self.ahead = np.empty(0, dtype=np.int64)  # part of the order already drawn
        size = len(lanes.step)
        self.weights = np.zeros((size, problem.p))
        self.margins = np.tile(problem.offset, (size, 1))
        prepare = self._prepare_sparse if problem.is_sparse else self._prepare_dense
        prepare(M, lanes)

    def _prepare_dense(self, M: np.ndarray, lanes: Lanes) -> None:
        """Constants of every lane and coordinate, (L, p)."""
        self.names = _LANE_ARRAYS
        self.places = np.arange(len(self.weights))  # of the lanes' rows in margins
        self.clip = np.outer(lanes.clip, self.shares(M))
        self.scale = self.noise_scale(lanes, self.clip)
        self.step = np.outer(lanes.step, 1.0 / self.divisors(M))
        self.threshold, self.shrink = prox_constants(self.problem.penalty, self.step)
        self.sums = np.zeros_like(self.weights)
        self.since = np.zeros(self.weights.shape, dtype=np.int64)

    def _prepare_sparse(self, M: np.ndarray, lanes: Lanes) -> None:
        """Constants of every lane (L,), and of every coordinate (p,)."""
        self.names = _SPARSE_ARRAYS
        self.divisor, self.share = self.divisors(M), self.shares(M)
        self.step, self.clip = lanes.step, lanes.clip
        self.scale = self.noise_scale(lanes, lanes.clip)

    def divisors(self, M: np.ndarray) -> np.ndarray:
        """Step rule: gamma_j is a lane's step divided by these; shape (p,)."""
        return M

    def noise_scale(self, lanes: Lanes, clip: np.ndarray) -> np.ndarray:
        """Standard deviation of a step's noise, shape of ``clip``."""
        return lanes.noise_scale(mean_sensitivity(clip, self.problem.n))

    def shares(self, M: np.ndarray) -> np.ndarray:
        """Ratios C_j / C, shape (p,)."""
        return share(M if self.options.thresholds == "scaled" else np.ones_like(M))

    def smoothness(
        self, problem: Problem, lanes: Lanes, streams: Streams, options: Options
    ) -> np.ndarray:
        """M_j of the problem, taken as public (as the paper does); shape (p,)."""
        return problem.smoothness

    def advance(self, count: int) -> None:
        """Take ``count`` more coordinate steps in every lane."""
        while count > 0:
            chunk = count
            if self.ends:
                chunk = min(count, self.ends[0] - self.done)
            elif self.problem.is_sparse:
                chunk = min(count, _SPARSE_CHUNK)
            self._steps(chunk)
            self.done += chunk
            count -= chunk
            if self.ends and self.done == self.ends[0]:
                # line 9 of Algorithm 1: continue from the mean of the period's iterates
                end = self.ends.pop(0)
                self.sums += self.weights * (end - self.since)
                self.weights[:] = self.sums / (end - self.began)
                self.began = end
                self.sums[:] = 0.0
                self.since[:] = self.done
                self.margins[:] = self.problem.offset
                for place, w in zip(self.places, self.weights, strict=True):
                    with np.errstate(over="ignore", invalid="ignore"):
                        self.margins[place] += self.problem.A @ w

    def _order(self, count: int) -> np.ndarray:
        p, drawn = self.problem.p, self.streams.sampling
        if self.options.sampling == "uniform":
            return drawn.integers(0, p, count)
        if self.options.sampling == "reshuffled":
            cycles = -(-(count - len(self.ahead)) // p)
            more = [drawn.permutation(p) for _ in range(cycles)]
            ahead = np.concatenate([self.ahead, *more])
            self.ahead = ahead[count:]
            return ahead[:count]
        return (self.options.first + self.done + np.arange(count)) % p

    def _steps(self, count: int) -> None:
        order = self._order(count)
        noise = gaussian(self.streams.noise, count)
        penalty, A = self.problem.penalty, self.problem.A
        shared: tuple[Any, ...] = (order, noise)
        box: tuple[Any, ...] = (penalty.lower, penalty.upper)
        if self.problem.is_sparse:
            kernel = _sparse_steps
            matrix: tuple[Any, ...] = (A.data, A.indices, A.indptr)
            touched, places = np.unique(order, return_inverse=True)
            shared += (
                touched,
                places,
                self.divisor,
                self.share,
                penalty.l1,
                penalty.l2,
            )
        else:
            kernel, matrix = _coordinate_steps, (A,)
            shared += (self.done,)
            box += (self.margins,)

        compiled = self.problem.loss.compiled(kernel)

        def run(*lanes: np.ndarray) -> None:
            compiled(*matrix, *shared, *box, *lanes)

        lanes = (getattr(self, name) for name in self.names)
        spread(run, *lanes, workers=self.workers)


@njit(**KERNEL)
def _coordinate_steps(
    A, order, noise, done, lower, upper,
    V, step, clip, scale, threshold, shrink, W, sums, since, places,
):  # fmt: skip
    """Take the steps in every lane; changes W, V, sums and since in place."""
    for lane in range(W.shape[0]):
        _one_lane(
            A, order, noise, done, lower, upper,
            step[lane], clip[lane], scale[lane], threshold[lane], shrink[lane],
            W[lane], V[places[lane]], sums[lane], since[lane],
        )  # fmt: skip


@njit(**PASTED)
def _one_lane(
    A, order, noise, done, lower, upper,
    step, clip, scale, threshold, shrink, w, v, sums, since,
):  # fmt: skip
    """Algorithm 1, lines 3 to 8, for one lane; w and its margins v change in place.

    A step's move is applied to the margins in the next step's loop over the rows, so
    that each step reads the rows once.
    """
    moved, move = order[0], 0.0
    for k in range(order.shape[0]):
        j = order[k]
        gradient = _clipped_mean(A[:, j], A[:, moved], move, v, clip[j])
        old = w[j]
        forward = old - step[j] * (gradient + scale[j] * noise[k])
        w[j] = prox(forward, threshold[j], shrink[j], lower, upper)
        sums[j] += old * (done + k - since[j])
        since[j] = done + k
        moved, move = j, w[j] - old
    for i in range(v.shape[0]):
        v[i] = fused(move, A[i, moved], v[i])


@njit(**PASTED)
def _clipped_mean(column, last, move, v, bound):
    """Bring v up to date and return the mean clipped derivative along the column."""
    sums, n = running(), v.shape[0]
    for start in range(0, n & -WIDE, WIDE):
        for u in range(WIDE):
            sums[u] += _clipped(column, last, move, v, bound, start + u)
    for start in range(n & -WIDE, n & -FEW, FEW):
        for u in range(FEW):
            sums[u] += _clipped(column, last, move, v, bound, start + u)
    for i in range(n & -FEW, n):
        sums[0] += _clipped(column, last, move, v, bound, i)
    return fold(sums) / n


@njit(**PASTED)
def _clipped(column, last, move, v, bound, i):
    v[i] = fused(move, last[i], v[i])
    return clamp(column[i] * derivative(v[i]), bound)


@njit(**KERNEL)
def _sparse_steps(
    data, rows, starts, order, noise, touched, places,
    divisor, share, l1, l2, lower, upper, step, clip, scale, W, V,
):  # fmt: skip
    """The steps on CSC columns; changes W and V in place.

    A step costs the number of its column's entries. Lanes are the last axis, so that an
    entry is read once for all of them. Derivatives are stored, and updated where a lane
    of the slice has moved. Only weights of the ``touched`` coordinates are copied;
    order = touched[places].
    """
    lanes, n = V.shape
    w, v = np.empty((touched.shape[0], lanes)), np.ascontiguousarray(V.T)
    for u in range(touched.shape[0]):
        for lane in range(lanes):
            w[u, lane] = W[lane, touched[u]]
    d, total, move = np.empty((n, lanes)), np.empty(lanes), np.empty(lanes)
    for i in range(n):
        for lane in range(lanes):
            d[i, lane] = derivative(v[i, lane])
    for k in range(order.shape[0]):
        j = order[k]
        total[:] = 0.0
        for e in range(starts[j], starts[j + 1]):
            x, slopes = data[e], d[rows[e]]
            for lane in range(lanes):
                total[lane] += clamp(x * slopes[lane], clip[lane] * share[j])
        here, moved = w[places[k]], 0.0
        for lane in range(lanes):
            gamma, old = step[lane] / divisor[j], here[lane]
            released = total[lane] / n + scale[lane] * share[j] * noise[k]
            shrink = 1.0 / (1.0 + gamma * l2)
            new = prox(old - gamma * released, gamma * l1, shrink, lower, upper)
            here[lane], move[lane] = new, new - old
            moved = max(moved, abs(new - old))
        if moved != 0.0:
            for e in range(starts[j], starts[j + 1]):
                x, margins, slopes = data[e], v[rows[e]], d[rows[e]]
                for lane in range(lanes):
                    margins[lane] += x * move[lane]
                    slopes[lane] = derivative(margins[lane])
    for u in range(touched.shape[0]):
        for lane in range(lanes):
            W[lane, touched[u]] = w[u, lane]
    V[:] = v.T
