"""Coupling: the noise that makes a run on D' say what a run on D said.

A record is hidden by noise only as far as other noise could have hidden its
replacement. The replay finds, step by step, the shift of the noise with which D' gives
the views of D. The proofs bound it: sensitivity over scale for a release, and for
report noisy max the raise that keeps the winner. Two densities give the privacy loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from dperm.audit.subjects import Records, Subject, Transcript
from dperm.audit.taps import LAWS, Draw
from dperm.privacy.ledger import Event
from dperm.privacy.noisy_max import NoisyMax

Array = np.ndarray
Script = list[Draw]

HUGE = 1e5  # noise that decides any selection
_REACH = np.linspace(-45.0, 45.0, 9001)  # of scores, for integrals
_EXACT, _ROUGH = 34, 16  # halvings, of the noise at which a selection changes


@dataclass(frozen=True)
class Shift:
    """What one draw of step t has to be moved by, in units of its scale."""

    step: int
    event: Event
    units: Array

    @property
    def declared(self) -> float:
        """The bound that the ledger states; infinity where it says there is none."""
        if not self.event.sound:
            return math.inf
        if isinstance(self.event, NoisyMax):
            return self.event.pure
        return self.event.sensitivity / self.event.scale if self.event.scale else 0.0

    @property
    def published(self) -> float:
        """The bound that the paper states, where it is another one."""
        pure = getattr(self.event, "published_pure", None)
        if pure is not None:
            return pure
        stated = getattr(self.event, "published_sensitivity", None)
        if not self.event.sound:
            return math.inf
        return stated / self.event.scale if stated else self.declared

    @property
    def size(self) -> float:
        """The shift in the norm in which the event states its sensitivity."""
        units = np.abs(self.units)
        if not np.isfinite(units).all():
            return math.inf
        kind = type(self.event).__name__
        if kind in ("Gaussian", "SampledGaussian"):
            return float(np.sqrt((units**2).sum()))
        if kind == "GeneralisedGaussian":
            order: float = getattr(self.event, "order", 2.0)
            return float((units**order).sum() ** (1 / order))
        return float(units.max(initial=0.0))

    @property
    def ratio(self) -> float:
        """Shift over the declared bound: at most 1 where the ledger is right."""
        return self.size / self.declared if self.declared else math.inf


@dataclass(frozen=True)
class Coupling:
    """A run on D, its shifts, and the noise with which D' repeats it."""

    seen: Transcript
    shifts: list[Shift]
    script: Script

    @property
    def possible(self) -> bool:
        """Whether D' can say the same at all."""
        return all(math.isfinite(shift.size) for shift in self.shifts)


