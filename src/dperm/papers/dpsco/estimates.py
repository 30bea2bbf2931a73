"""Errors of gradient estimates over a run, with the bounds of Lemmas 5.3 and 6.2.

Both are Lemma 4.1 for the batches and the noise of an algorithm. They hold with
probability 1 - beta at all points of a walk at once, so that a run is summarised by
the largest ratio of error to bound. An estimate of 0 has the gradient itself as its
error; where that is below the bound too, the lemma is vacuous.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dperm.problems.sets import norms
from dperm.solvers.single_pass import Target, noisy_sfw, poly_sfw
from dperm.solvers.single_pass.setup import Setup
from dperm.solvers.single_pass.sources import Coins, Signs

BETA = 0.05
EXAMINED_POINTS = 2000  # of PolySFW's walk, approximately


class WalkPoint(NamedTuple):
    """Estimates and gradients at a point of the walk, (L, d), and the bounds, (L,)."""

    estimate: np.ndarray
    gradient: np.ndarray
    bound: np.ndarray


def tree_bound(setup: Setup, b: int, t: int, target: Target) -> float:
    """Lemma 5.3 for all nodes of phase t, with probability 1 - ``BETA``."""
    kappa = min(setup.q - 1, 2 * math.e * math.log(setup.d))
    leading = math.sqrt(math.e * kappa) + math.sqrt(3 * math.log(2**t / BETA))
    L0 = setup.lipschitz
    L1M = setup.smoothness * setup.diameter
    noise = 0.0
    if math.isfinite(target.epsilon):
        unit = math.sqrt(kappa * setup.d * math.log(1 / target.delta))
        noise = (2 * L0 + 8 * L1M * t) * unit / (b * target.epsilon)
    return 2 * leading * ((L0 + L1M) / math.sqrt(b) + noise)


def walk_bound(setup: Setup, n: int, t: int) -> float:
    """Lemma 6.2 after t steps, K = 2d vertices, with probability 1 - ``BETA``."""
    vertices = 2 * setup.d
    eta = poly_sfw.step(n, vertices)
    leading = math.e * math.sqrt(2 * math.log(vertices))
    leading += math.sqrt(3 * math.log(n / BETA))
    L0 = setup.lipschitz
    L1M = setup.smoothness * setup.diameter
    initial_error = math.sqrt(2) * (1 - eta) ** t * L0 / math.sqrt(n)
    return 2 * leading * (initial_error + eta * math.sqrt(t) * (L1M + L0))


def gradient(source: Signs | Coins, W: np.ndarray, setup: Setup) -> np.ndarray:
    """Gradient of the population risk at each row of W (L, d), in closed form."""
    if isinstance(source, Coins):
        return np.broadcast_to(-source.mean(setup.q), W.shape)
    # d^(-1/q), the radius being 1
    unit = source.optimum(setup)[0] ** (setup.p - 1)
    away = W - source.optimum(setup)
    square = source.mean**2
    common = square * away.sum(axis=1, keepdims=True)
    return unit**2 * ((1 - square) * away + common)


def errors(run: Any, targets: list[Target]) -> list[dict[str, Any]]:
    """Execute a run, and return its errors as ``summed``."""
    tree = isinstance(run, noisy_sfw.Run)
    walk = (
        on_tree(run, targets, run.source) if tree else on_walk(run, run.source)
    )
    return summed(walk, run.setup.q)


def on_tree(
    run: noisy_sfw.Run, targets: list[Target], source: Signs | Coins
) -> Iterator[WalkPoint]:
    """Run NoisySFW, and yield its estimates at the leaves of the trees."""
    leaves = (t for t in range(1, run.tree.phases + 1) for _ in range(2**t))
    for t, _ in zip(leaves, run.releases(), strict=True):
        bounds = [
            tree_bound(run.setup, run.tree.batch, t, to) for to in targets
        ]
        point = run.points[t]
        yield WalkPoint(
            run.estimates[t],
            gradient(source, point, run.setup),
            np.array(bounds),
        )


def on_walk(run: poly_sfw.Run, source: Signs | Coins) -> Iterator[WalkPoint]:
    """Run PolySFW, and yield its estimates at some of the steps."""
    block_steps = max(1, run.n // EXAMINED_POINTS)
    for k, _ in enumerate(run.blocks(block_steps)):
        t = min(k * block_steps, run.n - run.n // 2)
        before = (run.x - run.eta * run.vertices()) / (1 - run.eta)
        bound = np.full(len(run.x), walk_bound(run.setup, run.n, t))
        yield WalkPoint(run.d, gradient(source, before, run.setup), bound)


def summed(walk: Iterator[WalkPoint], q: float) -> list[dict[str, Any]]:
    """Largest ratio of error to bound of each target, and that of an estimate of 0.

    ``bound`` is that at the point of the largest ratio; ``error`` and ``start`` are the
    ratios times this bound.
    """
    error, start, bound = (np.zeros(0) for _ in range(3))
    for seen in walk:
        ratio = norms(seen.estimate - seen.gradient, q) / seen.bound
        zero = norms(seen.gradient, q) / seen.bound
        if not len(error):
            error = 0 * ratio
            start = 0 * ratio
            bound = np.ones(len(ratio))
        bound = np.where(ratio > error, seen.bound, bound)
        error = np.fmax(error, ratio)
        start = np.fmax(start, zero)
    return [
        {
            "error": float(worst * target_bound),
            "bound": float(target_bound),
            "start": float(zero * target_bound),
        }
        for worst, zero, target_bound in zip(error, start, bound, strict=True)
    ]
