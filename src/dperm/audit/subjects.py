"""What the rungs audit: a solver on small, loud data, as a function of its noise.

``Subject.run`` takes records and, if wanted, the noise to use, and returns what becomes
known after each step. Constants that the papers take as public (smoothness, bounds,
partitions) are those of the first data set for all its neighbours.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import ModuleType
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator

from dperm.audit.taps import Draw, Tap, tapped
from dperm.erm.penalties import Penalty
from dperm.erm.problem import Problem, build
from dperm.privacy.accounting import epsilon, true_epsilon
from dperm.privacy.calibration import calibrate
from dperm.privacy.ledger import Ledger
from dperm.privacy.mechanisms import Streams, streams
from dperm.privacy.noisy_max import NoisyMax
from dperm.solvers import Lanes
from dperm.solvers.streams.setup import Setup
from dperm.solvers.streams.sources import Rows

Array = np.ndarray
Alter = Callable[[Any], None]
Claim = Callable[[Ledger], Ledger]

LOUD = 1e3  # entries of an adversarial record: far beyond every clipping threshold


@dataclass(frozen=True)
class Records:
    """Data of a subject: X (n, p), labels y (n,) of +-1."""

    X: Array
    y: Array

    def replaced(self, i: int, x: Array, label: float) -> Records:
        """The neighbour whose record i is another one."""
        X, y = self.X.copy(), self.y.copy()
        X[i], y[i] = x, label
        return Records(X, y)


@dataclass(frozen=True)
class Transcript:
    """One run.

    Attributes
    ----------
    views : list of ndarray
        What is known after each step.
    draws : list of Draw
        All noise, in the order it was drawn.
    ends : list of int
        How many draws were made before the first step, and after each.
    weights : ndarray
        What is published at the end.
    """

    views: list[Array]
    draws: list[Draw]
    ends: list[int]
    weights: Array

    def draws_of(self, t: int) -> list[int]:
        """Places of the draws of step t."""
        return list(range(self.ends[t], self.ends[t + 1]))


class Subject(ABC):
    """A solver at one setting.

    Attributes
    ----------
    name, calibration : str
    ledger : Ledger
        What it states.
    delta : float
    base : Records
    positions : tuple of int
        Records worth replacing.
    hidden : bool
        Whether a step reads a secret random record.
    cost : int
        By how much fewer runs are made of it, because they are slow.
    loud : Subject or None
        The same with little noise and few steps, in which one step is easy to see.
    """

    name: str
    calibration: str
    ledger: Ledger
    delta: float
    base: Records
    positions: tuple[int, ...] = (0,)
    hidden = False
    cost = 1
    loud: Subject | None = None

    @abstractmethod
    def run(
        self,
        data: Records,
        seed: int,
        script: Sequence[Draw] = (),
        taken: Sequence[int] | None = None,
        until: int | None = None,
    ) -> Transcript:
        """Run on the data; noise from the seed, or from the script as far as it goes.

        ``taken`` says which record each step reads, where that is random; step
        ``until`` is the last one taken, if given.
        """

    @cached_property
    def claimed_epsilon(self) -> float:
        """What the calibration's own accountant makes of the ledger."""
        return epsilon(self.ledger, self.delta, self.calibration)

    @cached_property
    def true_epsilon(self) -> float:
        """What a sound accountant makes of the ledger."""
        return true_epsilon(self.ledger, self.delta)

    @property
    def selects(self) -> bool:
        """Whether it releases selections."""
        return any(isinstance(event, NoisyMax) for event in self.ledger.events)

    def symbol(self, view: Array) -> tuple[int, ...]:
        """What a step selected, by its view."""
        return tuple(view.tolist())


