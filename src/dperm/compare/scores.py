"""What a private choice draws: its runs, and a noisy score of each.

A choice makes a logarithmic number of runs with settings drawn from a grid. Each
releases its weights and its clipped loss with noise; the run with the least noisy loss
is published (``accountants.private_choice``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple, TypeVar

import numpy as np

from dperm.accountants.private_choice import drawn_runs
from dperm.compare.methods import Contestant, Setting
from dperm.compare.metrics import clipped_loss, loss_bound
from dperm.core.privacy.calibration import smallest
from dperm.core.privacy.ledger import Gaussian
from dperm.core.privacy.mechanisms import gaussian, streams
from dperm.core.privacy.strict import gaussian_epsilon

SCORE = 0.2  # share of the target's mu with which a score is released
INNER = 0.6  # share of a choice's epsilon that one run has, roughly
T = TypeVar("T")


class Job(NamedTuple):
    """One run: its setting, noise and seed."""

    setting: Setting
    noise_multiplier: float
    seed: int


class Drawn(NamedTuple):
    """A run of a private choice."""

    choice: int  #: index of its setting
    job: Job
    scored: int  #: seed of the score's noise, independent of the run's other draws


def draws(rng: np.random.Generator, able: Sequence[T]) -> Iterator[tuple[T, int, int]]:
    """The runs of a private choice: an element, and seeds of the run and its score."""
    for _ in range(drawn_runs(rng)):
        one = able[int(rng.integers(len(able)))]
        own, scored = (int(seed) for seed in rng.integers(2**62, size=2))
        yield one, own, scored


@cache
def score_event(epsilon: float, delta: float) -> Gaussian:
    """The release of a score, in units of its sensitivity."""
    unit = "b / n, the replace-one change of a mean of losses in [0, b]"
    noise = smallest(lambda z: gaussian_epsilon(1 / z, delta), epsilon, 1e-6)
    return Gaussian(1.0, noise / SCORE, 1, unit, "a private choice's score")


def scored(on: Contestant, drawn: Drawn, epsilon: float) -> tuple[float, np.ndarray]:
    """The noisy loss of one run of a choice within epsilon, and its weights (p,)."""
    problem, w = on.problem, on.weights(*drawn.job)
    most = loss_bound(problem)
    scale = score_event(epsilon, problem.delta).scale * most / problem.n
    noise = gaussian(streams(drawn.scored).noise, ())
    return float(clipped_loss(problem, most, w[None])[0] + scale * noise), w
