"""The checks of a mechanism; a finding says what was measured and whether it is a bug.

1. ``sensitivity``: no neighbour needs the noise moved beyond the declared bound, and
   some neighbour needs it moved at all.
2. ``published``: the weights follow from the releases, and from nothing else.
3. ``count``: no more releases move with a record than the ledger states.
4. ``noise``: draws follow their law and are independent, and none recurs.
5. ``streams``: sampling and noise share nothing, and the tap records all noise.
6. ``epsilon``: a second accountant confirms the ledger's price, and the worst pair
   costs no more.
7. ``target``: the same releases at two targets have two noises, each within its target.
8. ``parts``: no two parts of one fit, nor two fits, draw the same number.
9. ``told``: where all releases are forced to be the same, a fitted object, its pickle
   and repr, warnings, messages and exceptions tell nothing of the record.

The last two are of whole fits (:class:`.mechanism.WholeFit`).
"""

from __future__ import annotations

import io
import logging
import math
import pickle
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from dperm.audit import costs
from dperm.audit.mechanism import (
    DELTA,
    LAWS,
    Array,
    Draw,
    Mechanism,
    Pair,
    Recorder,
    Transcript,
    all_seeds,
    quiet,
    seeded,
)
from dperm.audit.pairs import odd_pairs, pairs
from dperm.audit.replay import HIDES, SAME, Coupling, Replay, Shift
from dperm.privacy.accountants import TIGHT, tight
from dperm.privacy.accounting import true_epsilon
from dperm.privacy.events import Event, Ledger, SampledGaussian
from dperm.privacy.mechanisms.noisy_max import NoisyMax, TopK
from dperm.privacy.noise import listening

ROUNDING = 1e-5  # relative, of shifts that are measured on runs
GRID = 3e-3  # relative, between accountants
# Relative, of weights whose releases agree up to rounding
WEIGHTS_TOLERANCE = 1e-4
LEVEL = 5e-5  # chance that a statistical test flags a sound mechanism
STREAM_WORDS = 4096  # of every stream, none of which may be in another one
EXAMINED = 6  # pairs at which thresholds of selections are compared
# Pairs in each position that are run after extreme histories
EXTREME_PAIRS = 3
FITS = 2  # whole fits whose draws are compared
READING_RUNS = 400  # runs that show how often the first step reads a record
BESIDE = 40  # numbers of a run whose ranks are compared with one another
TARGETS = (
    (1.0, 1e-5),
    (3.0, 1e-5),
    (1.0, 1e-4),
    (1.0, 1e-3),
)  # of a calibration
LARGER_DELTA = 100 * DELTA  # at which a ledger is priced too
AMPLE = 1e3  # noise of an extreme history, in units of its scale
BACK = (0, 1, 2, 4, 8)  # views before the record's, at which that noise turns
HISTORIES = 3  # after which shifts are compared, for a lower bound
BOUNDED_PAIRS = 4  # pairs with a lower bound
CHOICES = "selections"
BLIND = "blind: no neighbour moved anything"


@dataclass(frozen=True)
class CheckResult:
    """Result of a check: its number, the bound it is compared with, the verdict."""

    check: str
    measured: float
    bound: float
    caught: bool  #: whether the mechanism breaks what its ledger states
    note: str = ""