def loud_records(
    base: Records, rng: Generator, random: int = 6
) -> list[tuple[Array, float]]:
    """Records that push a clipped gradient to its ends, and random ones.

    The first is like the base's own records, but louder: with its opposite it makes the
    worst pair where a step reads a random record.
    """
    p = base.X.shape[1]
    like = LOUD * base.X[0] / np.abs(base.X[0]).max()
    axes = [s * LOUD * np.eye(p)[j] for j in range(min(p, 4)) for s in (1.0, -1.0)]
    signs = [LOUD * np.array(s) for s in _corners(p)]
    drawn = [10.0 ** rng.uniform(-2, 3) * rng.standard_normal(p) for _ in range(random)]
    found = [(x, 1.0) for x in (like, *axes, *signs, *drawn, np.zeros(p))]
    return found + [(x, -1.0) for x in drawn]


def _corners(p: int) -> list[tuple[float, ...]]:
    """Sixteen corners of the cube at most, the all-positive one first."""
    return list(itertools.islice(itertools.product((1.0, -1.0), repeat=p), 16))


# --- solvers that run lanes -----------------------------------------------------------


class Taken(Generator):
    """A sampling stream that hands out the records it is told to."""

    def __init__(self, seed: int, taken: Sequence[int]):
        super().__init__(PCG64(seed))
        self.left = iter(taken)

    def integers(self, low: Any, high: Any = None, size: Any = None) -> Any:  # type: ignore[override]
        """The next of the given numbers, whatever the range."""
        return np.full(size, next(self.left))


def _weights(run: Any) -> Array:
    return run.weights[0].copy()


def _weights_and_choice(run: Any) -> Array:
    """Greedy solvers also publish which coordinate they took."""
    return np.concatenate([run.weights[0], np.eye(run.problem.p)[run.chosen[0]]])


def _tile(run: Any) -> Array:
    """DP-SVRG also publishes the epoch's full gradient, which its tile holds."""
    p = run.problem.p
    return run.tiles[0, : 3 * p, 0].copy()


VIEWS: dict[str, Callable[[Any], Array]] = {
    "dp_gcd": _weights_and_choice,
    "dp_svrg": _tile,
}


class LaneSubject(Subject):
    """A solver that advances lanes over a finite sum, one step at a time.

    Parameters
    ----------
    name : str
    module : module of ``dperm.solvers``
    options : its Options
    calibration : {"paper", "strict"}
    count : int
        Steps.
    problem : Problem
        The base data with their penalty and target; logistic loss.
    kind : class, optional
        In place of ``module.Run``.
    alter : callable, optional
        Changes a run before its first step (broken mechanisms).
    claim : callable, optional
        Changes what the ledger states (broken mechanisms).
    view : callable, optional
        What becomes known of a run after a step.
    """

    step, clip = 1e-3, 0.05

    def __init__(
        self,
        name: str,
        module: ModuleType,
        options: Any,
        calibration: str,
        count: int,
        problem: Problem,
        kind: Any = None,
        alter: Alter | None = None,
        claim: Claim | None = None,
        view: Callable[[Any], Array] | None = None,
    ):
        self.name, self.calibration, self.delta = name, calibration, problem.delta
        self.module, self.options, self.count = module, options, count
        self.problem, self.alter = problem, alter
        self.kind = kind or module.Run
        found = calibrate(
            lambda noise: module.ledger(problem, count, noise, options, calibration),
            problem.epsilon,
            problem.delta,
            calibration,
        )
        self.ledger = claim(found.ledger) if claim else found.ledger
        clip = np.full(1, self.clip)
        self.lanes = Lanes(
            np.full(1, self.step), clip, found.noise_multiplier, calibration
        )
        self.base = Records(problem.A, np.ones(problem.n))
        kinds = {type(event).__name__ for event in self.ledger.events}
        self.hidden = "SampledGaussian" in kinds
        self.cost = 4 if self.hidden or self.selects else 1
        known = VIEWS.get(module.__name__.rsplit(".", 1)[-1], _weights)
        self.view = view or known
        self._neighbours: dict[int, tuple[Records, Problem]] = {}

    def run(
        self,
        data: Records,
        seed: int,
        script: Sequence[Draw] = (),
        taken: Sequence[int] | None = None,
        until: int | None = None,
    ) -> Transcript:
        """See ``Subject``; the labels are in the data's signs."""
        own = streams(seed)
        if taken is not None:
            own = own._replace(sampling=Taken(seed, taken))
        with tapped(Tap(script)) as tap:
            run = self.kind(self.problem, self.lanes, own, self.options, 1, self.count)
            run.problem = self._problem(data)
            if self.alter:
                self.alter(run)
            views, ends = [], [len(tap.draws)]
            for _ in range(self.count if until is None else until + 1):
                run.advance(1)
                views.append(self.view(run))
                ends.append(len(tap.draws))
        return Transcript(views, tap.draws, ends, run.weights[0].copy())

    def symbol(self, view: Array) -> tuple[int, ...]:
        """The coordinate taken: the view's last p entries say which."""
        return tuple(np.flatnonzero(view[-self.problem.p :]).tolist())

    def _problem(self, data: Records) -> Problem:
        """The problem on other data with the public constants of the first."""
        if data is self.base:
            return self.problem
        known = self._neighbours.get(id(data))
        if known is None or known[0] is not data:
            A = np.asfortranarray(data.X * data.y[:, None])
            other = replace(self.problem, A=A)
            for constant in ("smoothness", "global_smoothness"):
                object.__setattr__(other, constant, getattr(self.problem, constant))
            if len(self._neighbours) > 200:
                self._neighbours.clear()
            known = self._neighbours[id(data)] = (data, other)
        return known[1]


