"""The subjects of every solver of the configuration.

A solver's family says how it is run and what it releases, and its module what it can
work with: losses with labels that are numbers, sparse data, penalties are tried where
it does not refuse them. What this package's own solvers need beyond that stands in the
tables here, by algorithm; a solver of the reader's own is audited as any of its family.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import ModuleType
from typing import Any

from dperm.audit.fits import FitSubject
from dperm.audit.lanes import Known, LaneSubject, Shape
from dperm.audit.sequences import FrankWolfeSubject, StreamSubject, Trial
from dperm.audit.subjects import DELTA, Array, Subject
from dperm.core import solvers
from dperm.core.calibrations import OURS, STRICT
from dperm.core.erm.penalties import Penalty
from dperm.core.privacy.ledger import NonPrivate
from dperm.core.solvers.capabilities import Asked
from dperm.solvers.streams.setup import Setup

ESTIMATORS = "dperm.compare.audited"  # which lies above, and is found by its name
EPSILON = 1.0  # target, as in the papers
LOUD = 4.0  # times that: the target of a single step that is to be seen
CROWD, L1 = 24, 0.02  # coordinates, of which about one in a step leaves its rest
RIDGE = 1.0  # a few times M, which are equal: the noise is for the steepest score
PENALTIES = {  # so weak that neither rest nor bounds are reached
    "penalty": Penalty(l1=1e-6, l2=1e-4, lower=-10.0, upper=10.0),
    "L2": Penalty(l2=1e-4),
}
STRONG = Penalty(l2=0.3)  # of weights: another ridge in units of every scale

Subjects = list[Subject]


@dataclass(frozen=True)
class Order:
    """What a subject is to be made of.

    Attributes
    ----------
    name, module, options, kind, epsilon
        Of the solver, and its calibration with its target.
    steps : int or None
        None for as many as usual.
    varied : bool
        Whether other data and options are tried.
    known : dict
        Noise multipliers that were found.
    """

    name: str
    module: ModuleType
    options: Any
    kind: str
    epsilon: float
    steps: int | None = None
    varied: bool = False
    known: Known = field(default_factory=dict)


def subjects(name: str, algorithm: str, given: dict[str, Any]) -> list[Subject]:
    """The subjects of a solver under both calibrations; none if it is not private.

    Other data and options are tried with the solver that has the algorithm's name, and
    with one's own.

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
    for kind in OURS:
        varied = not own or name == algorithm
        quiet = Order(name, module, options, kind, EPSILON, varied=varied)
        made = make(own, quiet)
        loud = make(own, replace(quiet, epsilon=LOUD * EPSILON, steps=1))
        for subject, other in zip(made, loud, strict=True):
            subject.loud = other
        found += made
    return [one for one in found if not _is_open(one)]


def estimators(name: str, algorithm: str) -> list[Subject]:
    """The estimators of a higher room with a solver; none for its variants."""
    if name != algorithm:
        return []
    return importlib.import_module(ESTIMATORS).subjects(name)


def plain(name: str, algorithm: str, given: dict[str, Any]) -> list[Subject]:
    """The subjects of a solver on the plain problem, strict noise; none if not private.

    Parameters
    ----------
    name, algorithm, given
        As for ``subjects``.
    """
    module = solvers.load(algorithm)
    options = solvers.make_options(module, given)
    own = algorithm if algorithm in solvers.names() else ""
    at = Order(name, module, options, STRICT, EPSILON)
    return [one for one in MAKERS[solvers.family(module)](own, at) if not _is_open(one)]


def _is_open(subject: Subject) -> bool:
    """Whether it states no privacy that could be refuted."""
    events = subject.ledger.events
    return all(isinstance(event, NonPrivate) for event in events)


# --- lanes ----------------------------------------------------------------------------


def _nothing_else(at: Order, needs: LaneNeeds) -> Subjects:
    return []


