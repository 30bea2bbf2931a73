"""The law of a run on a pair, measured on the implementation without a random error.

Coupled runs show how far the noise of a release is moved, and the law of unit draws is
known (the rung ``noise`` tests it). If the shifts are the same after several histories,
the releases compose as independent ones. Runs of selections alone form a tree, all of
whose paths are followed.
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
    Replay,
    Script,
    Selection,
    Shift,
    Symbol,
    additive,
    is_bent,
    selects,
)
from dperm.audit.subjects import Array, Subject, Transcript
from dperm.core.privacy.ledger import Gaussian, Laplace, SampledGaussian

MANY = 8  # candidates of a selection, beyond which its chances are not computed
PATHS = 40  # selections of a tree that are measured
_ALIKE = 1e-4  # relative, between measurements after different histories
_MOST = 500_000  # cells of a selection and its release


@dataclass(frozen=True)
class Step:
    """What one view reveals about the record."""

    mu: float  #: of plain Gaussian releases
    cells: tuple[Cells, ...] = ()  #: of all other releases, which are independent

    def is_like(self, other: Step) -> bool:
        """Whether both cost the same, up to rounding."""
        near = math.isclose(self.mu, other.mu, rel_tol=_ALIKE, abs_tol=1e-12)
        pairs = list(zip(self.cells, other.cells, strict=False))
        return (
            near
            and len(self.cells) == len(other.cells) == len(pairs)
            and all(one.is_like(two, _ALIKE) for one, two in pairs)
        )


Steps = dict[tuple[int, int], list[Step] | None]  # by a pair's identity and a seed


def measured_epsilon(
    subject: Subject,
    pair: Pair,
    seeds: Sequence[int],
    taken: Sequence[int] | None,
    known: Steps | None = None,
) -> float | None:
    """Epsilon of the whole run on a pair; None where it cannot be measured.

    Parameters
    ----------
    seeds : sequence of int
        Of the histories.
    taken : sequence of int, optional
        The replaced record for every step, if steps read a secret random one.
    known : dict, optional
        Steps measured before, by the pair's ``id``, so that pairs must be kept alive;
        more are added.
    """
    known = {} if known is None else known
    replay = Replay(subject, pair.first, pair.second, seeds[0], taken)
    if subject.hidden and not _others_are_alike(subject, pair, seeds[0]):
        return None
    first = Measure(replay)
    if has_many(subject, first.coupling.seen):
        return None
    if not first.coupling.possible:
        return math.inf
    at = (id(pair), seeds[0])
    if at not in known:
        known[at] = first.steps()
    steps = known[at]
    if steps is None:
        return None
    for seed in seeds[1:]:
        again = Measure(replay.seeded(seed)).steps()
        if again is None or not _all_alike(steps, again):
            return _tree_epsilon(replay)
    # of independent releases at delta; Gaussians in closed form
    mu = math.sqrt(sum(step.mu**2 for step in steps))
    others = [cells for step in steps for cells in step.cells if cells.loses()]
    if not others:
        return laws.gaussian_epsilon(mu, subject.delta) if mu else 0.0
    if mu:
        others.append(laws.gaussian_cells(mu))
    return laws.cells_epsilon(others, subject.delta)


def has_many(subject: Subject, seen: Transcript) -> bool:
    """Whether a selection has too many candidates to compute its chances."""
    views = (t for t in range(len(seen.views)) if selects(subject, seen, t))
    return any(seen.draws[seen.draws_of(t)[0]].unit.size > MANY for t in views)


def _all_alike(one: Sequence[Step], two: Sequence[Step]) -> bool:
    return len(one) == len(two) and all(
        a.is_like(b) for a, b in zip(one, two, strict=True)
    )


def _others_are_alike(subject: Subject, pair: Pair, seed: int) -> bool:
    """Whether it makes no difference on D' which record is read."""
    n = len(pair.first.y)
    script, views = subject.run(pair.first, seed).draws, []
    for other in [(pair.position + k) % n for k in (0, 1, n - 1)]:
        taken = [other] * (len(script) + 1)
        run = subject.run(pair.second, seed, script, taken)
        views.append(np.concatenate(run.views))
    return all(np.allclose(views[0], one, rtol=1e-12, atol=0) for one in views[1:])


