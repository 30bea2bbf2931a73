"""Every solver of the configuration on small data: one function for each family.

A solver's family determines how it is run, and its module what it supports. Further
needs of this package's own solvers are in the table ``NEEDS``, by algorithm. A user's
own solver is audited as any of its family.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import methodcaller
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from dperm.audit.mechanism import (
    DELTA,
    INFLUENTIAL,
    Array,
    AuditData,
    Mechanism,
)
from dperm.config.locate import ConfigError
from dperm.privacy.accountants import OURS, TIGHT
from dperm.privacy.calibration import calibrate
from dperm.privacy.events import Ledger, NonPrivate
from dperm.privacy.mechanisms.perturbed_objective import PerturbedObjective
from dperm.privacy.mechanisms.sketch import GaussianSketch
from dperm.privacy.noise import Streams
from dperm.problems.losses import named
from dperm.problems.penalties import Penalty
from dperm.problems.problem import Problem, build
from dperm.solvers import records, registry
from dperm.solvers import single_pass as family
from dperm.solvers.batched import BatchedSettings
from dperm.solvers.full_batch.scaled import Scaled
from dperm.solvers.full_batch.secret import in_rounds
from dperm.solvers.scales import declared
from dperm.solvers.single_pass.setup import Setup
from dperm.solvers.single_pass.sources import Rows

STEP = 1e-3  # of a setting
CLIP = 0.05
WITHIN = 2.0  # public bounds on the features, in units of the largest entry
# Most numbers in a release of a Frank-Wolfe method besides its index
NUMBERS = 64
CAPPED = ("batch", "blocks", "size")  # options that are p at most
RELEASES = methodcaller("releases")
# Records that drive a minimiser far out, where one moves it most
COMPANY = 2000
ANGLES = (
    0.5,
    0.7,
    0.9,
    1.1,
    1.3,
)  # of a record from the axis across the others'
# Part of a nearly opposite record that is along the diagonal
DIAGONAL_SHARE = 0.1
# Nearly opposite records: far out between them neither slope is small
ALMOST = 0.9
WEAK = (  # penalties so weak that no weight reaches zero or a bound
    Penalty(l1=1e-6, l2=1e-4, lower=-10.0, upper=10.0),
    Penalty(l2=1e-4),
)
# a few times M, which are equal: the scores move with it
RIDGE = Penalty(l2=1.0)


@dataclass(frozen=True)
class Shape:
    """A small problem, whose gradients all point one way."""

    n: int = 8
    p: int = 3
    loss: str = "logistic"
    penalty: Penalty = field(default_factory=Penalty)
    sparse: bool = False
    balance: float = 0.5  #: features have sizes from it to its inverse
    #: whether features have public bounds, and each data set has its own smoothness
    #: constants, which those bounds limit
    bounded: bool = False

    @property
    def real(self) -> bool:
        """Whether labels are numbers."""
        return bool((named(self.loss).signs(np.full(1, -1.0)) == 1).all())

    def records(self) -> AuditData:
        """Records of one sign; a few zeros if sparse."""
        rng = np.random.default_rng(7)
        sizes = np.geomspace(self.balance, 1 / self.balance, self.p)
        X = np.outer(rng.uniform(0.5, 1.5, self.n), sizes)
        if self.sparse:
            X[np.add.outer(np.arange(self.n), np.arange(self.p)) % 3 == 1] = (
                0.0
            )
        return AuditData(X, np.ones(self.n))

    def problem(
        self, data: AuditData, public: Problem | None = None
    ) -> Problem:
        """The problem on the records, with the public constants of another one."""
        A = sparse.csc_array(data.X) if self.sparse else data.X
        problem = build(
            "audit", A, data.y, self.loss, self.penalty, 1.0, DELTA
        )
        if public is None:
            return problem
        standing = replace(problem, public=public)
        if self.bounded:
            vars(standing)["smoothness"] = problem.smoothness
        return standing


@dataclass(frozen=True)
class Needs:
    """What a solver needs of small data; a family uses its part of it."""

    shape: Shape = field(default_factory=Shape)
    steps: int = 4
    options: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[Mapping[str, Any], ...] = ()  #: other options that are tried
    ridge: float = 0.3  #: that fits are tried with
    # of streams and Frank-Wolfe methods
    balls: tuple[tuple[float, int], ...] = (
        (2.0, 3),
    )  #: exponents and dimensions
    n: int = 16
    radius: float = 0.25
    loss: str = "linear"
    positions: tuple[int, ...] = (0, 15)
    epsilon: float = 1.0
    #: whether its proof bounds the step, as steps must not expand
    is_capped: bool = False


_VERTICES = Needs(
    balls=((1.0, 2),), loss="least_squares", radius=0.01, steps=2
)
_LINEAR = replace(_VERTICES, n=8, loss="linear", epsilon=8.0, radius=0.25)
NEEDS = {
    "dp_cd": Needs(others=({"periods": 2},)),
    "dp_cd_priv": Needs(shape=Shape(n=6000, bounded=True)),
    "dp_gcd": Needs(shape=Shape(n=1024, p=2), steps=2),
    "dp_sgd": Needs(others=({"batch": 3},)),
    "dp_skgd": Needs(others=({"periods": 2},)),
    "dp_svrg": Needs(others=({"inner": 0.4},)),
    "dp_fw": replace(_VERTICES, options={"radius": 0.01}),
    "dp_bcfw": replace(
        _VERTICES,
        balls=((1.0, 4),),
        steps=1,
        options={"radius": 0.01, "nodes": 2},
    ),
    "noisy_sfw": Needs(
        n=256,
        balls=((2.0, 3), (1.5, 2), (1.1, 3)),
        loss="least_squares",
        radius=0.02,
        positions=(0, 16, 40, 72, 94, 112, 113),
    ),
    "poly_sfw": replace(_LINEAR, positions=(0, 4)),
    "phased_sgd": Needs(
        balls=((2.0, 3), (math.inf, 3)),
        positions=(0, 7, 8, 13, 14),
        is_capped=True,
    ),
    "sco_dp_fw": replace(_LINEAR, positions=(0, 7)),
    "sco_dp_sgd": Needs(balls=((2.0, 3), (1.0, 3))),
    "sco_mirror_descent": Needs(balls=((2.0, 3), (1.5, 3), (1.0, 3))),
    "objective_perturbation": Needs(options={"tolerance": 1e-13}, ridge=1e-4),
    "dp_gd": Needs(options={"steps": 3}),
    "dp_minibatch": Needs(options={"steps": 3, "share": 0.25}),
    "dp_gram": Needs(options={"steps": 2}),
    "dp_adaptive": Needs(options={"steps": 2}),
    "dp_newton": Needs(options={"steps": 2}),
    "dp_selection": Needs(
        options={"steps": 2, "features": 2}, shape=Shape(n=800, p=2)
    ),
    "hessian_mixing": Needs(options={"steps": 2}),
}


class NoSubjectError(ConfigError):
    """A private solver that the audit cannot run."""


@dataclass(frozen=True)
class AuditRequest:
    """A solver with options, under a calibration."""

    name: str
    module: ModuleType
    options: Any
    calibration: str
    needs: Needs
    varied: bool  #: whether other data and options are tried too


Made = Iterator[Mechanism]


def mechanisms(
    name: str,
    algorithm: str,
    options: Mapping[str, Any],
    calibrations: tuple[str, ...] = OURS,
    varied: bool | None = None,
    private: bool = True,
) -> list[Mechanism]:
    """A solver under calibrations, on all kinds of data that it takes.

    Parameters
    ----------
    name, algorithm : str
        As in the solver's YAML.
    options : mapping
        Its options.
    calibrations : tuple of str
        Calibrations.
    varied : bool, optional
        Whether other data and options are tried too; by default for the solver that
        has the algorithm's name, and for a user's own.
    private : bool
        Whether those that state no privacy are left out.

    Raises
    ------
    NoSubjectError
        If it is private and nothing can be audited.
    """
    module = registry.load(algorithm)
    family = registry.family(module)
    usual = _VERTICES if family == "frank_wolfe" else Needs()
    needs = NEEDS.get(algorithm, usual)
    solver_options = replace(
        registry.make_options(module, dict(options)), **needs.options
    )
    if varied is None:
        varied = name == algorithm or algorithm not in registry.PLACES
    subjects: list[Mechanism] = []
    for calibration in calibrations:
        request = AuditRequest(
            name, module, solver_options, calibration, needs, varied
        )
        subjects += MAKERS[family](request)
    if not subjects:
        raise NoSubjectError(f"solver {name}: the audit has no subject for it")
    return [m for m in subjects if not (private and is_open(m.ledger))]


def is_open(ledger: Ledger) -> bool:
    """Whether a ledger states no privacy."""
    return all(isinstance(event, NonPrivate) for event in ledger.events)


# --- settings -------------------------------------------------------------------------


def _settings(request: AuditRequest) -> Made:
    """Other losses, storages and penalties that the module declares to support."""
    shape = request.needs.shape
    count = request.needs.steps
    caps = (key for key in CAPPED if hasattr(request.options, key))
    capped = {key: min(getattr(request.options, key), shape.p) for key in caps}
    request = replace(request, options=replace(request.options, **capped))
    yield setting(request, "", shape, count)
    if hasattr(request.options, "rule"):
        # later steps depend on the weights: no known law
        yield setting(
            request, ", ridge", replace(shape, penalty=RIDGE, balance=1.0), 1
        )
    if not request.varied:
        return
    refuses = getattr(request.module, "refuses", lambda *_: "")
    squares = replace(shape, loss="least_squares")
    yield setting(request, ", least squares", squares, count)
    if getattr(request.module, "SPARSE", False) and not refuses(
        request.options, True
    ):
        yield setting(
            request, ", sparse", replace(squares, sparse=True), count
        )
    able = (
        penalty_
        for penalty_ in WEAK
        if not refuses(request.options, penalty_.is_smooth)
    )
    for penalty in itertools.islice(able, 1):
        yield setting(
            request, ", penalty", replace(shape, penalty=penalty), count
        )
    for changed in request.needs.others:
        varied = replace(request, options=replace(request.options, **changed))
        yield setting(varied, f", {next(iter(changed))}", shape, count)


def setting(
    request: AuditRequest, words: str, shape: Shape, count: int
) -> Mechanism:
    """One setting over a finite sum, step by step."""
    base = shape.records()
    problem = shape.problem(base)

    def ledger(noise: float) -> Ledger:
        """The releases at a noise multiplier."""
        return request.module.ledger(
            problem, count, noise, request.options, request.calibration
        )

    noise = calibrate(ledger, 1.0, DELTA, request.calibration)
    settings = BatchedSettings(
        np.full(1, STEP),
        np.full(1, CLIP),
        noise.noise_multiplier,
        request.calibration,
    )
    prepared = lru_cache(maxsize=200)(
        lambda data: shape.problem(data, problem)
    )

    def begin(data: AuditData, run_streams: Streams) -> Any:
        """A run on data, before its first step."""
        run_problem = problem if data is base else prepared(data)
        return request.module.Run(
            run_problem, settings, run_streams, request.options, 1, count
        )

    def follow(run: Any) -> Iterator[Array]:
        """What is known before the first step, and after each."""
        yield np.array(run.released[0])
        for _ in range(count):
            run.advance(1)
            yield np.array(run.released[0])

    bound = WITHIN * np.abs(base.X).max(axis=0) if shape.bounded else None
    tried = tuple(_across(shape.p)) if shape.real else ()
    return Mechanism(
        request.name + words,
        request.calibration,
        noise.ledger,
        base,
        begin,
        follow,
        end=lambda run: run.advance(count),
        select=lambda view: tuple(np.flatnonzero(view[-shape.p :]).tolist()),
        real=shape.real,
        bound=bound,
        tried=tried,
        calibrated=lambda epsilon, delta: (
            calibrate(ledger, epsilon, delta, request.calibration).ledger
        ),
        setting={
            "module": request.module,
            "options": request.options,
            "problem": problem,
        },
    )


def _across(p: int) -> Iterator[tuple[Array, Array]]:
    """Nearly opposite records, both with a margin of one sign far along the diagonal.

    There a slope at the weights and one at an earlier point have opposite signs, so
    that their difference is twice as large as either, in nearly opposite directions.
    """
    turned = np.where(np.arange(p) % 2, -1.0, 1.0)
    turned[-1] *= p % 2 == 0  # orthogonal to the diagonal
    for side in (DIAGONAL_SHARE, -DIAGONAL_SHARE):
        if p > 1:
            yield INFLUENTIAL * (turned + side), INFLUENTIAL * (side - turned)


# --- streams and Frank-Wolfe methods --------------------------------------------------


def vertex(d: int) -> Callable[[Array], tuple]:
    """What a release selected: the large entries of its first d, with their signs."""

    def select(view: Array) -> tuple:
        """Signs of the large coordinates of a view, zero elsewhere."""
        coordinates = view[:d]
        large = np.abs(coordinates) > 0.5 * np.abs(coordinates).max(
            initial=0.0
        )
        return tuple((np.sign(coordinates) * large).astype(int).tolist())

    return select


def as_vertex(release: Array, d: int) -> Array:
    """A release +-(j + 1), x, y, ... as +-e_j in d dimensions and its numbers."""
    signed = float(release[0])
    numbers = np.zeros(NUMBERS)
    numbers[: release.size - 1] = release[1:]
    return np.concatenate(
        [np.sign(signed) * np.eye(d)[abs(int(signed)) - 1], numbers]
    )


def _sequence(needs: Needs, d: int) -> AuditData:
    """Records with labels of both signs."""
    X = np.random.default_rng(3).uniform(0.5, 1.5, (needs.n, d))
    return AuditData(X, np.where(np.arange(needs.n) % 3 == 0, -1.0, 1.0))


def _streams(request: AuditRequest) -> Made:
    """A stream of records in each ball, with one target."""
    for words, needs, base in _stream_cases(request):
        yield from _of_balls(request, words, needs, base)


def _stream_cases(
    request: AuditRequest,
) -> Iterator[tuple[str, Needs, AuditData | None]]:
    """The usual data, and those on which a bound on the step is needed.

    There the first record moves the iterate as far as any, and margins of the others
    lie within the curved part of the loss, across that move: a step that is too long
    would take two iterates further apart.
    """
    yield "", request.needs, None
    if request.needs.is_capped:
        curved = replace(
            request.needs,
            loss="huber",
            radius=100.0,
            epsilon=50.0,
            positions=(0,),
        )
        _, d = request.needs.balls[0]
        sizes = np.geomspace(0.01, 0.5, curved.n)
        X = np.zeros((curved.n, d))
        X[:, 0] = sizes
        X[np.arange(curved.n), 1 + np.arange(curved.n) % (d - 1)] = 1.0
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        yield ", long steps", curved, AuditData(X, np.zeros(curved.n))


def _of_balls(
    request: AuditRequest, words: str, needs: Needs, base: AuditData | None
) -> Made:
    target = family.Target(needs.epsilon, DELTA, request.calibration)
    for p, d in needs.balls[: 1 if base else None]:
        setup = Setup(needs.loss, p, d, needs.radius)
        axis = INFLUENTIAL * np.eye(d)[0]

        def ledger(
            epsilon: float, delta: float, setup: Setup = setup
        ) -> Ledger:
            """The releases at a target, for the family's calibration."""
            goal = family.Target(epsilon, delta, request.calibration)
            releases: Ledger = request.module.noise(
                setup, needs.n, goal, request.options
            ).ledger
            return releases

        def begin(
            data: AuditData, run_streams: Streams, setup: Setup = setup
        ) -> Any:
            """A run on data, before its first step."""
            arguments = (setup, [target], run_streams, Rows(data.X, data.y))
            return request.module.Run(*arguments, needs.n, request.options)

        name = request.name
        if len(needs.balls) > 1:
            name += f", p = {p:g}"
        yield Mechanism(
            name + words,
            request.calibration,
            request.module.noise(
                setup, needs.n, target, request.options
            ).ledger,
            base or _sequence(needs, d),
            begin,
            RELEASES,
            end=methodcaller("solve"),
            select=vertex(d),
            epsilon=needs.epsilon,
            positions=needs.positions,
            parallel=True,
            tried=((axis, -axis),) if base else (),
            calibrated=ledger,
            setting={
                "module": request.module,
                "options": request.options,
                "setup": setup,
            },
        )