@dataclass(frozen=True)
class LaneNeeds:
    """What an audit of a solver of lanes needs.

    Attributes
    ----------
    shape : Shape
        Of the small problem.
    steps : int
        Of a run.
    capped : tuple of str
        Options that count coordinates, and so are p at most.
    options : mapping
        Other options that are tried, by name.
    others : callable
        Further subjects.
    reason : str
        Why no attack reaches the bound.
    """

    shape: Shape = field(default_factory=Shape)
    steps: int = 4
    capped: tuple[str, ...] = ()
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    others: Callable[[Order, LaneNeeds], Subjects] = _nothing_else
    reason: str = ""


def _lanes(own: str, at: Order) -> Subjects:
    needs = LANES.get(own, LaneNeeds())
    p = needs.shape.p
    capped = {key: min(getattr(at.options, key), p) for key in needs.capped}
    at = replace(at, options=replace(at.options, **capped) if capped else at.options)
    made = [lane(at, needs, at.name, needs.shape)]
    if at.varied:
        for name, shape in shapes(at.module, at.options, needs.shape):
            made.append(lane(at, needs, f"{at.name}, {name}", shape))
        for name, options in needs.options.items():
            other = replace(at, options=replace(at.options, **options))
            made.append(lane(other, needs, f"{at.name}, {name}", needs.shape))
    return [*made, *needs.others(at, needs)]


def lane(
    at: Order, needs: LaneNeeds, name: str, shape: Shape, **changes: Any
) -> Subject:
    """A subject that runs lanes."""
    given = (at.options, at.kind, at.steps or needs.steps, shape, at.epsilon)
    made = LaneSubject(name, at.module, *given, known=at.known, **changes)
    made.reason = needs.reason
    return made


def shapes(
    module: ModuleType, options: Any, base: Shape
) -> Iterator[tuple[str, Shape]]:
    """What else a module declares that it works with, by name."""
    refuses = getattr(module, "refuses", lambda *_: "")
    yield "least squares", replace(base, loss="least_squares")
    for name, flag in (("sparse", "SPARSE"), ("centred", "CENTRED")):
        asked = Asked(sparse=True, centred=name == "centred", l1=False, box=False)
        if getattr(module, flag, False) and not refuses(options, asked):
            yield name, replace(base, kept=name, loss="least_squares")
    for name, penalty in PENALTIES.items():
        strong = penalty.l1 > 0
        if not refuses(options, Asked(False, False, strong, strong)):
            yield name, replace(base, penalty=penalty)
            return


def _greedy(at: Order, needs: LaneNeeds) -> Subjects:
    """DP-GCD, its noise inside the rule as published; a ridge that flattens it."""
    if at.options.noise == "laplace" and at.kind == "paper":
        return [lane(at, needs, f"{at.name}, L1", crowd(), view=choice)]
    shape = replace(needs.shape, penalty=Penalty(l2=RIDGE), balance=1.0)
    once = replace(needs, steps=1)  # later steps hang on the weights: no law to compute
    return [lane(at, once, f"{at.name}, ridge", shape)]


def crowd() -> Shape:
    """Many coordinates that an L1 norm keeps at rest."""
    return Shape(p=CROWD, penalty=Penalty(l1=L1), balance=1.0)


def choice(released: Array) -> Array:
    """Which coordinate was taken, alone: the L1 norm hides the value."""
    return released[-CROWD:]


_RARE = "with Laplace noise only rare candidates attain a selection's bound"
LANES = {
    "dp_cd": LaneNeeds(options={"averages": {"periods": 2}}),
    "dp_cd_priv": LaneNeeds(shape=Shape(n=6000, bounded=True)),
    "dp_gcd": LaneNeeds(
        shape=Shape(n=64, p=2), steps=2, others=_greedy,
        reason=_RARE,
    ),
    "dp_sgd": LaneNeeds(capped=("batch",), options={"batches": {"batch": 3}}),
    "dp_skgd": LaneNeeds(
        capped=("blocks", "size"), options={"averages": {"periods": 2}}
    ),
    "dp_svrg": LaneNeeds(
        options={"two epochs": {"inner": 0.4}},
        reason="no pair moves a difference of gradients by 2 C: those of a convex loss"
        " have a positive product with the move"
    ),
}  # fmt: skip


