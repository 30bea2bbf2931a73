"""Neighbouring data sets within what a function assumes of its data."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

Array = np.ndarray
Record = tuple[Array, float]

NORMS = {"l1": 1.0, "l2": 2.0, "linf": np.inf}
RELATIONS = ("replace", "add-remove")
LOUD = (1.0, 1e3)  # sizes of records where no bound is declared
HUGE = 1e200  # whose square overflows
FINITE = (1e308, -1e308, 1e-200, 5e-324)  # numbers that arithmetic trips over
NOT_FINITE = (np.nan, np.inf, -np.inf)
ALIKE, ALTERNATING = 1, 2  # of Domain._bases
COMPANIES = (  # sizes of features and of labels of those beside an extreme record
    (1.0, 1e3, ALTERNATING),
    (1.0, 1.0, ALTERNATING),
    (1e3, 1e3, ALTERNATING),
    (1.0, 1e3, ALIKE),
)
QUIET = 1e-3  # size of a small one, relative to the bound
SHOWN = 4  # features of a record that are printed


@dataclass(frozen=True)
class Data:
    """Features X (n, p) and labels y (n,)."""

    X: Array
    y: Array


@dataclass(frozen=True)
class Pair:
    """Neighbours, and in words what differs."""

    first: Data
    second: Data
    text: str

    @property
    def largest(self) -> float:
        """Size of the largest number; NaN if there is one."""
        parts = (self.first.X, self.first.y, self.second.X, self.second.y)
        return float(np.max([np.abs(part).max(initial=0.0) for part in parts]))

    @property
    def finite(self) -> bool:
        """Whether all numbers are."""
        return bool(np.isfinite(self.largest))


@dataclass(frozen=True)
class Domain:
    """What a function assumes of its data, and who is a neighbour."""

    #: n, p: records and features
    n: int = 8
    p: int = 2
    #: range of every feature; None if the function takes any number
    x: tuple[float, float] | None = None
    #: {"l1", "l2", "linf"}; norm that a record's features keep below the larger end of
    #: the range
    norm: str = "linf"
    #: range of the labels, or the labels themselves where there are just so many
    y: tuple[float, ...] | None = None
    labels: bool = False  #: whether ``y`` lists all labels
    relation: str = "replace"  #: {"replace", "add-remove"}

    def pairs(self, rng: Generator) -> list[Pair]:
        """Neighbours worth trying, each once, one of each kind of data in turn."""
        return self._in_turn((1.0,) if self.bounded else LOUD, rng)

    def extremes(self, rng: Generator) -> list[Pair]:
        """Neighbours of which one record is extreme where no bound is declared.

        Finite ones come first, then those of :data:`HUGE` numbers throughout, then
        records that hold NaN or infinity.
        """
        if self.bounded:
            return []
        pairs = []
        for base in self._companies(rng):
            own = base.X[0], float(base.y[0])
            for record in self._extreme_records():
                both = (own, record) if self.relation == "replace" else (record, own)
                pairs.append(self._pair(base, 0, *both))
        finite = [pair for pair in pairs if pair.finite]
        rest = [pair for pair in pairs if not pair.finite]
        huge = [pair for pair in self._in_turn((HUGE,), rng) if pair.largest > 1e6]
        return finite + huge + rest

    @property
    def bounded(self) -> bool:
        """Whether features and labels both are."""
        return self.x is not None and self.y is not None

    def _in_turn(self, sizes: tuple[float, ...], rng: Generator) -> list[Pair]:
        groups = [
            [
                self._pair(base, position, one, two)
                for position in sorted({0, self.n - 1})
                for one, two in self._exchanges(size, rng)
            ]
            for size in sizes
            for base in self._bases(size, rng)
        ]
        turns = itertools.chain.from_iterable(itertools.zip_longest(*groups))
        return list({_key(pair): pair for pair in turns if pair is not None}.values())

    def _pair(self, base: Data, at: int, one: Record, two: Record) -> Pair:
        """One record stands in D; another in its place, or none, in D'."""
        first, place = _put(base, at, one), f"record {at + 1} of {self.n}"
        if self.relation == "replace":
            text = f"{place}: {_record_text(two)} on D' in place of {_record_text(one)}"
            return Pair(first, _put(base, at, two), text)
        return Pair(
            first,
            Data(np.delete(first.X, at, axis=0), np.delete(first.y, at)),
            f"{place}: {_record_text(one)} not on D'",
        )

    def _exchanges(
        self, size: float, rng: Generator
    ) -> Iterator[tuple[Record, Record]]:
        loud, ends = self._loud(size), self._ends(size)
        zero = self._fit(np.zeros(self.p), size)
        for x, other in loud:
            for y in ends:
                yield (x, y), (other, y)
                yield (zero, y), (x, y)
                yield (x, y), (zero, y)
            yield (x, ends[-1]), (x, ends[0])
            yield (x, ends[0]), (other, ends[-1])
        yield (zero, ends[-1]), (zero, ends[0])
        yield (zero, ends[-1]), (self._fit(QUIET * loud[0][0], size), ends[-1])
        for _ in range(4):
            x, other = (self._random(size, rng) for _ in range(2))
            yield (x, float(rng.choice(ends))), (other, float(rng.choice(ends)))

    def _bases(self, size: float, rng: Generator) -> Iterator[Data]:
        """Zeros, duplicates, two opposite halves, random records."""
        ends, (high, low) = self._ends(size), self._loud(size)[0]
        alternating = np.arange(self.n) % 2
        zero = self._fit(np.zeros(self.p), size)
        middle = ends[0] if self.labels else 0.5 * (ends[0] + ends[-1])
        yield Data(np.tile(zero, (self.n, 1)), np.full(self.n, middle))
        yield Data(np.tile(high, (self.n, 1)), np.full(self.n, ends[-1]))
        yield Data(
            np.where(alternating[:, None], high, low),
            np.where(alternating, ends[-1], ends[0]),
        )
        X = np.array([self._random(size, rng) for _ in range(self.n)])
        yield Data(X, rng.choice(ends, self.n))

    def _companies(self, rng: Generator) -> Iterator[Data]:
        """Ordinary records, small and loud, alternating or alike, by an extreme one."""
        for x_size, y_size, kind in COMPANIES:
            X = list(self._bases(x_size, rng))[kind].X
            yield Data(X, list(self._bases(y_size, rng))[kind].y)

    # --- records ----------------------------------------------------------------------

    def _range(self, size: float) -> tuple[float, float]:
        return (-size, size) if self.x is None else self.x

    def _ends(self, size: float) -> tuple[float, ...]:
        return (-size, size) if self.y is None else self.y

    def _loud(self, size: float) -> list[tuple[Array, Array]]:
        """Records at the ends of the range, each with its opposite."""
        low, high = self._range(size)
        place = np.arange(self.p)
        kinds = (place >= 0, place % 2 == 0, place < self.p / 2, place < self.p - 1)
        signs = [np.where(kind, 1.0, -1.0) for kind in kinds]
        corners = [
            (np.where(s > 0, high, low), np.where(s > 0, low, high)) for s in signs
        ]
        middle = np.clip(0.0, low, high)
        for j in range(min(self.p, 4)):
            axis = np.arange(self.p) == j
            corners.append((np.where(axis, high, middle), np.where(axis, low, middle)))
        pairs = [(self._fit(a, size), self._fit(b, size)) for a, b in corners]
        keys = [a.tobytes() + b.tobytes() for a, b in pairs]
        return [pair for k, pair in enumerate(pairs) if keys[k] not in keys[:k]]

    def _extreme_records(self) -> Iterator[Record]:
        """Every feature with every label, where one of both is extreme."""
        plain, wild = [self._fit(np.zeros(self.p), 1.0), self._loud(1.0)[0][0]], []
        if self.x is None:
            signs = 1.0 - 2.0 * (np.arange(self.p) % 2)
            wild = [np.full(self.p, value) for value in FINITE + NOT_FINITE]
            wild += [value * signs for value in (FINITE[0], np.inf) if self.p > 1]
        ends, odd = self._ends(1.0), tuple[float, ...]()
        if self.y is None:
            ends, odd = (*ends, 0.0), FINITE + NOT_FINITE
        yield from itertools.product(wild, ends + odd)
        yield from itertools.product(plain, odd)

    def _random(self, size: float, rng: Generator) -> Array:
        low, high = self._range(size)
        return self._fit(low + (high - low) * rng.random(self.p), size)

    def _fit(self, x: Array, size: float) -> Array:
        """The record within the range and the norm."""
        low, high = self._range(size)
        x = np.clip(x, low, high)
        if self.x is None:
            return x
        length, bound = np.linalg.norm(x, NORMS[self.norm]), max(abs(low), abs(high))
        return x * min(1.0, bound / length) if length > 0 else x


def _record_text(record: Record) -> str:
    x = [f"{value:g}" for value in record[0][:SHOWN]]
    x += ["..."] if len(record[0]) > SHOWN else []
    return f"x = ({', '.join(x)}), y = {record[1]:g}"


def _put(data: Data, at: int, record: Record) -> Data:
    X, y = data.X.copy(), data.y.copy()
    X[at], y[at] = record
    return Data(X, y)


def _key(pair: Pair) -> bytes:
    parts = (pair.first.X, pair.first.y, pair.second.X, pair.second.y)
    return b"|".join(part.tobytes() for part in parts)
