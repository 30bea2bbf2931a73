"""Coupling: the noise with which a run on D' repeats a run on D.

The replay finds, release by release, the shift of the noise with which D' gives the
views of D. Privacy proofs bound the shift: by sensitivity over scale for a release, and
for report noisy max by the raise that keeps the winner.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from dperm.accountants.generalised_gaussian import GeneralisedGaussian
from dperm.accountants.noisy_max import NoisyMax
from dperm.accountants.perturbed_objective import PerturbedObjective
from dperm.audit.subjects import LAWS, Array, Draw, Records, Subject, Transcript
from dperm.core.privacy.ledger import Event, Gaussian, Laplace, SampledGaussian

Script = list[Draw]
Symbol = tuple[int, ...]
After = Callable[[float], Symbol]

SAME = 1e-9  # units of noise: a shift that counts as none
_ROUNDS = 40  # of correction, where a view is not affine, or only piecewise
_SMALL = 1e-4  # units of noise: step of a finite difference
_DONE = 1e-12  # relative to the view, or units of noise: negligible
_LEFT, _ROUGH = 1e-6, 1e-11  # of the noise, and of the view, that may stay unmatched
HUGE = 1e5  # noise that decides any selection
_HALVINGS = 34  # bisections of the noise at which a selection changes
_PANEL = 1.0  # largest width of a Gauss-Legendre rule between kinks
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_FAR = 45.0  # beyond it a density is negligible
_HIDES: dict[str, tuple[type[Event], ...]] = {  # events by the noise that hides them
    "gaussian": (Gaussian, SampledGaussian, PerturbedObjective),
    "generalised_gaussian": (GeneralisedGaussian,),
    "laplace": (Laplace,),
}


@dataclass(frozen=True)
class Shift:
    """The shift that one draw behind view t needs, in units of its scale."""

    step: int
    event: Event
    units: Array

    @property
    def declared(self) -> float:
        """The bound that the ledger states; infinity where it states none."""
        event = self.event
        if not event.sound:
            return math.inf
        if isinstance(event, NoisyMax):
            return event.pure
        if not event.scale:
            return 0.0
        bound = 1 / event.noise_multiplier
        if isinstance(event, GeneralisedGaussian) and event.order > 2:
            # the noise's own norm has regularity order - 1, see ``size``
            bound *= math.sqrt(event.kappa / (event.order - 1))
        return bound

    @property
    def published(self) -> float:
        """The bound that the paper states; the ledger's unless it is another one."""
        pure = getattr(self.event, "published_pure", None)
        if pure is not None:
            return pure
        stated = getattr(self.event, "published_sensitivity", None)
        if not self.event.sound:
            return math.inf
        return stated / self.event.scale if stated else self.declared

    @property
    def size(self) -> float:
        """The shift in the norm of the noise's density."""
        units = np.abs(self.units)
        if not np.isfinite(units).all():
            return math.inf
        if isinstance(self.event, GeneralisedGaussian):
            order = self.event.order
            return float((units**order).sum() ** (1 / order))
        if isinstance(self.event, _HIDES["gaussian"]):
            return float(np.sqrt((units**2).sum()))
        return float(units.max(initial=0.0))

    @property
    def ratio(self) -> float:
        """Shift over the declared bound: at most 1 where the ledger is right."""
        if self.size <= SAME:
            return 0.0
        return self.size / self.declared if self.declared else math.inf


def additive(subject: Subject, seen: Transcript, t: int) -> list[tuple[int, Event]]:
    """Draws behind view t that are added to something, with their events."""
    places = seen.draws_of(t)[1 if selects(subject, seen, t) else 0 :]
    if subject.draw_events:
        return [(place, subject.draw_events[place]) for place in places]
    left = [e for e in subject.ledger.events if not isinstance(e, NoisyMax)]
    added: list[tuple[int, Event]] = []
    for place in reversed(places):
        kinds = _HIDES.get(seen.draws[place].kind, ())
        able = [k for k, event in enumerate(left) if isinstance(event, kinds)]
        if able:
            added.insert(0, (place, left[able[-1]]))
            if len(able) > 1:
                left.pop(able[-1])
    return added


def is_bent(subject: Subject) -> bool:
    """Whether views are not affine in their noise, which changes densities."""
    events = subject.ledger.events
    return any(isinstance(event, PerturbedObjective) for event in events)


def selects(subject: Subject, seen: Transcript, t: int) -> bool:
    """Whether view t reveals a selection, whose noise is then its first draw."""
    return subject.selects and bool(seen.draws_of(t))


