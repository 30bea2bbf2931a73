"""Records that are biased coins: the hard instances of stochastic convex optimisation.

The minimiser of a linear loss depends only on the direction of a mean, so that the
excess risk grows with the difficulty of finding the mean's signs. Which coins are hard
depends on the norm; ``hard`` makes the three kinds that lower bounds use.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.random import SFC64, Generator, SeedSequence

from dperm.core.compiled import KERNEL
from dperm.core.erm.sets import norms
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import Batch, Source, unit

_WORD = 2.0**32
KINDS = ("all", "one of them", "one a record")


class Coins(Source):
    """Coins with known column means; a record shows all columns, or one at random.

    Parameters
    ----------
    means : ndarray (d,)
        Mean of each column's coin, in [-1, 1].
    single : bool
        Whether a record shows one column, drawn uniformly, and is zero elsewhere; it
        then has unit norm in every l_q. Otherwise it shows all, divided by d^(1/q).
    """

    def __init__(self, means: np.ndarray, seed: int, single: bool):
        self.means, self.single = means, single
        self.d, self.taken = len(means), 0
        self._words = SFC64(SeedSequence([seed, 3]))
        self._below = np.round((1 + means) / 2 * _WORD).astype(np.uint64)

    def take(self, count: int) -> Batch:
        """The next records."""
        self.taken += count
        each = 1 if self.single else -(-self.d // 2)
        words = self._words.random_raw(count * each).astype("<u8", copy=False)
        rows = np.zeros((count, self.d), dtype=np.int8)
        if self.single:
            _one(words, self._below, rows)
        else:
            _all(words.view("<u4").reshape(count, -1), self._below, rows)
        return Batch(rows, np.ones(count))

    def factors(self, batch: Batch, q: float) -> np.ndarray:
        """As for signs; 1 for records that show one column."""
        return np.ones(len(batch.rows)) if self.single else super().factors(batch, q)

    def mean(self, q: float) -> np.ndarray:
        """Mean of record times label, records of unit l_q norm; shape (d,)."""
        return self.means * (1 / self.d if self.single else unit(self.d, q))

    def excess(self, W: np.ndarray, setup: Setup) -> np.ndarray:
        """R ||E z||_q - <E z, w> of each row of W, the linear loss's excess risk."""
        mean = self.mean(setup.q)
        return setup.radius * norms(mean, setup.q)[0] - np.atleast_2d(W) @ mean


def hard(kind: str, d: int, seed: int, bias: float) -> Coins:
    """Make a hard instance, with signs (and place) drawn from the seed.

    Parameters
    ----------
    kind : {"all", "one of them", "one a record"}
        For 1 < p < 2 every column has the bias. For p = 1 one column has one, the
        others are fair, so that log d matters. From p = 2 on a record shows one column
        only, which takes d times as many records to learn.
    bias : float
        In [0, 1].
    """
    rng = Generator(SFC64(SeedSequence([seed, 4])))
    direction = np.where(rng.random(d) < 0.5, -1.0, 1.0)
    if kind == "one of them":
        direction *= np.arange(d) == rng.integers(d)
    elif kind not in KINDS:
        raise ValueError(f"kind: expected one of {KINDS}, found {kind!r}")
    return Coins(bias * direction, seed, single=kind == "one a record")


@njit(**KERNEL)
def _all(words, below, rows):
    """Write a coin of every column: 1 where its word is small, else -1."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            rows[i, j] = 1 if words[i, j] < below[j] else -1


@njit(**KERNEL)
def _one(words, below, rows):
    """Write one coin of a column that the word's upper half has drawn."""
    d = np.uint64(rows.shape[1])
    for i in range(rows.shape[0]):
        j = np.int64(((words[i] >> np.uint64(32)) * d) >> np.uint64(32))
        rows[i, j] = 1 if (words[i] & np.uint64(0xFFFFFFFF)) < below[j] else -1