def _impossible(t: int, subject: Subject) -> Shift:
    """What says that no noise makes D' repeat step t."""
    return Shift(t, subject.ledger.events[-1], np.full(1, np.inf))


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
        self._chances: dict[tuple, dict] = {}
        self._known_ways: dict[tuple, list[tuple[int, float]]] = {}

    def couple(self, seed: int, taken: Sequence[int] | None = None) -> Coupling:
        """Run on D with fresh noise and find the noise for D'."""
        subject = self.subject
        seen = subject.run(self.pair[0], seed, (), taken)
        script, shifts = list(seen.draws), list[Shift]()
        for t in range(len(seen.views)):
            now = subject.run(self.pair[1], seed, script, taken, t)
            if subject.selects:
                found = self._reselect(seen, now, script, t, seed)
                if found is not None:
                    shifts.append(found)
                    now = subject.run(self.pair[1], seed, script, taken, t)
            if now.ends[: t + 2] != seen.ends[: t + 2]:
                shifts.append(_impossible(t, subject))
            else:
                shifts += self._release(seen, now, script, t, seed, taken)
            if not all(math.isfinite(shift.size) for shift in shifts):
                break
        return Coupling(seen, shifts, script)

    # --- releases ---------------------------------------------------------------------

    def _additive(self, seen: Transcript, t: int) -> list[tuple[int, Event]]:
        """Draws of step t that are added to something, with their events."""
        places = seen.draws_of(t)[1 if self.subject.selects else 0 :]
        events = [
            event
            for event in self.subject.ledger.events
            if not isinstance(event, NoisyMax)
        ]
        return list(zip(places, events[-len(places) :], strict=False)) if places else []

    def _release(
        self,
        seen: Transcript,
        now: Transcript,
        script: Script,
        t: int,
        seed: int,
        taken: Sequence[int] | None,
    ) -> list[Shift]:
        """Shift the added noise of step t so that D' repeats its view."""
        wanted = seen.views[t] - now.views[t]
        tiny = 1e-12 * np.abs(seen.views[t]).max(initial=0.0)
        if np.abs(wanted).max(initial=0.0) <= tiny:
            return []
        additive = self._additive(seen, t)
        units = self._needed(1, now, script, t, seed, taken, wanted)
        if units is None:
            return [_impossible(t, self.subject)]
        shifts, used = [], 0
        for place, event in additive:
            size = script[place].unit.size
            part = units[used : used + size]
            used += size
            script[place] = script[place].moved(part)
            shifts.append(Shift(t, event, part))
        return shifts

    def _needed(
        self,
        which: int,
        now: Transcript,
        script: Script,
        t: int,
        seed: int,
        taken: Sequence[int] | None,
        wanted: Array,
    ) -> Array | None:
        """The shift of step t's added noise that changes its view so; None: none does.

        A view is affine in the noise; the slopes are measured.
        """
        columns = []
        for place, _ in self._additive(now, t):
            for entry in range(script[place].unit.size):
                changed = list(script)
                moved = np.zeros(script[place].unit.size)
                moved[entry] = 1.0
                changed[place] = script[place].moved(moved)
                other = self.subject.run(self.pair[which], seed, changed, taken, t)
                columns.append(other.views[t] - now.views[t])
        if not columns:
            return None
        slopes = np.column_stack(columns)
        units = np.linalg.lstsq(slopes, wanted, rcond=1e-10)[0]
        missed = np.linalg.norm(slopes @ units - wanted)
        return units if missed <= 1e-6 * np.linalg.norm(slopes) else None

    # --- selections -------------------------------------------------------------------

    def _symbol(self, views: list[Array], t: int) -> tuple[int, ...]:
        return self.subject.symbol(views[t])

    def _reselect(
        self, seen: Transcript, now: Transcript, script: Script, t: int, seed: int
    ) -> Shift | None:
        """Raise the winner's own noise until D' selects it too."""
        symbol = self._symbol(seen.views, t)
        if self._symbol(now.views, t) == symbol:
            return None
        place, best = seen.draws_of(t)[0], (math.inf, 0)
        for entry, sign in self._ways(symbol, seed, script, t, place):
            after = self._selected(1, seed, script, t, place, entry)
            raised = _threshold(after, symbol, sign)
            if abs(raised) < abs(best[0]):
                best = (raised, entry)
        if math.isfinite(best[0]):
            moved = np.zeros(script[place].unit.size)
            moved[best[1]] = best[0] * (1 + 1e-9)
            script[place] = script[place].moved(moved)
        return Shift(t, self._selection, np.array([best[0]]))

    @property
    def _selection(self) -> NoisyMax:
        """The costliest kind of selection."""
        events = self.subject.ledger.events
        return max((e for e in events if isinstance(e, NoisyMax)), key=lambda e: e.pure)

    def _ways(
        self, symbol: tuple[int, ...], seed: int, script: Script, t: int, place: int
    ) -> list[tuple[int, float]]:
        """Entries, and directions, whose noise alone can bring about a selection."""
        if symbol not in self._known_ways:
            found = []
            for entry in range(script[place].unit.size):
                after = self._selected(1, seed, script, t, place, entry)
                found += [(entry, s) for s in (1.0, -1.0) if after(s * HUGE) == symbol]
            self._known_ways[symbol] = found
        return self._known_ways[symbol]

    def margins(self, seed: int) -> list[Shift]:
        """By how much the noise at which an entry wins the first step moves.

        For entries that win neither on D nor on D' without noise of their own; four of
        them, where there are more.
        """
        seen = self.subject.run(self.pair[0], seed)
        place, found = seen.draws_of(0)[0], []
        entries = np.random.default_rng(seed).permutation(seen.draws[place].unit.size)
        for entry in entries[:4]:
            script = list(seen.draws)
            without = np.array(script[place].unit)
            without.flat[entry] = 0.0
            script[place] = Draw(script[place].kind, without)
            sides = [self._selected(k, seed, script, 0, place, entry) for k in (0, 1)]
            for sign in (1.0, -1.0):
                names = {side(sign * HUGE) for side in sides}
                if len(names) > 1 or names & {side(0.0) for side in sides}:
                    continue
                name = names.pop()
                one, two = (_threshold(side, name, sign) for side in sides)
                found.append(Shift(0, self._selection, np.array([two - one])))
        return found

    def _selected(
        self, which: int, seed: int, script: Script, t: int, place: int, entry: int
    ) -> Callable[[float], tuple[int, ...]]:
        """What step t selects, as a function of what an entry's noise is raised by."""

        def after(change: float) -> tuple[int, ...]:
            moved, changed = np.zeros(script[place].unit.size), list(script)
            moved[entry] = change
            changed[place] = script[place].moved(moved)
            views = self.subject.run(self.pair[which], seed, changed, None, t).views
            return self._symbol(views, t)

        return after

    # --- privacy loss -----------------------------------------------------------------

    def loss(self, seed: int, taken: Sequence[int] | None = None) -> float:
        """Return log P(o | D) / P(o | D') of the transcript o of a fresh run on D."""
        coupling = self.couple(seed, taken)
        if not coupling.possible:
            return math.inf
        seen, total = coupling.seen, 0.0
        for t in range(len(seen.views)):
            if self.subject.selects:
                total += self._selection_loss(coupling, t, seed)
            scripts = (seen.draws, coupling.script)
            if self.subject.hidden and taken is not None:
                given = (seen, t, seed, taken)
                one, two = (self._mixture(k, scripts[k], *given) for k in (0, 1))
            else:
                places = [place for place, _ in self._additive(seen, t)]
                one, two = (sum(s[k].log_density() for k in places) for s in scripts)
            total += one - two
        return total

    def _mixture(
        self,
        which: int,
        script: Script,
        seen: Transcript,
        t: int,
        seed: int,
        taken: Sequence[int],
    ) -> float:
        """Log density of step t's view where the record it read is not known."""
        n, terms = len(self.subject.base.y), []
        for i in range(n):
            other = [*taken[:t], i, *taken[t + 1 :]]
            now = self.subject.run(self.pair[which], seed, script, other, t)
            wanted = seen.views[t] - now.views[t]
            given = (which, now, script, t, seed, other, wanted)
            units, used, term = self._needed(*given), 0, 0.0
            if units is None:
                return -math.inf
            for place, _ in self._additive(seen, t):
                size = script[place].unit.size
                term += script[place].moved(units[used : used + size]).log_density()
                used += size
            terms.append(term)
        return float(logsumexp(terms)) - math.log(n)

    def _selection_loss(self, coupling: Coupling, t: int, seed: int) -> float:
        seen = coupling.seen
        place = seen.draws_of(t)[0]
        path = tuple(self._symbol(seen.views, k) for k in range(t + 1))
        scripts, logs = (list(seen.draws), list(coupling.script)), []
        # The path says everything where nothing else was released before.
        discrete = place == 0 or len(seen.draws) == len(seen.views)
        for which in (0, 1):
            key = (which, path[:-1])
            found = self._chances.get(key) if discrete else None
            if found is None:
                found = self._chances[key] = self.chances(
                    which, seed, scripts[which], t, place
                )
            logs.append(math.log(max(found.get(path[-1], 0.0), 1e-300)))
        return logs[0] - logs[1]

    def chances(
        self, which: int, seed: int, script: Script, t: int, place: int
    ) -> dict[tuple[int, ...], float]:
        """Probabilities of what step t selects on D or D' after the script so far.

        Scores are measured in units of the noise: by how much an entry's noise must
        rise to win against the others without noise. An entry that also wins with very
        negative noise is one whose noise is inside an absolute value.
        """
        kind, size = script[place].kind, script[place].unit.size
        quiet = list(script)
        quiet[place] = Draw(kind, np.zeros_like(script[place].unit))
        after = [
            self._selected(which, seed, quiet, t, place, entry) for entry in range(size)
        ]
        top = after[0](0.0)
        names = {s: [select(s * HUGE) for select in after] for s in (1.0, -1.0)}
        sign = 1.0 if len(set(names[1.0])) == size else -1.0
        two_sided = names[1.0] == names[-1.0]
        up, down = np.zeros(size), np.zeros(size)
        for entry in range(size):
            if names[sign][entry] != top:
                wanted = (after[entry], names[sign][entry])
                up[entry] = _threshold(*wanted, sign, _ROUGH)
                if two_sided:
                    down[entry] = _threshold(*wanted, -sign, _ROUGH)
        best = names[sign].index(top)
        chances = _two_sided if two_sided else _one_sided
        return dict(zip(names[sign], chances(up, down, best, LAWS[kind]), strict=True))


