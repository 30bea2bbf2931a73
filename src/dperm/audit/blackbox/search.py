"""The search for neighbours that refute an epsilon, within a budget of seconds.

Pairs are ranked by how far outputs move under the same noise; where laws are exact, so
is the verdict. The worst pairs are run on fresh noise, twice as often each round: an
event is chosen on all runs so far and counted on new ones. An exception is an output.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

import numpy as np

from dperm.audit.blackbox import affine, events
from dperm.audit.blackbox.domain import Data, Domain, Pair
from dperm.audit.blackbox.events import WIDE, Judged, plain, scale_of
from dperm.audit.blackbox.recording import (
    Fit,
    RefusedError,
    Run,
    Target,
    quiet,
    recorded,
)

Array = np.ndarray

SLACK = 1e-3  # relative, of an epsilon that is computed and not counted
FEW = 24  # pairs of the first glance
SCREENING = 0.6  # of a stage's budget, for a first look and a second
LAWFUL = 24  # pairs whose exact laws are compared, at most
SPARE = 1.5  # times the runs that prove an event that always comes
LAWLESS = 3  # pairs without a law, after which none is looked for
FIRST, MOST = 64, 1 << 17  # runs on D in the first round, and at most
SHARE = 12  # of what is left of the budget, at most one in so many goes into a round
FLOOR = 1e-9  # of a spread
STEP = 0.1  # share of a step that counts as spread: few runs may show none by chance
LENIENT = 0.5  # level of bounds that only rank pairs


@dataclass(frozen=True)
class Stage:
    """How much is done with some of the pairs."""

    share: float  #: of the budget, at most what is left of it
    frozen: int  #: runs under the same noise, for a first rank
    ranking: float  #: part of the share that goes into ranks at most
    #: lawful, clear, promising: pairs whose exact laws are compared; of which clear-cut
    #: events are counted; which are run on fresh noise again and again
    lawful: int
    clear: int
    promising: int
    ordinary: bool = True  #: whether no record of the pairs is extreme
    raising: int = 3  #: pairs whose exceptions are counted


GLANCE = Stage(1.0, 4, 0.4, 6, 3, 0)
EXTREME = Stage(0.25, 3, 0.6, 6, 6, 6, ordinary=False)
ENDLESS = Stage(0.1, 3, 0.6, 6, 3, 0, ordinary=False)
EARNEST = Stage(1.0, 8, 0.4, LAWFUL, 0, 12)
ASIDE = replace(EARNEST, share=1 / 3, raising=0)  # after others refuted


@dataclass(frozen=True)
class Claim:
    """What is to be refuted, and how sure and how long."""

    epsilon: float
    delta: float = 0.0
    confidence: float = 0.999  #: of a refutation
    #: seconds, runs: of computing, of which a new round must not take more than is left
    seconds: float = 45.0
    runs: float = math.inf


@dataclass
class Verdict:
    """What an audit found."""

    refuted: bool
    #: proved lower bound, at the claim's delta and confidence; infinite where frozen
    #: noise shows that none would do
    epsilon: float
    pair: Pair | None  #: the neighbours it was found on
    proof: str  #: the event and its counts, or what moved under frozen noise
    frozen: bool  #: whether the proof is one of frozen noise
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    runs: int = 0
    #: of the runs that were counted, on D and on D'
    outputs: tuple[Array, Array] | None = None
    #: whether it needs neither an extreme record nor an exception
    ordinary: bool = True


@dataclass
class Candidate:
    """A pair, its rank, and what was seen of it."""

    pair: Pair
    score: float
    first: list[Array] = field(default_factory=list)
    second: list[Array] = field(default_factory=list)


def audit(fit: Fit, claim: Claim, domain: Domain, seed: int = 0) -> Verdict:
    """Try to refute that ``fit`` is (epsilon, delta)-private on a domain.

    Parameters
    ----------
    fit : callable
        ``fit(X, y, seed)``; see :class:`.running.Target`.

    Returns
    -------
    Verdict
        Not refuted does not mean private.

    Raises
    ------
    RefusedError
        If it raises, or returns something else than numbers, on all data sets.

    Examples
    --------
    >>> def fit(X, y, seed):  # noise for half of what a record can do
    ...     noise = np.random.default_rng(seed).laplace(0, 1, X.shape[1])
    ...     return np.clip(X, -1, 1).sum(axis=0) + noise
    >>> found = audit(fit, Claim(epsilon=1.0), Domain(p=1, x=(-1, 1)))
    >>> found.refuted, round(found.epsilon, 6)
    (True, 2.0)
    """
    with recorded(), quiet():
        return Search(fit, claim, domain, seed).verdict()


class Search:
    """One audit under way."""

    def __init__(self, fit: Fit, claim: Claim, domain: Domain, seed: int):
        self.target, self.claim = Target(fit), claim
        self.domain, self.seed = domain, seed
        self.began, self.tests, self.notes = time.process_time(), 0, list[str]()
        self.rng = np.random.Generator(np.random.PCG64([seed, 1]))
        self.best, self.replayed = _nothing(), False
        self.stage, self.start = GLANCE, (0.0, 0)  # seconds and runs at its start
        self.size, self.raised = 0, ""  # numbers of an output; what the last run raised
        self.clue = ""  # noise whose scale depends on the data
        self.refusals: dict[str, dict[int, str]] = {}  # by exception and pair
        self.raising: list[tuple[Pair, str]] = []  # pairs on one of which it raises
        self.endless = ""  # how it refuses a record that is not finite

    def verdict(self) -> Verdict:
        """A glance at ordinary pairs, extreme ones, then all ordinary ones."""
        pairs, odd = self.domain.pairs(self.rng), self.domain.extremes(self.rng)
        known = next((p for p in pairs if not self._error(p)), None)
        if known is None:
            raise RefusedError(
                f"it raised on every pair tried: {self._error(pairs[0])}"
            )
        self.replayed = self.target.repeats(known.first)
        if not self.replayed:
            self.notes.append("a seed does not fix the output: no frozen noise")
        for stage, chosen in (
            (GLANCE, pairs[:FEW]),
            (EXTREME, [pair for pair in odd if pair.finite]),
            (ENDLESS, [pair for pair in odd if not pair.finite]),
            (EARNEST, pairs),
        ):
            self._pass(chosen, stage)
            if self.best.refuted:
                break
        if self.best.refuted and not self.best.ordinary:
            self._ordinary_too(pairs)
        self._say()
        self.best.notes = self.notes
        self.best.seconds, self.best.runs = self.seconds, self.target.runs
        return self.best

    def _pass(self, pairs: list[Pair], stage: Stage) -> None:
        """Frozen noise first, then what is clear, then counting."""
        self.start = (self.seconds, self.target.runs)
        share = max(min(stage.share, 1 - self._gone((0.0, 0))), 1e-9)
        self.stage = replace(stage, share=share)
        ranked = self._ranked(pairs)
        if self.replayed:
            self._lawful(ranked[: stage.lawful])
        self._clear_cut(ranked[: stage.clear])
        # count how often it raises where one of two neighbours makes it
        for pair, text in self.raising[: stage.raising]:
            event = events.Event(f"it raises {text}", _no_numbers, 1.0, 0.0, True)
            if self.best.refuted:
                break
            self._judge(Candidate(pair, 0.0), self._least(), event)
            self.best.ordinary &= not self.best.refuted
        self.raising = []
        self._counted(ranked[: stage.promising])

    def _ordinary_too(self, pairs: list[Pair]) -> None:
        """Whether ordinary records refute as well; both are told."""
        odd, self.best = self.best, _nothing()
        self._pass(pairs, ASIDE)
        assert odd.pair is not None
        if self.best.refuted:
            self.notes.append(f"refuted also by {odd.pair.text}; {odd.proof}")
            return
        self.notes.append(
            "ordinary records, without an exception: not refuted, proved"
            f" epsilon >= {self.best.epsilon:.4g}"
        )
        self.best = odd

    @property
    def seconds(self) -> float:
        """Of computing, since the start."""
        return time.process_time() - self.began

    def _gone(self, start: tuple[float, int]) -> float:
        """Share of the whole budget that is gone since a start."""
        seconds, runs = self.seconds - start[0], self.target.runs - start[1]
        return max(seconds / self.claim.seconds, runs / self.claim.runs)

    def _spent(self) -> float:
        return self._gone(self.start) / self.stage.share

    def _seeds(self, count: int) -> list[int]:
        return [int(s) for s in self.rng.integers(0, 2**32, count, dtype=np.uint64)]

    # --- what the function takes ------------------------------------------------------

    def _error(self, pair: Pair) -> str:
        """What it raises on a pair; nothing if it runs."""
        for data in (pair.first, pair.second):
            run = self.target(data, 0)
            if run.raised:
                return run.raised
            self.size = max(self.size, run.output.size)
        return ""

    def _outputs(self, data: Data, seeds: list[int]) -> Array:
        """Outputs on seeds, (m, k); what raised or is too short ends in NaN."""
        outputs = np.full((len(seeds), self.size), np.nan)
        for k, seed in enumerate(seeds):
            run: Run = self.target(data, seed)
            outputs[k, : run.output.size] = run.output[: self.size]
            self.raised = run.raised
        return outputs

    def _say(self) -> None:
        self.notes += [self.clue] if self.clue else []
        for texts in self.refusals.values():
            first = next(iter(texts.values()))
            self.notes.append(
                f"left out {len(texts)} pairs, on which it raised {first}"
            )
        if self.endless:
            self.notes.append(
                f"refuses records that are not finite ({self.endless}), which tells"
                " whether a data set holds one: map them to a fixed record, or declare"
                " --x-bound and --y-bound"
            )

    # --- frozen noise -----------------------------------------------------------------

    def _ranked(self, pairs: list[Pair]) -> list[Candidate]:
        """Pairs by what the same noise makes of D and D', the worst first."""
        seeds, outputs = self._seeds(self.stage.frozen), dict[int, tuple[Array, str]]()
        found, known = list[Candidate](), set[frozenset[bytes]]()
        for pair in pairs:
            if self._spent() > self.stage.ranking:
                break
            one, two = self._both(pair, seeds, outputs)
            if one is None or two is None:
                continue
            both = frozenset(rounded(side) for side in (one, two))
            if not self.replayed or both not in known:  # labels may mean nothing to it
                known.add(both)
                found.append(Candidate(pair, score(one, two)))
        if self.stage.ordinary:
            self._scales([c.pair for c in found])
        return sorted(found, key=lambda c: -c.score)

    def _both(
        self, pair: Pair, seeds: list[int], known: dict[int, tuple[Array, str]]
    ) -> list[Array | None]:
        """Outputs on both sides, each data set once; None if it raised on one."""
        sides = []
        for data in (pair.first, pair.second):
            key = hash(data.X.tobytes() + data.y.tobytes())
            if key not in known:
                outputs, raised = self._outputs(data, seeds[:1]), self.raised
                rest = self._outputs(data, [] if raised else seeds[1:])
                known[key] = np.concatenate([outputs, rest]), raised
            sides.append(known[key])
        (one, raised), (two, also) = sides
        whole = [bool(np.isfinite(side).all()) for side in (one, two)]
        if not pair.finite and whole[0] != whole[1]:
            text = f"raises {raised or also}" if raised or also else "no finite output"
            self.endless = self.endless or text
        elif raised or also:
            self._raised(pair, raised, also)
        else:
            return [one, two]
        return [None, None]

    def _raised(self, pair: Pair, one: str, two: str) -> None:
        """Keep what it raised on D and on D', of which at least one is not empty."""
        text = one or two
        self.refusals.setdefault(text.split(":")[0], {})[id(pair)] = text
        if not (one and two):
            self.raising.append((pair, text))

    def _scales(self, pairs: list[Pair]) -> None:
        """Say which noise depends on the data: a clue, not a proof."""
        for pair in pairs:
            sides = (pair.first, pair.second)
            one, two = (self.target(data, 1).record.draws for data in sides)
            for k, (a, b) in enumerate(zip(one, two, strict=False)):
                if not np.array_equal(a.scale, b.scale):
                    sizes = (np.max(d.scale, initial=0.0) for d in (a, b))
                    text = " and ".join(f"{s:.4g}" for s in sizes)
                    self.clue = (
                        f"the scale of draw {k + 1} ({a.kind}) depends on the data:"
                        f" {text} on neighbours"
                    )
                    return

    def _lawful(self, ranked: list[Candidate]) -> None:
        """Exact laws of the worst pairs, as long as there are such laws."""
        lawless, level = 0, (1 - self.claim.confidence) / (4 * LAWFUL)
        for candidate in ranked:
            try:
                given = (self.seed, self.claim.delta, level)
                found = affine.compare(self.target, candidate.pair, *given)
            except np.linalg.LinAlgError:
                continue
            if found is None:
                lawless += 1
                if lawless == LAWLESS:
                    return
                continue
            self._keep(found.epsilon, candidate.pair, found.text)

    def _keep(
        self,
        epsilon: float,
        pair: Pair,
        proof: str,
        outputs: tuple[Array, Array] | None = None,
    ) -> None:
        frozen = outputs is None
        limit = self.claim.epsilon * (1 + SLACK if frozen else 1)
        if epsilon > self.best.epsilon:
            self.best = Verdict(
                epsilon > limit,
                epsilon,
                pair,
                proof,
                frozen,
                outputs=outputs,
                ordinary=self.stage.ordinary,
            )

    def _level(self, test: int) -> float:
        """The share of the level of one count; all of them sum up to a half."""
        return (1 - self.claim.confidence) * 3 / (math.pi * test) ** 2

    # --- counting ---------------------------------------------------------------------

    def _clear_cut(self, candidates: list[Candidate]) -> None:
        """Hardly more runs than prove what always comes on D and never on D'."""
        for candidate in candidates:
            least = self._least()
            affordable = least <= SPARE * FIRST and self._affordable(2 * least)
            if self.best.refuted or not affordable:
                return
            self._more(candidate, FIRST // 4)
            self._judge(candidate, least)

    def _least(self) -> int:
        """Runs that would prove the next such event, and some to spare."""
        chance = 1 / (1 + math.exp(-self.claim.epsilon))
        level = self._level(self.tests + 1) / 2
        return math.ceil(SPARE * math.log(level) / math.log(chance)) + 1

    def _counted(self, candidates: list[Candidate]) -> None:
        """Rounds of fresh runs, twice as many each; events are of earlier rounds."""
        count = FIRST
        if self.best.refuted:
            return
        for candidate in candidates:
            self._more(candidate, count)
            if self._spent() > SCREENING:
                break
        candidates = [c for c in candidates if c.first]
        while candidates and count < MOST and self._affordable(2 * count):
            count *= 2
            keep = max(1, min(len(candidates), self._affordable(count) // SHARE))
            candidates = sorted(candidates, key=self._promise)[:keep]
            for candidate in candidates:
                self._judge(candidate, count)
                if self.best.refuted:
                    return

    def _affordable(self, count: int) -> int:
        """How many pairs could be run so often on what is left of the budget."""
        left = self.target.runs * (1 / max(self._spent(), 1e-9) - 1)
        return max(0, int(left / (2 * count)))

    def _promise(self, candidate: Candidate) -> float:
        """How well one half of its runs tells the other half apart, and back."""
        one, two = (np.concatenate(c) for c in (candidate.first, candidate.second))
        halves, total = (slice(None, None, 2), slice(1, None, 2)), 0.0
        for here, there in (halves, halves[::-1]):
            event = events.learn(one[here], two[here], LENIENT, self.claim.delta)
            judged = (one[there], two[there], LENIENT, self.claim.delta)
            total += events.judge(event, *judged).raw
        return -total

    def _event(self, candidate: Candidate) -> events.Event:
        given = np.concatenate(candidate.first), np.concatenate(candidate.second)
        return events.learn(*given, 0.1, self.claim.delta)

    def _judge(
        self, candidate: Candidate, count: int, event: events.Event | None = None
    ) -> None:
        """Count an event on fresh runs; the best one of those before, if not given."""
        event = event or self._event(candidate)
        self._more(candidate, count)
        self.tests += 1
        fresh, level = (
            (candidate.first[-1], candidate.second[-1]),
            self._level(self.tests),
        )
        found = events.judge(event, *fresh, level, self.claim.delta)
        self._keep(found.epsilon, candidate.pair, event_text(found), fresh)

    def _more(self, candidate: Candidate, count: int) -> None:
        for data, kept in (
            (candidate.pair.first, candidate.first),
            (candidate.pair.second, candidate.second),
        ):
            kept.append(self._outputs(data, self._seeds(count)))


def _nothing() -> Verdict:
    return Verdict(False, 0.0, None, "no event told neighbours apart", False)


def _no_numbers(outputs: Array) -> Array:
    """Runs that raised: they have no numbers."""
    return np.isnan(outputs).all(axis=1)


def event_text(judged: Judged) -> str:
    """An event and its counts in words."""
    event = judged.event
    return (
        f"{event.text}: {judged.on_first} of {judged.runs} runs on D,"
        f" {judged.on_second} of {judged.runs} on D'"
    )


# --- how badly a pair fares under frozen noise, for the order of the search -----------


def score(one: Array, two: Array) -> float:
    """How far the same noise ends on D and D', in units of its spread.

    Outputs belong to the same seeds, row by row.
    """
    finite = np.isfinite(one).all(axis=1) & np.isfinite(two).all(axis=1)
    away = 10.0 * float(np.mean(np.isfinite(one) != np.isfinite(two)))
    if finite.sum() < 2:
        return away
    scale = scale_of(np.concatenate([one, two]))
    one, two = (plain(side[finite], scale) for side in (one, two))
    spreads = [side.std(axis=0) for side in (one, two)]
    floor = STEP * np.maximum(*spreads) + FLOOR
    wider = np.abs(np.log((spreads[0] + floor) / (spreads[1] + floor)))
    return away + float(_moved(one, two).sum() + wider.sum() + _hidden(one, two))


def _moved(one: Array, two: Array) -> Array:
    """By how much of its spread each number moved, on a scale that saturates."""
    by = np.sqrt(np.square(one - two).mean(axis=0))  # rare large moves count
    spread = np.minimum(one.std(axis=0), two.std(axis=0))
    return np.log1p(by / np.maximum(np.hypot(spread, STEP * by), FLOOR))


def rounded(outputs: Array) -> bytes:
    """The same for outputs that differ by rounding."""
    with np.errstate(all="ignore"):
        digits = 10.0 ** np.floor(np.log10(np.abs(outputs) + 1e-300) - 8)
        rounded = np.round(outputs / digits) * digits
    return np.where(np.isfinite(outputs), rounded, outputs).tobytes()


def _hidden(one: Array, two: Array) -> float:
    """The same for differences of two outputs, which shared noise leaves bare."""
    if not 1 < one.shape[1] <= WIDE:
        return 0.0
    return float(_moved(*(side[:, 1:] - side[:, :1] for side in (one, two))).max())
