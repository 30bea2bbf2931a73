"""Neighbours worth trying: influential records, extreme ones, and their company.

Where a step reads a random record, all other records equal the second one of a pair.
Where a step selects, the other records decide how far apart the candidates lie.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from dperm.audit.mechanism import (
    INFLUENTIAL,
    Array,
    AuditData,
    Mechanism,
    Pair,
    Record,
)

# Size of a record that is clipped, but changes no bound on the data
CLIPPED_SIZE = 0.3
GAPS = (
    0.0,
    0.5,
    0.75,
    0.25,
)  # distances of candidates, relative to the largest
ODD = (np.nan, np.inf, -np.inf, 1e308, -1e308, 3e-162, 1e-200, 5e-324, 0.0)


def pairs(m: Mechanism, count: int) -> list[Pair]:
    """The given number of pairs, the worst known ones first, each in one direction."""
    searches = [_tried(m), _plain(m), _random(m)]
    if m.selections:
        apart = _apart(m)
        searches = [apart, apart, apart, *searches]
    if m.hidden:
        searches.insert(0, _crowded(m))
    turns = itertools.chain.from_iterable(itertools.zip_longest(*searches))
    return [*itertools.islice(filter(None, turns), count)]


def odd_pairs(m: Mechanism) -> list[Pair]:
    """Records that are not finite, overflow or underflow, and an ordinary one.

    Labels that are numbers are odd too, in turn and huge next to tiny records; signs
    are exchanged.
    """
    position = m.positions[0]
    p = m.base.X.shape[1]
    # sums are infinity less infinity
    turns = np.where(np.arange(p) % 2, -1.0, 1.0)
    records = [(x, 1.0) for x in ODD]
    if m.real:
        records += [*zip(ODD, ODD[::-1], strict=True)]
        records += itertools.product(ODD[-4:], ODD[3:5])
    plain = (m.base.X[position], 1.0)
    odd = [(x * turns, y) for x, y in records] + [(m.base.X[position], -1.0)]
    return [_pair(m, m.base, position, record, plain) for record in odd]


def _pair(
    m: Mechanism,
    base: AuditData,
    position: int,
    record: Record,
    replacement: Record,
) -> Pair:
    bound = np.inf if m.bound is None else m.bound
    record, replacement = (
        (np.clip(x, -bound, bound), y) for x, y in (record, replacement)
    )
    return Pair(
        base.replaced(position, record),
        base.replaced(position, replacement),
        position,
    )


def corners(p: int) -> list[Array]:
    """Corners of the cube, one of each opposite pair; two where there are many."""
    if p > 4:
        return [np.ones(p), np.where(np.arange(p) < p // 2, -1.0, 1.0)]
    signs_of_rest = itertools.product((1.0, -1.0), repeat=p - 1)
    return [np.array((1.0, *signs)) for signs in signs_of_rest]


def _tried(m: Mechanism) -> Iterator[Pair]:
    for (record, replacement), position in itertools.product(
        m.tried, m.positions
    ):
        yield _pair(m, m.base, position, (record, 1.0), (replacement, 1.0))


def _plain(m: Mechanism) -> Iterator[Pair]:
    """Corners and an axis against their opposites, a weak record, zero, a turn.

    The first two in every position, the others in one position each.
    """
    p = m.base.X.shape[1]
    corner = np.ones(p)
    axis = np.eye(p)[0]
    zero = np.zeros(p)
    turned = np.where(np.arange(p) == 0, -1.0, 1.0)
    everywhere = [(corner, -corner), (axis, -axis)]
    single = [
        (axis, zero),
        (corner, -CLIPPED_SIZE / INFLUENTIAL * corner),
        (corner, turned),
    ]
    single += [(corner, zero)] + [(c, -c) for c in corners(p)[1:]]
    places = itertools.cycle(m.positions)
    placed = [
        *itertools.product(everywhere, m.positions),
        *zip(single, places, strict=False),
    ]
    for (record, replacement), position in placed:
        yield _pair(
            m,
            m.base,
            position,
            (INFLUENTIAL * record, 1.0),
            (INFLUENTIAL * replacement, 1.0),
        )
        if m.real:
            yield _pair(
                m,
                m.base,
                position,
                (record, INFLUENTIAL),
                (record, -INFLUENTIAL),
            )


def _random(m: Mechanism) -> Iterator[Pair]:
    """Random records of all sizes, which are equal, opposite or at any angle."""
    p = m.base.X.shape[1]
    for seed in itertools.count():
        rng = np.random.default_rng([seed, 2])
        record, replacement = 10.0 ** rng.uniform(
            -2, 3, (2, 1)
        ) * rng.standard_normal((2, p))
        labels = rng.choice((-1.0, 1.0), 2)
        position = m.positions[seed % len(m.positions)]
        yield _pair(
            m, m.base, position, (record, labels[0]), (replacement, labels[1])
        )


def _crowded(m: Mechanism) -> Iterator[Pair]:
    """All other records equal the second one: a step that misses tells nothing."""
    n, p = m.base.X.shape
    for c in corners(p):
        turned = np.roll(c, 1) * np.where(np.arange(p) == 0, -1.0, 1.0)
        for twin in (-c, turned):
            crowd = AuditData(np.tile(INFLUENTIAL * twin, (n, 1)), np.ones(n))
            yield _pair(
                m,
                crowd,
                m.positions[0],
                (INFLUENTIAL * c, 1.0),
                (INFLUENTIAL * twin, 1.0),
            )


def _apart(m: Mechanism) -> Iterator[Pair]:
    """Other records that separate the candidates, and a record that reverses them."""
    n, p = m.base.X.shape
    is_first = np.arange(p) == 0
    place = np.arange(n)[:, None] + 0.5 * np.arange(p)
    settings = itertools.product(
        (False, True), m.positions[:2], GAPS, corners(p)
    )
    for low, position, gap, c in settings:
        if low:
            means = np.where(is_first, gap, 0.0)
        else:
            means = np.where(is_first, 1 - gap, 1.0)
        X = np.where(place % n < np.round(n * (1 - means) / 2), -1.0, 1.0)
        yield _pair(
            m,
            AuditData(X, np.ones(n)),
            position,
            (INFLUENTIAL * c, 1.0),
            (-INFLUENTIAL * c, 1.0),
        )