def _frank_wolfe(request: AuditRequest) -> Made:
    d = request.needs.balls[0][1]
    count = request.needs.steps
    base = _sequence(request.needs, d)

    def problem(data: AuditData) -> Problem:
        """Least squares of the rows, at the audit's target."""
        rows = Rows(data.X, data.y)
        return build(
            "audit", rows.X, rows.y, "least_squares", Penalty(), 1.0, DELTA
        )

    noise = request.module.noise(
        problem(base), count, request.options, 1.0, DELTA, request.calibration
    )

    def ledger(epsilon: float, delta: float) -> Ledger:
        """The releases at a target, for the family's calibration."""
        goal = (epsilon, delta, request.calibration)
        releases: Ledger = request.module.noise(
            problem(base), count, request.options, *goal
        ).ledger
        return releases

    def begin(data: AuditData, run_streams: Streams) -> Any:
        """A run on data, before its first step."""
        return request.module.Run(
            problem(data), run_streams, request.options, noise
        )

    def follow(run: Any) -> Iterator[Array]:
        with run:
            yield from (
                as_vertex(release, d) for release in run.releases(count)
            )

    yield Mechanism(
        request.name,
        request.calibration,
        noise.ledger,
        base,
        begin,
        follow,
        select=vertex(d),
        positions=request.needs.positions,
        calibrated=ledger,
        setting={"module": request.module, "options": request.options},
    )


