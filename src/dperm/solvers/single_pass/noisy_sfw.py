"""Noisy stochastic Frank-Wolfe over binary trees (Bassily, Guzmán, Nandi 2021, Alg. 1).

Phase t = 1, ..., T estimates the gradient at the root of a binary tree of depth t from
b records and walks the tree depth first. A left child copies its parent's estimate. A
right child at depth j adds, from b / 2^j fresh records, the change of the gradient
since its parent, with generalised Gaussian noise. Each of the 2^t leaves is a
Frank-Wolfe step. Every record is read once.

Line 8 prints DFS[2^t] where the text has DFS(t). A step is taken at every leaf, as the
sensitivity proof counts. Logarithms are base 2, as 2^T = sqrt(n) needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dperm.privacy.accountants import TIGHT
from dperm.privacy.events import Ledger, N
from dperm.privacy.mechanisms.generalised_gaussian import (
    GeneralisedGaussian,
    generalised_gaussian,
    noise_multiplier,
    regularity,
    smooth_order,
)
from dperm.solvers.options import one_of
from dperm.solvers.single_pass import Stream, Target, TargetNoise, silent
from dperm.solvers.single_pass.gradients import difference_sums, gradient_sums
from dperm.solvers.single_pass.setup import Setup

LEAST_RECORDS = 256
STEPS = ("sawtooth", "consecutive")
BATCHES = ("published", "all")


@dataclass(frozen=True)
class Options:
    """Choices that Algorithm 1 leaves open or prints in two ways."""

    #: {"sawtooth", "consecutive"}; 2 / (2^(t-1) + l + 1) at leaf l of phase t as
    #: printed, which rises again with every phase; or 2 / (m + 1) with m = 2^t - 1 + l,
    #: as the proof counts
    steps: str = "sawtooth"
    #: {"published", "all"}; b = 4 n / log2(n)^2, which reads about a third of the
    #: records; or the b that reads all of them
    batch: str = "published"

    def __post_init__(self) -> None:
        one_of("steps", self.steps, STEPS)
        one_of("batch", self.batch, BATCHES)


@dataclass(frozen=True)
class Tree:
    """Phases T and root batch b; b / 2^j is whole for every depth j <= T."""

    phases: int
    batch: int

    @property
    def records(self) -> int:
        """Records read: b sum_t (1 + t/2)."""
        T = self.phases
        return self.batch * T + self.batch * T * (T + 1) // 4


def tree(n: int, options: Options) -> Tree:
    """Phases and batch for n records (Theorem 5.2).

    Raises
    ------
    ValueError
        Below 256 records, where the batches would not fit.
    """
    if n < LEAST_RECORDS:
        raise ValueError(f"n: expected {LEAST_RECORDS} or more, found {n}")
    T = int(math.log2(n) // 2)
    share = 4 * n / math.log2(n) ** 2
    if options.batch == "all":
        share = n / (T + T * (T + 1) / 4)
    return Tree(T, max(2**T, int(share) // 2**T * 2**T))


def step(t: int, leaf: int, options: Options) -> float:
    """Step size at a leaf of phase t."""
    if options.steps == "sawtooth":
        return 2 / (2 ** (t - 1) + leaf + 1)
    return 2 / (2**t + leaf)


def root_sensitivity(setup: Setup, b: int) -> float:
    """Dual-norm sensitivity 2 L0 / b of a root's mean gradient."""
    return 2 * setup.lipschitz / b


def child_sensitivity(
    setup: Setup, b: int, t: int, depth: int, leaf: int, options: Options
) -> float:
    """Dual-norm sensitivity of a right child whose first leaf is ``leaf``.

    2 (2^depth / b) L1 times the distance that the iterate can have moved since the
    parent: M (1 - prod (1 - eta)) over the leaves below the left sibling.
    """
    first_leaf = leaf - 2 ** (t - depth)
    stay = _weight(t, first_leaf, options) / _weight(t, leaf, options)
    moved = setup.diameter * (1 - stay)
    return 2 * 2**depth / b * setup.smoothness * moved


