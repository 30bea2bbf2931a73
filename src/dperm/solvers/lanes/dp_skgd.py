"""DP-SkGD: differentially private sketched gradient descent (Maranjyan et al. 2024).

Algorithm 1. Each step draws a set S of coordinates independently of the data. It
releases the gradient of f on S, a mean of per-record gradients clipped to norm C_S,
with Gaussian noise. With the step matrix P M^-1 the probabilities of the sketch cancel:

    w_j <- w_j - (step / M_j) (g_j + eta_j)   for j in S,
    C_S = sqrt(sum_{j in S} M_j / sum M) C,   eta_j ~ N(0, (sigma 2 C_S / n)^2).

The probabilities only decide how often a coordinate is visited. M is chosen to bound
the curvature along every move within S (Assumption 3.6). The constants of single
coordinates do not, and full steps of size 1 / M_j with them diverge.

Beyond the paper, an L2 term is handled by its proximal operator (at step 1 this is the
gradient step of a smoothness M_j + l2). ``composite`` admits an L1 norm and a box, as
DP-CD does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit

from dperm.core.calibrations import PAPER
from dperm.core.compiled import KERNEL, PASTED, clamp, dot, fused
from dperm.core.erm.cleaning import lengths
from dperm.core.erm.losses import derivative
from dperm.core.erm.penalties import prox, prox_constants
from dperm.core.erm.problem import Problem
from dperm.core.lanes import Lanes, dp_cd
from dperm.core.lanes.clipping import mean_sensitivity
from dperm.core.parallel import spread
from dperm.core.privacy.ledger import (
    IMPORTANCE,
    LIFTS,
    PARTITION,
    SMOOTHNESS,
    Gaussian,
    Ledger,
)
from dperm.core.privacy.mechanisms import Streams, gaussian
from dperm.core.solvers.capabilities import Asked, require
from dperm.core.solvers.options import at_least, one_of

SAMPLINGS = ("blocks", "nice")
PROBABILITIES = ("uniform", "importance")
PARTITIONS = ("smoothness", "random")
_TILE = 1024  # rows whose margins stay in the first-level cache
_NORMS = 1 << 22  # record norms on drawn sets held at a time
_LANE_ARRAYS = (
    *("clip", "scale", "step", "threshold", "shrink"),
    *("weights", "sums", "since", "places"),
)


@dataclass(frozen=True)
class Options:
    """The distribution of S, and the choices that Algorithm 1 leaves open."""

    #: {"blocks", "nice"}; one block of a partition, or ``size`` coordinates without
    #: replacement
    sampling: str = "blocks"
    #: blocks of the partition; 1 is full sampling, 0 stands for p, single coordinates
    blocks: int = 0
    size: int = 1  #: tau of nice sampling
    #: {"uniform", "importance"}; of the blocks: equal, or proportional to the block's
    #: largest M_j
    probabilities: str = "uniform"
    #: {"smoothness", "random"}; blocks of nearly equal size, of coordinates with
    #: neighbouring M_j or at random
    partition: str = "smoothness"
    #: an explicit partition; overrides ``blocks`` and ``partition``
    groups: Sequence[Sequence[int]] = ()
    seed: int = 0  #: of the random partition, which is public
    #: T of Algorithm 1: that many averages of equally many iterates; 0 returns the last
    #: iterate
    periods: int = 0
    composite: bool = False  #: admit an L1 norm and a box, beyond the paper

    def __post_init__(self) -> None:
        one_of("sampling", self.sampling, SAMPLINGS)
        one_of("probabilities", self.probabilities, PROBABILITIES)
        one_of("partition", self.partition, PARTITIONS)
        for key, least in (("blocks", 0), ("size", 1), ("seed", 0), ("periods", 0)):
            at_least(key, getattr(self, key), least)
        if self.sampling == "nice" and self.probabilities != "uniform":
            raise ValueError("options.probabilities: nice sampling is uniform")


def refuses(options: Options, asked: Asked) -> str:
    """Refuse an L1 norm or a box without ``composite``: the paper covers f alone."""
    if (asked.l1 or asked.box) and not options.composite:
        return (
            "it is composite: DP-SkGD is defined for smooth objectives; "
            "options.composite: true goes beyond the paper"
        )
    return ""


class Sketch:
    """The distribution of S on one problem, with the constants that belong to it.

    Raises ValueError if the blocks do not fit the problem.
    """

    def __init__(self, problem: Problem, options: Options):
        self.problem, self.options = problem, options
        self.nice = options.sampling == "nice"
        if self.nice and options.size > problem.p:
            raise ValueError(f"options.size: found {options.size}, p = {problem.p}")
        self.sets = [] if self.nice else partition(problem, options)

    @property
    def single(self) -> bool:
        """Whether every set is one coordinate."""
        return not self.nice and len(self.sets) == self.problem.p

    @cached_property
    def factors(self) -> np.ndarray:
        """Factors with which M_j bounds the curvature within S; shape (p,)."""
        p = self.problem.p
        if self.nice:
            whole = lift(self.problem, np.arange(p))
            return np.full(p, min(float(self.options.size), whole))
        factors = np.empty(p)
        for members in self.sets:
            factors[members] = lift(self.problem, members)
        return factors

    @property
    def smoothness(self) -> np.ndarray:
        """M_j valid on the sets of the distribution, shape (p,)."""
        return self.factors * self.problem.smoothness

    @cached_property
    def q(self) -> np.ndarray:
        """Probability of each block, shape (b,)."""
        if self.options.probabilities == "uniform":
            return np.full(len(self.sets), 1.0 / len(self.sets))
        M = self.smoothness
        tops = np.array([M[members].max() for members in self.sets])
        return tops / tops.sum()

    @property
    def probability(self) -> np.ndarray:
        """p_j = Prob(j in S), shape (p,)."""
        p = self.problem.p
        if self.nice:
            return np.full(p, self.options.size / p)
        found = np.empty(p)
        for members, q in zip(self.sets, self.q, strict=True):
            found[members] = q
        return found

    @property
    def expected_size(self) -> float:
        """Expected number of coordinates in S."""
        if self.nice:
            return float(self.options.size)
        if self.options.probabilities == "uniform":
            return self.problem.p / len(self.sets)
        return float(self.q @ [len(members) for members in self.sets])

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """The next ``count`` blocks, as indices into ``sets``."""
        if self.options.probabilities == "uniform":
            return rng.integers(0, len(self.sets), count)
        drawn = np.searchsorted(np.cumsum(self.q), rng.random(count), side="right")
        return np.minimum(drawn, len(self.sets) - 1)

    def draw_nice(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """The next ``count`` nice sets, each increasing; shape (count, size)."""
        p, size = self.problem.p, self.options.size
        return np.array(
            [np.sort(rng.choice(p, size, replace=False)) for _ in range(count)]
        )


def _sketch(problem: Problem, options: Options) -> Sketch:
    """The sketch of a problem, whose factors are computed once for all runs."""
    key = ("sketch", repr(options))
    found: Sketch = problem.kept(key, lambda: Sketch(problem, options))
    return found


def partition(problem: Problem, options: Options) -> list[np.ndarray]:
    """The blocks, each increasing, ordered by their smallest coordinate.

    Raises ValueError if there are more blocks than coordinates, or if groups are not a
    partition.
    """
    p = problem.p
    if options.groups:
        parts = [np.array(sorted(group), dtype=np.int64) for group in options.groups]
        if sorted(np.concatenate(parts).tolist()) != list(range(p)):
            raise ValueError(f"options.groups: expected a partition of 0 to {p - 1}")
    else:
        count = options.blocks or p
        if count > p:
            raise ValueError(f"options.blocks: expected at most p = {p}, found {count}")
        order = _ordering(problem, options)
        parts = [np.sort(part) for part in np.array_split(order, count)]
    return sorted((part.astype(np.int64) for part in parts), key=lambda part: part[0])


def _ordering(problem: Problem, options: Options) -> np.ndarray:
    if options.partition == "smoothness":
        return np.argsort(problem.smoothness, kind="stable")
    bits = np.random.PCG64(np.random.SeedSequence(options.seed))
    return np.random.Generator(bits).permutation(problem.p)


def lift(problem: Problem, members: np.ndarray) -> float:
    """The least factor for which factor * diag(M) bounds the Hessian on a set.

    It is the largest eigenvalue of D^-1/2 H D^-1/2 on the set, with H the bound
    sup phi'' X^T X / n on the Hessian and D = diag(M) its diagonal; 1 for one
    coordinate.
    """
    if len(members) == 1:
        return 1.0
    columns = problem.A[:, members]
    scaled = columns * np.sqrt(
        problem.loss.curvature / problem.n / problem.smoothness[members]
    )
    return float(np.linalg.eigvalsh(scaled.T @ scaled)[-1])


def steps(problem: Problem, passes: float, options: Options) -> int:
    """Number of steps: a pass touches p coordinates on average."""
    size = _sketch(problem, options).expected_size
    return max(1, round(passes * problem.p / size))


def shares(M: np.ndarray, sets: Sequence[np.ndarray]) -> np.ndarray:
    """C_S / C = sqrt(sum_{j in S} M_j / sum M) of each set; 1 for all coordinates."""
    return np.sqrt([M[members].sum() / M.sum() for members in sets])


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = PAPER,
) -> Ledger:
    """One Gaussian release per step; S is independent of the data and costs nothing."""
    return Ledger(
        (
            Gaussian(
                sensitivity=1.0,
                scale=noise_multiplier,
                count=count,
                unit="2 C_S / n, the replace-one change of a mean gradient on S",
                source="Maranjyan et al. 2024, Algorithm 1, line 7; Corollary D.5",
            ),
        ),
        given=public_information(problem, options),
    )


def public_information(problem: Problem, options: Options) -> tuple[str, ...]:
    """Quantities read off the data without noise: M_j, and those behind the sets."""
    if options.sampling == "nice":
        single, whole = options.size == 1, False
    else:
        blocks = len(options.groups) or options.blocks or problem.p
        single, whole = blocks == problem.p, blocks == 1
    found = [SMOOTHNESS]
    if not single:
        found.append(LIFTS)
    if options.sampling == "nice":
        return tuple(found)
    if not (options.groups or single or whole) and options.partition == "smoothness":
        found.append(PARTITION)
    if options.probabilities == "importance" and not whole:
        found.append(IMPORTANCE)
    return tuple(found)


def lane_bytes(problem: Problem) -> int:
    """Margins (n), weights and per-coordinate constants (p) of one lane."""
    return 8 * (problem.n + 8 * problem.p)


class Run(dp_cd.Run):
    """A block of DP-SkGD lanes under way.

    Single coordinates use DP-CD's kernel, so that the bits are the same.
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
        self.sketch = _sketch(problem.known, options)
        kept = dp_cd.Options("uniform", periods=options.periods)
        super().__init__(problem, lanes, streams, kept, workers, total)
        if not self.sketch.single:
            self.clip = lanes.clip.copy()
            self.scale = lanes.noise_scale(mean_sensitivity(lanes.clip, problem.n))
            self.step = np.outer(lanes.step, 1.0 / self.sketch.smoothness)
            self.threshold, self.shrink = prox_constants(problem.penalty, self.step)

    def _steps(self, count: int) -> None:
        if self.sketch.single:
            super()._steps(count)
            return
        done = self.done
        for drawn in self._chunks(count):
            self._block_steps(done, *drawn)
            done += len(drawn[0])

    def _order(self, count: int) -> np.ndarray:
        """Coordinates of single sampling: block j of p holds coordinate j."""
        return self.sketch.draw(self.streams.sampling, count)

    def _chunks(self, count: int) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
        """The next sets: yields (order, sets), where order holds indices into sets."""
        if not self.sketch.nice:
            yield self.sketch.draw(self.streams.sampling, count), self.sketch.sets
            return
        most = max(1, _NORMS // self.problem.n)
        while count > 0:
            drawn = self.sketch.draw_nice(self.streams.sampling, min(count, most))
            sets, order = np.unique(drawn, axis=0, return_inverse=True)
            yield order.ravel(), list(sets)
            count -= len(drawn)

    def _block_steps(
        self, done: int, order: np.ndarray, sets: Sequence[np.ndarray]
    ) -> None:
        problem, penalty = self.problem, self.problem.penalty
        sizes = np.array([len(members) for members in sets])
        starts = np.concatenate(([0], np.cumsum(sizes)))
        noise = gaussian(self.streams.noise, int(sizes[order].sum()))
        shared = (
            *(problem.A, order, starts, np.concatenate(sets)),
            *(shares(problem.smoothness, sets), self._inverse_norms(sets)),
            *(noise, done, penalty.lower, penalty.upper, self.margins),
        )

        kernel = problem.loss.compiled(_block_kernel)

        def run(*lanes: np.ndarray) -> None:
            kernel(*shared, *lanes)

        lanes = (getattr(self, name) for name in _LANE_ARRAYS)
        spread(run, *lanes, workers=self.workers)

    def _inverse_norms(self, sets: Sequence[np.ndarray]) -> np.ndarray:
        """1 / ||A_iS|| of each record on each set, (sets, n); kept for partitions."""
        A = self.problem.A

        def made() -> np.ndarray:
            with np.errstate(divide="ignore", over="ignore"):
                norms = [lengths(A[:, s], np.einsum("ij,ij->i", A[:, s], A[:, s]))
                         for s in sets]  # fmt: skip
                inverse: np.ndarray = 1.0 / np.array(norms)
            return inverse

        if self.sketch.nice:
            return made()
        found: np.ndarray = self.problem.kept(
            ("norms", repr(self.sketch.options)), made
        )
        return found


@njit(**KERNEL)
def _block_kernel(
    A, order, starts, members, shares, norms, noise, done, lower, upper, V,
    clip, scale, step, threshold, shrink, W, sums, since, places,
):  # fmt: skip
    """Take the steps in every lane; changes W, V, sums and since in place."""
    width = 0
    for s in range(starts.shape[0] - 1):
        width = max(width, starts[s + 1] - starts[s])
    gradient, moves, pull = np.empty(width), np.zeros(width), np.empty(_TILE)
    for lane in range(W.shape[0]):
        _one_lane(
            A, order, starts, members, shares, norms, noise, done, lower, upper,
            clip[lane], scale[lane], step[lane], threshold[lane], shrink[lane],
            W[lane], V[places[lane]], sums[lane], since[lane], gradient, moves, pull,
        )  # fmt: skip


@njit(**PASTED)
def _one_lane(
    A, order, starts, members, shares, norms, noise, done, lower, upper,
    clip, scale, step, threshold, shrink, w, v, sums, since, gradient, moves, pull,
):  # fmt: skip
    """Algorithm 1, lines 4 to 8, for one lane; w and its margins v change in place.

    The moves of one step reach the margins in the next step's sweep over the rows.
    """
    used, first, last = 0, 0, 0  # noise used so far; members of the step before
    for k in range(order.shape[0]):
        s = order[k]
        low, high = starts[s], starts[s + 1]
        _clipped_gradient(
            A, members, first, last, low, high, moves, norms[s],
            clip * shares[s], v, gradient, pull,
        )  # fmt: skip
        spread_of_noise = scale * shares[s]
        for t in range(low, high):
            j = members[t]
            old = w[j]
            released = gradient[t - low] + spread_of_noise * noise[used]
            forward = old - step[j] * released
            w[j] = prox(forward, threshold[j], shrink[j], lower, upper)
            sums[j] += old * (done + k - since[j])
            since[j] = done + k
            moves[t - low] = w[j] - old
            used += 1
        first, last = low, high
    for t in range(first, last):
        j, move = members[t], moves[t - first]
        for i in range(v.shape[0]):
            v[i] = fused(move, A[i, j], v[i])


@njit(**PASTED)
def _clipped_gradient(
    A, members, first, last, low, high, moves, norms, bound, v, gradient, pull
):
    """Bring v up to date and write the mean clipped gradient on the set.

    A record's gradient on S is phi'(v_i) A_iS, so clipping it to norm C_S clips phi'
    to C_S / ||A_iS||.
    """
    n = v.shape[0]
    gradient[: high - low] = 0.0
    for start in range(0, n, _TILE):
        m = min(_TILE, n - start)
        margins, inverse = v[start : start + m], norms[start : start + m]
        for t in range(first, last):
            move, column = moves[t - first], A[start : start + m, members[t]]
            for i in range(m):
                margins[i] = fused(move, column[i], margins[i])
        for i in range(m):
            pull[i] = clamp(derivative(margins[i]), bound * inverse[i])
        for t in range(low, high):
            column = A[start : start + m, members[t]]
            gradient[t - low] += dot(pull[:m], column)
    for t in range(high - low):
        gradient[t] /= n
