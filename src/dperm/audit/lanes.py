"""Subjects that run lanes over a finite sum, and the release of their constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator

from dperm.audit.subjects import DELTA, Array, Records, Subject, Transcript
from dperm.audit.taps import Draw, Tap, tapped
from dperm.erm.penalties import Penalty
from dperm.erm.problem import Problem, build
from dperm.privacy.calibration import calibrate
from dperm.privacy.ledger import Ledger, SampledGaussian
from dperm.privacy.mechanisms import streams
from dperm.privacy.smoothness import (
    feature_bounds,
    private_smoothness,
    smoothness_event,
)
from dperm.solvers.lanes import Lanes

Claim = Callable[[Ledger], Ledger]
View = Callable[[Array], Array]


class Taken(Generator):
    """A sampling stream that hands out the records it is told to."""

    def __init__(self, seed: int, taken: Sequence[int]):
        super().__init__(PCG64(seed))
        self.left = iter(taken)

    def integers(self, low: Any, high: Any = None, size: Any = None) -> Any:  # type: ignore[override]
        """The next of the given numbers, whatever the range."""
        return np.full(size, next(self.left))


def _all(released: Array) -> Array:
    return released


class LaneSubject(Subject):
    """A solver that advances lanes over a finite sum, one step at a time.

    A neighbour is a problem of its own, on which the run is made from the start; only
    the constants that are taken to be public are those of the base.

    Parameters
    ----------
    name : str
    module : module of a solver of lanes
    options : its Options
    calibration : {"paper", "strict"}
    count : int
        Steps.
    problem : Problem
        The base data with their penalty and target; logistic loss.
    kind : class, optional
        In place of ``module.Run`` (broken mechanisms).
    claim : callable, optional
        Changes what the ledger states (broken mechanisms).
    view : callable, optional
        What is looked at of that which a lane released, (k,); all of it.
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
        claim: Claim | None = None,
        view: View = _all,
    ):
        self.name, self.calibration, self.delta = name, calibration, problem.delta
        self.options, self.count, self.problem = options, count, problem
        self.kind, self.view = kind or module.Run, view
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
        self.hidden = any(isinstance(e, SampledGaussian) for e in self.ledger.events)
        self.cost = 4 if self.hidden or self.selects else 1
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
        problem = self._problem(data)
        with tapped(Tap(script)) as tap:
            run = self.kind(problem, self.lanes, own, self.options, 1, self.count)
            views, ends = [], [len(tap.draws)]
            for _ in range(self.count if until is None else until + 1):
                run.advance(1)
                views.append(self.view(np.array(run.released[0])))
                ends.append(len(tap.draws))
        return Transcript(views, tap.draws, ends, run.weights[0].copy())

    def symbol(self, view: Array) -> tuple[int, ...]:
        """The coordinate taken: the view's last p entries say which."""
        return tuple(np.flatnonzero(view[-self.problem.p :]).tolist())

    def _problem(self, data: Records) -> Problem:
        """The problem on other data, with the public constants of the base."""
        if data is self.base:
            return self.problem
        known = self._neighbours.get(id(data))
        if known is None or known[0] is not data:
            A = np.asfortranarray(data.X * data.y[:, None])
            if len(self._neighbours) > 200:
                self._neighbours.clear()
            known = (data, replace(self.problem, A=A, public=self.problem))
            self._neighbours[id(data)] = known
        return known[1]


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
        limit = np.sqrt(self.bounds / self.problem.loss.curvature)
        squares = np.clip(data.X, -limit, limit) ** 2
        M = self.problem.loss.curvature * squares.mean(axis=0)
        own = streams(seed).smoothness
        given = (M, self.bounds, self.pure, self.problem.n, own, self.calibration)
        with tapped(Tap(script)) as tap:
            found, _ = private_smoothness(*given)
        return Transcript([found], tap.draws, [0, 1], found)
