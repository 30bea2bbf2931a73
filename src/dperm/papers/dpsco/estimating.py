"""The error of the recursive gradient estimates beside Lemmas 5.3 and 6.2.

Both are Lemma 4.1 with the batches and the noise of an algorithm put in. They hold with
probability 1 - beta at all points of a walk at once, so that a run is summed up by the
largest ratio of error to bound. An estimate of 0 has the gradient itself for its error:
where that is below the bound too, the lemma says nothing there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dperm.core.erm.sets import norms
from dperm.papers.dpsco.instances import EASY, KINDS
from dperm.solvers.streams import Target, noisy_sfw, poly_sfw
from dperm.solvers.streams.coins import Coins, hard
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import Signs

BETA = 0.05
LOOKS = 2000  # points of PolySFW's walk that are looked at, about


class Seen(NamedTuple):
    """Estimates and gradients at a point of the walk, (L, d), and the bounds, (L,)."""

    estimate: np.ndarray
    gradient: np.ndarray
    bound: np.ndarray


def tree_bound(setup: Setup, b: int, t: int, target: Target) -> float:
    """Lemma 5.3 for all nodes of phase t, with probability 1 - ``BETA``."""
    kappa = min(setup.q - 1, 2 * math.e * math.log(setup.d))
    leading = math.sqrt(math.e * kappa) + math.sqrt(3 * math.log(2**t / BETA))
    L0, L1M = setup.lipschitz, setup.smoothness * setup.diameter
    noise = 0.0
    if math.isfinite(target.epsilon):
        unit = math.sqrt(kappa * setup.d * math.log(1 / target.delta))
        noise = (2 * L0 + 8 * L1M * t) * unit / (b * target.epsilon)
    return 2 * leading * ((L0 + L1M) / math.sqrt(b) + noise)


def walk_bound(setup: Setup, n: int, t: int) -> float:
    """Lemma 6.2 after t steps, K = 2d vertices, with probability 1 - ``BETA``."""
    vertices = poly_sfw.vertices_of(setup)
    eta = poly_sfw.step(n, vertices)
    leading = math.e * math.sqrt(2 * math.log(vertices))
    leading += math.sqrt(3 * math.log(n / BETA))
    L0, L1M = setup.lipschitz, setup.smoothness * setup.diameter
    first = math.sqrt(2) * (1 - eta) ** t * L0 / math.sqrt(n)
    return 2 * leading * (first + eta * math.sqrt(t) * (L1M + L0))


def gradient(source: Signs | Coins, W: np.ndarray, setup: Setup) -> np.ndarray:
    """Gradient of the population risk at each row of W (L, d), in closed form."""
    if isinstance(source, Coins):
        return np.broadcast_to(-source.mean(setup.q), W.shape)
    unit = source.optimum(setup)[0] ** (setup.p - 1)  # d^(-1/q), the radius being 1
    away = W - source.optimum(setup)
    square = source.mean**2
    common = square * away.sum(axis=1, keepdims=True)
    return unit**2 * ((1 - square) * away + common)


def known(
    solver: str, d: int, seed: int, bias: float
) -> list[tuple[str, str, Signs | Coins]]:
    """Instances of closed gradient, fresh: name, loss and source."""
    kind, name = KINDS[solver]
    return [
        (EASY, "least_squares", Signs(d, seed)),
        (name, "linear", hard(kind, d, seed, bias)),
    ]


def errors(run: Any, targets: list[Target]) -> list[dict[str, Any]]:
    """What ``summed`` says of a run of one part, which this runs."""
    (of,) = run.parts
    tree = isinstance(run, noisy_sfw.Run)
    walk = on_tree(run, targets, run.source) if tree else on_walk(run, run.source)
    return summed(walk, of.setup.q)


def on_tree(
    run: noisy_sfw.Run, targets: list[Target], source: Signs | Coins
) -> Iterator[Seen]:
    """The estimates at the leaves of NoisySFW's trees; runs the algorithm."""
    (of,) = run.parts
    leaves = (t for t in range(1, run.tree.phases + 1) for _ in range(2**t))
    for t, _ in zip(leaves, run.releases(), strict=True):
        bounds = [tree_bound(of.setup, run.tree.batch, t, to) for to in targets]
        at = of.points[t]
        yield Seen(of.estimates[t], gradient(source, at, of.setup), np.array(bounds))


def on_walk(run: poly_sfw.Run, source: Signs | Coins) -> Iterator[Seen]:
    """The estimates of PolySFW, at some of its steps; runs the algorithm."""
    (of,) = run.parts
    most = max(1, run.n // LOOKS)
    for k, _ in enumerate(run._blocks(most)):
        t = min(k * most, run.n - run.n // 2)
        before = (of.x - of.eta * of.vertices().reshape(of.x.shape)) / (1 - of.eta)
        bound = np.full(len(of.x), walk_bound(of.setup, run.n, t))
        yield Seen(of.d, gradient(source, before, of.setup), bound)


def summed(walk: Iterator[Seen], q: float) -> list[dict[str, Any]]:
    """Of each target the largest error over bound, and what an estimate of 0 has.

    ``bound`` is that at the point of the largest ratio, which ``error`` and ``start``
    are given in.
    """
    found: list[dict[str, Any]] = []
    for seen in walk:
        errors = norms(seen.estimate - seen.gradient, q) / seen.bound
        starts = norms(seen.gradient, q) / seen.bound
        found = found or [{"error": 0.0, "bound": 1.0, "start": 0.0} for _ in errors]
        for one, error, start, bound in zip(
            found, errors, starts, seen.bound, strict=True
        ):
            if error > one["error"]:
                one |= {"error": float(error), "bound": float(bound)}
            one["start"] = max(one["start"], float(start))
    return [
        one | {key: one[key] * one["bound"] for key in ("error", "start")}
        for one in found
    ]
