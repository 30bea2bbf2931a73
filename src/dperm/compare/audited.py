"""Estimators and the private choice as subjects of the audit.

A neighbour is fitted from scratch by the same estimator. So everything that it computes
from the arrays is audited: the mapping of classes, the intercept, ranges and clips, and
also the sums of columns, which are its first release. The audit imports this module by
name, because it
belongs to a higher layer.

A run of a private choice and its score are a mechanism with a ledger. It is audited by
the ladder of ``dperm.audit`` (its list of checks) like any solver: a run on D' is
forced to the weights and the score of a run on D. Its noise may move by no more than
the ledger states, which is the ledger that the choice was priced by. The remaining
checks concern choices as a whole.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields, replace
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import clone

from dperm.accountants.private_choice import GAMMA
from dperm.audit.climbing import Effort, Finding, Ladder
from dperm.audit.families import Shape, as_vertex, rounds
from dperm.audit.laws import gaussian_delta, gaussian_epsilon
from dperm.audit.registry import BOXES
from dperm.audit.rungs import climb
from dperm.audit.subjects import DELTA, LOUD, Array, Records, Subject
from dperm.compare import contest, contestants, ranges
from dperm.compare.contest import Contest, Drawn, Prices, Seeds
from dperm.compare.contestants import Contestant, Job, Setting, contestant
from dperm.compare.estimators import DPClassifier, DPLinear, DPRegressor
from dperm.compare.search import PrivateSearch, scored
from dperm.core import solvers
from dperm.core.calibrations import STRICT
from dperm.core.erm.penalties import Penalty
from dperm.core.experiment.locate import ConfigError
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import Ledger, SampledGaussian
from dperm.core.privacy.mechanisms import Streams, gaussian, heard, streams

N, P = 8, 4  # few records and features that weigh much; P = DP-BCFW's nodes
EPSILON = 1.0
SHORT = {"passes": 1.0, "steps": 2}  # replaces the slow values of a default setting
NUMBERS = 64  # most numbers in a release of a Frank-Wolfe method besides its index


@contextmanager
def few_records() -> Iterator[None]:
    """Suppress the estimators' warning of few records, intended here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


class EstimatorSubject(Subject):
    """An estimator with a solver.

    Parameters
    ----------
    model : DPClassifier or DPRegressor
        Classes -1 and 1, if they are any.
    """

    calibration, delta, epsilon, cost = STRICT, DELTA, EPSILON, 20
    reason = "few runs of a fit, on the records that move its solver's own subject most"

    def __init__(self, model: DPLinear):
        intercept = "" if model.fit_intercept else ", no intercept"
        self.model, self.method = model, contestants.method(model.solver)
        self.name = f"{type(model).__name__}({model.solver}){intercept}"
        self.real = isinstance(model, DPRegressor)
        y = np.ones(N)
        if not self.real:  # the replaced record may be the only one of its class
            y[0] = -1.0
        self.base = Records(np.linspace(0.5, 1.5, N * P).reshape(N, P), y)
        near = np.where(np.arange(P) == P - 1, -1.0, 1.0)  # nearly opposite records
        self.tried = ((LOUD * near, -LOUD * near[::-1]),)
        self.on, self.setting = model._runs(*self.cleaned(self.base), self.method)[0]
        self.family = solvers.family(self.on.module)
        self.first = ranges.ledger(model._ranges, N, EPSILON, DELTA)

        def ledger(noise: float) -> Ledger:
            return self.first + self.on.ledger(self.setting, noise)

        found = calibrate(ledger, EPSILON, DELTA, STRICT)
        self.noise_multiplier, self.ledger = found.noise_multiplier, found.ledger
        if self.family == "fits":
            first = self.first.events
            rest = replace(self.ledger, events=self.ledger.events[len(first) :])
            self.draw_events = first + rounds(rest)
        self.hidden = any(isinstance(e, SampledGaussian) for e in self.ledger.events)

    def cleaned(self, data: Records) -> tuple[Any, Any]:
        """Records as a fit holds them before its first release."""
        with few_records():
            return self.model._cleaned(*self.model._arrays(data.X, data.y))

    @contextmanager
    def start(self, data: Records, own: Streams) -> Iterator[Any]:
        """One fit from scratch: its first release and the solver's run."""

        def normal(scale: Any, size: int) -> Array:
            return scale * gaussian(own.smoothness, (size, 1))

        model = self.model
        X, every, noisy = model._standardised(*self.cleaned(data), self.first, normal)
        on, setting = model._runs(X, every, self.method)[0]
        with on.start(setting, self.noise_multiplier, own) as run:
            yield noisy, run

    def releases(self, run: Any) -> Iterator[Array]:
        """The sums of columns, and what the solver releases."""
        noisy, made = run
        yield noisy
        for release in made.releases():
            if self.family == "frank_wolfe":
                yield as_vertex(release, self.on.problem.p, NUMBERS)
            else:
                yield np.ravel(release)

    def published(self, run: Any) -> Any:
        """The solver's weights."""
        return run[1].weights[0]

    def symbol(self, view: Array) -> tuple[int, ...]:
        """The selected coordinate, or the vertex."""
        p = self.on.problem.p
        if self.family == "frank_wolfe":
            return tuple(np.sign(view[:p]).astype(int).tolist())
        return tuple(np.flatnonzero(view[-p:]).tolist())


