"""The subjects of every solver of the configuration.

A solver's family says how it is run and what it releases. What this package's own
solvers need beyond that stands in the tables here, by algorithm; a solver of the
reader's own is audited as any of its family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import ModuleType
from typing import Any

from dperm import solvers
from dperm.audit.lanes import ConstantsSubject, LaneSubject, small_problem
from dperm.audit.sequences import FrankWolfeSubject, StreamSubject, Trial
from dperm.audit.subjects import DELTA, Array, Subject
from dperm.erm.penalties import Penalty
from dperm.erm.problem import Problem
from dperm.privacy.ledger import NonPrivate
from dperm.solvers.streams.setup import Setup

CALIBRATIONS = ("paper", "strict")
EPSILON = 1.0  # target, as in the papers
LOUD = 4.0  # target of a single step that is to be seen
RADIUS = 0.25
CROWD, L1 = 24, 0.02  # coordinates, of which about one in a step leaves its rest

Made = list[Subject]


@dataclass(frozen=True)
class Order:
    """What a subject is to be made of; ``steps`` are None for as many as usual."""

    name: str
    module: ModuleType
    options: Any
    kind: str
    epsilon: float
    steps: int | None = None


def subjects(name: str, algorithm: str, given: dict[str, Any]) -> list[Subject]:
    """The subjects of a solver under both calibrations; none if it is not private.

    Parameters
    ----------
    name, algorithm : str
        As in the solver's YAML.
    given : dict
        Its options.
    """
    module = solvers.load(algorithm)
    make = MAKERS[solvers.family(module)]
    own = algorithm if algorithm in solvers.names() else ""
    options = solvers.make_options(module, given)
    found = []
    for kind in CALIBRATIONS:
        quiet = Order(name, module, options, kind, EPSILON)
        made = make(own, quiet)
        loud = make(own, replace(quiet, epsilon=LOUD, steps=1))
        for subject, other in zip(made, loud, strict=True):
            subject.loud = other
        found += made
    return [one for one in found if not _is_open(one)]


def _is_open(subject: Subject) -> bool:
    """Whether it states no privacy that could be refuted."""
    events = subject.ledger.events
    return all(isinstance(event, NonPrivate) for event in events)


# --- lanes ----------------------------------------------------------------------------


def _nothing_else(at: Order) -> Made:
    return []


@dataclass(frozen=True)
class LaneNeeds:
    """What an audit of a solver of lanes needs.

    Attributes
    ----------
    p, steps : int
        Features of the small problem, and steps of a run.
    capped : tuple of str
        Options that count coordinates, and so are p at most.
    others : callable
        Further subjects.
    """

    p: int = 3
    steps: int = 4
    capped: tuple[str, ...] = ()
    others: Callable[[Order], Made] = _nothing_else


def _lanes(own: str, at: Order) -> Made:
    needs = LANES.get(own, LaneNeeds())
    capped = {key: min(getattr(at.options, key), needs.p) for key in needs.capped}
    options = replace(at.options, **capped) if capped else at.options
    problem = small_problem(at.epsilon, p=needs.p)
    at = replace(at, options=options, steps=at.steps or needs.steps)
    return [_lane(at, at.name, problem), *needs.others(at)]


def _lane(at: Order, name: str, problem: Problem, **changes: Any) -> Subject:
    steps = at.steps or LaneNeeds.steps
    return LaneSubject(name, at.module, at.options, at.kind, steps, problem, **changes)


def _at_rest(at: Order) -> Made:
    """DP-GCD as published: the selection's noise is inside the rule."""
    if at.options.noise != "laplace":
        return []
    return [_lane(at, f"{at.name}, L1", crowd(at.epsilon), view=choice)]


def crowd(epsilon: float) -> Problem:
    """Many coordinates that an L1 norm keeps at rest."""
    return small_problem(epsilon, p=CROWD, penalty=Penalty(l1=L1), balance=1.0)


def choice(released: Array) -> Array:
    """Which coordinate was taken, alone: the L1 norm hides the value."""
    return released[-CROWD:]


def _constants(at: Order) -> Made:
    """DP-CD-priv-cst: the smoothness constants, released before the first step."""
    problem = small_problem(at.epsilon, n=1000)
    return [ConstantsSubject(f"{at.name}, constants", problem, at.kind)]


LANES = {
    "dp_cd_priv": LaneNeeds(others=_constants),
    "dp_gcd": LaneNeeds(p=2, steps=3, others=_at_rest),
    "dp_skgd": LaneNeeds(capped=("blocks", "size")),
}


# --- Frank-Wolfe methods and streams --------------------------------------------------


@dataclass(frozen=True)
class SequenceNeeds:
    """What an audit of a solver of the other families needs.

    Attributes
    ----------
    n, d : int
    norms : tuple of float
        Exponents of the balls, each a subject of its own.
    loss : str
    positions : tuple of int
        Records worth replacing.
    cost : int
        By how much fewer runs are made of it.
    options : mapping
        Options that fit the small data.
    steps, numbers : int
        See ``FrankWolfeSubject``.
    """

    n: int = 16
    d: int = 3
    norms: tuple[float, ...] = (2.0,)
    loss: str = "linear"
    positions: tuple[int, ...] = (0, 15)
    cost: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 4
    numbers: int = 0


def _trials(at: Order, needs: SequenceNeeds) -> list[Trial]:
    """What is tried, in every norm."""
    options = replace(at.options, **needs.options) if needs.options else at.options
    several = len(needs.norms) > 1
    return [
        Trial(
            f"{at.name}, p = {p:g}" if several else at.name, at.module, options,
            Setup(needs.loss, p, needs.d, RADIUS), needs.n, at.epsilon, DELTA, at.kind,
            needs.positions, needs.cost,
        )
        for p in needs.norms
    ]  # fmt: skip


def _streams(own: str, at: Order) -> Made:
    needs = STREAMS.get(own, SequenceNeeds())
    return [StreamSubject(trial) for trial in _trials(at, needs)]


def _frank_wolfe(own: str, at: Order) -> Made:
    needs = FRANK_WOLFE.get(own, _VERTICES)
    count = min(at.steps or needs.steps, needs.steps)
    made = partial(FrankWolfeSubject, steps=count, numbers=needs.numbers)
    return [made(trial) for trial in _trials(at, needs)]


_VERTICES = SequenceNeeds(
    n=8, d=2, norms=(1.0,), loss="least_squares", positions=(0, 7), cost=4
)
FRANK_WOLFE = {
    "dp_fw": replace(_VERTICES, options={"radius": RADIUS}),
    "dp_bcfw": replace(
        _VERTICES, n=6, d=4, positions=(0, 5), cost=6, steps=2, numbers=6,
        options={"radius": RADIUS, "nodes": 2},
    ),
}  # fmt: skip
STREAMS = {
    "noisy_sfw": SequenceNeeds(
        n=256, norms=(2.0, 1.5), loss="least_squares", cost=6,
        positions=(0, 20, 40, 60, 75),
    ),
    "poly_sfw": replace(_VERTICES, positions=(0, 4, 5, 7)),
    "phased_sgd": SequenceNeeds(positions=(0, 7, 8, 13, 14)),
    "sco_dp_fw": replace(_VERTICES, loss="linear"),
}  # fmt: skip

MAKERS: dict[str, Callable[[str, Order], Made]] = {
    "lanes": _lanes,
    "frank_wolfe": _frank_wolfe,
    "streams": _streams,
}