# --- fits -----------------------------------------------------------------------------


def _fits(request: AuditRequest) -> Made:
    """Under tight noise only: no paper prints another."""
    if request.calibration != TIGHT:
        return
    shape = request.needs.shape
    plain = replace(shape, p=2) if shape == Shape() else shape
    squares = replace(plain, loss="least_squares")
    for words, shape in (
        ("", plain),
        (", least squares", squares),
        (", ridge", replace(plain, penalty=Penalty(l2=request.needs.ridge))),
        (", sparse", replace(squares, sparse=True)),
    ):
        if not request.module.refuses(
            request.options, Scaled(shape.problem(shape.records()))
        ):
            yield fit(request, words, shape)
    ledger = request.module.ledger(
        Scaled(plain.problem(plain.records())), 1.0, request.options
    )
    if _is_tilted(ledger):
        usual = replace(
            request, options=registry.make_options(request.module, {})
        )
        yield fit(
            usual, f", {COMPANY} records", Shape(n=COMPANY, p=2), company=True
        )


def _is_tilted(ledger: Ledger) -> bool:
    return any(
        isinstance(event, PerturbedObjective) for event in ledger.events
    )


def fit(
    request: AuditRequest, words: str, shape: Shape, company: bool = False
) -> Mechanism:
    """A few releases on all records, under tight noise.

    A minimiser is mapped to the linear term that would lead to it on the base, which is
    known: the map loses nothing, and its values follow the noise more evenly.

    Parameters
    ----------
    company : bool
        Whether the other records drive the minimiser far out, where one moves it most.
    """
    module = request.module
    options = request.options
    base = shape.records()
    problem = shape.problem(base)
    record, opposite = np.ones((2, shape.p))
    record[0] = opposite[-1] = -ALMOST
    size = INFLUENTIAL * Scaled(problem).S
    tried = tuple(
        (s * size * record, s * size * opposite) for s in (1.0, -1.0)
    )
    if company:
        R = module.constants(Scaled(declared(problem)), options)[0]
        base = AuditData(np.tile([-R, 0.0], (shape.n, 1)), np.ones(shape.n))
        turned = [R * np.array([math.sin(a), math.cos(a)]) for a in ANGLES]
        tried = tuple((x, x * (1, -1)) for x in turned)
        problem = declared(shape.problem(base))
    scaled = Scaled(problem)
    noise = calibrate(
        lambda s: module.ledger(scaled, s, options), 1.0, DELTA, TIGHT
    )
    ledger = noise.ledger

    def begin(data: AuditData, run_streams: Streams) -> Any:
        """A run on data, before its first step."""
        neighbour = Scaled(replace(shape.problem(data), public=problem.known))
        return module.Run(neighbour, ledger, [run_streams], options)

    def terms(run: Any) -> Iterator[Array]:
        return (
            linear_terms(module, options, problem, u) for u in run.releases()
        )

    follow = terms if _is_tilted(ledger) else RELEASES
    return Mechanism(
        request.name + words,
        TIGHT,
        ledger,
        base,
        begin,
        follow,
        select=lambda view: tuple(view.tolist()),
        real=shape.real,
        tried=tried,
        events=tuple(in_rounds(ledger)),
        far=far(ledger),
        calibrated=lambda epsilon, delta: (
            calibrate(
                lambda s: module.ledger(scaled, s, options),
                epsilon,
                delta,
                TIGHT,
            ).ledger
        ),
        setting={"module": module, "options": options, "problem": problem},
    )


def far(ledger: Ledger) -> float:
    """Strong noise; none for sketches, whose privacy fails where that is drawn."""
    sketches = any(
        isinstance(event, GaussianSketch) for event in ledger.events
    )
    return 0.0 if sketches else Mechanism.far


def linear_terms(
    module: ModuleType, options: Any, problem: Problem, u: Array
) -> Array:
    """The linear terms for which u (p, L) are the tilted minimisers; (p, L)."""
    scaled = Scaled(problem)
    R, _, ridge, *_ = module.constants(scaled, options)
    rows = records.Records(problem, scaled.S, scaled.label)
    V = rows.clipped(R)
    slope: Array = V.T @ rows.slopes(V @ u + rows.offset)
    return -(slope + (scaled.n * scaled.l2 + ridge) * u)


MAKERS: dict[str, Callable[[AuditRequest], Made]] = {
    "batched": _settings,
    "frank_wolfe": _frank_wolfe,
    "single_pass": _streams,
    "full_batch": _fits,
}
