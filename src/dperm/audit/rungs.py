"""The rungs of the audit, each a function of a subject; they know no solver.

1. ``noise``: what is drawn has the law it should have, nothing comes twice, and in the
   release the noise has the scale that the ledger states.
2. ``sensitivity``: no neighbour needs the noise shifted beyond the declared bound.
3. ``step``: one step on the loudest pair, told apart by what it releases.
4. ``transcript``: likelihood ratios of whole transcripts estimate delta(epsilon).
5. ``canary``: the published weights alone, told apart.
6. ``accountants``: ours against dp_accounting on a grid of equal width.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

from dperm.audit.accountants import compared
from dperm.audit.climbing import ROUNDING, Finding, Ladder
from dperm.audit.estimators import delta_bound, epsilon_bound, separation
from dperm.audit.replay import HUGE
from dperm.audit.subjects import Subject, Transcript, loud_records
from dperm.audit.taps import LAWS, Draw
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.ledger import Gaussian, Laplace, Ledger, SampledGaussian
from dperm.privacy.noisy_max import NoisyMax

Array = np.ndarray


# --- 1: noise -------------------------------------------------------------------------


def noise(ladder: Ladder) -> Finding:
    """KS tests of the draws and of what arrives in a release; no number comes twice."""
    subject, level = ladder.subject, ladder.effort.level
    seeds = ladder.seeds(1, ladder.effort.draws)
    runs = [subject.run(subject.base, seed) for seed in seeds]
    draws = [draw for run in runs for draw in run.draws]
    if not draws:
        return Finding("noise", 0.0, level, True, "no noise is drawn")
    values = np.abs(np.concatenate([draw.unit.ravel() for draw in draws]))
    if len(np.unique(values)) < values.size:
        return Finding("noise", 0.0, level, True, "the same noise comes again")
    kinds = sorted({draw.kind for draw in draws})
    tests = [_law([draw for draw in draws if draw.kind == kind]) for kind in kinds]
    note = "law"
    if _has_a_plain_first_release(ladder):
        tests.append(_arrived(ladder, runs))
        note = "law and scale"
    least = min(min(tests) * len(tests), 1.0)
    return Finding("noise", least, level, least < level, note)


def _law(draws: list[Draw]) -> float:
    """P-value of unit draws of one kind against their law."""
    kind, order, size = draws[0].kind, draws[0].order, draws[0].unit.size
    if kind == "generalised_gaussian":  # the square of its norm is chi-squared
        sizes = [(np.abs(draw.unit) ** order).sum() ** (2 / order) for draw in draws]
        return float(stats.kstest(sizes, stats.chi2(size).cdf).pvalue)
    values = np.concatenate([draw.unit.ravel() for draw in draws])
    return float(stats.kstest(values, LAWS[kind].cdf).pvalue)


def _has_a_plain_first_release(ladder: Ladder) -> bool:
    """Whether one draw is added to the first view, and neighbours reach its bound."""
    added = ladder.plain.draws_of(0)[1 if ladder.subject.selects else 0 :]
    if len(added) != 1 or ladder.plain.draws[added[0]].order != 2:
        return False
    ratios = [s.ratio for s in ladder.shifts if not isinstance(s.event, NoisyMax)]
    return max(ratios, default=0.0) >= 1 - ROUNDING


def _arrived(ladder: Ladder, runs: list[Transcript]) -> float:
    """P-value of the first release's noise over the scale that the ledger states.

    The unit of the scale is the largest change that neighbours make, coordinate by
    coordinate. All runs select and read what the plain run does.
    """
    subject, plain = ladder.subject, ladder.plain
    quiet = [replace(draw, unit=np.zeros_like(draw.unit)) for draw in plain.draws]
    if subject.selects:
        quiet[plain.draws_of(0)[0]].unit.flat[0] = HUGE
    place = plain.draws_of(0)[-1]
    event = [e for e in subject.ledger.events if not isinstance(e, NoisyMax)][-1]
    scale = _reach(ladder, quiet) * event.scale / event.sensitivity
    still = subject.run(subject.base, ladder.seed, quiet).views[0]
    found = []
    for draw in (run.draws[place] for run in runs):
        if draw.unit.shape != quiet[place].unit.shape:  # another block of coordinates
            continue
        script = [*quiet[:place], draw, *quiet[place + 1 :]]
        loud = subject.run(subject.base, ladder.seed, script).views[0]
        found += ((loud - still)[scale > 0] / scale[scale > 0]).tolist()
    kind = plain.draws[place].kind
    law = LAWS["gaussian" if kind == "generalised_gaussian" else kind]
    return float(stats.kstest(found, law.cdf).pvalue) if found else 1.0


def _reach(ladder: Ladder, quiet: list[Draw]) -> Array:
    """How far apart noiseless first views of neighbours are, by coordinate."""
    subject, at = ladder.subject, ladder.subject.positions[0]
    pool = loud_records(subject.base, np.random.default_rng(ladder.seed))
    taken = [at] * len(ladder.plain.views) if subject.hidden else None
    views = [
        subject.run(subject.base.replaced(at, x, s * y), ladder.seed, quiet, taken)
        for x, y in pool
        for s in (1.0, -1.0)
    ]
    return np.ptp(np.array([run.views[0] for run in views]), axis=0)


# --- 2: sensitivity -------------------------------------------------------------------


def sensitivity(ladder: Ladder) -> Finding:
    """The largest shift that is needed over the declared one."""
    tightness: dict[str, float] = {}
    for shift in ladder.shifts:
        kind = type(shift.event).__name__
        tightness[kind] = max(tightness.get(kind, 0.0), shift.ratio)
    worst = max(tightness.values(), default=0.0)
    found = [s.size / s.published for s in ladder.shifts if s.published]
    notes = [f"{kind} {ratio:.3f}" for kind, ratio in tightness.items()]
    if max(found, default=0.0) > max(worst, 1.0) + ROUNDING:
        notes.append(f"{max(found):.2f} times the published bound")
    caught = worst > 1 + ROUNDING
    return Finding("sensitivity", worst, 1.0, caught, ", ".join(notes))


# --- 3: one step ----------------------------------------------------------------------


def step(ladder: Ladder) -> Finding:
    """Tell apart what one loud step releases, on the pair that moves it most."""
    if ladder.subject.loud is not None:
        ladder = Ladder(ladder.subject.loud, ladder.effort, ladder.seed)
    subject, effort = ladder.subject, ladder.effort
    pair, bound = ladder.worst_at_first, _step_epsilon(subject)
    if subject.selects:
        first, second = ladder.sample(
            3, pair, True, lambda run: subject.symbol(run.views[0])
        )
        found = _split(first, second, _rarity, effort.level, 0.0, False)
    else:
        first, second = ladder.sample(3, pair, True, lambda run: run.views[0])
        gaussian = _is_gaussian(_one_step(subject.ledger))
        delta = 0.0 if _is_pure(subject) else subject.delta
        found = _split(first, second, _direction, effort.level, delta, gaussian)
    return Finding("step", found, bound, found > bound)


def _is_pure(subject: Subject) -> bool:
    return all(isinstance(event, Laplace) for event in subject.ledger.events)


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


def _step_epsilon(subject: Subject) -> float:
    """What the ledger allows one step: pure for selections, which alone are seen."""
    if not all(event.sound for event in subject.ledger.events):
        return math.inf
    pures = [e.pure for e in subject.ledger.events if isinstance(e, NoisyMax)]
    if pures:
        return max(pures)
    if _is_pure(subject):
        return sum(e.count * e.sensitivity / e.scale for e in subject.ledger.events)
    return true_epsilon(_one_step(subject.ledger), subject.delta)


def _is_gaussian(ledger: Ledger) -> bool:
    return all(isinstance(event, Gaussian) for event in ledger.events)


def _split(
    first: list, second: list, learn: Callable, level: float, delta: float, gdp: bool
) -> float:
    """Learn a statistic on a third of the samples, bound epsilon on the others."""
    third = len(first) // 3
    statistic = learn(first[:third], second[:third])
    one, two = (
        np.array([statistic(value) for value in side[third:]])
        for side in (first, second)
    )
    return separation(one, two, level, delta, gdp)


def _direction(first: list, second: list) -> Callable[[Array], float]:
    """Fisher's linear discriminant."""
    one, two = np.array(first), np.array(second)
    size = np.maximum(one.std(axis=0), two.std(axis=0))
    size[size == 0] = 1.0
    one, two = one / size, two / size
    within = np.cov(one, rowvar=False) + np.cov(two, rowvar=False)
    away = one.mean(axis=0) - two.mean(axis=0)
    normal = np.linalg.pinv(np.atleast_2d(within), rcond=1e-6) @ away / size
    return lambda view: float(view @ normal)


