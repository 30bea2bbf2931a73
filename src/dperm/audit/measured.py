"""The law of a run on a pair, measured on the implementation without a random error.

Coupled runs show by how much the noise of every release is moved, and forced selections
how far the candidates lie apart. The law of unit draws is known (the rung ``noise``
tests it), so what a release costs on this pair is known too. If it is the same whatever
came out before, which is looked at after several histories, the releases compose as
independent ones. Selections alone make a tree, all of whose paths are followed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dperm.accountants.generalised_gaussian import GeneralisedGaussian
from dperm.audit import laws
from dperm.audit.laws import CERTAIN, Cells
from dperm.audit.neighbours import Pair
from dperm.audit.replay import (
    Coupling,
    Replay,
    Script,
    Selection,
    Shift,
    Symbol,
    additive,
    is_bent,
    selects,
)
from dperm.audit.subjects import Array, Seed, Subject, Transcript
from dperm.core.privacy.ledger import Event, Gaussian, Laplace, SampledGaussian

MANY = 8  # candidates of a selection, beyond which its chances are not computed
PATHS = 40  # selections of a tree that are measured
_ALIKE = 1e-4  # relative, of what is measured after other histories
_MOST = 500_000  # cells of a selection with what is released after it


@dataclass(frozen=True)
class Step:
    """What one view tells of the record.

    Attributes
    ----------
    mu : float
        Of plain Gaussian releases.
    cells : tuple of Cells
        Of all else, independent ones.
    """

    mu: float
    cells: tuple[Cells, ...] = ()

    def is_like(self, other: Step) -> bool:
        """Whether both cost the same, up to rounding."""
        near = math.isclose(self.mu, other.mu, rel_tol=_ALIKE, abs_tol=1e-12)
        pairs = list(zip(self.cells, other.cells, strict=False))
        return (
            near
            and len(self.cells) == len(other.cells) == len(pairs)
            and all(one.is_like(two, _ALIKE) for one, two in pairs)
        )


def measured_epsilon(
    subject: Subject, pair: Pair, seeds: Sequence[int], taken: Sequence[int] | None
) -> float | None:
    """Epsilon of the whole run on a pair; None where it cannot be known this way.

    Parameters
    ----------
    subject : Subject
    pair : Pair
    seeds : sequence of int
        Of the histories.
    taken : sequence of int, optional
        The replaced record in every step, where a step reads a secret one.
    """
    replay = Replay(subject, pair.first, pair.second)
    if subject.hidden and not _others_are_alike(replay, pair, seeds[0]):
        return None
    first = Measure(replay, seeds[0], taken)
    if has_many(subject, first.coupling.seen):
        return None
    if not first.coupling.possible:
        return math.inf
    steps = first.steps()
    if steps is None:
        return None
    for seed in seeds[1:]:
        again = Measure(replay, seed, taken).steps()
        if again is None or not _all_alike(steps, again):
            return _tree_epsilon(replay, seeds[0])
    return _epsilon(steps, subject.delta)


def has_many(subject: Subject, seen: Transcript) -> bool:
    """Whether a selection has too many candidates to compute its chances."""
    views = (t for t in range(len(seen.views)) if selects(subject, seen, t))
    return any(seen.draws[seen.draws_of(t)[0]].unit.size > MANY for t in views)


def _all_alike(one: Sequence[Step], two: Sequence[Step]) -> bool:
    return len(one) == len(two) and all(
        a.is_like(b) for a, b in zip(one, two, strict=True)
    )


def _epsilon(steps: Sequence[Step], delta: float) -> float:
    """Of independent releases at delta; Gaussians in closed form."""
    mu = math.sqrt(sum(step.mu**2 for step in steps))
    others = [cells for step in steps for cells in step.cells if cells.loses()]
    if not others:
        return laws.gaussian_epsilon(mu, delta) if mu else 0.0
    if mu:
        others.append(laws.gaussian_cells(mu))
    return laws.cells_epsilon(others, delta)


def _others_are_alike(replay: Replay, pair: Pair, seed: int) -> bool:
    """Whether it makes no difference on D' which record is read."""
    n = len(pair.first.y)
    others = [(pair.position + k) % n for k in (0, 1, n - 1)]
    script = replay.run(0, seed, (), None).draws
    views = [
        np.concatenate(replay.run(1, seed, script, [other] * (len(script) + 1)).views)
        for other in others
    ]
    return all(np.allclose(views[0], one, rtol=1e-12, atol=0) for one in views[1:])


