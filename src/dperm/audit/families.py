"""Subjects of the four families of solvers.

Runs of ``frank_wolfe`` and ``streams`` yield their releases one by one; ``lanes``
advance step by step over a finite sum; ``fits`` make a few releases on all records. A
neighbour is a separate problem, with the public numbers of the base.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from dperm.audit.replay import is_bent
from dperm.audit.subjects import DELTA, LOUD, Array, Order, Records, Subject
from dperm.core.calibrations import STRICT
from dperm.core.erm.losses import named
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import Problem, build
from dperm.core.lanes import Lanes
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import Event, Ledger, SampledGaussian
from dperm.core.privacy.mechanisms import Streams, streams
from dperm.solvers import records
from dperm.solvers import streams as family
from dperm.solvers.fits.scaled import Scaled
from dperm.solvers.scales import declared
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import Rows


@dataclass(frozen=True)
class SequenceNeeds:
    """The small data and options for the audit of a Frank-Wolfe method or stream."""

    n: int = 16
    #: exponents of the balls and dimensions; one subject for each
    balls: tuple[tuple[float, int], ...] = ((2.0, 3),)
    radius: float = 0.25
    loss: str = "linear"
    positions: tuple[int, ...] = (0, 15)  #: records worth replacing
    cost: int = 1  #: divisor of the number of runs
    #: options that fit the small data
    options: Mapping[str, Any] = field(default_factory=dict)
    #: steps, numbers: see ``FrankWolfeSubject``
    steps: int = 4
    numbers: int = 0
    epsilon: float = 0.0  #: least target, where a small one leaves candidates no gap
    #: changes of these needs that are also tried, by name
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reason: str = ""  #: why no attack reaches the bound


class SequenceSubject(Subject):
    """A solver whose run is an iterator of releases, on one ball.

    Parameters
    ----------
    p : float
        Exponent of the ball.
    d : int
        Its dimension.
    """

    def __init__(self, at: Order, needs: SequenceNeeds, p: float, d: int):
        self.name = f"{at.name}, p = {p:g}" if len(needs.balls) > 1 else at.name
        self.module, self.options = at.module, replace(at.options, **needs.options)
        self.setup, self.n = Setup(needs.loss, p, d, needs.radius), needs.n
        self.delta, self.epsilon = DELTA, max(at.epsilon, needs.epsilon)
        self.calibration, self.reason = at.kind, needs.reason
        self.positions, self.cost = needs.positions, needs.cost
        self.kind, self.base = at.module.Run, small_stream(needs.n, d)

    @cached_property
    def claimed_epsilon(self) -> float:
        """The target, for which these papers print their noise."""
        return self.epsilon

    def symbol(self, view: Array) -> tuple[int, ...]:
        """The selected vertex: the large entry of the first d, with its sign."""
        vertex = view[: self.setup.d]
        large = np.abs(vertex) > 0.5 * np.abs(vertex).max(initial=0.0)
        return tuple((np.sign(vertex) * large).astype(int).tolist())


class StreamSubject(SequenceSubject):
    """A solver over a stream of records; ``source`` may be a broken one."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.source: Any = Rows
        self.target = family.Target(self.epsilon, self.delta, self.calibration)
        noise = self.module.noise(self.setup, self.n, self.target, self.options)
        self.ledger = noise.ledger

    def start(self, data: Records, generators: Streams) -> AbstractContextManager[Any]:
        """Start a run of one setup with one target."""
        part = family.Part(self.setup, [self.target], generators)
        source = self.source(data.X, data.y)
        return nullcontext(self.kind([part], source, self.n, self.options))

    def releases(self, run: Any) -> Iterator[Array]:
        """The releases of the run, unchanged."""
        return run.releases()

    def published(self, run: Any) -> Array:
        """The only target's point, (d,)."""
        return run.weights[0][0]


