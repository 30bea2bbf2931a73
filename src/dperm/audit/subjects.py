"""Subjects of an audit: solvers on small data, as functions of their noise.

``Subject.run`` takes records and, optionally, the noise, and returns what becomes known
after each step. Every run starts from scratch on its records; only what a solver
declares to be public is that of the first data set.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator
from scipy import stats

from dperm.accountants.noisy_max import NoisyMax
from dperm.core.privacy import mechanisms
from dperm.core.privacy.accounting import epsilon, true_epsilon
from dperm.core.privacy.ledger import Event, Ledger
from dperm.core.privacy.mechanisms import STREAMS, Streams, streams

Array = np.ndarray

LOUD = 1e3  # entries of an adversarial record: far beyond every clipping threshold
DELTA = 1e-5

Seed = int | tuple[int, int, int]  # of a run, or of each of its streams


@dataclass(frozen=True)
class Records:
    """Data of a subject: X (n, p), labels y (n,)."""

    X: Array
    y: Array

    def replaced(self, i: int, x: Array, label: float) -> Records:
        """The neighbour with another record i."""
        X, y = self.X.copy(), self.y.copy()
        X[i], y[i] = x, label
        return Records(X, y)


# --- taps on noise --------------------------------------------------------------------

LAWS: dict[str, Any] = {  # of noise of unit scale and location zero
    "gaussian": stats.norm,
    "normal": stats.norm,  # numpy's name for it
    "laplace": stats.laplace,
    "logistic": stats.logistic,
    "exponential": stats.expon,
    "gumbel": stats.gumbel_r,
}


@dataclass(frozen=True)
class Draw:
    """Noise from one call."""

    kind: str  #: a key of ``LAWS``, or generalised_gaussian
    unit: Array  #: the numbers, in units of the noise's scale
    order: float = 2.0  #: norm of a generalised Gaussian; 2 is the Gaussian
    scale: Any = 1.0  #: as passed, where the tap sees it

    def moved(self, shift: Array) -> Draw:
        """The draw with a shift added; the shift is flat."""
        unit = self.unit + np.reshape(shift, self.unit.shape)
        return Draw(self.kind, unit, self.order)


class Tap:
    """Records draws; returns those of a script as long as their shapes fit."""

    def __init__(self, script: Sequence[Draw] = ()):
        self.script, self.draws = script, list[Draw]()

    def __call__(self, kind: str, unit: Array, order: float = 2.0) -> Array:
        """Record a draw; return the numbers that the caller gets instead of its own."""
        at = len(self.draws)
        if at < len(self.script) and self.script[at].unit.shape == np.shape(unit):
            unit = self.script[at].unit
        else:
            self.script = ()
        self.draws.append(Draw(kind, np.array(unit, dtype=float), order))
        return unit


@contextmanager
def tapped(tap: Tap) -> Iterator[Tap]:
    """Let a tap record all noise that any module draws, also outside dperm."""
    with mechanisms.heard(tap):
        yield tap


# --- runs -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Transcript:
    """The record of one run."""

    views: list[Array]  #: what became known, release by release
    draws: list[Draw]  #: all noise, in the order it was drawn
    ends: list[int]  #: 0, and how many draws were made up to each view
    weights: Array  #: what is published at the end

    def draws_of(self, t: int) -> list[int]:
        """Places of the draws that went into view t."""
        return list(range(self.ends[t], self.ends[t + 1]))


class Taken(Generator):
    """A sampling stream that returns prescribed records, one per step.

    A batch holds that record and the ones that follow it; with replacement, it holds
    that record alone, repeated.
    """

    def __init__(self, seed: int, taken: Sequence[int]):
        super().__init__(PCG64(seed))
        self.left = iter(taken)

    def integers(self, low: Any, high: Any = None, size: Any = None, **_: Any) -> Any:  # type: ignore[override]
        """The next prescribed number, whatever the range."""
        return np.full(() if size is None else size, next(self.left))

    def choice(  # type: ignore[override]
        self, a: Any, size: Any = None, replace: bool = True, *_: Any, **__: Any
    ) -> Any:
        """The next prescribed number and its successors, modulo ``a``."""
        count = 1 if size is None else size
        if replace:
            return np.full(count, next(self.left)) % int(a)
        return (next(self.left) + np.arange(count)) % int(a)


@dataclass(frozen=True)
class Order:
    """An order for a subject: a solver, its calibration and its target."""

    #: name, module, options, kind, epsilon: ``kind`` is the calibration, ``paper`` or
    #: ``strict``
    name: str
    module: ModuleType
    options: Any
    kind: str
    epsilon: float
    steps: int | None = None  #: None: the usual number
    varied: bool = False  #: whether other data and options are tried
    #: noise multipliers found so far
    known: dict[Any, float] = field(default_factory=dict)


class Subject(ABC):
    """A solver at one setting.

    Attributes
    ----------
    hidden : bool
        Whether a step reads a secret random record.
    real : bool
        Whether labels are numbers, not signs.
    cost : int
        Divisor of the number of runs, where they are slow.
    reason : str
        Why no attack reaches the bound, where that is known.
    far : float
        Noise, in units of its scale, that takes weights so far that products with odd
        records overflow, but not so far that releases lose their digits.
    whole : bool
        Whether views are all that a run releases, so that they determine the weights.
    """

    name: str
    calibration: str
    ledger: Ledger  #: the ledger that it states
    delta: float
    base: Records
    epsilon: float = math.inf  #: target of strict noise
    positions: tuple[int, ...] = (0,)  #: records worth replacing
    hidden = False
    real = False
    bound: Array | None = None  #: public bounds on the entries of a record, (p,)
    tried: tuple[tuple[Array, Array], ...] = ()  #: pairs of records to be tried first
    #: the event of each draw of a run, where its kind alone does not determine it
    draw_events: tuple[Event, ...] = ()
    cost = 1
    #: the same with little noise and few steps, so that one step is easy to distinguish
    loud: Subject | None = None
    reason = ""
    far = 1e5
    whole = True

    @abstractmethod
    def start(self, data: Records, generators: Streams) -> AbstractContextManager[Any]:
        """Start a run on the data, from scratch."""

    @abstractmethod
    def releases(self, run: Any) -> Iterator[Array]:
        """What becomes known of the run, release by release."""

    def together(self, run: Any) -> None:
        """Take all steps as in a run where nobody looks at single steps."""
        for _ in self.releases(run):
            pass

    @abstractmethod
    def published(self, run: Any) -> Array:
        """The weights at the end."""

    def run(
        self,
        data: Records,
        seed: Seed,
        script: Sequence[Draw] = (),
        taken: Sequence[int] | None = None,
        until: int | None = None,
        heard: bool = True,
    ) -> Transcript:
        """Run on the data; noise from the seed, or from the script as far as it goes.

        Parameters
        ----------
        seed : int or tuple of int
        taken : sequence of int, optional
            Which record each step reads, where that is random.
        until : int, optional
            The view after which the run stops.
        heard : bool
            Whether the tap records; if not, there are no draws and no script.
        """
        generators, tap = _streams(seed, taken), Tap(script)
        views, ends = list[Array](), [0]
        with (
            tapped(tap) if heard else nullcontext(),
            self.start(data, generators) as run,
        ):
            for view in self.releases(run):
                views.append(np.array(view, dtype=float))
                ends.append(len(tap.draws))
                if len(views) - 1 == until:
                    break
            weights = np.ravel(self.published(run)).copy()
        return Transcript(views, tap.draws, ends, weights)

    def ended(self, data: Records, seed: int) -> Array:
        """The weights of a run that takes its steps together, without a tap."""
        with self.start(data, streams(seed)) as run:
            self.together(run)
            return np.ravel(self.published(run)).copy()

    @abstractmethod
    def symbol(self, view: Array) -> tuple[int, ...]:
        """What a step selected, read from its view."""

    @cached_property
    def claimed_epsilon(self) -> float:
        """Epsilon of the ledger by the calibration's own accountant."""
        return epsilon(self.ledger, self.delta, self.calibration)

    @cached_property
    def true_epsilon(self) -> float:
        """Epsilon of the ledger by a sound accountant."""
        return true_epsilon(self.ledger, self.delta)

    @property
    def selects(self) -> bool:
        """Whether it releases selections."""
        return any(isinstance(event, NoisyMax) for event in self.ledger.events)


def _streams(seed: Seed, taken: Sequence[int] | None) -> Streams:
    if isinstance(seed, tuple):
        each = zip(STREAMS, map(streams, seed), strict=True)
        generators = Streams(**{name: getattr(one, name) for name, one in each})
    else:
        generators = streams(seed)
    if taken is None:
        return generators
    return generators.replaced(sampling=Taken(0, taken))