class Measure:
    """The steps of a run after one history.

    Parameters
    ----------
    replay : Replay
    seed : int
        Of the history on D.
    taken : sequence of int, optional
    """

    def __init__(self, replay: Replay, seed: Seed, taken: Sequence[int] | None):
        self.replay, self.seed, self.taken = replay, seed, taken
        self.coupling: Coupling = replay.couple(seed, taken)

    def steps(self) -> list[Step] | None:
        """What every view tells; None where a law is not known."""
        if not self.coupling.possible:
            return None
        found = []
        for t in range(len(self.coupling.seen.views)):
            step = self._step(t)
            if step is None:
                return None
            found.append(step)
        return found

    def _step(self, t: int) -> Step | None:
        seen = self.coupling.seen
        if selects(self.replay.subject, seen, t):
            return self._selecting(t)
        shifts = self.coupling.at(t)
        if is_bent(self.replay.subject) or not self._is_affine(t):
            return None
        return step_of(shifts)

    def _is_affine(self, t: int) -> bool:
        """Whether the view follows its noise, also far from where it was drawn."""
        seen = self.coupling.seen
        for place, _ in additive(self.replay.subject, seen, t):
            ones = np.ones(seen.draws[place].unit.size)
            views = []
            for by in (-1.0, 0.0, 0.5):
                script = list(seen.draws)
                script[place] = script[place].moved(by * ones)
                views.append(
                    self.replay.run(0, self.seed, script, self.taken, t).views[t]
                )
            low, here, high = views
            if not np.allclose(here - low, 2 * (high - here), rtol=_ALIKE, atol=1e-12):
                return False
        return True

    def _selecting(self, t: int) -> Step | None:
        """A selection, and what is released of the selected."""
        place = self.coupling.seen.draws_of(t)[0]
        scripts = (list(self.coupling.seen.draws), self.coupling.script)
        sides = [
            Selection(self.replay, k, self.seed, scripts[k], t, place, self.taken)
            for k in (0, 1)
        ]
        one, two = (side.chances() for side in sides)
        if one.keys() != two.keys():  # then the chances are not what they are taken for
            return None
        parts = []
        for symbol in sorted(one):
            value = self._value(t, symbol, sides)
            if value is None:
                return None
            parts.append((one[symbol], two[symbol], value))
        return Step(0.0, (laws.mixed(parts),))

    def _value(
        self, t: int, symbol: Symbol, sides: Sequence[Selection]
    ) -> Cells | None:
        """What is released after a selection that is forced on both."""
        if not additive(self.replay.subject, self.coupling.seen, t):
            return CERTAIN
        one, two = (side.forced(symbol) for side in sides)
        after = sides[0].place + 1
        two[after:] = one[after:]  # not yet moved so that D' says the same
        seen, now = (
            self.replay.run(k, self.seed, script, self.taken, t)
            for k, script in enumerate((one, two))
        )
        if seen.ends != now.ends:
            return None
        given = (t, self.seed, self.taken)
        return _together(step_of(self.replay.release(seen, now, two, *given)))


