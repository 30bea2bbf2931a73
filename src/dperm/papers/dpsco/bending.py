"""Losses that bend on coins: an instance whose least risk lies at the bend.

A record shows one coordinate's coin, e_j with a label of -1 or 1; the absolute loss and
the hinge are least, over a box of half width 2, at the signs of the means, where both
bend. Up to there they are linear, so that the rates of linear losses are a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dperm.core.experiment.plan import seed_of
from dperm.core.privacy.mechanisms import streams
from dperm.papers.dpsco import smoothed_sgd
from dperm.papers.dpsco.instances import biases
from dperm.solvers.streams import Part, Target
from dperm.solvers.streams.coins import Coins, hard
from dperm.solvers.streams.projecting import CompiledSetup

KIND = "one a record"
HALF_WIDTH = 2.0  # of the box that the ball of every p holds


def radius(p: float, d: int) -> float:
    """Of the l_p ball that has (2, ..., 2) on its sphere."""
    return HALF_WIDTH if math.isinf(p) else HALF_WIDTH * d ** (1 / p)


def released(
    loss: str,
    p: float,
    n: int,
    d: int,
    targets: Sequence[Target],
    seed: int,
    bias: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Means of the coins (d,) and the points of one run, (targets, d)."""
    means = hard(KIND, d, seed, bias).means
    setup = smoothed_sgd.setup_of(CompiledSetup, p, d, radius(p, d))
    noise = streams(seed_of(seed, "noise", loss, f"{p:g}", 0, 0))
    source = Coins(means, seed, single=True, labelled=True)
    options = smoothed_sgd.Options(loss)
    made = smoothed_sgd.Run([Part(setup, targets, noise)], source, n, options)
    return means, made.solve()[0]


def rows(
    loss: str, p: float, n: int, d: int, targets: Sequence[Target], seed: int
) -> list[dict[str, Any]]:
    """Excess risk at every bias and target; ``initial`` is that of w = 0."""
    found = []
    for bias in biases(KIND, n, d):
        means, weights = released(loss, p, n, d, targets, seed, bias)
        excess = smoothed_sgd.excess(loss, means, weights)
        start = smoothed_sgd.excess(loss, means, np.zeros(d))[0]
        found += [
            {"method": "smoothed_sgd", "loss": loss, "p": p,
             "epsilon": target.epsilon, "calibration": target.calibration,
             "instance": f"{loss} loss, one coin a record", "bias": bias,
             "excess": float(value), "initial": float(start)}
            for target, value in zip(targets, excess, strict=True)
        ]  # fmt: skip
    return found
