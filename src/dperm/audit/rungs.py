"""The rungs, which are the checks of an audit; they depend on no particular solver.

A ladder is the list of an audit's checks for one solver. Its rungs are:

1. ``noise``: draws follow their stated law and are independent.
2. ``streams``: noise and sampling share no stream, and the tap records all noise.
3. ``sensitivity``: no neighbour needs the noise shifted beyond the declared bound, and
   some neighbour needs it shifted at all.
4. ``count``: no more releases move with a record than the ledger states.
5. ``published``: the weights follow from the releases, and from nothing else.
6. ``accountants``: our epsilon is within the bounds of an independent accountant.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy import stats

from dperm.accountants.noisy_max import NoisyMax
from dperm.audit import laws
from dperm.audit.climbing import ROUNDING, Finding, Ladder
from dperm.audit.measured import Measure
from dperm.audit.neighbours import Pair
from dperm.audit.replay import SAME, Replay, Shift, selects
from dperm.audit.subjects import LAWS, Array, Draw, Subject, Transcript
from dperm.core.calibrations import STRICT
from dperm.core.privacy.accounting import epsilon as epsilon_of
from dperm.core.privacy.ledger import Laplace, SampledGaussian
from dperm.core.privacy.mechanisms import Streams, streams

BLIND = "blind: no neighbour moved anything"
UNBOUNDED = "no bound is stated"
_GRID = 1e-3  # relative, between accountants
_WIDE_GRID = 3e-3  # the same of an independent one
REPEATED = 1e-4  # relative, of weights whose releases agree up to rounding
WORDS = 4096  # of every stream, none of which may be in another one
READ = 400  # least number of first steps to test how often a record is read
BESIDE = 40  # numbers of a run whose ranks are compared with one another


def noise(ladder: Ladder) -> Finding:
    """Test that draws follow their law, are independent, and repeat no number."""
    subject, level = ladder.subject, ladder.effort.level
    seeds = ladder.seeds(1, ladder.effort.draws)
    runs = [subject.run(subject.base, seed) for seed in seeds]
    draws = [draw for run in runs for draw in run.draws]
    if not draws:
        return Finding("noise", 0.0, level, True, "no noise is drawn")
    values = np.abs(np.concatenate([draw.unit.ravel() for draw in draws]))
    if len(np.unique(values)) < values.size:
        return Finding("noise", 0.0, level, True, "the same noise comes again")
    tests = {}
    for kind in sorted({(draw.kind, draw.order) for draw in draws}):
        mine = [draw for draw in draws if (draw.kind, draw.order) == kind]
        tests[f"law of {kind[0]}"] = law(mine)
    tests["dependence"] = dependence(runs)
    if all(isinstance(event, SampledGaussian) for event in subject.ledger.events):
        tests["sampling rate"] = rate(ladder, ladder.seeds(1, max(READ, len(seeds))))
    worst = min(tests, key=tests.__getitem__)
    least = min(tests[worst] * len(tests), 1.0)
    return Finding("noise", least, level, least < level, worst)


def law(draws: list[Draw]) -> float:
    """P-value of unit draws of one kind against their law."""
    kind, order = draws[0].kind, draws[0].order
    values = np.concatenate([draw.unit.ravel() for draw in draws])
    if order != 2:
        # of density exp(-||z||_r^2 / 2) the squared norm is chi-squared, and
        # |z_1|^r / ||z||_r^r is beta and independent of it, as is the sign
        rows = np.array([draw.unit.ravel() for draw in draws])
        powers, d = np.abs(rows) ** order, rows.shape[1]
        sizes = powers.sum(axis=1) ** (2 / order)
        pvalues = [stats.kstest(sizes, stats.chi2(d).cdf).pvalue]
        share = stats.beta(1 / order, max(d - 1, 0.5) / order)
        for j in range(d if d > 1 else 0):
            pvalues.append(
                stats.kstest(powers[:, j] / powers.sum(axis=1), share.cdf).pvalue
            )
            pvalues.append(
                stats.binomtest(int((rows[:, j] > 0).sum()), len(rows)).pvalue
            )
        return float(min(min(pvalues) * len(pvalues), 1.0))
    unit = LAWS["gaussian" if kind == "generalised_gaussian" else kind]
    return float(stats.kstest(values, unit.cdf).pvalue)


def dependence(runs: list[Transcript]) -> float:
    """P-value of no rank correlation between any two numbers of a run."""
    rows = [np.concatenate([draw.unit.ravel() for draw in run.draws]) for run in runs]
    size = min(len(row) for row in rows)
    if size < 2 or len(rows) < 3:
        return 1.0
    kept = np.linspace(0, size - 1, min(size, BESIDE)).round().astype(int)
    ranks = stats.rankdata(np.array([row[:size][kept] for row in rows]), axis=0)
    upper = np.corrcoef(ranks, rowvar=False)[np.triu_indices(len(kept), 1)]
    extreme = float(np.abs(upper).max()) * np.sqrt(len(rows) - 1)
    return float(min(2 * stats.norm.sf(extreme) * len(upper), 1.0))


def rate(ladder: Ladder, seeds: list[int]) -> float:
    """P-value of the stated chance that the first step reads a record."""
    (event,) = ladder.subject.ledger.events[:1]
    assert isinstance(event, SampledGaussian)
    pair, plain = ladder.pairs[0], ladder.plain
    read = sum(_first_differs(ladder.subject, pair, seed, plain) for seed in seeds)
    return float(stats.binomtest(read, len(seeds), event.sampling_rate).pvalue)


def _first_differs(subject: Subject, pair: Pair, seed: int, plain: Transcript) -> bool:
    first = next(t for t in range(len(plain.views)) if plain.draws_of(t))
    one, two = (
        subject.run(data, seed, plain.draws, None, first).views[first]
        for data in (pair.first, pair.second)
    )
    return bool((one != two).any())


def independent(ladder: Ladder) -> Finding:
    """Check that sampling and noise share nothing, and that the tap records all noise.

    No statistical test is needed. Streams have no number in common. The records that
    are read do not depend on the noise, nor the noise on them. Steps end at the same
    weights whether they are taken one by one, as the audit does, or together.
    """
    subject, s, plain = ladder.subject, ladder.seed, ladder.plain
    base, ends = subject.base, plain.weights
    bare = subject.run(base, s, heard=False).weights
    together = subject.ended(base, s)
    given, anew = (  # the noise is the same, its streams are not
        subject.run(base, (s, *noise), plain.draws).views
        for noise in ((s, s), (s + 1, s + 2))
    )
    sampled = [  # the noise where other records are read
        [draw.unit for draw in subject.run(base, (s + k, s, s)).draws]
        for k in (range(3) if subject.hidden else ())
    ]
    checks = {
        "streams have common numbers": shares(streams(s)),
        "another seed's numbers come again": shares(streams(s), streams(s + 1)),
        "the tap changes the run": not np.allclose(bare, ends, rtol=1e-9, atol=0),
        "steps taken together end elsewhere": not np.allclose(
            together, ends, rtol=1e-6, atol=1e-9, equal_nan=True
        ),
        "a random number is not recorded": _differ(given, anew),
        "sampling moves the noise": any(_differ(*two) for two in pairwise(sampled)),
    }
    wrong = [name for name, found in checks.items() if found]
    return Finding("streams", len(wrong), 0.0, bool(wrong), "; ".join(wrong))


def shares(generators: Streams, others: Streams | None = None) -> bool:
    """Whether any two streams have a generator or a number in common."""
    bits = [stream.bit_generator for stream in (*generators, *(others or ()))]
    if len({id(one) for one in bits}) < len(bits):
        return True
    words = np.concatenate([one.random_raw(WORDS) for one in bits])
    return len(np.unique(words)) < len(words)


def _differ(one: list[Array], two: list[Array]) -> bool:
    return len(one) != len(two) or any(
        not np.array_equal(a, b) for a, b in zip(one, two, strict=True)
    )


def sensitivity(ladder: Ladder) -> Finding:
    """Compare the largest shift that is needed with the declared one."""
    tightness: dict[str, float] = {}
    for shift in ladder.shifts:
        kind = type(shift.event).__name__
        tightness[kind] = max(tightness.get(kind, 0.0), shift.ratio)
    worst = max(tightness.values(), default=0.0)
    if not any(shift.size > SAME for shift in ladder.shifts):
        return Finding("sensitivity", 0.0, 1.0, True, BLIND)
    published = [s.size / s.published for s in ladder.shifts if s.published]
    notes = [f"{kind} {ratio:.3f}" for kind, ratio in tightness.items()]
    if max(published, default=0.0) > max(worst, 1.0) + ROUNDING:
        notes.append(f"{max(published):.2f} times the published bound")
    caught = worst > 1 + ROUNDING
    return Finding("sensitivity", worst, 1.0, caught, ", ".join(notes))


def published(ladder: Ladder) -> Finding:
    """Check that weights follow from releases: D' repeats those of D with its releases.

    A step after the last release that reads the records again moves the weights.
    """
    if not ladder.subject.whole:
        note = "only a part of the releases is recorded"
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


def count(ladder: Ladder) -> Finding:
    """Compare how many releases of each kind move with one record with the ledger."""
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
    counts: Counter[str] = Counter()
    for shift in shifts:
        if isinstance(shift.event, NoisyMax):
            continue
        many = isinstance(shift.event, Laplace)
        moved = int((np.abs(shift.units) > SAME).sum()) if many else 1
        counts[type(shift.event).__name__] += moved
    return counts


def _selections(ladder: Ladder) -> int:
    """Selections whose chances differ, or all where chances are not computed."""
    subject, pair = ladder.subject, ladder.candidates[0]
    views = range(len(ladder.plain.views))
    chosen = [t for t in views if selects(subject, ladder.plain, t)]
    if ladder.has_many:
        return len(chosen)
    given = (pair.first, pair.second, ladder.seed, ladder.taken(pair))
    steps = Measure(Replay(subject, *given)).steps()
    if steps is None:
        return len(chosen)
    return sum(any(cells.loses() for cells in steps[t].cells) for t in chosen)


def accountants(ladder: Ladder) -> Finding:
    """Check that our strict epsilon is within the bounds of another accountant."""
    subject = ladder.subject
    ours = epsilon_of(subject.ledger, subject.delta, STRICT)
    if not math.isfinite(ours):
        return Finding("accountants", ours, ours, False, UNBOUNDED)
    low, high = laws.ledger_bounds(subject.ledger, subject.delta)
    caught = not low * (1 - _WIDE_GRID) <= ours <= high * (1 + _WIDE_GRID)
    note = f"{low:.4g} at least, {high:.4g} at most"
    if subject.calibration == STRICT and ours > subject.epsilon * (1 + _WIDE_GRID):
        caught, note = True, f"{note}, {subject.epsilon:g} requested"
    return Finding("accountants", ours, high, caught, note)


RUNGS: dict[str, Callable[[Ladder], Finding]] = {
    "noise": noise,
    "streams": independent,
    "sensitivity": sensitivity,
    "count": count,
    "published": published,
    "accountants": accountants,
}


def climb(ladder: Ladder) -> list[Finding]:
    """The findings of all rungs; an exception counts, since it reveals records."""
    found = []
    for name, rung in RUNGS.items():
        try:
            found.append(rung(ladder))
        except Exception as error:  # a user's solver may raise anything
            found.append(_raised(name, error))
    return found


def stopped(error: Exception) -> list[Finding]:
    """The findings where even a first run on ordinary records raises."""
    return [_raised(name, error) for name in RUNGS]


def _raised(name: str, error: Exception) -> Finding:
    note = f"a run raised {type(error).__name__}: {error}".split("\n")[0]
    return Finding(name, math.inf, 0.0, True, note)
