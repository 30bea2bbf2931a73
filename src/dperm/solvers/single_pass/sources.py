"""Sources of records for stochastic convex optimisation, and their risk.

Records come in batches from a *source*, so that no data set need fit into memory, and
serve every p at once: rows are stored without the factor that gives them unit l_q norm.

Biased coins are the hard instances: the minimiser of a linear loss depends only on the
direction of a mean, so that the excess risk grows with the difficulty of finding the
mean's signs. Which coins are hard depends on the norm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence

from dperm.numerics.compiled import KERNEL
from dperm.numerics.kernels import njit
from dperm.problems.cleaning import cleaned
from dperm.problems.sets import norms
from dperm.solvers.single_pass.setup import LABEL_BOUND, Setup

# Of hard coins, which have the bias.
BIASED_COINS = ("all", "one of them", "one a record")
FLIP = 26  # out of 256: chance that a coordinate's sign is not the record's
_WORD = 2.0**32
_TINY = 2.0**-1022  # below it the reciprocal of a number may be infinite
_ENTRIES = 1 << 19  # entries of a batch that are drawn at a time


class Batch(NamedTuple):
    """Records: rows (m, d) up to a factor, labels (m,)."""

    rows: np.ndarray
    labels: np.ndarray


class RecordSource(ABC):
    """A source of records, each of which is handed out once."""

    d: int

    @abstractmethod
    def take(self, count: int) -> Batch:
        """The next records; how they are cut into batches does not matter."""

    def factors(self, batch: Batch, q: float) -> np.ndarray:
        """Factors that give each row an l_q norm of at most 1; shape (m,).

        Here 1 / d^(1/q), for rows of signs.
        """
        return np.full(len(batch.rows), unit(self.d, q))


def chunks(count: int, d: int) -> list[int]:
    """Cut a number of records into batches of moderate size."""
    size = max(1, _ENTRIES // d)
    return [min(size, count - low) for low in range(0, count, size)]


class Signs(RecordSource):
    """Bounded design with a strong common direction, and labels of +-1.

    A record has d signs, divided by d^(1/q). Each is the record's fair sign, flipped
    with probability 26/256. With w0 = (R, ..., R) / d^(1/p) the score <x, w0> is R
    times the mean sign whatever p is, and P(y = 1) = (1 + <x, w0>) / 2. So one draw
    serves every p, |y - <x, w>| <= 1 + R, and the risk is known in closed form.

    Raises ValueError if the radius R is not in [0, 1].
    """

    def __init__(self, d: int, seed: int, radius: float = 1.0):
        if not 0 <= radius <= 1:
            raise ValueError(f"radius: expected 0 to 1, found {radius}")
        self.d = d
        self.radius = radius
        self.taken = 0
        self._words = SFC64(SeedSequence([seed, 1]))

    def take(self, count: int) -> Batch:
        """The next records."""
        self.taken += count
        drawn = self._words.random_raw(count * (1 + -(-self.d // 8)))
        words = drawn.reshape(count, -1)
        rows = np.empty((count, self.d), dtype=np.int8)
        labels = np.empty(count)
        draws = words[:, 1:].astype("<u8", copy=False)
        draws = np.ascontiguousarray(draws).view(np.uint8)
        _signs(words[:, 0], draws, self.radius, rows, labels)
        return Batch(rows, labels)

    @property
    def mean(self) -> float:
        """Mean of a sign times the record's own sign."""
        return 1 - 2 * FLIP / 256

    def optimum(self, setup: Setup) -> np.ndarray:
        """w0, on the sphere of radius R; shape (d,)."""
        return np.full(self.d, self.radius * unit(self.d, setup.p))

    def excess(self, W: np.ndarray, setup: Setup) -> np.ndarray:
        """Excess population risk of each row of W under least squares, exactly.

        Half of (w - w0)' S (w - w0) with S = d^(-2/q) ((1 - m^2) I + m^2 1 1').
        """
        away = np.atleast_2d(W) - self.optimum(setup)
        square = self.mean**2
        spread = (1 - square) * (away**2).sum(axis=1) + square * away.sum(
            axis=1
        ) ** 2
        return 0.5 * unit(self.d, setup.q) ** 2 * spread


