"""What the rungs of a ladder share: a subject, its worst neighbours, seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dperm.audit.replay import Coupling, Replay, Shift
from dperm.audit.subjects import LOUD, Records, Subject, Transcript, loud_records

Array = np.ndarray
ROUNDING = 1e-5  # relative, of shifts that are measured on runs
AGAIN = 20  # times that a loud selection is coupled, for every pair of neighbours
FEWEST = 20  # neighbours that are tried even where runs are slow
MANY = 8  # candidates of a selection, beyond which its chances are not computed


@dataclass(frozen=True)
class Effort:
    """How much a ladder does.

    Attributes
    ----------
    level : float
        Chance that a sound subject is flagged by any one statistical test.
    pairs : int
        Neighbours that are tried.
    draws : int
        Runs whose noise is looked at.
    samples : int
        Runs on each of D and D' that are told apart.
    losses : int
        Transcripts whose privacy loss is computed.
    """

    level: float = 0.01
    pairs: int = 60
    draws: int = 400
    samples: int = 4000
    losses: int = 1000


@dataclass(frozen=True)
class Finding:
    """What a rung found.

    Attributes
    ----------
    rung : str
    measured, bound : float
        The rung's number, and what it is held against.
    caught : bool
        Whether the subject does not keep what its ledger states.
    note : str
    epsilon : float
        Lower bound on the epsilon of the whole run, where the rung has one.
    """

    rung: str
    measured: float
    bound: float
    caught: bool
    note: str = ""
    epsilon: float = 0.0


@dataclass(frozen=True)
class Pair:
    """Neighbours, and the record they differ in."""

    first: Records
    second: Records
    position: int


class Ladder:
    """What the rungs share: a subject, its worst neighbours, seeds.

    Parameters
    ----------
    subject : Subject
    effort : Effort
    seed : int
    """

    def __init__(self, subject: Subject, effort: Effort, seed: int):
        self.subject, self.seed = subject, seed
        self.effort = replace(
            effort,
            pairs=max(min(effort.pairs, FEWEST), effort.pairs // subject.cost),
            losses=-(-effort.losses // subject.cost),
        )

    def seeds(self, rung: int, count: int) -> list[int]:
        """Seeds of a rung's runs, which no other rung has."""
        state = np.random.SeedSequence([self.seed, rung])
        return [int(value) for value in state.generate_state(count, np.uint64)]

    @cached_property
    def plain(self) -> Transcript:
        """A run on the base records."""
        return self.subject.run(self.subject.base, self.seed)

    def taken(self, pair: Pair) -> list[int] | None:
        """The replaced record in every step, where steps read a secret one."""
        return [pair.position] * len(self.plain.views) if self.subject.hidden else None

    @cached_property
    def couplings(self) -> list[tuple[Pair, Coupling]]:
        """The neighbours that are tried, coupled; the replaced record is read."""
        seeds, found = self.seeds(2, self.effort.pairs), []
        for seed, pair in zip(seeds, self._pairs(), strict=False):
            replay = Replay(self.subject, pair.first, pair.second)
            found.append((pair, replay.couple(seed, self.taken(pair))))
        return found

    @cached_property
    def margins(self) -> list[Shift]:
        """By how much selections' thresholds move; neighbours as in ``couplings``.

        One loud step is also coupled again and again: what is wrong with a selection
        may show in rare noise only.
        """
        found: list[Shift] = []
        if not self.subject.selects:
            return found
        seeds = self.seeds(6, self.effort.pairs)
        for seed, (pair, _) in zip(seeds, self.couplings, strict=True):
            records = (pair.first, pair.second)
            found += Replay(self.subject, *records).margins(seed)
            loud = Replay(self.subject.loud or self.subject, *records)
            for k in range(AGAIN):
                found += loud.couple(seed + k).shifts
        return found

    def _pairs(self) -> Iterator[Pair]:
        """Loud records against their opposites first, then any two."""
        subject, count = self.subject, self.effort.pairs
        rng = np.random.default_rng([self.seed, 2])
        pool = loud_records(subject.base, rng)
        loud = [(x, y) for x, y in pool if np.abs(x).max() == LOUD]
        for k in range(count):
            at = subject.positions[k % len(subject.positions)]
            if k < count // 2:
                x, y = loud[k // len(subject.positions) % len(loud)]
                other = (-x, y)
            else:
                (x, y), other = (pool[i] for i in rng.integers(0, len(pool), 2))
            base = subject.base
            yield Pair(base.replaced(at, x, y), base.replaced(at, *other), at)

    @property
    def shifts(self) -> list[Shift]:
        """Every shift that was needed."""
        coupled = [shift for _, found in self.couplings for shift in found.shifts]
        return coupled + self.margins

    @cached_property
    def worst(self) -> Pair:
        """The pair whose noise is shifted most in all steps together."""
        return self._worst(first_step=False)

    @cached_property
    def worst_at_first(self) -> Pair:
        """The pair whose noise is shifted most in the first step."""
        return self._worst(first_step=True)

    def _worst(self, first_step: bool) -> Pair:
        """Of pairs that are equally bad, the one with the largest privacy loss."""

        def total(found: tuple[Pair, Coupling]) -> float:
            shifts = [s for s in found[1].shifts if not (first_step and s.step)]
            return sum((shift.size / shift.published) ** 2 for shift in shifts)

        most = max(map(total, self.couplings))
        worst = [f[0] for f in self.couplings if total(f) >= most * (1 - ROUNDING)][:6]
        if len(worst) == 1 or self.has_many:
            return worst[0]
        return max(worst, key=self._mean_loss)

    @property
    def has_many(self) -> bool:
        """Whether a selection has too many candidates to compute its chances."""
        return self.subject.selects and self.plain.draws[0].unit.size > MANY

    def _mean_loss(self, pair: Pair) -> float:
        count = min(6, 1 + self.effort.losses // 40)
        losses = self.losses(pair, self.seeds(7, count))
        return float(np.mean(np.minimum(losses, 1e6)))

    def losses(self, pair: Pair, seeds: list[int]) -> Array:
        """Privacy losses of fresh transcripts on the pair's first data set."""
        replay = Replay(self.subject, pair.first, pair.second)
        rng, steps = np.random.default_rng([self.seed, 4]), len(self.plain.views)
        n, found = len(self.subject.base.y), []
        for seed in seeds:
            hidden = self.subject.hidden
            taken = rng.integers(0, n, steps).tolist() if hidden else None
            found.append(replay.loss(seed, taken))
        return np.array(found)

    def sample(
        self, rung: int, pair: Pair, always: bool, pick: Callable[[Transcript], Any]
    ) -> tuple[list, list]:
        """What ``pick`` takes from fresh runs on D and on D'.

        ``always``: the replaced record is read in every step.
        """
        count = self.effort.samples
        seeds = self.seeds(rung, 2 * count)
        taken = self.taken(pair) if always else None
        run = self.subject.run
        first = [pick(run(pair.first, seed, (), taken)) for seed in seeds[:count]]
        second = [pick(run(pair.second, seed, (), taken)) for seed in seeds[count:]]
        return first, second