def _rarity(first: list, second: list) -> Callable[[tuple], float]:
    """How much oftener a symbol came on D than on D'."""
    one, two = Counter(first), Counter(second)
    return lambda symbol: math.log((one[symbol] + 1) / (two[symbol] + 1))


# --- 4 and 5: the whole run -----------------------------------------------------------


def transcript(ladder: Ladder) -> Finding:
    """Lower bound on delta(epsilon) of whole transcripts, by their likelihood ratio."""
    subject, effort, true = ladder.subject, ladder.effort, ladder.subject.true_epsilon
    if ladder.has_many:
        note = "too many candidates"
        return Finding("transcript", 0.0, subject.delta, False, note)
    sample = ladder.losses(ladder.worst, ladder.seeds(4, effort.losses))
    level = effort.level / 2
    found = epsilon_bound(sample, subject.delta, level, ladder.seed)
    if math.isinf(true):
        note = "no bound is stated"
        return Finding("transcript", 0.0, subject.delta, False, note, found)
    spent = delta_bound(sample, true, level, ladder.seed + 1)
    caught = spent > subject.delta
    note = f"delta at epsilon = {true:.3g}"
    return Finding("transcript", spent, subject.delta, caught, note, found)


def canary(ladder: Ladder) -> Finding:
    """Tell D from D' by the published weights."""
    subject, effort = ladder.subject, ladder.effort
    first, second = ladder.sample(5, ladder.worst, False, lambda run: run.weights)
    gaussian = _is_gaussian(subject.ledger)
    given = (effort.level, subject.delta, gaussian)
    found = _split(first, second, _direction, *given)
    true = subject.true_epsilon
    return Finding("canary", found, true, found > true, "", found)


# --- 6: accountants -------------------------------------------------------------------


def accountants(ladder: Ladder) -> Finding:
    """Our epsilon against the two roundings of dp_accounting's on an equal grid."""
    subject = ladder.subject
    true = subject.true_epsilon
    if not math.isfinite(true):
        return Finding("accountants", true, true, False, "no bound is stated")
    ours, low, high = compared(subject.ledger, subject.delta)
    caught = not low * (1 - 1e-3) <= ours <= high * (1 + 1e-3)
    caught |= true > ours * (1 + 1e-3)
    return Finding("accountants", ours, high, caught, f"at least {low:.4g}")


RUNGS: dict[str, Callable[[Ladder], Finding]] = {
    "noise": noise,
    "sensitivity": sensitivity,
    "step": step,
    "transcript": transcript,
    "canary": canary,
    "accountants": accountants,
}


def climb(ladder: Ladder) -> list[Finding]:
    """The findings of all rungs."""
    return [rung(ladder) for rung in RUNGS.values()]
