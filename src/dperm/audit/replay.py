"""The noise with which a run on D' repeats a run on D, and how far it was moved.

The replay finds, release by release, the shift of the noise with which D' gives the
views of D. Privacy proofs bound the shift: by sensitivity over scale for a release; for
report noisy max, by how far the noise moves at which a candidate wins; for a sketch, by
the change of the covariance of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dperm.audit.mechanism import (
    LAWS,
    Array,
    Draw,
    Mechanism,
    Pair,
    Transcript,
)
from dperm.privacy.events import Event, Gaussian, Laplace, SampledGaussian
from dperm.privacy.mechanisms.generalised_gaussian import GeneralisedGaussian
from dperm.privacy.mechanisms.noisy_max import NoisyMax, TopK
from dperm.privacy.mechanisms.perturbed_objective import PerturbedObjective
from dperm.privacy.mechanisms.sketch import GaussianSketch

SAME = 1e-9  # units of noise: a shift that counts as none
DECIDING_NOISE = 1e5  # noise that decides any selection
_LEAST_STEP = 1e-6  # of slopes, in units of the noise
_ROUNDS = 40  # of correction, where a view is not affine
_FINE = 1e-9  # units of noise: how finely a threshold is found
_MIXED = 1e-6  # relative error of a repeated sketch
_DONE = 1e-12  # relative to the view, or units of noise: negligible
_LEFT = 1e-6  # of the noise, and of the view, that may stay unmatched
_ROUGH = 1e-11
_ENTRIES = 3  # of a selection, whose thresholds are compared
_MAX_GAP = 128.0  # units of noise: a gap beyond which nothing is gained
# events by the noise that hides them
HIDES: dict[str, tuple[type[Event], ...]] = {
    "gaussian": (
        Gaussian,
        SampledGaussian,
        PerturbedObjective,
        GaussianSketch,
    ),
    "generalised_gaussian": (GeneralisedGaussian,),
    "laplace": (Laplace, NoisyMax),
    "gumbel": (NoisyMax,),
}


@dataclass(frozen=True)
class Shift:
    """The shift that one draw behind view ``step`` needs, in units of its scale."""

    step: int
    event: Event
    units: Array

    @property
    def size(self) -> float:
        """The shift in the norm of the noise's density."""
        units = np.abs(self.units)
        if not np.isfinite(units).all():
            return math.inf
        if isinstance(self.event, Laplace | NoisyMax):
            return float(units.max(initial=0.0))
        order = getattr(self.event, "order", 2.0)
        return float((units**order).sum() ** (1 / order))

    @property
    def moved(self) -> int:
        """How many releases it moves: numbers of Laplace noise are one each."""
        is_number = isinstance(self.event, Laplace)
        return int((np.abs(self.units) > SAME).sum()) if is_number else 1

    @property
    def declared(self) -> float:
        """The bound that the ledger states; infinity where it states none."""
        event = self.event
        if not event.sound:
            return math.inf
        if not event.scale:
            return 0.0
        if isinstance(event, NoisyMax):
            return 2 * event.sensitivity / event.scale
        bound = 1 / event.noise_multiplier
        if isinstance(event, GaussianSketch):  # x x^T - z z^T over the floor
            return math.sqrt(2) * bound**2
        if isinstance(event, GeneralisedGaussian) and event.order > 2:
            # the noise's own norm has regularity order - 1, see ``size``
            bound *= math.sqrt(event.kappa / (event.order - 1))
        return bound

    @property
    def ratio(self) -> float:
        """Shift over the declared bound: at most 1 where the ledger is right."""
        if self.size <= SAME:
            return 0.0
        return self.size / self.declared if self.declared else math.inf


@dataclass(frozen=True)
class Coupling:
    """A run on D, and the shifts of the noise with which D' repeats it."""

    seen: Transcript
    shifts: list[Shift]
    other: (
        Transcript | None
    )  #: the run on D' with the same views; None if none has
    script: list[Draw]  #: the draws on D', as far as it repeats the run on D


def _weight(event: Event) -> float:
    """The shift that a ledger allows a draw; 1 where it states none."""
    allowed = Shift(0, event, np.zeros(0)).declared
    return allowed if 0 < allowed < math.inf else 1.0


