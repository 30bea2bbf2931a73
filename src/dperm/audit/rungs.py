"""The rungs of the audit, each a function of a subject; they know no solver.

1. ``noise``: what is drawn has the law it should have, and is independent.
2. ``streams``: noise and sampling share no stream, and the tap hears all.
3. ``sensitivity``: no neighbour needs the noise shifted beyond the declared bound, and
   some neighbour needs it shifted at all.
4. ``count``: no more releases move with a record than the ledger states.
5. ``published``: the weights follow from the releases, and from nothing else.
6. ``step``: one step on the loudest pair, told apart by what it releases.
7. ``transcript``: what whole runs cost on the worst pair, from the measured laws.
8. ``canary``: the published weights alone, told apart.
9. ``accountants``: ours against an independent one, which may find more or less.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np

from dperm.audit.accountants import accountants
from dperm.audit.climbing import ROUNDING, Finding, Ladder
from dperm.audit.listening import independent, noise
from dperm.audit.measured import Measure
from dperm.audit.replay import Replay
from dperm.audit.shifts import SAME, Shift, selects
from dperm.audit.telling import canary, step
from dperm.privacy.ledger import Laplace
from dperm.privacy.noisy_max import NoisyMax

BLIND = "blind: no neighbour moved anything"
_GRID = 1e-3  # relative, between accountants
REPEATED = 1e-4  # relative, of weights whose releases agree but for rounding


def sensitivity(ladder: Ladder) -> Finding:
    """The largest shift that is needed over the declared one."""
    tightness: dict[str, float] = {}
    for shift in ladder.shifts:
        kind = type(shift.event).__name__
        tightness[kind] = max(tightness.get(kind, 0.0), shift.ratio)
    worst = max(tightness.values(), default=0.0)
    if not any(shift.size > SAME for shift in ladder.shifts):
        return Finding("sensitivity", 0.0, 1.0, True, BLIND)
    found = [s.size / s.published for s in ladder.shifts if s.published]
    notes = [f"{kind} {ratio:.3f}" for kind, ratio in tightness.items()]
    if max(found, default=0.0) > max(worst, 1.0) + ROUNDING:
        notes.append(f"{max(found):.2f} times the published bound")
    caught = worst > 1 + ROUNDING
    return Finding("sensitivity", worst, 1.0, caught, ", ".join(notes))


def published(ladder: Ladder) -> Finding:
    """The weights follow from the releases: D' publishes what D does if it says it.

    A step after the last release that reads the records again moves them.
    """
    if not ladder.subject.whole:
        note = "a part of the releases is looked at"
        return Finding("published", 0.0, REPEATED, False, note)
    both = [found for _, found in ladder.couplings] + ladder.odd
    apart = [_apart(one.seen.weights, one.other.weights) for one in both if one.other]
    worst = max(apart, default=0.0)
    note = f"{len(apart)} runs repeated"
    return Finding("published", worst, REPEATED, not worst <= REPEATED, note)


def _apart(one: np.ndarray, two: np.ndarray) -> float:
    """The largest difference, relative to the largest weight."""
    if np.array_equal(one, two, equal_nan=True):
        return 0.0
    return float(np.abs(one - two).max() / np.abs(one).max(initial=1e-300))


# --- count ----------------------------------------------------------------------------


def count(ladder: Ladder) -> Finding:
    """How many releases move with one record, of each kind, against the ledger."""
    stated: Counter[str] = Counter()
    for event in ladder.subject.ledger.events:
        stated[type(event).__name__] += event.count
    seen = [_moved(coupling.shifts) for _, coupling in ladder.couplings]
    if ladder.subject.selects:
        seen.append(Counter({"NoisyMax": _selections(ladder)}))
    most = {kind: max(one[kind] for one in seen) for kind in stated}
    notes = [f"{kind} {most[kind]} of {stated[kind]}" for kind in stated]
    worst = max(most[kind] / stated[kind] for kind in stated)
    return Finding("count", worst, 1.0, worst > 1, ", ".join(notes))


def _moved(shifts: list[Shift]) -> Counter[str]:
    """Releases whose noise is moved; Laplace numbers count one by one."""
    found: Counter[str] = Counter()
    for shift in shifts:
        if isinstance(shift.event, NoisyMax):
            continue
        many = isinstance(shift.event, Laplace)
        moved = int((np.abs(shift.units) > SAME).sum()) if many else 1
        found[type(shift.event).__name__] += moved
    return found


def _selections(ladder: Ladder) -> int:
    """Selections whose chances differ, or all where chances are not computed."""
    subject, pair = ladder.subject, ladder.audited.pair
    views = range(len(ladder.plain.views))
    chosen = [t for t in views if selects(subject, ladder.plain, t)]
    if ladder.has_many:
        return len(chosen)
    replay = Replay(subject, pair.first, pair.second)
    steps = Measure(replay, ladder.seed, ladder.taken(pair)).steps()
    if steps is None:
        return len(chosen)
    return sum(any(cells.loses() for cells in steps[t].cells) for t in chosen)


# --- the whole run --------------------------------------------------------------------


def transcript(ladder: Ladder) -> Finding:
    """What the run costs on the worst pair; at most what the ledger costs."""
    true, found = ladder.subject.true_epsilon, ladder.audited
    note = "exact" if found.exact else "sampled"
    if ladder.has_many:
        note = "too many candidates"
    if math.isinf(true):
        note = f"{note}, no bound is stated"
    caught = found.epsilon > true * (1 + _GRID)
    return Finding("transcript", found.epsilon, true, caught, note, found.epsilon)


RUNGS: dict[str, Callable[[Ladder], Finding]] = {
    "noise": noise,
    "streams": independent,
    "sensitivity": sensitivity,
    "count": count,
    "published": published,
    "step": step,
    "transcript": transcript,
    "canary": canary,
    "accountants": accountants,
}


def climb(ladder: Ladder) -> list[Finding]:
    """The findings of all rungs; a run that raises on some records tells of them."""
    return [_climbed(name, ladder) for name in RUNGS]


def _climbed(name: str, ladder: Ladder) -> Finding:
    try:
        return RUNGS[name](ladder)
    except Exception as error:  # whatever a solver's author wrote
        note = f"a run raised {type(error).__name__}: {error}".split("\n")[0]
        return Finding(name, math.inf, 0.0, True, note)