def subjects(solver: str) -> list[Subject]:
    """A classifier with an intercept and a regression without, if the solver can.

    Black boxes have no subjects: no shift of noise repeats their releases
    (``registry.BOXES``).
    """
    if solver not in contestants.known() or solver in BOXES:
        return []
    try:
        method = contestants.method(solver)
    except ConfigError:  # it leaks and does not run, which its own subjects report
        return []
    options = solvers.load(method.section.algorithm).Options
    known = {*method.default, *(field.name for field in fields(options))}
    family = solvers.family(solvers.load(method.section.algorithm))
    short = SHORT | ({"steps": 1} if family == "frank_wolfe" else {})
    setting = {key: value for key, value in short.items() if key in known}
    given: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "setting": setting}
    given["bounds"] = (-2, 2)
    models: list[DPLinear] = [
        DPClassifier(solver, classes=(-1.0, 1.0), **given),
        DPRegressor(solver, fit_intercept=False, label_bounds=(-2, 2), **given),
    ]
    if solver == "dp_gd":  # a label is centred like a column
        models.append(DPRegressor(solver, label_bounds=(-2, 2), **given))
    found: list[Subject] = []
    for model in models:
        try:
            found.append(EstimatorSubject(model))
        except ValueError as error:
            if "cannot do this" not in str(error):
                raise
    return found


# --- the private choice ---------------------------------------------------------------


NEAR = 1e-3  # relative tolerance between prices
HUGE = 8e307  # entries whose margins overflow
FAR = 1e9  # stands for nan in a release
CHOICES = 2000  # whose numbers of runs are tested
SHAPES = (
    Shape(penalty=Penalty(l2=0.1)),
    Shape(loss="least_squares", penalty=Penalty(l2=0.1)),
)
GRID: tuple[Setting, ...] = tuple({"steps": 1, "step": s} for s in (0.5, 1.0, 3.0))


class Paid(Subject):
    """A run of a private choice and its score, of DP-GD with one step.

    The weights are affine in the run's noise, and the score in its own noise.

    Parameters
    ----------
    shape : Shape
        Of the small problem.
    """

    calibration, delta = STRICT, DELTA

    def __init__(self, shape: Shape):
        self.name, self.shape, self.real = f"a choice, {shape.loss}", shape, shape.real
        self.base = shape.records()
        turned = np.where(np.arange(shape.p) == 1, -HUGE, HUGE)
        self.tried = ((turned, -turned), (turned, 0 * turned))
        self.problem = shape.problem(self.base, EPSILON)
        self.contest = self.on(self.base)
        self.method = self.contest.base.aiming(contest.INNER * EPSILON)
        prices = self.contest.prices
        self.able, self.price, _ = prices.paid(self.method, GRID, EPSILON)
        drawn, _ = self.contest._choices(self.method, EPSILON, [0])
        self.job = drawn[0].job
        self.ledger = next(a.ledger for a in self.able if a.setting is self.job.setting)

    def on(self, data: Records) -> Contest:
        """The contest on other data, with the public constants of the base."""
        problem = self.shape.problem(data, EPSILON)
        method = contestant("dp_gd", {}, replace(problem, public=self.problem))
        seeds = Seeds([], [*range(CHOICES)], [], 0)
        return Contest(method, 1.0, GRID, GRID[0], seeds, Prices())

    def start(self, data: Records, own: Streams) -> AbstractContextManager[Any]:
        """A run that is not yet made."""
        seeds = [int(one) for one in own.noise.integers(2**62, size=2)]
        method = self.on(data).base.aiming(contest.INNER * EPSILON)
        return nullcontext(Run(method, Drawn(0, self.seeded(seeds[0]), seeds[1])))

    def seeded(self, seed: int) -> Job:
        """The audited run with another seed."""
        return self.job._replace(seed=seed)

    def releases(self, run: Run) -> Iterator[Array]:
        """All releases of the run, as one vector; nan and infinity become large."""
        run.make()
        yield np.nan_to_num(np.append(run.weights, run.score), nan=FAR, posinf=2 * FAR)

    def published(self, run: Run) -> Array:
        """The weights, which are published if this run is the best."""
        return run.weights

    def symbol(self, view: Array) -> tuple[int, ...]:
        """No symbol: the run selects nothing."""
        return ()


