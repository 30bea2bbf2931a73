"""Audit of other people's code: any ``fit(X, y, seed)`` against its stated epsilon.

Only the outputs of the function are known and, where it draws from numpy's generators,
its noise. Pairs of neighbours are ranked by how far outputs move under the same noise
(*frozen noise*), and changed at random where that moves them further. Where the laws of
outputs are exact, so is the verdict. The worst pairs are run on fresh noise, twice as
often each round: an event is chosen on all runs so far and counted on new ones. What
time is left goes to one last count on the worst pair. An exception counts as an output.

*Soundness.* Every count is of an event that was fixed before its runs, so that each
bound is wrong with a chance of at most its level (:func:`.proofs.ratio_bound`). Rounds
take half of 1 - confidence by the series 6 / (pi k)^2, the last count a quarter, and
the Gaussian trade-off of that count (:func:`.proofs.trade_off`) a quarter.
"""

from __future__ import annotations

import io
import math
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace

import numpy as np

from dperm.audit import proofs
from dperm.audit.draws import recorded
from dperm.audit.functions import (
    PATIENCE,
    AuditedFit,
    CannotAuditError,
    Clock,
    Domain,
    Fit,
    Neighbours,
    TimeUpError,
)
from dperm.audit.mechanism import Array, AuditData, quiet
from dperm.audit.proofs import scale_of, tame
from dperm.privacy.accountants.tight import gaussian_epsilon

SLACK = 1e-3  # relative, of an epsilon that is computed instead of counted
FIRST_PAIRS = 24  # pairs of the first look
SIZING = 0.03  # share of the budget after which outputs are not sized any more
FROZEN, RANKING = (
    4,
    0.25,
)  # runs under the same noise; share of a stage's budget for it
LAWFUL, COUNTED = (
    24,
    24,
)  # of the worst pairs: exact laws are compared, events counted
CLEAR, BRIEF = 3, 16  # pairs, and runs that show an event which always comes
LAWLESS = 3  # pairs without a law, after which no law is sought
RAISING = 3  # pairs whose exceptions are counted
RUNS_FACTOR = 1.5  # times the runs that prove such an event
ROUNDED = 0.5  # share of the last stage's budget for its rounds; the rest is one count
LAST = 64  # least runs on either side of the last count
CHUNK = 256  # runs between two looks at the budget
MUTANTS, PARENTS = (
    12,
    6,
)  # changed pairs of each generation, of the worst pairs so far
GENERATIONS, CHANGING = 6, 0.12  # and their share of the whole budget
SLOW = 20.0  # pairs that the budget must allow to be counted; fewer are told
ROUNDS = tuple(1 << k for k in range(5, 18))  # runs on D, round by round
FLOOR, STEP = (
    1e-9,
    0.1,
)  # least spread, and as a share of a move: few runs show none
RANKING_LEVEL = 0.5  # level of bounds that only rank pairs
OFTEN = 2.0  # seconds between two reports


@dataclass(frozen=True)
class PrivacyClaim:
    """The privacy claim to refute, the confidence and the budget."""

    epsilon: float
    delta: float = 0.0
    confidence: float = 0.999  #: of a refutation
    #: seconds, runs: budget, in seconds of CPU; a new round must fit into what is left,
    #: and no run begins after it
    seconds: float = 45.0
    runs: float = math.inf
    #: whether the claim is that of Gaussian noise, so that the Gaussian trade-off that
    #: is counted at one threshold bounds epsilon
    gaussian: bool = False
    #: whether records are canaries, drawn by coins: see ``dperm.audit.canaries``
    is_of_canaries: bool = False