def selection(subject: Subject) -> NoisyMax:
    """The most expensive kind of selection in the ledger."""
    events = (e for e in subject.ledger.events if isinstance(e, NoisyMax))
    return max(events, key=lambda event: event.pure)


def raised(script: Sequence[Draw], place: int, entry: int, by: float) -> Script:
    """The script with one number of one draw raised."""
    moved, changed = np.zeros(script[place].unit.size), list(script)
    moved[entry] = by
    changed[place] = script[place].moved(moved)
    return changed


# --- couplings ------------------------------------------------------------------------


@dataclass(frozen=True)
class Coupling:
    """A run on D, its shifts, and the noise with which D' repeats it."""

    seen: Transcript
    shifts: list[Shift]
    script: Script
    again: Callable[[], Transcript] | None = None  #: runs on D' with that noise

    @cached_property
    def other(self) -> Transcript | None:
        """The run on D' with the same views; None if there is none."""
        return self.again() if self.again else None

    @property
    def possible(self) -> bool:
        """Whether D' can repeat the run at all."""
        return all(math.isfinite(shift.size) for shift in self.shifts)

    def at(self, t: int) -> list[Shift]:
        """The shifts behind view t."""
        return [shift for shift in self.shifts if shift.step == t]


class Replay:
    """A subject on two neighbours.

    Parameters
    ----------
    first, second : Records
        D and D'.
    seed : int
        Of the runs on both.
    taken : sequence of int, optional
        The replaced record for every step, if steps read a secret random one.
    """

    def __init__(
        self,
        subject: Subject,
        first: Records,
        second: Records,
        seed: int,
        taken: Sequence[int] | None = None,
    ):
        self.subject, self.pair = subject, (first, second)
        self.seed, self.taken = seed, taken
        self._ways: dict[Symbol, list[tuple[int, float]]] = {}

    def seeded(self, seed: int) -> Replay:
        """The same with another seed; both share what is known of selections."""
        other = copy(self)
        other.seed = seed
        return other

    def run(
        self, which: int, script: Sequence[Draw] = (), until: int | None = None
    ) -> Transcript:
        """A run on D (0) or D' (1)."""
        given = (self.pair[which], self.seed, script, self.taken, until)
        return self.subject.run(*given)

    def couple(self, history: Sequence[Draw] = ()) -> Coupling:
        """Run on D, with the history's noise as far as it goes, and match it on D'."""
        seen = self.run(0, history)
        script, shifts = list(seen.draws), list[Shift]()
        now = self.run(1, script)  # until the script changes
        for t in range(len(seen.views)):
            if len(now.views) <= t:
                now = self.run(1, script)
            if selects(self.subject, seen, t):
                shift = self.reselect(seen, now, script, t)
                if shift is not None:
                    shifts.append(shift)
                    now = self.run(1, script, t + 1)
            if now.ends[: t + 2] != seen.ends[: t + 2]:
                shifts.append(self.impossible(t))
            else:
                moved, now = self.release(seen, now, script, t)
                shifts += moved
            if shifts and not math.isfinite(shifts[-1].size):
                break
        if any(not math.isfinite(shift.size) for shift in shifts):
            return Coupling(seen, shifts, script)
        return Coupling(seen, shifts, script, lambda: self.run(1, script))

    def reselect(
        self, seen: Transcript, now: Transcript, script: Script, t: int
    ) -> Shift | None:
        """Raise the winner's own noise until D' selects it too; changes the script."""
        symbol = self.subject.symbol(seen.views[t])
        if self.subject.symbol(now.views[t]) == symbol:
            return None
        place, least, raised_entry = seen.draws_of(t)[0], math.inf, 0
        other = Selection(self, 1, script, t, place)
        for entry, sign in self.ways(symbol, other):
            change = threshold(other.after(entry), symbol, sign)
            if abs(change) < abs(least):
                least, raised_entry = change, entry
        if math.isfinite(least):
            by = least * (1 + 1e-9)
            script[place] = raised(script, place, raised_entry, by)[place]
        return Shift(t, selection(self.subject), np.array([least]))

    def ways(self, symbol: Symbol, at: Selection) -> list[tuple[int, float]]:
        """Entries, and directions, whose noise alone can force a selection."""
        if symbol not in self._ways:
            self._ways[symbol] = [
                (entry, sign)
                for entry in range(at.size)
                for sign in (1.0, -1.0)
                if at.after(entry)(sign * HUGE) == symbol
            ]
        return self._ways[symbol]

    def impossible(self, t: int) -> Shift:
        """The infinite shift: no noise makes D' repeat view t."""
        return Shift(t, self.subject.ledger.events[-1], np.full(1, np.inf))

    def release(
        self, seen: Transcript, now: Transcript, script: Script, t: int
    ) -> tuple[list[Shift], Transcript]:
        """Shift the added noise of view t so that D' repeats it; changes the script.

        Returns the shifts, and a run on D' with the script, at least to view t.
        """
        added = additive(self.subject, seen, t)
        before = [script[place] for place, _ in added]
        for _ in range(_ROUNDS):
            missed = seen.views[t] - now.views[t]
            if (np.abs(missed) <= _DONE * np.abs(seen.views[t])).all():
                break
            units = self._needed(now, script, t, missed)
            if units is None:
                return [self.impossible(t)], now
            used = 0
            for place, _ in added:
                size = script[place].unit.size
                script[place] = script[place].moved(units[used : used + size])
                used += size
            now = self.run(1, script, t + 1)
            if np.abs(units).max(initial=0.0) <= _DONE:
                break
        else:
            return [self.impossible(t)], now
        moved = [
            Shift(t, event, np.ravel(script[place].unit - old.unit))
            for (place, event), old in zip(added, before, strict=True)
        ]
        return [shift for shift in moved if shift.size > SAME], now

    def _needed(
        self, now: Transcript, script: Script, t: int, missed: Array
    ) -> Array | None:
        """The shift of added noise that changes view t by ``missed``; None: none does.

        A view is affine in the noise; the slopes are measured, all at once where each
        number has separate noise.
        """
        places = [place for place, _ in additive(self.subject, now, t)]
        sizes = [script[place].unit.size for place in places]

        def changed(units: Array) -> Array:
            moved, parts = list(script), np.split(units, np.cumsum(sizes)[:-1])
            for place, part in zip(places, parts, strict=True):
                moved[place] = script[place].moved(part)
            change: Array = self.run(1, moved, t).views[t] - now.views[t]
            return change

        if not sum(sizes):
            return None
        if missed.size == sum(sizes):
            own = changed(np.ones(sum(sizes)))
            alone = np.divide(missed, own, out=np.zeros_like(own), where=own != 0)
            left = np.abs(changed(alone) - missed).max()
            if left <= _LEFT * np.abs(missed).max():
                return alone
        slopes = np.column_stack([changed(one) for one in np.eye(sum(sizes))])
        units: Array = np.linalg.lstsq(slopes, missed, rcond=1e-10)[0]
        left = np.abs(slopes @ units - missed)
        allowed = _LEFT * np.abs(slopes).max(axis=1) + _ROUGH * np.abs(now.views[t])
        return units if (left <= allowed).all() else None


