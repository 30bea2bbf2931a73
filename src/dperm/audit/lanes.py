"""Subjects that run lanes over a finite sum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from dperm.audit.subjects import DELTA, Array, Records, Subject
from dperm.core.erm.centred import Centred
from dperm.core.erm.losses import named
from dperm.core.erm.penalties import Penalty
from dperm.core.erm.problem import Problem, build
from dperm.core.lanes import Lanes
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import Ledger, SampledGaussian
from dperm.core.privacy.mechanisms import Streams

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
    kept: str = "dense"  #: {"dense", "sparse", "centred"}; how A is kept
    balance: float = 0.5  #: features have sizes from it to its inverse
    #: whether records keep to the public bounds of the features, and the smoothness
    #: constants, which those bounds limit, are each data set's own
    bounded: bool = False

    @property
    def real(self) -> bool:
        """Whether labels are numbers."""
        return bool((named(self.loss).signs(np.full(1, -1.0)) == 1).all())

    def records(self) -> Records:
        """Records and gradients that all point one way; a few zeros where sparse."""
        rng = np.random.default_rng(7)
        sizes = np.geomspace(self.balance, 1 / self.balance, self.p)
        X = np.outer(rng.uniform(0.5, 1.5, self.n), sizes)
        if self.kept != "dense":
            X[np.add.outer(np.arange(self.n), np.arange(self.p)) % 3 == 1] = 0.0
        return Records(X, np.ones(self.n))

    def problem(self, data: Records, epsilon: float, base: Records) -> Problem:
        """The problem on the records, columns centred by the base's means."""
        given = ("audit", data.X, data.y, self.loss, self.penalty, epsilon, DELTA)
        if self.kept == "sparse":
            return build("audit", sparse.csc_array(data.X), *given[2:])
        problem = build(*given)
        if self.kept == "centred":
            # X standardised by the known data's columns, and implicitly so
            signs = problem.loss.signs(data.y)
            mean, deviation = base.X.mean(axis=0), base.X.std(axis=0)
            with np.errstate(over="ignore"):
                S = sparse.csc_array(signs[:, None] * data.X / deviation)
            found = Centred(S, signs, -mean / deviation)
            return replace(problem, A=found)
        return problem


class Estimating(Problem):
    """A neighbour whose smoothness constants are its own; the bounds are public."""

    @cached_property
    def smoothness(self) -> Array:  # type: ignore[override]
        """M_j of these data."""
        return Problem(**{**vars_of(self), "public": None}).smoothness


def vars_of(problem: Problem) -> dict[str, Any]:
    """The fields of a problem, without what was computed of them."""
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

    A neighbour is a problem of its own, on which the run is made from the start; only
    the constants that are taken to be public are those of the base.

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
        What is looked at of that which a lane released, (k,); all of it.
    known : dict, optional
        Noise multipliers that were found before, of the same module.
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
        self.problem = problem = shape.problem(self.base, epsilon, self.base)
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
        """One lane."""
        given = (self.lanes, generators, self.options, 1, self.count)
        return nullcontext(self.kind(self._problem(data), *given))

    def releases(self, run: Any) -> Iterator[Array]:
        """What is known before the first step, and after each."""
        yield self.view(np.array(run.released[0]))
        for _ in range(self.count):
            run.advance(1)
            yield self.view(np.array(run.released[0]))

    def together(self, run: Any) -> None:
        """In one block, as they are where nothing looks at the steps between."""
        run.advance(self.count)

    def published(self, run: Any) -> Array:
        """The lane's weights."""
        return run.weights[0]

    def symbol(self, view: Array) -> tuple[int, ...]:
        """The coordinate taken: the view's last p entries say which."""
        return tuple(np.flatnonzero(view[-self.problem.p :]).tolist())

    def _problem(self, data: Records) -> Problem:
        """The problem on other data, with the public constants of the base."""
        if data is self.base:
            return self.problem
        known = self._neighbours.get(id(data))
        if known is None or known[0] is not data:
            made = self.shape.problem(data, self.epsilon, self.base)
            made = replace(made, public=self.problem)
            if self.shape.bounded:
                made = Estimating(**vars_of(made))
            if len(self._neighbours) > 200:
                self._neighbours.clear()
            known = self._neighbours[id(data)] = (data, made)
        return known[1]
