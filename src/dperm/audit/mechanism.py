"""A mechanism: a solver on small data, as a function of its records and its noise.

``Mechanism.run`` takes records and, optionally, the noise, and returns what becomes
known after each release. Every run starts from scratch on its records; only what a
solver declares to be public is that of the base.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator
from scipy import stats

from dperm.privacy import noise
from dperm.privacy.accounting import epsilon, true_epsilon
from dperm.privacy.events import Event, Ledger, SampledGaussian
from dperm.privacy.mechanisms.noisy_max import NoisyMax
from dperm.privacy.noise import STREAMS, Streams, streams

Array = np.ndarray
Record = tuple[Array, float]
Seed = int | tuple[int, int, int]  # of a run, or of each of its streams

# Entries of a record that is far beyond every clipping threshold
INFLUENTIAL = 1e3
DELTA = 1e-5
LAWS: dict[str, Any] = {  # of noise of unit scale and location zero
    "gaussian": stats.norm,
    "normal": stats.norm,  # numpy's name for it
    "laplace": stats.laplace,
    "logistic": stats.logistic,
    "exponential": stats.expon,
    "gumbel": stats.gumbel_r,
}


@dataclass(frozen=True, eq=False)
class AuditData:
    """Data of a mechanism: X (n, p), labels y (n,). Hashed by identity."""

    X: Array
    y: Array

    @property
    def bytes(self) -> tuple[bytes, bytes]:
        """What tells whether two are the same."""
        return self.X.tobytes(), self.y.tobytes()

    def replaced(self, i: int, record: Record) -> AuditData:
        """The neighbour with another record i."""
        X = self.X.copy()
        y = self.y.copy()
        X[i], y[i] = record
        return AuditData(X, y)


@dataclass(frozen=True)
class Pair:
    """Neighbours, and the record they differ in."""

    first: AuditData
    second: AuditData
    position: int

    @property
    def reverse(self) -> Pair:
        """The other direction."""
        return Pair(self.second, self.first, self.position)

    @property
    def alike(self) -> bool:
        """Whether all records of D' are equal: it tells nothing which one is read."""
        X = self.second.X
        y = self.second.y
        return bool((X[0] == X).all() and (y == y[0]).all())


@dataclass(frozen=True)
class Draw:
    """Noise from one call, in units of its scale."""

    law: str  #: a key of ``LAWS``, or generalised_gaussian
    unit: Array
    order: float = 2.0  #: norm of a generalised Gaussian; 2 is the Gaussian

    def moved(self, shift: Any) -> Draw:
        """The draw with a shift added: a number, or a flat array."""
        shift = np.reshape(shift, self.unit.shape) if np.ndim(shift) else shift
        return Draw(self.law, self.unit + shift, self.order)


class Recorder:
    """Records draws, and returns those of a script as long as their shapes fit."""

    def __init__(self, script: Sequence[Draw] = ()):
        self.script = script
        self.draws = list[Draw]()

    def __call__(self, law: str, unit: Array, order: float = 2.0) -> Array:
        """Record a draw; return the numbers that the caller gets instead of its own."""
        place = len(self.draws)
        if place < len(self.script) and self.script[
            place
        ].unit.shape == np.shape(unit):
            unit = self.script[place].unit
        else:
            self.script = ()
        self.draws.append(Draw(law, np.array(unit, dtype=float), order))
        return unit


class FixedSampling(Generator):
    """A sampling stream that returns one prescribed record in every step.

    A batch holds that record and the ones that follow it; with replacement, it holds
    that record alone, repeated.
    """

    def __init__(self, index: int):
        super().__init__(PCG64(0))
        self.index = index

    def integers(  # type: ignore[override]
        self, low: Any, high: Any = None, size: Any = None, **_: Any
    ) -> Any:
        """The prescribed number, whatever the range."""
        shape = () if size is None else size
        return np.full(shape, self.index)

    def choice(  # type: ignore[override]
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        *_: Any,
        **__: Any,
    ) -> Any:
        """The prescribed number and its successors, modulo ``a``."""
        count = 1 if size is None else size
        return (self.index + np.arange(count) * (not replace)) % int(a)


@dataclass(frozen=True)
class Transcript:
    """The record of one run."""

    views: list[Array]  #: what became known, release by release
    draws: list[Draw]  #: all noise, in the order it was drawn
    ends: list[int]  #: 0, and how many draws were made up to each view
    weights: Array  #: what is published at the end

    def behind(self, t: int) -> range:
        """Places of the draws that went into view t."""
        return range(self.ends[t], self.ends[t + 1])


@dataclass(frozen=True)
class Composed:
    """Fits under one budget, and what that says it has spent."""

    fits: list[Any]
    epsilon: float
    delta: float
    is_kept: bool  #: whether it refuses a fit whose noise it has seen


@dataclass(frozen=True)
class WholeFit:
    """All that a user calls at once: it reads records and returns a fitted object.

    Parameters
    ----------
    fit : callable
        ``fit(data, epsilon, delta, seed)`` returns the object; data are
        :class:`AuditData`, or what the caller made of them.
    ledger : callable
        The ledger of that object, and the share of delta that other costs take.
    forced : callable
        ``forced(log, is_first)`` opens a context in which all that a fit releases is
        kept in the log, or else taken from it.
    neighbours : callable
        Pairs of data, each with a few words.
    many : Records
        So many that releases of fixed noise are the same at all targets that are tried:
        a saved price must not be found by them alone.
    composed : callable, optional
        ``composed(data, epsilon, delta, seeds)`` fits once for each seed under one
        budget.
    faults : callable, optional
        Neighbours of further kinds that it tells apart before its first release, in
        words, and how many were tried.
    """

    fit: Callable[[Any, float, float, int], Any]
    ledger: Callable[[Any], Ledger]
    forced: Callable[[list[Any], bool], Any]
    neighbours: Callable[[], Iterator[tuple[str, Any, Any]]]
    many: AuditData
    composed: Callable[[Any, float, float, Sequence[int]], Composed] | None = (
        None
    )
    faults: Callable[[], tuple[list[str], int]] = lambda: ([], 0)