class FrankWolfeSubject(SequenceSubject):
    """A Frank-Wolfe method on a finite sum, least squares.

    It makes ``needs.steps`` steps, or the number that is ordered if that is less. A
    release may have ``needs.numbers`` numbers after its signed index.
    """

    def __init__(self, at: Order, needs: SequenceNeeds, p: float, d: int):
        super().__init__(at, needs, p, d)
        self.steps = min(at.steps or needs.steps, needs.steps)
        self.numbers = needs.numbers
        goal = (self.options, self.epsilon, self.delta, self.calibration)
        self.noise = self.module.noise(self._problem(self.base), self.steps, *goal)
        self.ledger = self.noise.ledger

    def start(self, data: Records, generators: Streams) -> AbstractContextManager[Any]:
        """Start a run with the noise of the base, whose scales are public."""
        return self.kind(self._problem(data), generators, self.options, self.noise)

    def releases(self, run: Any) -> Iterator[Array]:
        """The vertex that a release's signed index names, and its numbers."""
        for release in run.releases(self.steps):
            yield as_vertex(release, self.setup.d, self.numbers)

    def published(self, run: Any) -> Array:
        """The iterate."""
        return run.weights

    def _problem(self, data: Records) -> Problem:
        goal = (self.epsilon, self.delta)
        source = Rows(data.X, data.y)
        return build("audit", source.X, source.y, "least_squares", Penalty(), *goal)


def as_vertex(release: Array, d: int, numbers: int) -> Array:
    """A release +-(j + 1), x, y, ... as +-e_j in d dimensions and its numbers."""
    signed, rest = float(release[0]), np.zeros(numbers)
    rest[: release.size - 1] = release[1:]
    return np.concatenate([np.sign(signed) * np.eye(d)[abs(int(signed)) - 1], rest])


def small_stream(n: int, d: int) -> Records:
    """Records with labels of both signs."""
    X = np.random.default_rng(3).uniform(0.5, 1.5, (n, d))
    return Records(X, np.where(np.arange(n) % 3 == 0, -1.0, 1.0))


Claim = Callable[[Ledger], Ledger]
View = Callable[[Array], Array]
Known = dict[Any, float]

WITHIN = 2.0  # public bounds on the features, in units of the largest entry


@dataclass(frozen=True)
class Shape:
    """The small problem that a subject solves."""

    n: int = 8
    p: int = 3
    loss: str = "logistic"
    penalty: Penalty = field(default_factory=Penalty)
    is_sparse: bool = False  #: whether A is stored as a sparse matrix
    balance: float = 0.5  #: features have sizes from it to its inverse
    #: whether features have public bounds, and each data set has its own smoothness
    #: constants, which those bounds limit
    bounded: bool = False

    @property
    def real(self) -> bool:
        """Whether labels are numbers."""
        return bool((named(self.loss).signs(np.full(1, -1.0)) == 1).all())

    def records(self) -> Records:
        """Records and gradients that all point one way; a few zeros unless dense."""
        rng = np.random.default_rng(7)
        sizes = np.geomspace(self.balance, 1 / self.balance, self.p)
        X = np.outer(rng.uniform(0.5, 1.5, self.n), sizes)
        if self.is_sparse:
            X[np.add.outer(np.arange(self.n), np.arange(self.p)) % 3 == 1] = 0.0
        return Records(X, np.ones(self.n))

    def problem(self, data: Records, epsilon: float) -> Problem:
        """The problem on the records."""
        X = sparse.csc_array(data.X) if self.is_sparse else data.X
        return build("audit", X, data.y, self.loss, self.penalty, epsilon, DELTA)


class Estimating(Problem):
    """A neighbour with its own smoothness constants; only their bounds are public."""

    @cached_property
    def smoothness(self) -> Array:  # type: ignore[override]
        """M_j of these data."""
        return Problem(**{**vars_of(self), "public": None}).smoothness


def vars_of(problem: Problem) -> dict[str, Any]:
    """The fields of a problem, without cached values."""
    return {name: getattr(problem, name) for name in Problem.__dataclass_fields__}


def _multiplier(
    module: ModuleType,
    problem: Problem,
    count: int,
    options: Any,
    calibration: str,
    known: Known,
) -> float:
    """The least noise multiplier; problems of one ledger share it."""

    def ledger(noise: float) -> Ledger:
        return module.ledger(problem, count, noise, options, calibration)

    key = (ledger(1.0), ledger(2.0), problem.epsilon, calibration)
    if key not in known:
        found = calibrate(ledger, problem.epsilon, problem.delta, calibration)
        known[key] = found.noise_multiplier
    return known[key]


def _all(released: Array) -> Array:
    return released


