"""One subject for every solver of the configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dperm import solvers
from dperm.audit.subjects import (
    DELTA,
    ConstantsSubject,
    LaneSubject,
    StreamSubject,
    Subject,
    Target,
    drive_dp_bcfw,
    drive_dp_fw,
    drive_stream,
    least_squares,
    small_problem,
    small_stream,
)
from dperm.erm.penalties import Penalty
from dperm.erm.problem import Problem
from dperm.privacy.calibration import calibrate
from dperm.solvers import streams as streaming
from dperm.solvers.frank_wolfe import Noise
from dperm.solvers.streams.stochastic import Setup

CALIBRATIONS = ("paper", "strict")
EPSILON = 1.0  # target, as in the papers
LOUD = 4.0  # target of a single step that is to be seen
STEPS = {"dp_gcd": 3}  # of a run; others take four
RADIUS = 0.25
CROWD, L1 = 24, 0.02  # coordinates, of which about one in a step leaves its rest

Made = list[Subject]


@dataclass(frozen=True)
class Order:
    """What a subject is to be made of."""

    name: str
    module: Any
    options: Any
    kind: str
    epsilon: float
    steps: int


def subjects(name: str, algorithm: str, given: dict[str, Any]) -> list[Subject]:
    """The subjects of a solver under both calibrations.

    Parameters
    ----------
    name, algorithm : str
        As in the solver's YAML.
    given : dict
        Its options.
    """
    module = solvers.load(algorithm)
    make = STREAMS.get(algorithm, _lanes)
    options = solvers.make_options(module, given)
    found = []
    for kind in CALIBRATIONS:
        quiet = Order(name, module, options, kind, EPSILON, STEPS.get(algorithm, 4))
        made = make(quiet)
        loud = make(replace(quiet, epsilon=LOUD, steps=1))
        for subject, other in zip(made, loud, strict=True):
            subject.loud = other
        found += made
    return found


def _lanes(at: Order) -> Made:
    problem = small_problem(at.epsilon, p=2 if hasattr(at.options, "rule") else 3)
    options = _fitting(at.options, problem.p)
    given = (at.module, options, at.kind, at.steps)
    found: Made = [LaneSubject(at.name, *given, problem)]
    if getattr(options, "noise", None) == "laplace":  # the paper's, inside the rule
        rest = crowd(at.epsilon)
        found.append(LaneSubject(f"{at.name}, L1", *given, rest, view=choice))
    if hasattr(at.options, "share"):
        label, many = f"{at.name}, constants", small_problem(at.epsilon, n=1000)
        found.append(ConstantsSubject(label, many, at.kind))
    return found


def crowd(epsilon: float) -> Problem:
    """Many coordinates that an L1 norm keeps at rest."""
    return small_problem(epsilon, p=CROWD, penalty=Penalty(l1=L1), balance=1.0)


def choice(run: Any) -> Any:
    """Which coordinate was taken, alone: the L1 norm hides the value."""
    return np.eye(run.problem.p)[run.chosen[0]]


def _fitting(options: Any, p: int) -> Any:
    """The options with no more blocks or coordinates than there are."""
    keys = [key for key in ("blocks", "size") if hasattr(options, key)]
    return replace(options, **{key: min(getattr(options, key), p) for key in keys})


def _stream(at: Order, n: int, p: float, d: int, loss: str) -> Target:
    return Target(Setup(loss, p, d, RADIUS), n, at.epsilon, DELTA, at.kind)


def _streamed(at: Order, to: Target, places: tuple[int, ...], cost: int = 1) -> Subject:
    """The subject of a solver of the family ``streams``."""
    target = streaming.Target(to.epsilon, to.delta, at.kind)
    ledger = at.module.noise(to.setup, to.n, target, at.options).ledger
    drive = drive_stream(at.module, at.options)
    return StreamSubject(at.name, to, ledger, drive, places, cost)


def _noisy_sfw(at: Order) -> Made:
    places = (0, 20, 40, 60, 75)
    return [
        _streamed(
            replace(at, name=f"{at.name}, p = {p:g}"),
            _stream(at, 256, p, 3, "least_squares"), places, 6,
        )
        for p in (2.0, 1.5)
    ]  # fmt: skip


def _poly_sfw(at: Order) -> Made:
    return [_streamed(at, _stream(at, 8, 1.0, 2, "least_squares"), (0, 4, 5, 7), 4)]


def _phased_sgd(at: Order) -> Made:
    return [_streamed(at, _stream(at, 16, 2.0, 3, "linear"), (0, 7, 8, 13, 14))]


def _full_gradients(at: Order) -> Made:
    return [_streamed(at, _stream(at, 16, 2.0, 3, "linear"), (0, 15))]


def _full_selections(at: Order) -> Made:
    return [_streamed(at, _stream(at, 8, 1.0, 2, "linear"), (0, 7), 4)]


def _dp_fw(at: Order) -> Made:
    to = replace(_stream(at, 8, 1.0, 2, "least_squares"), steps=at.steps)
    options = replace(at.options, radius=RADIUS)
    problem = least_squares(to, small_stream(to.n, to.setup.d))
    goal = (to.epsilon, to.delta)
    if at.kind == "paper":
        noise = at.module.noise(problem, to.steps, options, *goal, at.kind)
    else:
        ledger = calibrate(
            lambda noise: at.module.ledger(problem, to.steps, noise, options),
            *goal,
            "strict",
        ).ledger
        noise = Noise(ledger, ledger.events[0].scale)
    drive = drive_dp_fw(options, noise)
    return [StreamSubject(at.name, to, noise.ledger, drive, (0, 7), 4)]


def _dp_bcfw(at: Order) -> Made:
    to = replace(_stream(at, 6, 1.0, 4, "least_squares"), steps=min(at.steps, 2))
    options = replace(at.options, radius=RADIUS, nodes=2)
    problem = least_squares(to, small_stream(to.n, to.setup.d))
    goal = (to.epsilon, to.delta, at.kind)
    noise = at.module.noise(problem, to.steps, options, *goal)
    drive = drive_dp_bcfw(options, noise)
    return [StreamSubject(at.name, to, noise.ledger, drive, (0, 5), 6)]


def _not_private(at: Order) -> Made:
    return []


STREAMS: dict[str, Callable[[Order], Made]] = {
    "bcfw": _not_private,
    "fw": _not_private,
    "dp_bcfw": _dp_bcfw,
    "dp_fw": _dp_fw,
    "noisy_sfw": _noisy_sfw,
    "poly_sfw": _poly_sfw,
    "phased_sgd": _phased_sgd,
    "sco_dp_sgd": _full_gradients,
    "sco_dp_fw": _full_selections,
    "sco_mirror_descent": _full_gradients,
}