class Searched(Paid):
    """A run of ``PrivateSearch`` and its score, fitted from scratch."""

    def __init__(self, shape: Shape):
        super().__init__(shape)
        self.name = f"a search, {shape.loss}"
        known = {"bounds": (-1, 1), "fit_intercept": False, "delta": 2 * DELTA}
        if self.real:
            model: DPLinear = DPRegressor("dp_gd", label_bounds=(-1, 1), **known)
        else:
            model = DPClassifier("dp_gd", classes=(-1.0, 1.0), **known)
        model.set_params(setting={"steps": 1})
        grid = {"l2": [0.1, 0.2]}
        self.search = PrivateSearch(model, grid, epsilon=EPSILON)
        self.runs = self.prepared(self.base)
        self.paid, ledgers, self.price = self.search._priced(self.runs, DELTA)
        self.ledger, drawn = ledgers[0], self.search._drawn(self.runs, self.paid, 0)
        self.job = next(one.job for one in drawn if one.choice == 0)

    def prepared(self, data: Records) -> list[Any]:
        """The runs of all points of the grid on other data."""
        search = self.search
        models = [clone(search.estimator).set_params(**one) for one in search._grid()]
        with few_records():
            made = search._cleaned(models, data.X, data.y)
            return search._runs(models, *made)

    def start(self, data: Records, own: Streams) -> AbstractContextManager[Any]:
        """A run that is not yet made."""
        seeds = [int(one) for one in own.noise.integers(2**62, size=2)]
        drawn = Drawn(0, self.seeded(seeds[0]), seeds[1])
        run = Run(self.prepared(data)[0][0], drawn, self.search._of_choice)
        return nullcontext(run)


class Run:
    """One run of a choice."""

    def __init__(self, method: Contestant, drawn: Drawn, epsilon: float = EPSILON):
        self.method, self.drawn, self.epsilon = method, drawn, epsilon

    def make(self) -> None:
        """Make and score the run as choices do, and keep its releases."""
        self.score, self.weights = scored(self.method, self.drawn, self.epsilon)


def findings(effort: Effort, seed: int) -> list[Finding]:
    """Findings of all checks of the private choice."""
    subjects = [*map(Paid, SHAPES), Searched(SHAPES[1])]
    climbed = [found for one in subjects for found in climb(Ladder(one, effort, seed))]
    whole = drawing(subjects[0]), choosing(subjects[0], seed), price()
    return [*climbed, *whole, searching(SHAPES[1])]


# --- choices as a whole ---------------------------------------------------------------


def drawing(subject: Paid) -> Finding:
    """Test that runs are drawn by the law that is paid for, whatever the data are."""
    extreme = subject.base.replaced(0, np.full(subject.shape.p, LOUD), -1.0)
    drawn, other = (_choices(subject, data) for data in (subject.base, extreme))
    runs = np.bincount([one.choice for one in drawn])
    settings = [GRID.index(one.job.setting) for one in drawn]
    k = np.arange(1, runs.max() + 1)
    law = (1 - GAMMA) ** k / k / math.log(1 / GAMMA)
    pvalues = (
        _chi_square(np.bincount(runs)[1:], law),
        _chi_square(np.bincount(settings, minlength=len(GRID)), np.full(3, 1 / 3)),
    )
    seeds = [seed for one in drawn for seed in (one.job.seed, one.scored)]
    wrong = drawn != other or len({*seeds}) < len(seeds)
    worst, level = min(pvalues), 1e-6
    return Finding("drawing", worst, level, wrong or worst < level)


