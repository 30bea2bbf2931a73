"""The subjects of every solver of the configuration.

A solver's family determines how it is run, and its module what it supports. Further
needs of this package's own solvers are in the tables here, by algorithm. A user's own
solver is audited as any of its family.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

from dperm.audit.families import (
    FitSubject,
    FrankWolfeSubject,
    LaneSubject,
    SequenceNeeds,
    Shape,
    StreamSubject,
)
from dperm.audit.subjects import Array, Order, Subject
from dperm.core import solvers
from dperm.core.calibrations import OURS, PAPER, STRICT
from dperm.core.erm.penalties import Penalty
from dperm.core.privacy.ledger import NonPrivate
from dperm.core.solvers.capabilities import Asked

ESTIMATORS = "dperm.compare.audited"  # a higher layer, so imported by its name
EPSILON = 1.0  # target, as in the papers
LOUD = 4.0  # times that: the target of a single step with little noise
CROWD, L1 = 24, 0.02  # coordinates, of which about one leaves zero in a step
RIDGE = 1.0  # a few times M, which are equal: the noise is for the steepest score
PENALTIES = {  # so weak that no weight reaches zero or a bound
    "penalty": Penalty(l1=1e-6, l2=1e-4, lower=-10.0, upper=10.0),
    "L2": Penalty(l2=1e-4),
}
STRONG = Penalty(l2=0.3)  # on weights: in units of the scales it differs by feature

Subjects = list[Subject]


def subjects(name: str, algorithm: str, options: dict[str, Any]) -> list[Subject]:
    """The subjects of a solver under both calibrations; none if it is not private.

    Other data and options are tried for the solver that has the algorithm's name, and
    for a user's own.

    Parameters
    ----------
    name, algorithm : str
        As in the solver's YAML.
    options : dict
        Its options.
    """
    every: Subjects = []
    for kind in OURS:
        quiet = _order(name, algorithm, options, kind)
        varied = name == algorithm or algorithm not in solvers.names()
        quiet = replace(quiet, varied=varied)
        loud = replace(quiet, epsilon=LOUD * EPSILON, steps=1)
        pairs = zip(*(_ordered(algorithm, at) for at in (quiet, loud)), strict=True)
        for subject, other in pairs:
            subject.loud = other
            every.append(subject)
    return every


def estimators(name: str, algorithm: str) -> list[Subject]:
    """The estimators (of a higher layer) with a solver; none for its variants."""
    if name != algorithm:
        return []
    return importlib.import_module(ESTIMATORS).subjects(name)


def plain(name: str, algorithm: str, options: dict[str, Any]) -> list[Subject]:
    """The subjects of a solver on the plain problem, strict noise; none if not private.

    Parameters
    ----------
    name, algorithm, options
        As for ``subjects``.
    """
    return _ordered(algorithm, _order(name, algorithm, options, STRICT))


def _order(name: str, algorithm: str, options: dict[str, Any], kind: str) -> Order:
    module = solvers.load(algorithm)
    return Order(name, module, solvers.make_options(module, options), kind, EPSILON)


def _ordered(algorithm: str, at: Order) -> Subjects:
    """The ordered subjects, without those that state no privacy to refute."""
    known = algorithm if algorithm in solvers.names() else ""
    return [
        subject
        for subject in MAKERS[solvers.family(at.module)](known, at)
        if not all(isinstance(event, NonPrivate) for event in subject.ledger.events)
    ]


# --- lanes ----------------------------------------------------------------------------


def _nothing_else(at: Order, needs: LaneNeeds) -> Subjects:
    return []


@dataclass(frozen=True)
class LaneNeeds:
    """The small problem and options for the audit of a solver of lanes."""

    shape: Shape = field(default_factory=Shape)  #: of the small problem
    steps: int = 4  #: of a run
    #: options that are p at most, such as numbers of coordinates
    capped: tuple[str, ...] = ()
    #: other options that are tried, by name
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    others: Callable[[Order, LaneNeeds], Subjects] = _nothing_else  #: further subjects
    reason: str = ""  #: why no attack reaches the bound


def _lanes(algorithm: str, at: Order) -> Subjects:
    needs = LANES.get(algorithm, LaneNeeds())
    p = needs.shape.p
    capped = {key: min(getattr(at.options, key), p) for key in needs.capped}
    at = replace(at, options=replace(at.options, **capped))
    every = [lane(at, needs, at.name, needs.shape)]
    if at.varied:
        for name, shape in shapes(at.module, at.options, needs.shape):
            every.append(lane(at, needs, f"{at.name}, {name}", shape))
        for name, options in needs.options.items():
            other = replace(at, options=replace(at.options, **options))
            every.append(lane(other, needs, f"{at.name}, {name}", needs.shape))
    return [*every, *needs.others(at, needs)]


def lane(
    at: Order, needs: LaneNeeds, name: str, shape: Shape, **changes: Any
) -> Subject:
    """A subject that runs lanes."""
    given = (at.options, at.kind, at.steps or needs.steps, shape, at.epsilon)
    subject = LaneSubject(name, at.module, *given, known=at.known, **changes)
    subject.reason = needs.reason
    return subject


def shapes(
    module: ModuleType, options: Any, base: Shape
) -> Iterator[tuple[str, Shape]]:
    """Other shapes that a module declares to support, by name."""
    refuses = getattr(module, "refuses", lambda *_: "")
    yield "least squares", replace(base, loss="least_squares")
    asked = Asked(sparse=True, l1=False, box=False)
    if getattr(module, "SPARSE", False) and not refuses(options, asked):
        yield "sparse", replace(base, is_sparse=True, loss="least_squares")
    for name, penalty in PENALTIES.items():
        strong = penalty.l1 > 0
        if not refuses(options, Asked(False, strong, strong)):
            yield name, replace(base, penalty=penalty)
            return


def _greedy(at: Order, needs: LaneNeeds) -> Subjects:
    """For DP-GCD: its noise inside the L1 rule, as published; a ridge otherwise."""
    if at.options.noise == "laplace" and at.kind == PAPER:
        return [lane(at, needs, f"{at.name}, L1", crowd(), view=choice)]
    shape = replace(needs.shape, penalty=Penalty(l2=RIDGE), balance=1.0)
    once = replace(needs, steps=1)  # later steps depend on the weights: no known law
    return [lane(at, once, f"{at.name}, ridge", shape)]


def crowd() -> Shape:
    """Many coordinates that an L1 norm keeps at zero."""
    return Shape(p=CROWD, penalty=Penalty(l1=L1), balance=1.0)


def choice(released: Array) -> Array:
    """The selected coordinate alone: the L1 norm hides the value."""
    return released[-CROWD:]


_RARE = "with Laplace noise only rare candidates attain a selection's bound"
LANES = {
    "dp_cd": LaneNeeds(options={"averages": {"periods": 2}}),
    "dp_cd_priv": LaneNeeds(shape=Shape(n=6000, bounded=True)),
    "dp_gcd": LaneNeeds(
        shape=Shape(n=64, p=2),
        steps=2,
        others=_greedy,
        reason=_RARE,
    ),
    "dp_sgd": LaneNeeds(capped=("batch",), options={"batches": {"batch": 3}}),
    "dp_skgd": LaneNeeds(
        capped=("blocks", "size"), options={"averages": {"periods": 2}}
    ),
    "dp_svrg": LaneNeeds(
        options={"two epochs": {"inner": 0.4}},
        reason="no pair moves a difference of gradients by 2 C: those of a convex loss"
        " have a positive product with the move",
    ),
}


# --- Frank-Wolfe methods and streams --------------------------------------------------


def _streams(algorithm: str, at: Order) -> Subjects:
    needs = STREAMS.get(algorithm, SequenceNeeds())
    every: Subjects = [StreamSubject(at, needs, *ball) for ball in needs.balls]
    for name, changes in needs.others.items() if at.varied else ():
        other, more = replace(at, name=f"{at.name}, {name}"), replace(needs, **changes)
        every += [StreamSubject(other, more, *ball) for ball in more.balls]
    return every


def _frank_wolfe(algorithm: str, at: Order) -> Subjects:
    needs = FRANK_WOLFE.get(algorithm, _VERTICES)
    return [FrankWolfeSubject(at, needs, *ball) for ball in needs.balls]


_RENYI = "the bound is a Rényi curve's, which the mechanism does not attain"
_VERTICES = SequenceNeeds(
    balls=((1.0, 2),), loss="least_squares", cost=4, radius=0.01, steps=2, reason=_RARE
)
_FEW = {  # records, so that all paths of selections can be followed
    "n": 4,
    "loss": "least_squares",
    "positions": (0, 3),
    "radius": 0.02,
    "reason": "few records separate candidates less than a selection needs",
}
FRANK_WOLFE = {
    "dp_fw": replace(_VERTICES, options={"radius": 0.01}),
    "dp_bcfw": replace(
        _VERTICES,
        balls=((1.0, 4),),
        cost=6,
        steps=1,
        numbers=16,
        options={"radius": 0.01, "nodes": 2},
    ),
}
STREAMS = {
    "noisy_sfw": SequenceNeeds(
        n=256,
        balls=((2.0, 3), (1.5, 2), (1.1, 3)),
        loss="least_squares",
        cost=6,
        radius=0.02,
        positions=(0, 16, 40, 72, 94, 112, 113),
        reason=_RENYI,
    ),
    "poly_sfw": replace(
        _VERTICES,
        n=8,
        loss="linear",
        positions=(0, 4),
        radius=0.25,
        epsilon=8.0,
        others={"least squares": _FEW},
    ),
    "phased_sgd": SequenceNeeds(
        balls=((2.0, 3), (math.inf, 3)),
        positions=(0, 7, 8, 13, 14),
        others={"p = 4": {"balls": ((4.0, 3),), "cost": 10}},  # projects slowly
    ),
    "sco_dp_fw": replace(
        _VERTICES,
        n=8,
        loss="linear",
        positions=(0, 7),
        epsilon=8.0,
        others={"least squares": _FEW},
    ),
    "sco_dp_sgd": SequenceNeeds(balls=((2.0, 3), (1.0, 3))),
    "sco_mirror_descent": SequenceNeeds(
        balls=((2.0, 3), (1.5, 3), (1.0, 3)),
        reason="the gradient of the last iteration stays inside the run",
    ),
}

# --- fits -----------------------------------------------------------------------------


@dataclass(frozen=True)
class FitNeeds:
    """The small problem and options for the audit of a solver of that family."""

    #: options that fit the small data
    options: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""  #: why no attack reaches the bound
    #: options for a subject whose minimum many records drive far out; None: no such
    company: Mapping[str, Any] | None = None
    #: ridge that is tried; a weak one where the minimiser is to stay far out
    ridge: Penalty = STRONG


def _fits(algorithm: str, at: Order) -> Subjects:
    """Subjects of fits under strict noise only: no paper prints another.

    There are none for ``BOXES``. The noise of sketches multiplies the records, and one
    draw decides several places of a selection: no shift of it repeats an output.
    Counted events are too weak: with half the noise at epsilon 4, 2000 runs on either
    side of the worst pair prove an epsilon of 1 at most. Tests compare their runs with
    their exact laws instead, and refute half of the noise.
    """
    if at.kind != STRICT or algorithm in BOXES:
        return []
    needs = FITS.get(algorithm, FitNeeds())
    options = replace(at.options, **needs.options)
    if at.steps and hasattr(options, "steps"):
        options = replace(options, steps=at.steps)
    plain, squares = Shape(p=2), Shape(p=2, loss="least_squares")
    others = (replace(plain, penalty=needs.ridge), replace(squares, is_sparse=True))
    every: Subjects = [
        FitSubject(at.name, at.module, options, shape, at.epsilon)
        for shape in (plain, squares, *others)
        if not at.module.refuses(options, FitSubject.scaled(shape))
    ]
    if needs.company is not None:
        options = replace(at.options, **needs.company)
        given = (at.module, options, Shape(), at.epsilon)
        every.append(FitSubject(at.name, *given, company=_COMPANY))
    for subject in every:
        subject.reason = needs.reason
    return every


_NEAR = (
    "so few records do not drive the minimiser far out, where a record moves it most"
)
_COMPANY = 2000  # records, which do drive it far out
_ONE_SIDED = "logistic slopes have one sign, and two records are not both at their clip"
BOXES = ("dp_selection", "hessian_mixing")
FITS = {
    "objective_perturbation": FitNeeds(
        options={"tolerance": 1e-13},
        reason=_NEAR,
        company={"tolerance": 1e-13},
        ridge=PENALTIES["L2"],
    ),
    "moments": FitNeeds(
        reason="of two records at a right angle each has half of its label's share"
    ),
    "dp_gd": FitNeeds(options={"steps": 3}, reason=_ONE_SIDED),
    "dp_minibatch": FitNeeds(
        options={"steps": 3, "share": 0.25},
        reason="the bound is the worse of two directions at every loss; a pair has one",
    ),
    "dp_gram": FitNeeds(
        options={"steps": 2},
        reason="a record does not move the matrix and the gradients most at once",
    ),
    "ada_ssp": FitNeeds(
        reason="a record does not move eigenvalue, matrix and vector most at once"
    ),
}

MAKERS: dict[str, Callable[[str, Order], Subjects]] = {
    "lanes": _lanes,
    "frank_wolfe": _frank_wolfe,
    "streams": _streams,
    "fits": _fits,
}