@dataclass(frozen=True)
class Audit:
    """A mechanism and the couplings of its neighbours, which the checks share.

    Parameters
    ----------
    m : Mechanism
    neighbours : int
        Pairs in one direction; at least three for each position.
    runs : int
        Runs whose noise is tested.
    seed : int
    """

    m: Mechanism
    neighbours: int = 24
    runs: int = 60
    seed: int = 0

    @cached_property
    def plain(self) -> Transcript:
        """A run on the base."""
        return self.m.run(self.m.base, self.seed)

    @cached_property
    def couplings(self) -> list[tuple[Pair, Coupling]]:
        """Couplings of all neighbours, of the first ones in both directions."""
        neighbours = pairs(
            self.m, max(self.neighbours, 3 * len(self.m.positions))
        )
        neighbours += [pair.reverse for pair in neighbours[:4]]
        seeds = zip(
            neighbours, all_seeds(self.seed, 2, len(neighbours)), strict=True
        )
        return [
            (pair, Replay(self.m, pair, seed).couple()) for pair, seed in seeds
        ]

    @cached_property
    def odd(self) -> list[Coupling]:
        """Couplings of extreme records, after strong noise."""
        loud = [draw.moved(self.m.far) for draw in self.plain.draws]
        return [
            Replay(self.m, pair, self.seed + k).couple(loud)
            for k, pair in enumerate(odd_pairs(self.m))
        ]

    @cached_property
    def extreme(self) -> list[Coupling]:
        """Couplings after noise that is strong to one side, and then to the other."""
        couplings = list[Coupling]()
        examples = list[tuple[Pair, Coupling]]()
        for position in self.m.positions if self.m.far else ():
            near = [
                coupled
                for coupled in self.couplings
                if coupled[0].position == position
            ]
            examples += near[:EXTREME_PAIRS]
        for pair, coupling in examples:
            seen = coupling.seen
            read = coupling.shifts[0].step if coupling.shifts else 0
            for k, turn in enumerate(sorted({max(read - b, 0) for b in BACK})):
                known_draws = seen.ends[min(turn, len(seen.views))]
                history = []
                for place, draw in enumerate(seen.draws[: seen.ends[-1]]):
                    push = AMPLE if place < known_draws else -AMPLE
                    history.append(draw.moved(push))
                couplings.append(
                    Replay(self.m, pair, self.seed + 7 + k).couple(history)
                )
        return couplings

    @cached_property
    def margins(self) -> list[Shift]:
        """How far the noise moves that wins the first selection, for some pairs."""
        shifts = list[Shift]()
        examples = self.couplings[:EXAMINED] if self.m.selections else []
        for k, (pair, _) in enumerate(examples):
            replay = Replay(self.m, pair, self.seed + 31 + k)
            coupling = replay.couple()
            for t in self.m.selecting(coupling.seen)[:1]:
                shifts += replay.margins(coupling.seen, coupling.script, t)
        return shifts

    @cached_property
    def shifts(self) -> list[Shift]:
        """All shifts of all couplings."""
        couplings = [coupling for _, coupling in self.couplings]
        shifts: list[Shift] = []
        for coupling in [*couplings, *self.odd, *self.extreme]:
            shifts += coupling.shifts
        return shifts + self.margins

    # --- the checks -------------------------------------------------------------------

    def sensitivity(self) -> CheckResult:
        """No neighbour needs the noise moved beyond what the ledger states."""
        worst = max(self.shifts, key=lambda shift: shift.ratio, default=None)
        if worst is None or not any(
            shift.size > SAME for shift in self.shifts
        ):
            return CheckResult("sensitivity", 0.0, 1.0, True, BLIND)
        note = f"{type(worst.event).__name__}, release {worst.step + 1}"
        caught = worst.ratio > 1 + ROUNDING
        return CheckResult("sensitivity", worst.ratio, 1.0, caught, note)

    def published(self) -> CheckResult:
        """Weights follow from releases: D' repeats those of D with its releases."""
        couplings = [coupling for _, coupling in self.couplings] + self.odd
        worst = 0.0
        count = 0
        for coupling in couplings:
            if coupling.other:
                count += 1
                worst = max(
                    worst,
                    _apart(coupling.seen.weights, coupling.other.weights),
                )
        note = f"{count} runs repeated"
        return CheckResult(
            "published",
            worst,
            WEIGHTS_TOLERANCE,
            not worst <= WEIGHTS_TOLERANCE,
            note,
        )

    def count(self) -> CheckResult:
        """No more releases are made, or move with a record, than the ledger counts.

        They are counted by their noise: draws, or numbers of Laplace noise. Where each
        record is read by some of the releases only, those count that move.
        """
        m = self.m
        plain = self.plain
        claimed = _counted(
            (
                event,
                event.selections
                if isinstance(event, NoisyMax)
                else event.count,
            )
            for event in m.ledger.events
        )
        many = any(isinstance(event, TopK) for event in m.selections)
        chosen = m.selecting(plain)
        counts = Counter(
            {CHOICES: sum(plain.views[t].size if many else 1 for t in chosen)}
        )
        choosing = {plain.behind(t)[0] for t in chosen}
        for place, draw in enumerate(plain.draws):
            if place not in choosing:
                size = draw.unit.size if draw.law == "laplace" else 1
                counts[draw.law] = 1 if m.parallel else counts[draw.law] + size
        for _, coupling in self.couplings:
            counts |= _counted(
                (shift.event, shift.moved) for shift in coupling.shifts
            )
        shares = [
            counts[law] / claimed[law] if claimed[law] else math.inf
            for law in counts
            if counts[law]
        ]
        worst = max(shares, default=0.0)
        notes = [
            f"{law} {counts[law]} of {claimed[law]}" for law in sorted(counts)
        ]
        return CheckResult("count", worst, 1.0, worst > 1, ", ".join(notes))

    def noise(self) -> CheckResult:
        """Draws follow their law, are independent, and none recurs."""
        runs = [
            self.m.run(self.m.base, s)
            for s in all_seeds(self.seed, 1, self.runs)
        ]
        draws: list[Draw] = []
        for run in runs:
            draws += run.draws
        if not draws:
            return CheckResult("noise", 0.0, LEVEL, True, "no noise is drawn")
        sizes = np.abs(np.concatenate([draw.unit.ravel() for draw in draws]))
        if len(np.unique(sizes)) < sizes.size:
            return CheckResult(
                "noise", 0.0, LEVEL, True, "the same noise comes again"
            )
        tests = {"dependence": dependence(runs)}
        for law_and_order in sorted(
            {(draw.law, draw.order) for draw in draws}
        ):
            mine = [
                draw
                for draw in draws
                if (draw.law, draw.order) == law_and_order
            ]
            tests[f"law of {law_and_order[0]}"] = law(mine)
        if all(isinstance(e, SampledGaussian) for e in self.m.ledger.events):
            tests["sampling rate"] = self._rate()
        worst = min(tests, key=tests.__getitem__)
        corrected = min(tests[worst] * len(tests), 1.0)
        return CheckResult("noise", corrected, LEVEL, corrected < LEVEL, worst)

    def _rate(self) -> float:
        """P-value of the stated chance that the first step reads a record."""
        event = self.m.ledger.events[0]
        pair, _ = self.couplings[0]
        plain = self.plain
        assert isinstance(event, SampledGaussian)
        first_noisy = next(
            t for t in range(len(plain.views)) if plain.behind(t)
        )
        read = 0
        seeds = all_seeds(self.seed, 3, READING_RUNS)
        for seed in seeds:
            arguments = (seed, plain.draws, None, first_noisy)
            base_run = self.m.run(pair.first, *arguments)
            other_run = self.m.run(pair.second, *arguments)
            read += bool(
                (
                    base_run.views[first_noisy] != other_run.views[first_noisy]
                ).any()
            )
        return float(
            stats.binomtest(read, len(seeds), event.sampling_rate).pvalue
        )

    def streams(self) -> CheckResult:
        """Sampling and noise share nothing, and the tap records all noise.

        Streams have no number in common. The records that are read do not depend on the
        noise, nor the noise on them. Steps end at the same weights whether they are
        taken one by one, as the audit does, or together.
        """
        m = self.m
        s = self.seed
        plain = self.plain
        words = []
        for stream in (*seeded(s), *seeded(s + 1)):
            words.append(stream.bit_generator.random_raw(STREAM_WORDS))
        views = m.run(m.base, (s, s + 1, s + 1), plain.draws).views
        other_views = m.run(m.base, (s, s + 2, s + 2), plain.draws).views
        sampled = []
        if m.hidden:
            for k in range(3):
                draws = m.run(m.base, (s + k, s, s)).draws
                sampled.append([draw.unit for draw in draws])
        moves = [_differ(*units) for units in pairwise(sampled)]
        ends = plain.weights
        if m.end:
            run = m.begin(m.base, seeded(s))
            m.end(run)
            ends = np.ravel(m.published(run))
        near = np.allclose(
            ends, plain.weights, rtol=1e-6, atol=1e-9, equal_nan=True
        )
        wrong = {
            "streams have common numbers": len(np.unique(words))
            < np.size(words),
            "a random number is not recorded": _differ(views, other_views),
            "sampling moves the noise": any(moves),
            "steps taken together end elsewhere": not near,
        }
        faults = [name for name, is_so in wrong.items() if is_so]
        return CheckResult(
            "streams", len(faults), 0.0, bool(faults), "; ".join(faults)
        )

    def epsilon(self) -> CheckResult:
        """Accountants agree, and the worst pair costs no more than the ledger says."""
        m = self.m
        ours = self.m.true
        if not math.isfinite(ours):
            return CheckResult(
                "epsilon", self.lower, ours, False, "no bound is stated"
            )
        wrong = []
        for ledger, delta in (
            (m.ledger, DELTA),
            (costs.stretched(m.ledger), DELTA),
            (m.ledger, LARGER_DELTA),  # whatever was kept of the first price
        ):
            price = true_epsilon(ledger, delta)
            low, high = costs.ledger_bounds(ledger, delta)
            if not low * (1 - GRID) <= price <= high * (1 + GRID):
                wrong.append(
                    f"priced at {price:.4g}, not {low:.4g} to {high:.4g}"
                )
        if self.lower > ours * (1 + GRID):
            wrong.append("a pair costs more")
        if m.calibration == TIGHT and m.claimed > m.epsilon * (1 + GRID):
            wrong.append(
                f"claimed {m.claimed:.4g}, {m.epsilon:g} was asked for"
            )
        return CheckResult(
            "epsilon", self.lower, ours, bool(wrong), "; ".join(wrong)
        )

    def target(self) -> CheckResult:
        """Other targets have other noise, and every ledger keeps to its own target."""
        m = self.m
        calibrated = m.calibrated
        if m.whole is not None:
            calibrated = self._fitted_ledger
        if calibrated is None:
            return CheckResult(
                "target", 0.0, 1.0, False, "nothing is calibrated"
            )
        targets = (*TARGETS, TARGETS[0])  # the first one again
        ledgers = [calibrated(*target) for target in targets]
        wrong = []
        worst = 0.0
        for (epsilon, delta), ledger in zip(targets, ledgers, strict=True):
            if m.calibration != TIGHT:
                continue
            low, _ = costs.ledger_bounds(ledger, delta)
            price = max(low, fresh_epsilon(ledger, delta))
            worst = max(worst, price / epsilon)
            if price > epsilon * (1 + GRID):
                wrong.append(
                    f"{price:.4g} at delta {delta:g}, {epsilon:g} was asked"
                )
        *different, repeated = ledgers
        if len(set(different)) < len(different):
            wrong.append("two targets have the same noise")
        if repeated != ledgers[0]:
            wrong.append("one target has two noises")
        return CheckResult("target", worst, 1.0, bool(wrong), "; ".join(wrong))

    def _fitted_ledger(self, epsilon: float, delta: float) -> Ledger:
        """The ledger of a whole fit."""
        fitted = self.m.whole
        assert fitted is not None
        with quiet():
            return fitted.ledger(
                fitted.fit(fitted.many, epsilon, delta, self.seed + 1)
            )

    def parts(self) -> CheckResult:
        """No number is drawn twice, in one fit or in two; a budget counts both."""
        m = self.m
        fitted = self.m.whole
        if fitted is None:
            return CheckResult("parts", 0.0, 0.0, False, "no whole fit")
        tap = Recorder()
        seeds = [self.seed + 1 + k for k in range(FITS)]
        wrong = []
        with listening(tap), quiet():
            if fitted.composed is None:
                for seed in seeds:
                    fitted.fit(m.base, m.epsilon, DELTA, seed)
            else:
                sums = fitted.composed(m.base, m.epsilon, DELTA, seeds)
                ledgers = [fitted.ledger(fit) for fit in sums.fits]
                low = sum(costs.ledger_bounds(ledger)[0] for ledger in ledgers)
                if low > sums.epsilon * (1 + GRID):
                    wrong.append(
                        f"a budget counts {sums.epsilon:.4g} of {low:.4g}"
                    )
                if sums.delta < len(ledgers) * DELTA * (1 - GRID):
                    wrong.append(
                        f"a budget counts a delta of {sums.delta:.4g}"
                    )
                if not sums.is_kept:
                    wrong.append("a budget lets the same noise come again")
        drawn = [np.abs(draw.unit.ravel()) for draw in tap.draws]
        numbers = np.concatenate(drawn) if drawn else np.empty(0)
        again = numbers.size - len(np.unique(numbers))
        if again:
            wrong.append(
                f"{again} of {numbers.size} numbers were drawn before"
            )
        if not numbers.size:
            wrong.append("no noise is drawn")
        return CheckResult(
            "parts", float(again), 0.0, bool(wrong), "; ".join(wrong)
        )

    def told(self) -> CheckResult:
        """With the same releases a fit of a neighbour tells the same, in every way."""
        m = self.m
        fitted = self.m.whole
        if fitted is None:
            return CheckResult("told", 0.0, 0.0, False, "no whole fit")
        pairs_of_data = list(fitted.neighbours())
        differing = list[str]()
        with quiet():  # compilers have their say, once
            fitted.fit(m.base, m.epsilon, DELTA, self.seed + 1)
        for words, base, neighbour in pairs_of_data:
            log: list[Any] = []
            goal = (m.epsilon, DELTA, self.seed + 1)
            with fitted.forced(log, True):
                traces_d = outcome(partial(fitted.fit, base, *goal))
            with fitted.forced(log, False):
                traces_d_prime = outcome(partial(fitted.fit, neighbour, *goal))
            names = [
                name
                for name in {**traces_d, **traces_d_prime}
                if traces_d.get(name) != traces_d_prime.get(name)
            ]
            if names:
                differing.append(f"{words}: {', '.join(names)}")
        faults, tried = fitted.faults()
        differing += faults
        tried += len(pairs_of_data)
        note = differing[0] if differing else f"{tried} neighbours"
        count = len(differing)
        return CheckResult("told", float(count), 0.0, bool(differing), note)

    @cached_property
    def lower(self) -> float:
        """Lower bound on the run's epsilon from shifts; 0 without one."""

        def moved(pair: Pair, coupling: Coupling) -> float:
            """How far a pair moves releases that a lower bound counts."""
            replay = Replay(self.m, pair, self.seed)
            _, end = costs.decided(replay, coupling.seen)
            return round(
                sum(s.size**2 for s in coupling.shifts if s.step < end), 9
            )

        able = [
            coupled
            for coupled in self.couplings
            if coupled[0].alike or not self.m.hidden
        ]
        ranked = sorted(able, key=lambda coupled: -moved(*coupled))[
            :BOUNDED_PAIRS
        ]
        seeds = all_seeds(self.seed, 5, HISTORIES)
        epsilons = (
            costs.run_epsilon(self.m, pair, seeds) for pair, _ in ranked
        )
        return max(epsilons, default=0.0)

    def findings(self) -> Iterator[CheckResult]:
        """The findings of all checks; an exception is one, since it reveals records."""
        for name in CHECKS:
            try:
                yield getattr(self, name)()
            except Exception as error:  # a user's solver may raise anything
                yield raised(name, error)


