"""The kernels of single-pass solvers beside C: least squares on rows of signs.

Noise is drawn before: once in a batch of records, except for PolySFW, which draws for
every vertex.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.reference import call
from bench.shared import Begin, Call, Case
from dperm.solvers.single_pass import gradients, phased_sgd, poly_sfw
from dperm.solvers.single_pass.setup import Setup
from dperm.solvers.single_pass.sources import Signs

BATCHES = ((64, 20_000), (256, 5000), (1024, 1000), (4096, 300))  # d, records
BOUND = 0.9  # on slopes; without one that is so small none would be clipped
BALLS = {2.0: "Euclidean ball", np.inf: "box"}


def cases() -> Iterator[Case]:
    """Every kernel, at four dimensions."""
    for d, count in BATCHES:
        setup = Setup("least_squares", 1.0, d)
        arguments = (setup, count)
        name = f"signs, d {d}"
        yield Case("poly_sfw", "vertices", name, count, *vertices(*arguments))
        solvers = "noisy_sfw, sco_dp_fw, sco_dp_sgd, sco_mirror_descent"
        yield Case(
            solvers, "gradients", name, count, *gradient_sums(*arguments)
        )
        yield Case(
            "noisy_sfw", "differences", name, count, *differences(*arguments)
        )
        for p, ball in BALLS.items():
            pair = walks(Setup("least_squares", p, d), count)
            yield Case("phased_sgd", ball, name, count, *pair)


def records_of(setup: Setup, count: int) -> tuple[np.ndarray, ...]:
    """Rows of signs, labels, and factors that give the rows unit dual norm."""
    source = Signs(setup.d, seed=0)
    batch = source.take(count)
    return (*batch, source.factors(batch, setup.q))


def vertices(setup: Setup, count: int) -> tuple[Begin, Begin]:
    """Steps of PolySFW over the l_1 ball, of one target."""
    d = setup.d
    rows, labels, factors = records_of(setup, count)
    assert (factors == 1.0).all()  # as the reference takes them
    noise = np.random.default_rng(0).laplace(size=(count, 2 * d))
    kernel = setup.compiled(poly_sfw._steps)
    scale = 1e-3
    eta = 1e-3

    def ours() -> Call:
        x = np.zeros((1, d))
        gradient = np.zeros((1, d))
        vertex = np.zeros(1, dtype=np.int64)

        def steps() -> np.ndarray:
            records = (rows, labels, factors, BOUND, noise)
            kernel(
                *records,
                np.full(1, scale),
                eta,
                setup.radius,
                x,
                gradient,
                vertex,
            )
            return x

        return steps

    def theirs() -> Call:
        x = np.zeros(d)
        gradient = np.zeros(d)

        def steps() -> np.ndarray:
            constants = (scale, eta, setup.radius)
            records = (rows, labels, BOUND, noise)
            call("poly_sfw", *records, *constants, x, gradient, count, d)
            return x

        return steps

    return ours, theirs


def gradient_sums(setup: Setup, count: int) -> tuple[Begin, Begin]:
    """Sums of clipped gradients at a point."""
    w = _point(setup, 0)
    return _sums(gradients.gradient_sums, setup, count, (w[None],), (w, w))


def differences(setup: Setup, count: int) -> tuple[Begin, Begin]:
    """Sums of clipped gradients at a point less those at another."""
    w = _point(setup, 0)
    before = _point(setup, 1)
    points = (w[None], before[None])
    return _sums(gradients.difference_sums, setup, count, points, (w, before))


def _point(setup: Setup, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(setup.d) / np.sqrt(
        setup.d
    )


def _sums(
    kernel: Any,
    setup: Setup,
    count: int,
    ours_at: tuple[np.ndarray, ...],
    theirs_at: tuple[np.ndarray, ...],
) -> tuple[Begin, Begin]:
    """A kernel of sums of gradients; points are (1, d) each of ours, (d,) each of C."""
    records = (*records_of(setup, count), BOUND)
    compiled = setup.compiled(kernel)

    def ours() -> Call:
        total = np.zeros((1, setup.d))

        def steps() -> np.ndarray:
            compiled(*records, *ours_at, total)
            return total

        return steps

    def theirs() -> Call:
        total = np.zeros(setup.d)

        def steps() -> np.ndarray:
            call("gradient_sum", *records, *theirs_at, total, count, setup.d)
            return total

        return steps

    return ours, theirs


def walks(setup: Setup, count: int) -> tuple[Begin, Begin]:
    """Projected steps of phased SGD; the sum of its iterates."""
    d = setup.d
    records = (*records_of(setup, count), BOUND)
    is_box = np.isinf(setup.p)
    shape = phased_sgd._BOX if is_box else phased_sgd._L2
    kernel = setup.compiled(phased_sgd._steps)
    eta = 0.05

    def ours() -> Call:
        x = np.zeros(d)
        total = np.zeros(d)

        def steps() -> np.ndarray:
            kernel(*records, shape, setup.p, setup.radius, eta, 0, x, total)
            return total

        return steps

    def theirs() -> Call:
        x = np.zeros(d)
        total = np.zeros(d)

        def steps() -> np.ndarray:
            call(
                "phased_sgd",
                *records,
                is_box,
                setup.radius,
                eta,
                x,
                total,
                count,
                d,
            )
            return total

        return steps

    return ours, theirs