# --- Frank-Wolfe methods and streams --------------------------------------------------


@dataclass(frozen=True)
class SequenceNeeds:
    """What an audit of a solver of the other families needs.

    Attributes
    ----------
    n : int
    balls : tuple of (float, int)
        Exponents of the balls and dimensions, each a subject of its own.
    radius : float
    loss : str
    positions : tuple of int
        Records worth replacing.
    cost : int
        By how much fewer runs are made of it.
    options : mapping
        Options that fit the small data.
    steps, numbers : int
        See ``FrankWolfeSubject``.
    epsilon : float
        Target at least, where a small one leaves candidates no gap.
    others : mapping
        Other needs that are tried, by name.
    reason : str
        Why no attack reaches the bound.
    """

    n: int = 16
    balls: tuple[tuple[float, int], ...] = ((2.0, 3),)
    radius: float = 0.25
    loss: str = "linear"
    positions: tuple[int, ...] = (0, 15)
    cost: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 4
    numbers: int = 0
    epsilon: float = EPSILON
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reason: str = ""


def _trials(at: Order, needs: SequenceNeeds) -> list[Trial]:
    """What is tried, in every norm."""
    options = replace(at.options, **needs.options) if needs.options else at.options
    several = len(needs.balls) > 1
    return [
        Trial(
            f"{at.name}, p = {p:g}" if several else at.name, at.module, options,
            Setup(needs.loss, p, d, needs.radius), needs.n,
            max(at.epsilon, needs.epsilon), DELTA, at.kind, needs.positions, needs.cost,
            needs.reason,
        )
        for p, d in needs.balls
    ]  # fmt: skip


def _streams(own: str, at: Order) -> Subjects:
    needs = STREAMS.get(own, SequenceNeeds())
    trials = _trials(at, needs)
    for name, changes in needs.others.items() if at.varied else ():
        other = replace(at, name=f"{at.name}, {name}")
        trials += _trials(other, replace(needs, **changes))
    return [StreamSubject(trial) for trial in trials]


def _frank_wolfe(own: str, at: Order) -> Subjects:
    needs = FRANK_WOLFE.get(own, _VERTICES)
    count = min(at.steps or needs.steps, needs.steps)
    made = partial(FrankWolfeSubject, steps=count, numbers=needs.numbers)
    return [made(trial) for trial in _trials(at, needs)]


_RENYI = "the bound is a Rényi curve's, which the mechanism does not attain"
_VERTICES = SequenceNeeds(
    balls=((1.0, 2),), loss="least_squares", cost=4, radius=0.01, steps=2, reason=_RARE
)
_FEW = {  # records, so that all paths of selections can be followed
    "n": 4, "loss": "least_squares", "positions": (0, 3), "radius": 0.02,
    "reason": "few records set candidates less far apart than a selection needs",
}  # fmt: skip
FRANK_WOLFE = {
    "dp_fw": replace(_VERTICES, options={"radius": 0.01}),
    "dp_bcfw": replace(
        _VERTICES, balls=((1.0, 4),), cost=6, steps=1, numbers=16,
        options={"radius": 0.01, "nodes": 2},
    ),
}  # fmt: skip
STREAMS = {
    "noisy_sfw": SequenceNeeds(
        n=256, balls=((2.0, 3), (1.5, 2), (1.1, 3)), loss="least_squares", cost=6,
        radius=0.02, positions=(0, 16, 40, 72, 94, 112, 113), reason=_RENYI,
    ),
    "poly_sfw": replace(
        _VERTICES, n=8, loss="linear", positions=(0, 4), radius=0.25, epsilon=8.0,
        others={"least squares": _FEW},
    ),
    "phased_sgd": SequenceNeeds(
        balls=((2.0, 3), (math.inf, 3)), positions=(0, 7, 8, 13, 14),
        others={"p = 4": {"balls": ((4.0, 3),), "cost": 10}},  # projects slowly
    ),
    "sco_dp_fw": replace(
        _VERTICES, n=8, loss="linear", positions=(0, 7), epsilon=8.0,
        others={"least squares": _FEW},
    ),
    "sco_dp_sgd": SequenceNeeds(balls=((2.0, 3), (1.0, 3))),
    "sco_mirror_descent": SequenceNeeds(
        balls=((2.0, 3), (1.5, 3), (1.0, 3)),
        reason="the gradient of the last iteration stays inside the run",
    ),
}  # fmt: skip

