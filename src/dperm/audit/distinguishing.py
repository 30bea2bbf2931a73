"""Rungs that know nothing of noise: D and D' are told apart by what comes out of runs.

Runs are made in rounds, and no more of them than it takes to win or lose the bets.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dperm.audit import bounds
from dperm.audit.bounds import Point
from dperm.audit.climbing import Finding, Ladder
from dperm.audit.neighbours import Pair
from dperm.audit.subjects import Subject, Transcript
from dperm.core.privacy.accounting import true_epsilon
from dperm.core.privacy.ledger import Gaussian, Laplace, Ledger, SampledGaussian
from dperm.core.privacy.noisy_max import NoisyMax

Array = np.ndarray
Statistic = Callable[[Any], float]

ROUNDS = 4  # of runs; what is looked at is learned on the first
GIVEN_UP = -4.0  # logarithm of the capital below which nobody goes on betting
DELTAS = (1e-3, 0.03, 0.2)  # at which the ledger's own curve is bet against


def step(ladder: Ladder) -> Finding:
    """Tell apart what one loud step releases, on the pair that moves it most."""
    if ladder.subject.loud is not None:
        ladder = Ladder(ladder.subject.loud, ladder.effort, ladder.seed)
    subject, pair = ladder.subject, ladder.worst_at_first
    at = _first_release(ladder)
    points = _step_curve(subject)
    if not points:
        return Finding("step", 0.0, math.inf, False, "no bound is stated")
    if subject.selects:
        pick: Any = lambda run: subject.symbol(run.views[at])  # noqa: E731
        found, _ = distinguish(ladder, 3, pair, True, pick, rarity, points)
    else:
        pick = lambda run: run.views[at]  # noqa: E731
        found, _ = distinguish(ladder, 3, pair, True, pick, direction, points)
    return _finding("step", found, ladder.effort.level)


def canary(ladder: Ladder) -> Finding:
    """Tell D from D' by the published weights."""
    subject, pair = ladder.subject, ladder.audited.pair
    points = _curve(subject.ledger, subject.delta)
    pick: Any = lambda run: run.weights  # noqa: E731
    given = (ladder, 5, pair, False, pick, direction, points)
    found, epsilon = distinguish(*given)
    if not points:
        note = "no bound is stated"
        return Finding("canary", 0.0, math.inf, False, note, epsilon)
    return replace(_finding("canary", found, ladder.effort.level), epsilon=epsilon)


def _finding(rung: str, capital: float, level: float) -> Finding:
    """Won by betting, in powers of ten, and what it takes."""
    needed = -math.log(level)
    note = "log10 of the capital won"
    ten = math.log(10)
    return Finding(rung, capital / ten, needed / ten, capital >= needed, note)


def distinguish(
    ladder: Ladder,
    rung: int,
    pair: Pair,
    always: bool,
    pick: Callable[[Transcript], Any],
    learn: Callable[[list, list], Statistic],
    points: list[Point],
) -> tuple[float, float]:
    """Logarithm of the largest capital, and a lower bound on epsilon at delta.

    The bound is of another half of the level than the capital's test.
    """
    size, level = max(ladder.effort.samples // ROUNDS, 4), ladder.effort.level / 2
    statistic, cuts, won = None, np.empty(0), 0.0
    ones, twos = list[float](), list[float]()
    for k in range(ROUNDS):
        part = slice(k * size, (k + 1) * size)
        first, second = ladder.sample(rung, pair, always, pick, part)
        if statistic is None:
            if min(len(first), len(second)) < 2:  # too few to learn from
                continue
            statistic = learn(first, second)
            cuts = bounds.thresholds([*map(statistic, first), *map(statistic, second)])
            continue
        ones += map(statistic, first)
        twos += map(statistic, second)
        events = bounds.events(np.array(ones), np.array(twos), cuts)
        if points and ones:
            logs = bounds.bets(*events, points)
            won = bounds.best(logs) - math.log(2)
            if won >= -math.log(2 * level) or logs[-1] < GIVEN_UP:
                break
    if not ones:
        return won, 0.0
    return won, bounds.refuted(*events, ladder.subject.delta, level)


# --- what is bet against --------------------------------------------------------------


def _curve(ledger: Ledger, delta: float) -> list[Point]:
    """Epsilons that a sound accountant gives the ledger at some deltas."""
    if not all(event.sound for event in ledger.events):
        return []
    return [(true_epsilon(ledger, at), at) for at in (delta, *DELTAS)]


def _step_curve(subject: Subject) -> list[Point]:
    """Of one step: pure for selections, which alone are seen, and Laplace numbers."""
    events = subject.ledger.events
    if not all(event.sound for event in events):
        return []
    pures = [event.pure for event in events if isinstance(event, NoisyMax)]
    if pures:
        return [(max(pures), 0.0)]
    if all(isinstance(event, Laplace) for event in events):
        return [(sum(e.count * e.sensitivity / e.scale for e in events), 0.0)]
    return _curve(_one_step(subject.ledger), subject.delta)


def _one_step(ledger: Ledger) -> Ledger:
    """The events of one step that reads the record; the loudest of each kind."""
    kinds: dict[type, Any] = {}
    for event in sorted(ledger.events, key=lambda event: -event.noise_multiplier):
        kind = type(event)
        if isinstance(event, SampledGaussian):
            event = Gaussian(
                event.sensitivity, event.scale, 1, event.unit, event.source
            )
        many = event.count if isinstance(event, Laplace) and event.count > 1 else 1
        kinds[kind] = replace(event, count=many)  # type: ignore[type-var]
    return Ledger(tuple(kinds.values()))


def _first_release(ladder: Ladder) -> int:
    """The first view that noise goes into."""
    plain = ladder.plain
    return next((t for t in range(len(plain.views)) if plain.draws_of(t)), 0)


# --- what is looked at ----------------------------------------------------------------


def direction(first: list, second: list) -> Statistic:
    """Fisher's linear discriminant."""
    one, two = np.array(first), np.array(second)
    size = np.maximum(one.std(axis=0), two.std(axis=0))
    size[size == 0] = 1.0
    one, two = one / size, two / size
    within = np.cov(one, rowvar=False) + np.cov(two, rowvar=False)
    away = one.mean(axis=0) - two.mean(axis=0)
    normal = np.linalg.pinv(np.atleast_2d(within), rcond=1e-6) @ away / size
    return lambda view: float(view @ normal)


def rarity(first: list, second: list) -> Statistic:
    """How much oftener a symbol came on D than on D'."""
    one, two = Counter(first), Counter(second)
    return lambda symbol: math.log((one[symbol] + 1) / (two[symbol] + 1))