def _together(step: Step | None) -> Cells | None:
    """A step's releases as one; None if it is not known."""
    if step is None:
        return None
    found = laws.gaussian_cells(step.mu) if step.mu else CERTAIN
    for cells in step.cells:
        found = found.times(cells.coarse(_MOST // len(found.first)))
    return found


def step_of(shifts: Sequence[Shift]) -> Step | None:
    """What releases tell whose noise is moved so; None where a law is not known."""
    squares, cells = 0.0, list[Cells]()
    if not all(math.isfinite(shift.size) for shift in shifts):
        return Step(0.0, (laws.APART,))
    for shift in shifts:
        event = shift.event
        if isinstance(event, Gaussian) or _is_normal(event):
            squares += shift.size**2
        elif isinstance(event, SampledGaussian):
            cells.append(laws.gaussian_cells(shift.size, event.sampling_rate))
        elif isinstance(event, Laplace):
            cells += [laws.laplace_cells(abs(float(one))) for one in shift.units if one]
        elif isinstance(event, GeneralisedGaussian) and _is_known(shift.units):
            cells.append(laws.norm_cells(shift.units, event.order))
        else:
            return None
    return Step(math.sqrt(squares), tuple(cells))


def _is_normal(event: Event) -> bool:
    return isinstance(event, GeneralisedGaussian) and event.order == 2


def _is_known(shift: Array) -> bool:
    return (
        shift.size == 2
        or len(np.flatnonzero(np.abs(shift) > 1e-9 * np.abs(shift).max())) == 1
    )


# --- trees ----------------------------------------------------------------------------


def _tree_epsilon(replay: Replay, seed: int) -> float | None:
    """Where nothing but selections is released, and few of them: all their paths."""
    whole = replay.run(0, seed, ())
    views = range(len(whole.views))
    only = all(
        len(whole.draws_of(t)) == 1 and selects(replay.subject, whole, t) for t in views
    )
    size = whole.draws[0].unit.size if whole.draws else 0
    if not only or size ** len(views) > PATHS * size:
        return None
    first, second = _paths(replay, seed, list(whole.draws), 0)
    delta = replay.subject.delta
    return laws.cells_epsilon([Cells(np.array(first), np.array(second))], delta)


def _paths(
    replay: Replay, seed: int, script: Script, t: int
) -> tuple[list[float], list[float]]:
    """Chances on D and on D' of all that can follow the script's first t draws."""
    if t == len(script):
        return [1.0], [1.0]
    sides = [Selection(replay, which, seed, script, t, t) for which in (0, 1)]
    one, two = (side.chances() for side in sides)
    first, second = list[float](), list[float]()
    for symbol in one:
        after = _paths(replay, seed, sides[0].forced(symbol), t + 1)
        first += [one[symbol] * p for p in after[0]]
        second += [two[symbol] * q for q in after[1]]
    return first, second


def losses(replay: Replay, seeds: Sequence[int]) -> Array:
    """Of the transcripts o of fresh runs on D, log P(o | D) / P(o | D'); one a seed.

    Not for runs that read secret random records.
    """
    return np.array([_loss(replay, seed) for seed in seeds])


def _loss(replay: Replay, seed: int) -> float:
    at = Measure(replay, seed, None)
    coupling, seen = at.coupling, at.coupling.seen
    if not coupling.possible:
        return math.inf
    total = 0.0
    for t in range(len(seen.views)):
        if selects(replay.subject, seen, t):
            total += _selection_loss(at, t)
        for place, _ in additive(replay.subject, seen, t):
            total += seen.draws[place].log_density()
            total -= coupling.script[place].log_density()
        if is_bent(replay.subject):
            total += replay.log_volume(1, seed, coupling.script, t)
            total -= replay.log_volume(0, seed, seen.draws, t)
    return total


def _selection_loss(at: Measure, t: int) -> float:
    seen, replay = at.coupling.seen, at.replay
    place, scripts = seen.draws_of(t)[0], (list(seen.draws), at.coupling.script)
    symbol = replay.subject.symbol(seen.views[t])
    one, two = (
        Selection(replay, which, at.seed, scripts[which], t, place).chances()
        for which in (0, 1)
    )
    return math.log(max(one.get(symbol, 0.0), 1e-300)) - math.log(
        max(two.get(symbol, 0.0), 1e-300)
    )
