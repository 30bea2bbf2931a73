"""The state that an audit's checks share: a subject, its worst neighbours, seeds.

A ladder is the list of an audit's checks for one solver; a rung is one check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dperm.audit.measured import Steps, has_many, measured_epsilon
from dperm.audit.neighbours import Pair, odd_pairs, pairs
from dperm.audit.replay import Coupling, Replay, Script, Shift, margins
from dperm.audit.subjects import Draw, Subject, Transcript

Array = np.ndarray
ROUNDING = 1e-5  # relative, of shifts that are measured on runs
AGAIN = 20  # couplings of a selection with little noise, for each pair
FEWEST = 10  # pairs that are tried even where runs are slow
CLOSELY = 8  # pairs whose selections are examined, where chances are computed
TRIED, KNOWN = 12, 3  # pairs whose law is sought, and pairs with a law compared
HISTORIES = 3  # after which a law is measured
AMPLE = 1e3  # noise of an extreme history, in units of its scale
BACK = (0, 1, 2, 4, 8)  # views before the record's, at which that noise turns


@dataclass(frozen=True)
class Effort:
    """How much work an audit does."""

    #: chance that a sound subject is flagged by any one statistical test
    level: float = 0.01
    pairs: int = 30  #: neighbours that are tried, in both directions
    draws: int = 400  #: runs whose noise is tested


@dataclass(frozen=True)
class Finding:
    """Result of a rung."""

    rung: str
    #: measured, bound: the rung's number, and the bound it is compared with
    measured: float
    bound: float
    caught: bool  #: whether the subject breaks what its ledger states
    note: str = ""


class Ladder:
    """The state that the rungs share: a subject, its worst neighbours, seeds."""

    def __init__(self, subject: Subject, effort: Effort, seed: int):
        self.subject, self.seed = subject, seed
        self._steps: Steps = {}
        fewest = max(min(effort.pairs, FEWEST), 4 * len(subject.positions))
        count = max(fewest, effort.pairs // subject.cost)
        self.effort = replace(effort, pairs=count)

    def seeds(self, rung: int, count: int) -> list[int]:
        """Seeds of a rung's runs, which no other rung uses."""
        state = np.random.SeedSequence([self.seed, rung])
        return [int(value) for value in state.generate_state(count, np.uint64)]

    @cached_property
    def plain(self) -> Transcript:
        """A run on the base records."""
        return self.subject.run(self.subject.base, self.seed)

    def taken(self, pair: Pair) -> list[int] | None:
        """The replaced record for every step, if steps read a secret random one."""
        return [pair.position] * len(self.plain.views) if self.subject.hidden else None

    @property
    def has_many(self) -> bool:
        """Whether a selection has too many candidates to compute its chances."""
        return has_many(self.subject, self.plain)

    # --- couplings --------------------------------------------------------------------

    @cached_property
    def pairs(self) -> list[Pair]:
        """The neighbours that are tried, in one direction."""
        return list(pairs(self.subject, self.seed, self.effort.pairs))

    @cached_property
    def couplings(self) -> list[tuple[Pair, Coupling]]:
        """Couplings of the neighbours in both directions, the replaced record read."""
        both = [one for pair in self.pairs for one in (pair, pair.reverse)]
        seeds = self.seeds(2, len(both))
        return [(p, self._couple(p, s)) for p, s in zip(both, seeds, strict=True)]

    def _couple(self, pair: Pair, seed: int, history: Sequence[Draw] = ()) -> Coupling:
        given = (pair.first, pair.second, seed, self.taken(pair))
        return Replay(self.subject, *given).couple(history)

    @cached_property
    def margins(self) -> list[Shift]:
        """How far the thresholds of selections move between neighbours.

        One step with little noise is also coupled many times: an error in a selection
        may show under rare noise only.
        """
        shifts: list[Shift] = []
        if not self.subject.selects:
            return shifts
        some = self.pairs if self.has_many else self._spread(self.pairs, CLOSELY)
        for seed, pair in zip(self.seeds(6, len(some)), some, strict=True):
            at = (pair.first, pair.second, seed)
            shifts += margins(Replay(self.subject, *at, self.taken(pair)))
            loud = Replay(self.subject.loud or self.subject, *at)
            for k in range(max(AGAIN // self.subject.cost, 4)):
                shifts += loud.seeded(seed + k).couple().shifts
        return shifts

    @cached_property
    def extremes(self) -> list[Shift]:
        """Shifts after histories of extremely unlikely noise.

        Strong noise drives the run to one side and, from some view before the record is
        read, to the other.
        """
        shifts: list[Shift] = []
        for at in self.subject.positions:
            near = [one for one in self.couplings[::2] if one[0].position == at]
            for pair, coupling in near[:3]:
                read = coupling.shifts[0].step if coupling.shifts else 0
                turns = sorted({max(read - back, 0) for back in BACK})
                seeds = self.seeds(8, len(turns))
                for turn, seed in zip(turns, seeds, strict=True):
                    history = loud_history(coupling.seen, turn)
                    shifts += self._couple(pair, seed, history).shifts
        return shifts

    @cached_property
    def odd(self) -> list[Coupling]:
        """Couplings of odd records (see ``odd_pairs``), after strong noise."""
        far = self.subject.far
        loud = [draw.moved(far * np.ones(draw.unit.size)) for draw in self.plain.draws]
        return [
            self._couple(pair, self.seed + k, loud)
            for k, pair in enumerate(odd_pairs(self.subject))
        ]

    @staticmethod
    def _spread(every: Sequence[Any], count: int) -> list[Any]:
        """The first items, and others spread over the rest, ``count`` in all."""
        head, tail = every[: count // 2], every[count // 2 :]
        step = max(1, -(-len(tail) // max(count - len(head), 1)))
        return [*head, *tail[::step]]

    @property
    def shifts(self) -> list[Shift]:
        """All shifts of all couplings."""
        coupled = [found for _, found in self.couplings] + self.odd
        shifts = [shift for one in coupled for shift in one.shifts]
        return shifts + self.extremes + self.margins

    # --- the whole run ----------------------------------------------------------------

    @cached_property
    def lower(self) -> float:
        """Lower bound on the whole run's epsilon, of measured laws; 0 without one."""
        found: list[float] = []
        for pair in self.candidates[:TRIED]:
            if len(found) == KNOWN:
                break
            epsilon = self._measured(pair, HISTORIES)
            found += [] if epsilon is None else [epsilon]
        return max(found, default=0.0)

    def _measured(self, pair: Pair, histories: int) -> float | None:
        if self.has_many:
            return None
        seeds = self.seeds(7, histories)
        given = (seeds, self.taken(pair), self._steps)
        return measured_epsilon(self.subject, pair, *given)

    @cached_property
    def candidates(self) -> list[Pair]:
        """Pairs that move the run most, best first."""
        if self.subject.selects and not self.has_many:
            apart = [self._measured(pair, 1) or 0.0 for pair in self.pairs]
            return [self.pairs[k] for k in np.argsort(apart, kind="stable")[:-3:-1]]

        def total(coupled: tuple[Pair, Coupling]) -> float:
            return round(sum(shift.ratio**2 for shift in coupled[1].shifts), 6)

        ranked = sorted(self.couplings[::2], key=lambda coupled: -total(coupled))
        return [pair for pair, _ in ranked]


def loud_history(seen: Transcript, turn: int) -> Script:
    """Strong noise to one side before view ``turn``, and to the other from it on."""
    script = []
    for t in range(len(seen.views)):
        sign = 1.0 if t < turn else -1.0
        for place in seen.draws_of(t):
            draw = seen.draws[place]
            unit = sign * AMPLE * np.ones_like(draw.unit) + draw.unit
            if draw.kind == "exponential":
                unit = np.abs(unit)
            script.append(Draw(draw.kind, unit, draw.order))
    return script
