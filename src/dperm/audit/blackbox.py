"""Audit of other people's code: any ``fit(X, y, seed)`` against its stated epsilon.

Only the outputs of the function are known and, where it draws from numpy's generators,
its noise. Pairs of neighbours are ranked by how far outputs move under the same noise
(*frozen noise*). Where the laws of outputs are exact, so is the verdict. The worst
pairs are run on fresh noise, twice as often each round: an event is chosen on all runs
so far and counted on new ones. An exception counts as an output. The command is
``dperm audit module:function``.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dperm.audit import proofs
from dperm.audit.functions import (
    NORMS,
    RELATIONS,
    Domain,
    Fit,
    Pair,
    RefusedError,
    Target,
    TimeUpError,
    load,
    quiet,
    recorded,
)
from dperm.audit.mechanism import Array, Records
from dperm.audit.proofs import WIDE, plain, scale_of

SLACK = 1e-3  # relative, of an epsilon that is computed instead of counted
FEW = 24  # pairs of the first look
SCREENING = 0.6  # share of a stage's budget for ranks and first runs
LAWFUL = 24  # pairs whose exact laws are compared, at most
SPARE = 1.5  # times the runs that prove an event that always occurs
LAWLESS = 3  # pairs without a law, after which no law is sought
FIRST, MOST = 64, 1 << 17  # runs on D in the first round, and at most
SHARE = 12  # a round takes at most 1 / SHARE of what is left of the budget
FLOOR = 1e-9  # least spread
STEP = 0.1  # share of a move that counts as spread: few runs may show none by chance
OFTEN = 2.0  # seconds between two lines of progress
AGAIN = 0.2  # seconds after which what goes on all the same is broken off again
LONGEST = 1e8  # seconds that a timer takes
MAIN = threading.main_thread()
LENIENT = 0.5  # level of bounds that only rank pairs

PLACE = re.compile(r"[\w./-]+:[A-Za-z_][\w.]*")  # module:function or path.py:function
NOT_REFUTED, REFUTED, REFUSED = 0, 1, 2  # exit codes
LARGEST = 10**4  # records, features
FEATURES = (1, 2, 4)  # 4 without bounds only: few sums of two numbers overflow

DESCRIPTION = "Try to refute that fit(X, y, seed) is (epsilon, delta)-private."
EPILOG = """
exit code: 0 not refuted, 1 refuted, 2 cannot be audited
not refuted is not private: docs/howto/audit.md says how to read a verdict
"""


@dataclass(frozen=True)
class Stage:
    """Effort of one stage of the search."""

    share: float  #: of the budget, at most what is left of it
    frozen: int  #: runs under the same noise, for a first rank
    ranking: float  #: largest part of the share that goes into ranking
    #: lawful, clear, promising: numbers of pairs whose exact laws are compared, whose
    #: clear-cut events are counted, and which are run on fresh noise in rounds
    lawful: int
    clear: int
    promising: int
    ordinary: bool = True  #: whether no record of the pairs is extreme
    raising: int = 3  #: pairs whose exceptions are counted


GLANCE = Stage(1.0, 4, 0.4, 6, 3, 0)
EXTREME = Stage(0.25, 3, 0.6, 6, 6, 6, ordinary=False)
ENDLESS = Stage(0.1, 3, 0.6, 6, 3, 0, ordinary=False)
EARNEST = Stage(1.0, 8, 0.4, LAWFUL, 0, 12)
ASIDE = replace(EARNEST, share=1 / 3, raising=0)  # after extreme pairs refuted


@dataclass(frozen=True)
class Claim:
    """The privacy claim to refute, the confidence and the budget."""

    epsilon: float
    delta: float = 0.0
    confidence: float = 0.999  #: of a refutation
    #: seconds, runs: budget by the clock; a new round must fit into what is left, and
    #: a run that takes longer is broken off
    seconds: float = 45.0
    runs: float = math.inf


@dataclass
class Verdict:
    """Result of an audit."""

    refuted: bool = False
    #: proved lower bound, at the claim's delta and confidence; infinite where frozen
    #: noise shows that no epsilon holds
    epsilon: float = 0.0
    pair: Pair | None = None  #: the neighbours it was found on
    #: the event and its counts, or what moved under frozen noise
    proof: str = "no event distinguished neighbours"
    frozen: bool = False  #: whether the proof is one of frozen noise
    certain: bool = False  #: whether nothing in it was counted or sampled
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    runs: int = 0
    #: outputs of the counted runs, on D and on D'
    outputs: tuple[Array, Array] | None = None
    #: whether it needs neither an extreme record nor an exception
    ordinary: bool = True


@dataclass
class Candidate:
    """A pair, its score, and its outputs so far."""

    pair: Pair
    score: float
    #: outputs on D and on D', round by round
    sides: tuple[list[Array], list[Array]] = field(default_factory=lambda: ([], []))


Progress = Callable[[str], object]


def audit(
    fit: Fit,
    claim: Claim,
    domain: Domain,
    seed: int = 0,
    progress: Progress | None = None,
) -> Verdict:
    """Try to refute that ``fit`` is (epsilon, delta)-private on a domain.

    Parameters
    ----------
    fit : callable
        ``fit(X, y, seed)``; see :class:`.functions.Target`.
    progress : callable, optional
        Is told every few seconds how far the audit is.

    Returns
    -------
    Verdict
        Not refuted does not mean private.

    Raises
    ------
    RefusedError
        If ``fit`` raises on all data sets, returns something other than numbers, or
        needs more time for its first runs.

    Examples
    --------
    >>> def fit(X, y, seed):  # noise for half of what a record can do
    ...     noise = np.random.default_rng(seed).laplace(0, 1, X.shape[1])
    ...     return np.clip(X, -1, 1).sum(axis=0) + noise
    >>> found = audit(fit, Claim(epsilon=1.0), Domain(p=1, x=(-1, 1)))
    >>> found.refuted, round(found.epsilon, 6)
    (True, 2.0)
    """
    search = Search(fit, claim, domain, seed, progress)
    with recorded(), quiet(), alarm(claim.seconds, search.target):
        return search.verdict()


@contextmanager
def alarm(seconds: float, target: Target) -> Iterator[None]:
    """Break off a run when the time is over, by TimeUpError, where the system can.

    Elsewhere, and in threads, only the next run is not made.
    """
    able = hasattr(signal, "setitimer") and threading.current_thread() is MAIN
    if not able or not seconds < LONGEST:
        yield
        return

    def over(*_: object) -> None:
        if target.running:
            raise TimeUpError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Search:
    """The state of one audit."""

    def __init__(
        self,
        fit: Fit,
        claim: Claim,
        domain: Domain,
        seed: int,
        progress: Progress | None = None,
    ):
        self.target, self.claim = Target(fit), claim
        self.domain, self.seed, self.progress = domain, seed, progress
        self.began, self.notes = time.perf_counter(), list[str]()
        self.told, self.target.until = self.began, self.began + claim.seconds
        self.tests, self.sampled = 0, 0  # counts so far, and sampled laws
        self.rng = np.random.Generator(np.random.PCG64([seed, 1]))
        self.best, self.replayed = Verdict(), False
        self.stage, self.start = GLANCE, (0.0, 0)  # seconds and runs at its start
        self.size, self.raised = 0, ""  # numbers of an output; what the last run raised
        self.clue = ""  # noise whose scale depends on the data
        self.refusals: dict[str, dict[int, str]] = {}  # by exception and pair
        self.raising: list[tuple[Pair, str]] = []  # pairs on one of which it raises
        self.endless = ""  # how it refuses a record that is not finite

    def verdict(self) -> Verdict:
        """Try a few ordinary pairs, extreme ones, then all ordinary ones."""
        try:
            self._search()
        except TimeUpError:
            if not self.size:
                raise RefusedError(
                    f"its first runs took more than {self.claim.seconds:g} seconds"
                ) from None
            self.notes.append(f"stopped after {self.seconds:.1f} seconds, as asked for")
        self._say()
        self.best.notes = self.notes
        self.best.seconds, self.best.runs = self.seconds, self.target.runs
        return self.best

    def _search(self) -> None:
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

    def _pass(self, pairs: list[Pair], stage: Stage) -> None:
        """Try frozen noise first, then clear-cut events, then counting."""
        self.start = (self.seconds, self.target.runs)
        share = max(min(stage.share, 1 - self._gone((0.0, 0))), 1e-9)
        self.stage = replace(stage, share=share)
        ranked = self._ranked(pairs)
        if self.replayed:
            self._lawful(ranked[: stage.lawful])
        self._clear_cut(ranked[: stage.clear])
        # where it raises on one of two neighbours, count how often (all outputs NaN)
        for pair, text in self.raising[: stage.raising]:
            bare: proofs.Statistic = lambda w: np.isnan(w).all(axis=1)  # noqa: E731
            event = proofs.Event(f"it raises {text}", bare, 1.0, 0.0, True)
            if self.best.refuted:
                break
            self._judge(Candidate(pair, 0.0), self._least(), event)
            self.best.ordinary &= not self.best.refuted
        self.raising = []
        self._counted(ranked[: stage.promising])

    def _ordinary_too(self, pairs: list[Pair]) -> None:
        """Try ordinary records as well, and note the result."""
        odd, self.best = self.best, Verdict()
        try:
            self._pass(pairs, ASIDE)
        except TimeUpError:
            self.best = odd
            raise
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
        """Seconds since the start."""
        return time.perf_counter() - self.began

    def _tell(self) -> None:
        """Report how far the audit is, every few seconds."""
        if self.progress and time.perf_counter() - self.told > OFTEN:
            self.told = time.perf_counter()
            kind = "ordinary" if self.stage.ordinary else "extreme"
            self.progress(
                f"{self.seconds:.0f} of {self.claim.seconds:g} seconds,"
                f" {self.target.runs} runs, {kind} records:"
                f" epsilon >= {self.best.epsilon:.4g} so far"
            )

    def _gone(self, start: tuple[float, int]) -> float:
        """Share of the whole budget spent since a start."""
        seconds, runs = self.seconds - start[0], self.target.runs - start[1]
        return max(seconds / self.claim.seconds, runs / self.claim.runs)

    def _spent(self) -> float:
        return self._gone(self.start) / self.stage.share

    def _seeds(self, count: int) -> list[int]:
        return [int(s) for s in self.rng.integers(0, 2**32, count, dtype=np.uint64)]

    # --- what the function takes ------------------------------------------------------

    def _error(self, pair: Pair) -> str:
        """What the function raises on a pair; empty if it runs."""
        for data in (pair.first, pair.second):
            run = self.target(data, 0)
            self._tell()
            if run.raised:
                return run.raised
            self.size = max(self.size, run.output.size)
        return ""

    def _outputs(self, data: Records, seeds: list[int]) -> Array:
        """Outputs on seeds, (m, k); missing numbers are NaN, all after an exception."""
        outputs = np.full((len(seeds), self.size), np.nan)
        for k, seed in enumerate(seeds):
            run = self.target(data, seed)
            self._tell()
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
        """Pairs by how far the same noise moves outputs from D to D', worst first."""
        seeds, outputs = self._seeds(self.stage.frozen), dict[int, tuple[Array, str]]()
        found, known = list[Candidate](), set[frozenset[bytes]]()
        for pair in pairs:
            if self._spent() > self.stage.ranking:
                break
            one, two = self._both(pair, seeds, outputs)
            if one is None or two is None:
                continue
            both = frozenset(rounded(side) for side in (one, two))
            if not self.replayed or both not in known:  # it may ignore labels
                known.add(both)
                found.append(Candidate(pair, score(one, two)))
        if self.stage.ordinary:
            self._scales([c.pair for c in found])
        return sorted(found, key=lambda c: -c.score)

    def _both(
        self, pair: Pair, seeds: list[int], known: dict[int, tuple[Array, str]]
    ) -> list[Array | None]:
        """Outputs on D and D', each data set run once; None if it raised on one."""
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
            why = f"raises {raised or also}" if raised or also else "no finite output"
            self.endless = self.endless or why
        elif text := raised or also:
            self.refusals.setdefault(text.split(":")[0], {})[id(pair)] = text
            if not (raised and also):
                self.raising.append((pair, text))
        else:
            return [one, two]
        return [None, None]

    def _scales(self, pairs: list[Pair]) -> None:
        """Note which noise depends on the data: a clue, not a proof."""
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
        """Compare exact laws on the worst pairs, as long as there are such laws."""
        lawless, delta = 0, self.claim.delta
        for candidate in ranked:
            try:
                given = (self.seed, delta, self._level(self.sampled + 2))
                found = proofs.compare_laws(self.target, candidate.pair, *given)
            except np.linalg.LinAlgError:
                continue
            if found is None:
                lawless += 1
                if lawless == LAWLESS:
                    return
                continue
            self.sampled += 2 if delta else 0  # one bound in each direction
            self._keep(found.epsilon, candidate.pair, found.text, None, found.certain)

    def _keep(
        self,
        epsilon: float,
        pair: Pair,
        proof: str,
        outputs: tuple[Array, Array] | None = None,
        certain: bool = False,
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
                certain,
                outputs=outputs,
                ordinary=self.stage.ordinary,
            )

    def _level(self, test: int) -> float:
        """Level of one test: all counts take half of 1 - confidence, as do all laws."""
        return (1 - self.claim.confidence) * 3 / (math.pi * test) ** 2

    # --- counting ---------------------------------------------------------------------

    def _clear_cut(self, candidates: list[Candidate]) -> None:
        """Count on few runs: enough for an event that is certain on D, never on D'."""
        for candidate in candidates:
            least = self._least()
            affordable = least <= SPARE * FIRST and self._affordable(2 * least)
            if self.best.refuted or not affordable:
                return
            self._more(candidate, FIRST // 4)
            self._judge(candidate, least)

    def _least(self) -> int:
        """Runs that would prove such an event, with some to spare."""
        chance = 1 / (1 + math.exp(-self.claim.epsilon))
        level = self._level(self.tests + 1) / 2
        return math.ceil(SPARE * math.log(level) / math.log(chance)) + 1

    def _counted(self, candidates: list[Candidate]) -> None:
        """Count events of earlier rounds on fresh runs, twice as many each round."""
        count = FIRST
        if self.best.refuted:
            return
        for candidate in candidates:
            self._more(candidate, count)
            if self._spent() > SCREENING:
                break
        candidates = [c for c in candidates if c.sides[0]]
        while candidates and count < MOST and self._affordable(2 * count):
            count *= 2
            keep = max(1, min(len(candidates), self._affordable(count) // SHARE))
            candidates = sorted(candidates, key=self._promise)[:keep]
            for candidate in candidates:
                self._judge(candidate, count)
                if self.best.refuted:
                    return

    def _affordable(self, count: int) -> int:
        """How many pairs could be run ``count`` times on the rest of the budget."""
        left = self.target.runs * (1 / max(self._spent(), 1e-9) - 1)
        return max(0, int(left / (2 * count)))

    def _promise(self, candidate: Candidate) -> float:
        """Negated sum of the bounds on each half of its runs, learned on the other."""
        one, two = map(np.concatenate, candidate.sides)
        halves, total = (slice(None, None, 2), slice(1, None, 2)), 0.0
        for here, there in (halves, halves[::-1]):
            event = proofs.learn(one[here], two[here], LENIENT, self.claim.delta)
            judged = (one[there], two[there], LENIENT, self.claim.delta)
            total += proofs.judge(event, *judged).raw
        return -total

    def _judge(
        self, candidate: Candidate, count: int, event: proofs.Event | None = None
    ) -> None:
        """Count an event on fresh runs; by default the best one on earlier runs."""
        if event is None:
            one, two = map(np.concatenate, candidate.sides)
            event = proofs.learn(one, two, 0.1, self.claim.delta)
        self._more(candidate, count)
        self.tests += 1
        level, (first, second) = self._level(self.tests), candidate.sides
        fresh = first[-1], second[-1]
        found = proofs.judge(event, *fresh, level, self.claim.delta)
        self._keep(found.epsilon, candidate.pair, found.text, fresh)

    def _more(self, candidate: Candidate, count: int) -> None:
        pair = candidate.pair
        for data, kept in zip((pair.first, pair.second), candidate.sides, strict=True):
            kept.append(self._outputs(data, self._seeds(count)))


# --- rank of a pair under frozen noise ------------------------------------------------


def score(one: Array, two: Array) -> float:
    """How far outputs on D and D' lie apart under the same noise, in units of spread.

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
    bare = 0.0  # of differences of two outputs, in which shared noise cancels
    if 1 < one.shape[1] <= WIDE:
        bare = float(_moved(*(side[:, 1:] - side[:, :1] for side in (one, two))).max())
    return away + float(_moved(one, two).sum() + wider.sum() + bare)


def _moved(one: Array, two: Array) -> Array:
    """How far each number moved, in units of its spread, on a logarithmic scale."""
    by = np.sqrt(np.square(one - two).mean(axis=0))  # rare large moves count
    spread = np.minimum(one.std(axis=0), two.std(axis=0))
    return np.log1p(by / np.maximum(np.hypot(spread, STEP * by), FLOOR))


def rounded(outputs: Array) -> bytes:
    """Bytes that are equal for outputs that differ by rounding only."""
    with np.errstate(all="ignore"):
        digits = 10.0 ** np.floor(np.log10(np.abs(outputs) + 1e-300) - 8)
        rounded = np.round(outputs / digits) * digits
    return np.where(np.isfinite(outputs), rounded, outputs).tobytes()


# --- the command ---------------------------------------------------------------------


def main(given: argparse.Namespace) -> None:
    """Audit the function that the command line names."""
    try:
        _within("--epsilon", given.epsilon, 0, math.inf)
        if given.delta:
            _within("--delta", given.delta, 0, 1)
        _within("--confidence", given.confidence, 0.5, 1)
        _within("--seconds", given.seconds, 0, math.inf)
        claim = Claim(given.epsilon, given.delta, given.confidence, given.seconds)
        domains = _domains(given)
        fit = load(given.function)
        verdict, domain = _best(fit, claim, domains, given.seed, _show)
        name = re.sub(r"[^\w.]+", "-", given.function).strip("-.")
        folder = Path(given.out or f"results/audit/functions/{name}")
        text = verdict_text(given.function, claim, domain, verdict, folder)
        save(folder, verdict, {**vars(given), "relation": domain.relation}, text)
    except (RefusedError, OSError) as error:
        print(f"dperm audit: {error}", file=sys.stderr)
        raise SystemExit(REFUSED) from error
    print(text)
    raise SystemExit(REFUTED if verdict.refuted else NOT_REFUTED)


def _show(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def _best(
    fit: Fit,
    claim: Claim,
    domains: list[Domain],
    seed: int,
    progress: Progress | None = None,
) -> tuple[Verdict, Domain]:
    """The verdict on the first domain that refutes, or the largest bound.

    The domains share the time and 1 - confidence. Raises RefusedError if the function
    runs on none of them.
    """
    confidence = 1 - (1 - claim.confidence) / len(domains)
    seconds = claim.seconds / len(domains)
    each = replace(claim, confidence=confidence, seconds=seconds)
    found: list[tuple[Verdict, Domain]] = []
    for domain in domains:
        try:
            found.append((audit(fit, each, domain, seed, progress), domain))
        except RefusedError:
            if domain is domains[-1] and not found:
                raise
        if found and found[-1][0].refuted:
            break
    best = max(found, key=lambda one: (one[0].refuted, one[0].epsilon))
    best[0].seconds = sum(verdict.seconds for verdict, _ in found)
    best[0].runs = sum(verdict.runs for verdict, _ in found)
    return best


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``dperm audit`` to its parser."""
    parser.description = DESCRIPTION
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("function", type=_place, help="module:function or path.py:function")
    add("--epsilon", type=float, required=True, help="what it claims, above 0")
    add("--delta", type=float, default=0.0, help="what it claims, from 0; default 0")
    add("--n", type=int, default=8, help="records; default 8")
    add("--p", type=int, help="features; default 1, 2, and 4 without bounds")
    add(
        "--x-bound",
        type=_range,
        metavar="B or LOW:HIGH",
        help="features that it assumes: -B to B; none given: any number",
    )
    add(
        "--y-bound", type=_range, metavar="B or LOW:HIGH", help="labels that it assumes"
    )
    add("--labels", type=_labels, metavar="A,B,...", help="all labels that exist")
    add(
        "--norm",
        choices=sorted(NORMS),
        default="linf",
        help="norm of a record's features that B bounds; default linf, each feature",
    )
    add("--relation", choices=RELATIONS, default="replace", help="neighbours")
    add("--seconds", type=float, default=45.0, help="by the clock; default 45")
    add("--confidence", type=float, default=0.999, help="of a refutation; 0.999")
    add("--seed", type=int, default=0, help="of the audit; default 0")
    add("--out", help="folder; default results/audit/functions/<function>")


def _place(text: str) -> str:
    if not PLACE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r}: expected module:function")
    return text


def _range(text: str) -> tuple[float, float]:
    try:
        ends = [float(part) for part in text.split(":")]
    except ValueError:
        ends = []
    low, high = (-ends[0], ends[0]) if len(ends) == 1 else (ends or [0, 0])[:2]
    if len(ends) > 2 or not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise argparse.ArgumentTypeError(f"{text!r}: expected B > 0 or LOW:HIGH")
    return low, high


def _labels(text: str) -> tuple[float, ...]:
    try:
        found = tuple(sorted({float(part) for part in text.split(",")}))
    except ValueError:
        found = ()
    if len(found) < 2 or not np.isfinite(found).all():
        raise argparse.ArgumentTypeError(f"{text!r}: expected numbers, as in -1,1")
    return found


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low < value < high:
        raise RefusedError(
            f"{name} {value:g}: expected more than {low:g}, less than {high:g}"
        )


def _domains(given: argparse.Namespace) -> list[Domain]:
    for name, least, most in (("n", 2, LARGEST), ("p", 1, LARGEST), ("seed", 0, 2**62)):
        value = getattr(given, name)
        if value is not None and not least <= value <= most:
            raise RefusedError(f"--{name} {value}: expected {least} to {most}")
    if given.labels and given.y_bound:
        raise RefusedError("--labels and --y-bound: expected one of them")
    if given.norm != "linf" and given.x_bound is None:
        raise RefusedError(f"--norm {given.norm}: expected --x-bound with it")
    y, listed = given.labels or given.y_bound, bool(given.labels)
    rest = (given.x_bound, given.norm, y, listed, given.relation)
    features = FEATURES if given.p is None else (given.p,)
    domains = [Domain(given.n, p, *rest) for p in features]
    return [d for d in domains if given.p or not d.bounded or d.p < FEATURES[-1]]


# --- the verdict ----------------------------------------------------------------------


def verdict_text(
    function: str, claim: Claim, domain: Domain, verdict: Verdict, folder: Path
) -> str:
    """The verdict in a few lines."""
    sign = "=" if math.isinf(verdict.epsilon) else ">="
    how = f"by counting, with confidence {claim.confidence:g}"
    if verdict.frozen:
        how = "by frozen noise: the output is affine in it, checked on fresh draws"
        how += "" if verdict.certain else f", with confidence {claim.confidence:g}"
    lines = [
        f"{'REFUTED' if verdict.refuted else 'not refuted'}: {function},"
        f" claimed epsilon {claim.epsilon:g} at delta {claim.delta:g}",
        f"  proved: epsilon {sign} {verdict.epsilon:.4g} at delta"
        f" {claim.delta:g}, {how}",
        f"  proof: {verdict.proof}",
    ]
    if verdict.pair is not None:
        lines.append(
            f"  neighbours: {verdict.pair.text} (n = {domain.n}, p = {domain.p}),"
            f" {folder}/neighbours.npz"
        )
    lines += [f"  note: {note}" for note in verdict.notes]
    lines.append(f"  {verdict.runs} runs in {verdict.seconds:.1f} seconds")
    return "\n".join(lines)


def save(folder: Path, verdict: Verdict, given: dict[str, Any], text: str) -> None:
    """Write the verdict, and the neighbours as CSV and as arrays.

    Parameters
    ----------
    folder : Path
        Created if need be.
    given : dict
        The arguments, saved with the verdict.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "verdict.txt").write_text(text + "\n", encoding="utf-8")
    bare = replace(verdict, pair=None, outputs=None)
    plain = {**asdict(bare), "arguments": given}
    plain["epsilon"] = (
        str(verdict.epsilon) if math.isinf(verdict.epsilon) else verdict.epsilon
    )
    spelt = json.dumps(plain, indent=1) + "\n"
    (folder / "verdict.json").write_text(spelt, encoding="utf-8")
    if verdict.pair is None:
        return
    first, second = verdict.pair.first, verdict.pair.second
    whole = folder / "neighbours.npz"
    np.savez(whole, X=first.X, y=first.y, X_prime=second.X, y_prime=second.y)
    if verdict.outputs is not None:
        counted, other = verdict.outputs
        np.savez(folder / "outputs.npz", D=counted, D_prime=other)
    for name, data in (("D", first), ("D_prime", second)):
        names = ",".join([*(f"x{j + 1}" for j in range(data.X.shape[1])), "y"])
        rows = np.column_stack([data.X, data.y]).tolist()
        (folder / f"{name}.csv").write_text(
            "\n".join([names, *(",".join(map(repr, row)) for row in rows)]) + "\n",
            encoding="utf-8",
        )