class Measure:
    """The steps of a run after one history.

    Parameters
    ----------
    replay : Replay
        Its seed is that of the history on D.
    """

    def __init__(self, replay: Replay):
        self.replay, self.coupling = replay, replay.couple()

    def steps(self) -> list[Step] | None:
        """The step of every view; None where a law is not known."""
        if not self.coupling.possible:
            return None
        steps = []
        for t in range(len(self.coupling.seen.views)):
            step = self._step(t)
            if step is None:
                return None
            steps.append(step)
        return steps

    def _step(self, t: int) -> Step | None:
        seen = self.coupling.seen
        if selects(self.replay.subject, seen, t):
            # a selection, and the release that follows it
            sides = self.sides(t)
            one, two = (side.chances() for side in sides)
            if one.keys() != two.keys():  # not a selection as assumed here
                return None
            parts = []
            for symbol in sorted(one):
                value = self._value(t, symbol, sides)
                if value is None:
                    return None
                parts.append((one[symbol], two[symbol], value))
            return Step(0.0, (laws.mixed(parts),))
        shifts = self.coupling.at(t)
        if is_bent(self.replay.subject) or not self._is_affine(t):
            return None
        return step_of(shifts)

    def _is_affine(self, t: int) -> bool:
        """Whether the view is affine in its noise, also away from the drawn values."""
        seen = self.coupling.seen
        for place, _ in additive(self.replay.subject, seen, t):
            ones = np.ones(seen.draws[place].unit.size)
            views, here = [], seen.views[t]
            for by in (-1.0, 0.5):
                script = list(seen.draws)
                script[place] = script[place].moved(by * ones)
                views.append(self.replay.run(0, script, t).views[t])
            low, high = views
            if not np.allclose(here - low, 2 * (high - here), rtol=_ALIKE, atol=1e-12):
                return False
        return True

    def sides(self, t: int) -> list[Selection]:
        """The selection of view t on D and on D'."""
        place = self.coupling.seen.draws_of(t)[0]
        scripts = (list(self.coupling.seen.draws), self.coupling.script)
        return [Selection(self.replay, k, scripts[k], t, place) for k in (0, 1)]

    def _value(
        self, t: int, symbol: Symbol, sides: Sequence[Selection]
    ) -> Cells | None:
        """Cells of the release after a selection that is forced on D and D'."""
        if not additive(self.replay.subject, self.coupling.seen, t):
            return CERTAIN
        one, two = (side.forced(symbol) for side in sides)
        after = sides[0].place + 1
        two[after:] = one[after:]  # without the coupling's shifts
        seen, now = self.replay.run(0, one, t), self.replay.run(1, two, t)
        if seen.ends != now.ends:
            return None
        step = step_of(self.replay.release(seen, now, two, t)[0])
        if step is None:
            return None
        joint = laws.gaussian_cells(step.mu) if step.mu else CERTAIN
        for cells in step.cells:
            joint = joint.times(cells.coarse(_MOST // len(joint.first)))
        return joint


def step_of(shifts: Sequence[Shift]) -> Step | None:
    """The step of releases with these shifts; None where a law is not known."""
    squares, cells = 0.0, list[Cells]()
    if not all(math.isfinite(shift.size) for shift in shifts):
        return Step(0.0, (laws.APART,))
    for shift in shifts:
        event = shift.event
        if isinstance(event, Gaussian) or (
            isinstance(event, GeneralisedGaussian) and event.order == 2
        ):
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


def _is_known(shift: Array) -> bool:
    return (
        shift.size == 2
        or len(np.flatnonzero(np.abs(shift) > 1e-9 * np.abs(shift).max())) == 1
    )


# --- trees ----------------------------------------------------------------------------


def _tree_epsilon(replay: Replay) -> float | None:
    """Epsilon by all paths, where only selections are released, and few of them."""
    whole = replay.run(0)
    views = range(len(whole.views))
    only = all(
        len(whole.draws_of(t)) == 1 and selects(replay.subject, whole, t) for t in views
    )
    size = whole.draws[0].unit.size if whole.draws else 0
    if not only or size ** len(views) > PATHS * size:
        return None
    first, second = _paths(replay, list(whole.draws), 0)
    delta = replay.subject.delta
    return laws.cells_epsilon([Cells(np.array(first), np.array(second))], delta)


def _paths(replay: Replay, script: Script, t: int) -> tuple[list[float], list[float]]:
    """Chances on D and on D' of all that can follow the script's first t draws."""
    if t == len(script):
        return [1.0], [1.0]
    sides = [Selection(replay, which, script, t, t) for which in (0, 1)]
    one, two = (side.chances() for side in sides)
    first, second = list[float](), list[float]()
    for symbol in one:
        after = _paths(replay, sides[0].forced(symbol), t + 1)
        first += [one[symbol] * p for p in after[0]]
        second += [two[symbol] * q for q in after[1]]
    return first, second