DELTA = 1 / 64


def small_problem(
    epsilon: float,
    n: int = 8,
    p: int = 3,
    penalty: Penalty | None = None,
    balance: float = 0.5,
) -> Problem:
    """All records and gradients point one way; features from balance to 1 / balance."""
    rng = np.random.default_rng(7)
    X = np.outer(rng.uniform(0.5, 1.5, n), np.geomspace(balance, 1 / balance, p))
    loss, y = "logistic", np.ones(n)
    return build("audit", X, y, loss, penalty or Penalty(), epsilon, DELTA)


class ConstantsSubject(Subject):
    """The release of private smoothness constants alone (DP-CD-priv-cst).

    With so many records that the floor, which is post-processing, does not hide it.
    """

    def __init__(self, name: str, problem: Problem, calibration: str):
        from dperm.privacy.smoothness import feature_bounds, smoothness_event

        self.name, self.calibration, self.delta = name, calibration, problem.delta
        self.problem, self.pure = problem, problem.epsilon
        self.bounds = feature_bounds(problem.A, problem.loss.curvature)
        event = smoothness_event(problem.p, self.pure, calibration)
        self.ledger = Ledger((event,))
        self.base = Records(problem.A, np.ones(problem.n))

    def run(
        self,
        data: Records,
        seed: int,
        script: Sequence[Draw] = (),
        taken: Sequence[int] | None = None,
        until: int | None = None,
    ) -> Transcript:
        """One step, which releases all constants; records stay within the bounds."""
        from dperm.privacy import smoothness

        limit = np.sqrt(self.bounds / self.problem.loss.curvature)
        squares = np.clip(data.X, -limit, limit) ** 2
        M = self.problem.loss.curvature * squares.mean(axis=0)
        own = streams(seed).smoothness
        given = (M, self.bounds, self.pure, self.problem.n, own, self.calibration)
        with tapped(Tap(script)) as tap:
            found, _ = smoothness.private_smoothness(*given)
        return Transcript([found], tap.draws, [0, 1], found)


# --- solvers over a stream of records -------------------------------------------------


@dataclass(frozen=True)
class Target:
    """What a stochastic subject is calibrated to."""

    setup: Setup
    n: int
    epsilon: float
    delta: float
    calibration: str
    steps: int = 1


class _Enough(Exception):  # noqa: N818 - not an error
    """The last step that is wanted was taken."""


