"""Selections by report noisy max, as functions of the noise of their candidates.

Scores are measured in units of the noise: by how much a candidate's noise must rise to
win. Once they are known, so are the chances of all candidates, by an integral.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from dperm.audit.shifts import Script, Shift, raised, selection
from dperm.audit.subjects import Array, Seed, Transcript
from dperm.audit.taps import Draw

if TYPE_CHECKING:
    from dperm.audit.replay import Replay

HUGE = 1e5  # noise that decides any selection
_HALVINGS = 34  # of the noise at which a selection changes
_PANEL = 1.0  # width at most, of a Gauss-Legendre rule between kinks
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_FAR = 45.0  # beyond it a density is nothing

Symbol = tuple[int, ...]
After = Callable[[float], Symbol]

LAWS = {
    "laplace": stats.laplace,
    "exponential": stats.expon,
    "gumbel": stats.gumbel_r,
}


class Selection:
    """One selection of a run on D (0) or D' (1), after a script.

    Parameters
    ----------
    replay : Replay
    which : {0, 1}
    seed : int
    script : list of Draw
    t : int
        The view that tells it.
    taken : sequence of int, optional
    """

    def __init__(
        self,
        replay: Replay,
        which: int,
        seed: Seed,
        script: Script,
        t: int,
        place: int,
        taken: Sequence[int] | None = None,
    ):
        self.replay, self.which, self.seed = replay, which, seed
        self.script, self.t, self.place, self.taken = script, t, place, taken
        self.size = script[place].unit.size

    def after(self, entry: int) -> After:
        """What is selected, as a function of what an entry's noise is raised by."""

        def symbol(change: float) -> Symbol:
            changed = raised(self.script, self.place, entry, change)
            given = (self.which, self.seed, changed, self.taken, self.t)
            return self.replay.subject.symbol(self.replay.run(*given).views[self.t])

        return symbol

    @cached_property
    def quiet(self) -> Selection:
        """The same without the selection's own noise."""
        script = list(self.script)
        kind = script[self.place].kind
        script[self.place] = Draw(kind, np.zeros_like(script[self.place].unit))
        at = (self.t, self.place, self.taken)
        return Selection(self.replay, self.which, self.seed, script, *at)

    @cached_property
    def winners(self) -> dict[float, list[Symbol]]:
        """Who wins when each entry's noise is very large, or very negative."""
        entries = [self.quiet.after(entry) for entry in range(self.size)]
        return {s: [after(s * HUGE) for after in entries] for s in (1.0, -1.0)}

    @property
    def sign(self) -> float:
        """Of the noise that makes an entry win."""
        return 1.0 if len(set(self.winners[1.0])) == self.size else -1.0

    def forced(self, symbol: Symbol) -> Script:
        """The script with noise that selects the symbol."""
        entry = self.winners[self.sign].index(symbol)
        return raised(self.script, self.place, entry, self.sign * HUGE)

    def chances(self) -> dict[Symbol, float]:
        """Probabilities of what is selected.

        An entry that also wins with very negative noise is one whose noise is inside an
        absolute value.
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
            found = two_sided_chances(up, down, names.index(top), kind)
        else:
            found = one_sided_chances(-np.abs(up), kind)
        return dict(zip(names, found.tolist(), strict=True))


def threshold(after: After, wanted: Symbol, sign: float) -> float:
    """Least change, of that sign, after which the selection is the wanted one."""
    if after(sign * HUGE) != wanted:
        return sign * math.inf
    low, high = 0.0, 1.0
    while after(sign * high) != wanted:
        low, high = high, 4 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if after(sign * middle) == wanted else (middle, high)
    return sign * high


# --- what a replacement needs ---------------------------------------------------------


def reselect(
    replay: Replay,
    seen: Transcript,
    now: Transcript,
    script: Script,
    t: int,
    seed: Seed,
    taken: Sequence[int] | None,
) -> Shift | None:
    """Raise the winner's own noise until D' selects it too; changes the script."""
    symbol = replay.subject.symbol(seen.views[t])
    if replay.subject.symbol(now.views[t]) == symbol:
        return None
    place, best = seen.draws_of(t)[0], (math.inf, 0)
    other = Selection(replay, 1, seed, script, t, place, taken)
    for entry, sign in replay.ways(symbol, other):
        found = threshold(other.after(entry), symbol, sign)
        if abs(found) < abs(best[0]):
            best = (found, entry)
    if math.isfinite(best[0]):
        script[place] = raised(script, place, best[1], best[0] * (1 + 1e-9))[place]
    return Shift(t, selection(replay.subject), np.array([best[0]]))


def margins(replay: Replay, seed: Seed, taken: Sequence[int] | None) -> list[Shift]:
    """By how much the noise at which an entry wins its first selection moves.

    For entries that win neither on D nor on D' without noise of their own; four of
    them, where there are more.
    """
    seen, found = replay.run(0, seed, (), taken), list[Shift]()
    t = next(t for t in range(len(seen.views)) if seen.draws_of(t))
    place = seen.draws_of(t)[0]
    state = seed if isinstance(seed, int) else seed[0]
    entries = np.random.default_rng(state).permutation(seen.draws[place].unit.size)
    for entry in entries[:4]:
        script = list(seen.draws)
        without = np.array(script[place].unit)
        without.flat[entry] = 0.0
        script[place] = Draw(script[place].kind, without)
        at = (seed, script, t, place, taken)
        sides = [Selection(replay, which, *at).after(entry) for which in (0, 1)]
        for sign in (1.0, -1.0):
            names = {side(sign * HUGE) for side in sides}
            if len(names) > 1 or names & {side(0.0) for side in sides}:
                continue
            name = names.pop()
            one, two = (threshold(side, name, sign) for side in sides)
            found.append(Shift(t, selection(replay.subject), np.array([two - one])))
    return found


# --- chances --------------------------------------------------------------------------


def one_sided_chances(scores: Array, kind: str) -> Array:
    """Chances that score + noise is largest, (K,); Gumbel noise in closed form."""
    if kind == "gumbel":
        weights = np.exp(scores - scores.max())
        found: Array = weights / weights.sum()
        return found
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
    found: Array = total / total.sum()
    return found
