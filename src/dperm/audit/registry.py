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
    drive_baseline,
    drive_dp_bcfw,
    drive_dp_fw,
    drive_noisy_sfw,
    drive_phased_sgd,
    drive_poly_sfw,
    least_squares,
    small_problem,
    small_stream,
)
from dperm.erm.penalties import Penalty
from dperm.erm.problem import Problem
from dperm.privacy.calibration import calibrate
from dperm.privacy.ledger import Ledger
from dperm.solvers.frank_wolfe.dp_fw import published_lipschitz
from dperm.solvers.streams.setup import Setup

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


def _noisy_sfw(at: Order) -> Made:
    found: Made = []
    for p in (2.0, 1.5):
        to = _stream(at, 256, p, 3, "least_squares")
        given = (to.setup.q, to.setup.d, to.epsilon, to.delta, at.kind)
        multiplier = at.module.noise_multiplier(*given)
        ledger = at.module.ledger(to.setup, to.n, multiplier, at.options, at.kind)
        places, drive = (0, 20, 40, 60, 75), drive_noisy_sfw(at.options)
        label = f"{at.name}, p = {p:g}"
        found.append(StreamSubject(label, to, ledger, drive, places, 6))
    return found


def _poly_sfw(at: Order) -> Made:
    to = _stream(at, 8, 1.0, 2, "least_squares")
    reach, vertices = to.setup.radius, at.module.vertices_of(to.setup)
    given = (to.epsilon, to.delta, at.kind, reach, vertices)
    scales = at.module.noise_scales(to.setup, to.n, *given)
    ledger = at.module.ledger(to.setup, to.n, scales, reach, vertices)
    return [StreamSubject(at.name, to, ledger, drive_poly_sfw, (0, 4, 5, 7), 4)]


def _phased_sgd(at: Order) -> Made:
    to = _stream(at, 16, 2.0, 3, "linear")
    multiplier = at.module.noise_multiplier(to.epsilon, to.delta, at.kind)
    ledger, places = at.module.ledger(multiplier), (0, 7, 8, 13, 14)
    return [StreamSubject(at.name, to, ledger, drive_phased_sgd, places)]


def _baseline(at: Order) -> Made:
    method = at.options.method
    p, d, n = (1.0, 2, 8) if method == "dp_fw" else (2.0, 3, 16)
    to = _stream(at, n, p, d, "linear")
    target = at.module.Target(to.epsilon, to.delta, at.kind)
    count = 1 if method == "dp_sgd" else at.module.iterations(n, method)
    if method == "dp_fw":
        scale = at.module.selection_scale(to.setup, n, target, count)
        ledger = at.module.selection_ledger(to.setup, n, scale, count)
    else:
        multiplier = at.module.gaussian_multiplier(target, count)
        ledger = at.module.gaussian_ledger(multiplier, count)
    drive, cost = drive_baseline(method), 4 if method == "dp_fw" else 1
    return [StreamSubject(at.name, to, ledger, drive, (0, n - 1), cost)]


def _dp_fw(at: Order) -> Made:
    to = replace(_stream(at, 8, 1.0, 2, "least_squares"), steps=at.steps)
    options = replace(at.options, radius=RADIUS)
    problem = least_squares(to, small_stream(to.n, to.setup.d))
    goal = (to.epsilon, to.delta)
    if at.kind == "paper":
        bound = at.module.valid_lipschitz(problem, options)
        given = (problem, to.steps, options, *goal, bound)
        scale = at.module.published_scale(*given)
        ledger = Ledger(at.module.events(problem, to.steps, scale, options))
    else:
        ledger = calibrate(
            lambda noise: at.module.ledger(problem, to.steps, noise, options),
            *goal,
            "strict",
        ).ledger
        scale = ledger.events[0].scale
    drive = drive_dp_fw(options, scale)
    return [StreamSubject(at.name, to, ledger, drive, (0, 7), 4)]


def _dp_bcfw(at: Order) -> Made:
    to = replace(_stream(at, 6, 1.0, 4, "least_squares"), steps=min(at.steps, 2))
    options = replace(at.options, radius=RADIUS, nodes=2)
    problem = least_squares(to, small_stream(to.n, to.setup.d))
    given = (problem, to.steps, options, to.epsilon, to.delta)
    if at.kind == "paper":
        noise = at.module.published_noise(*given, published_lipschitz(problem))
    else:
        noise = at.module.strict_noise(*given)
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
    "sco_baselines": _baseline,
}
