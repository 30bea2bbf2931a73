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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from dperm.numerics.compiled import KERNEL, PASTED, clamp, dot, fused
from dperm.numerics.kernels import njit
from dperm.privacy.accountants import PUBLISHED
from dperm.privacy.events import (
    IMPORTANCE,
    LIFTS,
    PARTITION,
    SMOOTHNESS,
    Gaussian,
    Ledger,
)
from dperm.problems.cleaning import lengths
from dperm.problems.losses import derivative
from dperm.problems.penalties import prox
from dperm.problems.problem import Problem
from dperm.solvers.batched import BatchedSettings, dp_cd
from dperm.solvers.batched.columns import moved
from dperm.solvers.batched.dp_cd import bytes_per_setting as bytes_per_setting
from dperm.solvers.options import at_least, one_of

_TILE = 1024  # rows whose margins stay in the first-level cache
_NORMS = 1 << 22  # record norms on drawn sets held at a time
SAME_STEPS = True  # a step has one size for all weights


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
    seed: int = 0  #: of the random partition, which is public
    #: T of Algorithm 1: that many averages of equally many iterates; 0 returns the last
    #: iterate
    periods: int = 0
    composite: bool = False  #: admit an L1 norm and a box, beyond the paper

    def __post_init__(self) -> None:
        one_of("sampling", self.sampling, ("blocks", "nice"))
        one_of("probabilities", self.probabilities, ("uniform", "importance"))
        one_of("partition", self.partition, ("smoothness", "random"))
        at_least(self, 0, "blocks", "seed", "periods")
        at_least(self, 1, "size")
        if self.sampling == "nice" and self.probabilities != "uniform":
            raise ValueError("options.probabilities: nice sampling is uniform")


def refuses(options: Options, smooth: bool) -> str:
    """Refuse an L1 norm or a box without ``composite``: the paper covers f alone."""
    if smooth or options.composite:
        return ""
    return (
        "it is composite: DP-SkGD is defined for smooth objectives; "
        "options.composite: true goes beyond the paper"
    )