@dataclass
class AuditVerdict:
    """Result of an audit."""

    refuted: bool = False
    #: proved lower bound, at the claim's delta and confidence; infinite where frozen
    #: noise shows that no epsilon holds
    epsilon: float = 0.0
    pair: Neighbours | None = None  #: the neighbours it was found on
    #: the event and its counts, or what moved under frozen noise
    proof: str = "no event distinguished neighbours"
    #: whether the proof is one of frozen noise, which is certain
    frozen: bool = False
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0  #: of CPU
    runs: int = 0
    replayed: int = 0  #: draws whose numbers the audit replaced by its own
    #: the function is mu-GDP for no smaller mu (Dong, Roth and Su 2022)
    mu: float = 0.0


@dataclass
class Candidate:
    """A pair, its score, and its outputs so far."""

    pair: Neighbours
    score: float = 0.0  #: how promising it is
    raised: str = ""  #: what is raised on one of the data sets
    #: outputs on D and on D', round by round
    sides: tuple[list[Array], list[Array]] = field(
        default_factory=lambda: ([], [])
    )


Progress = Callable[[AuditVerdict], object]


def audit(
    fit: Fit,
    claim: PrivacyClaim,
    domain: Domain,
    seed: int = 0,
    progress: Progress | None = None,
) -> AuditVerdict:
    """Try to refute that ``fit`` is (epsilon, delta)-private on a domain.

    Parameters
    ----------
    fit : callable
        ``fit(X, y, seed)``; see :class:`.functions.AuditedFit`. No run of it is broken
        off.
    progress : callable, optional
        Is given the verdict so far every few seconds.

    Returns
    -------
    AuditVerdict
        Not refuted does not mean private.

    Raises
    ------
    CannotAuditError
        If ``fit`` raises on all data sets, returns something other than numbers, or
        needs more time for its first runs.

    Examples
    --------
    >>> def fit(X, y, seed):  # noise for half of what a record can do
    ...     noise = np.random.default_rng(seed).laplace(0, 1, X.shape[1])
    ...     return np.clip(X, -1, 1).sum(axis=0) + noise
    >>> found = audit(fit, PrivacyClaim(epsilon=1.0), Domain(p=1, x=(-1, 1)))
    >>> found.refuted, round(found.epsilon, 6)
    (True, 2.0)
    """
    search = Search(fit, claim, domain, seed, progress)
    with recorded(), quiet(), redirect_stdout(io.StringIO()):
        return search.verdict()