class LaneSubject(Subject):
    """A solver that advances lanes over a finite sum, one step at a time.

    A neighbour is a separate problem, on which the run starts from scratch. Only the
    constants that are taken to be public are those of the base.

    Parameters
    ----------
    module : module of a solver of lanes
    options : its Options
    calibration : {"paper", "strict"}
    count : int
        Steps.
    epsilon : float
        Target.
    kind : class, optional
        In place of ``module.Run`` (broken mechanisms).
    claim : callable, optional
        Changes what the ledger states (broken mechanisms).
    view : callable, optional
        Takes the part of what a lane released that is examined, (k,); all by default.
    known : dict, optional
        Noise multipliers found before for the same module.
    """

    step, clip = 1e-3, 0.05

    def __init__(
        self,
        name: str,
        module: ModuleType,
        options: Any,
        calibration: str,
        count: int,
        shape: Shape,
        epsilon: float,
        kind: Any = None,
        claim: Claim | None = None,
        view: View = _all,
        known: Known | None = None,
    ):
        self.name, self.calibration, self.delta = name, calibration, DELTA
        self.options, self.count, self.shape = options, count, shape
        self.kind, self.view, self.epsilon = kind or module.Run, view, epsilon
        self.whole = view is _all
        self.base, self.real = shape.records(), shape.real
        self.problem = problem = shape.problem(self.base, epsilon)
        if shape.bounded:
            self.bound = WITHIN * np.abs(self.base.X).max(axis=0)
        given = (problem, count, options, calibration)
        multiplier = _multiplier(module, *given, {} if known is None else known)
        ledger = module.ledger(problem, count, multiplier, options, calibration)
        self.ledger = claim(ledger) if claim else ledger
        one = np.full(1, 1.0)
        noise = (multiplier, calibration)
        self.lanes = Lanes(self.step * one, self.clip * one, *noise)
        self.hidden = any(isinstance(e, SampledGaussian) for e in self.ledger.events)
        self._neighbours: dict[int, tuple[Records, Problem]] = {}

    def start(self, data: Records, generators: Streams) -> AbstractContextManager[Any]:
        """Start a run of one lane."""
        given = (self.lanes, generators, self.options, 1, self.count)
        return nullcontext(self.kind(self._problem(data), *given))

    def releases(self, run: Any) -> Iterator[Array]:
        """What is known before the first step, and after each."""
        yield self.view(np.array(run.released[0]))
        for _ in range(self.count):
            run.advance(1)
            yield self.view(np.array(run.released[0]))

    def together(self, run: Any) -> None:
        """Take all steps in one block, as where nothing looks at single steps."""
        run.advance(self.count)

    def published(self, run: Any) -> Array:
        """The lane's weights."""
        return run.weights[0]

    def symbol(self, view: Array) -> tuple[int, ...]:
        """The selected coordinate, from the view's last p entries."""
        return tuple(np.flatnonzero(view[-self.problem.p :]).tolist())

    def _problem(self, data: Records) -> Problem:
        if data is self.base:
            return self.problem
        known = self._neighbours.get(id(data))
        if known is None or known[0] is not data:
            made = self.shape.problem(data, self.epsilon)
            made = replace(made, public=self.problem)
            if self.shape.bounded:
                made = Estimating(**vars_of(made))
            if len(self._neighbours) > 200:
                self._neighbours.clear()
            known = self._neighbours[id(data)] = (data, made)
        return known[1]


ALMOST = 0.9
ANGLES = (0.5, 0.7, 0.9, 1.1, 1.3)  # of a record from the axis across the others'
WIDER = 2.0  # bound on a record in another run, over the subject's bound
FAR = 8  # divisor of the number of runs on thousands of records
_WORDS = {"least_squares": "least squares"}