OF_RUNS = ("sensitivity", "published", "count", "noise", "streams", "epsilon")
CHECKS = (*OF_RUNS, "target", "parts", "told")


def fresh_epsilon(ledger: Ledger, delta: float) -> float:
    """The price of a ledger, of which nothing was kept from before."""
    tight.epsilon.cache_clear()
    return true_epsilon(ledger, delta)


def outcome(fit: Callable[[], Any]) -> dict[str, bytes]:
    """All that a fit tells, in bytes, by name: attributes, output, what it raises."""
    stream = io.StringIO()
    traces = dict[str, bytes]()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)  # compilers tell more, once
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            redirect_stdout(stream),
            redirect_stderr(stream),
        ):
            warnings.simplefilter("always")
            fitted = fit()
        traces["pickle"] = _dumped(fitted)
        traces["repr"] = repr(fitted).encode()
        for name, attribute in vars(fitted).items():
            traces[f"attribute {name}"] = _dumped(attribute)
    except Exception as error:  # whatever a fit raises, it tells
        traces["exception"] = f"{type(error).__name__}: {error}".encode()
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    traces["warnings"] = "\n".join(
        str(warning.message) for warning in caught
    ).encode()
    traces["output"] = stream.getvalue().encode()
    return traces


def _dumped(attribute: Any) -> bytes:
    """An attribute in bytes, that of what it holds as of what it is."""
    try:
        return pickle.dumps(attribute)
    except Exception:  # some objects have no pickle
        return repr(attribute).encode()