class Search:
    """The state of one audit."""

    def __init__(
        self,
        fit: Fit,
        claim: PrivacyClaim,
        domain: Domain,
        seed: int,
        progress: Progress | None = None,
    ):
        self.target, self.claim = AuditedFit(fit), claim
        self.domain, self.seed, self.progress = domain, seed, progress
        self.clock = self.target.clock = Clock(claim.seconds)
        self.told = time.perf_counter()
        self.rng = np.random.Generator(np.random.PCG64([seed, 1]))
        self.best, self.notes, self.replayed = (
            AuditVerdict(),
            list[str](),
            False,
        )
        self.mu = 0.0
        self.tests, self.size = 0, 0  # counts so far; numbers of an output
        self.end = 1.0  # of the stage's budget
        self.refusals: dict[str, str] = {}  # the first text of each exception
        # on one of whose data sets it raises
        self.raising: list[Candidate] = []
        self.endless = ""  # how it refuses a record that is not finite

    def verdict(self) -> AuditVerdict:
        """Try a few ordinary pairs, extreme ones, then all ordinary ones."""
        self.clock = self.target.clock = Clock(self.claim.seconds)
        self.told = time.perf_counter()
        try:
            self._search()
        except TimeUpError:
            if not self.size:
                text = f"its first runs took more than {self.claim.seconds:g} seconds"
                raise CannotAuditError(text) from None
            clock = self.clock
            text = (
                f"stopped after {clock.cpu:.1f} seconds of CPU, as asked for"
            )
            if clock.cpu < clock.most:
                text = (
                    f"stopped by the clock after {clock.wall:.1f} seconds, of which "
                    f"{clock.cpu:.1f} were CPU: the function waits"
                )
            self.notes.append(text)
        for text in self.refusals.values():
            self.notes.append(f"left out pairs on which it raised {text}")
        self._tell_if_slow()
        if self.endless:
            self.notes.append(
                f"refuses records that are not finite ({self.endless}), which tells"
                " whether a data set holds one: map them to a fixed record, or declare"
                " --x-bound and --y-bound"
            )
        return self.so_far

    @property
    def so_far(self) -> AuditVerdict:
        """The verdict, if the search ended now."""
        return replace(
            self.best,
            notes=self.notes,
            seconds=self.clock.cpu,
            runs=self.target.runs,
            replayed=self.target.replayed,
            mu=self.mu,
        )

    def _tell_if_slow(self) -> None:
        """Say so where the budget allows hardly any pair to be counted."""
        learning, proving = self._clear
        # which prove an event that always comes
        runs = 2 * (learning + proving)
        spent = max(self.clock.cpu, self.clock.wall / PATIENCE)
        seconds_a_run = spent / max(self.target.runs, 1)
        if (
            not self.best.refuted
            and SLOW * runs * seconds_a_run > self.claim.seconds
        ):
            needed = SLOW * runs * seconds_a_run
            self.notes.append(
                f"slow: {1 / seconds_a_run:.3g} runs a second. To count an event that "
                f"always comes on one side takes {runs} runs of a pair, and "
                f"{SLOW:.0f} pairs {needed:.0f} seconds (--seconds)"
            )

    def _search(self) -> None:
        pairs, odd = (
            self.domain.pairs(self.rng),
            self.domain.extremes(self.rng),
        )
        working = next((p for p in pairs if not self._error(p)), None)
        if working is None:
            raised = self._error(pairs[0])
            raise CannotAuditError(f"it raised on every pair tried: {raised}")
        for pair in pairs[:FIRST_PAIRS]:  # outputs may differ in size
            if self._gone() < SIZING:
                self._error(pair)
        if not self.size:
            raise CannotAuditError("the output: expected numbers, found none")
        self.replayed = self.target.repeats(working.first)
        if not self.replayed:
            self.notes.append(
                "a seed does not fix the output: no frozen noise"
            )
        for chosen, share, most_counted in (
            (pairs[:FIRST_PAIRS], 1.0, 0),
            ([pair for pair in odd if pair.finite], 0.15, COUNTED),
            ([pair for pair in odd if not pair.finite], 0.07, 0),
            (pairs, 1.0, COUNTED),
        ):
            is_last = chosen is pairs
            self._stage(chosen, share, most_counted, is_last)
            if self.best.refuted:
                break

    def _stage(
        self,
        pairs: list[Neighbours],
        share: float,
        most_counted: int,
        is_last: bool,
    ) -> None:
        """Exact laws of the worst pairs, clear-cut events, rare events, exceptions.

        ``most_counted``: pairs on which rare events are counted.
        """
        gone = self._gone()
        self.end = min(gone + share, 1.0)
        ranked = self._ranked(pairs, gone + RANKING * (self.end - gone))
        if is_last and self.replayed:
            ranked = self._changed(ranked)
        if self.replayed:
            self._lawful(ranked[:LAWFUL])
        self._count_clear(ranked[:CLEAR] + self.raising[:RAISING])
        stage_end = self.end
        if is_last:
            self.end = self._gone() + ROUNDED * (stage_end - self._gone())
        counted = self._count(ranked[:most_counted], *ROUNDS)
        self.raising = []
        if is_last and counted and not self.best.refuted:
            self.end = stage_end
            self._count_last(counted)

    # --- budget and runs --------------------------------------------------------------

    def _gone(self) -> float:
        """Share of the budget that is spent."""
        return max(self.clock.share, self.target.runs / self.claim.runs)

    def _affordable(self, count: int) -> int:
        """How many pairs can be run ``count`` times on what is left of the stage."""
        share_a_run = max(self._gone() / max(self.target.runs, 1), 1e-12)
        return max(
            0, int((self.end - self._gone()) / share_a_run / (2 * count))
        )

    def _level(self, test: int) -> float:
        """Level of one test: all of them take half of 1 - confidence together."""
        return (1 - self.claim.confidence) * 3 / (math.pi * test) ** 2

    def _run(self, data: AuditData, seed: int) -> tuple[Array, str]:
        """The output and what the function raises; reports now and then."""
        run = self.target(data, seed, is_kept=False)
        if self.progress and time.perf_counter() - self.told > OFTEN:
            self.told = time.perf_counter()
            self.progress(self.so_far)
        return run.output, run.raised

    def _error(self, pair: Neighbours) -> str:
        """What the function raises on a pair; empty if it runs."""
        for data in (pair.first, pair.second):
            output, raised = self._run(data, 0)
            if raised:
                return raised
            self.size = max(self.size, output.size)
        return ""

    def _outputs(self, data: AuditData, seeds: list[int]) -> tuple[Array, str]:
        """Outputs on seeds, (m, k), missing numbers NaN; what the first run raised."""
        outputs, texts = np.full((len(seeds), self.size), np.nan), list[str]()
        for k, seed in enumerate(seeds):
            output, raised = self._run(data, seed)
            outputs[k, : output.size] = output[: self.size]
            if output.size > self.size:
                # than any at first: that there are more
                outputs[k, -1:] = np.inf
            texts.append(raised)
        return outputs, texts[0]

    def _seeds(self, count: int) -> list[int]:
        return [
            int(s) for s in self.rng.integers(0, 2**32, count, dtype=np.uint64)
        ]

    # --- frozen noise -----------------------------------------------------------------

    def _ranked(self, pairs: list[Neighbours], end: float) -> list[Candidate]:
        """Pairs by how far the same noise moves outputs from D to D', worst first."""
        seeds = self._seeds(FROZEN)
        outputs_of = dict[tuple, tuple[Array, str]]()
        candidates = list[Candidate]()
        distinct = set[tuple[bytes, ...]]()
        for pair in pairs:
            if self._gone() > end:
                break
            sides = []
            for data in (pair.first, pair.second):
                if data.bytes not in outputs_of:
                    outputs_of[data.bytes] = self._outputs(data, seeds)
                sides.append(outputs_of[data.bytes])
            if not self._ran(pair, *sides):
                continue
            one, two = (outputs for outputs, _ in sides)
            bits = [
                part.tobytes()
                for part in (pair.first.X, pair.second.X, one, two)
            ]
            if tuple(bits) not in distinct:  # it may ignore labels
                distinct.add(tuple(bits))
                candidates.append(Candidate(pair, score(one, two)))
        return in_turns(candidates)

    def _changed(self, ranked: list[Candidate]) -> list[Candidate]:
        """The pairs and changed ones, worst first: some are changed again and again."""
        end = min(self._gone() + CHANGING, self.end)
        for _ in range(GENERATIONS):
            if self._gone() > end:
                break
            parents = [candidate.pair for candidate in ranked[:PARENTS]]
            mutants = list(self.domain.mutants(parents, MUTANTS, self.rng))
            # A label between two classes may be none: it is no fault to refuse it.
            raising, refusals = list(self.raising), dict(self.refusals)
            ranked = in_turns(ranked + self._ranked(mutants, end))
            self.raising, self.refusals = raising, refusals
        return ranked

    def _ran(self, pair: Neighbours, first: tuple, second: tuple) -> bool:
        """Whether the function gave numbers on both; remembers how it refused."""
        (one, raised), (two, also) = first, second
        text = raised or also
        if (
            not pair.finite
            and np.isfinite(one).all() != np.isfinite(two).all()
        ):
            why = f"raises {text}" if text else "no finite output"
            self.endless = self.endless or why
            return False
        if text:
            self.refusals.setdefault(text.split(":")[0], text)
            if not (raised and also):
                self.raising.append(Candidate(pair, raised=text))
        return not text

    def _lawful(self, ranked: list[Candidate]) -> None:
        """Compare exact laws on the worst pairs, as long as there are such laws."""
        lawless = 0
        for candidate in ranked:
            arguments = (candidate.pair, self.seed, self.claim.delta)
            law = proofs.compare_laws(self.target, *arguments)
            if law:
                self._keep(law.epsilon, candidate, law.text, frozen=True)
                continue
            lawless += 1
            if lawless == LAWLESS:
                return

    def _keep(
        self,
        epsilon: float,
        candidate: Candidate,
        proof: str,
        frozen: bool = False,
    ) -> None:
        if epsilon > self.best.epsilon:
            refuted = epsilon > self.claim.epsilon * (1 + SLACK * frozen)
            self.best = AuditVerdict(
                refuted, epsilon, candidate.pair, proof, frozen
            )

    # --- counting ---------------------------------------------------------------------

    @property
    def _clear(self) -> tuple[int, int]:
        """Rounds that show, and prove, an event which is certain on one side."""
        level = self._level(self.tests + 1) / 2
        chance = 1 / (1 + math.exp(-self.claim.epsilon))
        return BRIEF, math.ceil(
            RUNS_FACTOR * math.log(level) / math.log(chance)
        ) + 1

    def _count_clear(self, candidates: list[Candidate]) -> None:
        """Prove events that are certain on one side, or never come there."""
        brief, proving = self._clear
        for candidate in candidates[: self._affordable(brief + proving)]:
            self._more(candidate, brief)
            event = self._learnt(candidate)
            one, two = (event.statistic(side[0]) for side in candidate.sides)
            hits = sorted(int((side >= event.at).sum()) for side in (one, two))
            is_clear = hits[0] == 0 and 2 * hits[1] >= brief
            if is_clear and not self.best.refuted:
                self._judge(candidate, proving)

    def _learnt(self, candidate: Candidate) -> proofs.OutputEvent:
        """The best event of a pair's runs so far; or its exception."""
        one, two = map(np.concatenate, candidate.sides)
        if candidate.raised:
            return _exception(candidate, one, two)
        return proofs.learn(one, two, 0.1, self.claim.delta)

    def _count(
        self, remaining: list[Candidate], learning_runs: int, *rounds: int
    ) -> list[Candidate]:
        """Count events of earlier rounds on fresh runs, for half of the pairs each.

        Returns the pairs of the last round, the worst first.
        """
        remaining = remaining[: self._affordable(learning_runs + rounds[0])]
        for candidate in remaining if not self.best.refuted else ():
            self._more(candidate, learning_runs)
        latest = remaining
        for count in rounds:
            remaining = remaining[: self._affordable(count)]
            for candidate in remaining:
                if self.best.refuted:
                    return remaining
                self._judge(candidate, count)
            if remaining:
                latest = sorted(remaining, key=lambda c: -c.score)
            remaining = latest[: (len(remaining) + 1) // 2]
        return latest

    def _count_last(self, counted: list[Candidate]) -> None:
        """Count the worst pair's event on all runs that the budget still allows.

        Its event and that of the Gaussian trade-off are chosen for so many runs, on all
        earlier ones.
        """
        able = [candidate for candidate in counted if candidate.sides[0]]
        trials = self._affordable(1)
        if not able or trials < LAST:
            return
        delta, level = self.claim.delta, (1 - self.claim.confidence) / 4
        candidate = max(able, key=lambda c: (len(c.sides[0]), c.score))
        one, two = map(np.concatenate, candidate.sides)
        if candidate.raised:
            event = _exception(candidate, one, two)
        else:
            event = proofs.learn(one, two, level, delta, trials)
        shift = proofs.learn_shift(one, two, trials)
        first, second = (list[Array]() for _ in range(2))
        for _ in range(0, trials, CHUNK):
            if self._gone() >= self.end:
                break
            first.append(
                self._outputs(candidate.pair.first, self._seeds(CHUNK))[0]
            )
            second.append(
                self._outputs(candidate.pair.second, self._seeds(CHUNK))[0]
            )
        fresh = np.concatenate(first), np.concatenate(second)
        bound = proofs.judge(event, *fresh, level, delta)
        self._keep(bound.epsilon, candidate, bound.text)
        if shift is None:
            return
        self.mu, text = proofs.trade_off(shift, *fresh, level)
        if self.claim.gaussian and delta > 0 and self.mu > 0:
            self._keep(gaussian_epsilon(self.mu, delta), candidate, text)

    def _judge(self, candidate: Candidate, count: int) -> None:
        """Count the best event of earlier runs on fresh ones; or the exception."""
        delta = self.claim.delta
        event = self._learnt(candidate)
        self._more(candidate, count)
        self.tests += 1
        one, two = (side[-1] for side in candidate.sides)
        bound = proofs.judge(event, one, two, self._level(self.tests), delta)
        candidate.score = proofs.judge(
            event, one, two, RANKING_LEVEL, delta
        ).epsilon
        self._keep(bound.epsilon, candidate, bound.text)

    def _more(self, candidate: Candidate, count: int) -> None:
        pair = candidate.pair
        for data, kept in zip(
            (pair.first, pair.second), candidate.sides, strict=True
        ):
            kept.append(self._outputs(data, self._seeds(count))[0])


def _exception(
    candidate: Candidate, one: Array, two: Array
) -> proofs.OutputEvent:
    """The event that a pair raises: all numbers are missing then."""

    def is_bare(outputs: Array) -> Array:
        """Whether a row of outputs holds no number."""
        return np.asarray(np.isnan(outputs).all(axis=1))

    swapped = bool(is_bare(two).sum() > is_bare(one).sum())
    return proofs.OutputEvent(
        f"it raises {candidate.raised}", is_bare, 1.0, swapped
    )


# --- rank of a pair under frozen noise ------------------------------------------------


def in_turns(candidates: list[Candidate]) -> list[Candidate]:
    """Candidates, the highest score first, and of equal scores one before any second.

    Pairs with equal scores are mostly one pair to the function, which ignores in what
    they differ: the other record, or the sign of a zero.
    """
    times_seen: Counter[float] = Counter()
    turns = list[tuple[int, float, int]]()
    for position, candidate in enumerate(candidates):
        turns.append((times_seen[candidate.score], -candidate.score, position))
        times_seen[candidate.score] += 1
    return [candidates[position] for _, _, position in sorted(turns)]


def score(one: Array, two: Array) -> float:
    """How far outputs on D and D' lie apart under the same noise, in units of spread.

    Outputs belong to the same seeds, row by row.
    """
    is_finite = np.isfinite(one).all(axis=1) & np.isfinite(two).all(axis=1)
    differs = np.isfinite(one) != np.isfinite(two)
    away = 10.0 * float(np.mean(differs))
    if is_finite.sum() < 2:
        return away
    scale = scale_of(np.concatenate([one, two]))
    one = tame(one[is_finite], scale)
    two = tame(two[is_finite], scale)
    if 1 < one.shape[1] <= proofs.MAX_SINGLE_OUTPUTS:
        one = _with_differences(one)
        two = _with_differences(two)
    by = np.sqrt(np.square(one - two).mean(axis=0))  # rare large moves count
    spread_one = np.hypot(one.std(axis=0), STEP * by) + FLOOR
    spread_two = np.hypot(two.std(axis=0), STEP * by) + FLOOR
    moves = np.log1p(by / np.minimum(spread_one, spread_two))
    wider = np.abs(np.log(spread_one / spread_two))
    return away + float((moves + wider).sum())


def _with_differences(outputs: Array) -> Array:
    """Outputs and their differences to the first, in which shared noise cancels."""
    differences = outputs[:, 1:] - outputs[:, :1]
    return np.hstack([outputs, differences])