class FitSubject(Subject):
    """A solver of the family ``fits`` at one setting, strict noise.

    A neighbour is a separate problem, with the public scales of the base. A minimiser
    is mapped to the linear term that would lead to it on the base, which is known. The
    map loses nothing, and its values follow the noise more evenly.

    Parameters
    ----------
    module : module of the solver
    options : its Options
    epsilon : float
        Target.
    kind : class, optional
        In place of ``module.Run`` (broken mechanisms).
    company : int
        Number of records, in two features and under declared scales, of a subject whose
        other records drive the minimiser far out, where one record moves it most. 0:
        the records of the shape.
    """

    calibration, delta = STRICT, DELTA

    def __init__(
        self,
        name: str,
        module: ModuleType,
        options: Any,
        shape: Shape,
        epsilon: float,
        kind: Any = None,
        company: int = 0,
    ):
        shape = replace(shape, n=company, p=2) if company else shape
        self.name = name + (f", {company} records" if company else shape_text(shape))
        self.module, self.options, self.shape = module, options, shape
        self.kind, self.epsilon = kind or module.Run, epsilon
        self.base, self.real = shape.records(), shape.real
        self.problem = shape.problem(self.base, epsilon)
        if company:
            self.problem = declared(self.problem)
        self.at = Scaled(self.problem)
        # nearly opposite: far out between them neither slope is small
        one, two = np.ones((2, shape.p))
        one[0] = two[-1] = -ALMOST
        size = LOUD * self.at.S
        self.tried = tuple((s * size * one, s * size * two) for s in (1.0, -1.0))

        def ledger(noise: float) -> Ledger:
            return module.ledger(self.at, noise, options)

        found = calibrate(ledger, epsilon, DELTA, STRICT)
        self.noise_multiplier, self.ledger = found.noise_multiplier, found.ledger
        if company:
            self._drive(company)
        self.draw_events = rounds(self.ledger)
        self.hidden = any(isinstance(e, SampledGaussian) for e in self.ledger.events)

    def _drive(self, n: int) -> None:
        """Set records that drive the minimiser out, and pairs that then move it.

        All others are (-R, 0). The records of a pair lie nearly opposite each other,
        both turned so far back that the minimiser misclassifies them.
        """
        R = self.module.constants(self.at, self.options)[0]
        self.cost = FAR
        self.base = Records(np.tile([-R, 0.0], (n, 1)), np.ones(n))
        turned = [R * np.array([math.sin(a), math.cos(a)]) for a in ANGLES]
        self.tried = tuple((x, x * (1, -1)) for x in turned)
        found = self.shape.problem(self.base, self.epsilon)
        self.problem = declared(found)  # of which the minimisers' linear terms are
        self.at = Scaled(self.problem)

    @staticmethod
    def scaled(shape: Shape, epsilon: float = 1.0) -> Scaled:
        """The base problem of a shape."""
        base = shape.records()
        return Scaled(shape.problem(base, epsilon))

    def start(self, data: Records, generators: Streams) -> AbstractContextManager[Any]:
        """Start a run from scratch."""
        problem = self.shape.problem(data, self.epsilon)
        at = Scaled(replace(problem, public=self.problem.known))
        if hasattr(self.options, "radius"):
            # another run, with a larger bound on a record, makes its first release:
            # what it leaves behind must not change this run
            wide = replace(self.options, radius=WIDER * self.options.radius)
            ledger = self.module.ledger(at, 1.0, wide)
            run = self.kind(at, ledger, [streams(0)], wide)
            with np.errstate(all="ignore"):
                next(run.steps())
        return nullcontext(self.kind(at, self.ledger, [generators], self.options))

    def releases(self, run: Any) -> Iterator[Array]:
        """The releases of the run; minimisers as their linear terms."""
        tilted = is_bent(self)
        for release in run.releases():
            yield np.ravel(self.tilt(release) if tilted else release)

    def tilt(self, u: Array) -> Array:
        """The linear terms for which u (p, L) are the minimisers on the base."""
        R, _, ridge = self.module.constants(self.at, self.options)
        own = records.Records(self.problem, self.at.S, self.at.label)
        V = own.clipped(R)
        slope: Array = V.T @ own.slopes(V @ u + own.offset)
        return -(slope + (self.at.n * self.at.l2 + ridge) * u)

    def published(self, run: Any) -> Array:
        """The weights."""
        return run.weights[0]

    def symbol(self, view: Array) -> tuple[int, ...]:
        """It selects nothing."""
        return ()


def rounds(ledger: Ledger) -> tuple[Event, ...]:
    """The event of each draw: all events once, in order, then those that are left."""
    counts, events = [event.count for event in ledger.events], list[Event]()
    while any(counts):
        events += [e for e, left in zip(ledger.events, counts, strict=True) if left]
        counts = [max(left - 1, 0) for left in counts]
    return tuple(events)


def shape_text(shape: Shape) -> str:
    """How a shape differs from the plain one, in words."""
    loss = shape.loss if shape.loss != "logistic" else ""
    kept = "sparse" if shape.is_sparse else ""
    penalty = "penalty" if shape.penalty.l2 else ""
    words = (_WORDS.get(loss, loss), kept, penalty)
    return "".join(f", {word}" for word in words if word)