class StreamSubject(Subject):
    """A solver with a ``Run`` of its own kind; ``drive`` says how it is run.

    Parameters
    ----------
    name : str
    target : Target
    ledger : Ledger
    drive : callable
        ``drive(target, source, streams, note)`` runs the solver, calls ``note(view)``
        after each release, and returns what is published.
    positions : tuple of int
    cost : int
    source : class, optional
        In place of ``Rows`` (broken mechanisms).
    """

    def __init__(
        self,
        name: str,
        target: Target,
        ledger: Ledger,
        drive: Callable[..., Array],
        positions: tuple[int, ...],
        cost: int = 1,
        source: Any = Rows,
    ):
        self.name, self.calibration, self.delta = name, target.calibration, target.delta
        self.target, self.ledger, self.drive = target, ledger, drive
        self.positions, self.source, self.cost = positions, source, cost
        self.base = small_stream(target.n, target.setup.d)

    @cached_property
    def claimed_epsilon(self) -> float:
        """The target: these papers print their noise for it."""
        return self.target.epsilon

    def run(
        self,
        data: Records,
        seed: int,
        script: Sequence[Draw] = (),
        taken: Sequence[int] | None = None,
        until: int | None = None,
    ) -> Transcript:
        """See ``Subject``; a step is a release."""
        views: list[Array] = []
        ends = [0]

        def note(view: Array) -> None:
            views.append(np.array(view, dtype=float).ravel())
            ends.append(len(tap.draws))
            if len(views) - 1 == until:
                raise _Enough

        found = np.empty(0)
        with tapped(Tap(script)) as tap, suppress(_Enough):
            source = self.source(data.X, data.y)
            found = self.drive(self.target, source, streams(seed), note)
        return Transcript(views, tap.draws, ends, np.ravel(found))

    def symbol(self, view: Array) -> tuple[int, ...]:
        """The vertex taken: the one entry of the first d, with its sign."""
        vertex = view[: self.target.setup.d]
        large = np.abs(vertex) > 0.5 * np.abs(vertex).max(initial=0.0)
        return tuple((np.sign(vertex) * large).astype(int).tolist())


def small_stream(n: int, d: int) -> Records:
    """Records with labels of both signs."""
    X = np.random.default_rng(3).uniform(0.5, 1.5, (n, d))
    return Records(X, np.where(np.arange(n) % 3 == 0, -1.0, 1.0))


@contextmanager
def spied(owner: Any, name: str, note: Callable[..., None]) -> Iterator[None]:
    """Let ``note(result, *arguments)`` see every call of a method."""
    method = getattr(owner, name)

    def seen(*arguments: Any) -> Any:
        result = method(*arguments)
        note(result, *arguments)
        return result

    if isinstance(owner, type):
        setattr(owner, name, seen)
        restore = partial(setattr, owner, name, method)
    else:
        object.__setattr__(owner, name, seen)  # balls are frozen
        restore = partial(object.__delattr__, owner, name)
    try:
        yield
    finally:
        restore()


def drive_noisy_sfw(options: Any) -> Callable[..., Array]:
    """The walk over the trees; every node's estimate is known."""

    def drive(at: Target, source: Any, own: Streams, note: Any) -> Array:
        from dperm.solvers.streams import noisy_sfw

        lanes = noisy_sfw.Lanes(at.setup, [at.epsilon], [at.calibration], at.delta)
        run = noisy_sfw.Run([lanes], source, at.n, [own], options)
        part = run.parts[0]

        def left(_: None, t: int, depth: int, leaf: int, count: int) -> None:
            note(part.estimates[depth])

        with spied(part, "leave", left):
            return run.solve()[0]

    return drive


def drive_phased_sgd(at: Target, source: Any, own: Streams, note: Any) -> Array:
    """Every phase's noisy average is known."""
    from dperm.solvers.streams import phased_sgd

    lanes = phased_sgd.Lanes(at.setup, [at.epsilon], [at.calibration], at.delta)
    run = phased_sgd.Run([lanes], source, at.n, [own], phased_sgd.Options())
    part = run.parts[0]
    with spied(part, "release", lambda _, *given: note(part.x)):
        return run.solve()[0]