# --- fits -----------------------------------------------------------------------------


@dataclass(frozen=True)
class FitNeeds:
    """What an audit of a solver of that family needs.

    Attributes
    ----------
    options : mapping
        Options that fit the small data.
    others : mapping
        Other options that are tried, by name.
    reason : str
        Why no attack reaches the bound.
    company : mapping, optional
        Options where it finds minima, which many records drive far out.
    ridge : Penalty
        That is tried; a weak one where it is to leave the minimiser far out.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reason: str = ""
    company: Mapping[str, Any] | None = None
    ridge: Penalty = STRONG


def _fits(own: str, at: Order) -> Subjects:
    """Strict noise alone: no paper prints another."""
    if at.kind != STRICT:
        return []
    needs = FITS.get(own, FitNeeds())
    options = replace(at.options, **needs.options)
    if at.steps and hasattr(options, "steps"):
        options = replace(options, steps=at.steps)
    tried = {"": options}
    if at.varied:
        tried |= {f", {name}": replace(options, **others)
                  for name, others in needs.others.items()}  # fmt: skip
    found: Subjects = [FitSubject(f"{at.name}{name}", at.module, one, shape, at.epsilon)
             for name, one in tried.items()
             for shape in _fitting(at.module, one, needs.ridge)]  # fmt: skip
    if needs.company is not None:
        many = replace(at.options, **needs.company)
        found.append(FitSubject(at.name, at.module, many, Shape(), at.epsilon,
                                company=_COMPANY))  # fmt: skip
    for subject in found:
        subject.reason = needs.reason
    return found


def _fitting(module: ModuleType, options: Any, ridge: Penalty) -> Iterator[Shape]:
    """Shapes that the module does not refuse: losses, L2 and L1 norms, sparse data."""
    plain = Shape(p=2)
    for shape in (
        plain, replace(plain, loss="least_squares"),
        replace(plain, penalty=ridge),
        replace(plain, kept="sparse", loss="least_squares"),
    ):  # fmt: skip
        if not module.refuses(options, FitSubject.scaled(shape)):
            yield shape


_NEAR = (
    "so few records do not drive the minimiser far out, where a record moves it most"
)
_COMPANY = 2000  # records, which do
_ONE_SIDED = "logistic slopes have one sign, and two records are not both at their clip"
FITS = {
    "objective_perturbation": FitNeeds(
        options={"tolerance": 1e-13}, reason=_NEAR,
        company={"tolerance": 1e-13}, ridge=PENALTIES["L2"],
    ),
    "output_perturbation": FitNeeds(
        options={"ridge": 3.0}, company={},
        reason="no company drives the minimiser so far out that both slopes are near 1",
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
    "dp_newton": FitNeeds(
        options={"steps": 2},
        reason="a record does not move gradient, trace and direction most at once",
    ),
    "ada_ssp": FitNeeds(
        reason="a record does not move eigenvalue, matrix and vector most at once"
    ),
}  # fmt: skip

MAKERS: dict[str, Callable[[str, Order], Subjects]] = {
    "lanes": _lanes,
    "frank_wolfe": _frank_wolfe,
    "streams": _streams,
    "fits": _fits,
}