def raised(check: str, error: BaseException) -> CheckResult:
    """The finding of a check in which a run raised."""
    note = f"a run raised {type(error).__name__}: {error}".split("\n")[0]
    return CheckResult(check, math.inf, 0.0, True, note)


def _counted(releases: Iterable[tuple[Event, int]]) -> Counter[str]:
    """Numbers of releases by their noise."""
    counts: Counter[str] = Counter()
    for event, many in releases:
        laws = (
            law for law, hidden in HIDES.items() if isinstance(event, hidden)
        )
        noise_law = (
            CHOICES if isinstance(event, NoisyMax) else next(laws, "unknown")
        )
        counts[noise_law] += many
    return counts


def _apart(base: Array, other: Array) -> float:
    """The largest difference, relative to the largest weight."""
    if np.array_equal(base, other, equal_nan=True):
        return 0.0
    with np.errstate(all="ignore"):
        difference = np.abs(base - other).max() / np.abs(base).max(
            initial=1e-300
        )
    return float(np.nan_to_num(difference, nan=np.inf))


def _differ(arrays: list[Array], others: list[Array]) -> bool:
    if len(arrays) != len(others):
        return True
    pairs_of_arrays = zip(arrays, others, strict=True)
    return any(not np.array_equal(a, b) for a, b in pairs_of_arrays)