def drive_poly_sfw(at: Target, source: Any, own: Streams, note: Any) -> Array:
    """Every vertex taken is known; one record at a time."""
    from dperm.solvers.streams import poly_sfw

    lanes = poly_sfw.Lanes(at.setup, [at.epsilon], [at.calibration], at.delta)
    run = poly_sfw.Run(lanes, source, at.n, own, poly_sfw.Options())
    whole, poly_sfw._DRAWS = poly_sfw._DRAWS, poly_sfw.vertices_of(at.setup)
    before = run.x.copy()

    def stepped(*_: Any) -> None:
        note((run.x - (1 - run.eta) * before) / run.eta)
        before[:] = run.x

    try:
        with spied(run, "_first", stepped), spied(run, "_later", stepped):
            return run.solve()
    finally:
        poly_sfw._DRAWS = whole


def drive_baseline(method: str) -> Callable[..., Array]:
    """The baselines: iterates before they are projected, dual vectors, vertices."""

    def drive(at: Target, source: Any, own: Streams, note: Any) -> Array:
        from dperm.solvers.streams import sco_baselines as baselines

        target = baselines.Target(at.epsilon, at.delta, at.calibration)
        setup, options = replace(at.setup), baselines.Options(method)
        run = baselines.Run(setup, target, source, at.n, own, options)
        iterates: list[Array] = []

        def dual(_: Any, mirror: Any, now: Array) -> None:
            iterates.append(now.copy())
            if len(iterates) > 1:
                note(now)

        def vertex(_: Any, now: Array) -> None:
            iterates.append(now.copy())
            if len(iterates) > 1:
                t = len(iterates) - 2
                note(iterates[-1] - (1 - 2 / (t + 2)) * iterates[-2])

        watched: dict[str, tuple[Any, str, Any]] = {
            "dp_sgd": (setup.ball, "project", lambda _, now: note(now)),
            "mirror_descent": (baselines._Power, "point", dual),
            "dp_fw": (run, "_gradient", vertex),
        }
        with spied(*watched[method]):
            found = run.solve()
        if method == "dp_fw":
            vertex(None, found)
        return found

    return drive


def least_squares(at: Target, source: Any) -> Problem:
    """The problem of solvers that hold all records, on a stream's."""
    none, goal = Penalty(), (at.epsilon, at.delta)
    return build("audit", source.X, source.y, "least_squares", none, *goal)


def drive_dp_fw(options: Any, scale: float) -> Callable[..., Array]:
    """Every vertex taken is known; noise of a scale that is public."""

    def drive(at: Target, source: Any, own: Streams, note: Any) -> Array:
        from dperm.solvers.frank_wolfe import dp_fw

        run = dp_fw.Run(least_squares(at, source), own, options, scale)
        for _ in range(at.steps):
            run.advance(1)
            note(_vertex(run.chosen[-1], at.setup.d))
        return run.weights

    return drive


def _vertex(signed: Array, d: int) -> Array:
    """A signed index +-(j + 1) as a vector."""
    return np.sign(signed) * np.eye(d)[np.abs(int(signed[0])) - 1]


def drive_dp_bcfw(options: Any, noise: Any) -> Callable[..., Array]:
    """Every answer of every node is known: a signed index, and maybe a feature."""

    def drive(at: Target, source: Any, own: Streams, note: Any) -> Array:
        from dperm.solvers.distributed.messages import Message
        from dperm.solvers.distributed.node import Node
        from dperm.solvers.frank_wolfe import dp_bcfw

        def answered(content: bytes, *_: Any) -> None:
            told = Message.unpack(content)
            feature = np.zeros(at.n)
            feature[: told.numbers.size] = told.numbers
            note(np.concatenate([_vertex(told.indices, at.setup.d), feature]))

        run = dp_bcfw.Run(least_squares(at, source), own, options, noise)
        with closing(run), spied(Node, "answer", answered):
            run.advance(at.steps)
        return run.weights

    return drive