def _choices(subject: Paid, data: Records) -> list[Drawn]:
    own = subject.on(data)
    method = own.base.aiming(contest.INNER * EPSILON)
    return own._choices(method, EPSILON, own.seeds.fresh)[0]


def _chi_square(counts: Array, law: Array) -> float:
    """P-value of counts, with rare values pooled."""
    expected = np.append(law, 1 - law.sum()) * counts.sum()
    rare = expected < 5
    seen = np.append(counts, 0)
    both = [np.append(x[~rare], x[rare].sum()) for x in (seen, expected)]
    kept = both[1] > 1e-9
    return float(stats.chisquare(both[0][kept], both[1][kept]).pvalue)


@contextmanager
def least(one: Drawn) -> Iterator[None]:
    """Give a run noise that makes its score the least."""
    wanted = gaussian(streams(one.scored).noise, ())

    def loud(kind: str, unit: Any, order: float) -> Any:
        return unit - 1e6 if np.array_equal(unit, wanted) else unit

    with heard(loud):
        yield


def choosing(subject: Paid, seed: int) -> Finding:
    """Test that the run with the least score is published, and no other."""
    jobs = [subject.seeded(seed + k) for k in range(4)]
    choices = [Drawn(0, job, seed + 9 + k) for k, job in enumerate(jobs)]
    wrong = 0
    for one in choices:
        cost = (math.nan, subject.price, ())
        with least(one):
            (row,) = subject.contest._chosen(subject.method, choices, cost, EPSILON)
        wrong += row["run_seed"] != one.job.seed
    return Finding("choosing", wrong, 0.0, wrong > 0)


def searching(shape: Shape) -> Finding:
    """Test that a search draws the same runs on other data and publishes the best."""
    subject = Searched(shape)
    search, able = subject.search, subject.paid
    extreme = subject.base.replaced(0, np.full(shape.p, LOUD), -1.0)
    runs, others = subject.runs, subject.prepared(extreme)
    wrong = 0
    for seed in range(4):
        drawn = search._drawn(runs, able, seed)
        wrong += drawn != search._drawn(others, able, seed)
        for one in drawn:
            with least(one):
                k, w = search._best(runs, able, seed)
            own = scored(runs[one.choice][0], one, search._of_choice)[1]
            wrong += k != one.choice or not np.array_equal(w, own)
    theirs = max(bound(one, DELTA) for one in search._priced(runs, DELTA)[1])
    wrong += not (1 - NEAR) * theirs <= subject.price <= EPSILON * (1 + 1e-9)
    return Finding("searching", wrong, 0.0, wrong > 0)


# --- the price ------------------------------------------------------------------------


def price() -> Finding:
    """Compare the price of a choice of Gaussian runs with an independent bound."""
    subject = Paid(SHAPES[0])
    theirs = max(bound(one.ledger, subject.delta) for one in subject.able)
    caught = not (1 - NEAR) * theirs <= subject.price <= EPSILON * (1 + 1e-9)
    return Finding("price", subject.price, theirs, caught)


def bound(ledger: Ledger, delta: float, gamma: float = GAMMA) -> float:
    """Least epsilon by Koskela, Redberg and Wang 2024, for Gaussian releases.

    E[K] is computed by its sum; the inner epsilon is searched, not its delta.
    """
    square = sum(e.count * (e.sensitivity / e.scale) ** 2 for e in ledger.events)
    mu, k = math.sqrt(square), np.arange(1, 100_000)
    runs = float(((1 - gamma) ** k).sum() / ((1 - gamma) ** k / k).sum())

    def plain_delta(epsilon: float) -> float:
        return float(gaussian_delta(epsilon, mu))

    outer = gaussian_epsilon(mu, delta / runs)
    inner = min(
        math.log(math.exp(e) + (1 - gamma) / gamma * plain_delta(e))
        for e in np.linspace(0.0, outer, 4000)
    )
    return outer + inner