@dataclass
class Mechanism:
    """A solver at one setting.

    Parameters
    ----------
    name : str
    calibration : {"published", "tight"}
        Its calibration.
    ledger : Ledger
        What it states.
    base : Records
        Its data, which have the public constants of all neighbours.
    begin : callable
        ``begin(records, streams)`` starts a run from scratch.
    follow : callable
        Makes the releases of a run, one by one.
    end : callable, optional
        Makes a run all at once, as where nobody looks at single steps.
    published : callable
        The weights of a run, after its releases.
    select : callable, optional
        What a release selected, as a tuple.
    """

    name: str
    calibration: str
    ledger: Ledger
    base: AuditData
    begin: Callable[[AuditData, Streams], Any]
    follow: Callable[[Any], Iterator[Array]]
    end: Callable[[Any], Any] | None = None
    published: Callable[[Any], Array] = attrgetter("weights")
    select: Callable[[Array], tuple] = lambda view: ()
    #: first draws, which hide no selection but the first events
    ahead: int = 0
    epsilon: float = 1.0  #: target of its calibration
    positions: tuple[int, ...] = (0,)  #: records worth replacing
    parallel: bool = False  #: whether releases read records of their own
    real: bool = False  #: whether labels are numbers, not signs
    #: public bounds on the entries of a record, (p,)
    bound: Array | None = None
    tried: tuple[
        tuple[Array, Array], ...
    ] = ()  #: pairs of records to be tried first
    #: the event of each draw, where its law alone does not determine it
    events: tuple[Event, ...] = ()
    #: noise, in units of its scale, that takes weights so far that products with
    #: extreme records overflow, but not so far that releases lose their digits; 0 where
    #: large noise breaks privacy, with the chance that the ledger states
    far: float = 1e5
    #: the ledger that its calibration makes for an epsilon and a delta
    calibrated: Callable[[float, float], Ledger] | None = None
    whole: WholeFit | None = None  #: the fit of which it is a part
    #: what it is made of: module, options, and problem or setup
    setting: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def claimed(self) -> float:
        """Epsilon of the ledger by the calibration's own accountant."""
        return epsilon(self.ledger, DELTA, self.calibration)

    @cached_property
    def true(self) -> float:
        """Epsilon of the ledger by a sound accountant."""
        return true_epsilon(self.ledger, DELTA)

    @cached_property
    def hidden(self) -> bool:
        """Whether a step reads secret random records."""
        return any(isinstance(e, SampledGaussian) for e in self.ledger.events)

    @cached_property
    def selections(self) -> list[NoisyMax]:
        """Events of its selections."""
        return [e for e in self.ledger.events if isinstance(e, NoisyMax)]

    def selects(self, seen: Transcript, t: int) -> bool:
        """Whether view t reveals a selection, whose noise is then its first draw."""
        if not self.selections or not seen.behind(t):
            return False
        place = seen.behind(t)[0]
        if place < self.ahead:
            return False
        return not self.events or isinstance(self.events[place], NoisyMax)

    def selecting(self, seen: Transcript) -> list[int]:
        """Views that reveal a selection."""
        return [t for t in range(len(seen.views)) if self.selects(seen, t)]

    def run(
        self,
        data: AuditData,
        seed: Seed,
        script: Sequence[Draw] = (),
        read_record: int | None = None,
        until: float = math.inf,
    ) -> Transcript:
        """Run with noise from the seed, or from the script as far as it goes.

        Parameters
        ----------
        data : Records
        seed : int or tuple of int
        script : sequence of Draw
        read_record : int, optional
            The record that each step reads, where that is random.
        until : float
            The view after which the run stops.
        """
        run_streams = seeded(seed)
        tap = Recorder(script)
        if read_record is not None:
            run_streams = run_streams.replaced(
                sampling=FixedSampling(read_record)
            )
        views = list[Array]()
        ends = [0]
        with noise.listening(tap), quiet():
            run = self.begin(data, run_streams)
            for view in self.follow(run):
                views.append(np.ravel(np.array(view, dtype=float)))
                ends.append(len(tap.draws))
                if len(views) > until:
                    break
            published = np.ravel(self.published(run)).copy()
        return Transcript(views, tap.draws, ends, published)


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress warnings, of numpy too: records that overflow are intended here."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def seeded(seed: Seed) -> Streams:
    """The streams of a seed, or of one seed for each stream."""
    if not isinstance(seed, tuple):
        return streams(seed)
    named_streams = zip(STREAMS, map(streams, seed), strict=True)
    return Streams(
        **{name: getattr(source, name) for name, source in named_streams}
    )


def all_seeds(seed: int, purpose: int, count: int) -> list[int]:
    """Seeds for one purpose, which are used for no other."""
    state = np.random.SeedSequence([seed, purpose]).generate_state(
        count, np.uint64
    )
    return [int(word) for word in state]