class Replay:
    """A mechanism on two neighbours, both run from one seed.

    Where steps read a secret random record, they read the replaced one.
    """

    def __init__(self, m: Mechanism, pair: Pair, seed: int):
        self.m = m
        self.pair = pair
        self.seed = seed
        self.read_record = pair.position if m.hidden else None

    def run(
        self, which: int, script: Sequence[Draw] = (), until: float = math.inf
    ) -> Transcript:
        """A run on D (0) or D' (1)."""
        records = self.pair.second if which else self.pair.first
        return self.m.run(records, self.seed, script, self.read_record, until)

    def couple(self, history: Sequence[Draw] = ()) -> Coupling:
        """Run on D, with the history's noise as far as it goes, and repeat it on D'."""
        seen = self.run(0, history)
        script = list(seen.draws)
        shifts = list[Shift]()
        now = self.run(1, script)  # until the script changes
        for t in range(len(seen.views)):
            if len(now.views) <= t:
                now = self.run(1, script)
            forced = self.agree(seen, now, script, t)
            now = self.run(1, script, t + 1) if forced else now
            released = None
            if forced is not None and now.ends[: t + 2] == seen.ends[: t + 2]:
                released = self.release(seen, now, script, t)
            if released is None:
                never = Shift(t, self.m.ledger.events[-1], np.full(1, np.inf))
                return Coupling(seen, [*shifts, never], None, script)
            shifts += released[0]
            now = released[1]
        return Coupling(seen, shifts, self.run(1, script), script)

    def added(self, seen: Transcript, t: int) -> list[tuple[int, Event]]:
        """Draws behind view t that are added to something, with their events."""
        places = seen.behind(t)[1 if self.m.selects(seen, t) else 0 :]
        if self.m.events:
            return [(place, self.m.events[place]) for place in places]
        events = [
            e for e in self.m.ledger.events if not isinstance(e, NoisyMax)
        ]
        # of the draws, whose events are the ledger's first
        ahead_count = self.m.ahead
        ahead = events[:ahead_count]
        later = events[ahead_count:]
        pairs: list[tuple[int, Event]] = []
        for place in reversed(places):
            events = ahead if place < ahead_count else later
            event_types = HIDES.get(seen.draws[place].law, ())
            able = [
                k
                for k, event in enumerate(events)
                if isinstance(event, event_types)
            ]
            if able:
                pairs.insert(0, (place, events[able[-1]]))
                if len(able) > 1:
                    events.pop(able[-1])
        return pairs

    # --- releases ---------------------------------------------------------------------

    def release(
        self, seen: Transcript, now: Transcript, script: list[Draw], t: int
    ) -> tuple[list[Shift], Transcript] | None:
        """Shift the added noise of view t until D' repeats it; changes the script.

        Returns the shifts, and a run on D' with the script, at least to view t; None
        where no noise makes D' repeat it.
        """
        added = self.added(seen, t)
        if any(isinstance(event, GaussianSketch) for _, event in added):
            return self.mixed(seen, script, t)
        before = [script[place] for place, _ in added]
        step = 1.0
        for _ in range(_ROUNDS):
            missed = seen.views[t] - now.views[t]
            if (np.abs(missed) <= _DONE * np.abs(seen.views[t])).all():
                break
            units = self._needed(now, script, t, missed, step)
            if units is None:
                return None
            # Minima are not affine: slopes are measured as near as they are used.
            step = float(
                np.clip(np.abs(units).max(initial=0.0), _LEAST_STEP, 1.0)
            )
            move(script, [place for place, _ in added], units)
            now = self.run(1, script, t + 1)
            if np.abs(units).max(initial=0.0) <= _DONE:
                break
        else:
            return None
        moved = [
            Shift(t, event, np.ravel(script[place].unit - old.unit))
            for (place, event), old in zip(added, before, strict=True)
        ]
        return [shift for shift in moved if shift.size > SAME], now

    def _needed(
        self,
        now: Transcript,
        script: list[Draw],
        t: int,
        missed: Array,
        step: float,
    ) -> Array | None:
        """Shift of added noise that changes view t by ``missed``; None: none does.

        A view is affine in the noise; the slopes are measured, all at once where each
        number has separate noise, by a ``step`` of the noise.
        """
        added = self.added(now, t)
        places = [place for place, _ in added]
        size = sum(script[place].unit.size for place in places)

        def changed(units: Array) -> Array:
            """How the view of step t changes if noise of the script is replaced."""
            moved = list(script)
            move(moved, places, units)
            change: Array = self.run(1, moved, t).views[t] - now.views[t]
            return change

        if not size or not np.isfinite(missed).all():
            return None
        if missed.size == size:
            response = changed(np.ones(size))
            alone = np.divide(
                missed,
                response,
                out=np.zeros_like(response),
                where=response != 0,
            )
            if (
                np.abs(changed(alone) - missed).max()
                <= _LEFT * np.abs(missed).max()
            ):
                return alone
        slopes = (
            np.column_stack([changed(step * unit) for unit in np.eye(size)])
            / step
        )
        if not np.isfinite(slopes).all():
            return None
        # Each of several draws takes a part of the shift by what the ledger allows it.
        bounds = np.concatenate(
            [
                np.full(script[place].unit.size, _weight(event))
                for place, event in added
            ]
        )
        shares = np.linalg.lstsq(slopes * bounds, missed, rcond=1e-10)[0]
        units: Array = bounds * shares
        allowed = _LEFT * np.abs(slopes).max(axis=1) + _ROUGH * np.abs(
            now.views[t]
        )
        remainder = np.abs(slopes @ units - missed)
        return units if (remainder <= allowed).all() else None

    def mixed(
        self, seen: Transcript, script: list[Draw], t: int
    ) -> tuple[list[Shift], Transcript] | None:
        """Give D' the noise whose rows have the Gram matrix of view t.

        The shift is how far the covariance of the rows moves, in units of that on D.
        """
        place = seen.behind(t)[0]
        target = square(seen.views[t])
        event = self.m.events[place]
        drawn = script[place].unit
        assert isinstance(event, GaussianSketch)
        root_d, root_d_prime = (
            self.root(k, (seen.draws, script)[k], t, place) for k in (0, 1)
        )
        inner = (
            np.linalg.inv(root_d_prime)
            @ target
            @ np.linalg.inv(root_d_prime).T
        )
        rows = np.zeros((event.rows, len(root_d_prime)))
        rows[: len(root_d_prime)] = (
            math.sqrt(event.rows) * np.linalg.cholesky(inner).T
        )
        script[place] = Draw("gaussian", rows.reshape(drawn.shape))
        now = self.run(1, script, t + 1)
        if not np.allclose(
            now.views[t], seen.views[t], rtol=_MIXED, atol=_MIXED
        ):
            return None
        relative = np.linalg.inv(root_d) @ root_d_prime
        change = relative @ relative.T - np.eye(len(root_d))
        return [Shift(t, event, np.ravel(change))], now

    def root(
        self, which: int, script: Sequence[Draw], t: int, place: int
    ) -> Array:
        """The matrix A whose product with normal numbers is a row of the sketch.

        Its columns are seen, up to their signs, in sketches of rows that are unit
        vectors; the sum of all columns tells the signs, up to a common one.
        """
        event = self.m.events[place]
        drawn = script[place].unit
        assert isinstance(event, GaussianSketch)
        width = drawn.size // event.rows
        changed = list(script)

        def mixed(row: Array) -> Array:
            """A row times A, or its opposite."""
            unit = np.zeros((event.rows, width))
            unit[0] = math.sqrt(event.rows) * row
            changed[place] = Draw("gaussian", unit.reshape(drawn.shape))
            gram = square(self.run(which, changed, t).views[t])
            largest = int(np.argmax(np.diag(gram)))
            with np.errstate(all="ignore"):  # where it is no Gram matrix
                return np.asarray(
                    gram[largest] / np.sqrt(gram[largest, largest])
                )

        columns = np.column_stack([mixed(unit) for unit in np.eye(width)])
        return columns * np.sign(
            np.linalg.solve(columns, mixed(np.ones(width)))
        )

    # --- selections -------------------------------------------------------------------

    def agree(
        self, seen: Transcript, now: Transcript, script: list[Draw], t: int
    ) -> bool | None:
        """Make D' select at view t as D did; changes the script.

        Returns whether noise had to be changed; None where no noise makes it.
        """
        if not self.m.selects(seen, t):
            return False
        name = self.m.select(seen.views[t])
        if self.m.select(now.views[t]) == name:
            return False
        place = seen.behind(t)[0]
        if self._is_top(place):
            unit = script[place].unit.copy()
            for rank, winner in enumerate(name):
                unit.flat[int(winner)] += DECIDING_NOISE * (len(name) - rank)
            script[place] = replace(script[place], unit=unit)
            return True
        for coordinate in range(script[place].unit.size):
            for by in (DECIDING_NOISE, -DECIDING_NOISE):
                if self.selected(1, script, t, place, coordinate, by) == name:
                    script[place] = raised(script[place], coordinate, by)
                    return True
        return None

    def selected(
        self,
        which: int,
        script: list[Draw],
        t: int,
        place: int,
        coordinate: int,
        by: float,
    ) -> tuple:
        """What is selected at view t if one number of a draw is raised.

        Of the best of several, the first: the others may differ.
        """
        name = self.chosen(which, script, t, place, coordinate, by)
        return name[:1] if self._is_top(place) else name

    def chosen(
        self,
        which: int,
        script: list[Draw],
        t: int,
        place: int,
        coordinate: int,
        by: float,
    ) -> tuple:
        """All that is selected."""
        changed = list(script)
        changed[place] = raised(script[place], coordinate, by)
        return self.m.select(self.run(which, changed, t).views[t])

    def upset(self, seen: Transcript, t: int) -> float:
        """Upper bound on the chance that noise decides what D selects at view t.

        The gap is noise that changes nothing on any entry: where all numbers stay
        within half of it, the same entry wins as without noise.
        """
        place = seen.behind(t)[0]
        gap = _MAX_GAP
        noise = seen.draws[place]
        bare = list(seen.draws)
        bare[place] = replace(noise, unit=np.zeros_like(noise.unit))
        wins = partial(self.chosen, 0, bare, t, place)
        name = wins(0, 0.0)
        for coordinate in range(noise.unit.size):
            while gap > 1 and {
                wins(coordinate, gap),
                wins(coordinate, -gap),
            } != {name}:
                gap /= 2
        law = LAWS[noise.law]
        outside = float(law.sf(gap / 2) + law.cdf(-gap / 2))
        return noise.unit.size * outside if gap > 1 else 1.0

    def _is_top(self, place: int) -> bool:
        return bool(self.m.events) and isinstance(self.m.events[place], TopK)

    def margins(
        self, seen: Transcript, script: list[Draw], t: int
    ) -> list[Shift]:
        """How far the noise at which an entry wins selection t moves on D'.

        By the ``script`` D' has released before what D has. Only a few entries are
        tried, which win neither on D nor on D' without their own noise. A shift is
        infinite if the noise of two entries, however large, leaves the same winner,
        which can be one of them only.
        """
        place = seen.behind(t)[0]
        shifts = list[Shift]()
        idle = list[set[tuple]]()
        noise = seen.draws[place]
        event = max(self.m.selections, key=lambda e: e.sensitivity / e.scale)
        coordinates = np.random.default_rng(self.seed).permutation(
            noise.unit.size
        )
        for coordinate in coordinates[:_ENTRIES]:
            bare = raised(noise, coordinate, -noise.unit.flat[coordinate])
            sides = [
                partial(
                    self.selected,
                    which,
                    [*draws[:place], bare, *draws[place + 1 :]],
                    t,
                    place,
                    coordinate,
                )
                for which, draws in enumerate((seen.draws, script))
            ]
            unforced = {wins(by=0.0) for wins in sides}
            forced = [
                {wins(by=sign * DECIDING_NOISE) for wins in sides}
                for sign in (1, -1)
            ]
            if unforced == forced[0] == forced[1]:
                idle.append(unforced)
            for sign, names in zip((1.0, -1.0), forced, strict=True):
                if len(names) > 1 or names & unforced:
                    continue  # it wins by itself, or never does
                raise_d, raise_d_prime = (
                    threshold(w, sign, *names) for w in sides
                )
                shifts.append(
                    Shift(t, event, np.array([raise_d_prime - raise_d]))
                )
        never = Shift(t, event, np.full(1, np.inf))
        is_stuck = any(idle.count(names) > 1 for names in idle)
        return [never] if is_stuck else shifts