def law(draws: list[Draw]) -> float:
    """P-value of unit draws of one law against it.

    Of density exp(-||z||_r^2 / 2) the squared norm is chi-squared, |z_1|^r / ||z||_r^r
    is beta and independent of it, as is the sign.
    """
    law_name = draws[0].law
    order = draws[0].order
    if order == 2:
        unit = LAWS.get(law_name, stats.norm)
        numbers = np.concatenate([draw.unit.ravel() for draw in draws])
        return float(stats.kstest(numbers, unit.cdf).pvalue)
    rows = np.array([draw.unit.ravel() for draw in draws])
    powers = np.abs(rows) ** order
    d = rows.shape[1]
    sizes = powers.sum(axis=1)
    tests = [stats.kstest(sizes ** (2 / order), stats.chi2(d).cdf).pvalue]
    share = stats.beta(1 / order, max(d - 1, 0.5) / order)
    columns = range(d) if d > 1 else ()
    for j in columns:
        tests.append(stats.kstest(powers[:, j] / sizes, share.cdf).pvalue)
        tests.append(
            stats.binomtest(int((rows[:, j] > 0).sum()), len(rows)).pvalue
        )
    return float(min(min(tests) * len(tests), 1.0))


def dependence(runs: list[Transcript]) -> float:
    """P-value of no rank correlation between any two numbers of a run."""
    rows = []
    for run in runs:
        draws = [draw.unit.ravel() for draw in run.draws]
        rows.append(np.concatenate(draws))
    size = min(map(len, rows))
    if size < 2 or len(rows) < 3:
        return 1.0
    count = min(size, BESIDE)
    places = np.linspace(0, size - 1, count).round().astype(int)
    numbers = np.array([row[places] for row in rows])
    ranks = stats.rankdata(numbers, axis=0)
    correlations = np.corrcoef(ranks, rowvar=False)[np.triu_indices(count, 1)]
    largest = float(np.abs(correlations).max())
    # without dependence nearly normal, of variance 1 / (runs - 1)
    deviations = largest * math.sqrt(len(rows) - 1)
    chance_of_any = 2 * stats.norm.sf(deviations) * len(correlations)
    return float(min(chance_of_any, 1.0))
