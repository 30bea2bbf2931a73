"""What the rungs audit: a solver on small, loud data, as a function of its noise.

``Subject.run`` takes records and, if wanted, the noise to use, and returns what becomes
known after each step. Constants that the papers take as public (smoothness, bounds,
partitions) are those of the first data set for all its neighbours.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator

from dperm.audit.taps import Draw
from dperm.privacy.accounting import epsilon, true_epsilon
from dperm.privacy.ledger import Ledger
from dperm.privacy.noisy_max import NoisyMax

Array = np.ndarray

LOUD = 1e3  # entries of an adversarial record: far beyond every clipping threshold
DELTA = 1 / 64


@dataclass(frozen=True)
class Records:
    """Data of a subject: X (n, p), labels y (n,) of +-1."""

    X: Array
    y: Array

    def replaced(self, i: int, x: Array, label: float) -> Records:
        """The neighbour whose record i is another one."""
        X, y = self.X.copy(), self.y.copy()
        X[i], y[i] = x, label
        return Records(X, y)


@dataclass(frozen=True)
class Transcript:
    """One run.

    Attributes
    ----------
    views : list of ndarray
        What is known after each step.
    draws : list of Draw
        All noise, in the order it was drawn.
    ends : list of int
        How many draws were made before the first step, and after each.
    weights : ndarray
        What is published at the end.
    """

    views: list[Array]
    draws: list[Draw]
    ends: list[int]
    weights: Array

    def draws_of(self, t: int) -> list[int]:
        """Places of the draws of step t."""
        return list(range(self.ends[t], self.ends[t + 1]))


class Subject(ABC):
    """A solver at one setting.

    Attributes
    ----------
    name, calibration : str
    ledger : Ledger
        What it states.
    delta : float
    base : Records
    positions : tuple of int
        Records worth replacing.
    hidden : bool
        Whether a step reads a secret random record.
    cost : int
        By how much fewer runs are made of it, because they are slow.
    loud : Subject or None
        The same with little noise and few steps, in which one step is easy to see.
    """

    name: str
    calibration: str
    ledger: Ledger
    delta: float
    base: Records
    positions: tuple[int, ...] = (0,)
    hidden = False
    cost = 1
    loud: Subject | None = None

    @abstractmethod
    def run(
        self,
        data: Records,
        seed: int,
        script: Sequence[Draw] = (),
        taken: Sequence[int] | None = None,
        until: int | None = None,
    ) -> Transcript:
        """Run on the data; noise from the seed, or from the script as far as it goes.

        ``taken`` says which record each step reads, where that is random; step
        ``until`` is the last one taken, if given.
        """

    @cached_property
    def claimed_epsilon(self) -> float:
        """What the calibration's own accountant makes of the ledger."""
        return epsilon(self.ledger, self.delta, self.calibration)

    @cached_property
    def true_epsilon(self) -> float:
        """What a sound accountant makes of the ledger."""
        return true_epsilon(self.ledger, self.delta)

    @property
    def selects(self) -> bool:
        """Whether it releases selections."""
        return any(isinstance(event, NoisyMax) for event in self.ledger.events)

    def symbol(self, view: Array) -> tuple[int, ...]:
        """What a step selected, by its view."""
        return tuple(view.tolist())


def loud_records(
    base: Records, rng: Generator, random: int = 6
) -> list[tuple[Array, float]]:
    """Records that push a clipped gradient to its ends, and random ones.

    The first is like the base's own records, but louder: with its opposite it makes the
    worst pair where a step reads a random record.
    """
    p = base.X.shape[1]
    like = LOUD * base.X[0] / np.abs(base.X[0]).max()
    axes = [s * LOUD * np.eye(p)[j] for j in range(min(p, 4)) for s in (1.0, -1.0)]
    signs = [LOUD * np.array(s) for s in _corners(p)]
    drawn = [10.0 ** rng.uniform(-2, 3) * rng.standard_normal(p) for _ in range(random)]
    found = [(x, 1.0) for x in (like, *axes, *signs, *drawn, np.zeros(p))]
    return found + [(x, -1.0) for x in drawn]


def _corners(p: int) -> list[tuple[float, ...]]:
    """Sixteen corners of the cube at most, the all-positive one first."""
    return list(itertools.islice(itertools.product((1.0, -1.0), repeat=p), 16))