class SketchLaw:
    """The distribution of S on one problem, with the constants that belong to it.

    Raises ValueError if there are more coordinates in a set, or more blocks, than p.

    Attributes
    ----------
    sets : list of ndarray
        The blocks of the partition; empty for nice sampling.
    """

    def __init__(self, problem: Problem, options: Options):
        self.problem = problem
        self.options = options
        self.nice = options.sampling == "nice"
        if self.nice and options.size > problem.p:
            raise ValueError(
                f"options.size: found {options.size}, p = {problem.p}"
            )
        self.sets = [] if self.nice else partition(problem, options)

    @property
    def single(self) -> bool:
        """Whether every set is one coordinate."""
        return not self.nice and len(self.sets) == self.problem.p

    @cached_property
    def smoothness(self) -> np.ndarray:
        """M_j that bound the curvature on the sets of the distribution, shape (p,)."""
        p = self.problem.p
        factors = np.ones(self.problem.p)
        if self.nice:
            factors[:] = min(
                self.options.size, lift(self.problem, np.arange(p))
            )
        for members in self.sets:
            factors[members] = lift(self.problem, members)
        return factors * self.problem.smoothness

    @cached_property
    def q(self) -> np.ndarray:
        """Probability of each block, shape (b,)."""
        if self.options.probabilities == "uniform":
            return np.full(len(self.sets), 1.0 / len(self.sets))
        tops = np.array(
            [self.smoothness[members].max() for members in self.sets]
        )
        return tops / tops.sum()

    @property
    def probability(self) -> np.ndarray:
        """p_j = Prob(j in S), shape (p,)."""
        probabilities = np.full(
            self.problem.p, self.options.size / self.problem.p
        )
        for s, members in enumerate(self.sets):
            probabilities[members] = self.q[s]
        return probabilities

    @property
    def expected_size(self) -> float:
        """Expected number of coordinates in S."""
        if self.nice:
            return float(self.options.size)
        if self.options.probabilities == "uniform":
            return self.problem.p / len(self.sets)
        return float(self.q @ [len(members) for members in self.sets])

    def draw(
        self, rng: Generator, count: int
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """The next ``count`` sets, as places in a list, and the list; sets increase."""
        p = self.problem.p
        size = self.options.size
        if self.nice:
            drawn = [rng.choice(p, size, replace=False) for _ in range(count)]
            distinct = np.unique(
                np.sort(drawn, axis=1), axis=0, return_inverse=True
            )
            return distinct[1].ravel(), [*distinct[0]]
        if self.options.probabilities == "uniform":
            return rng.integers(0, len(self.sets), count), self.sets
        places = np.searchsorted(
            np.cumsum(self.q), rng.random(count), side="right"
        )
        return np.minimum(places, len(self.sets) - 1), self.sets


def _sketch(problem: Problem, options: Options) -> SketchLaw:
    """The sketch of a problem, whose constants are computed once for all runs."""
    key = ("sketch", repr(options))
    sketch: SketchLaw = problem.kept(key, lambda: SketchLaw(problem, options))
    return sketch


def partition(problem: Problem, options: Options) -> list[np.ndarray]:
    """The blocks, each increasing, ordered by their smallest coordinate.

    Raises ValueError if there are more blocks than coordinates.
    """
    p = problem.p
    count = options.blocks or problem.p
    if count > p:
        raise ValueError(
            f"options.blocks: expected at most p = {p}, found {count}"
        )
    order = np.argsort(problem.smoothness, kind="stable")
    if options.partition == "random":
        order = np.random.default_rng(options.seed).permutation(p)
    blocks = [np.sort(block) for block in np.array_split(order, count)]
    return sorted(blocks, key=lambda block: int(block[0]))


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


def shares(M: np.ndarray, sets: Sequence[np.ndarray]) -> np.ndarray:
    """C_S / C = sqrt(sum_{j in S} M_j / sum M) of each set; 1 for all coordinates."""
    return np.sqrt([M[members].sum() / M.sum() for members in sets])


def steps(problem: Problem, passes: float, options: Options) -> int:
    """Number of steps: a pass touches p coordinates on average."""
    size = _sketch(problem, options).expected_size
    return max(1, round(passes * problem.p / size))


def ledger(
    problem: Problem,
    count: int,
    noise_multiplier: float,
    options: Options,
    calibration: str = PUBLISHED,
) -> Ledger:
    """One Gaussian release per step; S is independent of the data and costs nothing."""
    event = Gaussian(
        sensitivity=1.0,
        scale=noise_multiplier,
        count=count,
        unit="2 C_S / n, the replace-one change of a mean gradient on S",
        source="Maranjyan et al. 2024, Algorithm 1, line 7; Corollary D.5",
    )
    return Ledger((event,), given=_given(problem, options))


def _given(problem: Problem, options: Options) -> tuple[str, ...]:
    """Quantities read off the data without noise: M_j, and those behind the sets."""
    if options.sampling == "nice":
        return (SMOOTHNESS,) if options.size == 1 else (SMOOTHNESS, LIFTS)
    count = options.blocks or problem.p
    assumptions = [SMOOTHNESS]
    if count < problem.p:
        assumptions.append(LIFTS)
    if 1 < count < problem.p and options.partition == "smoothness":
        assumptions.append(PARTITION)
    if count > 1 and options.probabilities == "importance":
        assumptions.append(IMPORTANCE)
    return tuple(assumptions)


@njit(**KERNEL)
def _steps(
    A, order, noise, since, starts, members, norms, inverse, share, shape, psi,
    constants, tiles,
):  # fmt: skip
    """Algorithm 1, lines 4 to 8; moves reach the margins in the next step's sweep."""
    n, p = shape
    l1, l2, lower, upper = psi
    width = np.diff(starts).max()
    gradient = np.empty(width)
    moves = np.zeros(width)
    pull = np.empty(_TILE)
    drift = n + p
    averaged = tiles.shape[1] > n + p
    single_move = np.empty(1)
    for t in range(tiles.shape[0]):
        step = constants[t, 0, 0]
        clip = constants[t, 1, 0]
        scale = constants[t, 2, 0]
        W = tiles[t]
        V = tiles[t, p : n + p]
        used = 0
        start = 0
        end = 0  # noise used so far; members of the step before
        for k in range(order.shape[0]):
            s = order[k]
            low = starts[s]
            high = starts[s + 1]
            _clipped_gradient(
                A[0], members[start:end], members[low:high], moves, norms[s],
                clip * share[s], V.reshape(n), gradient, pull,
            )  # fmt: skip
            for u in range(high - low):
                j = members[low + u]
                gamma = step * inverse[j]
                old = W[j, 0]
                released = gradient[u] + scale * share[s] * noise[used]
                shrink = 1.0 / (1.0 + gamma * l2)
                new = prox(
                    old - gamma * released, gamma * l1, shrink, lower, upper
                )
                W[j, 0] = new
                moves[u] = new - old
                used += 1
                if averaged:  # iterates of the period so far lack this move
                    W[drift + j, 0] += (since + k) * (new - old)
            start = low
            end = high
        for u in range(end - start):
            single_move[0] = moves[u]
            moved(A, members[start + u], single_move, V)


@njit(**PASTED)
def _clipped_gradient(A, before, now, moves, norms, bound, v, gradient, pull):
    """Bring v up to date and write the mean clipped gradient on the set ``now``.

    A record's gradient on S is phi'(v_i) A_iS, so clipping it to norm C_S clips phi'
    to C_S / ||A_iS||.
    """
    n = v.shape[0]
    gradient[: now.shape[0]] = 0.0
    for start in range(0, n, _TILE):
        m = min(_TILE, n - start)
        margins = v[start : start + m]
        inverse = norms[start : start + m]
        for t in range(before.shape[0]):
            move = moves[t]
            column = A[start : start + m, before[t]]
            for i in range(m):
                margins[i] = fused(move, column[i], margins[i])
        for i in range(m):
            pull[i] = clamp(derivative(margins[i]), bound * inverse[i])
        for t in range(now.shape[0]):
            gradient[t] += dot(pull[:m], A[start : start + m, now[t]])
    for t in range(now.shape[0]):
        gradient[t] /= n


class Run(dp_cd.Run):
    """A batch of DP-SkGD, with the rows of DP-CD's.

    Single coordinates use DP-CD's kernel, so that the bits are the same.
    """

    def set_up(self, settings: BatchedSettings) -> None:
        """Prepare the sketch; refuse a penalty that the options do not admit."""
        if reason := refuses(self.options, self.problem.penalty.is_smooth):
            raise ValueError(f"problem {self.problem.name}: {reason}")
        self.sketch = _sketch(self.problem.known, self.options)
        self.options = dp_cd.Options("uniform", periods=self.options.periods)
        super().set_up(settings)
        if not self.sketch.single:
            self.kernel = _steps
            self.divisor = self.sketch.smoothness
        if self.sketch.nice:
            self.step_draws = self.problem.n
            self.draws = _NORMS

    def order(self, count: int) -> np.ndarray:
        """The next blocks, (count,); block j of p holds coordinate j."""
        return self.sketch.draw(self.streams.sampling, count)[0]

    def draw(self, count: int) -> tuple[Any, ...]:
        """Blocks and noise, steps of the period so far; the sets and their constants.

        Of the sets: members of each one, inverse norms, 1 / M_j and shares of C.
        """
        if self.sketch.single:
            return super().draw(count)
        order, sets = self.sketch.draw(self.streams.sampling, count)
        sizes = np.array([len(members) for members in sets])
        noise = self.noise(int(sizes[order].sum()))
        since = self.drawn - self.began
        starts = np.append(0, np.cumsum(sizes))
        members = np.concatenate(sets)
        steps = (starts, members, self.inverse_norms(sets), 1.0 / self.divisor)
        return order, noise, since, *steps, shares(self.M, sets)

    def inverse_norms(self, sets: Sequence[np.ndarray]) -> np.ndarray:
        """1 / ||A_iS|| of each record on each set, shape (sets, n)."""
        inverses = np.empty((len(sets), self.problem.n))
        with np.errstate(divide="ignore", over="ignore"):
            for s, members in enumerate(sets):
                rows = self.problem.A[:, members]
                squares = np.einsum("ij,ij->i", rows, rows)
                inverses[s] = 1.0 / lengths(rows, squares)
        return inverses