def threshold(select: Callable[..., tuple], sign: float, name: tuple) -> float:
    """The least raise of a number, with that sign, after which ``name`` is selected."""

    def wins(size: float) -> bool:
        """Whether the candidate wins with that much more noise."""
        return select(by=sign * size) == name

    low = 0.0
    high = 1.0
    while not wins(high):
        low = high
        high = 4 * high
    while high - low > _FINE * max(high, 1.0):
        middle = (low + high) / 2
        if wins(middle):
            high = middle
        else:
            low = middle
    return high


def raised(draw: Draw, coordinate: int, by: float) -> Draw:
    """The draw with one number raised."""
    shift = np.zeros(draw.unit.size)
    shift[coordinate] = by
    return draw.moved(shift)


def move(script: list[Draw], places: Sequence[int], units: Array) -> None:
    """Add shifts, one after the other, to the draws at some places of a script."""
    ends = np.cumsum([script[place].unit.size for place in places])[:-1]
    for place, shift in zip(places, np.split(units, ends), strict=True):
        script[place] = script[place].moved(shift)


def square(view: Array) -> Array:
    """The symmetric matrix of its coordinates with the Frobenius norm."""
    p = int((math.sqrt(8 * view.size + 1) - 1) / 2)
    rows, columns = np.triu_indices(p)
    matrix = np.zeros((p, p))
    matrix[rows, columns] = view / np.where(rows == columns, 1.0, math.sqrt(2))
    matrix[columns, rows] = matrix[rows, columns]
    return matrix