def _threshold(
    after: Callable[[float], tuple], wanted: tuple, sign: float, halvings: int = _EXACT
) -> float:
    """Least change, of that sign, after which the selection is the wanted one."""
    if after(sign * HUGE) != wanted:
        return sign * math.inf
    low, high = 0.0, 1.0
    while after(sign * high) != wanted:
        low, high = high, 4 * high
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if after(sign * middle) == wanted else (middle, high)
    return sign * high


def _one_sided(up: Array, down: Array, best: int, law: Any) -> Array:
    """Chances of each entry where the largest of score + noise wins."""
    scores = -np.abs(up)
    densities = law.pdf(_REACH - scores[:, None])
    below = law.cdf(_REACH - scores[:, None])
    return _winning(densities, below)


def _two_sided(up: Array, down: Array, best: int, law: Any) -> Array:
    """The same where the largest of abs(value + noise) wins; a symmetric law."""
    values = -0.5 * (up + down)
    other = 0 if best else 1
    values[best] = 0.5 * abs(up[other] - down[other])
    reach = _REACH[_REACH >= 0]
    low, high = (reach - sign * values[:, None] for sign in (1, -1))
    densities = law.pdf(low) + law.pdf(high)
    return _winning(densities, law.cdf(low) - law.cdf(-high), reach)


def _winning(densities: Array, below: Array, reach: Array = _REACH) -> Array:
    chances = []
    for entry in range(len(densities)):
        others = np.prod(np.delete(below, entry, axis=0), axis=0)
        chances.append(np.trapezoid(densities[entry] * others, reach))
    total = np.array(chances)
    return total / total.sum()