def _weight(t: int, leaf: int, options: Options) -> int:
    """Leaf weights: prod (1 - eta) over leaves k to l - 1 is weight(k) / weight(l)."""
    step = (2 ** (t - 1) + 1 if options.steps == "sawtooth" else 2**t) + leaf
    return (step - 2) * (step - 1)


def printed_sensitivity(setup: Setup, b: int) -> float:
    """8 L1 M / b, which line 15 uses for every right child."""
    return 8 * setup.smoothness * setup.diameter / b


def noise(
    setup: Setup, n: int, target: Target, options: Options
) -> TargetNoise:
    """Noise scale over sensitivity; batches are disjoint: a record is in one release.

    Each release has noise in units of its own dual-norm sensitivity.
    """
    if math.isinf(target.epsilon):
        return silent()
    goal = (target.epsilon, target.delta, target.calibration)
    scale = noise_multiplier(setup.q, setup.d, *goal)
    event = GeneralisedGaussian(
        sensitivity=1.0,
        scale=scale,
        count=1,
        order=smooth_order(setup.q, setup.d),
        kappa=regularity(setup.q, setup.d),
        unit="dual-norm sensitivity of the release that reads the record",
        source="Bassily, Guzmán, Nandi 2021, Algorithm 1, lines 7 and 16",
    )
    return TargetNoise(Ledger((event,), given=(N,)), (scale,))


class Run(Stream):
    """All targets on one stream of records; ``tree`` says how many are read.

    Attributes
    ----------
    points, estimates : ndarray, shape (T + 1, L, d)
        Of the nodes on the path to the current leaf, by their depth: where the gradient
        was estimated, and its noisy estimate.
    """

    noise_of = staticmethod(noise)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tree = tree(self.n, self.options)
        self.order = smooth_order(self.setup.q, self.setup.d)
        self.tight = np.array([to.calibration == TIGHT for to in self.targets])
        shape = (self.tree.phases + 1, *self.x.shape)
        self.points = np.zeros(shape)
        self.estimates = np.zeros(shape)

    def releases(self) -> Iterator[np.ndarray]:
        """Yield the estimate of every node that reads records, before its first leaf.

        A leaf's path enters one such node. The estimate is passed down to the leaf.
        """
        for t in range(1, self.tree.phases + 1):
            for leaf in range(2**t):
                depth = _entered(t, leaf)
                estimate = self.estimate(t, depth, leaf)
                self.estimates[depth : t + 1] = estimate
                self.points[depth : t + 1] = self.x
                eta = min(1.0, step(t, leaf, self.options))
                self.x += eta * (self.setup.ball.oracle(estimate) - self.x)
                yield estimate.flatten()

    def estimate(self, t: int, depth: int, leaf: int) -> np.ndarray:
        """The noisy gradient at a node (L, d): a root's, or one changed from above."""
        count = self.tree.batch >> depth
        records = self.records(count)
        if depth == 0:
            gradient = self.sums(gradient_sums, records, self.x)
        else:
            before = self.points[depth - 1]
            gradient = self.sums(difference_sums, records, self.x, before)
        scale = self.noise_scale(t, depth, leaf)
        drawn = generalised_gaussian(
            self.streams.noise, self.order, (1, self.setup.d)
        )
        gradient = gradient / count + scale[:, None] * drawn
        return gradient + self.estimates[depth - 1] if depth else gradient

    def noise_scale(self, t: int, depth: int, leaf: int) -> np.ndarray:
        """Noise scale of each target at a node, shape (L,)."""
        setup = self.setup
        b = self.tree.batch
        multiplier = self.scales[:, 0]
        if depth == 0:
            return multiplier * root_sensitivity(setup, b)
        sound = child_sensitivity(setup, b, t, depth, leaf, self.options)
        printed = printed_sensitivity(setup, b)
        return multiplier * np.where(self.tight, sound, printed)


def _entered(t: int, leaf: int) -> int:
    """Depth of the record-reading node entered before a leaf; 0 is the root."""
    if leaf == 0:
        return 0
    return t - ((leaf & -leaf).bit_length() - 1)
