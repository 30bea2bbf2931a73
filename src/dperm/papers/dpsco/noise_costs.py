"""What the printed noise of every method costs, and the least that is sound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from dperm.accountants.generalised_gaussian import (
    noise_multiplier,
    proof_epsilon,
    regularity,
    smooth_order,
    strict_epsilon,
)
from dperm.accountants.intervals import epsilon_interval
from dperm.core.calibrations import OURS
from dperm.core.experiment.plan import seed_of
from dperm.core.privacy.ledger import N
from dperm.core.privacy.strict import gaussian_epsilon
from dperm.papers.dpsco.sampled_cost import Draws, least_epsilon
from dperm.solvers.streams import Target, phased_sgd, poly_sfw
from dperm.solvers.streams.setup import Setup

Row = dict[str, Any]
NORMS = (1.0, 1.25, 1.5, 2.0)  # of Algorithm 1
DIMENSION = 64


def costs(n: int, epsilon: float, seed: int) -> Iterator[Row]:
    """A row for every method and norm; delta is 1 / n^2.

    ``epsilon_of_the_proof`` is what the paper's argument gives for its noise,
    ``true_epsilon`` what a sound accountant does, ``epsilon_low`` what is proved from
    below; 0 where nothing is. ``true_epsilon_low`` and ``_high`` are an interval of the
    true cost, its lower end by sampling where nothing is proved.
    """
    yield from _tree(n, epsilon, seed)
    yield _poly(n, epsilon)
    yield _phased(n, epsilon)


def _row(
    name: str,
    p: float,
    n: int,
    epsilon: float,
    proved: float,
    true: float,
    low: float,
    ratio: float,
    sampled: float | None = None,
) -> Row:
    return {
        "algorithm": name, "p": p, "n": n, "target_epsilon": epsilon,
        "epsilon_of_the_proof": proved, "true_epsilon": true,
        "true_epsilon_low": low if sampled is None else sampled,
        "true_epsilon_high": true,
        "epsilon_low": low, "given": N, "strict_over_published_noise": ratio,
    }  # fmt: skip


def _tree(n: int, epsilon: float, seed: int, d: int = DIMENSION) -> Iterator[Row]:
    """Algorithm 1, root and right children; exact for p = 2, proved for the others."""
    delta = n**-2.0
    for p in NORMS:
        setup = Setup("least_squares", p, d)
        paper, strict = (
            noise_multiplier(setup.q, d, epsilon, delta, kind) for kind in OURS
        )
        kappa, order = regularity(setup.q, d), smooth_order(setup.q, d)
        true = strict_epsilon(order, kappa, paper, delta)
        proved = proof_epsilon(kappa, paper, delta)
        low = true if order == 2 else 0.0  # otherwise no attained pair is known
        sampled = None
        if order > 2:
            draws = Draws.of(order, d, seed_of(seed, "noise", "dpsco", f"{p:g}", 0, 0))
            sampled = least_epsilon(draws, setup.q, paper, delta)
        found = (proved, true, low, strict / paper, sampled)
        yield _row("noisy_sfw", p, n, epsilon, *found)


def _poly(n: int, epsilon: float, d: int = DIMENSION) -> Row:
    """Algorithm 2: as composed in the paper, and for the costliest record."""
    setup, delta = Setup("least_squares", 1.0, d), n**-2.0
    paper, strict = (
        poly_sfw.noise(setup, n, Target(epsilon, delta, kind), poly_sfw.Options())
        for kind in OURS
    )
    proved = epsilon + epsilon**2 / (2 * math.log(1 / delta))
    low, true = epsilon_interval(paper.ledger, delta)
    ratio = strict.scales[1] / paper.scales[1]
    return _row("poly_sfw", 1.0, n, epsilon, proved, true, low, ratio)


def _phased(n: int, epsilon: float) -> Row:
    setup, delta = Setup("linear", 2.0, 1), n**-2.0
    paper, strict = (
        phased_sgd.noise(setup, n, Target(epsilon, delta, kind), phased_sgd.Options())
        for kind in OURS
    )
    true = gaussian_epsilon(1 / paper.scales[0], delta)
    ratio = strict.scales[0] / paper.scales[0]
    return _row("phased_sgd", 2.0, n, epsilon, epsilon, true, true, ratio)