# --- selections -----------------------------------------------------------------------


class Selection:
    """One selection of a run on D (0) or D' (1), after a script.

    Parameters
    ----------
    which : {0, 1}
    t, place : int
        The view that reveals it, and the draw that is its noise.
    """

    def __init__(self, replay: Replay, which: int, script: Script, t: int, place: int):
        self.replay, self.which = replay, which
        self.script, self.t, self.place = script, t, place
        self.size = script[place].unit.size

    def after(self, entry: int) -> After:
        """What is selected, as a function of the raise of an entry's noise."""

        def symbol(change: float) -> Symbol:
            changed = raised(self.script, self.place, entry, change)
            seen = self.replay.run(self.which, changed, self.t)
            return self.replay.subject.symbol(seen.views[self.t])

        return symbol

    @cached_property
    def quiet(self) -> Selection:
        """The same without the selection's own noise."""
        script = list(self.script)
        noise = script[self.place]
        script[self.place] = Draw(noise.kind, np.zeros_like(noise.unit))
        return Selection(self.replay, self.which, script, self.t, self.place)

    @cached_property
    def winners(self) -> dict[float, list[Symbol]]:
        """Who wins when each entry's noise is very large, or very negative."""
        entries = [self.quiet.after(entry) for entry in range(self.size)]
        return {s: [after(s * HUGE) for after in entries] for s in (1.0, -1.0)}

    @property
    def sign(self) -> float:
        """Sign of the noise that makes an entry win."""
        return 1.0 if len(set(self.winners[1.0])) == self.size else -1.0

    def forced(self, symbol: Symbol) -> Script:
        """The script with noise that selects the symbol."""
        entry = self.winners[self.sign].index(symbol)
        return raised(self.script, self.place, entry, self.sign * HUGE)

    def chances(self) -> dict[Symbol, float]:
        """Probabilities of what is selected.

        If entries also win with very negative noise, the noise is inside an absolute
        value.
        """
        names, two_sided = self.winners[self.sign], self.winners[1] == self.winners[-1]
        top = self.quiet.after(0)(0.0)
        up, down = np.zeros(self.size), np.zeros(self.size)
        for entry, name in enumerate(names):
            if name != top:
                after = self.quiet.after(entry)
                up[entry] = threshold(after, name, self.sign)
                if two_sided:
                    down[entry] = threshold(after, name, -self.sign)
        kind = self.script[self.place].kind
        if two_sided:
            chances = two_sided_chances(up, down, names.index(top), kind)
        else:
            chances = one_sided_chances(-np.abs(up), kind)
        return dict(zip(names, chances.tolist(), strict=True))


