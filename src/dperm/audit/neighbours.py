"""Neighbours worth trying: influential records, among others where they matter most.

Where a step reads a random record, all other records equal the second one of a pair.
Where a step selects, the other records decide how far apart the candidates lie.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from dperm.audit.subjects import LOUD, Array, Records, Subject

QUIET = 0.3  # size of a record that is clipped, but changes no bound on the data
CROWDS = 12  # pairs in a crowd, where steps read a random record
GAPS = (0.0, 0.5, 0.75, 0.25)  # distances of candidates, relative to the largest
ODD = (np.nan, np.inf, -np.inf, 1e308, -1e308, 3e-162, 1e-200, 5e-324, 0.0)
HUGE_LABEL, QUIET_LABEL = 1e16, 0.01  # rounding loses the second in a sum of both

Record = tuple[Array, float]


@dataclass(frozen=True)
class Pair:
    """Neighbours, and the record they differ in."""

    first: Records
    second: Records
    position: int

    @property
    def reverse(self) -> Pair:
        """The other direction."""
        return Pair(self.second, self.first, self.position)


def loud_records(subject: Subject, rng: Generator, random: int = 6) -> list[Record]:
    """Records that push a clipped gradient to its ends, random records, and zero."""
    base, p = subject.base, subject.base.X.shape[1]
    like = LOUD * base.X[0] / np.abs(base.X[0]).max()
    axes = [s * LOUD * np.eye(p)[j] for j in range(min(p, 4)) for s in (1.0, -1.0)]
    signs = [LOUD * corner for corner in corners(p)]
    at_random = [
        10.0 ** rng.uniform(-2, 3) * rng.standard_normal(p) for _ in range(random)
    ]
    records = [(x, 1.0) for x in (*signs, like, *axes, *at_random, np.zeros(p))]
    records += [(x, -1.0) for x in at_random]
    if subject.real:
        records += [(x / LOUD, s * LOUD) for x in signs[:2] for s in (1.0, -1.0)]
    return [(_within(subject, x), y) for x, y in records]


def corners(p: int, most: int = 16) -> list[Array]:
    """Corners of the cube, the all-positive one first; all of them if p <= 4."""
    if p <= 4:
        return [np.array(s) for s in itertools.product((1.0, -1.0), repeat=p)]
    flipped = [np.where(np.arange(p) < k, -1.0, 1.0) for k in range(min(p, most))]
    return flipped


def _within(subject: Subject, x: Array) -> Array:
    return x if subject.bound is None else np.clip(x, -subject.bound, subject.bound)


def pairs(subject: Subject, seed: int, count: int) -> Iterator[Pair]:
    """The given number of pairs, the worst known ones first, each in one direction.

    A few thinned ones follow, which reveal a mean that leaves out records.
    """
    rng = np.random.default_rng([seed, 2])
    pool = loud_records(subject, rng)
    kinds = [_opposites(subject, pool), _any_two(subject, pool, rng)]
    if subject.real:
        kinds.insert(0, _beyond(subject))
    if subject.selects:
        apart = _apart(subject)
        kinds = [apart, apart, *kinds]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*kinds))
    known: Iterator[Pair | None] = itertools.chain(
        _tried(subject), _plainest(subject), turns
    )
    if subject.hidden:
        crowded = _crowded(subject, pool)
        known = itertools.chain(itertools.islice(crowded, CROWDS), known)
    tried = itertools.islice((pair for pair in known if pair is not None), count)
    return itertools.chain(tried, _thinned(subject))


def odd_pairs(subject: Subject) -> Iterator[Pair]:
    """Records whose sums or squares are not finite or underflow, and an ordinary one.

    Where labels are numbers they are odd too: in turn, and huge next to tiny records.
    """
    at, p = subject.positions[0], subject.base.X.shape[1]
    turns = np.where(np.arange(p) % 2, -1.0, 1.0)  # sums are infinity less infinity
    some = [(x, 1.0) for x in ODD]
    if subject.real:
        some += [(x, y) for x, y in zip(ODD, ODD[::-1], strict=True)]
        some += [(x, y) for x in ODD[-4:] for y in ODD[3:5]]
    for x, y in some:
        record = (_within(subject, x * turns), y)
        yield _pair(subject.base, at, record, (subject.base.X[at], 1.0))


def _pair(others: Records, at: int, one: Record, two: Record) -> Pair:
    return Pair(others.replaced(at, *one), others.replaced(at, *two), at)


def _tried(subject: Subject) -> Iterator[Pair]:
    for one, two in subject.tried:
        for at in subject.positions:
            yield _pair(subject.base, at, (one, 1.0), (two, 1.0))


def _plainest(subject: Subject) -> Iterator[Pair]:
    """In every position: a corner and an axis, each against its opposite.

    The corner is also set against itself with one sign changed, and a weak record.
    """
    p = subject.base.X.shape[1]
    corner, axis = np.ones(p), np.eye(p)[0]
    turned = np.where(np.arange(p) == 0, -1.0, 1.0)
    quiet = -QUIET / LOUD * corner
    both = ((corner, -corner), (corner, quiet), (corner, turned), (axis, -axis))
    for one, two in both:
        for at in subject.positions:
            records = ((_within(subject, LOUD * x), 1.0) for x in (one, two))
            yield _pair(subject.base, at, *records)


def _thinned(subject: Subject) -> Iterator[Pair]:
    """An influential record where half of the others are zero, but must be counted."""
    X = subject.base.X.copy()
    X[::2] = 0.0
    x = _within(subject, LOUD * np.ones(X.shape[1]))
    for at in subject.positions[:2]:
        yield _pair(Records(X, subject.base.y), at, (x, 1.0), (-x, 1.0))


def _opposites(subject: Subject, pool: list[Record]) -> Iterator[Pair]:
    for k, (x, y) in enumerate(_loud(pool)):
        at = subject.positions[k % len(subject.positions)]
        yield _pair(subject.base, at, (x, y), (-x, y))


def _loud(pool: list[Record]) -> list[Record]:
    return [one for one in pool if np.abs(one[0]).max() > 0]


def _beyond(subject: Subject) -> Iterator[Pair]:
    """Labels so large that those of the others are lost to rounding, if not clipped."""
    quiet = Records(subject.base.X, np.full(len(subject.base.y), QUIET_LABEL))
    for at, other in itertools.product(subject.positions, (-HUGE_LABEL, QUIET_LABEL)):
        x = subject.base.X[at - 1]
        yield _pair(quiet, at, (x, HUGE_LABEL), (x, other))


def _crowded(subject: Subject, pool: list[Record]) -> Iterator[Pair]:
    """Influential records in a crowd of others that all equal the second one."""
    n = len(subject.base.y)
    for k, (x, y) in enumerate(_loud(pool)):
        at = subject.positions[k % len(subject.positions)]
        for other in (-x, _turned(x)):
            crowd = Records(np.tile(other, (n, 1)), np.full(n, y))
            yield _pair(crowd, at, (x, y), (other, y))


def _turned(x: Array) -> Array:
    turned = np.roll(x, 1) * (np.arange(len(x)) < 2)
    turned[0] = -x[1] if len(x) > 1 else -x[0]
    return turned if turned.any() else np.roll(x, 1)


def _apart(subject: Subject) -> Iterator[Pair]:
    """Other records that separate the candidates, and a record that reverses them."""
    n, p = subject.base.X.shape
    first = np.arange(p) == 0
    for gap in GAPS:
        for means in (np.where(first, 1 - gap, 1.0), np.where(first, gap, 0.0)):
            others = Records(signs(n, means), np.ones(n))
            for x, at in itertools.product(_halves(p), subject.positions[:2]):
                yield _pair(others, at, (LOUD * x, 1.0), (-LOUD * x, 1.0))


def _halves(p: int) -> list[Array]:
    """One corner of each opposite pair; two corners where there are many."""
    return corners(p)[: 2 ** (p - 1)] if p <= 4 else corners(p)[:2]


def signs(n: int, means: Array) -> Array:
    """Records of signs, (n, p), with about the given column means."""
    negative = np.round(n * (1 - means) / 2).astype(int)
    rows = (np.arange(n)[:, None] * 1.0 + 0.5 * np.arange(len(means))) % n
    return np.where(rows < negative, -1.0, 1.0)


def _any_two(subject: Subject, pool: list[Record], rng: Generator) -> Iterator[Pair]:
    for k in itertools.count():
        at = subject.positions[k % len(subject.positions)]
        one, two = (pool[i] for i in rng.integers(0, len(pool), 2))
        yield _pair(subject.base, at, one, two)
