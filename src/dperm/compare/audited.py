"""Estimators and the private search as mechanisms of the audit.

A neighbour is fitted from scratch by the same estimator, so that all that a fit
computes from the arrays is audited: classes, intercept, ranges and clips, and the sums
of columns, which are its first release. The audit imports this module by name, because
it belongs to a higher layer.

A run of a search and its score are a mechanism whose ledger is the one that the search
was priced by: a run on D' is forced to the weights and the score of a run on D.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import fields
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from dperm.audit.mechanism import DELTA, LOUD, Array, Mechanism, Records, quiet
from dperm.audit.solvers import as_vertex, far, vertex
from dperm.compare import methods, ranges
from dperm.compare.estimators import DPClassifier, DPLinear, DPRegressor
from dperm.compare.guarantee import Guarantee
from dperm.compare.search import PrivateSearch, scored
from dperm.core import solvers
from dperm.core.calibrations import STRICT
from dperm.core.experiment.config import read
from dperm.core.names import ConfigError
from dperm.core.privacy.calibration import calibrate
from dperm.core.privacy.ledger import Ledger
from dperm.core.privacy.mechanisms import Streams, gaussian
from dperm.solvers.fits.secret import in_rounds

N, P = 8, 4  # few records and features that weigh much; P = DP-BCFW's nodes
EPSILON = 1.0
SHORT = {"passes": 1.0, "steps": 2}  # replaces the slow values of a default setting
HUGE = 8e307  # entries whose margins overflow
FAR = 1e9  # stands for nan in a release


def mechanisms(solver: str) -> list[Mechanism]:
    """A classifier and a regression with a solver, as far as it can.

    The solver ``dp_gd`` has further ones: labels that are centred like a column, and a
    search.
    """
    try:
        section = read("solver", solver)
        method = methods.configured(solver, section.algorithm, section.options)
    except ConfigError:  # another kind of problem; or a leak, which has its own report
        return []
    found = []
    for model in _models(method):
        try:
            found.append(estimator(model))
        except ValueError as error:
            if "cannot do this" not in str(error):
                raise
    return [*found, search(False), search(True)] if solver == "dp_gd" else found


def _models(method: methods.Method) -> Iterator[DPLinear]:
    module = method.module
    known = {*method.default, *(field.name for field in fields(module.Options))}
    steps = 1 if solvers.family(module) == "frank_wolfe" else SHORT["steps"]
    setting = {k: v for k, v in (SHORT | {"steps": steps}).items() if k in known}
    given: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "bounds": (-2, 2)}
    given["setting"] = setting
    ends = {"label_bounds": (-2, 2), **given}
    yield DPClassifier(method, classes=(-1.0, 1.0), **given)
    yield DPRegressor(method, fit_intercept=False, **ends)
    if method.name == "dp_gd":
        yield DPRegressor(method, **ends)


def _base(real: bool) -> Records:
    y = np.ones(N)
    y[0] = 1.0 if real else -1.0  # it may be the only one of its class
    return Records(np.linspace(0.5, 1.5, N * P).reshape(N, P), y)


def estimator(model: DPLinear) -> Mechanism:
    """One fit from scratch: its first release and the solver's run."""
    real = isinstance(model, DPRegressor)
    base = _base(real)

    def cleaned(data: Records) -> tuple[Any, Any]:
        """Records as a fit holds them before its first release."""
        return model._cleaned(data.X, data.y)

    with quiet():
        on, setting = model._runs(*cleaned(base))[0]
    on_name = model.solver_
    first = ranges.ledger(model._ranges, N, EPSILON, DELTA)
    family, p = solvers.family(on.module), on.problem.p

    def ledger(noise: float) -> Ledger:
        return first + on.ledger(setting, noise)

    noise = calibrate(ledger, EPSILON, DELTA, STRICT)
    # The shrinkage reads it.
    model.epsilon_ = Guarantee(noise.ledger, DELTA, (), EPSILON)

    def begin(data: Records, own: Streams) -> SimpleNamespace:
        def normal(scale: Any, size: int) -> Array:
            return scale * gaussian(own.smoothness, (size, 1))

        X, every, noisy = model._standardised(*cleaned(data), first, normal)
        made, point = model._runs(X, every)[0]
        stack = ExitStack()
        run = stack.enter_context(made.start(point, noise.noise_multiplier, own))
        return SimpleNamespace(sums=noisy, run=run, stack=stack)

    def follow(fit: SimpleNamespace) -> Iterator[Array]:
        with fit.stack:
            yield fit.sums
            for one in fit.run.releases():
                yield as_vertex(one, p) if family == "frank_wolfe" else one

    def published(fit: SimpleNamespace) -> Array:
        """Coefficients in the units of the columns, which follow from releases."""
        model._published(np.atleast_2d(fit.run.weights[0]))
        return np.append(model.coef_, model.intercept_)

    selects = {"frank_wolfe": vertex(p), "fits": lambda view: tuple(view.tolist())}
    changed = lambda view: tuple(np.flatnonzero(view[-p:]).tolist())  # noqa: E731
    near = np.where(np.arange(P) == P - 1, -1.0, 1.0)  # nearly opposite records
    later = Ledger(noise.ledger.events[len(first.events) :])
    is_fit = family == "fits"
    intercept = "" if model.fit_intercept else ", no intercept"
    return Mechanism(
        f"{type(model).__name__}({on_name}){intercept}",
        STRICT,
        noise.ledger,
        base,
        begin,
        follow,
        published=published,
        select=selects.get(family, changed),
        real=real,
        tried=((LOUD * near, -LOUD * near[::-1]),),
        events=(*first.events, *in_rounds(later)) if is_fit else (),
        ahead=1,
        far=far(noise.ledger),
    )


def search(real: bool) -> Mechanism:
    """A run of ``PrivateSearch`` and its score, fitted from scratch."""
    known: dict[str, Any] = {"fit_intercept": False, "delta": 2 * DELTA}
    known |= {"bounds": (-2, 2), "setting": {"steps": 1}}
    known |= {"label_bounds": (-2, 2)} if real else {"classes": (-1.0, 1.0)}
    model = (DPRegressor if real else DPClassifier)("dp_gd", **known)
    made = PrivateSearch(model, {"l2": [0.1, 0.2]}, epsilon=EPSILON)
    base = _base(real)

    def prepared(data: Records) -> list[Any]:
        """The runs of all points of the grid on the data."""
        models, t, every = made._prepared(data.X, data.y)
        return [model._runs(t, every)[0] for model in models]

    with quiet():
        runs = prepared(base)
    (_, noise, ledger), *_ = made._priced(runs, DELTA)[0]
    kept = lru_cache(maxsize=200)(lambda data: prepared(data)[0])

    def begin(data: Records, own: Streams) -> SimpleNamespace:
        return SimpleNamespace(data=data, seeds=own.noise.integers(2**62, size=2))

    def follow(fit: SimpleNamespace) -> Iterator[Array]:
        """Weights and score together; nan and infinity become large."""
        on, setting = kept(fit.data)
        given = (on, setting, noise, fit.seeds, made._of_choice)
        score, fit.weights = scored(*given)
        whole = np.append(fit.weights, score)
        yield np.nan_to_num(whole, nan=FAR, posinf=2 * FAR)

    turned = np.where(np.arange(P) == 1, -HUGE, HUGE)
    return Mechanism(
        f"PrivateSearch, {'regression' if real else 'classifier'}",
        STRICT,
        ledger,
        base,
        begin,
        follow,
        real=real,
        tried=((turned, -turned), (turned, 0 * turned)),
        far=1e3,  # the score contains a penalty, which grows with the square
    )