def threshold(after: After, symbol: Symbol, sign: float) -> float:
    """Least change, of that sign, after which the symbol is selected."""
    if after(sign * HUGE) != symbol:
        return sign * math.inf
    low, high = 0.0, 1.0
    while after(sign * high) != symbol:
        low, high = high, 4 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if after(sign * middle) == symbol else (middle, high)
    return sign * high


def margins(replay: Replay) -> list[Shift]:
    """How far the noise at which an entry wins its first selection moves on D'.

    For entries that win neither on D nor on D' without their own noise, four at most.
    """
    seen, shifts = replay.run(0), list[Shift]()
    t = next(t for t in range(len(seen.views)) if seen.draws_of(t))
    place = seen.draws_of(t)[0]
    noise, script = seen.draws[place], list(seen.draws)
    for entry in np.random.default_rng(replay.seed).permutation(noise.unit.size)[:4]:
        without = np.array(noise.unit)
        without.flat[entry] = 0.0
        script[place] = Draw(noise.kind, without)
        sides = [
            Selection(replay, which, script, t, place).after(entry) for which in (0, 1)
        ]
        for sign in (1.0, -1.0):
            names = {side(sign * HUGE) for side in sides}
            if len(names) > 1 or names & {side(0.0) for side in sides}:
                continue
            name = names.pop()
            one, two = (threshold(side, name, sign) for side in sides)
            shifts.append(Shift(t, selection(replay.subject), np.array([two - one])))
    return shifts


# --- chances --------------------------------------------------------------------------


def one_sided_chances(scores: Array, kind: str) -> Array:
    """Chances that score + noise is largest, (K,); Gumbel noise in closed form."""
    if kind == "gumbel":
        weights = np.exp(scores - scores.max())
        return weights / weights.sum()
    x, weights = _rule(scores, -_FAR, _FAR)
    law = LAWS[kind]
    densities = law.pdf(x - scores[:, None])
    return _winning(densities, law.cdf(x - scores[:, None]), weights)


def two_sided_chances(up: Array, down: Array, best: int, kind: str) -> Array:
    """The same for abs(value + noise), from thresholds above and below; (K,)."""
    values = -0.5 * (up + down)
    other = 0 if best else 1
    values[best] = 0.5 * abs(up[other] - down[other])
    x, weights = _rule(np.concatenate([np.abs(values), [0.0]]), 0.0, _FAR)
    law = LAWS[kind]
    low, high = (x - sign * values[:, None] for sign in (1, -1))
    densities = law.pdf(low) + law.pdf(high)
    return _winning(densities, law.cdf(low) - law.cdf(-high), weights)


def _rule(kinks: Array, before: float, beyond: float) -> tuple[Array, Array]:
    """Nodes and weights of an integral whose integrand has kinks; flat."""
    points = np.unique(np.clip(kinks, -2 * _FAR, 2 * _FAR))
    low, high = points[0] + min(before, 0.0), points[-1] + beyond
    edges = np.concatenate([[low], points, [high]])
    panels = [
        np.linspace(a, b, 1 + max(1, math.ceil((b - a) / _PANEL)))
        for a, b in pairwise(edges)
        if b > a
    ]
    ends = np.unique(np.concatenate(panels))
    half, middle = 0.5 * np.diff(ends), 0.5 * (ends[1:] + ends[:-1])
    x = middle[:, None] + half[:, None] * _NODES
    return x.ravel(), (half[:, None] * _WEIGHTS).ravel()


def _winning(densities: Array, below: Array, weights: Array) -> Array:
    chances = []
    for entry in range(len(densities)):
        others = np.prod(np.delete(below, entry, axis=0), axis=0)
        chances.append(float((weights * densities[entry] * others).sum()))
    total = np.array(chances)
    return total / total.sum()
