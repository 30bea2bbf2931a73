"""Estimators and the private search as mechanisms of the audit.

A neighbour is fitted from scratch by the same estimator, so that all that a fit
computes from the arrays is audited: classes, intercept, ranges and clips, and the sums
of columns, which are its first release. The audit imports this module by name, because
it belongs to a higher layer.

A run of a search and its score are a mechanism whose ledger is the one that the search
was priced by: a run on D' is forced to the weights and the score of a run on D.

Some estimators are fitted to more records under a large epsilon, so that their data
stand above the noise: what is a floor or a maximum among noise is none there.

Each mechanism also holds the whole fit of which it is a part, by scikit-learn's
``fit``. All that such a fit releases passes three places, where it is kept, or replaced
by what another fit released: the noisy sums of columns, the weights of a run, and the
weights and the score of a run of a search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields, replace
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from sklearn.base import clone

from dperm.audit.mechanism import (
    DELTA,
    INFLUENTIAL,
    Array,
    AuditData,
    Composed,
    Mechanism,
    Recorder,
    WholeFit,
    quiet,
)
from dperm.audit.solvers import as_vertex, far, vertex
from dperm.config.config import read
from dperm.estimators import containers, doors, methods, ranges
from dperm.estimators import search as searches
from dperm.estimators.estimators import DPClassifier, DPLinear, DPRegressor
from dperm.estimators.guarantee import Budget, BudgetError, Guarantee
from dperm.estimators.search import PrivateSearch
from dperm.names import ConfigError
from dperm.privacy.accountants import TIGHT
from dperm.privacy.calibration import calibrate
from dperm.privacy.events import Ledger
from dperm.privacy.noise import Streams, gaussian, listening
from dperm.solvers import registry
from dperm.solvers.full_batch.secret import Secret, in_rounds

N, P = 8, 4  # few records and features that weigh much; P = DP-BCFW's nodes
EPSILON = 1.0
MANY, CLEAR_EPSILON = (
    24,
    200.0,
)  # records, and epsilon, of data that stand above noise
# Records, for which the noise of the sums does not follow the target
PLENTY = 3000
CLASSES = (-1.0, 0.0, 1.0)  # of one against the rest
STRANGE = 7.0  # a label of no class
SHORT_SETTINGS = {
    "passes": 1.0,
    "steps": 2,
}  # in place of a default's slow values
OVERFLOWING = 8e307  # entries whose margins overflow
STAND_IN = 1e9  # stands for nan in a release


def mechanisms(solver: str) -> list[Mechanism]:
    """A classifier and a regression with a solver, as far as it can.

    The solver ``dp_gd`` has further ones: labels that are centred like a column, and a
    search. Its classifier also reads neighbours in every container (:mod:`.doors`).
    """
    try:
        section = read("solver", solver)
        method = methods.configured(solver, section.algorithm, section.options)
    except ConfigError:
        # another kind of problem; or a leak, which has its own report
        return []
    found = []
    for model, n in _models(method):
        with suppress(methods.UnsuitedError):
            found.append(estimator(model, n))
    if solver != "dp_gd":
        return found
    first, *others = found
    assert first.whole is not None
    first = replace(first, whole=replace(first.whole, faults=_faults))
    return [first, *others, search(False), search(True)]


def _faults() -> tuple[list[str], int]:
    """What the attacks on the door and the table of containers show, of how many."""
    attacks = [*doors.attacks()]
    wrong_combinations, combination_count = containers.faults()
    return [*doors.faults(attacks), *wrong_combinations], len(
        attacks
    ) + combination_count


def _models(method: methods.Method) -> Iterator[tuple[DPLinear, int]]:
    """Estimators with a solver, and how many records they are fitted to."""
    module = method.module
    known = {
        *method.default,
        *(field.name for field in fields(module.Options)),
    }
    steps = (
        1
        if registry.family(module) == "frank_wolfe"
        else SHORT_SETTINGS["steps"]
    )
    short = SHORT_SETTINGS | {"steps": steps}
    setting = {key: number for key, number in short.items() if key in known}
    given: dict[str, Any] = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "bounds": (-2, 2),
    }
    given["setting"] = setting
    ends = {"label_bounds": (-2, 2), **given}
    yield DPClassifier(method, classes=(-1.0, 1.0), **given), N
    yield DPRegressor(method, fit_intercept=False, **ends), N
    clear = {"epsilon": CLEAR_EPSILON}
    yield DPClassifier(method, classes=(-1.0, 1.0), **(given | clear)), MANY
    yield DPRegressor(method, **(ends | clear)), MANY
    if method.name == "dp_gd":
        yield DPRegressor(method, **ends), N
        yield DPClassifier(method, classes=CLASSES, **given), N


def _base(real: bool, n: int = N) -> AuditData:
    y = np.ones(n)
    y[0] = 1.0 if real else -1.0  # it may be the only one of its class
    return AuditData(np.linspace(0.5, 1.5, n * P).reshape(n, P), y)


def estimator(model: DPLinear, n: int = N) -> Mechanism:
    """One fit from scratch: its first release and the solver's runs.

    Parameters
    ----------
    model : DPClassifier or DPRegressor
        With more than two classes there is a run for each.
    n : int
        Records.
    """
    real = isinstance(model, DPRegressor)
    base = _base(real, n)
    target = (model.epsilon, DELTA)

    def cleaned(data: AuditData) -> tuple[Any, Any]:
        """Records as a fit holds them before its first release."""
        return model._cleaned(data.X, data.y)

    with quiet():
        parts = model._runs(*cleaned(base))
    on = parts[0][0]
    on_name = model.solver_
    first = ranges.ledger(model._ranges, n, *target)
    family, p = registry.family(on.module), on.problem.p

    def ledger(noise: float) -> Ledger:
        return sum((part.ledger(point, noise) for part, point in parts), first)

    noise = calibrate(ledger, *target, TIGHT)
    # The shrinkage reads it.
    model.epsilon_ = Guarantee(noise.ledger, DELTA, (), model.epsilon)

    def begin(data: AuditData, own: Streams) -> SimpleNamespace:
        def normal(scale: Any, size: int) -> Array:
            return scale * gaussian(own.smoothness, (size, 1))

        X, every, noisy = model._standardised(
            *cleaned(data), first, normal, own=True
        )
        stack = ExitStack()
        begun = [
            stack.enter_context(made.start(point, noise.noise_multiplier, own))
            for made, point in model._alone(X, every)
        ]
        return SimpleNamespace(sums=noisy, runs=begun, stack=stack)

    def follow(fit: SimpleNamespace) -> Iterator[Array]:
        with fit.stack:
            yield fit.sums
            for run in fit.runs:
                for release in run.releases():
                    is_index = family == "frank_wolfe"
                    yield as_vertex(release, p) if is_index else release

    def published(fit: SimpleNamespace) -> Array:
        """Coefficients in the units of the columns, which follow from releases."""
        model._published(np.array([run.weights[0] for run in fit.runs]))
        return np.append(model.coef_, model.intercept_)

    selects = {
        "frank_wolfe": vertex(p),
        "full_batch": lambda view: tuple(view.tolist()),
    }
    changed = lambda view: tuple(np.flatnonzero(view[-p:]).tolist())  # noqa: E731
    # nearly opposite records
    near = np.where(np.arange(P) == P - 1, -1.0, 1.0)
    rounds = [
        event
        for part, point in parts
        for event in in_rounds(part.ledger(point, noise.noise_multiplier))
    ]
    is_fit = family == "full_batch"
    intercept = "" if model.fit_intercept else ", no intercept"
    several = f", {len(parts)} classes" if len(parts) > 1 else ""
    clear = ", little noise" if model.epsilon > EPSILON else ""
    return Mechanism(
        f"{type(model).__name__}({on_name}){intercept}{several}{clear}",
        TIGHT,
        noise.ledger,
        base,
        begin,
        follow,
        published=published,
        select=selects.get(family, changed),
        real=real,
        tried=((INFLUENTIAL * near, -INFLUENTIAL * near[::-1]),),
        events=(*first.events, *rounds) if is_fit else (),
        ahead=1,
        far=far(noise.ledger),
        epsilon=model.epsilon,
        whole=whole(model, base),
    )


def search(real: bool) -> Mechanism:
    """A run of ``PrivateSearch`` and its score, fitted from scratch."""
    known: dict[str, Any] = {"fit_intercept": False, "delta": 2 * DELTA}
    known |= {"bounds": (-2, 2), "setting": {"steps": 1}}
    known |= {"label_bounds": (-2, 2)} if real else {"classes": (-1.0, 1.0)}
    model = (DPRegressor if real else DPClassifier)("dp_gd", **known)
    made = PrivateSearch(model, {"l2": [0.1, 0.2]}, epsilon=EPSILON)
    base = _base(real)

    def prepared(data: AuditData) -> list[Any]:
        """The runs of all points of the grid on the data."""
        models, t, every = made._prepared(data.X, data.y)
        return [model._runs(t, every)[0] for model in models]

    with quiet():
        runs = prepared(base)
    (_, noise, ledger), *_ = made._priced(runs, DELTA)[0]
    kept = lru_cache(maxsize=200)(lambda data: prepared(data)[0])

    def begin(data: AuditData, own: Streams) -> SimpleNamespace:
        return SimpleNamespace(
            data=data, seeds=own.noise.integers(2**62, size=2)
        )

    def follow(fit: SimpleNamespace) -> Iterator[Array]:
        """Weights and score together; nan and infinity become large."""
        on, setting = kept(fit.data)
        given = (on, setting, noise, fit.seeds, made._of_choice)
        score, fit.weights = searches.scored(*given)
        whole = np.append(fit.weights, score)
        yield np.nan_to_num(whole, nan=STAND_IN, posinf=2 * STAND_IN)

    turned = np.where(np.arange(P) == 1, -OVERFLOWING, OVERFLOWING)
    return Mechanism(
        f"PrivateSearch, {'regression' if real else 'classifier'}",
        TIGHT,
        ledger,
        base,
        begin,
        follow,
        real=real,
        tried=((turned, -turned), (turned, 0 * turned)),
        far=1e3,  # the score contains a penalty, which grows with the square
        whole=whole(made, base),
    )


# --- whole fits -----------------------------------------------------------------------


def whole(model: Any, base: AuditData) -> WholeFit:
    """A fit of an estimator, or a search, as its user calls it."""
    is_search = isinstance(model, PrivateSearch)
    is_real = isinstance(model.estimator if is_search else model, DPRegressor)

    def fit(data: Any, epsilon: float, delta: float, seed: int) -> Any:
        fresh = clone(model).set_params(epsilon=epsilon, random_state=seed)
        name = "estimator__delta" if is_search else "delta"
        X, y = (data.X, data.y) if isinstance(data, AuditData) else data
        return fresh.set_params(**{name: delta}).fit(X, y)

    def composed(
        data: AuditData, epsilon: float, delta: float, seeds: Sequence[int]
    ) -> Composed:
        count = len(seeds)
        with Budget(count * epsilon, count * delta) as budget:
            fits = [fit(data, epsilon, delta, seed) for seed in seeds]
        is_kept = False
        with Budget(2 * epsilon, 2 * delta), listening(Recorder()):
            fit(data, epsilon, delta, seeds[0])
            try:
                fit(data, epsilon, delta, seeds[0])
            except BudgetError:
                is_kept = True
        return Composed(
            fits, budget.spent_epsilon, budget.spent_delta, is_kept
        )

    def ledger(fitted: Any) -> Ledger:
        return fitted.epsilon_.ledger

    times = -(-PLENTY // len(base.y))
    many = AuditData(np.tile(base.X, (times, 1)), np.tile(base.y, times))
    neighbours = partial(_neighbours, base, is_real)
    return WholeFit(fit, ledger, forced, neighbours, many, composed)


@contextmanager
def forced(log: list[Any], is_first: bool) -> Iterator[None]:
    """Keep what a fit releases in the log; or hand over what is in it."""
    left, depth = iter(log), 0

    def kept(release: Callable[..., Any]) -> Callable[..., Any]:
        def replay(*args: Any, **named: Any) -> Any:
            nonlocal depth
            if depth:  # a part of a release
                return release(*args, **named)
            if not is_first:
                return next(left)
            depth += 1
            try:
                released = release(*args, **named)
            finally:
                depth -= 1
            log.append(released)
            return released

        return replay

    with ExitStack() as stack:
        for owner, name in (
            (Secret, "released"),
            (methods.SolverAdapter, "weights"),
            (searches, "scored"),
        ):
            original = getattr(owner, name)
            stack.enter_context(mock.patch.object(owner, name, kept(original)))
        yield


def _neighbours(
    base: AuditData, is_real: bool
) -> Iterator[tuple[str, Any, Any]]:
    """The base, and data with another record in it, of every kind."""
    place = len(base.y) // 2
    x, label = base.X[place], float(base.y[place])
    others: dict[str, tuple[Any, Any]] = {
        "another record": (-x, label),
        "zeros": (0 * x, label),
        "beyond the bounds": (INFLUENTIAL * x, label),
        "the same as the next": (base.X[place + 1], label),
        "NaN": (np.nan * x, label),
        "infinity": (np.inf * x, label),
        "1e308": (1e308 * np.sign(x), label),
        "another label": (x, -label),
        "another record and label": (-x, -label),
        "a strange label": (x, STRANGE),
        "a label that is NaN": (x, np.nan),
        "a label beyond its bounds": (x, INFLUENTIAL if is_real else 0.0),
    }
    for words, (row, other) in others.items():
        yield words, base, base.replaced(place, (row, other))
    rows = (base.X.tolist(), base.y.tolist())
    for words, entry in (("a text", "unknown"), ("nothing", None)):
        X, y = ([*map(list, rows[0])], list(rows[1]))
        X[place][0] = entry
        yield f"{words} in a list of rows", rows, (X, y)
        y[place] = entry
        yield f"{words} in a list of labels", rows, (rows[0], y)