class Coins(RecordSource):
    """Coins with known column means (d,) in [-1, 1].

    A record shows all columns, divided by d^(1/q). If ``single``, it shows one, drawn
    uniformly, and is zero elsewhere: it then has unit norm in every l_q.
    """

    def __init__(self, means: np.ndarray, seed: int, single: bool):
        self.means = means
        self.single = single
        self.d = len(means)
        self.taken = 0
        self._words = SFC64(SeedSequence([seed, 3]))
        self._below = np.round((1 + means) / 2 * _WORD).astype(np.uint64)

    def take(self, count: int) -> Batch:
        """The next records."""
        self.taken += count
        words_per_coin = 1 if self.single else -(-self.d // 2)
        words = self._words.random_raw(count * words_per_coin).astype(
            "<u8", copy=False
        )
        rows = np.zeros((count, self.d), dtype=np.int8)
        if self.single:
            _one(words, self._below, rows)
        else:
            _all(words.view("<u4").reshape(count, -1), self._below, rows)
        return Batch(rows, np.ones(count))

    def factors(self, batch: Batch, q: float) -> np.ndarray:
        """As for signs; 1 for records that show one column."""
        return (
            np.ones(len(batch.rows))
            if self.single
            else super().factors(batch, q)
        )

    def mean(self, q: float) -> np.ndarray:
        """Mean of record times label, records of unit l_q norm; shape (d,)."""
        return self.means * (1 / self.d if self.single else unit(self.d, q))

    def excess(self, W: np.ndarray, setup: Setup) -> np.ndarray:
        """R ||E z||_q - <E z, w> of each row of W, the linear loss's excess risk."""
        mean = self.mean(setup.q)
        return setup.radius * norms(mean, setup.q)[0] - np.atleast_2d(W) @ mean


def hard(biased: str, d: int, seed: int, bias: float) -> Coins:
    """Make a hard instance, with signs (and place) drawn from the seed.

    ``biased`` says which coins have the bias, which is in [0, 1]. They are "all": for
    1 < p < 2 every column; "one of them": for p = 1 one column, the others are fair, so
    that log d matters; and "one a record": from p = 2 on a record shows one column
    only, which takes d times as many records to learn.
    """
    rng = Generator(SFC64(SeedSequence([seed, 4])))
    direction = np.where(rng.random(d) < 0.5, -1.0, 1.0)
    if biased == "one of them":
        direction *= np.arange(d) == rng.integers(d)
    elif biased not in BIASED_COINS:
        raise ValueError(
            f"biased: expected one of {BIASED_COINS}, found {biased!r}"
        )
    return Coins(bias * direction, seed, single=biased == "one a record")


class Rows(RecordSource):
    """Records of arrays X (n, d), y (n,) in their order, each scaled to unit l_q norm.

    Labels are clipped to [-1, 1]. A record that is not finite counts as zeros.
    """

    def __init__(self, X: np.ndarray, y: np.ndarray):
        X, y = cleaned(np.ascontiguousarray(X), np.asarray(y))
        self.X = X
        self.y = np.clip(y, -LABEL_BOUND, LABEL_BOUND)
        self.d = X.shape[1]
        self.taken = 0

    def take(self, count: int) -> Batch:
        """The next records.

        Raises ValueError if fewer are left.
        """
        low = self.taken
        high = self.taken + count
        if high > len(self.y):
            raise ValueError(f"{len(self.y)} records, {high} asked for")
        self.taken = high
        return Batch(self.X[low:high], self.y[low:high])

    def factors(self, batch: Batch, q: float) -> np.ndarray:
        """One over each row's norm; 1 for rows of zeros, or nearly."""
        sizes = norms(batch.rows.astype(float), q)
        return 1.0 / np.where(sizes > _TINY, sizes, 1.0)


def unit(d: int, exponent: float) -> float:
    """d^(-1/exponent)."""
    return float(d ** (-1.0 / exponent))


@njit(**KERNEL)
def _signs(label_bits, draws, radius, rows, labels):
    """Write the signs (m, d) and labels (m,) of records from their random words."""
    for i in range(rows.shape[0]):
        d = rows.shape[1]
        sign = 1 if label_bits[i] & np.uint64(1) else -1
        total = 0
        for j in range(d):
            s = -sign if draws[i, j] < FLIP else sign
            rows[i, j] = s
            total += s
        uniform = np.float64(label_bits[i] >> np.uint64(11)) * 2.0**-53
        labels[i] = 1.0 if uniform < 0.5 * (1.0 + radius * total / d) else -1.0


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
