"""Coupling: the noise that makes a run on D' say what a run on D said.

A record is hidden by noise only as far as other noise could have hidden its
replacement. The replay finds, release by release, the shift of the noise with which D'
gives the views of D. The proofs bound it: sensitivity over scale for a release, and for
report noisy max the raise that keeps the winner.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dperm.audit.selections import HUGE, Selection, Symbol, reselect
from dperm.audit.shifts import SAME, Script, Shift, additive, raised, selects
from dperm.audit.subjects import Records, Seed, Subject, Transcript
from dperm.audit.taps import Draw
from dperm.privacy.ledger import Event

Array = np.ndarray

_ROUNDS = 40  # of correction, where a view is not affine, or only piece by piece
_SMALL = 1e-4  # of the noise's unit, a difference
_DONE = 1e-12  # of the view, or of the noise's unit, that is as good as nothing
_LEFT, _ROUGH = 1e-6, 1e-11  # of the noise, and of the view, that may stay unmatched


@dataclass(frozen=True)
class Coupling:
    """A run on D, its shifts, and the noise with which D' repeats it.

    ``other`` is the run on D' that says the same; None if there is none.
    """

    seen: Transcript
    shifts: list[Shift]
    script: Script
    other: Transcript | None = None

    @property
    def possible(self) -> bool:
        """Whether D' can say the same at all."""
        return all(math.isfinite(shift.size) for shift in self.shifts)

    def at(self, t: int) -> list[Shift]:
        """The shifts behind view t."""
        return [shift for shift in self.shifts if shift.step == t]


class Replay:
    """A subject on two neighbours.

    Parameters
    ----------
    subject : Subject
    first, second : Records
        D and D'.
    """

    def __init__(self, subject: Subject, first: Records, second: Records):
        self.subject, self.pair = subject, (first, second)
        self._ways: dict[Symbol, list[tuple[int, float]]] = {}

    def run(
        self,
        which: int,
        seed: Seed,
        script: Sequence[Draw],
        taken: Sequence[int] | None = None,
        until: int | None = None,
    ) -> Transcript:
        """A run on D (0) or D' (1)."""
        return self.subject.run(self.pair[which], seed, script, taken, until)

    def couple(
        self,
        seed: Seed,
        taken: Sequence[int] | None = None,
        history: Sequence[Draw] = (),
    ) -> Coupling:
        """Run on D, with the history's noise as far as it goes, and find D's match."""
        seen = self.run(0, seed, history, taken)
        script, shifts = list(seen.draws), list[Shift]()
        for t in range(len(seen.views)):
            now = self.run(1, seed, script, taken, t)
            if selects(self.subject, seen, t):
                found = reselect(self, seen, now, script, t, seed, taken)
                if found is not None:
                    shifts.append(found)
                    now = self.run(1, seed, script, taken, t)
            if now.ends[: t + 2] != seen.ends[: t + 2]:
                shifts.append(self.impossible(t))
            else:
                shifts += self.release(seen, now, script, t, seed, taken)
            if shifts and not math.isfinite(shifts[-1].size):
                break
        if any(not math.isfinite(shift.size) for shift in shifts):
            return Coupling(seen, shifts, script)
        return Coupling(seen, shifts, script, self.run(1, seed, script, taken))

    def ways(self, symbol: Symbol, at: Selection) -> list[tuple[int, float]]:
        """Entries, and directions, whose noise alone can bring about a selection."""
        if symbol not in self._ways:
            self._ways[symbol] = [
                (entry, sign)
                for entry in range(at.size)
                for sign in (1.0, -1.0)
                if at.after(entry)(sign * HUGE) == symbol
            ]
        return self._ways[symbol]

    def impossible(self, t: int) -> Shift:
        """What says that no noise makes D' repeat view t."""
        return Shift(t, self.subject.ledger.events[-1], np.full(1, np.inf))

    def release(
        self,
        seen: Transcript,
        now: Transcript,
        script: Script,
        t: int,
        seed: Seed,
        taken: Sequence[int] | None,
    ) -> list[Shift]:
        """Shift the added noise of view t so that D' repeats it; changes the script."""
        added = additive(self.subject, seen, t)
        before = [script[place] for place, _ in added]
        for _ in range(_ROUNDS):
            wanted = seen.views[t] - now.views[t]
            if (np.abs(wanted) <= _DONE * np.abs(seen.views[t])).all():
                break
            units = self._needed(now, script, t, seed, taken, wanted)
            if units is None:
                return [self.impossible(t)]
            for place, part in _parts(script, added, units):
                script[place] = script[place].moved(part)
            if np.abs(units).max(initial=0.0) <= _DONE:
                break
            now = self.run(1, seed, script, taken, t)
        else:
            return [self.impossible(t)]
        moved = [
            Shift(t, event, np.ravel(script[place].unit - old.unit))
            for (place, event), old in zip(added, before, strict=True)
        ]
        return [shift for shift in moved if shift.size > SAME]

    def log_volume(self, which: int, seed: Seed, script: Script, t: int) -> float:
        """Logarithm of how much view t stretches its added noise, at a script.

        By differences; nan where the view has not as many numbers as the noise.
        """
        run = self.run(which, seed, script, None, t)
        columns = []
        for place, _ in additive(self.subject, run, t):
            for entry in range(script[place].unit.size):
                up, down = (
                    self.run(which, seed, raised(script, place, entry, by), None, t)
                    for by in (_SMALL, -_SMALL)
                )
                columns.append((up.views[t] - down.views[t]) / (2 * _SMALL))
        slopes = np.column_stack(columns)
        if slopes.shape[0] != slopes.shape[1]:
            return math.nan
        return float(np.linalg.slogdet(slopes)[1])

    def _needed(
        self,
        now: Transcript,
        script: Script,
        t: int,
        seed: Seed,
        taken: Sequence[int] | None,
        wanted: Array,
    ) -> Array | None:
        """The shift of view t's added noise that changes it so; None: none does.

        A view is affine in the noise; the slopes are measured.
        """
        columns = []
        for place, _ in additive(self.subject, now, t):
            for entry in range(script[place].unit.size):
                changed = raised(script, place, entry, 1.0)
                other = self.run(1, seed, changed, taken, t)
                columns.append(other.views[t] - now.views[t])
        if not columns:
            return None
        slopes = np.column_stack(columns)
        units: Array = np.linalg.lstsq(slopes, wanted, rcond=1e-10)[0]
        missed = np.abs(slopes @ units - wanted)
        allowed = _LEFT * np.abs(slopes).max(axis=1) + _ROUGH * np.abs(now.views[t])
        return units if (missed <= allowed).all() else None


def _parts(
    script: Script, added: list[tuple[int, Event]], units: Array
) -> Iterator[tuple[int, Array]]:
    """The entries of a shift that belong to each draw."""
    used = 0
    for place, _ in added:
        size = script[place].unit.size
        yield place, units[used : used + size]
        used += size
